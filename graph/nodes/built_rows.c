/* built_rows.c - words of a program that make each row of one row: norms, gated products and
 * activations. */
#include "graph/nodes/built.h"

/* Whether a norm stands where the product is that it alone reads. */
static bool over_product(const struct tec_built *b, int at)
{
    const struct tec_model_call *x = &b->p->calls[b->p->calls[at].in[0]];
    return b->text && x->word == TEC_WORD_linear && x->uses.n == 1 && !tec_built_rounds(b, at);
}

/* What rows of the time scale and shift; given actions by what is read at their time. */
static void scale_by_time(const struct tec_built *b, const struct tec_model_call *c,
                          struct tec_norm_args *a)
{
    const struct tec_timed *timed = b->l->timed;
    a->weight = tec_timed_row(timed, c->scale, b->step);
    a->bias = c->shift < 0 ? NULL : tec_timed_row(timed, c->shift, b->step);
    a->offset = 1.0F;
    a->fixed = b->l->prefix->n_fixed;
    if (!a->fixed)
        return;
    a->fixed_weight = tec_timed_row(timed, c->scale, timed->steps);
    a->fixed_bias = c->shift < 0 ? NULL : tec_timed_row(timed, c->shift, timed->steps);
}

/* Whether queries, keys or values are made of a value. */
static bool is_attended(const struct tec_built *b, int at)
{
    const struct tec_value_uses *u = &b->p->calls[at].uses;
    bool attended = false;
    for (int i = u->first; i <= u->last && i < b->p->n; i++)
        for (int k = 0; k < b->p->calls[i].n_in; k++)
            attended |= b->p->calls[i].in[k] == at && b->p->calls[i].word == TEC_WORD_attention;
    return attended;
}

/* Whether what a norm writes is rounded for the products that read it. */
static bool rounds(const struct tec_built *b, int at)
{
    bool spared = tec_built_spares(b) || (b->l->spares && is_attended(b, at));
    return b->l->round && tec_built_rounds(b, at) && !spared;
}

int tec_built_norm(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_call_weights *w = &b->w[at];
    struct tec_call call =
        tec_call_of(c->rms ? TEC_OP_rms_norm : TEC_OP_layer_norm, tec_built_label(b, at, "norm"));
    struct tec_norm_args *a = &call.args.norm;
    call.in[0] = tec_built_value(b, c->in[0]);
    call.out[0] =
        over_product(b, at)
            ? call.in[0]
            : tec_built_new(b, at,
                            b->text || b->p->flow.steps || b->p->projects ? call.label : "norm");
    a->eps = (float)c->eps;
    a->weight = w->norm;
    a->bias = w->norm_bias;
    a->offset = w->norm ? (float)c->offset : 1.0F;
    if (c->scale >= 0)
        scale_by_time(b, c, a);
    a->round = rounds(b, at);
    tec_program_call(b->l->program, &call);
    return call.out[0];
}

int tec_built_gated(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_matrix *m = &b->w[at].matrix;
    bool silu = c->activation == TEC_ACTIVATION_SILU;
    char stem[TEC_STEM_BYTES];
    struct tec_call call = tec_call_of(silu ? TEC_OP_silu_mul : TEC_OP_gelu_mul, "act");
    call.in[0] = tec_lower_linear(b->l, m, tec_built_value(b, c->in[0]), "gate_up");
    if (b->text && b->text->tap && b->text->tap_inside)
        tec_lower_tap(b->l, call.in[0], "%slayer%d.up", b->text->tap, b->layer);
    if (!b->text && tec_built_stem(b, at, stem))
        tec_lower_tap(b->l, call.in[0], "%sup", stem);
    call.out[0] = tec_built_new(b, at, "act");
    call.args.gated.up_at = m->n / 2;
    call.args.gated.round = b->l->round && tec_built_rounds(b, at);
    tec_program_call(b->l->program, &call);
    return call.out[0];
}

/* What a product with a rounded matrix reads has a place of its own, where it is rounded. */
int tec_built_activation(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    int x = tec_built_value(b, c->in[0]);
    bool rounds = tec_built_rounds(b, at) || c->rounded;
    bool over = tec_built_last(b, c->in[0], at) && (!rounds || b->p->projects || b->p->stated);
    int y = over ? x : tec_built_new(b, at, "act");
    if (rounds)
        tec_lower_activation(b->l, c->activation, x, y);
    else
        tec_lower_map(b->l, c->activation, x, y);
    return y;
}

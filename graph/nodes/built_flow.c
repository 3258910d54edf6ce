/* built_flow.c - the words of a flow's action, its steps, and what it sees of the prefill.
 *
 * What does not depend on x is made once before the steps, which are unrolled. What depends on the
 * time alone is in tables. Keys and values of a prefill's rows are made behind it, to the frame's
 * slots: once for all steps. */
#include "graph/nodes/built.h"

#include <math.h>

int tec_built_noise(struct tec_built *b, int at)
{
    return b->tensor[at];
}

/* Rows of the time have no commands: who reads one names its memory. */
int tec_built_time(struct tec_built *b, int at)
{
    return b->tensor[at];
}

int tec_built_waves(struct tec_built *b, int at)
{
    return b->tensor[at];
}

int tec_built_columns(struct tec_built *b, int at)
{
    return b->tensor[at];
}

/* A product reads the first value and has a table for the second. */
int tec_built_beside(struct tec_built *b, int at)
{
    return b->tensor[at];
}

/* A product reads the rows where they are. */
int tec_built_take(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    struct tec_call call = tec_call_of(TEC_OP_take_rows, tec_built_label(b, at, "take"));
    if (!c->copied)
        return b->tensor[at];
    call.in[0] = b->tensor[c->in[0]];
    call.out[0] = tec_built_new(b, at, call.label);
    call.args.take.row = b->l->prefix->in_order + c->first;
    call.args.take.group = 1;
    tec_program_call(b->l->program, &call);
    return call.out[0];
}

/* The rows of an attention as they see others; its own in their own slots. */
static const struct tec_rows *rows_of(const struct tec_built *b, const struct tec_model_call *c)
{
    const struct tec_prefix_table *t = b->l->prefix;
    const struct tec_rows *const over[TEC_SEEN_KINDS] = {&t->asked, &t->pictured, &t->rest};
    return c->over < 0 ? &t->suffix : over[c->sees];
}

int tec_built_attention(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_layer *w = b->w[at].stack.layers;
    struct tec_lower *l = b->l;
    const struct tec_attend *n = &c->attend;
    const struct tec_attending t = {
        .attend = n, .weights = w, .space = l->space, .rows = rows_of(b, c)};
    const struct tec_head_norms norms = {n->head_dim, (float)c->offset, (float)c->eps};
    const struct tec_kv_tensors kv = {tec_lower_kv(l, l->space, c->place, false),
                                      tec_lower_kv(l, l->space, c->place, true)};
    bool own = c->over < 0;
    int x = tec_lower_linear(l, &w->qkv, tec_built_value(b, c->in[0]), own ? "qkv" : "q");
    tec_lower_norm_heads(l, &norms, x, 0, n->heads, w->q_norm);
    if (own)
        tec_lower_norm_heads(l, &norms, x, w->k_at, n->kv_heads, w->k_norm);
    int q = own ? tec_lower_store(l, &t, x, false, kv) : tec_lower_queries(l, &t, x);
    return tec_lower_attend(l, &t, q, kv, tec_built_rounds(b, at));
}

/* Keys and values of rows x, to a layer of the frame's slots; `norms` NULL: heads have none. */
static void keep(struct tec_lower *l, const struct tec_layer *w, const struct tec_attend *n,
                 const struct tec_head_norms *norms, int layer, int x)
{
    int kv = tec_lower_linear(l, &w->cross_kv, x, "cross_kv");
    if (x >= 0)
        tec_lower_position(l, kv, w->cross_kv_shift, l->program->tensors[x].rows);
    if (norms)
        tec_lower_norm_heads(l, norms, kv, 0, n->kv_heads, w->k_norm);
    struct tec_call call = tec_call_of(TEC_OP_rope_store, "keep");
    struct tec_rope_args *a = &call.args.rope;
    call.in[0] = kv;
    call.out[1] = tec_lower_kv(l, l->space, layer, false);
    call.out[2] = tec_lower_kv(l, l->space, layer, true);
    call.bf16 = l->space->shape.bf16;
    a->slot = l->prefix->prefix.slot;
    a->pos = l->prefix->prefix.pos;
    a->q_at = -1;
    a->v_at = w->cross_v_at;
    a->heads = n->heads;
    a->kv_heads = n->kv_heads;
    a->head_dim = n->head_dim;
    tec_program_call(l->program, &call);
}

/* A tensor whose values are rounded, as matrices read them: x where nothing is. */
static int rounded(struct tec_lower *l, int x)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    struct tec_call call = tec_call_of(TEC_OP_copy, "features");
    if (!l->round || !t)
        return x;
    call.in[0] = x;
    call.out[0] = tec_program_tensor(l->program, "features", t->rows, t->cols, t->live);
    call.args.map.round = true;
    tec_program_call(l->program, &call);
    return call.out[0];
}

void tec_built_keep(struct tec_built *b)
{
    const struct tec_model_program *p = b->p;
    int from = -1, x = -1;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        if (c->over < 0)
            continue;
        x = c->over == from ? x : rounded(b->l, b->tensor[c->over]);
        from = c->over;
        const struct tec_layer *w = b->w[i].stack.layers;
        const struct tec_attend n = c->stack ? tec_stack_attend(c->stack) : c->attend;
        const struct tec_head_norms norms = {n.head_dim, (float)c->offset, (float)c->eps};
        if (c->word == TEC_WORD_attention)
            keep(b->l, w, &n, &norms, c->place, x);
        for (int k = 0; c->stack && k < c->stack->layers; k++)
            keep(b->l, &w[k], &n, NULL, k, x);
    }
}

struct tec_forward tec_built_over_prompt(const struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    const struct tec_timed *timed = b->l->timed;
    int step = b->step < 0 ? 0 : b->step;
    return (struct tec_forward){.stack = c->stack,
                                .weights = &b->w[at].stack,
                                .space = b->l->space,
                                .rows = &t->suffix,
                                .norms = tec_timed_norms(timed, at, step),
                                .actions =
                                    t->n_fixed ? tec_timed_norms(timed, at, timed->steps) : NULL,
                                .fixed = t->n_fixed,
                                .every = c->every,
                                .across = &t->across};
}

/* How much a step at this time is pulled: s / tau (s^2 + tau^2) / s^2 with s the time that is left
 * and tau what is done, at most `most`, which also is the pull of the first step. */
static float pull_at(double s, double most)
{
    double tau = 1.0 - s;
    double pull = tau > 0.0 ? s / tau * ((s * s + tau * tau) / (s * s)) : most;
    return (float)fmin(pull, most);
}

/* Pulls v towards the earlier chunk (real-time chunking by guidance, arXiv 2506.07339, as LeRobot's
 * RTCProcessor has it). Times count exactly, as LeRobot's loop has them. */
static void guide(struct tec_built *b, int v, int x)
{
    const struct tec_program_flow *f = &b->p->flow;
    struct tec_lower *l = b->l;
    const struct tec_prefix_table *t = l->prefix;
    double time = 1.0 + b->step * (-1.0 / l->timed->steps);
    struct tec_call call = tec_call_of(TEC_OP_guide, "guide");
    call.in[0] = x;
    int rows = t->most * f->horizon;
    call.in[1] = tec_program_fixed(l->program, "previous", t->previous,
                                   (size_t)rows * (size_t)t->ld * sizeof(float), rows, f->dim,
                                   t->ld, t->n_horizon);
    call.out[0] = v;
    call.args.guide.weight = t->pulls;
    call.args.guide.time = (float)time;
    call.args.guide.gain = pull_at(time, (double)l->guidance);
    tec_program_call(l->program, &call);
    tec_lower_tap(l, v, "v_guided.%d", b->step);
}

/* x moves by what the action has made; its first *n_fixed rows, given actions, stay. */
static void euler(struct tec_built *b, int x)
{
    struct tec_lower *l = b->l;
    struct tec_call call = tec_call_of(TEC_OP_euler, "euler");
    call.in[0] = b->tensor[b->p->result];
    call.out[0] = x;
    call.args.euler.dt = (float)((b->p->flow.falls ? -1.0 : 1.0) / l->timed->steps);
    call.args.euler.fixed = l->prefix->n_fixed;
    tec_program_call(l->program, &call);
    tec_lower_tap(l, x, "x_t.%d", b->step + 1);
}

/* Rows of the time that have names. */
static void tap_times(struct tec_built *b)
{
    for (int i = 0; i < b->p->n && b->l->taps; i++) {
        const struct tec_model_call *c = &b->p->calls[i];
        if (c->timed && c->name)
            tec_built_tap(b,
                          tec_lower_constant(b->l, tec_timed_row(b->l->timed, i, b->step), 1,
                                             c->cols, b->l->prefix->one),
                          c->name);
    }
}

static void step(struct tec_built *b, int x)
{
    const struct tec_model_program *p = b->p;
    struct tec_lower *l = b->l;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        b->tensor[i] = p->calls[i].moves ? -1 : b->tensor[i];
        b->settled[i] = false;
    }
    b->tensor[p->noise] = x;
    tap_times(b);
    tec_built_run(b, TEC_PART_OF_ACTION, true);
    tec_lower_tap(l, b->tensor[p->result], "v_t.%d", b->step);
    if (l->prefix->previous)
        guide(b, b->tensor[p->result], x);
    euler(b, x);
}

/* Layers that read projections of the prompt's keys have them once for all steps. */
static void cross(struct tec_built *b)
{
    if (b->p->prompt < 0)
        return;
    const struct tec_forward f = tec_built_over_prompt(b, b->p->asks);
    tec_lower_cross(b->l, &f);
}

void tec_built_steps(struct tec_built *b)
{
    int x = tec_built_chunk(b), steps = b->l->timed->steps;
    cross(b);
    for (b->step = 0; b->step < steps && b->l->program->status == TEC_OK; b->step++)
        step(b, x);
}

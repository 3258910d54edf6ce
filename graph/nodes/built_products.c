/* built_products.c - the words of products and sums. A product that only a sum reads is added where
 * the other summand lies. */
#include "graph/nodes/built.h"

static bool is_product(const struct tec_model_call *c)
{
    return c->word == TEC_WORD_conv || c->word == TEC_WORD_linear;
}

/* The value whose rows a call reads: a view has no memory of its own. */
static int read_by(const struct tec_built *b, const struct tec_model_call *c)
{
    int x = c->in[0];
    while (b->p->calls[x].word == TEC_WORD_beside || b->p->calls[x].word == TEC_WORD_take)
        x = b->p->calls[x].in[0];
    return x;
}

/* Whether the attention of a text's layer stands between two calls: rows may be left behind there.
 */
static bool parted(const struct tec_built *b, int at, int user)
{
    int attention = b->layer < 0 ? -1 : b->p->layers[b->layer].attention;
    return at < attention && attention < user;
}

/* Whether a call is a product that only a sum reads: the sum computes it, unless what it reads is
 * overwritten before. Of two products the later one. */
static bool deferred(const struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (!is_product(c) || c->uses.n != 1 || c->uses.first >= b->p->n)
        return false;
    const struct tec_model_call *user = &b->p->calls[c->uses.first];
    if (user->word != TEC_WORD_add || user->moves != c->moves || parted(b, at, c->uses.first))
        return false;
    int other = user->in[user->in[0] == at], last = b->p->calls[read_by(b, c)].uses.last;
    return tec_built_last(b, other, c->uses.first) && (last <= at || last >= c->uses.first) &&
           (other < at || !is_product(&b->p->calls[other]));
}

int tec_built_conv(struct tec_built *b, int at)
{
    if (b->p->tower)
        return tec_built_patch_conv(b, at);
    return deferred(b, at) ? -1 : tec_built_convolve(b, at, -1);
}

/* What the rows of a product are multiplied by: first ones that are given actions by what is read
 * at the time of actions. */
static struct tec_gate gate_of(const struct tec_built *b, int at)
{
    int row = b->p->calls[at].gate;
    const int *fixed = row < 0 ? NULL : b->l->prefix->n_fixed;
    if (row < 0)
        return (struct tec_gate){.at = b->w[at].factor};
    return (struct tec_gate){.at = tec_timed_row(b->l->timed, row, b->step),
                             .clean =
                                 fixed ? tec_timed_row(b->l->timed, row, b->l->timed->steps) : NULL,
                             .fixed = fixed};
}

static void multiply(struct tec_built *b, int at, int y, const struct tec_gate *gates, int row,
                     bool add)
{
    const struct tec_model_call *c = &b->p->calls[at], *x = &b->p->calls[c->in[0]];
    struct tec_matrix m = b->w[at].matrix;
    const char *label = tec_built_label(b, at, "linear");
    int from = c->in[0];
    if (x->word == TEC_WORD_beside) {
        m.bias = tec_timed_row(b->l->timed, at, b->step);
        from = x->in[0];
        x = &b->p->calls[from];
    }
    if (x->word != TEC_WORD_take || x->copied) {
        tec_lower_linear_into(b->l, &m, tec_built_value(b, from), y, row, gates, add, label);
        return;
    }
    const struct tec_part_rows part = {.rows = tec_built_live(b, at),
                                       .max_rows = tec_built_rows(b, at),
                                       .in_row = b->l->prefix->most * x->first,
                                       .out_row = row,
                                       .gate = gates};
    tec_lower_linear_rows(b->l, &m, b->tensor[x->in[0]], y, &part, add, label);
}

void tec_built_multiply(struct tec_built *b, int at, int y)
{
    multiply(b, at, y, NULL, 0, false);
}

static void multiply_gated(struct tec_built *b, int at, int y, int row, bool add)
{
    const struct tec_gate gate = gate_of(b, at);
    multiply(b, at, y, gate.at ? &gate : NULL, row, add);
}

int tec_built_linear(struct tec_built *b, int at)
{
    int row = 0, user = tec_built_joined_in(b, at, &row);
    bool own = at == b->p->result && !b->p->flow.steps && !b->text;
    bool state = own && b->p->stated && !b->l->taps, chunk_of = own && !b->p->stated,
         behind = tec_built_is_behind(b, at);
    if (deferred(b, at))
        return -1;
    b->settled[at] = user >= 0 || chunk_of || behind || state;
    row = behind ? b->row : state ? b->x_row : row;
    int y = behind      ? b->behind
            : state     ? b->x
            : user >= 0 ? tec_built_joined(b, user)
            : chunk_of  ? tec_built_chunk(b)
                        : tec_built_new(b, at, tec_built_label(b, at, "linear"));
    multiply_gated(b, at, y, row, false);
    return y;
}

/* The summand that the sum may be written over: a copy where somebody reads it later. */
static int sum_in(struct tec_built *b, int value, int at)
{
    if (tec_built_last(b, value, at))
        return b->tensor[value];
    int y = tec_built_new(b, at, "sum");
    tec_built_copy(b, value, y, 0);
    return y;
}

/* x and the rows of a constant. */
static int add_rows(struct tec_built *b, int at, int x, int constant)
{
    int y = sum_in(b, x, at);
    int rows = b->p->tower ? tec_built_positions(b) : b->p->calls[at].rows;
    tec_lower_position(b->l, y, b->w[constant].constant, rows);
    return y;
}

int tec_built_add(struct tec_built *b, int at)
{
    const int *in = b->p->calls[at].in;
    for (int i = 0; i < 2; i++) {
        if (b->p->calls[in[i]].constant)
            return add_rows(b, at, in[1 - i], in[i]);
        if (!deferred(b, in[i]))
            continue;
        int sum = b->tensor[in[1 - i]];
        if (b->p->calls[in[i]].word == TEC_WORD_conv)
            return tec_built_convolve(b, in[i], sum);
        multiply_gated(b, in[i], sum, 0, true);
        return sum;
    }
    int y = sum_in(b, in[1], at);
    struct tec_call call = tec_call_of(TEC_OP_add, "add");
    call.in[0] = tec_built_value(b, in[0]);
    call.out[0] = y;
    tec_program_call(b->l->program, &call);
    return y;
}

int tec_built_concat(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (c->constant)
        return -1;
    if (b->p->tower)
        return tec_built_patch_rows(b, at);
    int y = tec_built_joined(b, at), row = 0;
    for (int i = 0; i < c->n_in; i++) {
        if (!b->settled[c->in[i]])
            tec_built_copy(b, c->in[i], y, row);
        row += tec_built_rows(b, c->in[i]);
    }
    return y;
}

/* built.c - lowers a model's program: a function for each word.
 *
 * Memory follows from who reads a value. One that is joined with others is put to its place as soon
 * as it is made. One that nobody reads later is overwritten by what is made of it. A product that
 * only a sum reads is added where the other summand lies. */
#include "graph/nodes/built.h"

#include <stdio.h>

bool tec_built_last(const struct tec_built *b, int value, int at)
{
    const struct tec_model_call *c = &b->p->calls[value];
    return !c->constant && c->uses.last == at;
}

const int *tec_built_live(const struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_row_group *g = &b->p->groups[c->group];
    const struct tec_prefix_table *t = b->l->prefix;
    if (!c->group)
        return t->one;
    if (g->stack >= 0)
        return t->stacks[g->stack].count;
    if (b->p->alone)
        return t->n_horizon;
    return g->count >= 0 ? t->counts + g->count : t->suffix.count;
}

static int new_tensor(struct tec_built *b, int at, const char *label)
{
    const struct tec_model_call *c = &b->p->calls[at];
    return tec_program_tensor(b->l->program, label, c->rows, c->cols, tec_built_live(b, at));
}

static const char *label_of(const struct tec_built *b, int at, const char *otherwise)
{
    const char *name = b->p->calls[at].name;
    return name ? name : otherwise;
}

/* The tensor of a value; memory that is only read for a constant. */
static int tensor_of(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const float *from = b->l->weights->calls[at].constant;
    if (!c->constant || !from)
        return b->tensor[at];
    return tec_lower_constant(b->l, from, c->rows, c->cols, tec_built_live(b, at));
}

static void copy_to(struct tec_built *b, int at, int y, int row)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const char *what = c->constant ? label_of(b, at, "constant") : c->h ? "picture" : "rows";
    tec_lower_copy(b->l, tensor_of(b, at), y, row, what);
}

/* The value that a value becomes rows of, where nobody else reads it, and the first of those rows;
 * -1 = there is none such. */
static int joined_in(const struct tec_built *b, int at, int *row)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (c->uses.n != 1 || c->uses.first >= b->p->n)
        return -1;
    const struct tec_model_call *user = &b->p->calls[c->uses.first];
    if (user->word != TEC_WORD_concat || user->constant || user->part != c->part)
        return -1;
    *row = 0;
    for (int i = 0; i < user->n_in && user->in[i] != at; i++)
        *row += b->p->calls[user->in[i]].rows;
    return c->uses.first;
}

/* The tensor of joined rows, made for the first of them. */
static int joined(struct tec_built *b, int at)
{
    if (b->tensor[at] < 0)
        b->tensor[at] = new_tensor(b, at, "rows");
    return b->tensor[at];
}

/* Puts a value to its place among others. */
static void settle(struct tec_built *b, int at)
{
    int row = 0, user = joined_in(b, at, &row);
    if (user < 0 || b->settled[at])
        return;
    copy_to(b, at, joined(b, user), row);
    b->settled[at] = true;
}

/* The chunk in the frame's table. */
static int chunk(struct tec_built *b)
{
    const struct tec_prefix_table *t = b->l->prefix;
    const struct tec_model_call *c = &b->p->calls[b->p->result];
    return tec_program_fixed(b->l->program, "actions", t->noise,
                             (size_t)c->rows * (size_t)t->ld * sizeof(float), c->rows, c->cols,
                             t->ld, t->n_horizon);
}

static int picture(struct tec_built *b, int at)
{
    return tec_built_picture(b, at);
}

static int state(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    int ld = t->ld - c->place;
    return tec_program_fixed(b->l->program, "state", t->state + c->place,
                             (size_t)ld * sizeof(float), 1, c->cols, ld, t->one);
}

/* Constants have no commands: who reads one names its memory (tensor_of). */
static int tensor(struct tec_built *b, int at)
{
    return b->tensor[at];
}

static int zeros(struct tec_built *b, int at)
{
    return b->tensor[at];
}

static int sines(struct tec_built *b, int at)
{
    return b->tensor[at];
}

/* Whether a call is a product that only a sum reads: the sum computes it, unless what it reads is
 * overwritten before. Of two products the later one. */
static bool deferred(const struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (c->word != TEC_WORD_conv || c->uses.n != 1 || c->uses.first >= b->p->n)
        return false;
    const struct tec_model_call *user = &b->p->calls[c->uses.first];
    if (user->word != TEC_WORD_add)
        return false;
    int other = user->in[user->in[0] == at], last = b->p->calls[c->in[0]].uses.last;
    return tec_built_last(b, other, c->uses.first) && (last <= at || last >= c->uses.first) &&
           (other < at || b->p->calls[other].word != TEC_WORD_conv);
}

static int conv(struct tec_built *b, int at)
{
    return deferred(b, at) ? -1 : tec_built_conv(b, at, -1);
}

static int max_pool(struct tec_built *b, int at)
{
    return tec_built_pool(b, at);
}

static int hidden(struct tec_built *b, int at)
{
    (void)at;
    return b->l->hidden;
}

static int side_by_side(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "rows");
    call.in[0] = b->tensor[c->in[0]];
    call.out[0] = new_tensor(b, at, "rows");
    call.args.take.row = t->in_order;
    call.args.take.rows = t->n_zeros;
    call.args.take.max_rows = c->rows * c->by;
    call.args.take.group = c->by;
    call.args.take.round = 0;
    tec_program_call(b->l->program, &call);
    return call.out[0];
}

/* Rounded where a product with a rounded matrix alone reads it. */
static int norm(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_call_weights *w = &b->l->weights->calls[at];
    struct tec_call call = tec_call_of(TEC_OP_layer_norm, label_of(b, at, "norm"));
    call.in[0] = tensor_of(b, c->in[0]);
    call.out[0] = new_tensor(b, at, "norm");
    call.args.norm.eps = (float)c->eps;
    call.args.norm.weight = w->norm;
    call.args.norm.bias = w->norm_bias;
    if (c->uses.n == 1 && c->uses.first < b->p->n)
        call.args.norm.round = b->l->round && b->p->calls[c->uses.first].bf16;
    tec_program_call(b->l->program, &call);
    return call.out[0];
}

static int linear(struct tec_built *b, int at)
{
    const struct tec_matrix *m = &b->l->weights->calls[at].matrix;
    int x = tensor_of(b, b->p->calls[at].in[0]), row = 0, user = joined_in(b, at, &row);
    const char *label = label_of(b, at, "linear");
    if (user < 0 && at != b->p->result)
        return tec_lower_linear(b->l, m, x, label);
    int y = user < 0 ? chunk(b) : joined(b, user);
    tec_lower_linear_into(b->l, m, x, y, row, NULL, false, label);
    b->settled[at] = true;
    return y;
}

/* The summand that the sum may be written over: a copy where somebody reads it later. */
static int sum_in(struct tec_built *b, int value, int at)
{
    if (tec_built_last(b, value, at))
        return b->tensor[value];
    int y = new_tensor(b, at, "sum");
    copy_to(b, value, y, 0);
    return y;
}

static int add(struct tec_built *b, int at)
{
    const int *in = b->p->calls[at].in;
    for (int i = 0; i < 2; i++)
        if (deferred(b, in[i]))
            return tec_built_conv(b, in[i], b->tensor[in[1 - i]]);
    int y = sum_in(b, in[1], at);
    struct tec_call call = tec_call_of(TEC_OP_add, "add");
    call.in[0] = tensor_of(b, in[0]);
    call.out[0] = y;
    tec_program_call(b->l->program, &call);
    return y;
}

static int activation(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    int x = tensor_of(b, c->in[0]);
    int y = tec_built_last(b, c->in[0], at) ? x : new_tensor(b, at, "act");
    tec_lower_map(b->l, c->activation, x, y);
    return y;
}

static int concat(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (c->constant)
        return -1;
    int y = joined(b, at), row = 0;
    for (int i = 0; i < c->n_in; i++) {
        if (!b->settled[c->in[i]])
            copy_to(b, c->in[i], y, row);
        row += b->p->calls[c->in[i]].rows;
    }
    return y;
}

/* The layers, and the norm behind them. */
static int run_stack(struct tec_built *b, int at, struct tec_forward f, int x)
{
    const struct tec_model_call *c = &b->p->calls[at];
    char tap[64];
    snprintf(tap, sizeof tap, "%.48s.", label_of(b, at, "stack"));
    f.stack = c->stack;
    f.weights = &b->l->weights->calls[at].stack;
    f.tap = tap;
    f.tap_inside = true;
    x = tec_lower_forward(b->l, &f, x);
    if (c->stack->names[TEC_ROLE_final])
        x = tec_lower_norm(b->l, &f, 0, 2, x, false, "final");
    tec_lower_tap(b->l, x, "%sout", tap);
    return x;
}

/* Rows are changed in place: copies of those that somebody reads later, or that never change. */
static int rows_of(struct tec_built *b, int at)
{
    int x = b->p->calls[at].in[0];
    if (tec_built_last(b, x, at))
        return b->tensor[x];
    int y = new_tensor(b, at, label_of(b, at, "rows"));
    copy_to(b, x, y, 0);
    return y;
}

static int stack(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    struct tec_forward f = {.space = b->l->space, .rows = &t->suffix, .asked = &t->asked};
    if (c->over < 0)
        f = (struct tec_forward){.space = &b->l->towers[c->space],
                                 .rows = &t->stacks[b->p->groups[c->group].stack]};
    return run_stack(b, at, f, rows_of(b, at));
}

static int (*const words[TEC_WORD_COUNT])(struct tec_built *b, int at) = {
#define WORD(word, operands, text) word,
#define FIELD(word, key, kind, member, needed, text)
#include "graph/model/words.def"
#undef WORD
#undef FIELD
};

/* The keys and values that a layer of the action makes of the rows that it asks, to the frame's
 * slots. */
static void keep_keys(struct tec_built *b, int layer, int x)
{
    const struct tec_model_call *c = &b->p->calls[b->p->asks];
    const struct tec_layer *w = &b->l->weights->calls[b->p->asks].stack.layers[layer];
    struct tec_lower *l = b->l;
    int kv = tec_lower_linear(l, &w->cross_kv, x, "cross_kv");
    tec_lower_position(l, kv, w->cross_kv_shift, b->p->calls[c->over].rows);
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
    a->heads = c->stack->heads;
    a->kv_heads = c->stack->kv_heads;
    a->head_dim = c->stack->head_dim;
    tec_program_call(l->program, &call);
}

/* A copy of a value with a name, unless it was made among others. */
static void tap(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (b->l->taps && c->name && c->word != TEC_WORD_stack && !b->settled[at])
        tec_lower_tap(b->l, tensor_of(b, at), "%s", c->name);
}

void tec_lower_built(struct tec_lower *l, enum tec_model_part part)
{
    const struct tec_model_program *p = l->model->program;
    struct tec_built b = {l, p, TEC_NEW(l->program->arena, (size_t)p->n, int),
                          TEC_NEW(l->program->arena, (size_t)p->n, bool)};
    if (!b.tensor || !b.settled) {
        if (l->program->status == TEC_OK)
            l->program->status =
                tec_fail(&l->program->err, TEC_NO_MEMORY, "no memory for %d calls", p->n);
        return;
    }
    for (int i = 0; i < p->n; i++)
        b.tensor[i] = -1;
    for (int i = p->parts[part]; i < p->parts[part + 1] && l->program->status == TEC_OK; i++) {
        b.tensor[i] = words[p->calls[i].word](&b, i);
        tap(&b, i);
        settle(&b, i);
    }
    if (part == TEC_PART_OF_ACTION && !b.settled[p->result])
        copy_to(&b, p->result, chunk(&b), 0);
    for (int i = 0; part == TEC_PART_OF_PREFILL && i < p->calls[p->asks].stack->layers; i++)
        keep_keys(&b, i, b.tensor[p->calls[p->asks].over]);
}

/* built.c - lowers a model's program: a function for each word.
 *
 * Memory follows from who reads a value. One that is joined with others is put to its place as soon
 * as it is made. One that nobody reads later is overwritten by what is made of it. A product that
 * only a sum reads is added where the other summand lies. */
#include "graph/nodes/built.h"

#include <string.h>

bool tec_built_last(const struct tec_built *b, int value, int at)
{
    const struct tec_model_call *c = &b->p->calls[value];
    return !c->constant && c->word != TEC_WORD_noise && c->uses.last == at &&
           c->moves == b->p->calls[at].moves;
}

/* The count of a flow's rows; NULL = all of them, of constants that have none. */
static const int *live_in_flow(const struct tec_built *b, const struct tec_row_group *g)
{
    const struct tec_prefix_table *t = b->l->prefix;
    if (!g->rows)
        return t->prefix.count;
    if (g->rows == b->p->seeing)
        return t->suffix.count;
    if (g->rows == b->p->flow.horizon)
        return t->n_horizon;
    return g->count < 0 ? NULL : t->counts + g->count;
}

const int *tec_built_live(const struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_row_group *g = &b->p->groups[c->group];
    const struct tec_prefix_table *t = b->l->prefix;
    if (b->p->tower || b->p->projects)
        return tec_built_picture_live(b, at);
    if (b->text)
        return b->rows->count;
    if (!c->group)
        return t->n_states;
    if (b->p->flow.steps)
        return live_in_flow(b, g);
    if (g->among >= 0)
        return t->among[g->among].count;
    if (b->p->alone)
        return t->n_horizon;
    return g->count >= 0 ? t->counts + g->count : t->suffix.count;
}

int tec_built_new(struct tec_built *b, int at, const char *label)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    bool pictures = b->p->tower || b->p->projects;
    int rows = pictures  ? tec_built_picture_rows(b, at)
               : b->text ? b->rows->max
               : c->rows ? t->most * c->rows
                         : t->prefix.max;
    return tec_program_tensor(b->l->program, label, rows, c->cols, tec_built_live(b, at));
}

const char *tec_built_label(const struct tec_built *b, int at, const char *otherwise)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const char *part = c->name && b->p->flow.steps ? strrchr(c->name, '.') : NULL;
    if (b->p->tower && c->n_in && b->p->calls[c->in[0]].word == TEC_WORD_patches)
        return "patch_embed";
    return part ? part + 1 : c->name ? c->name : otherwise;
}

bool tec_built_rounds(const struct tec_built *b, int at)
{
    const struct tec_model_program *p = b->p;
    const struct tec_value_uses *u = &p->calls[at].uses;
    int rounded = u->last == p->n && b->rounds;
    for (int i = u->first; i <= u->last && i < p->n; i++)
        for (int k = 0; k < p->calls[i].n_in; k++)
            rounded += p->calls[i].in[k] == at && p->calls[i].bf16;
    return rounded == u->n;
}

int tec_built_value(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const float *from = c->timed ? tec_timed_row(b->l->timed, at, b->step) : b->w[at].constant;
    if ((!c->constant && !c->timed) || !from)
        return b->tensor[at];
    return tec_lower_constant(b->l, from, c->rows, c->cols, tec_built_live(b, at));
}

void tec_built_copy(struct tec_built *b, int at, int y, int row)
{
    const struct tec_model_call *c = &b->p->calls[at];
    bool named = c->constant || b->p->flow.steps;
    const char *what = c->constant ? "constant" : c->h ? "picture" : "rows";
    what = named ? tec_built_label(b, at, what) : what;
    tec_lower_copy(b->l, tec_built_value(b, at), y, row, what);
}

/* Rows of a value in memory: those of all observations. */
static int rows_in(const struct tec_built *b, int value)
{
    return b->l->prefix->most * b->p->calls[value].rows;
}

/* The value that a value becomes rows of, where nobody else reads it, and the first of those rows;
 * -1 = there is none such. */
static int joined_in(const struct tec_built *b, int at, int *row)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (c->uses.n != 1 || c->uses.first >= b->p->n || b->p->tower)
        return -1;
    const struct tec_model_call *user = &b->p->calls[c->uses.first];
    if (user->word != TEC_WORD_concat || user->constant || user->part != c->part ||
        user->moves != c->moves)
        return -1;
    *row = 0;
    for (int i = 0; i < user->n_in && user->in[i] != at; i++)
        *row += rows_in(b, user->in[i]);
    return c->uses.first;
}

/* The tensor of joined rows, made for the first of them. */
static int joined(struct tec_built *b, int at)
{
    const char *label = b->p->flow.steps ? tec_built_label(b, at, "rows") : "rows";
    if (b->tensor[at] < 0)
        b->tensor[at] = tec_built_new(b, at, label);
    return b->tensor[at];
}

/* Puts a value to its place among others, behind those before it that are there already. */
static void settle(struct tec_built *b, int at)
{
    int row = 0, before = 0, user = joined_in(b, at, &row);
    if (user < 0 || b->settled[at])
        return;
    const struct tec_model_call *all = &b->p->calls[user];
    for (int i = 0; all->in[i] != at; before += rows_in(b, all->in[i++])) {
        int other = all->in[i];
        const struct tec_model_call *c = &b->p->calls[other];
        bool there = c->constant || c->timed || (b->tensor[other] >= 0 && !c->moves);
        if (b->settled[other] || c->uses.n != 1 || !there || !all->moves)
            continue;
        tec_built_copy(b, other, joined(b, user), before);
        b->settled[other] = true;
    }
    tec_built_copy(b, at, joined(b, user), row);
    b->settled[at] = true;
}

int tec_built_chunk(struct tec_built *b)
{
    const struct tec_prefix_table *t = b->l->prefix;
    const struct tec_model_call *c = &b->p->calls[b->p->result];
    int rows = rows_in(b, b->p->result);
    return tec_program_fixed(b->l->program, "actions", t->noise,
                             (size_t)rows * (size_t)t->ld * sizeof(float), rows, c->cols, t->ld,
                             t->n_horizon);
}

int tec_built_state(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    int ld = t->ld - c->place; /* of several observations there is one place */
    return tec_program_fixed(b->l->program, "state", t->state + c->place,
                             (size_t)t->most * (size_t)ld * sizeof(float), t->most, c->cols, ld,
                             t->n_states);
}

/* Rows that are changed in place: a constant never is. */
int tec_built_start(struct tec_built *b, int at)
{
    int y = tec_built_new(b, at, tec_built_label(b, at, "rows"));
    tec_built_copy(b, b->p->calls[at].in[0], y, 0);
    return y;
}

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

int tec_built_hidden(struct tec_built *b, int at)
{
    return b->p->alone ? b->l->hidden : tec_lower_text(b->l, tec_built_rounds(b, at));
}

int tec_built_side_by_side(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "rows");
    call.in[0] = b->tensor[c->in[0]];
    call.out[0] = tec_built_new(b, at, "rows");
    call.args.take.row = t->in_order;
    call.args.take.rows = t->n_zeros;
    call.args.take.max_rows = c->rows * c->by;
    call.args.take.group = c->by;
    call.args.take.round = 0;
    tec_program_call(b->l->program, &call);
    return call.out[0];
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
                                       .max_rows = rows_in(b, at),
                                       .in_row = b->l->prefix->most * x->first,
                                       .out_row = row,
                                       .gate = gates};
    tec_lower_linear_rows(b->l, &m, b->tensor[x->in[0]], y, &part, add, label);
}

static void multiply_gated(struct tec_built *b, int at, int y, int row, bool add)
{
    const struct tec_gate gate = gate_of(b, at);
    multiply(b, at, y, gate.at ? &gate : NULL, row, add);
}

/* Whether a value is the row behind the prompt, and nothing else. */
static bool is_behind(const struct tec_built *b, int at)
{
    return b->behind >= 0 && b->p->calls[b->p->prompt].behind == at && b->p->calls[at].uses.n == 1;
}

int tec_built_linear(struct tec_built *b, int at)
{
    int row = 0, user = joined_in(b, at, &row);
    bool own = at == b->p->result && !b->p->flow.steps && !b->text;
    bool state = own && b->p->stated && !b->l->taps, chunk_of = own && !b->p->stated,
         behind = is_behind(b, at);
    if (b->p->projects)
        return tec_built_project(b, at);
    if (deferred(b, at))
        return -1;
    b->settled[at] = user >= 0 || chunk_of || behind || state;
    row = behind ? b->row : state ? b->x_row : row;
    int y = behind      ? b->behind
            : state     ? b->x
            : user >= 0 ? joined(b, user)
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
    int y = joined(b, at), row = 0;
    for (int i = 0; i < c->n_in; i++) {
        if (!b->settled[c->in[i]])
            tec_built_copy(b, c->in[i], y, row);
        row += rows_in(b, c->in[i]);
    }
    return y;
}

static int (*const words[TEC_WORD_COUNT])(struct tec_built *b, int at) = {
    [TEC_WORD_features] = tec_built_features,
#define WORD(word, operands, text) [TEC_WORD_##word] = tec_built_##word,
#define VALUE(word, operands, text)
#define GIVEN(word, name, text)
#define FIELD(word, key, kind, member, needed, text)
#include "graph/model/words.def"
#undef WORD
#undef VALUE
#undef GIVEN
#undef FIELD
};

/* A copy of a value with a name, unless it was made among others. A product that a sum computes is
 * computed once more alone, without what its rows are multiplied by. */
static void tap(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (!b->l->taps || !c->name || b->settled[at])
        return;
    int y = tec_built_value(b, at);
    if (y < 0 && c->word == TEC_WORD_linear) {
        y = tec_built_new(b, at, "tap");
        multiply(b, at, y, NULL, 0, false);
    }
    tec_built_tap(b, y, c->name);
}

void tec_built_calls(struct tec_built *b, int from, int to, bool moves)
{
    const struct tec_model_program *p = b->p;
    for (int i = from; i < to && b->l->program->status == TEC_OK; i++) {
        if (p->calls[i].timed || p->calls[i].moves != moves)
            continue;
        if (words[p->calls[i].word])
            b->tensor[i] = words[p->calls[i].word](b, i);
        tap(b, i);
        settle(b, i);
    }
}

void tec_built_run(struct tec_built *b, enum tec_model_part part, bool moves)
{
    tec_built_calls(b, b->p->parts[part], b->p->parts[part + 1], moves);
}

bool tec_built_begin(struct tec_built *b, struct tec_lower *l, const struct tec_model_program *p,
                     const struct tec_call_weights *weights)
{
    *b = (struct tec_built){.l = l,
                            .p = p,
                            .w = weights,
                            .tensor = TEC_NEW(l->program->arena, (size_t)p->n, int),
                            .settled = TEC_NEW(l->program->arena, (size_t)p->n, bool),
                            .step = -1,
                            .behind = -1,
                            .layer = -1};
    for (int i = 0; i < p->n && b->tensor; i++)
        b->tensor[i] = -1;
    if (b->tensor && b->settled)
        return true;
    if (l->program->status == TEC_OK)
        l->program->status =
            tec_fail(&l->program->err, TEC_NO_MEMORY, "no memory for %d calls", p->n);
    return false;
}

/* The program of prefill and action on its way. */
static bool begin(struct tec_built *b, struct tec_lower *l)
{
    return tec_built_begin(b, l, l->model->program, l->weights->calls);
}

void tec_lower_behind(struct tec_lower *l, int x, int row)
{
    struct tec_built b;
    if (!begin(&b, l))
        return;
    int value = b.p->calls[b.p->prompt].behind;
    b.behind = x;
    b.row = row;
    tec_built_run(&b, TEC_PART_OF_PREFILL, false);
    if (!is_behind(&b, value) || !b.settled[value])
        tec_built_copy(&b, value, x, row);
}

void tec_lower_built(struct tec_lower *l, enum tec_model_part part)
{
    const struct tec_model_program *p = l->model->program;
    struct tec_built b;
    if (!begin(&b, l))
        return;
    tec_built_run(&b, part, false);
    if (part == TEC_PART_OF_PREFILL)
        tec_built_keep(&b);
    else if (p->flow.steps)
        tec_built_steps(&b);
    else if (!b.settled[p->result])
        tec_built_copy(&b, p->result, tec_built_chunk(&b), 0);
}

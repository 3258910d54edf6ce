/* built_values.c - where the values of a model's program lie, and the words that only put rows to
 * their places.
 *
 * Memory follows from who reads a value. One that is joined with others is put to its place as soon
 * as it is made. One that nobody reads later is overwritten by what is made of it. */
#include "graph/nodes/built.h"

#include <string.h>

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

bool tec_built_last(const struct tec_built *b, int value, int at)
{
    const struct tec_model_call *c = &b->p->calls[value];
    return !c->constant && c->word != TEC_WORD_noise && c->uses.last == at &&
           c->moves == b->p->calls[at].moves;
}

/* Of a tower and of what projects: those of every picture, of the largest size. */
static int picture_rows(const struct tec_built *b, int at)
{
    const struct tec_vision *v = &b->l->model->vision;
    const struct tec_model_program *p = b->p;
    int rows = p->calls[at].rows, pictures = tec_lower_most_pictures(b->l);
    if (p->projects)
        return pictures * (rows == p->towers[0]->patches ? v->patches : v->tokens);
    return pictures * (rows - p->patches + v->patches);
}

static const int *picture_live(const struct tec_built *b, int at)
{
    const struct tec_prefix_table *t = b->l->prefix;
    int rows = b->p->calls[at].rows;
    if (b->p->projects)
        return rows == b->p->towers[0]->patches ? t->n_patches : t->n_image;
    return rows == b->p->patches ? t->n_patches : b->rows->count;
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
        return picture_live(b, at);
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

int tec_built_max_rows(const struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    if (b->p->tower || b->p->projects)
        return picture_rows(b, at);
    if (b->text)
        return b->rows->max;
    return c->rows ? t->most * c->rows : t->prefix.max;
}

int tec_built_new(struct tec_built *b, int at, const char *label)
{
    const struct tec_model_call *c = &b->p->calls[at];
    return tec_program_tensor(b->l->program, label, tec_built_max_rows(b, at), c->cols,
                              tec_built_live(b, at));
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

bool tec_built_spares(const struct tec_built *b)
{
    return b->l->spares && (b->p->tower || b->p->projects);
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

int tec_built_rows(const struct tec_built *b, int value)
{
    return b->l->prefix->most * b->p->calls[value].rows;
}

int tec_built_joined_in(const struct tec_built *b, int at, int *row)
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
        *row += tec_built_rows(b, user->in[i]);
    return c->uses.first;
}

int tec_built_joined(struct tec_built *b, int at)
{
    const char *label = b->p->flow.steps ? tec_built_label(b, at, "rows") : "rows";
    if (b->tensor[at] < 0)
        b->tensor[at] = tec_built_new(b, at, label);
    return b->tensor[at];
}

void tec_built_settle(struct tec_built *b, int at)
{
    int row = 0, before = 0, user = tec_built_joined_in(b, at, &row);
    if (user < 0 || b->settled[at])
        return;
    const struct tec_model_call *all = &b->p->calls[user];
    for (int i = 0; all->in[i] != at; before += tec_built_rows(b, all->in[i++])) {
        int other = all->in[i];
        const struct tec_model_call *c = &b->p->calls[other];
        bool there = c->constant || c->timed || (b->tensor[other] >= 0 && !c->moves);
        if (b->settled[other] || c->uses.n != 1 || !there || !all->moves)
            continue;
        tec_built_copy(b, other, tec_built_joined(b, user), before);
        b->settled[other] = true;
    }
    tec_built_copy(b, at, tec_built_joined(b, user), row);
    b->settled[at] = true;
}

int tec_built_chunk(struct tec_built *b)
{
    const struct tec_prefix_table *t = b->l->prefix;
    const struct tec_model_call *c = &b->p->calls[b->p->result];
    int rows = tec_built_rows(b, b->p->result);
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

int tec_built_hidden(struct tec_built *b, int at)
{
    (void)at;
    return b->l->hidden;
}

/* A product reads the rows where they are. */
int tec_built_take(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    struct tec_call call = tec_call_of(TEC_OP_take_rows, tec_built_label(b, at, "take"));
    if (!c->copied || b->p->projects)
        return b->tensor[at];
    call.in[0] = b->tensor[c->in[0]];
    call.out[0] = tec_built_new(b, at, call.label);
    call.args.take.row = b->l->prefix->in_order + c->first;
    call.args.take.group = 1;
    tec_program_call(b->l->program, &call);
    return call.out[0];
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

bool tec_built_is_behind(const struct tec_built *b, int at)
{
    return b->behind >= 0 && b->p->calls[b->p->prompt].behind == at && b->p->calls[at].uses.n == 1;
}

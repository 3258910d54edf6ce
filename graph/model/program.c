/* program.c - what a program as a whole must be, and what follows from it: who reads a value, and
 * how many rows a model has. */
#include "graph/model/program.h"
#include "graph/model/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_HORIZON = 4096, MAX_DIM = 1024 };

int tec_model_program_group(struct tec_model_program *p, int rows)
{
    if (p->n_groups && rows == 1)
        return 0;
    if (p->n_groups == p->group_room) {
        int room = p->group_room ? 2 * p->group_room : 256;
        struct tec_row_group *groups = TEC_NEW(p->arena, (size_t)room, struct tec_row_group);
        if (!groups)
            return -1;
        if (p->n_groups)
            memcpy(groups, p->groups, (size_t)p->n_groups * sizeof *groups);
        p->groups = groups;
        p->group_room = room;
    }
    if (!p->n_groups)
        p->groups[p->n_groups++] = (struct tec_row_group){1, -1, -1};
    if (rows == 1)
        return 0;
    p->groups[p->n_groups] = (struct tec_row_group){rows, -1, -1};
    return p->n_groups++;
}

enum tec_status tec_model_call_fail(const struct tec_model_call *c, struct tec_error *err,
                                    const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tec_fail(err, TEC_MALFORMED, "%s:%d: %s: %s", c->file ? c->file : "?", c->line,
                    tec_word_kinds[c->word].name, text);
}

/* The value that a view shows rows of; -1 = a value has memory of its own. */
static int shown_by(const struct tec_model_program *p, int value)
{
    const struct tec_model_call *c = &p->calls[value];
    bool view = c->word == TEC_WORD_take || c->word == TEC_WORD_beside;
    return view && !c->constant ? c->in[0] : -1;
}

static void use(struct tec_model_program *p, int value, int by)
{
    for (; value >= 0; value = shown_by(p, value)) {
        struct tec_value_uses *u = &p->calls[value].uses;
        if (!u->n)
            u->first = by;
        u->last = by;
        u->n++;
    }
}

/* Rows that somebody else than a product reads are copied: a product reads them where they are. */
static void copy_taken(struct tec_model_program *p, int value, enum tec_model_word by)
{
    struct tec_model_call *c = &p->calls[value];
    if (c->word != TEC_WORD_take || c->constant || by == TEC_WORD_linear)
        return;
    c->copied = true;
    p->order = c->first + c->rows > p->order ? c->first + c->rows : p->order;
}

/* A value that nobody reads would be computed in every frame. */
static enum tec_status find_uses(struct tec_model_program *p, struct tec_error *err)
{
    for (int i = 0; i < p->n; i++)
        p->calls[i].uses = (struct tec_value_uses){0, 0, 0};
    for (int i = 0; i < p->n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        const int options[] = {c->position, c->over, c->over_position, c->scale,
                               c->shift,    c->gate, c->behind};
        for (int k = 0; k < c->n_in; k++) {
            if (!c->constant || p->calls[c->in[k]].constant) /* sines need sizes alone */
                use(p, c->in[k], i);
            copy_taken(p, c->in[k], c->word);
        }
        for (size_t k = 0; k < sizeof options / sizeof options[0]; k++)
            use(p, options[k], i);
    }
    use(p, p->result, p->n);
    for (int i = 0; i < p->n_deep; i++)
        use(p, p->deep[i], p->n);
    copy_taken(p, p->result, TEC_WORD_COUNT);
    for (int i = 0; i < p->n; i++)
        if (!p->calls[i].uses.n && p->calls[i].word != TEC_WORD_time)
            return tec_model_call_fail(&p->calls[i], err, "nobody reads its value");
    return TEC_OK;
}

/* A product of the state that a step only joins with others is made there, in every step: put aside
 * it would be copied there as often. */
static void find_repeated(struct tec_model_program *p)
{
    for (int i = 0; i < p->n; i++) {
        struct tec_model_call *c = &p->calls[i];
        const struct tec_model_call *user = &p->calls[c->uses.first < p->n ? c->uses.first : i];
        c->moves |= c->word == TEC_WORD_linear && c->uses.n == 1 && c->part == user->part &&
                    user->word == TEC_WORD_concat && user->moves &&
                    p->calls[c->in[0]].word == TEC_WORD_state;
    }
}

/* Which slot each picture is of: all slots, each once. */
static enum tec_status find_slots(struct tec_model_program *p, const struct tec_model *m,
                                  struct tec_error *err)
{
    bool seen[TEC_MAX_CAMERAS] = {false};
    for (int i = 0; i < p->n; i++) {
        struct tec_model_call *c = &p->calls[i];
        if (c->word != TEC_WORD_picture)
            continue;
        c->slot = 0;
        while (c->slot < m->n_slots && strcmp(m->slots[c->slot], c->slot_name) != 0)
            c->slot++;
        if (c->slot == m->n_slots || seen[c->slot])
            return tec_model_call_fail(c, err, "'%.80s' is %s", c->slot_name,
                                       c->slot == m->n_slots ? "no slot of the description"
                                                             : "read twice");
        seen[c->slot] = true;
    }
    for (int i = 0; i < m->n_slots; i++)
        if (!seen[i])
            return tec_fail(err, TEC_MALFORMED, "prefill reads no picture of the slot '%.80s'",
                            m->slots[i]);
    return TEC_OK;
}

static void need_count(struct tec_model_program *p, int call)
{
    struct tec_row_group *g = &p->groups[p->calls[call].group];
    bool known = !g->rows || g->rows == p->seeing || (p->seeing && g->rows == p->flow.horizon);
    if (g != p->groups && g->among < 0 && g->count < 0 && !known)
        g->count = p->n_counts++;
}

/* Counts in a frame's table: of rows that no other table has a count of. */
static void find_counts(struct tec_model_program *p)
{
    int n = p->flow.steps ? p->n : p->parts[TEC_PART_OF_ACTION];
    for (int i = 0; i < n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        for (int k = 0; k < c->n_in && !c->constant; k++)
            need_count(p, c->in[k]);
        if (!c->constant)
            need_count(p, i);
    }
}

/* A chunk of hidden rows is as large as its table says. */
static enum tec_status check_hidden(const struct tec_model *m, struct tec_error *err)
{
    const struct tec_model_program *p = m->program;
    const struct tec_model_call *c = &p->calls[p->result];
    if (p->hidden < 0)
        return tec_fail(err, TEC_MALFORMED, "action: reads no hidden rows");
    const struct tec_model_call *x = &p->calls[p->hidden];
    if (x->rows != m->head.rows || x->cols != m->text.stack.width)
        return tec_model_call_fail(x, err, "%d rows of %d columns; a chunk has %d of %d", x->rows,
                                   x->cols, m->head.rows, m->text.stack.width);
    return c->rows == m->flow.horizon && c->cols == m->flow.dim
               ? TEC_OK
               : tec_model_call_fail(c, err, "%d rows of %d columns; the chunk is %d of %d",
                                     c->rows, c->cols, m->flow.horizon, m->flow.dim);
}

/* An attention over the prompt, in each step. */
static enum tec_status check_over_prompt(const struct tec_model *m, struct tec_model_call *c,
                                         struct tec_error *err)
{
    if (c->word != TEC_WORD_attention)
        return TEC_OK;
    if (c->over != m->program->prompt)
        return tec_model_call_fail(c, err,
                                   "of a flow over a prompt belongs to its action, and is "
                                   "over the prompt");
    if (!c->moves)
        return tec_model_call_fail(c, err,
                                   "over a prompt reads neither the noisy actions nor the "
                                   "time");
    return tec_model_text_joins(m, c, err);
}

/* What a flow over the prompt's keys reads. */
static enum tec_status check_prompt(const struct tec_model *m, struct tec_error *err)
{
    const struct tec_model_program *p = m->program;
    const struct tec_model_call *prompt = &p->calls[p->prompt];
    const struct tec_model_call *row = prompt->behind < 0 ? NULL : &p->calls[prompt->behind];
    for (int i = 0; i < p->n; i++)
        TEC_TRY(check_over_prompt(m, &p->calls[i], err));
    if (!p->n_over)
        return tec_fail(err, TEC_MALFORMED, "action: has no attention over the prompt");
    if (row && row->cols != m->text.stack.width)
        return tec_model_call_fail(row, err, "%d columns; rows of the text have %d", row->cols,
                                   m->text.stack.width);
    if (row && m->text.mask != TEC_MASK_BIDIR)
        return tec_model_call_fail(prompt, err, "a row behind it needs a text with mask bidir");
    for (int i = 0; i < p->n_states; i++)
        if (row && p->calls[p->states[i]].part == TEC_PART_OF_ACTION)
            return tec_model_call_fail(&p->calls[p->states[i]], err,
                                       "prefill has made a row of the state: the prompt has it");
    return TEC_OK;
}

/* What a flow reads of the text's rows. */
static enum tec_status check_reading(const struct tec_model *m, struct tec_error *err)
{
    const struct tec_model_program *p = m->program;
    for (int i = 0; i < p->n_states; i++)
        if (p->calls[p->states[i]].part == TEC_PART_OF_PREFILL)
            return tec_model_call_fail(&p->calls[p->states[i]], err,
                                       "belongs to a flow's action, or behind a prompt");
    if (p->hidden < 0 || !p->n_over)
        return tec_fail(err, TEC_MALFORMED,
                        "action: has attention neither over what prefill has made of hidden rows, "
                        "nor over a prompt");
    const struct tec_model_call *x = &p->calls[p->hidden];
    if (x->cols != m->text.stack.width)
        return tec_model_call_fail(x, err, "%d columns; rows of the text have %d", x->cols,
                                   m->text.stack.width);
    for (int i = 0; i < p->n && !m->text.marks; i++)
        if (p->calls[i].sees != TEC_SEEN_ALL)
            return tec_model_call_fail(&p->calls[i], err,
                                       "sees rows of pictures apart: it needs text.picture");
    return TEC_OK;
}

/* What a flow reads, and what it makes. */
static enum tec_status check_flow(struct tec_model *m, struct tec_error *err)
{
    const struct tec_model_program *p = m->program;
    const struct tec_program_flow *f = &p->flow;
    const struct tec_model_call *c = &p->calls[p->result];
    TEC_TRY(p->prompt >= 0 ? check_prompt(m, err) : check_reading(m, err));
    m->flow.horizon = f->horizon;
    m->flow.dim = f->dim;
    m->flow.steps = f->steps;
    return c->rows == f->horizon && c->cols == f->dim && c->moves && c->word != TEC_WORD_noise
               ? TEC_OK
               : tec_model_call_fail(
                     c, err, "%d rows of %d columns; what x moves by is %d of %d, and not x",
                     c->rows, c->cols, f->horizon, f->dim);
}

/* Rows of an action without a flow are those of the chunk. */
static enum tec_status check_asking(const struct tec_model_program *p, struct tec_error *err)
{
    const struct tec_model_call *c = &p->calls[p->result];
    for (int i = 0; i < p->n; i++)
        if (p->calls[i].sees != TEC_SEEN_ALL)
            return tec_model_call_fail(&p->calls[i], err, "sees is of a flow over a prompt's rows");
    return c->rows == p->seeing
               ? TEC_OK
               : tec_model_call_fail(c, err, "%d rows; attention is of %d", c->rows, p->seeing);
}

static enum tec_status check_chunk(struct tec_model *m, struct tec_error *err)
{
    const struct tec_model_program *p = m->program;
    const struct tec_model_call *c = &p->calls[p->result];
    if (p->flow.steps && (p->flow.horizon > MAX_HORIZON || p->flow.dim > MAX_DIM))
        return tec_fail(err, TEC_MALFORMED, "flow: %d actions of %d values; %d of %d at most",
                        p->flow.horizon, p->flow.dim, MAX_HORIZON, MAX_DIM);
    if (p->flow.steps)
        return check_flow(m, err);
    if (!p->n_over && !p->alone)
        return tec_fail(err, TEC_MALFORMED,
                        "action: has no attention over what prefill has made; the chunk is asked "
                        "of that");
    if (c->part != TEC_PART_OF_ACTION || c->constant)
        return tec_model_call_fail(c, err, "its value cannot be the chunk: an action computes it");
    if (c->rows > MAX_HORIZON || c->cols > MAX_DIM)
        return tec_model_call_fail(c, err, "a chunk of %d actions of %d values; %d of %d at most",
                                   c->rows, c->cols, MAX_HORIZON, MAX_DIM);
    if (p->alone)
        return check_hidden(m, err);
    m->flow.horizon = c->rows;
    m->flow.dim = c->cols;
    m->flow.steps = 1;
    return check_asking(p, err);
}

enum tec_status tec_model_program_links(struct tec_model_program *p, struct tec_error *err)
{
    TEC_TRY(find_uses(p, err));
    return tec_model_program_share(p, err);
}

enum tec_status tec_model_program_check(struct tec_model *m, struct tec_error *err)
{
    struct tec_model_program *p = m->program;
    TEC_TRY(check_chunk(m, err));
    TEC_TRY(find_uses(p, err));
    find_repeated(p);
    TEC_TRY(tec_model_program_share(p, err));
    if (tec_model_asks(m))
        TEC_TRY(find_slots(p, m, err));
    find_counts(p);
    p->arena = NULL;
    return TEC_OK;
}

bool tec_model_asks(const struct tec_model *model)
{
    return model->program && !model->program->alone && !model->program->flow.steps;
}

bool tec_model_denoises(const struct tec_model *model)
{
    return model->program && model->program->flow.steps > 0 && model->program->prompt < 0;
}

bool tec_model_flows(const struct tec_model *model)
{
    return model->program && model->program->prompt >= 0;
}

bool tec_model_behind(const struct tec_model *model)
{
    const struct tec_model_program *p = model->program;
    return tec_model_flows(model) && p->calls[p->prompt].behind >= 0;
}

/* Whether each row of a call's value is made of the same row of what it reads and of what it sees,
 * and the time scales, shifts or gates it alone. */
static bool row_by_row(const struct tec_model_call *c)
{
    bool moved = c->word == TEC_WORD_take || c->word == TEC_WORD_concat;
    return c->constant || c->timed || (!moved && c->word != TEC_WORD_beside);
}

bool tec_model_fixes(const struct tec_model *model)
{
    const struct tec_model_program *p = model->program;
    bool conditioned = false;
    if (!tec_model_flows(model) || p->seeing != p->flow.horizon)
        return false;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        conditioned |= c->scale >= 0 || c->gate >= 0;
        if (!row_by_row(c))
            return false;
    }
    return conditioned;
}

/* Whether rows of a call's value lie as those of several observations do: rows in front of all of
 * them, then the actions' of each. */
static bool side_by_side(const struct tec_model_program *p, const struct tec_model_call *c)
{
    int front = p->seeing - p->flow.horizon;
    for (int k = 0; k < c->n_in; k++)
        if (p->calls[c->in[k]].constant) /* there is one for all of them */
            return false;
    if (c->constant || (c->rows != 1 && c->rows != p->flow.horizon && c->rows != p->seeing))
        return false;
    if (c->word == TEC_WORD_take)
        return !c->copied && c->first == front && c->rows == p->flow.horizon;
    return c->word != TEC_WORD_concat ||
           (c->n_in == 2 && p->calls[c->in[0]].rows == 1 && !p->calls[c->in[0]].timed &&
            p->calls[c->in[1]].rows == p->flow.horizon);
}

bool tec_model_batches(const struct tec_model *model)
{
    const struct tec_model_program *p = model->program;
    int front = tec_model_flows(model) ? p->seeing - p->flow.horizon : -1;
    if (front < 0 || front > 1 || p->n_states > 1 || tec_model_behind(model) || p->n_projected)
        return false;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++)
        if (!p->calls[i].timed && !side_by_side(p, &p->calls[i]))
            return false;
    return true;
}

bool tec_model_reads(const struct tec_model *model)
{
    return model->text.vocab > 0;
}

const struct tec_stack *tec_model_kept(const struct tec_model *model)
{
    bool own = tec_model_denoises(model) || tec_model_asks(model);
    return own ? &model->program->kept : &model->text.stack;
}

/* The call that reads a slot's picture. */
static const struct tec_model_call *picture_of(const struct tec_model_program *p, int slot)
{
    int i = 0;
    while (i < p->n && (p->calls[i].word != TEC_WORD_picture || p->calls[i].slot != slot))
        i++;
    return &p->calls[i];
}

struct tec_picture_size tec_model_picture(const struct tec_model *model, int slot)
{
    if (!tec_model_asks(model))
        return tec_vision_picture(&model->vision, slot);
    const struct tec_model_call *c = picture_of(model->program, slot);
    return (struct tec_picture_size){c->h, c->w};
}

void tec_model_picture_norm(const struct tec_model *model, int i, const float **mean,
                            const float **std)
{
    if (tec_model_asks(model)) {
        const struct tec_model_call *c = picture_of(model->program, i);
        *mean = c->mean;
        *std = c->std;
        return;
    }
    *mean = model->vision.towers[i].mean;
    *std = model->vision.towers[i].std;
}

size_t tec_model_picture_bytes(const struct tec_model *model)
{
    size_t most = 0;
    for (int i = 0; i < model->n_slots; i++) {
        struct tec_picture_size p = tec_model_picture(model, i);
        size_t bytes = (size_t)p.h * (size_t)p.w * 3 * (model->vision.floats ? sizeof(float) : 1);
        most = bytes > most ? bytes : most;
    }
    return most;
}

int tec_model_encoded(const struct tec_model *model)
{
    return tec_model_asks(model) ? model->program->encoded : 0;
}

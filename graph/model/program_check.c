/* program_check.c - what a program as a whole must be, and what follows from it: slots of pictures,
 * and which calls are counted. */
#include "graph/model/program.h"

#include <string.h>

enum { MAX_HORIZON = 4096, MAX_DIM = 1024 };

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

enum tec_status tec_model_program_check(struct tec_model *m, struct tec_error *err)
{
    struct tec_model_program *p = m->program;
    TEC_TRY(check_chunk(m, err));
    TEC_TRY(tec_model_program_uses(p, err));
    find_repeated(p);
    TEC_TRY(tec_model_program_share(p, err));
    if (tec_model_asks(m))
        TEC_TRY(find_slots(p, m, err));
    find_counts(p);
    p->arena = NULL;
    return TEC_OK;
}

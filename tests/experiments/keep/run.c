/* run.c - the cells one after the other; in each, the rows take turns at every step of the trace.
 */
#include "tests/experiments/keep/setup.h"

#include "tools/measure/machine.h"

#include <string.h>

static enum tec_status room_for(struct tec_keeping *s, struct tec_samples *samples,
                                struct tec_error *err)
{
    samples->room = s->steps;
    samples->ns = TEC_NEW(s->call->arena, (size_t)s->steps + 1, int64_t);
    return samples->ns
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for the times of %d steps", s->steps);
}

static enum tec_status make_room(struct tec_keeping *s, struct tec_keeping_cell *c,
                                 struct tec_error *err)
{
    TEC_TRY(room_for(s, &c->retrieve, err));
    for (int i = 0; i < c->n_rows; i++) {
        struct tec_keeping_row *r = &c->rows[i];
        struct tec_samples *all[TEC_KEEPING_SAMPLES];
        tec_keeping_samples(r, all);
        for (int k = 0; k < TEC_KEEPING_SAMPLES; k++)
            TEC_TRY(room_for(s, all[k], err));
        r->same = true;
    }
    return TEC_OK;
}

/* The full row, then the others from another one on at each step; a bare one behind its own. */
static enum tec_status run_rows(struct tec_keeping_setup *w, struct tec_keeping_cell *c,
                                int64_t retrieve, bool counted, struct tec_error *err)
{
    int others = c->n_rows - 1, shift = (int)(w->at % (others ? others : 1));
    TEC_TRY(tec_keeping_step(w, c, 0, retrieve, counted, err));
    for (int i = 0; i < others; i++) {
        int row = 1 + (i + shift) % others;
        if (c->rows[row].method.bare)
            continue;
        TEC_TRY(tec_keeping_step(w, c, row, retrieve, counted, err));
        if (row < others && c->rows[row + 1].method.bare)
            TEC_TRY(tec_keeping_step(w, c, row + 1, retrieve, counted, err));
    }
    return TEC_OK;
}

static void count(struct tec_keeping_setup *w, struct tec_keeping_cell *c, int64_t retrieve)
{
    const struct tec_keeping_prompt *p = &w->prompt;
    struct tec_store_segment_view view;
    c->tokens += p->n;
    c->query += p->n - p->query;
    c->retrieved += p->n_segments;
    for (int u = 0; !w->question && u < p->n_segments; u++)
        c->joined += tec_store_view(w->store, p->segment[u], &view) && view.epoch != 0;
    if (c->retrieve.n < c->retrieve.room)
        c->retrieve.ns[c->retrieve.n++] = retrieve;
}

static void show(const struct tec_keeping *s, const struct tec_keeping_cell *c, int step)
{
    if (s->call->progress)
        fprintf(stderr, "\r\033[Kbench: cell %d of %d: %s, %d segments, step %d of %d",
                (int)(c - s->cells) + 1, s->n_cells, c->experiment, c->segments, step, s->steps);
}

/* Every question once, all rows; the first one also before the rest, not counted. */
static enum tec_status run_questions(struct tec_keeping_setup *w, struct tec_keeping_cell *c,
                                     struct tec_error *err)
{
    struct tec_keeping *s = w->suite;
    TEC_TRY(make_room(s, c, err));
    TEC_TRY(tec_keeping_begin_cell(w, c, err));
    for (int step = 0; step <= s->steps; step++) {
        w->at = step + 1;
        show(s, c, step);
        TEC_TRY(tec_keeping_ask(w, &w->questions.items[step ? step - 1 : 0], err));
        TEC_TRY(run_rows(w, c, 0, step > 0, err));
        if (step > 0)
            count(w, c, 0);
    }
    c->ran = true;
    tec_keeping_end_cell(w);
    return TEC_OK;
}

/* Steps without a model until groups are static; one by every row that is not counted; the rest. */
static enum tec_status run_cell(struct tec_keeping_setup *w, struct tec_keeping_cell *c,
                                struct tec_error *err)
{
    struct tec_keeping *s = w->suite;
    int64_t retrieve;
    TEC_TRY(make_room(s, c, err));
    TEC_TRY(tec_keeping_begin_cell(w, c, err));
    tec_trace_begin(&s->trace, s->seed, TEC_KEEPING_OBJECTS, TEC_KEEPING_EXAMPLES);
    TEC_TRY(tec_keeping_tell(w, &s->trace, c, err));
    for (int step = -TEC_KEEPING_WARM; step <= s->steps; step++) {
        tec_trace_next(&s->trace);
        w->at = s->trace.step;
        TEC_TRY(tec_keeping_tell(w, &s->trace, c, err));
        if (step < 0)
            continue;
        show(s, c, step);
        TEC_TRY(tec_keeping_retrieve(w, &s->trace, c, &retrieve, err));
        TEC_TRY(run_rows(w, c, retrieve, step > 0, err));
        if (step > 0)
            count(w, c, retrieve);
    }
    c->ran = true;
    tec_keeping_end_cell(w);
    return TEC_OK;
}

static enum tec_status run_all(struct tec_keeping_setup *w, struct tec_keeping *s,
                               struct tec_error *err)
{
    TEC_TRY(tec_keeping_open(w, s, err));
    for (int i = 0; i < s->n_cells; i++) {
        TEC_TRY(s->weights ? run_questions(w, &s->cells[i], err) : run_cell(w, &s->cells[i], err));
        tec_keeping_sum(s);
        TEC_TRY(tec_keeping_write_json(s, err)); /* a long run leaves what it has */
    }
    return TEC_OK;
}

enum tec_status tec_keeping_run(struct tec_keeping *s, struct tec_error *err)
{
    struct tec_keeping_setup *w = TEC_NEW(s->call->arena, 1, struct tec_keeping_setup);
    if (!w)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a suite");
    s->load_before = tec_machine_load();
    enum tec_status status = run_all(w, s, err);
    tec_keeping_close(w);
    s->load_after = tec_machine_load();
    if (s->call->progress)
        fputs("\r\033[K", stderr);
    return status;
}

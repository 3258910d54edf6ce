/* queue.c - plans from the network's thread to the control loop, and what a dry queue gives. */
#include "tools/client/queue.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 4096, MOST_COLUMNS = 1024, MOST_RATE = 10000, SECOND = 1000000000 };
static const double LEAST_RATE = 1e-3; /* times of 4096 rows are far within int64_t's nanoseconds */

/* --- options ---------------------------------------------------------------------------------- */

/* An option that is 0 has its default. */
static enum tec_status whole(int *to, const char *name, int value, int without, int most,
                             struct tec_error *err)
{
    if (value < 0 || value > most)
        return tec_fail(err, TEC_INVALID, "%s: must be 1 to %d (0: %d), is %d", name, most, without,
                        value);
    *to = value ? value : without;
    return TEC_OK;
}

static enum tec_status read_rules(struct tec_client_queue *q, const struct tectum_client_options *o,
                                  int rows, struct tec_error *err)
{
    if (!(o->rate_hz >= LEAST_RATE && o->rate_hz <= MOST_RATE))
        return tec_fail(err, TEC_INVALID, "rate_hz: must be %g to %d, is %g", LEAST_RATE, MOST_RATE,
                        o->rate_hz);
    if (!(o->queue_threshold >= 0.0 && o->queue_threshold <= 1.0))
        return tec_fail(err, TEC_INVALID, "queue_threshold: must be 0 to 1, is %g",
                        o->queue_threshold);
    if (o->merge < TECTUM_CLIENT_LATEST_ONLY || o->merge > TECTUM_CLIENT_ENSEMBLE ||
        o->on_dry < TECTUM_CLIENT_HOLD || o->on_dry > TECTUM_CLIENT_ERROR ||
        o->rtc < TECTUM_CLIENT_FREE || o->rtc > TECTUM_CLIENT_GIVEN)
        return tec_fail(err, TEC_INVALID, "merge, on_dry or rtc: there is no such one");
    TEC_TRY(whole(&q->rules.horizon, "horizon", o->horizon, rows, rows, err));
    TEC_TRY(whole(&q->rules.blend_rows, "blend_rows", o->blend_rows, 4, rows, err));
    TEC_TRY(whole(&q->given_rows, "given_rows", o->given_rows, 8, rows, err));
    TEC_TRY(whole(&q->first_delay, "first_delay", o->first_delay, 1, rows, err));
    q->rules.period_ns = SECOND / o->rate_hz;
    q->rules.merge = o->merge;
    q->rules.by_motion = o->by_motion != 0;
    q->rules.interpolate = o->interpolate != 0;
    q->rules.held = o->on_dry == TECTUM_CLIENT_HOLD || o->on_dry == TECTUM_CLIENT_ON_MISS;
    q->threshold = o->queue_threshold > 0.0 ? o->queue_threshold : 0.5;
    q->hold_ns = o->hold_ms < 0 ? -1 : (o->hold_ms ? o->hold_ms : 1000) * (int64_t)1000000;
    q->on_dry = o->on_dry;
    q->rtc = o->rtc;
    return TEC_OK;
}

static bool plan_memory(struct tec_client_plan *p, int rows, int columns, struct tec_heap *heap)
{
    p->most_rows = rows;
    p->most_columns = columns;
    p->values = tec_heap_get(heap, (size_t)rows * (size_t)columns * sizeof *p->values);
    p->origin = tec_heap_get(heap, (size_t)rows * sizeof *p->origin);
    return p->values && p->origin;
}

/* The columns that are never mixed, as a mask. */
static enum tec_status read_discrete(struct tec_client_queue *q,
                                     const struct tectum_client_options *o, int columns,
                                     struct tec_error *err)
{
    if (o->n_discrete < 0 || (o->n_discrete > 0 && !o->discrete))
        return tec_fail(err, TEC_INVALID, "discrete: %d columns, and no list of them",
                        o->n_discrete);
    for (int i = 0; i < o->n_discrete; i++)
        if (o->discrete[i] < 0 || o->discrete[i] >= columns)
            return tec_fail(err, TEC_INVALID, "discrete: columns are 0 to %d, %d is none of them",
                            columns - 1, o->discrete[i]);
    if (o->n_discrete == 0)
        return TEC_OK;
    q->discrete = tec_heap_get(q->heap, (size_t)columns * sizeof *q->discrete);
    if (!q->discrete)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the columns of an action");
    memset(q->discrete, 0, (size_t)columns * sizeof *q->discrete);
    for (int i = 0; i < o->n_discrete; i++)
        q->discrete[o->discrete[i]] = true;
    q->rules.discrete = q->discrete;
    return TEC_OK;
}

enum tec_status tec_client_queue_init(struct tec_client_queue *q,
                                      const struct tectum_client_options *options,
                                      struct tec_heap *heap, struct tec_error *err)
{
    int rows = 0, columns = 0;
    memset(q, 0, sizeof *q);
    q->heap = heap;
    TEC_TRY(whole(&rows, "max_rows", options->max_rows, 256, MOST_ROWS, err));
    TEC_TRY(whole(&columns, "max_columns", options->max_columns, 64, MOST_COLUMNS, err));
    TEC_TRY(read_rules(q, options, rows, err));
    TEC_TRY(read_discrete(q, options, columns, err));
    tec_triple_init(&q->between);
    bool good = plan_memory(&q->plan, rows, columns, heap);
    for (int i = 0; i < TEC_TRIPLE_PLACES; i++)
        good = plan_memory(&q->plans[i], rows, columns, heap) && good;
    q->last = tec_heap_get(heap, (size_t)columns * sizeof *q->last);
    if (good && q->last)
        return TEC_OK;
    tec_client_queue_finish(q);
    return tec_fail(err, TEC_NO_MEMORY, "no memory for plans of %d rows of %d columns", rows,
                    columns);
}

void tec_client_queue_finish(struct tec_client_queue *q)
{
    for (int i = -1; i < TEC_TRIPLE_PLACES; i++) {
        struct tec_client_plan *p = i < 0 ? &q->plan : &q->plans[i];
        tec_heap_put(q->heap, p->values);
        tec_heap_put(q->heap, p->origin);
        p->values = NULL;
        p->origin = NULL;
    }
    tec_heap_put(q->heap, q->last);
    tec_heap_put(q->heap, q->discrete);
    q->last = NULL;
    q->discrete = NULL;
    q->rules.discrete = NULL;
}

/* --- the network's thread --------------------------------------------------------------------- */

void tec_client_queue_connected(struct tec_client_queue *q)
{
    q->cold = true;
}

static void post(struct tec_client_queue *q)
{
    tec_client_plan_copy(&q->plan, &q->plans[q->between.writing]);
    tec_triple_post(&q->between);
}

/* The plan of this episode, which is empty when it has just begun. */
static const struct tec_client_plan *plan_of(struct tec_client_queue *q, int64_t episode)
{
    struct tec_client_plan *p = &q->plan;
    if (p->episode != episode) {
        p->rows = p->usable = 0;
        p->gap[0] = p->gap[1] = 0;
        p->episode = episode;
        p->stopped = false;
    }
    return p;
}

int64_t tec_client_queue_due(struct tec_client_queue *q)
{
    const struct tec_client_plan *p = plan_of(q, atomic_load(&q->episode));
    if (p->usable == 0)
        return INT64_MIN;
    return tec_client_plan_begin(p, &q->rules, p->usable - floor(q->threshold * p->usable));
}

bool tec_client_queue_wants(struct tec_client_queue *q, int64_t captured_ns, int64_t now)
{
    const struct tec_client_plan *p = plan_of(q, atomic_load(&q->episode));
    return p->usable == 0 || q->rules.by_motion ||
           (double)(now - captured_ns) < p->usable * q->rules.period_ns;
}

struct tec_client_ahead tec_client_queue_ahead(struct tec_client_queue *q, int64_t captured_ns)
{
    struct tec_client_ahead ahead = {.rows = 0};
    const struct tec_client_plan *p = plan_of(q, atomic_load(&q->episode));
    struct tec_client_left left = tec_client_plan_left(p, &q->rules, captured_ns);
    if (q->rtc == TECTUM_CLIENT_FREE || left.rows == 0)
        return ahead;
    int64_t took = tec_client_durations_at(&q->delays, 0.99);
    double rows =
        took < 0 ? q->first_delay : ceil(left.phase + (double)took / q->rules.period_ns - 1e-9);
    ahead.delay = (int)fmin(rows, left.usable);
    ahead.values = left.values;
    ahead.columns = left.columns;
    ahead.rows = left.rows;
    if (q->rtc == TECTUM_CLIENT_GIVEN) {
        ahead.delay = ahead.delay < q->given_rows ? ahead.delay : q->given_rows;
        ahead.rows = ahead.delay;
    }
    return ahead;
}

bool tec_client_queue_reply(struct tec_client_queue *q, struct tec_client_chunk chunk,
                            int64_t episode, int64_t now)
{
    const struct tec_client_plan *old = plan_of(q, atomic_load(&q->episode));
    if (old->episode != episode)
        return false;
    if (!chunk.substitute) {
        if (!q->cold) /* the first one may have waited for a model to warm up */
            tec_client_durations_add(&q->delays, now - chunk.captured_ns);
        q->cold = false;
    }
    chunk.number = chunk.substitute ? -1 : q->chunks++;
    if (chunk.substitute && q->on_dry != TECTUM_CLIENT_ON_MISS)
        return false;
    bool taken = tec_client_plan_merge(&q->plans[q->between.writing], old, &q->rules, &chunk, now);
    if (taken)
        post(q);
    return taken;
}

void tec_client_queue_stopped(struct tec_client_queue *q, int64_t episode)
{
    const struct tec_client_plan *old = plan_of(q, atomic_load(&q->episode));
    struct tec_client_plan *p = &q->plans[q->between.writing];
    if (old->episode != episode)
        return;
    p->rows = p->usable = 0;
    p->gap[0] = p->gap[1] = 0;
    p->episode = episode;
    p->stopped = true;
    post(q);
}

void tec_client_queue_reset(struct tec_client_queue *q)
{
    atomic_fetch_add(&q->episode, 1);
}

/* --- the control loop ------------------------------------------------------------------------- */

/* The numbers of a row, or between it and the next one of the same chunk: no line leads from one
 * chunk to another. */
static void read_row(const struct tec_client_queue *q, const struct tec_client_plan *p,
                     double place, double *action)
{
    int row = (int)place;
    const double *at = p->values + (size_t)row * (size_t)p->columns, *next = at + p->columns;
    bool lines = q->rules.interpolate && row + 1 < p->usable &&
                 p->origin[row].chunk == p->origin[row + 1].chunk;
    double part = lines ? place - row : 0.0;
    const bool *discrete = q->rules.discrete;
    for (int k = 0; k < p->columns; k++) {
        bool mixed = part > 0.0 && !(discrete && discrete[k]);
        action[k] = mixed ? at[k] + part * (next[k] - at[k]) : at[k];
    }
}

static void tell(struct tectum_client_action *told, const struct tec_client_plan *p, int row)
{
    const struct tec_client_origin *o = &p->origin[row];
    *told = (struct tectum_client_action){.source = o->substitute ? TECTUM_CLIENT_SUBSTITUTE
                                                                  : TECTUM_CLIENT_FRESH,
                                          .columns = p->columns,
                                          .chunk = o->chunk,
                                          .observation = o->observation,
                                          .captured_ns = o->captured_ns,
                                          .row = o->row,
                                          .left = p->usable - row - 1};
}

/* No row of the plan is for this instant. */
static enum tec_status next_dry(struct tec_client_queue *q, const struct tec_client_plan *p,
                                int64_t now, double *action, struct tectum_client_action *told)
{
    bool stopped = p->stopped && p->episode == q->last_episode;
    bool held = q->rules.held && (q->hold_ns < 0 || now - q->last_ns <= q->hold_ns);
    atomic_fetch_add_explicit(&q->dry, 1, memory_order_relaxed);
    *told = (struct tectum_client_action){.source =
                                              stopped ? TECTUM_CLIENT_STOPPED : TECTUM_CLIENT_NONE};
    if (stopped)
        q->n_last = 0;
    if (q->n_last == 0 || (!held && q->on_dry != TECTUM_CLIENT_ZEROS))
        return TEC_TIME;
    *told = q->last_told;
    told->left = 0;
    told->source = held ? TECTUM_CLIENT_HELD : TECTUM_CLIENT_ZERO;
    for (int k = 0; k < q->n_last; k++)
        action[k] = held ? q->last[k] : 0.0;
    return TEC_OK;
}

enum tec_status tec_client_queue_next(struct tec_client_queue *q, int64_t now, double *action,
                                      int room, struct tectum_client_action *told)
{
    int64_t episode = atomic_load_explicit(&q->episode, memory_order_acquire);
    (void)tec_triple_take(&q->between);
    const struct tec_client_plan *p = &q->plans[q->between.reading];
    if (episode != q->last_episode)
        q->n_last = 0;
    q->last_episode = episode;
    bool own = p->episode == episode && p->usable > 0;
    double place = own ? fmax(tec_client_plan_place(p, &q->rules, now), 0.0) : 0.0;
    bool dry = !own || place >= (double)p->usable;
    int columns = dry ? q->n_last : p->columns;
    *told = (struct tectum_client_action){.source = TECTUM_CLIENT_NONE};
    if (columns > room) {
        told->columns = columns;
        return TEC_INVALID;
    }
    if (dry) {
        enum tec_status status = next_dry(q, p, now, action, told);
        told->age_ns = told->columns ? now - told->captured_ns : 0;
        return status;
    }
    read_row(q, p, place, action);
    tell(told, p, (int)place);
    told->age_ns = now - told->captured_ns;
    memcpy(q->last, action, (size_t)columns * sizeof *action);
    q->n_last = columns;
    q->last_ns = now;
    q->last_told = *told;
    return TEC_OK;
}

/* tectum.c - the public interface over an open engine: submit, wait, ask. */
#include "tools/api/live.h"

#include "base/clock.h"

#include <string.h>

#define STATUS(name, text) _Static_assert((int)TECTUM_##name == (int)TEC_##name, #name);
#include "base/status.def"
#undef STATUS
_Static_assert((int)TECTUM_TYPE_TEXT == (int)TEC_VALUE_TEXT, "text");
_Static_assert((int)TECTUM_TYPE_U8 == (int)TEC_VALUE_U8, "u8");
_Static_assert((int)TECTUM_TYPE_F32 == (int)TEC_VALUE_F32, "f32");
_Static_assert((int)TECTUM_TYPE_F64 == (int)TEC_VALUE_F64, "f64");
_Static_assert((int)TECTUM_TYPE_I32 == (int)TEC_VALUE_I32, "i32");
_Static_assert((int)TEC_TRIPLE_PLACES == (int)TEC_SESSION_SETS, "a set for each place");

enum { MAX_VALUES = 64 };

static const struct tec_clock wall = {NULL};

const char *tectum_status_name(enum tectum_status status)
{
    return tec_status_name((enum tec_status)status);
}

enum tectum_status tec_live_convert(struct tectum_error *err, const struct tec_error *from)
{
    if (err) {
        err->status = (enum tectum_status)from->status;
        memcpy(err->message, from->message, sizeof err->message);
    }
    return (enum tectum_status)from->status;
}

static enum tectum_status fail(struct tectum_error *err, enum tec_status status, const char *text)
{
    struct tec_error mine = {0};
    tec_fail(&mine, status, "%s", text);
    return tec_live_convert(err, &mine);
}

enum tectum_status tec_live_fail(struct tectum_error *err, enum tec_status status, const char *text)
{
    return fail(err, status, text);
}

int64_t tectum_now(void)
{
    return tec_clock_now(&wall);
}

int64_t tec_live_end(int64_t timeout_ns)
{
    int64_t now = tec_clock_now(&wall);
    return timeout_ns < 0 || timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns;
}

/* --- observations ---------------------------------------------------------------------------- */

static enum tec_status submit(struct tectum *t, const struct tec_value *values, size_t n,
                              int64_t submitted_ns, int64_t captured_ns, int64_t *number,
                              struct tec_error *err)
{
    struct tec_session *session = t->session;
    struct tec_live_input *box = &t->inputs[t->inbox.writing];
    tec_session_use(session, t->inbox.writing); /* nobody reads the set of this place */
    TEC_TRY(tec_session_observe(session, values, n, NULL, atomic_load(&t->submitted),
                                captured_ns ? captured_ns : submitted_ns, &box->input, NULL, err));
    for (int i = 0; i < t->engine->n_chains; i++)
        if (!t->engine->chains[i].plan->spec.secondary)
            TEC_TRY(tec_prefix_check(t->engine->chains[i].plan, &box->input.chains[i].prefix, err));
    box->state_raw = tec_session_observation(session)->state_raw;
    box->submitted_ns = submitted_ns;
    box->ready_ns = tec_clock_now(&wall);
    box->number = *number = atomic_fetch_add(&t->submitted, 1);
    atomic_store(&t->ticks[box->number % TEC_LIVE_FRAMES], submitted_ns);
    tec_triple_post(&t->inbox);
    return TEC_OK;
}

enum tectum_status tectum_submit(struct tectum *t, const struct tectum_value *values, size_t n,
                                 int64_t captured_ns, int64_t *observation,
                                 struct tectum_error *err)
{
    struct tec_value own[MAX_VALUES];
    struct tec_error mine = {0};
    int64_t number = -1, now = tec_clock_now(&wall);
    if (!t || !values || n < 1 || n > MAX_VALUES)
        return fail(err, TEC_INVALID, "tectum_submit: an engine and 1 to 64 values are needed");
    for (size_t i = 0; i < n; i++) {
        const struct tectum_value *v = &values[i];
        if (!v->name || (!v->data && v->bytes) || v->rank < 0 || v->rank > 4 ||
            (unsigned)v->type > TECTUM_TYPE_I32)
            return fail(err, TEC_INVALID,
                        "tectum_submit: a value without name or data, or of unknown type or rank");
        own[i] = (struct tec_value){.name = v->name,
                                    .kind = (enum tec_value_kind)v->type,
                                    .rank = v->rank,
                                    .data = v->data,
                                    .bytes = v->bytes};
        memcpy(own[i].shape, v->shape, sizeof v->shape);
    }
    pthread_mutex_lock(&t->lock);
    enum tec_status status = tec_engine_failure(t->engine, &mine);
    if (status == TEC_OK)
        status = submit(t, own, n, now, captured_ns, &number, &mine);
    pthread_mutex_unlock(&t->lock);
    if (status != TEC_OK)
        return tec_live_convert(err, &mine);
    tec_runtime_ring(&t->live->runtime);
    if (observation)
        *observation = number;
    return TECTUM_OK;
}

/* --- actions --------------------------------------------------------------------------------- */

int tectum_rows(const struct tectum *t)
{
    return t ? tec_engine_room(t->engine).rows : 0;
}

int tectum_columns(const struct tectum *t)
{
    return t ? tec_engine_room(t->engine).columns : 0;
}

struct tec_live_action *tec_live_action(struct tectum *t, const char *node)
{
    for (int i = 0; i < t->n_actions; i++)
        if (!node || (t->actions[i].name && strcmp(t->actions[i].name, node) == 0))
            return &t->actions[i];
    return NULL;
}

/* Nothing will come of the observations up to a lost one. */
static bool take_loss(const struct tectum *t, int64_t from, struct tectum_chunk *chunk)
{
    const struct tec_live_loss *lost = &t->losses[t->lossbox.reading];
    if (t->missed_up_to < 0 || t->missed_up_to < from)
        return false;
    *chunk = (struct tectum_chunk){.observation = lost->number,
                                   .columns = tectum_columns(t),
                                   .captured_ns = lost->captured_ns,
                                   .released_ns = lost->told_ns,
                                   .missed = 1};
    snprintf(chunk->reason, sizeof chunk->reason, "%s", lost->reason);
    return true;
}

/* The robot's actions, unless they are beyond its limits: a stop is one for tectum_handout too. */
static void judge(struct tec_live_action *a, const struct tec_live_output *out, double *actions,
                  struct tectum_chunk *chunk)
{
    struct tec_beyond beyond;
    if (out->left_out) {
        snprintf(chunk->reason, sizeof chunk->reason, "left out");
        return;
    }
    int rows =
        tec_session_act_on(a->watchdog->session, out->state_raw, out->chunk, actions, &beyond);
    chunk->limited = beyond.n;
    if (beyond.n > 0 && beyond.on == TEC_LIMIT_STOP) {
        a->stopped = true;
        tec_watchdog_stop(a->watchdog);
    }
    chunk->rows = a->stopped ? 0 : rows;
    if (a->stopped || tec_beyond_refused(&beyond))
        snprintf(chunk->reason, sizeof chunk->reason, "%s",
                 tec_beyond_refused(&beyond) ? "limits" : "stopped");
}

/* Losses are looked at first: what left before one is seen behind it. They are a ring's. */
static bool take(struct tectum *t, struct tec_live_action *a, int64_t from, double *actions,
                 struct tectum_chunk *chunk)
{
    if (tec_triple_take(&t->lossbox))
        t->missed_up_to = t->losses[t->lossbox.reading].number;
    if (tec_triple_take(&a->outbox))
        a->taken = a->outputs[a->outbox.reading].number;
    const struct tec_live_output *out = &a->outputs[a->outbox.reading];
    if (a->taken < 0 || a->taken < from || a->taken < atomic_load(&t->forgets))
        return take_loss(t, from, chunk);
    *chunk = (struct tectum_chunk){.observation = out->seen,
                                   .columns = tec_session_columns(a->watchdog->session),
                                   .captured_ns = out->captured_ns,
                                   .released_ns = out->released_ns,
                                   .missed = out->missed};
    judge(a, out, actions, chunk);
    return true;
}

enum tectum_status tectum_wait_for(struct tectum *t, const char *node, int64_t from,
                                   int64_t timeout_ns, double *actions, size_t room,
                                   struct tectum_chunk *chunk, struct tectum_error *err)
{
    struct tectum_chunk unused;
    struct tec_error lost;
    if (!t || !actions)
        return fail(err, TEC_INVALID, "tectum_wait: an engine and room for actions are needed");
    struct tec_live_action *a = tec_live_action(t, node);
    if (!a)
        return fail(err, TEC_NOT_FOUND, "tectum_wait_for: the pipeline has no such action node");
    if (room < (size_t)tectum_rows(t) * (size_t)tectum_columns(t))
        return fail(err, TEC_INVALID, "tectum_wait: actions need room for tectum_rows x columns");
    for (int64_t until = tec_live_end(timeout_ns);;) {
        uint32_t seen = atomic_load(&t->done.rings);
        pthread_mutex_lock(&t->hand_lock);
        bool got = take(t, a, from, actions, chunk ? chunk : &unused);
        pthread_mutex_unlock(&t->hand_lock);
        if (got)
            return TECTUM_OK;
        if (tec_engine_failure(t->engine, &lost) != TEC_OK)
            return tec_live_convert(err, &lost);
        if (tec_clock_now(&wall) >= until)
            return fail(err, TEC_TIME, "no actions of that observation yet");
        tec_bell_wait(&t->done, seen, until);
    }
}

enum tectum_status tectum_wait(struct tectum *t, int64_t from, int64_t timeout_ns, double *actions,
                               size_t room, struct tectum_chunk *chunk, struct tectum_error *err)
{
    return tectum_wait_for(t, NULL, from, timeout_ns, actions, room, chunk, err);
}

enum tectum_status tectum_poll(struct tectum *t, int64_t from, double *actions, size_t room,
                               struct tectum_chunk *chunk, struct tectum_error *err)
{
    return tectum_wait(t, from, 0, actions, room, chunk, err);
}

const char *tectum_action(const struct tectum *t, int i)
{
    return t && i >= 0 && i < t->n_actions ? t->actions[i].name : NULL;
}

/* --- requests -------------------------------------------------------------------------------- */

static enum tectum_status leave(struct tectum *t, const struct tec_ticket *ticket, int64_t *number,
                                struct tectum_error *err)
{
    int64_t taken = tec_asks_leave(&t->asks, ticket);
    if (taken < 0)
        return fail(err, TEC_TIME, "64 asks and cancels wait for a frame already: wait for one");
    if (number)
        *number = taken;
    return TECTUM_OK;
}

enum tectum_status tectum_ask(struct tectum *t, const char *node, int max_tokens, int priority,
                              int64_t *ticket, struct tectum_error *err)
{
    if (!t || max_tokens < 0 || priority < 0)
        return fail(err, TEC_INVALID,
                    "tectum_ask: an engine, max_tokens and priority from 0 are needed");
    const struct tec_loop_options *o = tec_loop_settings(t->engine->loop);
    struct tec_ticket mine = {
        .ask = {.decoder = node ? -1 : 0, .max_tokens = max_tokens, .prio = priority}};
    for (int i = 0; node && i < o->n_decoders; i++)
        if (strcmp(o->decoders[i].name, node) == 0)
            mine.ask.decoder = i;
    if (o->n_decoders == 0 || mine.ask.decoder < 0)
        return fail(err, TEC_NOT_FOUND, "tectum_ask: the pipeline has no such decode node");
    return leave(t, &mine, ticket, err);
}

enum tectum_status tectum_cancel(struct tectum *t, int64_t request, int64_t *ticket,
                                 struct tectum_error *err)
{
    if (!t || request < 0)
        return fail(err, TEC_INVALID, "tectum_cancel: an engine and a request are needed");
    enum tectum_status status =
        leave(t, &(struct tec_ticket){.cancel = true, .request = request}, ticket, err);
    if (status == TECTUM_OK)
        tec_runtime_ring(&t->live->runtime);
    return status;
}

static void make_outcome(struct tectum_outcome *out, int64_t number, const struct tec_ticket *from)
{
    *out = (struct tectum_outcome){.ticket = number,
                                   .request = from->cancel ? from->request : from->ask.id,
                                   .refused = from->cancel ? !from->live : from->ask.refused};
    const char *reason = from->cancel ? (from->live ? "" : "not alive") : from->ask.reason;
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

enum tectum_status tectum_asked(struct tectum *t, int64_t ticket, int64_t timeout_ns,
                                struct tectum_outcome *outcome, struct tectum_error *err)
{
    if (!t || !outcome)
        return fail(err, TEC_INVALID, "tectum_asked: an engine and an outcome are needed");
    for (int64_t until = tec_live_end(timeout_ns);;) {
        struct tec_ticket from;
        uint32_t seen = atomic_load(&t->asks.done.rings);
        enum tec_asks_state state = tec_asks_look(&t->asks, ticket, &from);
        if (state == TEC_ASKS_SETTLED) {
            make_outcome(outcome, ticket, &from);
            return TECTUM_OK;
        }
        if (state == TEC_ASKS_UNKNOWN)
            return fail(err, TEC_NOT_FOUND, "no such ticket; the newest 64 are kept");
        if (tec_clock_now(&wall) >= until)
            return fail(err, TEC_TIME, "no frame has answered that ticket yet");
        tec_bell_wait(&t->asks.done, seen, until);
    }
}

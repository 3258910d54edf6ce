/* worker_take.c - the engine thread of the server between frames: it takes jobs for their sessions,
 * and says when a frame of what has come, or of unfinished language, is to run. */
#include "tools/serve/worker_own.h"

#include <stdio.h>
#include <string.h>

/* Does a job of the session wait for its text? */
static bool waits_for_text(const struct tec_worker *w, const struct tec_worker_session *s)
{
    for (int job = 0; job < w->exchange->n; job++)
        if (w->jobs[job].waits && w->jobs[job].session == s->index)
            return true;
    return false;
}

static bool connected(const struct tec_worker *w, int64_t client)
{
    for (int job = 0; job < w->exchange->n; job++)
        if (atomic_load_explicit(&w->exchange->jobs[job].connected, memory_order_relaxed) == client)
            return true;
    return false;
}

/* Which session another client is given first: the lowest. */
static int rank_of(const struct tec_worker *w, const struct tec_worker_session *s)
{
    enum { NOBODYS, LEFT, LEFT_NAMED, IDLE, WAITS };
    if (waits_for_text(w, s))
        return WAITS;
    if (s->client < 0)
        return NOBODYS;
    return connected(w, s->client) ? IDLE : s->name[0] ? LEFT_NAMED : LEFT;
}

/* The session of the client whose request was read: the one that it has, else one that is nobody's,
 * else one whose client has left, else the one that was not asked for longest. */
static struct tec_worker_session *session_of(struct tec_worker *w, int job)
{
    struct tec_worker_session *best = w->sessions;
    int lowest = rank_of(w, best);
    for (int i = 0; i < w->n_sessions; i++) {
        struct tec_worker_session *s = &w->sessions[i];
        int rank = rank_of(w, s);
        if (tec_worker_belongs(w, s, job))
            return s;
        if (rank < lowest || (rank == lowest && s->asked_ns < best->asked_ns)) {
            best = s;
            lowest = rank;
        }
    }
    return best;
}

/* The session is that client's from now on, and no other one is. */
static void give_to(struct tec_worker *w, struct tec_worker_session *s, int64_t client)
{
    const char *name = w->request.session;
    for (int i = 0; i < w->n_sessions; i++)
        if (w->sessions[i].client == client && &w->sessions[i] != s)
            w->sessions[i].client = 0; /* no connection's: its name may come back for it */
    if (!s->own)
        tec_worker_texts_forget(s);
    if (!s->own || (name && name[0]))
        snprintf(s->name, sizeof s->name, "%s", name ? name : "");
    s->texts.pushes &= s->client == client; /* it is for the connection that asked for it */
    s->client = client;
}

/* The observation is prepared: the job is in the session's next frame. */
static void begin(struct tec_worker *w, struct tec_worker_session *s, int job)
{
    struct tec_worker_job *to = &w->jobs[job];
    const struct tec_job *j = &w->exchange->jobs[job];
    give_to(w, s, j->client);
    tec_worker_texts_left(s, j->replaced);
    if (to->wants_streams)
        tec_worker_texts_want(w, s, to->streams, to->pushes);
    if (s->fresh)
        s->reset = TEC_RESET_SESSION;
    s->asked = false;
    s->number = to->chunk_id = s->observations++;
    s->asked_ns = s->began_ns = tec_clock_now(&w->clock);
    s->taken = s->job = job;
    s->text = to->wants_text;
    s->acted = s->holds = s->lost = false;
    s->fills = w->stages;
    to->session = s->index;
    to->prepared_ns = to->left_ns = s->began_ns;
    to->prepared_cpu_ns = tec_clock_thread() - to->picked_cpu_ns;
    to->refused = to->by_watch = false;
    memset(to->made, 0, sizeof to->made);
    to->due_ns = j->due_ns;
}

/* Its robot has gone on with a substitute. */
static void pass(struct tec_worker *w, const struct tec_job *j)
{
    for (int i = 0; i < w->n_sessions; i++)
        w->sessions[i].passed += w->sessions[i].client == j->client;
}

/* Read a job's request; false: it is answered. */
static bool receive(struct tec_worker *w, int job)
{
    struct tec_job *j = &w->exchange->jobs[job];
    struct tec_error err = {.message = ""};
    j->lost = j->left_out = false;
    j->beyond = (struct tec_beyond){.n = 0};
    j->captured_ns = j->received_ns;
    j->picked_ns = w->jobs[job].started_ns = tec_clock_now(&w->clock);
    w->jobs[job].picked_cpu_ns = tec_clock_thread();
    w->jobs[job].wants_streams = false;
    if (tec_worker_expired(w, job)) { /* answered already: its tick is over */
        tec_safety_skip(&w->exchange->safety, j->received_ns, j->due_ns);
        pass(w, j);
        tec_exchange_return(w->exchange, job);
        return false;
    }
    if (atomic_load_explicit(&j->gone, memory_order_relaxed))
        tec_fail(&err, TEC_INVALID, "the client left");
    else if (tec_worker_read(w, job, &err) == TEC_OK)
        return true;
    tec_worker_fail(w, job, &err);
    return false;
}

/* Take what has come, until a session's second job; true if there was anything. One that is refused
 * ends it, too: what reading it took may be long, and another pipeline may have its turn. */
static bool collect(struct tec_worker *w)
{
    bool any = false;
    int job = w->next;
    for (w->next = -1; job >= 0 || (job = tec_exchange_take(w->exchange)) >= 0; job = -1) {
        struct tec_error err = {.message = ""};
        any = true;
        if (!receive(w, job))
            break;
        struct tec_worker_session *s = session_of(w, job);
        if (s->job >= 0) {
            w->next = job;
            break;
        }
        if (tec_worker_observe(w, s, job, &err) != TEC_OK) {
            tec_worker_fail(w, job, &err);
            break;
        }
        begin(w, s, job);
        if (w->n_sessions == 1 && s->job >= 0)
            break;
    }
    return any;
}

/* Until when a job of that session is expected: until its client has been silent for a second; 0:
 * it has left, or waits for its text. */
static int64_t expected_until(const struct tec_worker *w, const struct tec_worker_session *s)
{
    enum { SILENT_NS = 1000000000 };
    bool may = s->job < 0 && s->client > 0 && connected(w, s->client) && !waits_for_text(w, s);
    return may ? s->asked_ns + SILENT_NS : 0;
}

/* Until when the frame waits for jobs of other sessions: so long after the first one, and not so
 * long that one of its own would be late; 0: it does not. */
static int64_t gathers_until(const struct tec_worker *w)
{
    int64_t until = INT64_MAX, expected = 0;
    for (int i = 0; i < w->n_sessions; i++) {
        const struct tec_worker_session *s = &w->sessions[i];
        int64_t due = s->job >= 0 ? w->jobs[s->job].due_ns : 0;
        int64_t its = expected_until(w, s);
        expected = its > expected ? its : expected;
        if (s->job >= 0 && s->began_ns + w->gather_ns < until)
            until = s->began_ns + w->gather_ns;
        if (due && due - w->frame_ns < until)
            until = due - w->frame_ns;
    }
    return w->next >= 0 ? 0 : until < expected ? until : expected;
}

static bool take(void *user)
{
    struct tec_worker *w = user;
    tec_worker_settle(w);
    bool any = collect(w), asked = false;
    for (int i = 0; i < w->n_sessions; i++)
        asked |= w->sessions[i].job >= 0;
    if (!asked) {
        tec_arena_finish(&w->moment);
        return any;
    }
    int64_t until = gathers_until(w);
    if (until > tec_clock_now(&w->clock)) {
        tec_runtime_look(&w->runtime, until);
        return false;
    }
    tec_worker_frame(w);
    tec_arena_finish(&w->moment);
    return true;
}

/* Language goes on. A ring does not: it would hand out its actions to nobody. */
static void go_on(void *user)
{
    struct tec_worker *w = user;
    tec_worker_frame(w);
    tec_arena_finish(&w->moment);
}

/* --- turns with other pipelines ----------------------------------------------------------------
 */

/* When a job's reply is due: one without a deadline is as patient as this. */
static int64_t due_of(const struct tec_worker *w, int job)
{
    enum { PATIENT_NS = 1000000000 };
    const struct tec_job *j = &w->exchange->jobs[job];
    return j->due_ns ? j->due_ns : j->received_ns + PATIENT_NS;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t due(void *user)
{
    const struct tec_worker *w = user;
    int64_t first = w->next >= 0 ? due_of(w, w->next) : INT64_MAX;
    for (int i = 0; i < w->n_sessions; i++)
        if (w->sessions[i].job >= 0)
            first = earlier(first, due_of(w, w->sessions[i].job));
    for (int i = 0, job; (job = tec_exchange_peek(w->exchange, i)) >= 0; i++)
        first = earlier(first, due_of(w, job));
    return first;
}

/* A robot that asks now and then is thought to ask again a period after its last request. */
static int64_t expected(void *user, int64_t now_ns)
{
    const struct tec_worker *w = user;
    int64_t period_ns = w->opened.engine->topology.period_us * 1000, first = INT64_MAX;
    for (int i = 0; i < w->n_sessions && period_ns > 0; i++) {
        const struct tec_worker_session *s = &w->sessions[i];
        int64_t next = s->began_ns + period_ns;
        if (expected_until(w, s) <= now_ns)
            continue;
        if (next <= now_ns)
            next += ((now_ns - next) / period_ns + 1) * period_ns;
        first = earlier(first, next);
    }
    return first;
}

struct tec_runtime_source tec_worker_source(struct tec_worker *w)
{
    return (struct tec_runtime_source){
        .take = take, .go_on = go_on, .rests = true, .due = due, .expected = expected, .user = w};
}

void tec_worker_settle(struct tec_worker *w)
{
    tec_safety_settle(&w->exchange->safety, w->opened.engine->loop, tec_clock_now(&w->clock));
}

/* memory_work.c - the worker's side: segments without kept KV are computed by the frame thread when
 * it has time, and brought to the store by a thread that may wait for a disk.
 *
 * A node has one worker and one job for all sessions, whose turn it is one after the other. What
 * another session has of a text is taken over first. */
#include "graph/run/recall/memory_own.h"

#include "base/clock.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A turn of the worker; turns between two syncs; tokens of a launch beyond which nothing is added.
 */
enum { REST_NS = 1000000, RESTS = 1000, SOME = 256, LOOK_NS = 1000000000 };
#define TELL_NS INT64_C(10000000000) /* how often it is said how much is left */
enum { SETTLES = 100000 };           /* looks at a memory that is to settle: 10 s and more */

static const struct tec_clock real = {NULL};

/* Add a segment's tokens to the job; false: it does not fit, or is no longer what it was. */
static bool add(struct tec_memory *m, uint32_t handle, struct tec_store_segment_view *segment)
{
    struct tec_remember_job *j = &m->shared->job;
    size_t room = (size_t)(m->plan->spec.segment_tokens - j->n_tokens), n = 0;
    if (j->n_segments == m->plan->spec.segments || !tec_store_view(m->store, handle, segment) ||
        tec_memory_encode(m, segment->text, segment->text_bytes, j->ids + j->n_tokens, room, &n,
                          NULL) != TEC_OK ||
        n > room || n != segment->tokens)
        return false;
    int u = j->n_segments++;
    j->handles[u] = handle;
    j->versions[u] = segment->version;
    j->epochs[u] = segment->epoch;
    j->first[u] = j->n_tokens;
    j->tokens[u] = (int)n;
    j->n_tokens += (int)n;
    return true;
}

/* A segment, or all members of its static group as one sequence: their KV is of them all, also
 * where some of them have it. False: it does not fit behind what is there. */
static bool add_sequence(struct tec_memory *m, uint32_t handle, uint32_t *members)
{
    struct tec_remember_job *j = &m->shared->job;
    struct tec_store_segment_view segment;
    uint32_t most = (uint32_t)m->plan->spec.segments;
    uint32_t n = tec_store_members(m->store, handle, members, most);
    int segments = j->n_segments, tokens = j->n_tokens;
    for (uint32_t i = 0; i < n; i++)
        if (n > most || !add(m, members[i], &segment)) {
            j->n_segments = segments;
            j->n_tokens = tokens;
            return false;
        }
    if (j->n_tokens > tokens)
        j->texts[j->n_texts++] = (struct tec_remember_text){j->ids + tokens, j->n_tokens - tokens};
    return true;
}

/* Whether a segment is in the job already, with its group. */
static bool added(const struct tec_remember_job *j, uint32_t handle)
{
    for (int u = 0; u < j->n_segments; u++)
        if (j->handles[u] == handle)
            return true;
    return false;
}

/* From m->worker.cursor on, which passes segments that fit no launch: they are computed with each
 * prompt.
 */
bool tec_memory_fill_job(struct tec_memory *m)
{
    struct tec_remember_job *j = &m->shared->job;
    struct tec_arena_mark mark = tec_arena_mark(&m->scratch);
    uint32_t most = (uint32_t)m->plan->spec.segments;
    uint32_t *missing = TEC_NEW(&m->scratch, most, uint32_t);
    uint32_t *members = TEC_NEW(&m->scratch, most, uint32_t);
    j->whose = m;
    j->n_texts = j->n_segments = j->n_tokens = 0;
    uint32_t n =
        missing && members ? tec_store_missing_from(m->store, &m->worker.cursor, missing, most) : 0;
    for (uint32_t i = 0; i < n && j->n_tokens < SOME; i++) {
        if (added(j, missing[i]) || add_sequence(m, missing[i], members))
            continue;
        if (j->n_segments == 0) /* alone, too, it does not fit */
            tec_store_pass(m->store, &m->worker.cursor, missing[i]);
        else
            break;
    }
    tec_arena_rewind(&m->scratch, mark);
    return j->n_texts > 0;
}

void tec_memory_run_job(struct tec_memory_shared *s)
{
    struct tec_remember_job *j = &s->job;
    struct tec_memory *m = j->whose;
    int64_t begin = tec_clock_now(&real);
    j->err.message[0] = '\0';
    j->failed = tec_remember_run(m->plan, j->texts, j->n_texts, &j->err) != TEC_OK;
    size_t layer = (size_t)m->plan->spec.segment_tokens * m->row;
    for (int l = 0; j->k && !j->failed && l < m->layers; l++)
        tec_remember_read(m->plan, 0, j->n_tokens, l, j->k + (size_t)l * layer,
                          j->v + (size_t)l * layer);
    int64_t took = tec_clock_now(&real) - begin;
    /* Believed of the next: the dearest of late, which fades. */
    int64_t each = took / (j->n_tokens ? j->n_tokens : 1), faded = s->token_ns - s->token_ns / 8;
    s->token_ns = each > faded ? each : faded;
    tec_memory_count(m, TEC_COUNT_REMEMBERED, j->n_tokens);
    tec_memory_count(m, TEC_COUNT_REMEMBER_NS, took);
}

void tec_memory_prior(struct tec_memory *m, int tokens, double us)
{
    int64_t each = tokens > 0 ? (int64_t)(us * 1000.0) / tokens : 0;
    int64_t *believed = &m->shared->token_ns;
    *believed = each > *believed ? each : *believed;
}

/* A node's job, if it is ready and believed to end by then. */
static void idle(struct tec_memory_shared *s, int64_t until_ns)
{
    if (atomic_load_explicit(&s->job.state, memory_order_acquire) != TEC_JOB_READY)
        return;
    int64_t takes = s->token_ns * s->job.n_tokens * 3 / 2;
    if (until_ns != INT64_MAX && (!s->token_ns || tec_clock_now(&real) + takes > until_ns))
        return;
    tec_memory_run_job(s);
    atomic_store_explicit(&s->job.state, TEC_JOB_DONE, memory_order_release);
}

/* Whether a worker is to read what the last job left in the plan, which has one place for all
 * memories: the next job would write over it. */
static bool is_read(const struct tec_memory_shared *s)
{
    return !s->job.k && atomic_load_explicit(&s->job.state, memory_order_acquire) == TEC_JOB_DONE;
}

static void end_changes(struct tec_chain_memory *c)
{
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->of[i]->shared->n; k++) {
            struct tec_memory *m = &c->of[i]->shared->of[k];
            int64_t changes = atomic_load_explicit(&m->changes, memory_order_acquire);
            atomic_store_explicit(&m->ended, changes, memory_order_release);
        }
}

void tec_memory_chain_idle(struct tec_chain_memory *c, int64_t until_ns)
{
    end_changes(c);
    for (int i = 0; i < c->n; i++) {
        for (int k = 0; k < c->n; k++)
            if (is_read(c->of[k]->shared))
                return;
        idle(c->of[i]->shared, until_ns);
    }
}

/* A segment's K and V of a layer, one after the other. */
static void read_piece(struct tec_memory *m, int u, int l, unsigned char *to)
{
    const struct tec_remember_job *j = &m->shared->job;
    size_t bytes = (size_t)j->tokens[u] * m->row;
    size_t at =
        (size_t)l * (size_t)m->plan->spec.segment_tokens * m->row + (size_t)j->first[u] * m->row;
    if (!j->k) {
        tec_remember_read(m->plan, j->first[u], j->tokens[u], l, to, to + bytes);
        return;
    }
    memcpy(to, j->k + at, bytes);
    memcpy(to + bytes, j->v + at, bytes);
}

static bool keep_segment(struct tec_memory *m, int u, struct tec_error *err)
{
    const struct tec_remember_job *j = &m->shared->job;
    size_t piece = 2 * (size_t)j->tokens[u] * m->row;
    unsigned char *room = tec_heap_get(m->heap, piece * (size_t)m->layers);
    const void **pieces = tec_heap_get(m->heap, (size_t)m->layers * sizeof *pieces);
    enum tec_status status = TEC_NO_MEMORY;
    if (room && pieces) {
        for (int l = 0; l < m->layers; l++) {
            pieces[l] = room + piece * (size_t)l;
            read_piece(m, u, l, room + piece * (size_t)l);
        }
        status =
            tec_store_put_kv(m->store, j->handles[u], j->versions[u], j->epochs[u], pieces, err);
    } else
        tec_fail(err, TEC_NO_MEMORY, "no memory to keep a segment");
    tec_heap_put(m->heap, pieces);
    tec_heap_put(m->heap, room);
    return status == TEC_OK || status == TEC_NOT_FOUND; /* it has changed meanwhile */
}

void tec_memory_keep_job(struct tec_memory_shared *s)
{
    struct tec_remember_job *j = &s->job;
    struct tec_memory *m = j->whose;
    struct tec_error err = j->err;
    for (int u = 0; u < j->n_segments; u++) {
        if (!j->failed && keep_segment(m, u, &err))
            continue;
        tec_memory_count(m, TEC_COUNT_FAILED, 1);
        tec_memory_say_failure(m, err.status, "a segment is not kept: %s", err.message);
    }
}

/* The next segments that miss their KV, in shared->looked: how many. */
static uint32_t missing(struct tec_memory *m)
{
    struct tec_store_cursor from = m->worker.cursor;
    return tec_store_missing_from(m->store, &from, m->shared->looked,
                                  (uint32_t)m->plan->spec.segments);
}

/* Looks for missing keys and values on the server, where other robots may have put them. Waits for
 * the server, under no lock. */
static void look(struct tec_memory *m)
{
    uint32_t n = missing(m), found;
    if (n > 0 && m->resource->remote && !m->options.forgets)
        (void)tec_store_look(m->store, m->shared->looked, n, LOOK_NS, &found, NULL);
}

void tec_memory_share(struct tec_memory *m)
{
    const struct tec_memory_shared *s = m->shared;
    uint32_t n = s->n > 1 ? missing(m) : 0;
    for (uint32_t u = 0; u < n; u++) {
        bool found = false;
        for (int i = 0; i < s->n && !found; i++)
            found = i != m->session &&
                    tec_store_share(m->store, s->looked[u], s->of[i].store, NULL) == TEC_OK;
        tec_memory_count(m, TEC_COUNT_SHARED, found);
    }
}

/* KV that a prompt had to read from a file or a server comes into RAM. */
static void warm(struct tec_memory *m)
{
    uint32_t handle = TEC_NO_SEGMENT;
    struct tec_kv *kv;
    pthread_mutex_lock(&m->lock);
    if (m->n_cold > 0)
        handle = m->cold[--m->n_cold];
    pthread_mutex_unlock(&m->lock);
    if (handle == TEC_NO_SEGMENT || tec_store_pin(m->store, handle, &kv, NULL) != TEC_OK)
        return;
    (void)tec_store_warm(m->store, kv, NULL);
    tec_store_drop(m->store, kv);
}

/* After a change: until nothing is missing any more. What leaves for want of room is not computed
 * again before the next change. Of several sessions one may have what another has just been told;
 * it is taken over behind the frame, whose prompts would else depend on who is quicker. */
static bool fill(struct tec_memory *m)
{
    int64_t changes = atomic_load_explicit(&m->changes, memory_order_acquire);
    bool changed = changes != m->worker.seen;
    if (m->shared->n > 1 && changes != atomic_load_explicit(&m->ended, memory_order_acquire))
        return false;
    if (changed) {
        m->worker.cursor = (struct tec_store_cursor){.inside = false};
        m->worker.seen = changes;
        m->worker.busy = true;
    }
    if (m->worker.busy)
        tec_memory_share(m);
    if (changed)
        look(m);
    pthread_mutex_lock(&m->lock);
    m->worker.busy = m->worker.busy && tec_memory_fill_job(m);
    pthread_mutex_unlock(&m->lock);
    if (!m->worker.busy)
        atomic_store_explicit(&m->settled, changes, memory_order_release);
    return m->worker.busy;
}

static void sync_changes(struct tec_memory *m)
{
    int64_t changes = atomic_load_explicit(&m->changes, memory_order_acquire);
    struct tec_error err;
    bool fails = tec_store_fails(m->store);
    if (changes == m->worker.synced && !fails)
        return;
    if (tec_store_sync(m->store, &err) == TEC_OK) {
        m->worker.synced = changes;
        tec_memory_written(m);
        return;
    }
    tec_memory_say_failure(m, TEC_IO, "changes are not durable: %.400s", err.message);
}

/* What the frame thread has computed is kept. */
static void keep(struct tec_memory_shared *s)
{
    struct tec_memory *m = s->job.whose;
    tec_memory_keep_job(s);
    int64_t now = atomic_load_explicit(&m->counts[TEC_COUNT_FAILED], memory_order_relaxed);
    m->worker.busy =
        m->worker.busy && now == m->worker.unkept; /* not again before the next change */
    m->worker.unkept = now;
}

/* The job of a session that misses something, from the one behind the last job's on. */
static bool fill_next(struct tec_memory_shared *s)
{
    int last = s->job.whose ? s->job.whose->session : 0;
    bool filled = false;
    for (int i = 1; i <= s->n && !filled; i++)
        filled = fill(&s->of[(last + i) % s->n]);
    return filled;
}

static void *work(void *self)
{
    struct tec_memory_shared *s = self;
    const struct timespec rest = {0, REST_NS};
    for (int turn = 0; !atomic_load_explicit(&s->stops, memory_order_relaxed);
         turn = (turn + 1) % RESTS) {
        int state = atomic_load_explicit(&s->job.state, memory_order_acquire);
        if (state == TEC_JOB_DONE) {
            keep(s);
            atomic_store_explicit(&s->job.state, TEC_JOB_EMPTY, memory_order_release);
            continue;
        }
        if (state == TEC_JOB_EMPTY && fill_next(s))
            atomic_store_explicit(&s->job.state, TEC_JOB_READY, memory_order_release);
        for (int i = 0; i < s->n; i++) {
            warm(&s->of[i]);
            tec_memory_tell(&s->of[i]);
            if (turn == 0)
                sync_changes(&s->of[i]);
        }
        nanosleep(&rest, NULL);
    }
    return NULL;
}

static bool settled(const struct tec_memory *m)
{
    return atomic_load_explicit(&m->settled, memory_order_acquire) ==
               atomic_load_explicit(&m->changes, memory_order_acquire) &&
           atomic_load_explicit(&m->shared->job.state, memory_order_acquire) == TEC_JOB_EMPTY;
}

static void settle(struct tec_chain_memory *c, struct tec_memory *m)
{
    const struct timespec rest = {0, REST_NS / 10};
    int64_t told = tec_clock_now(&real);
    for (int turn = 0; turn < SETTLES && m->shared->works && !settled(m); turn++) {
        tec_memory_chain_idle(c, INT64_MAX);
        nanosleep(&rest, NULL);
        if (tec_clock_now(&real) - told < TELL_NS)
            continue;
        told += TELL_NS;
        tec_memory_tell_missing(m, " still");
    }
}

void tec_memory_chain_settle(struct tec_chain_memory *c)
{
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->of[i]->shared->n; k++)
            settle(c, &c->of[i]->shared->of[k]);
}

enum tec_status tec_memory_start_worker(struct tec_memory_shared *s, struct tec_error *err)
{
    s->works = tec_thread_start(&s->worker, work, s);
    return s->works ? TEC_OK : tec_fail(err, TEC_IO, "no thread for a memory");
}

void tec_memory_stop_worker(struct tec_memory_shared *s)
{
    if (!s->works)
        return;
    atomic_store_explicit(&s->stops, true, memory_order_relaxed);
    pthread_join(s->worker, NULL);
    s->works = false;
    if (atomic_load_explicit(&s->job.state, memory_order_acquire) == TEC_JOB_DONE)
        tec_memory_keep_job(s);
    for (int i = 0; i < s->n; i++)
        tec_memory_tell(&s->of[i]);
}

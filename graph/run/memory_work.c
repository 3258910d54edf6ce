/* memory_work.c - the worker's side: units without kept KV are computed by the frame thread when it
 * has time, and brought to the store by a thread that may wait for a disk. */
#include "graph/run/memory_own.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Tokens of a launch beyond which nothing is added; how long to rest after what could not be kept.
 */
enum { REST_NS = 1000000, SOME = 256, RESTS = 1000 };

static const struct tec_clock real = {NULL};

/* Add a unit's tokens to the job; false: it does not fit, or is no longer what it was. */
static bool add(struct tec_memory *m, uint32_t handle, struct tec_unit_view *unit)
{
    struct tec_remember_job *j = &m->job;
    size_t room = (size_t)(m->plan->spec.unit_tokens - j->n_tokens), n = 0;
    if (j->n_units == m->plan->spec.units || !tec_store_view(m->store, handle, unit) ||
        tec_memory_encode(m, unit->text, unit->text_bytes, j->ids + j->n_tokens, room, &n, NULL) !=
            TEC_OK ||
        n > room || n != unit->tokens)
        return false;
    int u = j->n_units++;
    j->handles[u] = handle;
    j->versions[u] = unit->version;
    j->epochs[u] = unit->epoch;
    j->first[u] = j->n_tokens;
    j->tokens[u] = (int)n;
    j->n_tokens += (int)n;
    return true;
}

/* Members of a static group come one after the other and are one sequence: all of them or none. */
static int add_group(struct tec_memory *m, const uint32_t *handles, uint32_t n)
{
    struct tec_remember_job *j = &m->job;
    struct tec_unit_view unit;
    int units = j->n_units, tokens = j->n_tokens;
    uint32_t i = 0;
    uint64_t epoch = 0;
    for (; i < n; i++) {
        if (!tec_store_view(m->store, handles[i], &unit) || (i > 0 && unit.epoch != epoch))
            break;
        epoch = unit.epoch;
        if (!add(m, handles[i], &unit)) {
            j->n_units = units;
            j->n_tokens = tokens;
            return 0;
        }
        if (epoch == 0) {
            i++;
            break;
        }
    }
    if (j->n_tokens > tokens)
        j->texts[j->n_texts++] = (struct tec_remember_text){j->ids + tokens, j->n_tokens - tokens};
    return (int)i;
}

bool tec_memory_fill_job(struct tec_memory *m)
{
    struct tec_remember_job *j = &m->job;
    struct tec_arena_mark mark = tec_arena_mark(&m->scratch);
    uint32_t most = (uint32_t)m->plan->spec.units, at = 0;
    uint32_t *missing = TEC_NEW(&m->scratch, most, uint32_t);
    j->n_texts = j->n_units = j->n_tokens = 0;
    uint32_t n = missing ? tec_store_missing(m->store, missing, most) : 0;
    while (at < n && j->n_tokens < SOME) {
        int took = add_group(m, missing + at, n - at);
        at += took ? (uint32_t)took : 1; /* what fits no launch is computed in each prompt */
    }
    tec_arena_rewind(&m->scratch, mark);
    return j->n_texts > 0;
}

void tec_memory_run_job(struct tec_memory *m)
{
    struct tec_remember_job *j = &m->job;
    int64_t begin = tec_clock_now(&real);
    j->failed = tec_remember_run(m->plan, j->texts, j->n_texts, NULL) != TEC_OK;
    size_t layer = (size_t)m->plan->spec.unit_tokens * m->row;
    for (int l = 0; j->k && !j->failed && l < m->layers; l++)
        tec_remember_read(m->plan, 0, j->n_tokens, l, j->k + (size_t)l * layer,
                          j->v + (size_t)l * layer);
    j->took_ns = tec_clock_now(&real) - begin;
    tec_memory_count(m, TEC_COUNT_REMEMBERED, j->n_tokens);
    tec_memory_count(m, TEC_COUNT_REMEMBER_NS, j->took_ns);
}

/* A unit's pieces, one after the other: K, then V behind it at the form's place. */
static bool keep_unit(struct tec_memory *m, int u, struct tec_error *err)
{
    struct tec_remember_job *j = &m->job;
    size_t bytes = (size_t)j->tokens[u] * m->row,
           layer = (size_t)m->plan->spec.unit_tokens * m->row;
    unsigned char *room = tec_heap_get(m->heap, 2 * bytes * (size_t)m->layers);
    const void **pieces = tec_heap_get(m->heap, (size_t)m->layers * sizeof *pieces);
    enum tec_status status =
        room && pieces ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory to keep a unit");
    for (int l = 0; status == TEC_OK && l < m->layers; l++) {
        unsigned char *to = room + 2 * bytes * (size_t)l;
        pieces[l] = to;
        if (j->k) {
            size_t at = (size_t)l * layer + (size_t)j->first[u] * m->row;
            memcpy(to, j->k + at, bytes);
            memcpy(to + bytes, j->v + at, bytes);
        } else
            tec_remember_read(m->plan, j->first[u], j->tokens[u], l, to, to + bytes);
    }
    if (status == TEC_OK)
        status =
            tec_store_put_kv(m->store, j->handles[u], j->versions[u], j->epochs[u], pieces, err);
    tec_heap_put(m->heap, pieces);
    tec_heap_put(m->heap, room);
    return status == TEC_OK || status == TEC_NOT_FOUND; /* it has changed meanwhile */
}

void tec_memory_keep_job(struct tec_memory *m)
{
    struct tec_remember_job *j = &m->job;
    struct tec_error err;
    for (int u = 0; u < j->n_units; u++) {
        err.message[0] = '\0';
        if (!j->failed && keep_unit(m, u, &err))
            continue;
        tec_memory_count(m, TEC_COUNT_FAILED, 1);
        pthread_mutex_lock(&m->lock);
        snprintf(m->trouble, sizeof m->trouble, "%.240s", err.message);
        pthread_mutex_unlock(&m->lock);
    }
}

static void *work(void *self)
{
    struct tec_memory *m = self;
    const struct timespec rest = {0, REST_NS};
    int rests = 0;
    while (!atomic_load_explicit(&m->stops, memory_order_relaxed)) {
        int state = atomic_load_explicit(&m->job.state, memory_order_acquire);
        if (state == TEC_JOB_DONE) {
            int64_t failed =
                atomic_load_explicit(&m->counts[TEC_COUNT_FAILED], memory_order_relaxed);
            tec_memory_keep_job(m);
            failed -= atomic_load_explicit(&m->counts[TEC_COUNT_FAILED], memory_order_relaxed);
            rests = failed ? RESTS : 0;
            atomic_store_explicit(&m->job.state, TEC_JOB_EMPTY, memory_order_relaxed);
            continue;
        }
        bool ready = false;
        if (state == TEC_JOB_EMPTY && --rests <= 0) {
            pthread_mutex_lock(&m->lock);
            ready = tec_memory_fill_job(m);
            pthread_mutex_unlock(&m->lock);
        }
        if (ready)
            atomic_store_explicit(&m->job.state, TEC_JOB_READY, memory_order_release);
        else
            nanosleep(&rest, NULL);
    }
    return NULL;
}

enum tec_status tec_memory_start_worker(struct tec_memory *m, struct tec_error *err)
{
    m->works = pthread_create(&m->worker, NULL, work, m) == 0;
    return m->works ? TEC_OK : tec_fail(err, TEC_IO, "no thread for a memory");
}

void tec_memory_stop_worker(struct tec_memory *m)
{
    if (!m->works)
        return;
    atomic_store_explicit(&m->stops, true, memory_order_relaxed);
    pthread_join(m->worker, NULL);
    m->works = false;
    if (atomic_load_explicit(&m->job.state, memory_order_acquire) == TEC_JOB_DONE)
        tec_memory_keep_job(m);
}

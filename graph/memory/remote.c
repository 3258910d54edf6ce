/* remote.c - the thread of a KV server: connects, notices failures and sends queued KV.
 *
 * Only this thread connects and only it looks up the host's name, so nobody else waits for either.
 * After a failure the server is marked as away and every caller treats its KV as missing at once;
 * the thread tries again with an exponential back-off. A server that answers too late for a forward
 * rests for a fixed time instead: it does answer, so a new connection would succeed at once. */
#include "graph/memory/remote_state.h"

#include "base/thread.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#define SECOND INT64_C(1000000000)
#define MOST_QUEUE (INT64_C(1) << 40)

static int64_t now(void)
{
    const struct tec_clock clock = {0};
    return tec_clock_now(&clock);
}

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

enum tec_status tec_remote_check(const struct tec_remote_options *o, struct tec_error *err)
{
    struct tec_remote_place places[TEC_REMOTE_PLACES];
    int n;
    const int64_t times[] = {o->timeout_ns, o->retry_ns, o->retry_most_ns, o->rest_ns};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < 0 || times[i] > 3600 * SECOND)
            return tec_fail(err, TEC_INVALID,
                            "memory: a server's times are 0 .. 3600 s, %lld ns is none",
                            (long long)times[i]);
    if (o->queue_bytes < 0 || o->queue_bytes > MOST_QUEUE || o->keep_seconds < 0 ||
        o->keep_seconds > INT32_MAX)
        return tec_fail(err, TEC_INVALID,
                        "memory: a queue of %lld bytes to a server that keeps for %lld s",
                        (long long)o->queue_bytes, (long long)o->keep_seconds);
    return o->address ? tec_remote_places_parse(places, &n, o->address, err) : TEC_OK;
}

void tec_remote_key(const struct tec_remote *r, struct tec_remote_name name,
                    char key[TEC_REMOTE_KEY])
{
    snprintf(key, TEC_REMOTE_KEY, "%s%016llx%016llx", r->prefix, (unsigned long long)name.high,
             (unsigned long long)name.low);
}

static void tell(struct tec_remote *r, bool here, const char *message)
{
    const struct tec_remote_event event = {here, message};
    if (r->options.event)
        r->options.event(r->options.user, &event);
}

static void back_off(struct tec_remote *r)
{
    int64_t twice = 2 * r->backoff, most = r->options.retry_most_ns;
    r->backoff = twice < most ? twice : most;
}

/* Mark the server as away. rest_ns > 0: it answered too late, leave it alone for that long; 0: the
 * connection failed, use the exponential back-off. */
static void leave(struct tec_remote *r, const struct tec_error *why, int64_t rest_ns)
{
    char message[512];
    pthread_mutex_lock(&r->lock);
    bool was = atomic_exchange(&r->here, false), first = was || !r->told;
    int64_t rest = rest_ns > 0 ? rest_ns : r->backoff;
    r->told = true;
    if (first) {
        r->counts.away++;
        r->counts.late += rest_ns > 0;
        r->retry_at = now() + rest;
        snprintf(message, sizeof message,
                 "memory: server %.120s: %.200s; what it alone has is computed again, it is tried "
                 "again in %lld ms",
                 r->address, why->message, (long long)(rest / 1000000));
        if (rest_ns <= 0)
            back_off(r);
        pthread_cond_signal(&r->work);
    }
    pthread_mutex_unlock(&r->lock);
    if (first)
        tell(r, false, message);
}

void tec_remote_lost(struct tec_remote *r, const struct tec_error *why)
{
    leave(r, why, 0);
}

void tec_remote_late(struct tec_remote *r, const struct tec_error *why)
{
    leave(r, why, r->options.rest_ns);
}

void tec_remote_good(struct tec_remote *r)
{
    pthread_mutex_lock(&r->lock);
    r->backoff = r->options.retry_ns;
    pthread_mutex_unlock(&r->lock);
}

/* Open one connection and check that the server answers PING. */
static enum tec_status connect_one(struct tec_remote *r, struct tec_remote_line *line,
                                   struct tec_error *err)
{
    const char *words[] = {"PING"};
    const size_t sizes[] = {4};
    struct tec_answer answer = {.kind = TEC_ANSWER_NONE};
    pthread_mutex_lock(&line->lock);
    enum tec_status status =
        tec_remote_link_open(&line->link, &r->places[r->place], r->options.timeout_ns, err);
    int64_t deadline = tec_remote_deadline(r, 0);
    if (status == TEC_OK)
        status = tec_remote_link_ask(&line->link, 1, words, sizes, deadline, err);
    if (status == TEC_OK)
        status = tec_remote_link_answer(&line->link, &answer, deadline, err);
    bool right = answer.kind == TEC_ANSWER_STATUS && strcmp(answer.text, "PONG") == 0;
    if (status == TEC_OK && !right) {
        status = tec_fail(err, TEC_MALFORMED, "it answers PING with '%s'", answer.text);
        tec_remote_link_close(&line->link);
    }
    pthread_mutex_unlock(&line->lock);
    return status;
}

/* Whoever closes waits for the thread: it connects no further where nothing is left to send, or no
 * time for it. */
static bool stops(struct tec_remote *r)
{
    pthread_mutex_lock(&r->lock);
    bool stop = r->stop && (!r->first || now() >= r->stop_at);
    pthread_mutex_unlock(&r->lock);
    return stop;
}

/* Connect all lines to the place in turn, if it takes strings. TEC_TIME: it is closed meanwhile. */
static enum tec_status connect_place(struct tec_remote *r, struct tec_error *err)
{
    struct tec_remote_line *line = &r->lines[TEC_REMOTE_SENDS];
    for (int i = 0; i < TEC_REMOTE_LINES; i++) {
        TEC_TRY(connect_one(r, &r->lines[i], err));
        if (stops(r))
            return tec_fail(err, TEC_TIME, "the memory is being closed");
    }
    pthread_mutex_lock(&line->lock);
    enum tec_status status = tec_remote_role(r, line, err);
    pthread_mutex_unlock(&line->lock);
    return status;
}

/* The place that was asked last, then the others. Of several the reason names the place; that of a
 * cluster is kept, because it is none that passes. */
static enum tec_status connect_any(struct tec_remote *r, struct tec_error *why)
{
    enum tec_status status = TEC_IO;
    for (int i = 0; i < r->n_places && (i == 0 || !stops(r)); i++) {
        struct tec_error reason = {TEC_OK, ""};
        r->place = (r->place + (i > 0)) % r->n_places;
        status = connect_place(r, &reason);
        if (status == TEC_OK || status == TEC_TIME)
            break;
        const struct tec_remote_place *p = &r->places[r->place];
        if (r->n_places > 1)
            (void)tec_context(&reason, status, "%.60s:%d", p->host, p->port);
        if (why->status != TEC_UNSUPPORTED)
            *why = reason;
    }
    return status;
}

static void connect_all(struct tec_remote *r)
{
    struct tec_error why = {TEC_OK, ""};
    char message[256];
    enum tec_status status = connect_any(r, &why);
    pthread_mutex_lock(&r->lock);
    r->counts.tries++;
    bool back = status == TEC_OK && r->told;
    if (status == TEC_OK) {
        atomic_store(&r->here, true);
    } else if (r->told) { /* said once; the next time is later */
        r->retry_at = now() + r->backoff;
        back_off(r);
    }
    pthread_mutex_unlock(&r->lock);
    if (status != TEC_OK && status != TEC_TIME)
        tec_remote_lost(r, &why);
    if (back) {
        const struct tec_remote_place *p = &r->places[r->place];
        if (r->n_places > 1)
            snprintf(message, sizeof message, "memory: server %.100s is back, %.60s:%d answers",
                     r->address, p->host, p->port);
        else
            snprintf(message, sizeof message, "memory: server %.120s is back", r->address);
        tell(r, true, message);
    }
}

/* Send one string. If the server goes away meanwhile the string is dropped and counted. */
static void send_one(struct tec_remote *r, struct tec_remote_job *job)
{
    char key[TEC_REMOTE_KEY], seconds[24];
    struct tec_error why = {TEC_OK, ""};
    tec_remote_key(r, job->name, key);
    snprintf(seconds, sizeof seconds, "%lld", (long long)r->options.keep_seconds);
    const char *words[] = {"SET", key, (const char *)job->bytes, "EX", seconds};
    const size_t sizes[] = {3, strlen(key), job->size, 2, strlen(seconds)};
    struct tec_answer answer = {.kind = TEC_ANSWER_NONE};
    struct tec_remote_line *line = &r->lines[TEC_REMOTE_SENDS];
    int64_t deadline = tec_remote_deadline(r, job->size);
    pthread_mutex_lock(&line->lock);
    enum tec_status status = tec_remote_link_ask(&line->link, r->options.keep_seconds > 0 ? 5 : 3,
                                                 words, sizes, deadline, &why);
    if (status == TEC_OK)
        status = tec_remote_link_answer(&line->link, &answer, deadline, &why);
    pthread_mutex_unlock(&line->lock);
    if (status == TEC_OK)
        status = tec_remote_refuses(r, &answer, &why);
    bool taken =
        status == TEC_OK && answer.kind == TEC_ANSWER_STATUS && strcmp(answer.text, "OK") == 0;
    pthread_mutex_lock(&r->lock);
    r->counts.sent += taken;
    r->counts.sent_bytes += taken ? (int64_t)job->size : 0;
    r->counts.refused += status == TEC_OK && !taken;
    r->counts.dropped += status != TEC_OK;
    pthread_mutex_unlock(&r->lock);
    if (status != TEC_OK)
        tec_remote_lost(r, &why);
    else
        tec_remote_good(r);
    if (taken)
        r->sent(r->user, &job->ticket);
}

/* The next string to send, or NULL after a wait, when the caller must look again. Under the
 * lock. */
static struct tec_remote_job *take(struct tec_remote *r)
{
    bool here = atomic_load(&r->here);
    struct tec_remote_job *job = r->first;
    if (here && job) {
        r->first = job->next;
        r->last = r->first ? r->last : NULL;
        return job;
    }
    if (r->stop || (!here && now() >= r->retry_at))
        return NULL;
    struct timespec until = {(time_t)(r->retry_at / SECOND), (long)(r->retry_at % SECOND)};
    if (here)
        pthread_cond_wait(&r->work, &r->lock);
    else
        pthread_cond_timedwait(&r->work, &r->lock, &until);
    return NULL;
}

static void *run(void *user)
{
    struct tec_remote *r = user;
    for (;;) {
        pthread_mutex_lock(&r->lock);
        struct tec_remote_job *job = take(r);
        bool here = atomic_load(&r->here), due = !here && now() >= r->retry_at;
        bool end = r->stop && (!here || now() >= r->stop_at || (!job && !r->first));
        pthread_mutex_unlock(&r->lock);
        if (job && !end)
            send_one(r, job);
        if (job) {
            pthread_mutex_lock(&r->lock);
            r->queued -= (int64_t)job->size;
            pthread_mutex_unlock(&r->lock);
            tec_heap_put(r->heap, job);
        }
        if (end && !job)
            return NULL;
        if (due && !end)
            connect_all(r);
    }
}

bool tec_remote_send(struct tec_remote *r, const struct tec_remote_ticket *ticket,
                     struct tec_remote_name name, const void *const *pieces, size_t body,
                     size_t stride)
{
    size_t size = stride * r->key.layers;
    struct tec_remote_job *job = NULL;
    pthread_mutex_lock(&r->lock);
    bool room = size <= TEC_REMOTE_MOST && r->queued + (int64_t)size <= r->options.queue_bytes;
    r->queued += room ? (int64_t)size : 0;
    pthread_mutex_unlock(&r->lock);
    if (room)
        job = tec_heap_get(r->heap, sizeof *job + size);
    for (uint32_t l = 0; job && l < r->key.layers; l++) {
        unsigned char *piece = job->bytes + l * stride;
        memcpy(piece, pieces[l], body);
        tec_log_piece_seal(piece, stride, name.low, name.high, l);
    }
    pthread_mutex_lock(&r->lock);
    if (job) {
        job->name = name;
        job->size = size;
        job->ticket = *ticket;
        *(r->last ? &r->last->next : &r->first) = job;
        r->last = job;
        pthread_cond_signal(&r->work);
    } else {
        r->queued -= room ? (int64_t)size : 0;
        r->counts.dropped++;
    }
    pthread_mutex_unlock(&r->lock);
    return job != NULL;
}

static void prefix_make(struct tec_remote *r)
{
    struct tec_log_key form = r->key;
    form.dim = 0; /* of embeddings: no part of KV, as the encoder is none */
    XXH128_hash_t hash = XXH3_128bits(&form, offsetof(struct tec_log_key, encoder));
    snprintf(r->prefix, sizeof r->prefix,
             "tectum:kv1:%016llx%016llx:", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

static void locks_init(struct tec_remote *r)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&r->work, &attributes);
    pthread_condattr_destroy(&attributes);
    for (int i = 0; i < TEC_REMOTE_LINES; i++)
        pthread_mutex_init(&r->lines[i].lock, NULL);
}

enum tec_status tec_remote_open(struct tec_remote **out, const struct tec_log_key *key,
                                const struct tec_remote_options *options, struct tec_heap *heap,
                                void *user,
                                void (*sent)(void *user, const struct tec_remote_ticket *ticket),
                                struct tec_error *err)
{
    TEC_TRY(tec_remote_check(options, err));
    struct tec_remote *r = tec_heap_get(heap, sizeof *r);
    if (!r)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for a server");
    r->heap = heap;
    r->key = *key;
    r->options = *options;
    r->options.timeout_ns = or_default(options->timeout_ns, SECOND / 5);
    r->options.retry_ns = or_default(options->retry_ns, SECOND / 10);
    r->options.retry_most_ns = or_default(options->retry_most_ns, 5 * SECOND);
    r->options.rest_ns = or_default(options->rest_ns, 5 * SECOND);
    r->options.queue_bytes = or_default(options->queue_bytes, 64 << 20);
    r->backoff = r->options.retry_ns;
    r->user = user;
    r->sent = sent;
    snprintf(r->address, sizeof r->address, "%s", options->address);
    (void)tec_remote_places_parse(r->places, &r->n_places, options->address, NULL);
    prefix_make(r);
    locks_init(r);
    r->started = tec_thread_start(&r->thread, run, r);
    if (r->started) {
        *out = r;
        return TEC_OK;
    }
    tec_remote_close(r);
    return tec_fail(err, TEC_IO, "memory: no thread for a server");
}

void tec_remote_close(struct tec_remote *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    r->stop_at = tec_remote_deadline(r, 0);
    pthread_cond_signal(&r->work);
    pthread_mutex_unlock(&r->lock);
    if (r->started)
        pthread_join(r->thread, NULL);
    for (struct tec_remote_job *job = r->first, *next; job; job = next) {
        next = job->next;
        tec_heap_put(r->heap, job);
    }
    for (int i = 0; i < TEC_REMOTE_LINES; i++) {
        tec_remote_link_close(&r->lines[i].link);
        pthread_mutex_destroy(&r->lines[i].lock);
    }
    pthread_cond_destroy(&r->work);
    pthread_mutex_destroy(&r->lock);
    tec_heap_put(r->heap, r);
}

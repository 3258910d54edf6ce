/* link.c - the thread of a robot's client: one connection, one request at a time. */
#include "tools/client/link.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MILLISECOND = 1000000, FIRST_PAUSE = 100, LONGEST_PAUSE = 2000, OFFSET_MOST = 100 };

static int64_t now_ns(void)
{
    static const struct tec_clock clock = {NULL};
    return tec_clock_now(&clock);
}

static const struct tec_client_observation *observation(const struct tectum_client *c)
{
    return &c->seen[c->between.reading];
}

/* --- what others see -------------------------------------------------------------------------- */

static void tell_connected(struct tectum_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->stats.connected = 1;
    c->stats.connections++;
    c->stats.clock_error = -1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void tell_failure(struct tectum_client *c, const struct tec_error *err)
{
    pthread_mutex_lock(&c->lock);
    c->stats.connected = 0;
    c->stats.failures++;
    c->refused = err->status != TEC_IO;
    snprintf(c->stats.message, sizeof c->stats.message, "%s", err->message);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void tell_reply(struct tectum_client *c, const struct tec_client_reply *r, bool taken)
{
    pthread_mutex_lock(&c->lock);
    struct tectum_client_stats *s = &c->stats;
    s->replies += taken;
    s->substitutes += !r->fresh;
    s->late += r->fresh && r->rows > 0 && !taken;
    s->round_trip_p50 = tec_client_durations_at(&c->trips, 0.5);
    s->round_trip_p99 = tec_client_durations_at(&c->trips, 0.99);
    s->delay_p50 = tec_client_durations_at(&c->queue.delays, 0.5);
    s->delay_p99 = tec_client_durations_at(&c->queue.delays, 0.99);
    if (!tec_client_clock_offset(&c->clock, &s->clock_offset, &s->clock_error))
        s->clock_error = -1;
    s->message[0] = '\0';
    c->refused = false;
    if (taken) {
        s->seam = c->queue.plan.seam;
        c->ready_episode = observation(c)->episode;
    }
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* --- a request and its reply ------------------------------------------------------------------ */

static void pack(struct tectum_client *c, bool end_stop)
{
    const struct tec_client_observation *seen = observation(c);
    char session[TEC_CLIENT_SESSION + 24];
    int64_t offset, error;
    snprintf(session, sizeof session, "%s/%lld", c->session, (long long)seen->episode);
    struct tec_client_asked asked = {.ahead = tec_client_queue_ahead(&c->queue, seen->captured_ns),
                                     .rtc = c->queue.rtc,
                                     .left_input = c->left_input,
                                     .delay_input = c->delay_input,
                                     .given_input = c->given_input,
                                     .session_id = session,
                                     .reset = end_stop,
                                     .deadline_ms = c->deadline_ms,
                                     .seed = c->has_seed ? &c->seed : NULL};
    if (tec_client_clock_offset(&c->clock, &offset, &error) &&
        error < (int64_t)OFFSET_MOST * MILLISECOND) {
        asked.has_obs_ts = true;
        asked.obs_ts = seen->captured_ns + offset;
    }
    tec_client_pack_request(&c->request, seen, &asked);
    pthread_mutex_lock(&c->lock);
    c->stats.requests++;
    c->stats.inference_delay = asked.ahead.delay;
    pthread_mutex_unlock(&c->lock);
}

/* One message of the server; a text is a refusal. */
static enum tec_status receive(struct tectum_client *c, struct tec_error *err)
{
    bool refused = false;
    TEC_TRY(tec_client_receive(&c->socket, &c->reply, &refused, err));
    int n = 0;
    const char *why = tec_client_refusal(&c->reply, &n);
    return !refused ? TEC_OK
                    : tec_fail(err, TEC_INVALID, "%s: the server refuses: %.*s", c->url, n, why);
}

static void take(struct tectum_client *c, const struct tec_client_reply *r, int64_t sent,
                 int64_t arrived)
{
    const struct tec_client_observation *seen = observation(c);
    const struct tec_client_chunk chunk = {.values = c->actions,
                                           .rows = r->rows,
                                           .columns = r->columns,
                                           .observation = seen->number,
                                           .captured_ns = seen->captured_ns,
                                           .substitute = !r->fresh};
    const struct tec_client_stamps stamps = {sent, r->received_ts, r->left_ts, arrived};
    bool taken = false;
    if (!c->queue.cold)
        tec_client_durations_add(&c->trips, arrived - sent);
    if (r->has_stamps)
        tec_client_clock_add(&c->clock, &stamps);
    if (r->stopped)
        tec_client_queue_stopped(&c->queue, seen->episode);
    else if (r->rows > 0)
        taken = tec_client_queue_reply(&c->queue, chunk, seen->episode, arrived);
    tell_reply(c, r, taken);
}

static bool told_to_end(const struct tectum_client *c)
{
    struct pollfd stop = {.fd = c->stop[0], .events = POLLRDHUP};
    return poll(&stop, 1, 0) > 0;
}

/* Where the connection fails the observation stays held for the next one; what the server refuses
 * or cannot answer is not asked again. */
static enum tec_status exchange(struct tectum_client *c, struct tec_error *err)
{
    struct tec_client_reply reply = {.is_reply = false};
    bool end_stop = atomic_exchange(&c->end_stop, false);
    pack(c, end_stop);
    c->held = false;
    if (c->request.failed)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a request");
    int64_t sent = now_ns();
    enum tec_status status = tec_client_send(&c->socket, c->request.data, c->request.n, err);
    while (status == TEC_OK && !reply.is_reply) {
        status = told_to_end(c) ? tec_fail(err, TEC_TIME, "the client ends") : receive(c, err);
        if (status == TEC_OK)
            status = tec_client_read_reply(&reply, c->actions, c->max_rows, c->max_columns,
                                           c->reply.data, c->reply.n, err);
    }
    c->held = status == TEC_IO || status == TEC_TIME;
    if (status == TEC_OK)
        take(c, &reply, sent, now_ns());
    else if (end_stop)
        atomic_store(&c->end_stop, true);
    return status;
}

/* --- between requests ------------------------------------------------------------------------- */

/* Whether there is an observation to be sent now; *wait_ms: how long until there may be, -1 as long
 * as nothing comes. */
static bool due(struct tectum_client *c, int *wait_ms)
{
    int64_t now = now_ns();
    if (tec_triple_take(&c->between))
        c->held = true;
    const struct tec_client_observation *seen = observation(c);
    if (c->held && (seen->episode != atomic_load(&c->queue.episode) ||
                    !tec_client_queue_wants(&c->queue, seen->captured_ns, now)))
        c->held = false;
    *wait_ms = -1;
    if (!c->held)
        return false;
    int64_t at = tec_client_queue_due(&c->queue);
    if (at <= now)
        return true;
    int64_t left = (at - now) / MILLISECOND + 1;
    *wait_ms = left < 1000 ? (int)left : 1000;
    return false;
}

/* Until an observation is to be sent. TEC_TIME: the client ends. */
static enum tec_status wait(struct tectum_client *c, struct tec_error *err)
{
    int wait_ms;
    while (!due(c, &wait_ms)) {
        struct pollfd of[3] = {{.fd = c->stop[0], .events = POLLRDHUP},
                               {.fd = c->wake, .events = POLLIN},
                               {.fd = c->socket.fd, .events = POLLIN}};
        bool pending = tec_client_pending(&c->socket);
        if (poll(of, 3, pending ? 0 : wait_ms) < 0 && errno != EINTR)
            return tec_fail(err, TEC_IO, "poll: %s", strerror(errno));
        if (of[0].revents)
            return tec_fail(err, TEC_TIME, "the client ends");
        uint64_t count;
        if (of[1].revents && read(c->wake, &count, sizeof count) < 0 && errno != EAGAIN)
            return tec_fail(err, TEC_IO, "eventfd: %s", strerror(errno));
        if (pending || of[2].revents)
            TEC_TRY(tec_client_idle(&c->socket, &c->reply, err));
    }
    return TEC_OK;
}

static enum tec_status serve(struct tectum_client *c, struct tec_error *err)
{
    TEC_TRY(tec_client_connect_again(&c->socket, c->url, c->key[0] ? c->key : NULL, err));
    TEC_TRY(receive(c, err)); /* the metadata */
    tec_client_queue_connected(&c->queue);
    c->clock = (struct tec_client_clock){.n = 0}; /* it may be another server, or have begun anew */
    tell_connected(c);
    for (;;) {
        TEC_TRY(wait(c, err));
        TEC_TRY(exchange(c, err));
        c->pause_ms = FIRST_PAUSE;
    }
}

/* Wait before the next connection; false: the client ends. */
static bool pause_between(struct tectum_client *c)
{
    struct pollfd stop = {.fd = c->stop[0], .events = POLLRDHUP};
    int ready = poll(&stop, 1, (int)c->pause_ms);
    c->pause_ms = c->pause_ms * 2 < LONGEST_PAUSE ? c->pause_ms * 2 : LONGEST_PAUSE;
    return ready == 0 || (ready < 0 && errno == EINTR);
}

static void *run(void *client)
{
    struct tectum_client *c = client;
    struct tec_error err;
    do {
        (void)serve(c, &err);
        tec_client_close(&c->socket);
        tell_failure(c, &err);
    } while (pause_between(c));
    return NULL;
}

/* --- its life --------------------------------------------------------------------------------- */

static enum tec_status prepare(struct tectum_client *c, struct tec_error *err)
{
    size_t values = (size_t)c->max_rows * (size_t)c->max_columns;
    c->actions = tec_heap_get(&c->heap, values * sizeof *c->actions);
    c->request.heap = c->reply.heap = &c->heap;
    for (int i = 0; i < TEC_TRIPLE_PLACES; i++)
        c->seen[i].bytes.heap = &c->heap;
    tec_triple_init(&c->between);
    c->socket.asker = c->stop[0];
    c->socket.wait_ms = c->reply_ms;
    c->socket.trust = &c->trust;
    c->socket.most = ((size_t)1 << 20) + 8 * values * sizeof(double);
    c->pause_ms = FIRST_PAUSE;
    c->ready_episode = -1;
    c->stats.clock_error = -1;
    c->stats.round_trip_p50 = c->stats.round_trip_p99 = -1;
    c->stats.delay_p50 = c->stats.delay_p99 = -1;
    return c->actions ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a chunk");
}

enum tec_status tec_client_start(struct tectum_client *c, struct tec_error *err)
{
    pthread_condattr_t clock;
    c->socket.fd = c->stop[0] = c->stop[1] = -1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &clock);
    pthread_condattr_destroy(&clock);
    c->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    bool good = c->wake >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->stop) == 0;
    enum tec_status status =
        good ? prepare(c, err) : tec_fail(err, TEC_IO, "a client's sockets: %s", strerror(errno));
    if (status == TEC_OK) {
        c->started = pthread_create(&c->thread, NULL, run, c) == 0;
        if (!c->started)
            status = tec_fail(err, TEC_IO, "no thread for a client");
    }
    if (status != TEC_OK)
        tec_client_stop(c);
    return status;
}

void tec_client_stop(struct tectum_client *c)
{
    if (c->stop[1] >= 0)
        close(c->stop[1]);
    if (c->started)
        pthread_join(c->thread, NULL);
    if (c->stop[0] >= 0)
        close(c->stop[0]);
    if (c->wake >= 0)
        close(c->wake);
    for (int i = 0; i < TEC_TRIPLE_PLACES; i++)
        tec_buffer_finish(&c->seen[i].bytes);
    tec_buffer_finish(&c->request);
    tec_buffer_finish(&c->reply);
    tec_heap_put(&c->heap, c->actions);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

void tec_client_wake(struct tectum_client *c)
{
    const uint64_t one = 1;
    ssize_t written = write(c->wake, &one, sizeof one);
    (void)written; /* a counter that is full wakes as well */
}

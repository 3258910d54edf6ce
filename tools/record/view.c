/* view.c - the thread that shows a running robot: its loop, its library, its socket. */
#include "tools/record/view.h"

#include "base/number.h"
#include "base/thread.h"
#include "tools/record/recording_own.h"
#include "tools/record/view_own.h"
#include "tools/serve/addresses.h"
#include "tools/serve/http_context.h"
#include "tools/tls/front.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 14, GOODBYE_MS = 500, PATIENCE_S = 60 };
enum { SECOND_NS = 1000000000, SHARE = 4, NAP_US = 10000 };

static const struct lws_protocols protocols[] = {
    {.name = TEC_FOXGLOVE_PROTOCOL,
     .callback = tec_view_event,
     .per_session_data_size = sizeof(struct tec_view_visitor),
     .rx_buffer_size = CHUNK},
    {.name = TEC_FOXGLOVE_PROTOCOL_SDK,
     .callback = tec_view_event,
     .per_session_data_size = sizeof(struct tec_view_visitor),
     .rx_buffer_size = CHUNK},
    {.name = NULL},
};

/* --- the thread ------------------------------------------------------------------------------- */

static int64_t time_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* Whatever those who look send, this thread takes a quarter of a processor at most: when it has had
 * that much within a second, all of them wait for the next one. Pings count, too, which the library
 * answers without a word to us. */
static void leave_time(struct tec_view *v)
{
    int64_t now = time_of(CLOCK_MONOTONIC), used = time_of(CLOCK_THREAD_CPUTIME_ID);
    if (now - v->second_ns >= SECOND_NS) {
        v->second_ns = now;
        v->used_ns = used;
    }
    while (used - v->used_ns > SECOND_NS / SHARE && now - v->second_ns < SECOND_NS &&
           !atomic_load(&v->stopping)) {
        usleep(NAP_US);
        now = time_of(CLOCK_MONOTONIC);
    }
}

static void *run(void *user)
{
    struct tec_view *v = user;
    while (!atomic_load(&v->stopping) && lws_service(v->context, 0) >= 0)
        leave_time(v);
    for (int ms = 0; ms < GOODBYE_MS && tec_foxglove_goodbye(v->foxglove) > 0; ms++) {
        lws_service(v->context, -1);
        usleep(1000);
    }
    lws_sul_cancel(&v->tick);
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

static enum tec_status open_context(struct tec_view *v, struct tec_error *err)
{
    const struct tec_http_context what = {.protocols = protocols,
                                          .user = v,
                                          .chunk = CHUNK,
                                          .sockets = TEC_VIEW_SOCKETS,
                                          .listener = v->listener.fd};
    return tec_http_open(&v->context, &v->door, &what, err);
}

/* From the thread of the handshakes. */
static void take_over(void *user, int fd, const struct sockaddr_storage *peer, socklen_t n)
{
    const struct tec_view *v = user;
    (void)peer;
    (void)n;
    if (!tec_listen_hand(v->hand, fd))
        close(fd);
}

/* The socket; from afar only connections behind their TLS come, through a door. */
static enum tec_status listen_on(struct tec_view *v, int port, struct tec_error *err)
{
    const char *host = v->afar ? v->afar->host : "127.0.0.1";
    char bare[80];
    bool six = host[0] == '[';
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(host + six, "]"), host + six);
    TEC_TRY(tec_listen_bind(&v->listener, bare, port, "--view", err));
    TEC_TRY(tec_context(err, tec_listen_start(&v->listener, &v->port, err), "--view"));
    v->listener.patience_s = PATIENCE_S;
    if (!v->afar)
        return TEC_OK;
    const struct tec_tls_port given = {.listener = v->listener, .hand = take_over, .user = v};
    tec_tls_front_add(v->afar->front, &given, TEC_VIEW_SOCKETS);
    v->listener = (struct tec_listener){.fd = -1, .spare = -1};
    return tec_context(err, tec_listen_door(&v->listener, &v->hand, err), "--view");
}

static enum tec_status start(struct tec_view *v, int port, struct tec_error *err)
{
    const struct tec_foxglove_options foxglove = {.opened = v->o.opened,
                                                  .recorder = v->o.recorder,
                                                  .figures = v->o.figures,
                                                  .mode = v->o.mode};
    TEC_TRY(listen_on(v, port, err));
    TEC_TRY(tec_foxglove_open(&v->foxglove, &foxglove, err));
    v->about = tec_recording_about(v->o.opened, v->o.mode, 0);
    if (!v->about)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
    TEC_TRY(open_context(v, err));
    v->started = tec_thread_start(&v->thread, run, v);
    return v->started ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the thread of a page");
}

enum tec_status tec_view_read_port(int64_t *n, const char *port, struct tec_error *err)
{
    return tec_number_parse(port, n) && *n >= 0 && *n <= 65535
               ? TEC_OK
               : tec_fail(err, TEC_INVALID, "--view: '%.40s' is not a whole number, 0 to 65535",
                          port);
}

/* A link that opens: of a socket that listens at every address, those by which it is reached. */
static void say_where(const struct tec_view *v)
{
    char at[TEC_ADDRESSES][TEC_ADDRESS], others[TEC_ADDRESSES * (TEC_ADDRESS + 2)] = "";
    const char *safe = v->afar ? "s" : "";
    int n = tec_addresses_of(v->afar ? v->afar->host : "127.0.0.1", at);
    for (int i = 1, length = 0; i < n; i++)
        length += snprintf(others + length, sizeof others - (size_t)length, "%s%s",
                           i > 1 ? ", " : "", at[i]);
    tec_say(v->o.opened->call,
            "frames are shown at http%s://%s:%d/view, to Foxglove at ws%s://%s:%d%s%s", safe, at[0],
            v->port, safe, at[0], v->port, n > 1 ? "; also at " : "", others);
}

enum tec_status tec_view_of_option(struct tec_view **out, const char *port, const char *origin,
                                   const struct tec_view_afar *afar,
                                   const struct tec_recording_options *options,
                                   struct tec_error *err)
{
    int64_t n = 0;
    struct tec_heap *heap = options->opened->call->heap;
    *out = NULL;
    TEC_TRY(tec_view_read_port(&n, port, err));
    struct tec_view *v = tec_heap_get(heap, sizeof *v);
    if (!v)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
    *v = (struct tec_view){.o = *options,
                           .origin = origin,
                           .afar = afar,
                           .heap = heap,
                           .listener = {.fd = -1, .spare = -1},
                           .hand = -1};
    enum tec_status status = start(v, (int)n, err);
    if (status != TEC_OK) {
        tec_view_close(v);
        return status;
    }
    *out = v;
    say_where(v);
    return TEC_OK;
}

void tec_view_left(struct tec_view *v, const struct tec_recorded_chunk *left)
{
    if (v)
        tec_foxglove_left(v->foxglove, left);
}

void tec_view_frame(struct tec_view *v, const struct tec_frame_record *record)
{
    if (v)
        tec_foxglove_frame(v->foxglove, record);
}

void tec_view_close(struct tec_view *v)
{
    if (!v)
        return;
    if (v->started) {
        atomic_store(&v->stopping, true);
        lws_cancel_service(v->context);
        pthread_join(v->thread, NULL);
    }
    if (v->context)
        lws_context_destroy(v->context);
    if (v->door) /* the library has closed it */
        v->listener.fd = -1;
    tec_listen_close(&v->listener);
    if (v->hand >= 0)
        close(v->hand);
    tec_foxglove_close(v->foxglove);
    json_decref(v->about);
    tec_heap_put(v->heap, v);
}

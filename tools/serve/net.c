#include "tools/serve/net.h"

#include "tools/serve/listen.h"

#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    HANDSHAKES = 128, /* sockets beyond the connections: handshakes in progress, /healthz */
    HANDSHAKE_S = 5,
    CHUNK = 1 << 16,
    GOODBYE_MS = 500,
    TRY_AGAIN_LATER = 1013
};
_Static_assert(TEC_REPLY_HEAD >= LWS_PRE, "a frame's header fits before a reply");

static const char error_reason[] = "Internal server error. Traceback included in previous frame.";

/* What libwebsockets keeps for each socket. */
struct session {
    struct tec_slot *slot; /* NULL before the handshake */
};

static int close_with(struct lws *wsi, int code, const char *reason)
{
    lws_close_reason(wsi, (enum lws_close_status)code, (unsigned char *)(uintptr_t)reason,
                     strlen(reason));
    return -1;
}

/* A message that has begun must end, a reply must be taken: by then. The timer is never taken back,
 * it looks what there is to wait for when it rings. */
static int64_t watch(const struct tec_net *net, struct lws *wsi)
{
    lws_set_timer_usecs(wsi, (lws_usec_t)net->options.stall_s * LWS_US_PER_SEC);
    return tec_clock_now(&net->clock) + net->options.stall_s * 1000000000LL;
}

/* Deadlines of replies ------------------------------------------------------------------------ */

static void attend(struct tec_net *net, int slot);

static void alarm_rings(lws_sorted_usec_list_t *list)
{
    struct tec_net_alarm *alarm = lws_container_of(list, struct tec_net_alarm, list);
    attend(alarm->net, alarm->watch.slot->job);
}

/* Something has changed for a slot, or its alarm has rung. */
static void attend(struct tec_net *net, int slot)
{
    struct tec_net_alarm *alarm = &net->alarms[slot];
    int64_t now = tec_clock_now(&net->clock);
    if (tec_watch_look(&alarm->watch, now))
        lws_callback_on_writable(net->slots[slot].connection);
    int64_t next = tec_watch_next(&alarm->watch);
    if (next == INT64_MAX)
        lws_sul_cancel(&alarm->list);
    else
        lws_sul_schedule(net->context, 0, &alarm->list, alarm_rings,
                         next > now ? (next - now) / 1000 + 1 : 1);
}

/* A free slot; NULL when there are connections enough. */
static struct tec_slot *free_slot(const struct tec_net *net)
{
    struct tec_slot *slot = NULL;
    int there = 0;
    for (int i = 0; i < net->options.exchange->n; i++) {
        there += net->slots[i].connection != NULL;
        if (!slot && tec_slot_free(&net->slots[i]))
            slot = &net->slots[i];
    }
    return there < net->options.max_connections ? slot : NULL;
}

/* HTTP --------------------------------------------------------------------------------------- */

static int respond(struct lws *wsi, unsigned status, const char *body)
{
    unsigned char buffer[LWS_PRE + 1024], *start = buffer + LWS_PRE, *p = start,
                                          *end = buffer + sizeof buffer;
    size_t n = strlen(body);
    if (lws_add_http_common_headers(wsi, status, "text/plain; charset=utf-8", n, &p, end) ||
        lws_finalize_http_header(wsi, &p, end) || (size_t)(end - p) < n)
        return -1;
    memcpy(p, body, n);
    p += n;
    if (lws_write(wsi, start, (size_t)(p - start), LWS_WRITE_HTTP_FINAL) < 0)
        return -1;
    return 0;
}

static int answer_http(struct lws *wsi, const char *path)
{
    int bad = strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0
                  ? respond(wsi, 200, "OK\n")
                  : respond(wsi, 426, "This is a WebSocket server; /healthz tells its health.\n");
    return bad || lws_http_transaction_completed(wsi) ? -1 : 0;
}

/* Only WebSocket, and only while there is room. */
static int confirm_upgrade(const struct tec_net *net, struct lws *wsi, const char *to)
{
    if (strcmp(to, "websocket") != 0)
        return -1;
    if (net->leaving || !free_slot(net))
        return respond(wsi, 503, "Every connection is taken.\n") ? -1 : 1;
    return 0;
}

/* WebSocket ---------------------------------------------------------------------------------- */

static int established(struct tec_net *net, struct lws *wsi, struct session *session)
{
    struct tec_slot *slot = free_slot(net);
    if (!slot)
        return -1;
    session->slot = slot;
    tec_slot_open(slot, wsi, tec_clock_now(&net->clock));
    tec_watch_open(&net->alarms[slot->job].watch);
    net->stats.connections++;
    lws_callback_on_writable(wsi);
    return 0;
}

static int refuse(struct tec_net *net, struct lws *wsi, struct tec_slot *slot, int code,
                  const char *reason)
{
    net->stats.errors++;
    slot->closing = true;
    return close_with(wsi, code, reason);
}

static int received(struct tec_net *net, struct lws *wsi, struct tec_slot *slot, const void *in,
                    size_t n)
{
    size_t rest = lws_remaining_packet_payload(wsi);
    if (slot->closing || slot->state == TEC_SLOT_ENDING)
        return 0;
    if (slot->early) /* a third one: reading goes on for the sake of pings, so it cannot wait */
        return refuse(net, wsi, slot, LWS_CLOSE_STATUS_POLICY_VIOLATION,
                      "too many requests at once");
    if (lws_is_first_fragment(wsi)) {
        slot->filling.n = 0;
        slot->filling.is_text = !lws_frame_is_binary(wsi);
        slot->whole_by_ns = watch(net, wsi);
    }
    if (n > net->options.max_message - slot->filling.n ||
        rest > net->options.max_message - slot->filling.n - n)
        return refuse(net, wsi, slot, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "message too big");
    if (!tec_slot_append(slot, in, n))
        return refuse(net, wsi, slot, TRY_AGAIN_LATER, "no memory for the message");
    if (rest || !lws_is_final_fragment(wsi))
        return 0;
    slot->whole_by_ns = 0;
    tec_watch_whole(&net->alarms[slot->job].watch, tec_clock_now(&net->clock));
    attend(net, slot->job);
    return 0;
}

static void sent(struct tec_net *net, struct lws *wsi, struct tec_slot *slot)
{
    slot->taken_by_ns = 0;
    if (slot->exchange->jobs[slot->job].failed) {
        slot->state = TEC_SLOT_ENDING;
        lws_callback_on_writable(wsi);
        return;
    }
    tec_watch_sent(&net->alarms[slot->job].watch, tec_clock_now(&net->clock));
    attend(net, slot->job);
}

static int send_reply(struct tec_net *net, struct lws *wsi, struct tec_slot *slot)
{
    const struct tec_job *job = &slot->exchange->jobs[slot->job];
    if (net->alarms[slot->job].watch.replied)
        net->stats.substitutes++;
    else
        tec_serve_stats_add(&net->stats, job, tec_clock_now(&net->clock));
    slot->state = TEC_SLOT_SENDING;
    if (lws_write(wsi, job->reply, job->reply_n, job->failed ? LWS_WRITE_TEXT : LWS_WRITE_BINARY) <
        (int)job->reply_n)
        return -1;
    if (!lws_partial_buffered(wsi)) {
        sent(net, wsi, slot);
        return 0;
    }
    slot->taken_by_ns = watch(net, wsi);
    lws_callback_on_writable(wsi);
    return 0;
}

static int writable(struct tec_net *net, struct lws *wsi, struct tec_slot *slot)
{
    if (slot->closing)
        return 0;
    if (net->leaving)
        return close_with(wsi, LWS_CLOSE_STATUS_GOINGAWAY, "the server ends");
    if (!slot->greeted) {
        slot->greeted = true;
        if (lws_write(wsi, net->hello, net->hello_n, LWS_WRITE_BINARY) < (int)net->hello_n)
            return -1;
        if (slot->state == TEC_SLOT_ANSWERED)
            lws_callback_on_writable(wsi);
        return 0;
    }
    switch (slot->state) {
    case TEC_SLOT_ANSWERED:
        return send_reply(net, wsi, slot);
    case TEC_SLOT_SENDING:
        sent(net, wsi, slot);
        return 0;
    case TEC_SLOT_ENDING:
        return close_with(wsi, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, error_reason);
    default:
        return 0;
    }
}

static int rang(struct tec_net *net, struct lws *wsi, struct tec_slot *slot)
{
    int64_t by = slot->whole_by_ns ? slot->whole_by_ns : slot->taken_by_ns;
    if (slot->taken_by_ns && slot->taken_by_ns < by)
        by = slot->taken_by_ns;
    int64_t left = by - tec_clock_now(&net->clock);
    if (by == 0 || slot->closing)
        return 0;
    if (left <= 0)
        return refuse(net, wsi, slot, LWS_CLOSE_STATUS_POLICY_VIOLATION,
                      slot->taken_by_ns == by ? "the reply is not taken"
                                              : "the message does not end");
    lws_set_timer_usecs(wsi, left / 1000 + 1);
    return 0;
}

static void left(struct tec_net *net, struct tec_slot *slot)
{
    tec_slot_leave(slot);
    attend(net, slot->job);
}

/* What the engine has done since. */
static void collect(struct tec_net *net)
{
    int job;
    while ((job = tec_exchange_collect(net->options.exchange)) >= 0) {
        if (tec_watch_collected(&net->alarms[job].watch, tec_clock_now(&net->clock)))
            lws_callback_on_writable(net->slots[job].connection);
        attend(net, job);
    }
}

/* Files: the listener and the signals. */
static void readable(struct tec_net *net, const struct lws *wsi)
{
    struct signalfd_siginfo info;
    if (wsi == net->signals) {
        if (read(net->options.signals, &info, sizeof info) == (ssize_t)sizeof info)
            tec_exchange_end(net->options.exchange);
        return;
    }
    for (int fd; wsi == net->listener && (fd = tec_listen_accept(net->options.listener)) >= 0;) {
        if (net->sockets >= net->options.max_connections + HANDSHAKES)
            tec_listen_refuse(fd);
        else
            lws_adopt_socket(net->context, fd);
    }
}

static int on_socket(struct tec_net *net, struct lws *wsi, enum lws_callback_reasons reason,
                     struct session *session, void *in, size_t n)
{
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        return established(net, wsi, session);
    case LWS_CALLBACK_RECEIVE:
        return received(net, wsi, session->slot, in, n);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return writable(net, wsi, session->slot);
    case LWS_CALLBACK_TIMER:
        return rang(net, wsi, session->slot);
    case LWS_CALLBACK_CLOSED:
        if (session->slot)
            left(net, session->slot);
        session->slot = NULL;
        return 0;
    default:
        return 0;
    }
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t n)
{
    struct tec_net *net = lws_context_user(lws_get_context(wsi));
    struct session *session = user;
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
    case LWS_CALLBACK_RECEIVE:
    case LWS_CALLBACK_SERVER_WRITEABLE:
    case LWS_CALLBACK_TIMER:
    case LWS_CALLBACK_CLOSED:
        return session && (session->slot || reason == LWS_CALLBACK_ESTABLISHED)
                   ? on_socket(net, wsi, reason, session, in, n)
                   : 0;
    case LWS_CALLBACK_HTTP:
        return answer_http(wsi, in);
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return confirm_upgrade(net, wsi, in);
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        collect(net);
        return 0;
    case LWS_CALLBACK_RAW_RX_FILE:
        readable(net, wsi);
        return 0;
    case LWS_CALLBACK_WSI_CREATE:
        net->sockets++;
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        net->sockets--;
        return 0;
    default:
        return lws_callback_http_dummy(wsi, reason, user, in, n);
    }
}

static const struct lws_protocols protocols[] = {
    {.name = "openpi",
     .callback = on_event,
     .per_session_data_size = sizeof(struct session),
     .rx_buffer_size = CHUNK},
    {.name = NULL},
};

/* No pings of the server's own: libwebsockets 4.1 may lose the answer to a client's ping that is
 * under way then, and the client gives up. Dead peers are TCP's to find (listen.c). */
static const lws_retry_bo_t no_pings = {.secs_since_valid_ping = 0, .secs_since_valid_hangup = 0};

/* The thread ----------------------------------------------------------------------------------- */

static void say_goodbye(struct tec_net *net)
{
    int left = 1;
    net->leaving = true;
    for (int i = 0; i < net->options.exchange->n; i++)
        if (net->slots[i].connection)
            lws_callback_on_writable(net->slots[i].connection);
    for (int ms = 0; ms < GOODBYE_MS && left; ms++) {
        left = 0;
        lws_service(net->context, -1);
        for (int i = 0; i < net->options.exchange->n; i++)
            left += net->slots[i].connection != NULL;
        usleep(left ? 1000 : 0);
    }
}

static void *run(void *user)
{
    struct tec_net *net = user;
    while (!atomic_load(&net->stopping) && lws_service(net->context, 0) >= 0)
        continue;
    tec_exchange_end(net->options.exchange);
    while (!atomic_load(&net->stopping))
        usleep(1000); /* the service failed by itself: the engine may still wake it */
    collect(net);
    say_goodbye(net);
    return NULL;
}

static void wake(void *user)
{
    const struct tec_net *net = user;
    lws_cancel_service(net->context);
}

static enum tec_status take_memory(struct tec_net *net, struct tec_error *err)
{
    const struct tec_net_options *o = &net->options;
    enum { HELLO = 1 << 16 };
    net->slots = TEC_NEW(&net->arena, (size_t)o->exchange->n, struct tec_slot);
    net->hello = tec_arena_push(&net->arena, LWS_PRE + HELLO, 1, 64);
    net->alarms = TEC_NEW(&net->arena, (size_t)o->exchange->n, struct tec_net_alarm);
    if (!net->slots || !net->hello || !net->alarms)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d connections", o->max_connections);
    for (int i = 0; i < o->exchange->n; i++) {
        net->slots[i] = (struct tec_slot){.heap = o->heap, .exchange = o->exchange, .job = i};
        net->alarms[i].net = net;
        TEC_TRY(tec_watch_create(&net->alarms[i].watch, &o->watch, &net->slots[i], &net->arena,
                                 &net->moment, err));
    }
    net->hello += LWS_PRE;
    struct tec_reply_buffer hello = {.data = net->hello, .room = HELLO};
    tec_reply_pack_json(&hello, o->metadata);
    net->hello_n = hello.n;
    if (hello.full)
        return tec_fail(err, TEC_UNSUPPORTED, "the robot's metadata: more than %d bytes", HELLO);
    return TEC_OK;
}

static struct lws *adopt(struct tec_net *net, int fd)
{
    lws_sock_file_fd_type file = {.filefd = fd};
    return lws_adopt_descriptor_vhost(lws_get_vhost_by_name(net->context, "default"),
                                      LWS_ADOPT_RAW_FILE_DESC, file, protocols[0].name, NULL);
}

static enum tec_status open_context(struct tec_net *net, struct tec_error *err)
{
    const struct tec_net_options *o = &net->options;
    const struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .protocols = protocols,
        .vhost_name = "default",
        .gid = -1,
        .uid = -1,
        .user = net,
        .timeout_secs = HANDSHAKE_S,
        .timeout_secs_ah_idle = HANDSHAKE_S,
        .keepalive_timeout = HANDSHAKE_S,
        .pt_serv_buf_size = CHUNK,
        .fd_limit_per_thread = (unsigned)(o->max_connections + HANDSHAKES + 32),
        .retry_and_idle_policy = &no_pings,
        .server_string = "tectum",
    };
    lws_set_log_level(0, NULL);
    net->context = lws_create_context(&info);
    if (!net->context)
        return tec_fail(err, TEC_NO_MEMORY, "libwebsockets does not start");
    net->listener = adopt(net, o->listener);
    net->signals = o->signals >= 0 ? adopt(net, o->signals) : NULL;
    if (!net->listener || (o->signals >= 0 && !net->signals))
        return tec_fail(err, TEC_NO_MEMORY, "libwebsockets does not take the listening socket");
    return TEC_OK;
}

enum tec_status tec_net_start(struct tec_net *net, const struct tec_net_options *options,
                              struct tec_error *err)
{
    *net = (struct tec_net){.options = *options};
    tec_arena_init(&net->arena, options->heap);
    tec_arena_init(&net->moment, options->heap);
    options->exchange->wake = wake;
    options->exchange->user = net;
    enum tec_status status = take_memory(net, err);
    if (status == TEC_OK)
        status = open_context(net, err);
    if (status == TEC_OK && pthread_create(&net->thread, NULL, run, net) != 0)
        status = tec_fail(err, TEC_NO_MEMORY, "the connection thread does not start");
    net->started = status == TEC_OK;
    if (status != TEC_OK && net->context)
        lws_context_destroy(net->context);
    return status;
}

void tec_net_stop(struct tec_net *net)
{
    if (net->started) {
        atomic_store(&net->stopping, true);
        lws_cancel_service(net->context);
        pthread_join(net->thread, NULL);
        lws_context_destroy(net->context);
    }
    for (int i = 0; net->slots && i < net->options.exchange->n; i++)
        tec_slot_finish(&net->slots[i]);
    net->started = false;
    net->slots = NULL;
    tec_arena_finish(&net->moment);
    tec_arena_finish(&net->arena);
}

/* net_peer.c - what the connection thread does for one socket: handshake, messages, replies. */
#include "tools/serve/net_peer.h"
#include "tools/serve/http.h"

#include <string.h>
#include <sys/socket.h>

/* So long without a request, and a connection may give its place away; so long it may then take to
 * be told so. */
enum { IDLE_S = 10, GOODBYE_S = 1 };

enum { TRY_AGAIN_LATER = 1013 /* a close code */ };

static const char error_reason[] = "Internal server error. Traceback included in previous frame.";

static int close_with(struct lws *wsi, int code, const char *reason)
{
    lws_close_reason(wsi, (enum lws_close_status)code, (unsigned char *)(uintptr_t)reason,
                     strlen(reason));
    return -1;
}

/* A message that has begun must be complete, and a reply taken, by a time limit. The timer is never
 * cancelled; when it fires it checks what is still waited for. */
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
    pthread_mutex_lock(&alarm->net->turn);
    attend(alarm->net, alarm->watch.slot->job);
    pthread_mutex_unlock(&alarm->net->turn);
}

/* Attend to a slot whose state has changed or whose timer has fired. */
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

/* Whether `a` is the better of two free slots: it remembers no robot, or one that left earlier. */
static bool better(const struct tec_net *net, const struct tec_slot *a, const struct tec_slot *b)
{
    bool a_knows = net->alarms[a->job].watch.name[0], b_knows = net->alarms[b->job].watch.name[0];
    return a_knows != b_knows ? b_knows : a_knows && a->began_ns < b->began_ns;
}

/* A free slot; NULL when there are connections enough. */
static struct tec_slot *free_slot(const struct tec_net *net)
{
    struct tec_slot *slot = NULL;
    int there = 0;
    for (int i = 0; i < net->options.exchange->n; i++) {
        struct tec_slot *one = &net->slots[i];
        there += one->connection && !one->replaced;
        if (tec_slot_free(one) && (!slot || better(net, one, slot)))
            slot = one;
    }
    return there < net->options.max_connections ? slot : NULL;
}

/* Handshakes ---------------------------------------------------------------------------------- */

/* List the sockets that are no WebSocket yet, in the order in which they came. */
static void handshake_begins(struct tec_net *net, struct lws *wsi)
{
    net->sockets++;
    if (net->listener && net->n_handshakes < TEC_NET_HANDSHAKES)
        net->handshakes[net->n_handshakes++] = wsi;
}

/* Forget a handshake whose socket became a WebSocket or was closed. */
static void handshake_ends(struct tec_net *net, const struct lws *wsi)
{
    int i = 0;
    while (i < net->n_handshakes && net->handshakes[i] != wsi)
        i++;
    if (i == net->n_handshakes)
        return;
    net->n_handshakes--;
    for (; i < net->n_handshakes; i++)
        net->handshakes[i] = net->handshakes[i + 1];
}

/* A new socket comes: where handshakes fill every place, the oldest one gives way, so that nobody
 * who only keeps sockets open keeps robots out. */
static void make_way(struct tec_net *net)
{
    if (net->n_handshakes < TEC_NET_HANDSHAKES)
        return;
    struct lws *oldest = net->handshakes[0];
    handshake_ends(net, oldest);
    /* The library then reads its end and closes it at once; asked to close it, it would wait some
     * seconds for the other side. */
    shutdown(lws_get_socket_fd(oldest), SHUT_RDWR);
}

/* Find the connection that has been idle for longest, at least IDLE_S; NULL: none. */
static struct tec_slot *idle_slot(struct tec_net *net)
{
    int64_t before = tec_clock_now(&net->clock) - IDLE_S * 1000000000LL;
    struct tec_slot *found = NULL;
    for (int i = 0; i < net->options.exchange->n; i++) {
        struct tec_slot *s = &net->slots[i];
        bool idle = s->connection && !s->closing && s->state == TEC_SLOT_IDLE && !s->early &&
                    !s->held && !s->whole_by_ns;
        if (idle && s->began_ns < before && (!found || s->began_ns < found->began_ns))
            found = s;
    }
    return found;
}

/* Make room for one more robot: a free slot, or that of an idle client. */
static bool find_room(struct tec_net *net)
{
    if (free_slot(net))
        return true;
    struct tec_slot *idle = idle_slot(net);
    if (!idle)
        return false;
    idle->closing = idle->replaced = true;
    lws_callback_on_writable(idle->connection);
    lws_set_timer_usecs(idle->connection, GOODBYE_S * LWS_US_PER_SEC); /* it may never be */
    return free_slot(net) != NULL;
}

/* The server ends, now or when its robots have left. */
static bool leaves(struct tec_net *net)
{
    return net->leaving || atomic_load(&net->drained_by_ns);
}

static int confirm_upgrade(struct tec_net *net, struct lws *wsi)
{
    enum tec_door door = tec_http_judge(wsi, &net->options.key);
    if (door == TEC_DOOR_OPEN && (leaves(net) || !find_room(net)))
        door = TEC_DOOR_FULL;
    return door == TEC_DOOR_OPEN ? 0 : tec_http_refuse(wsi, door);
}

/* WebSocket ---------------------------------------------------------------------------------- */

static int established(struct tec_net *net, struct lws *wsi, struct tec_net_session *session)
{
    struct tec_slot *slot = free_slot(net);
    if (!slot)
        return -1;
    session->slot = slot;
    tec_slot_open(slot, wsi, tec_clock_now(&net->clock));
    net->alarms[slot->job].fd = lws_get_socket_fd(wsi);
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

/* A text that nobody asked for by this request, where the socket has nothing to do. Another comes
 * when this one has gone; who does not read is closed as with a reply. */
static int send_text(struct tec_net *net, struct lws *wsi, struct tec_slot *slot)
{
    struct tec_push *pushes = &slot->exchange->pushes[slot->job];
    struct tec_push_message *m = tec_push_first(pushes, slot->client);
    if (!m)
        return 0;
    int wrote = lws_write(wsi, m->bytes + TEC_PUSH_HEAD, m->n, LWS_WRITE_BINARY);
    bool whole = wrote >= (int)m->n;
    tec_push_drop(pushes); /* what the socket did not take, the library has copied */
    if (!whole)
        return -1;
    slot->pushing = lws_partial_buffered(wsi);
    if (slot->pushing)
        slot->taken_by_ns = watch(net, wsi);
    lws_callback_on_writable(wsi);
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
    if (net->leaving || tec_push_first(&slot->exchange->pushes[slot->job], slot->client))
        lws_callback_on_writable(wsi);
}

static int send_reply(struct tec_net *net, struct lws *wsi, struct tec_slot *slot)
{
    const struct tec_job *job = &slot->exchange->jobs[slot->job];
    if (net->alarms[slot->job].watch.replied)
        net->stats.requests++, net->stats.substitutes++;
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

/* A reply goes before texts that wait, but for the one that says that there are no more messages of
 * texts: behind it none comes. One at its deadline waits for nothing. */
static bool last_texts_first(const struct tec_net *net, const struct tec_slot *slot)
{
    const struct tec_watch *w = &net->alarms[slot->job].watch;
    return w->wants_streams && !w->replied &&
           tec_push_first(&slot->exchange->pushes[slot->job], slot->client);
}

static int writable(struct tec_net *net, struct lws *wsi, struct tec_slot *slot)
{
    if (slot->replaced)
        return close_with(wsi, TRY_AGAIN_LATER, "idle: the place was given to another robot");
    if (slot->closing)
        return 0;
    slot->taken_by_ns = slot->pushing ? 0 : slot->taken_by_ns;
    slot->pushing = false;
    bool replies = slot->state == TEC_SLOT_ANSWERED || slot->state == TEC_SLOT_SENDING;
    if (net->leaving && !(slot->greeted && replies))
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
        return last_texts_first(net, slot) ? send_text(net, wsi, slot) : send_reply(net, wsi, slot);
    case TEC_SLOT_SENDING:
        sent(net, wsi, slot);
        return 0;
    case TEC_SLOT_ENDING:
        return close_with(wsi, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, error_reason);
    default:
        return send_text(net, wsi, slot);
    }
}

static int rang(struct tec_net *net, struct lws *wsi, struct tec_slot *slot)
{
    int64_t by = slot->whole_by_ns ? slot->whole_by_ns : slot->taken_by_ns;
    if (slot->taken_by_ns && slot->taken_by_ns < by)
        by = slot->taken_by_ns;
    int64_t left = by - tec_clock_now(&net->clock);
    if (slot->replaced) /* it reads nothing: the library sees the end, and closes at once */
        shutdown(lws_get_socket_fd(wsi), SHUT_RDWR);
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

void tec_net_collect(struct tec_net *net)
{
    int job;
    while ((job = tec_exchange_collect(net->options.exchange)) >= 0) {
        if (tec_watch_collected(&net->alarms[job].watch, tec_clock_now(&net->clock)))
            lws_callback_on_writable(net->slots[job].connection);
        attend(net, job);
    }
    for (int i = 0; i < net->options.exchange->n; i++) {
        struct tec_slot *slot = &net->slots[i];
        if (slot->connection && tec_push_first(&slot->exchange->pushes[i], slot->client))
            lws_callback_on_writable(slot->connection);
    }
}

/* The listener has new sockets. A few each turn: those that gave way for them are closed between
 * turns, and must not add up to more than TEC_NET_SPARE. */
static void readable(struct tec_net *net, const struct lws *wsi)
{
    for (int n = 0; wsi == net->listener && n < TEC_NET_SPARE / 2; n++) {
        int fd = tec_listen_accept(&net->options.listener);
        if (fd < 0)
            return;
        make_way(net);
        if (net->sockets >= tec_net_sockets(net->options.max_connections))
            tec_listen_refuse(fd);
        else
            lws_adopt_socket(net->context, fd); /* where it fails, it has closed the socket */
    }
}

static int on_socket(struct tec_net *net, struct lws *wsi, enum lws_callback_reasons reason,
                     struct tec_net_session *session, void *in, size_t n)
{
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        handshake_ends(net, wsi);
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

int tec_net_event(struct tec_net *net, struct lws *wsi, enum lws_callback_reasons reason,
                  void *user, void *in, size_t n)
{
    struct tec_net_session *session = user;
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
        return tec_http_answer(wsi, in, &net->options.key, &net->options.metrics, leaves(net),
                               net->options.heap);
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return confirm_upgrade(net, wsi);
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        tec_net_collect(net);
        return 0;
    case LWS_CALLBACK_RAW_RX_FILE:
        readable(net, wsi);
        return 0;
    case LWS_CALLBACK_WSI_CREATE:
        handshake_begins(net, wsi);
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        handshake_ends(net, wsi);
        net->sockets--;
        return 0;
    case LWS_CALLBACK_HTTP_BODY: /* the rest of a request that was answered: closed, not read */
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return -1;
    default:
        return lws_callback_http_dummy(wsi, reason, user, in, n);
    }
}

/* net.c - the connection thread: its loop, its library, its memory. */
#include "tools/serve/net.h"
#include "tools/serve/http_context.h"
#include "tools/serve/net_peer.h"

#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, GOODBYE_MS = 500, BEAT_US = 200000 };
_Static_assert(TEC_REPLY_HEAD >= LWS_PRE, "a frame's header fits before a reply");

/* Every call into the library holds the turn lock: see tec_net_rescue. */
static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t n)
{
    struct tec_net *net = lws_context_user(lws_get_context(wsi));
    pthread_mutex_lock(&net->turn);
    int result = tec_net_event(net, wsi, reason, user, in, n);
    pthread_mutex_unlock(&net->turn);
    return result;
}

static const struct lws_protocols protocols[] = {
    {.name = "openpi",
     .callback = on_event,
     .per_session_data_size = sizeof(struct tec_net_session),
     .rx_buffer_size = CHUNK},
    {.name = NULL},
};

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

static bool any_connection(const struct tec_net *net)
{
    for (int i = 0; i < net->options.exchange->n; i++)
        if (net->slots[i].connection)
            return true;
    return false;
}

enum tec_status tec_net_schedule(struct tec_net *net, const struct tec_scheduling *how,
                                 struct tec_error *err)
{
    return tec_thread_schedule(net->thread, how, -1, err);
}

void tec_net_drain(struct tec_net *net, int64_t by_ns)
{
    atomic_store(&net->drained_by_ns, by_ns);
}

/* Where no further robot is taken: end the engine when all have left, or it is time. */
static void drain(const struct tec_net *net)
{
    int64_t by_ns = atomic_load(&net->drained_by_ns);
    if (by_ns && (!any_connection(net) || tec_clock_now(&net->clock) >= by_ns))
        tec_runtime_end(net->options.exchange->engine);
}

/* Tell the guard that this thread is alive, and again in a while. */
static void beat(lws_sorted_usec_list_t *list)
{
    struct tec_net *net = lws_container_of(list, struct tec_net, beat);
    drain(net);
    if (net->options.guard)
        tec_guard_turn(net->options.guard);
    lws_sul_schedule(net->context, 0, list, beat, BEAT_US);
}

static void *run(void *user)
{
    struct tec_net *net = user;
    beat(&net->beat);
    while (!atomic_load(&net->stopping) && lws_service(net->context, 0) >= 0)
        continue;
    tec_runtime_end(net->options.exchange->engine);
    while (!atomic_load(&net->stopping)) { /* the service failed by itself: the engine may still
                                              wake it */
        beat(&net->beat);
        usleep(1000);
    }
    pthread_mutex_lock(&net->turn);
    tec_net_collect(net);
    pthread_mutex_unlock(&net->turn);
    say_goodbye(net);
    lws_sul_cancel(&net->beat);
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
        struct tec_watch *next = &net->alarms[(i + 1) % o->exchange->n].watch;
        TEC_TRY(tec_watch_create(&net->alarms[i].watch, &o->watch, &net->slots[i], &net->arena,
                                 &net->moment, err));
        net->alarms[i].watch.next = next;
    }
    net->hello += LWS_PRE;
    struct tec_reply_buffer hello = {.data = net->hello, .room = HELLO};
    tec_reply_pack_json(&hello, o->metadata);
    net->hello_n = hello.n;
    if (hello.full)
        return tec_fail(err, TEC_UNSUPPORTED, "the robot's metadata: more than %d bytes", HELLO);
    return TEC_OK;
}

static void make_turn(pthread_mutex_t *turn)
{
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(turn, &how);
    pthread_mutexattr_destroy(&how);
}

static enum tec_status open_context(struct tec_net *net, struct tec_error *err)
{
    const struct tec_http_context what = {
        .protocols = protocols,
        .user = net,
        .chunk = CHUNK,
        .sockets = (unsigned)tec_net_sockets(net->options.max_connections),
        .listener = net->options.listener.fd,
    };
    return tec_http_open(&net->context, &net->listener, &what, err);
}

enum tec_status tec_net_start(struct tec_net *net, const struct tec_net_options *options,
                              struct tec_error *err)
{
    *net = (struct tec_net){.options = *options};
    net->options.metrics.stats = &net->stats;
    net->options.metrics.safety = &options->exchange->safety;
    tec_arena_init(&net->arena, options->heap);
    tec_arena_init(&net->moment, options->heap);
    make_turn(&net->turn);
    options->exchange->wake = wake;
    options->exchange->user = net;
    enum tec_status status = take_memory(net, err);
    if (status == TEC_OK)
        status = open_context(net, err);
    if (status == TEC_OK && pthread_create(&net->thread, NULL, run, net) != 0)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for the connection thread");
    if (status != TEC_OK) {
        if (net->context)
            lws_context_destroy(net->context);
        pthread_mutex_destroy(&net->turn);
        tec_arena_finish(&net->moment);
        tec_arena_finish(&net->arena);
        net->slots = NULL;
    }
    net->started = status == TEC_OK;
    return status;
}

void tec_net_stop(struct tec_net *net)
{
    if (net->started) {
        atomic_store(&net->stopping, true);
        lws_cancel_service(net->context);
        pthread_join(net->thread, NULL);
        lws_context_destroy(net->context);
        pthread_mutex_lock(&net->turn); /* a rescue that has begun ends first */
        pthread_mutex_unlock(&net->turn);
        close(net->options.listener.spare);
    }
    for (int i = 0; net->slots && i < net->options.exchange->n; i++)
        tec_slot_finish(&net->slots[i]);
    net->started = false;
    net->slots = NULL;
    tec_buffer_finish(&net->options.metrics.graph);
    tec_arena_finish(&net->moment);
    tec_arena_finish(&net->arena);
}

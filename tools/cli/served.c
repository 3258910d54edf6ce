/* served.c - a pipeline that is served: its ports, its engine's robots, what is told of it. */
#include "tools/cli/served.h"

#include "base/json_text.h"
#include "base/number.h"
#include "graph/live/watchdog.h"
#include "tools/serve/describe.h"
#include "tools/serve/net_rescue.h"
#include "tools/serve/service_manager.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_MESSAGE_MIB = 64,
    MAX_CONNECTIONS = 16,
    STALL_S = 30,
    MIB = 1 << 20,
    DESCRIPTORS = 64 /* work besides connections: control, memory, files that are read */
};

#define LOCAL "127.0.0.1"

void tec_served_init(struct tec_served *s, struct tec_invocation *call,
                     const struct tec_served_options *options, const char *path)
{
    *s = (struct tec_served){
        .o = *options, .own = *call, .path = path, .listener = {.fd = -1, .spare = -1}};
    s->call = &s->own;
    s->own.args = (struct tec_words){1, &s->path}; /* a recording says what it is of */
    pthread_mutex_init(&s->telling, NULL);
}

/* The i-th port from one that is asked for; what is no port, any and none stay as they are. */
static const char *port_of(struct tec_arena *arena, const char *asked, int i)
{
    int64_t n;
    bool counts = asked && tec_number_parse(asked, &n) && n > 0 && n <= 65535;
    return counts ? tec_arena_printf(arena, "%lld", (long long)n + i) : asked;
}

enum tec_status tec_served_tell_apart(struct tec_served *s, int i, const char *name,
                                      struct tec_error *err)
{
    struct tec_arena *arena = s->call->arena;
    struct tec_served_options *o = &s->o;
    static const char mcap[] = ".mcap";
    char first[16];
    snprintf(first, sizeof first, "%d", TEC_SERVED_PORT);
    size_t n = o->seen.file ? strlen(o->seen.file) : 0, end = sizeof mcap - 1;
    size_t stem = n > end && strcmp(o->seen.file + n - end, mcap) == 0 ? n - end : n;
    s->own.verb = tec_arena_printf(arena, "%s %s", s->own.verb, name);
    o->port = port_of(arena, o->port ? o->port : i ? first : NULL, i);
    o->gateways.act = port_of(arena, o->gateways.act, i);
    o->gateways.groot = port_of(arena, o->gateways.groot, i);
    o->seen.view = port_of(arena, o->seen.view, i);
    if (o->control.path)
        o->control.path = tec_arena_printf(arena, "%s.%s", o->control.path, name);
    if (o->seen.file)
        o->seen.file = tec_arena_printf(arena, "%.*s.%s%s", (int)stem, o->seen.file, name,
                                        o->seen.file + stem);
    o->control.prefix = tec_arena_printf(arena, "%s-", name);
    bool all = s->own.verb && (o->port || !i) && o->control.prefix;
    return all ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the names of %s", name);
}

static int or_else(int given, int otherwise)
{
    return given ? given : otherwise;
}

/* Of each protocol as many as are asked for; those of the gateways are clients of the server too.
 */
static int connections(const struct tec_served_options *o)
{
    return or_else(o->max_connections, MAX_CONNECTIONS) * (1 + tec_gateways_count(&o->gateways));
}

static enum tec_status read_port(int *port, const char *text, struct tec_error *err)
{
    int64_t n = TEC_SERVED_PORT;
    if (text && (!tec_number_parse(text, &n) || n < 0 || n > 65535))
        return tec_fail(err, TEC_INVALID, "--port: '%.40s' is not a whole number, 0 to 65535",
                        text);
    *port = (int)n;
    return TEC_OK;
}

/* The first message of a connection is the robot's, with what the server says of itself. */
static enum tec_status read_metadata(struct tec_served *job, struct tec_error *err)
{
    const struct tec_worker *w = &job->worker;
    const struct tec_robot *robot = tec_session_robot(w->opened.engine->session);
    json_t *own = tec_serve_describe(w->opened.pipeline, w->opened.engine->session, "actions",
                                     w->rows, w->columns);
    job->metadata = robot && robot->metadata
                        ? json_loads(robot->metadata, JSON_REJECT_DUPLICATES, NULL)
                        : json_object();
    bool good = own && job->metadata && json_object_set(job->metadata, "tectum", own) == 0;
    json_decref(own);
    return good ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the robot's metadata");
}

static bool rescue(void *user)
{
    struct tec_served *job = user;
    return tec_net_rescue(&job->net);
}

/* Print a line on stderr about misses, limits or a stop, if one is due; true if one was printed. */
static bool tell(struct tec_served *job, int64_t now)
{
    char text[640];
    bool any = tec_safety_tell(&job->exchange.safety, &job->told, now, job->call->verb, text,
                               sizeof text) > 0;
    if (any)
        tec_guard_say(text);
    return any;
}

static void look(void *user)
{
    static const struct tec_clock clock = {NULL};
    struct tec_served *job = user;
    pthread_mutex_lock(&job->telling);
    if (!job->summed)
        tell(job, tec_clock_now(&clock));
    pthread_mutex_unlock(&job->telling);
}

static void sum_up(struct tec_served *job)
{
    pthread_mutex_lock(&job->telling);
    job->summed = true;
    while (tell(job, INT64_MAX / 2)) /* print the line that was not due yet */
        continue;
    tec_serve_stats_print(&job->net.stats, &job->exchange.safety,
                          tec_cli_policy_in_use(&job->worker.opened), job->worker.opened.engine,
                          job->call);
    pthread_mutex_unlock(&job->telling);
}

/* Print the last message of a program that ends because its connection thread hangs. */
static void lost(void *user)
{
    const struct tec_served *job = user;
    char text[128];
    int n = snprintf(text, sizeof text, "tectum %.60s: %lld requests and %lld errors until then\n",
                     job->call->verb, (long long)job->net.stats.requests,
                     (long long)job->net.stats.errors);
    ssize_t written = write(2, text, (size_t)n);
    (void)written;
}

/* The deadline node says what a reply holds at its deadline; replies may have fewer rows than a
 * chunk. */
static struct tec_watch_options watch_options(const struct tec_served *job)
{
    const struct tec_worker *w = &job->worker;
    const struct tec_pipeline *p = w->opened.pipeline;
    const struct tec_decl_deadline *d = tec_watchdog_deadline(p, 0);
    for (int i = 0; i < p->n_nodes && !d; i++) /* of a pipeline of text */
        if (p->nodes[i].deadline.kind == TEC_DEADLINE_HARD)
            d = &p->nodes[i].deadline;
    struct tec_action_output_options output =
        tec_watchdog_output(w->opened.engine, 0, d, job->o.actions);
    output.rows = w->rows;
    if (!job->o.actions && output.actions > w->rows)
        output.actions = w->rows;
    const struct tec_decl_node *actor = tec_pipeline_action(p, 0);
    return (struct tec_watch_options){.acts = w->rows > 0 && w->columns > 0,
                                      .node = actor ? actor->name : NULL,
                                      .deadline_ns =
                                          d && !job->o.late_ok ? (int64_t)(d->ms * 1e6) : 0,
                                      .output = output};
}

static enum tec_status start_net(struct tec_served *job, struct tec_error *err)
{
    const struct tec_served_options *o = &job->o;
    TEC_TRY(read_metadata(job, err));
    TEC_TRY(tec_listen_start(&job->listener, &job->port, err));
    const size_t mib = (size_t)or_else(o->max_message_mib, MAX_MESSAGE_MIB);
    struct tec_listener own = job->listener;
    own.patience_s = or_else(o->stall_s, STALL_S);
    job->listener = (struct tec_listener){.fd = -1, .spare = -1}; /* given */
    struct tec_listener listener;
    TEC_TRY(tec_tls_front_door(&job->front, &own, tec_net_sockets(connections(o)), &listener, err));
    const struct tec_net_options net = {.exchange = &job->exchange,
                                        .heap = job->call->heap,
                                        .listener = listener,
                                        .key = job->key,
                                        .guard = &job->guard,
                                        .max_message = mib * MIB,
                                        .max_connections = connections(o),
                                        .watch = watch_options(job),
                                        .stall_s = or_else(o->stall_s, STALL_S),
                                        .metrics = {.engine = job->worker.opened.engine,
                                                    .figures = &job->worker.runtime.figures,
                                                    .pipeline = job->worker.opened.pipeline->name,
                                                    .recorder = &job->worker.runtime.recorder},
                                        .metadata = job->metadata};
    return tec_net_start(&job->net, &net, err);
}

enum tec_status tec_served_ready(const struct tec_served *job, struct tec_error *err)
{
    const struct tec_worker *w = &job->worker;
    const char *name = w->opened.pipeline->name, *policy = tec_used_policy(&w->opened);
    FILE *out = job->call->out;
    enum tec_status status = TEC_OK;
    const char *s = job->front.context ? "s" : "";
    char url[400], act[400] = "", groot[400] = "";
    snprintf(url, sizeof url, "ws%s://%s:%d", s, job->host, job->port);
    if (job->o.gateways.act)
        snprintf(act, sizeof act, "http%s://%s:%d/act", s, job->host, job->gateways.act_port);
    if (job->o.gateways.groot)
        snprintf(groot, sizeof groot, "tcp://%s:%d", job->host, job->gateways.groot_port);
    if (job->call->shared.format == TEC_FORMAT_JSON) {
        json_t *line =
            json_pack("{s:o, s:s, s:o, s:i, s:i}", "serving", tec_json_shown(name), "url", url,
                      "policy", tec_json_shown(policy), "rows", w->rows, "columns", w->columns);
        if (act[0])
            json_object_set_new(line, "act", json_string(act));
        if (groot[0])
            json_object_set_new(line, "groot", json_string(groot));
        status = tec_json_print(out, line, JSON_COMPACT, "the line of a server", err);
        json_decref(line);
    } else {
        fprintf(out, "serving %s on %s%s%s%s%s (policy %s, actions [%d, %d])\n", name, url,
                act[0] ? " and " : "", act, groot[0] ? " and " : "", groot, policy, w->rows,
                w->columns);
    }
    fflush(out);
    return status;
}

/* The socket: the service manager's, else one of our own. */
static enum tec_status listen_on(struct tec_served *job, int inherited, struct tec_error *err)
{
    const struct tec_served_options *o = &job->o;
    int port = 0;
    TEC_TRY(read_port(&port, o->port, err));
    if (inherited >= 0)
        tec_listen_inherit(&job->listener, inherited);
    if (inherited < 0)
        TEC_TRY(tec_listen_bind(&job->listener, o->host ? o->host : LOCAL, port, "--port", err));
    tec_listen_address(&job->listener, job->address, sizeof job->address);
    const char *host = o->host ? o->host : LOCAL, *open = strchr(host, ':') ? "[" : "";
    if (inherited >= 0)
        snprintf(job->host, sizeof job->host, "%s", job->address);
    else
        snprintf(job->host, sizeof job->host, "%s%.300s%s", open, host, *open ? "]" : "");
    if (!o->key && !tec_listen_is_local(&job->listener))
        tec_say(job->call,
                "%s is not this machine alone, and no --key is given: whoever reaches "
                "the port can move the robot",
                job->host);
    job->is_seen_afar = job->front.context && job->key.n && !tec_listen_is_local(&job->listener);
    if (job->front.context && o->gateways.groot && !tec_listen_is_local(&job->listener))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "--groot-port: GR00T's protocol has no TLS: beside --tls-cert it is spoken "
                        "on this machine alone, and --host is %s",
                        job->host);
    return TEC_OK;
}

/* They ask this server as any other client does. */
static enum tec_status start_gateways(struct tec_served *job, struct tec_error *err)
{
    const struct tec_served_options *o = &job->o;
    const struct tec_session *session = job->worker.opened.engine->session;
    const struct tec_gateways_options of = {
        .names = {tec_session_robot(session), tec_session_dataset(session)},
        .rows = job->worker.rows,
        .host = job->address,
        .port = job->port,
        .key = job->key,
        .front = job->front.context ? &job->front : NULL,
        .heap = job->call->heap,
        .max_message = (size_t)or_else(o->max_message_mib, MAX_MESSAGE_MIB) * MIB,
        .max_connections = or_else(o->max_connections, MAX_CONNECTIONS),
        .stall_s = or_else(o->stall_s, STALL_S)};
    TEC_TRY(tec_gateways_start(&job->gateways, &of, err));
    return tec_tls_front_start(&job->front, err);
}

/* --- from outside ------------------------------------------------------------------------------
 */

enum tec_status tec_served_judge(struct tec_served *job, struct tec_error *err)
{
    TEC_TRY(job->o.key ? tec_key_read(&job->key, job->o.key, err) : TEC_OK);
    TEC_TRY(tec_tls_front_open(&job->front, &job->o.tls, job->call->verb, job->call->heap, err));
    return tec_recording_asked_check(&job->o.seen, err);
}

int tec_served_descriptors(const struct tec_served *job)
{
    int sockets = tec_net_sockets(connections(&job->o));
    return DESCRIPTORS + sockets +
           tec_gateways_descriptors(&job->o.gateways,
                                    or_else(job->o.max_connections, MAX_CONNECTIONS)) +
           tec_tls_descriptors(&job->front, sockets + TEC_GATEWAY_PLACES +
                                                (job->o.seen.view ? TEC_VIEW_SOCKETS : 0));
}

enum tec_status tec_served_bind(struct tec_served *job, int inherited, struct tec_error *err)
{
    TEC_TRY(listen_on(job, inherited, err));
    TEC_TRY(tec_gateways_bind(&job->gateways, &job->o.gateways, job->address, err));
    struct tec_control_options control = job->o.control;
    control.safety = &job->exchange.safety;
    control.recorder = &job->worker.runtime.recorder;
    control.mode = TEC_RECORDING_SERVED;
    return tec_control_open(&job->control, job->call, &control, err);
}

enum tec_status tec_served_open(struct tec_served *job, struct tec_turns *turns,
                                const struct tec_served *before, struct tec_error *err)
{
    const struct tec_worker_options worker = {.exchange = &job->exchange,
                                              .n = 2 * connections(&job->o),
                                              .limit_rows = job->o.limit_rows,
                                              .actions = job->o.actions,
                                              .default_prompt = job->o.default_prompt,
                                              .turns = turns,
                                              .before = before ? &before->worker : NULL};
    return tec_worker_open(&job->worker, job->call, job->path, &worker, err);
}

enum tec_status tec_served_start(struct tec_served *job, void (*end)(void *user), void *user,
                                 struct tec_error *err)
{
    TEC_TRY(start_net(job, err));
    const struct tec_guard_options guard = {.end = end,
                                            .ending = user,
                                            .rescue = rescue,
                                            .lost = lost,
                                            .look = look,
                                            .user = job,
                                            .verb = job->call->verb,
                                            .drain_s = job->o.drain_s};
    if (!tec_guard_start(&job->guard, &guard))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the thread for signals");
    TEC_TRY(tec_control_start(&job->control, &job->worker.opened, err));
    const struct tec_safety *safety = &job->exchange.safety;
    const struct tec_recording_options recording = {
        .mode = TEC_RECORDING_SERVED,
        .opened = &job->worker.opened,
        .recorder = &job->worker.runtime.recorder,
        .figures = &job->worker.runtime.figures,
        .runtime = &job->worker.runtime,
        .stops = {&safety->stops, &safety->resets, &safety->stopped},
        .not_begun = safety->not_begun};
    job->afar = (struct tec_view_afar){job->address, &job->front, &job->key};
    TEC_TRY(tec_recording_asked_open(&job->worker.recording, &job->worker.view, &job->o.seen,
                                     job->is_seen_afar ? &job->afar : NULL, &recording, err));
    return start_gateways(job, err);
}

enum tec_status tec_served_schedule(struct tec_served *job, const struct tec_scheduling *how,
                                    struct tec_error *err)
{
    TEC_TRY(tec_net_schedule(&job->net, how, err));
    return tec_tls_front_schedule(&job->front, how, err);
}

void tec_served_leave(struct tec_served *job)
{
    tec_gateways_leave(&job->gateways);
    if (job->o.drain_s)
        tec_net_drain(&job->net, tec_clock_now(&job->net.clock) + job->o.drain_s * 1000000000LL);
    else
        tec_runtime_end(&job->worker.runtime);
}

void tec_served_end(struct tec_served *job)
{
    tec_worker_settle(&job->worker);
    tec_gateways_leave(&job->gateways);
    tec_tls_front_leave(&job->front);
    tec_net_stop(&job->net);
    tec_control_close(&job->control);
    sum_up(job);
}

enum tec_status tec_served_close(struct tec_served *job, enum tec_status status,
                                 struct tec_error *err)
{
    tec_tls_front_leave(&job->front);
    tec_net_stop(&job->net);
    status = tec_recording_asked_close(job->worker.recording, job->worker.view, status, err);
    tec_control_close(&job->control);
    tec_listen_close(&job->listener);
    tec_guard_stop(&job->guard);
    tec_gateways_stop(&job->gateways);
    tec_tls_front_stop(&job->front);
    json_decref(job->metadata);
    return status;
}

void tec_served_finish(struct tec_served *job)
{
    pthread_mutex_destroy(&job->telling);
    tec_worker_close(&job->worker);
}

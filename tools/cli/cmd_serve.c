/* cmd_serve.c - openpi's server: robots connect, send what they see, and are told what to do. */
#include "base/json_text.h"
#include "base/number.h"
#include "graph/live/watchdog.h"
#include "tools/cli/realtime.h"
#include "tools/control/control.h"
#include "tools/gateway/gateways.h"
#include "tools/record/asked.h"
#include "tools/serve/describe.h"
#include "tools/serve/listen.h"
#include "tools/serve/net.h"
#include "tools/serve/service_manager.h"
#include "tools/serve/worker.h"
#include "tools/tls/front.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PORT = 8000,
    MAX_MESSAGE_MIB = 64,
    MAX_CONNECTIONS = 16,
    STALL_S = 30,
    MIB = 1 << 20,
    DESCRIPTORS = 64 /* work besides connections: control, memory, files that are read */
};

#define LOCAL "127.0.0.1"

struct serve_options {
    const char *port, *host, *key, *default_prompt;
    struct tec_gateways_asked gateways;
    struct tec_tls_asked tls;
    struct tec_control_options control;
    struct tec_recording_asked seen;
    struct tec_realtime realtime;
    int max_message_mib, max_connections, limit_rows, stall_s, drain_s, actions;
    bool late_ok;
};

#define AT(member) offsetof(struct serve_options, member)
static const struct tec_option options[] = {
    {"port", 'p', TEC_OPTION_TEXT, "N", "8000; 0 = any that is free, printed", AT(port), 0, 0},
    {"act-port", 0, TEC_OPTION_TEXT, "N",
     "POST /act too, as OpenVLA's servers have it; 0 = any that is free", AT(gateways.act), 0, 0},
    {"groot-port", 0, TEC_OPTION_TEXT, "N",
     "GR00T's protocol over ZeroMQ too; 0 = any that is free", AT(gateways.groot), 0, 0},
    {"host", 0, TEC_OPTION_TEXT, "ADDRESS",
     "to listen on; 127.0.0.1, this machine alone; 0.0.0.0: every interface", AT(host), 0, 0},
    {"key", 0, TEC_OPTION_TEXT, "FILE",
     "its first line is what clients must send as Authorization: Api-Key KEY", AT(key), 0, 0},
    {"tls-cert", 0, TEC_OPTION_TEXT, "FILE",
     "wss:// and https:// alone: the certificate and those above it, PEM", AT(tls.cert), 0, 0},
    {"tls-key", 0, TEC_OPTION_TEXT, "FILE", "its private key, PEM, readable by its owner alone",
     AT(tls.key), 0, 0},
    {"default-prompt", 0, TEC_OPTION_TEXT, "TEXT", "for requests without one", AT(default_prompt),
     0, 0},
    {"limit-rows", 0, TEC_OPTION_INT, "N", "at most N rows of actions in a reply; all",
     AT(limit_rows), 1, 1 << 20},
    {"actions", 0, TEC_OPTION_INT, "N",
     "rows that a client carries out between requests, see doc/deadlines.md; all", AT(actions), 1,
     1 << 20},
    {"late-ok", 0, TEC_OPTION_FLAG, NULL,
     "hand out actions that are late, in place of what on_miss says", AT(late_ok), 0, 0},
    {"max-message-mib", 0, TEC_OPTION_INT, "N", "larger messages are refused; 64",
     AT(max_message_mib), 1, 1024},
    {"max-connections", 0, TEC_OPTION_INT, "N", "of each protocol; further ones are told 503; 16",
     AT(max_connections), 1, 1024},
    {"stall-s", 0, TEC_OPTION_INT, "N",
     "seconds for a message to be whole, a reply to be taken; 30", AT(stall_s), 1, 86400},
    {"drain-s", 0, TEC_OPTION_INT, "N",
     "seconds after SIGTERM in which robots may finish; none are taken meanwhile; 0", AT(drain_s),
     1, 86400},
    TEC_REALTIME_ROWS(AT(realtime)),
    TEC_RECORDING_ROWS(AT(seen)),
    {"control", 0, TEC_OPTION_TEXT, "PATH", "a socket for `tectum policy load` and the like",
     AT(control.path), 0, 0},
    {"dump-dir", 0, TEC_OPTION_TEXT, "DIR",
     "for the flight recorder after a miss, and a quarantined policy's frames",
     AT(control.dump_dir), 0, 0},
};

/* The state of one call of the verb. */
struct job {
    const struct serve_options *o;
    struct tec_invocation *call;
    struct tec_exchange exchange;
    struct tec_worker worker;
    struct tec_net net;
    struct tec_guard guard;
    struct tec_control control;
    struct tec_view *view;
    struct tec_listener listener;
    struct tec_gateways gateways;
    struct tec_tls_front front;
    struct tec_key key;
    struct tec_scheduling scheduling;
    bool is_scheduled;
    struct tec_safety_log told;
    pthread_mutex_t telling; /* guards the guard's lines and the summary, which is the last line */
    bool summed;
    json_t *metadata;
    char host[320];   /* of its URL */
    char address[80]; /* the same in numbers */
    int port;
};

static int or_else(int given, int otherwise)
{
    return given ? given : otherwise;
}

/* Of each protocol as many as are asked for; those of the gateways are clients of the server too.
 */
static int connections(const struct serve_options *o)
{
    return or_else(o->max_connections, MAX_CONNECTIONS) * (1 + tec_gateways_count(&o->gateways));
}

static enum tec_status read_port(int *port, const char *text, struct tec_error *err)
{
    int64_t n = PORT;
    if (text && (!tec_number_parse(text, &n) || n < 0 || n > 65535))
        return tec_fail(err, TEC_INVALID, "--port: '%.40s' is not a whole number, 0 to 65535",
                        text);
    *port = (int)n;
    return TEC_OK;
}

/* The first message of a connection is the robot's, with what the server says of itself. */
static enum tec_status read_metadata(struct job *job, struct tec_error *err)
{
    const struct tec_worker *w = &job->worker;
    const struct tec_robot *robot = tec_session_robot(w->opened.engine->session);
    json_t *own = tec_serve_describe(w->opened.pipeline, robot, "actions", w->rows, w->columns);
    job->metadata = robot && robot->metadata
                        ? json_loads(robot->metadata, JSON_REJECT_DUPLICATES, NULL)
                        : json_object();
    bool good = own && job->metadata && json_object_set(job->metadata, "tectum", own) == 0;
    json_decref(own);
    return good ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the robot's metadata");
}

/* A signal has come: the robots leave, if they are given time, the running frame is finished, then
 * the program ends. */
static void end(void *user)
{
    struct job *job = user;
    tec_service_notify("STOPPING=1");
    tec_gateways_leave(&job->gateways);
    if (job->o->drain_s)
        tec_net_drain(&job->net, tec_clock_now(&job->net.clock) + job->o->drain_s * 1000000000LL);
    else
        tec_runtime_end(&job->worker.runtime);
}

static bool rescue(void *user)
{
    struct job *job = user;
    return tec_net_rescue(&job->net);
}

/* Print a line on stderr about misses, limits or a stop, if one is due; true if one was printed. */
static bool tell(struct job *job, int64_t now)
{
    char text[256];
    bool any = tec_safety_tell(&job->exchange.safety, &job->told, now, text, sizeof text) > 0;
    if (any)
        tec_guard_say(text);
    return any;
}

static void look(void *user)
{
    static const struct tec_clock clock = {NULL};
    struct job *job = user;
    pthread_mutex_lock(&job->telling);
    if (!job->summed)
        tell(job, tec_clock_now(&clock));
    pthread_mutex_unlock(&job->telling);
}

static void sum_up(struct job *job)
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
    const struct job *job = user;
    char text[128];
    int n = snprintf(text, sizeof text, "tectum serve: %lld requests and %lld errors until then\n",
                     (long long)job->net.stats.requests, (long long)job->net.stats.errors);
    ssize_t written = write(2, text, (size_t)n);
    (void)written;
}

/* The deadline node says what a reply holds at its deadline; replies may have fewer rows than a
 * chunk. */
static struct tec_watch_options watch_options(const struct job *job)
{
    const struct tec_worker *w = &job->worker;
    const struct tec_pipeline *p = w->opened.pipeline;
    const struct tec_decl_deadline *d = tec_watchdog_deadline(p, 0);
    for (int i = 0; i < p->n_nodes && !d; i++) /* of a pipeline of text */
        if (p->nodes[i].deadline.kind == TEC_DEADLINE_HARD)
            d = &p->nodes[i].deadline;
    struct tec_action_output_options output =
        tec_watchdog_output(w->opened.engine, 0, d, job->o->actions);
    output.rows = w->rows;
    if (!job->o->actions && output.actions > w->rows)
        output.actions = w->rows;
    return (struct tec_watch_options){.acts = w->rows > 0 && w->columns > 0,
                                      .deadline_ns =
                                          d && !job->o->late_ok ? (int64_t)(d->ms * 1e6) : 0,
                                      .output = output};
}

static enum tec_status start(struct job *job, struct tec_error *err)
{
    const struct serve_options *o = job->o;
    tec_guard_hold_signals(&job->guard);
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
    TEC_TRY(tec_net_start(&job->net, &net, err));
    const struct tec_guard_options guard = {.end = end,
                                            .rescue = rescue,
                                            .lost = lost,
                                            .look = look,
                                            .user = job,
                                            .drain_s = job->o->drain_s};
    return tec_guard_start(&job->guard, &guard)
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for the thread for signals");
}

/* Print the one line that a parent process waits for: the server takes connections. */
static enum tec_status say_ready(const struct job *job, struct tec_error *err)
{
    const struct tec_worker *w = &job->worker;
    const char *name = w->opened.pipeline->name, *policy = tec_used_policy(&w->opened);
    FILE *out = job->call->out;
    enum tec_status status = TEC_OK;
    const char *s = job->front.context ? "s" : "";
    char url[400], act[400] = "", groot[400] = "";
    snprintf(url, sizeof url, "ws%s://%s:%d", s, job->host, job->port);
    if (job->o->gateways.act)
        snprintf(act, sizeof act, "http%s://%s:%d/act", s, job->host, job->gateways.act_port);
    if (job->o->gateways.groot)
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
static enum tec_status listen_on(struct job *job, struct tec_error *err)
{
    const struct serve_options *o = job->o;
    int port = 0, inherited = -1;
    TEC_TRY(read_port(&port, o->port, err));
    TEC_TRY(tec_service_socket(&inherited, err));
    if (inherited >= 0)
        tec_listen_inherit(&job->listener, inherited);
    if (inherited >= 0 && (o->port || o->host))
        return tec_fail(err, TEC_INVALID,
                        "the service manager hands over a socket: leave out --port and --host");
    if (inherited < 0)
        TEC_TRY(tec_listen_bind(&job->listener, o->host ? o->host : LOCAL, port, err));
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
    if (job->front.context && o->gateways.groot && !tec_listen_is_local(&job->listener))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "--groot-port: GR00T's protocol has no TLS: beside --tls-cert it is spoken "
                        "on this machine alone, and --host is %s",
                        job->host);
    return TEC_OK;
}

/* They ask this server as any other client does. */
static enum tec_status start_gateways(struct job *job, struct tec_error *err)
{
    const struct serve_options *o = job->o;
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

/* The last before the first frame: threads that are started later inherit nothing of it, but for
 * those of the frame thread, which starts none. */
static enum tec_status schedule(struct job *job, struct tec_error *err)
{
    TEC_TRY(tec_realtime_lock(&job->o->realtime, err));
    if (!job->is_scheduled)
        return TEC_OK;
    const struct tec_scheduling above = tec_scheduling_above(&job->scheduling);
    TEC_TRY(tec_net_schedule(&job->net, &above, err));
    TEC_TRY(tec_tls_front_schedule(&job->front, &above, err));
    return tec_engine_schedule(job->worker.opened.engine, pthread_self(), &job->scheduling, err);
}

static enum tec_status serve(struct job *job, struct tec_error *err)
{
    const struct serve_options *o = job->o;
    TEC_TRY(tec_realtime_read(&o->realtime, &job->scheduling, &job->is_scheduled, err));
    TEC_TRY(o->key ? tec_key_read(&job->key, o->key, err) : TEC_OK);
    TEC_TRY(tec_tls_front_open(&job->front, &o->tls, job->call->heap, err));
    TEC_TRY(tec_recording_asked_check(&o->seen, err));
    const int each = or_else(o->max_connections, MAX_CONNECTIONS);
    TEC_TRY(tec_listen_descriptors(
        DESCRIPTORS + tec_net_sockets(connections(o)) +
            tec_gateways_descriptors(&o->gateways, each) +
            tec_tls_descriptors(&job->front, tec_net_sockets(connections(o)) + TEC_GATEWAY_PLACES),
        err));
    TEC_TRY(listen_on(job, err));
    TEC_TRY(tec_gateways_bind(&job->gateways, &o->gateways, job->address, err));
    struct tec_control_options control = o->control;
    control.safety = &job->exchange.safety;
    control.recorder = &job->worker.runtime.recorder;
    control.mode = TEC_RECORDING_SERVED;
    TEC_TRY(tec_control_open(&job->control, job->call, &control, err));
    TEC_TRY(tec_worker_open(&job->worker, job->call, job->call->args.item[0], &job->exchange,
                            2 * connections(o), o->limit_rows, o->default_prompt, err));
    TEC_TRY(start(job, err));
    TEC_TRY(tec_control_start(&job->control, &job->worker.opened, err));
    const struct tec_recording_options recording = {.mode = TEC_RECORDING_SERVED,
                                                    .opened = &job->worker.opened,
                                                    .recorder = &job->worker.runtime.recorder};
    TEC_TRY(
        tec_recording_asked_open(&job->worker.recording, &job->view, &o->seen, &recording, err));
    TEC_TRY(start_gateways(job, err));
    TEC_TRY(schedule(job, err));
    TEC_TRY(say_ready(job, err));
    tec_service_notify("READY=1");
    tec_worker_run(&job->worker);
    tec_gateways_leave(&job->gateways);
    tec_tls_front_leave(&job->front);
    tec_net_stop(&job->net);
    tec_control_close(&job->control);
    sum_up(job);
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    struct job *job = tec_arena_push(call->arena, 1, sizeof *job, 64);
    if (!job)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a server");
    job->o = call->options;
    job->call = call;
    job->listener = (struct tec_listener){.fd = -1, .spare = -1};
    pthread_mutex_init(&job->telling, NULL);
    enum tec_status status = serve(job, err);
    tec_tls_front_leave(&job->front);
    tec_net_stop(&job->net);
    status = tec_recording_asked_close(job->worker.recording, job->view, status, err);
    tec_control_close(&job->control);
    tec_listen_close(&job->listener);
    tec_guard_stop(&job->guard);
    tec_gateways_stop(&job->gateways);
    tec_tls_front_stop(&job->front);
    json_decref(job->metadata);
    pthread_mutex_destroy(&job->telling);
    tec_worker_close(&job->worker);
    return status;
}

const struct tec_command tec_command_serve = {
    .usage = "serve [options] FILE",
    .about =
        "Speaks the protocol of openpi's policy server: the unmodified openpi-client works; with\n"
        "--act-port OpenVLA's POST /act as well. FILE is a pipeline, or a folder as LeRobot saves "
        "it.\n"
        "A client is answered in its turn; what it sends beside the robot's inputs is\n"
        "ignored, but for the map `tectum` {seed, noise, tasks, deadline_ms, ...}. GET /healthz\n"
        "answers OK. It listens on this machine alone unless --host says otherwise; --key asks\n"
        "clients for a key, --tls-cert and --tls-key encrypt. Ends at SIGINT, SIGTERM or SIGHUP\n"
        "with a line of figures on standard error, with --format json as an object on standard\n"
        "output.\n",
    .example = "  tectum serve pipelines/demo_metaworld.lua --host 127.0.0.1\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_DEVICE | TEC_TAKES_MODEL | TEC_TAKES_SET |
             TEC_TAKES_POLICY | TEC_TAKES_COSTS | TEC_TAKES_CACHE | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct serve_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a pipeline file",
    .run = run,
};

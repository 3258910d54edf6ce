/* cmd_serve.c - openpi's server: robots connect, send what they see, and are told what to do. */
#include "base/number.h"
#include "base/thread.h"
#include "tools/cli/served.h"
#include "tools/serve/service_manager.h"

#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct tec_served_options, member)
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
    const struct tec_served_options *o;
    struct tec_invocation *call;
    int n;
    struct tec_served *served[TEC_MAX_TURNS]; /* [n] */
    struct tec_turns turns;
    struct tec_control_signals signals;
    struct tec_scheduling scheduling;
    bool is_scheduled;
    pthread_mutex_t leaving; /* who hears a signal makes the robots leave while nothing is closed */
    bool closes;
};

/* --- several pipelines -------------------------------------------------------------------------
 */

/* What is of one model cannot be said of several. */
static enum tec_status refuse_of_one(const struct tec_shared *s, struct tec_error *err)
{
    const struct {
        const char *option, *given;
    } of_one[] = {{"weights", s->weights},
                  {"adapter", s->adapter},
                  {"tokenizer", s->tokenizer},
                  {"embodiment", s->embodiment},
                  {"costs", s->costs}};
    for (size_t i = 0; i < sizeof of_one / sizeof of_one[0]; i++)
        if (of_one[i].given)
            return tec_fail(err, TEC_INVALID,
                            "--%s is of one pipeline: of several each FILE names its own",
                            of_one[i].option);
    return TEC_OK;
}

/* The name of a pipeline, which is to be part of paths. */
static enum tec_status name_of(const char **name, struct job *job, const char *path,
                               struct tec_error *err)
{
    struct tec_opened opened;
    struct tec_engine_options unused;
    TEC_TRY(tec_cli_open_options(&opened, &unused, job->call, path, NULL, err));
    *name = tec_arena_strdup(job->call->arena, opened.pipeline->name);
    tec_close_engine(&opened);
    if (!*name)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the name of %s", path);
    return strchr(*name, '/') ? tec_fail(err, TEC_INVALID,
                                         "%s: the name '%.60s' cannot be part of a path, as it is "
                                         "where several pipelines are served",
                                         path, *name)
                              : TEC_OK;
}

static enum tec_status tell_apart(struct job *job, struct tec_error *err)
{
    const char *names[TEC_MAX_TURNS];
    TEC_TRY(refuse_of_one(&job->call->shared, err));
    for (int i = 0; i < job->n; i++) {
        TEC_TRY(name_of(&names[i], job, job->served[i]->path, err));
        for (int other = 0; other < i; other++)
            if (strcmp(names[i], names[other]) == 0)
                return tec_fail(err, TEC_INVALID,
                                "%s and %s are both named '%.60s': their figures and paths would "
                                "be one",
                                job->served[other]->path, job->served[i]->path, names[i]);
        TEC_TRY(tec_served_tell_apart(job->served[i], i, names[i], err));
    }
    return TEC_OK;
}

/* Of each option the i-th FILE has the i-th port from there. Two that bind one port would find out
 * when they listen, behind the models. */
static enum tec_status keep_apart(const struct job *job, bool inherits, struct tec_error *err)
{
    const struct tec_served_options *o = job->o;
    const struct {
        const char *option, *given;
    } asked[] = {{"port", o->port},
                 {"act-port", o->gateways.act},
                 {"groot-port", o->gateways.groot},
                 {"view", o->seen.view}};
    int64_t first[sizeof asked / sizeof asked[0]] = {o->port || inherits ? 0 : TEC_SERVED_PORT};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        if (asked[i].given && !tec_number_parse(asked[i].given, &first[i]))
            first[i] = 0; /* what is no number is refused where it is read */
        for (size_t j = 0; j < i; j++)
            if (first[i] > 0 && first[j] > 0 && llabs(first[i] - first[j]) < job->n)
                return tec_fail(err, TEC_INVALID, "--%s %lld and --%s %lld would be one port%s",
                                asked[j].option, (long long)first[j], asked[i].option,
                                (long long)first[i],
                                job->n > 1 ? " of two FILEs: each has the next one" : "");
    }
    return TEC_OK;
}

/* --- the server --------------------------------------------------------------------------------
 */

/* A signal has come: the robots leave, if they are given time, the running frame is finished, then
 * the program ends. */
static void end(void *user)
{
    struct job *job = user;
    tec_service_notify("STOPPING=1");
    pthread_mutex_lock(&job->leaving);
    atomic_store(&job->turns.drains, true);
    for (int i = 0; i < job->n && !job->closes; i++)
        tec_served_leave(job->served[i]);
    pthread_mutex_unlock(&job->leaving);
}

/* The mirror of the start: who hears signals closes last, so that one that finds a close hanging
 * still ends the program. */
static enum tec_status close_all(struct job *job, enum tec_status status, struct tec_error *err)
{
    pthread_mutex_lock(&job->leaving);
    job->closes = true;
    pthread_mutex_unlock(&job->leaving);
    for (int i = job->n - 1; i >= 0; i--)
        status = tec_served_close(job->served[i], status, err);
    for (int i = job->n - 1; i >= 0; i--)
        tec_served_finish(job->served[i]);
    pthread_mutex_destroy(&job->leaving);
    return status;
}

/* Everything that can be refused before a model is read, which takes minutes. */
static enum tec_status prepare(struct job *job, struct tec_error *err)
{
    int descriptors = 0, inherited[TEC_MAX_TURNS];
    TEC_TRY(tec_realtime_read(&job->o->realtime, &job->scheduling, &job->is_scheduled, err));
    if (job->n > 1)
        TEC_TRY(tell_apart(job, err));
    for (int i = 0; i < job->n; i++) {
        TEC_TRY(tec_served_judge(job->served[i], err));
        descriptors += tec_served_descriptors(job->served[i]);
    }
    TEC_TRY(tec_listen_descriptors(descriptors, err));
    TEC_TRY(tec_service_sockets(inherited, job->n, err));
    if (inherited[0] >= 0 && (job->o->port || job->o->host))
        return tec_fail(err, TEC_INVALID,
                        "the service manager hands over a socket: leave out --port and --host");
    TEC_TRY(keep_apart(job, inherited[0] >= 0, err));
    for (int i = 0; i < job->n; i++)
        TEC_TRY(tec_served_bind(job->served[i], inherited[i], err));
    return TEC_OK;
}

/* The last before the first frame: threads that are started later inherit nothing of it, but for
 * those of the frame thread, which starts none. */
static enum tec_status schedule(struct job *job, struct tec_error *err)
{
    TEC_TRY(tec_realtime_lock(&job->o->realtime, err));
    const struct tec_scheduling above = tec_scheduling_above(&job->scheduling);
    for (int i = 0; i < job->n && job->is_scheduled; i++) {
        TEC_TRY(tec_served_schedule(job->served[i], &above, err));
        TEC_TRY(tec_engine_schedule(job->served[i]->worker.opened.engine, pthread_self(),
                                    &job->scheduling, err));
    }
    return TEC_OK;
}

static enum tec_status serve(struct job *job, struct tec_error *err)
{
    TEC_TRY(prepare(job, err));
    for (int i = 0; i < job->n; i++) {
        struct tec_served *s = job->served[i];
        enum tec_status status =
            tec_served_open(s, &job->turns, i ? job->served[i - 1] : NULL, err);
        if (status != TEC_OK)
            return job->n > 1 ? tec_context(err, status, "%s", s->path) : status;
    }
    tec_guard_hold_signals(&job->served[0]->guard);
    for (int i = job->n - 1; i >= 0; i--) /* who hears signals comes last: they are for all */
        TEC_TRY(tec_served_start(job->served[i], i ? NULL : end, job, err));
    TEC_TRY(schedule(job, err));
    for (int i = 0; i < job->n; i++)
        TEC_TRY(tec_served_ready(job->served[i], err));
    tec_thread_warm_stack();
    tec_service_notify("READY=1");
    tec_turns_work(&job->turns);
    for (int i = 0; i < job->n; i++)
        tec_served_end(job->served[i]);
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    struct job *job = TEC_NEW(call->arena, 1, struct job);
    struct tec_served *served = TEC_NEW(call->arena, (size_t)call->args.n, struct tec_served);
    if (!job || !served)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a server");
    job->o = call->options;
    job->call = call;
    job->n = call->args.n;
    call->warns = true;
    for (int i = 0; i < job->n; i++) {
        job->served[i] = &served[i];
        tec_served_init(&served[i], call, job->o, call->args.item[i]);
        served[i].o.control.signals = &job->signals;
        served[i].o.control.hears = i == 0;
    }
    pthread_mutex_init(&job->leaving, NULL);
    return close_all(job, serve(job, err), err);
}

const struct tec_command tec_command_serve = {
    .usage = "serve [options] FILE...",
    .about =
        "Speaks the protocol of openpi's policy server: the unmodified openpi-client works; with\n"
        "--act-port OpenVLA's POST /act as well. FILE is a pipeline, or a folder as LeRobot saves "
        "it.\n"
        "A client is answered in its turn; what it sends beside the robot's inputs is\n"
        "ignored, but for the map `tectum` {seed, noise, tasks, deadline_ms, ...}. GET /healthz\n"
        "answers OK. It listens on this machine alone unless --host says otherwise; --key asks\n"
        "clients for a key, --tls-cert and --tls-key encrypt. Ends at SIGINT, SIGTERM or SIGHUP\n"
        "with a line of figures on standard error, with --format json as an object on standard\n"
        "output. Of several FILEs each has the next port; actions of all go before the language of "
        "any.\n",
    .example = "  tectum serve pipelines/demo_metaworld.lua --host 127.0.0.1\n"
               "  tectum serve arm.lua planner.lua --port 8000   # ports 8000 and 8001\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_DEVICE | TEC_TAKES_MODEL | TEC_TAKES_SET |
             TEC_TAKES_POLICY | TEC_TAKES_COSTS | TEC_TAKES_CACHE | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct tec_served_options),
    .min_args = 1,
    .max_args = TEC_MAX_TURNS,
    .args = "a pipeline file",
    .offers = "PIPELINE",
    .run = run,
};

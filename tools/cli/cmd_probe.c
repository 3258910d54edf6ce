/* cmd_probe.c - one observation, recorded or drawn, to an openpi server, and where the time went.
 */
#include "base/json_text.h"
#include "tools/client/socket.h"
#include "tools/probe/probe.h"
#include "tools/serve/key.h"

#include <stddef.h>

enum { COUNT = 20, CONNECT_S = 10, REPLY_S = 60 };

struct probe_options {
    const char *recording, *key, *ca_file, *server_name;
    int count;
    double timeout;
};

#define AT(member) offsetof(struct probe_options, member)
static const struct tec_option options[] = {
    {"recording", 0, TEC_OPTION_TEXT, "FILE.mcap",
     "its first observation is sent; without it one that is drawn from --seed", AT(recording), 0,
     0},
    {"count", 'n', TEC_OPTION_INT, "N", "requests that count; 20", AT(count), 1, TEC_PROBE_MOST},
    {"timeout", 0, TEC_OPTION_NUMBER, "SECONDS",
     "longest wait for the server's first message, and for each reply; 10, and 60", AT(timeout),
     0.001, 3600},
    {"key", 0, TEC_OPTION_TEXT, "FILE", "its first line is the server's key", AT(key), 0, 0},
    {"ca-file", 0, TEC_OPTION_TEXT, "FILE.pem",
     "whose certificates are believed, in place of the system's: authorities', or the server's own",
     AT(ca_file), 0, 0},
    {"server-name", 0, TEC_OPTION_TEXT, "NAME",
     "what the server's certificate must be for; the URL's host", AT(server_name), 0, 0},
};

static json_t *or_null(int64_t us)
{
    return us < 0 ? json_null() : json_integer(us);
}

static void print_line(FILE *out, const char *name, int64_t us, const char *what)
{
    if (us >= 0)
        fprintf(out, "%-9s %10.2f ms   %s\n", name, (double)us / 1e3, what);
}

static enum tec_status tell(struct tec_invocation *call, const struct tec_probe_times *t,
                            struct tec_error *err)
{
    if (call->shared.format == TEC_FORMAT_TEXT) {
        fprintf(call->out, "%s: %d requests, actions [%d, %d]; medians\n", call->args.item[0], t->n,
                t->rows, t->columns);
        print_line(call->out, "client", t->client, "from the first byte out to the last one in");
        print_line(call->out, "", t->client_p99, "p99 of it");
        print_line(call->out, "wire", t->wire, "network, and waiting for the engine");
        print_line(call->out, "decode", t->decode, "the message");
        print_line(call->out, "prepare", t->prepare, "pictures, state and prompt");
        print_line(call->out, "model", t->model, "until the actions left");
        print_line(call->out, "finish", t->finish, "the reply");
        if (t->rows == 0 && t->columns > 0)
            fprintf(call->out, "the newest reply has no actions: the robot is stopped, or they "
                               "were late\n");
        return TEC_OK;
    }
    json_t *json =
        json_pack("{s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:[i, i]}", "n", t->n, "client_us",
                  (json_int_t)t->client, "client_p99_us", (json_int_t)t->client_p99, "wire_us",
                  or_null(t->wire), "decode_us", or_null(t->decode), "prepare_us",
                  or_null(t->prepare), "model_us", or_null(t->model), "finish_us",
                  or_null(t->finish), "actions", t->rows, t->columns);
    enum tec_status status =
        tec_json_print(call->out, json, JSON_COMPACT, "the times of a server", err);
    json_decref(json);
    return status;
}

/* The values of the first tick that has an observation. */
static enum tec_status first_observation(struct tec_recorded *r, struct tec_recorded_frame *frame,
                                         struct tec_error *err)
{
    enum tec_recorded_message what;
    char node[120];
    bool more = true;
    while (more) {
        json_t *json = NULL;
        enum tec_status status = tec_recorded_next(r, &what, frame, &json, node, &more, err);
        json_decref(json);
        TEC_TRY(tec_context(err, status, "%s", r->file->path));
        if (more && what == TEC_RECORDED_TICK && frame->again.given.values &&
            frame->again.session == 0)
            return TEC_OK;
    }
    return tec_fail(err, TEC_MALFORMED, "%s: there is no observation in it", r->file->path);
}

/* Where the URL asks for TLS, whom to believe; zeroed otherwise. */
static enum tec_status open_trust(struct tec_client_trust *trust, const struct tec_invocation *call,
                                  struct tec_error *err)
{
    const struct probe_options *o = call->options;
    bool secure = false;
    *trust = (struct tec_client_trust){.context = NULL};
    TEC_TRY(tec_client_check_url(call->args.item[0], &secure, err));
    if (secure)
        return tec_client_trust_open(trust, o->ca_file, o->server_name, err);
    if (o->ca_file || o->server_name)
        return tec_fail(err, TEC_INVALID, "%s is for TLS, which %s does not ask for: wss://",
                        o->ca_file ? "--ca-file" : "--server-name", call->args.item[0]);
    return TEC_OK;
}

/* Milliseconds, at least one: 0 is no bound. */
static int wait_ms(const struct probe_options *o, int otherwise_s)
{
    double ms = 1e3 * (o->timeout > 0.0 ? o->timeout : otherwise_s);
    return ms < 1.0 ? 1 : (int)ms;
}

/* Send the values, or without them some that are drawn, and tell what was measured. */
static enum tec_status probe(struct tec_invocation *call, const struct tec_value *values, size_t n,
                             struct tec_error *err)
{
    const struct probe_options *o = call->options;
    struct tec_probe_times times;
    struct tec_key key = {.n = 0};
    struct tec_client_trust trust;
    TEC_TRY(o->key ? tec_key_read(&key, o->key, err) : TEC_OK);
    char text[TEC_KEY_MAX + 1];
    snprintf(text, sizeof text, "%.*s", (int)key.n, key.text);
    TEC_TRY(open_trust(&trust, call, err));
    const struct tec_probe_options options_of = {.url = call->args.item[0],
                                                 .key = o->key ? text : NULL,
                                                 .trust = &trust,
                                                 .connect_ms = wait_ms(o, CONNECT_S),
                                                 .reply_ms = wait_ms(o, REPLY_S),
                                                 .count = o->count ? o->count : COUNT,
                                                 .values = values,
                                                 .n = n,
                                                 .seed = call->shared.seed.value};
    enum tec_status status = tec_probe_run(&times, &options_of, call->heap, err);
    tec_client_trust_close(&trust);
    return status == TEC_OK ? tell(call, &times, err) : status;
}

static enum tec_status probe_recorded(struct tec_invocation *call, struct tec_recorded *r,
                                      struct tec_error *err)
{
    struct tec_recorded_frame frame;
    TEC_TRY(first_observation(r, &frame, err));
    return probe(call, frame.again.given.values, frame.again.given.n, err);
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct probe_options *o = call->options;
    struct tec_mcap_reader file;
    if (o->recording && call->shared.seed.given)
        return tec_fail(err, TEC_INVALID, "--seed: what a recording has is not drawn");
    if (!o->recording)
        return probe(call, NULL, 0, err);
    struct tec_recorded *r = TEC_NEW(call->arena, 1, struct tec_recorded);
    if (!r)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an observation");
    TEC_TRY(tec_mcap_read(&file, o->recording, err));
    tec_recorded_init(r, &file, call->heap);
    enum tec_status status = probe_recorded(call, r, err);
    tec_recorded_finish(r);
    tec_mcap_read_close(&file);
    return status;
}

const struct tec_command tec_command_probe = {
    .usage = "probe [options] URL",
    .about =
        "URL is ws://HOST:PORT of any server that speaks openpi's protocol, or wss://HOST:PORT by\n"
        "TLS, where the server must have a certificate that is believed. One observation is\n"
        "sent --count times, one after the other: the first of a recording, or one that is drawn\n"
        "from --seed to fit what a tectum server says its inputs are. Of such a server the\n"
        "breakdown is whole, of others what they say: server_timing and policy_timing. JSON: {n, "
        "client_us,\n"
        "client_p99_us, wire_us, decode_us, prepare_us, model_us, finish_us, actions [rows,\n"
        "columns]}, null for what the server does not say.\n",
    .example = "  tectum probe ws://robot:8000\n"
               "  tectum probe ws://robot:8000 --recording robot.mcap\n"
               "  tectum probe wss://robot:8000 --ca-file robot.pem\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct probe_options),
    .min_args = 1,
    .max_args = 1,
    .args = "the URL of a server",
    .run = run,
};

/* live.c - sends orders such as load and fallback to a running robot over its control socket, and
 * prints the answers. */
#include "tools/policy/live.h"

#include "base/clock.h"
#include "base/json_text.h"
#include "tools/cli/options.h"
#include "tools/control/client.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLL_MS = 50, WAIT_S = 60, QUIET_S = 2 };

/* --- requests --------------------------------------------------------------------------------- */

/* Read "NAME=NUMBER". */
static enum tec_status read_pair(const char *word, char name[40], double *value,
                                 struct tec_error *err)
{
    const char *equals = strchr(word, '=');
    char *end = NULL;
    *value = equals ? strtod(equals + 1, &end) : 0.0;
    size_t n = equals ? (size_t)(equals - word) : 0;
    if (n == 0 || n >= 40 || end == equals + 1 || *end || !isfinite(*value))
        return tec_fail(err, TEC_INVALID, "'%.60s' is not NAME=NUMBER", word);
    memcpy(name, word, n);
    name[n] = '\0';
    return TEC_OK;
}

/* Make the path absolute, because the robot may run in another folder. */
static enum tec_status whole_path(char path[PATH_MAX], const char *name, struct tec_error *err)
{
    size_t n = strlen(name);
    bool is_file = strchr(name, '/') || (n > 4 && strcmp(name + n - 4, ".lua") == 0);
    if (!is_file && n < PATH_MAX)
        memcpy(path, name, n + 1);
    else if (!realpath(name, path))
        return tec_fail(err, TEC_NOT_FOUND, "%s: %s", name, strerror(errno));
    return TEC_OK;
}

static enum tec_status add_load(struct tec_invocation *call, json_t *request, struct tec_error *err)
{
    char path[PATH_MAX], name[40];
    double value;
    json_t *params = json_object();
    json_object_set_new(request, "params", params);
    TEC_TRY(whole_path(path, call->args.item[1], err));
    json_object_set_new(request, "policy", json_string(path));
    for (int i = 0; i < call->shared.param.n; i++) {
        TEC_TRY(read_pair(call->shared.param.item[i], name, &value, err));
        json_object_set_new(params, name, json_real(value));
    }
    return TEC_OK;
}

static enum tec_status add_set(struct tec_invocation *call, json_t *request, struct tec_error *err)
{
    char name[40];
    double value;
    TEC_TRY(read_pair(call->args.item[1], name, &value, err));
    json_object_set_new(request, "param", json_string(name));
    json_object_set_new(request, "value", json_real(value));
    return TEC_OK;
}

static enum tec_status add_dump(const struct tec_live_options *o, json_t *request,
                                struct tec_error *err)
{
    char folder[PATH_MAX], path[2 * PATH_MAX];
    if (!o->out)
        return tec_fail(err, TEC_INVALID, "policy dump needs --out FILE.jsonl");
    if (!getcwd(folder, sizeof folder))
        return tec_fail(err, TEC_IO, "this folder has no path: %s", strerror(errno));
    bool whole = o->out[0] == '/';
    snprintf(path, sizeof path, "%s%s%s", whole ? "" : folder, whole ? "" : "/", o->out);
    json_object_set_new(request, "path", json_string(path));
    return TEC_OK;
}

static enum tec_status check(const struct tec_invocation *call, const struct tec_live_options *o,
                             struct tec_error *err)
{
    const struct tec_shared *s = &call->shared;
    const char *order = call->args.item[0];
    bool load = strcmp(order, "load") == 0, set = strcmp(order, "set") == 0;
    if (!o->control)
        return tec_fail(err, TEC_INVALID, "policy %s needs --control PATH, the robot's socket",
                        order);
    if (call->args.n != 1 + (load || set))
        return tec_fail(err, TEC_INVALID, "policy %s takes %s", order,
                        load  ? "one policy"
                        : set ? "one NAME=VALUE"
                              : "no argument");
    if ((!load && (s->param.n || o->wait || o->timeout_s)) || (o->timeout_s && !o->wait))
        return tec_fail(
            err, TEC_INVALID,
            "--param, --wait and --timeout-s are for policy load, the last with --wait");
    if (o->out && strcmp(order, "dump") != 0)
        return tec_fail(err, TEC_INVALID, "--out is for policy dump");
    if (s->set.n || s->policy || s->seed.given)
        return tec_fail(err, TEC_INVALID, "policy %s: the robot has its pipeline and seed already",
                        order);
    return TEC_OK;
}

static enum tec_status give(struct tec_invocation *call, const struct tec_live_options *o,
                            json_t **answer, struct tec_error *err)
{
    const char *order = call->args.item[0];
    json_t *request = json_pack("{s:s}", "cmd", order);
    enum tec_status status = TEC_OK;
    if (strcmp(order, "load") == 0)
        status = add_load(call, request, err);
    else if (strcmp(order, "set") == 0)
        status = add_set(call, request, err);
    else if (strcmp(order, "dump") == 0)
        status = add_dump(o, request, err);
    if (status == TEC_OK)
        return tec_control_ask(call->heap, o->control, request, answer, err);
    json_decref(request);
    return status;
}

/* --- waiting for a trial ---------------------------------------------------------------------- */

/* A trial that takes its time: how far it is, and whether frames come at all. */
static void tell_waiting(const struct tec_invocation *call, const json_t *load, bool frames_come,
                         int seconds)
{
    const json_t *trial = json_object_get(load, "trial");
    char so_far[80] = "";
    if (json_is_object(trial))
        snprintf(so_far, sizeof so_far, "%lld of %lld frames so far; ",
                 (long long)json_integer_value(json_object_get(trial, "frames")),
                 (long long)json_integer_value(json_object_get(trial, "of")));
    if (frames_come)
        tec_say(call, "waiting for the trial, at most %d s: %sit counts frames with an observation",
                seconds, so_far);
    else
        tec_say(call,
                "waiting for the trial, at most %d s: %sno frame in %d s; a robot without requests "
                "makes none",
                seconds, so_far, QUIET_S);
}

/* Poll the status until the trial is decided; *answer is then replaced by its `load` member. */
static enum tec_status wait_for(struct tec_invocation *call, const struct tec_live_options *o,
                                json_t **answer, struct tec_error *err)
{
    const struct tec_clock wall = {NULL};
    int seconds = o->timeout_s ? o->timeout_s : WAIT_S;
    int64_t number = json_integer_value(json_object_get(*answer, "load"));
    int64_t began = tec_clock_now(&wall), until = began + seconds * INT64_C(1000000000);
    int64_t first = -2, frame = -2; /* -1: none yet */
    for (bool told = false;;) {
        json_t *status = NULL;
        TEC_TRY(tec_control_ask(call->heap, o->control, json_pack("{s:s}", "cmd", "status"),
                                &status, err));
        json_t *load = json_incref(json_object_get(status, "load"));
        frame = json_integer_value(json_object_get(status, "frame"));
        first = first < -1 ? frame : first;
        json_decref(status);
        const char *state = json_string_value(json_object_get(load, "state"));
        int64_t now = tec_clock_now(&wall);
        if (!state || json_integer_value(json_object_get(load, "load")) != number) {
            json_decref(load);
            return tec_fail(err, TEC_INVALID, "another policy was loaded meanwhile");
        }
        if (strcmp(state, "built") != 0 && strcmp(state, "trial") != 0) {
            call->wrong = strcmp(state, "adopted") != 0;
            json_object_set_new(load, "ok", json_boolean(!call->wrong));
            json_decref(*answer);
            *answer = load;
            return TEC_OK;
        }
        if (!told && now - began > QUIET_S * INT64_C(1000000000)) {
            tell_waiting(call, load, frame != first, seconds);
            told = true;
        }
        json_decref(load);
        if (now > until)
            return tec_fail(err, TEC_TIME,
                            "the policy is still on trial after %d s; a trial takes frames: does "
                            "the robot run?",
                            seconds);
        tec_clock_wait(&wall, now + POLL_MS * INT64_C(1000000));
    }
}

/* --- what is printed -------------------------------------------------------------------------- */

static const char *text(const json_t *object, const char *field)
{
    const char *value = json_string_value(json_object_get(object, field));
    return value ? value : "";
}

static long long number(const json_t *object, const char *field)
{
    return (long long)json_number_value(json_object_get(object, field));
}

static double mean_us(const json_t *trial, const char *who)
{
    return json_number_value(json_object_get(json_object_get(trial, who), "mean"));
}

static void print_trial(const json_t *load, FILE *out)
{
    const json_t *trial = json_object_get(load, "trial");
    const char *state = text(load, "state");
    bool waits = strcmp(state, "built") == 0;
    fprintf(out, "policy '%s' version %lld: %s%s%s\n", text(load, "policy"),
            number(load, "version"), waits ? "built, waits for a frame to be tried in" : state,
            text(load, "message")[0] ? ": " : "", text(load, "message"));
    if (!json_is_object(trial))
        return;
    fprintf(out, "trial: %lld of %lld frames, %lld decided otherwise", number(trial, "frames"),
            number(trial, "of"), number(trial, "differing"));
    if (number(trial, "differing_between"))
        fprintf(out, " and %lld between observations", number(trial, "differing_between"));
    if (json_is_integer(json_object_get(trial, "first_differing")))
        fprintf(out, " (the first: frame %lld)", number(trial, "first_differing"));
    fprintf(out, "; plan %.1f us, before %.1f us on average\n", mean_us(trial, "candidate_us"),
            mean_us(trial, "policy_us"));
}

/* Print the actions that a server's clients were not given in time, by cause, those that a policy
 * left out, and whether it is stopped. */
static void print_deadlines(const json_t *d, FILE *out)
{
    const char *cause;
    json_t *n;
    fprintf(out, "deadlines: %lld missed", number(d, "missed"));
    json_object_foreach(json_object_get(d, "by_cause"), cause, n)
        fprintf(out, ", %lld because of %s", (long long)json_integer_value(n), cause);
    if (number(d, "left_out"))
        fprintf(out, "; %lld left out by the policy", number(d, "left_out"));
    fprintf(out, "%s\n",
            json_is_true(json_object_get(d, "stopped"))
                ? "; the robot is stopped until `tectum policy reset`"
                : "");
}

static void print_status(const json_t *s, FILE *out)
{
    const json_t *report = json_object_get(s, "report"), *event, *value;
    const char *name;
    size_t i;
    if (number(s, "frame") < 0)
        fprintf(out, "no frame yet: ");
    else
        fprintf(out, "frame %lld: ", number(s, "frame"));
    fprintf(out, "'%s' decides; policy '%s' version %lld%s\n", text(s, "decides"),
            text(s, "policy"), number(s, "version"),
            json_is_true(json_object_get(s, "quarantined")) ? ", quarantined"
            : json_is_true(json_object_get(s, "standby"))   ? ", stood down"
                                                            : "");
    json_object_foreach(json_object_get(s, "params"), name, value)
        fprintf(out, "  %s = %g\n", name, json_number_value(value));
    fprintf(out, "%lld calls, %lld failed, %lld slow, %lld strikes; the last plan %.1f us\n",
            number(report, "calls"), number(report, "failures"), number(report, "slow"),
            number(report, "strikes"), json_number_value(json_object_get(report, "last_us")));
    if (text(report, "message")[0])
        fprintf(out, "%s\n", text(report, "message"));
    if (json_is_object(json_object_get(s, "deadlines")))
        print_deadlines(json_object_get(s, "deadlines"), out);
    if (json_is_object(json_object_get(s, "load")))
        print_trial(json_object_get(s, "load"), out);
    json_array_foreach(json_object_get(s, "events"), i, event)
        fprintf(out, "frame %lld: %s '%s' version %lld%s%s\n", number(event, "frame"),
                text(event, "event"), text(event, "policy"), number(event, "version"),
                text(event, "message")[0] ? ": " : "", text(event, "message"));
}

static enum tec_status print(struct tec_invocation *call, const struct tec_live_options *o,
                             const json_t *answer, struct tec_error *err)
{
    const char *order = call->args.item[0];
    if (call->shared.format == TEC_FORMAT_JSON) {
        return tec_json_print(call->out, answer, JSON_REAL_PRECISION(6) | JSON_COMPACT, "an answer",
                              err);
    } else if (strcmp(order, "status") == 0) {
        print_status(answer, call->out);
    } else if (strcmp(order, "dump") == 0) {
        fprintf(call->out, "the last frames are in %s\n", text(answer, "path"));
    } else if (strcmp(order, "load") == 0 && o->wait) {
        print_trial(answer, call->out);
    } else if (strcmp(order, "load") == 0) {
        fprintf(call->out, "built; `tectum policy status` tells of its trial\n");
    } else {
        fprintf(call->out, "from the next frame on: %s\n", order);
    }
    return TEC_OK;
}

enum tec_status tec_policies_live(struct tec_invocation *call, const struct tec_live_options *o,
                                  struct tec_error *err)
{
    json_t *answer = NULL;
    TEC_TRY(check(call, o, err));
    enum tec_status status = give(call, o, &answer, err);
    if (status == TEC_OK && o->wait)
        status = wait_for(call, o, &answer, err);
    if (status == TEC_OK)
        status = print(call, o, answer, err);
    json_decref(answer);
    return status;
}

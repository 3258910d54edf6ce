/* orders.c - the requests of the control socket: each is one JSON object on a line, which is
 * checked, obeyed and answered. */
#include "base/json_text.h"
#include "tools/control/control.h"

#include "base/nearest.h"

#include <jansson.h>
#include <string.h>

/* One request. An order puts its result into `reply`, or sets `later` and answers by itself when it
 * is done. */
struct order {
    struct tec_control *c;
    int peer;
    const json_t *request;
    json_t *reply; /* NULL: {"ok": true} */
    bool later;    /* the answer comes when it is done */
};

/* Read a text member, or return NULL with `err` set when it is missing or no text. */
static const char *text_of(const struct order *o, const char *field, struct tec_error *err)
{
    const json_t *value = json_object_get(o->request, field);
    const char *text = json_string_value(value);
    if (text && text[0] && strlen(text) == json_string_length(value))
        return text;
    tec_fail(err, TEC_INVALID, "'%s' must be a text that is not empty", field);
    return NULL;
}

static enum tec_status params_of(struct tec_param_value *values, int *n, const struct order *o,
                                 struct tec_error *err)
{
    json_t *params = json_object_get(o->request, "params"), *value;
    const char *name;
    *n = 0;
    if (params && !json_is_object(params))
        return tec_fail(err, TEC_INVALID, "'params' must be an object of numbers by name");
    json_object_foreach(params, name, value)
    {
        if (!json_is_number(value))
            return tec_fail(err, TEC_INVALID, "parameter '%.40s' is not a number", name);
        if (*n == TEC_MAX_PARAMS)
            return tec_fail(err, TEC_INVALID, "a policy has at most %d parameters", TEC_MAX_PARAMS);
        values[(*n)++] = (struct tec_param_value){name, json_number_value(value)};
    }
    return TEC_OK;
}

/* --- the orders --------------------------------------------------------------------------- */

static enum tec_status obey_load(struct order *o, struct tec_error *err)
{
    struct tec_control *c = o->c;
    struct tec_param_value values[TEC_MAX_PARAMS];
    int version = 0;
    const char *policy = text_of(o, "policy", err);
    int n;
    if (!policy)
        return TEC_INVALID;
    TEC_TRY(params_of(values, &n, o, err));
    TEC_TRY(tec_canary_load(c->canary, policy, values, n, &version, err));
    c->load = (struct tec_control_load){
        .number = c->load.number + 1, .state = "built", .version = version};
    snprintf(c->load.policy, sizeof c->load.policy, "%s", policy);
    o->reply = json_pack("{s:b, s:I}", "ok", 1, "load", (json_int_t)c->load.number);
    return TEC_OK;
}

static enum tec_status obey_fallback(struct order *o, struct tec_error *err)
{
    (void)err;
    tec_canary_fallback_now(o->c->canary);
    return TEC_OK;
}

/* Reinstate the policy; a record that its quarantine stopped then continues. */
static enum tec_status obey_reinstate(struct order *o, struct tec_error *err)
{
    (void)err;
    tec_canary_reinstate(o->c->canary);
    tec_policy_go_on(tec_canary_policy(o->c->canary));
    o->c->told = NULL;
    return TEC_OK;
}

static enum tec_status obey_rollback(struct order *o, struct tec_error *err)
{
    if (!tec_canary_look(o->c->canary)->previous[0])
        return tec_fail(err, TEC_INVALID, "there is no policy before this one to go back to");
    tec_canary_rollback(o->c->canary);
    return TEC_OK;
}

static enum tec_status obey_drop(struct order *o, struct tec_error *err)
{
    struct tec_control_load *l = &o->c->load;
    if (l->number == 0 || l->judged)
        return tec_fail(err, TEC_INVALID, "there is no policy on trial");
    if (tec_canary_waits(o->c->canary)) { /* no event will report it */
        l->state = "rejected";
        l->judged = true;
        snprintf(l->message, sizeof l->message, "given up by order");
    }
    tec_canary_drop(o->c->canary);
    return TEC_OK;
}

/* An order changes a parameter from the next frame on: keep that as an event, and say it. */
static void note_set(struct tec_control *c, const char *param, double value)
{
    const struct tec_canary_status *s = tec_canary_look(c->canary);
    struct tec_canary_event event = {
        .kind = TEC_CANARY_SET, .frame = s->frame, .version = s->version};
    char was[48] = "";
    for (int i = 0; i < s->n_params; i++)
        if (strcmp(s->params[i].name, param) == 0)
            snprintf(was, sizeof was, ", was %.9g", s->params[i].value);
    snprintf(event.policy, sizeof event.policy, "%s", s->policy);
    snprintf(event.message, sizeof event.message, "%.200s = %.9g%s", param, value, was);
    c->events[c->n_events++ % TEC_CONTROL_EVENTS] = event;
    tec_say(c->call, "frame %lld: policy '%s' is set by order: %s", (long long)event.frame,
            event.policy, event.message);
}

static enum tec_status obey_set(struct order *o, struct tec_error *err)
{
    const json_t *value = json_object_get(o->request, "value");
    const char *param = text_of(o, "param", err);
    if (!param)
        return TEC_INVALID;
    if (!json_is_number(value))
        return tec_fail(err, TEC_INVALID, "'value' must be a number");
    TEC_TRY(tec_canary_set_param(o->c->canary, param, json_number_value(value), err));
    note_set(o->c, param, json_number_value(value));
    return TEC_OK;
}

static enum tec_status obey_status(struct order *o, struct tec_error *err)
{
    o->reply = tec_control_status(o->c);
    return o->reply ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for an answer");
}

static enum tec_status obey_reset(struct order *o, struct tec_error *err)
{
    if (!o->c->options.safety)
        return tec_fail(err, TEC_UNSUPPORTED, "reset: this program hands no actions to clients");
    tec_safety_reset(o->c->options.safety);
    return TEC_OK;
}

static enum tec_status obey_dump(struct order *o, struct tec_error *err)
{
    struct tec_control_dump *d = &o->c->dump;
    const char *path = text_of(o, "path", err);
    if (!path)
        return TEC_INVALID;
    if (strlen(path) >= sizeof d->path)
        return tec_fail(err, TEC_INVALID, "'path' has at most %zu bytes", sizeof d->path - 1);
    if (d->peer >= 0)
        return tec_fail(err, TEC_INVALID, "another dump is being written: come again later");
    snprintf(d->path, sizeof d->path, "%s", path);
    d->policy = tec_canary_policy(o->c->canary);
    d->since_ns = tec_clock_now(&o->c->clock);
    d->peer = o->peer;
    d->connection = o->c->peers[o->peer].number;
    o->later = true;
    return TEC_OK;
}

/* Write the flight recorder, of the last so many seconds or all that it has. */
static enum tec_status obey_recorder(struct order *o, struct tec_error *err)
{
    const json_t *last = json_object_get(o->request, "last_s");
    const char *path = text_of(o, "path", err);
    if (!path)
        return TEC_INVALID;
    if (last && (!json_is_number(last) || !(json_number_value(last) >= 0.0) ||
                 json_number_value(last) > 1e6))
        return tec_fail(err, TEC_INVALID, "'last_s' must be seconds, 0 to 1000000");
    if (!o->c->options.recorder || !o->c->program)
        return tec_fail(err, TEC_UNSUPPORTED, "recorder: this program keeps none");
    int64_t last_ns = last ? (int64_t)(json_number_value(last) * 1e9) : 0;
    return tec_recording_dump(path, o->c->program, o->c->options.recorder, o->c->options.mode,
                              last_ns, err);
}

/* --- requests ----------------------------------------------------------------------------- */

static const struct {
    const char *name, *fields;
    enum tec_status (*obey)(struct order *order, struct tec_error *err);
} orders[] = {
#define ORDER(name, fields, text) {#name, fields, obey_##name},
#include "tools/control/orders.def"
#undef ORDER
};
enum { N_ORDERS = sizeof orders / sizeof orders[0] };

/* Whether the word is one of a list "a, b". */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    if (n == 0) /* it is found everywhere, behind the list's end too */
        return false;
    for (const char *at = list; (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == ' ') && (at[n] == '\0' || at[n] == ','))
            return true;
    return false;
}

static enum tec_status find(int *out, const json_t *request, struct tec_error *err)
{
    const char *names[N_ORDERS], *cmd = json_string_value(json_object_get(request, "cmd"));
    const char *field;
    json_t *value;
    if (!cmd)
        return tec_fail(err, TEC_INVALID, "a request is an object with \"cmd\"");
    *out = N_ORDERS;
    for (int i = 0; i < N_ORDERS; i++) {
        names[i] = orders[i].name;
        if (strcmp(names[i], cmd) == 0)
            *out = i;
    }
    if (*out == N_ORDERS) {
        const char *near = tec_nearest(cmd, names, N_ORDERS);
        return tec_fail(err, TEC_INVALID, "unknown cmd '%.40s'%s", cmd, tec_meant(';', near).text);
    }
    json_object_foreach((json_t *)(uintptr_t)request, field, value)
    {
        if (strcmp(field, "cmd") != 0 && !listed(orders[*out].fields, field))
            return tec_fail(err, TEC_INVALID, "%s: unknown field '%.40s'; it takes: %s", cmd, field,
                            orders[*out].fields[0] ? orders[*out].fields : "none");
    }
    return TEC_OK;
}

static enum tec_status parse(json_t **out, const char *line, size_t n, struct tec_error *err)
{
    json_error_t where;
    *out = json_loadb(line, n, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(*out))
        return TEC_OK;
    return tec_fail(err, TEC_MALFORMED, "a request is one JSON object a line%s%.120s",
                    *out ? "" : ": ", *out ? "" : where.text);
}

void tec_control_obey(struct tec_control *c, int peer, const char *line, size_t n)
{
    struct order o = {.c = c, .peer = peer};
    struct tec_error err = {.message = ""};
    json_t *request = NULL;
    int at = 0;
    enum tec_status status = parse(&request, line, n, &err);
    o.request = request;
    if (status == TEC_OK)
        status = find(&at, request, &err);
    if (status == TEC_OK)
        status = orders[at].obey(&o, &err);
    json_decref(request);
    if (o.later && status == TEC_OK)
        return;
    if (status == TEC_OK && !o.reply)
        o.reply = json_pack("{s:b}", "ok", 1);
    tec_peer_answer(&c->peers[peer],
                    status == TEC_OK && o.reply
                        ? tec_json_whole(o.reply, JSON_COMPACT | JSON_REAL_PRECISION(6))
                        : tec_control_failure(&err));
    json_decref(o.reply);
}

/* report.c - builds the JSON answers of the control socket: failures, and the status of policies,
 * trials, events and deadlines. */
#include "base/json_text.h"
#include "tools/control/control.h"
#include "tools/frames/memory_text.h"

#include <jansson.h>
#include <string.h>

char *tec_control_failure(const struct tec_error *err)
{
    const char *text = err->message[0] ? err->message : tec_status_text(err->status);
    json_t *reply = json_pack("{s:b, s:s, s:o}", "ok", 0, "status", tec_status_name(err->status),
                              "error", tec_json_shown(text));
    char *line = reply ? tec_json_whole(reply, JSON_COMPACT) : NULL;
    json_decref(reply);
    return line;
}

static json_t *times(int64_t sum_ns, int64_t most_ns, int64_t n)
{
    return json_pack("{s:f, s:f}", "mean", n > 0 ? (double)sum_ns / 1e3 / (double)n : 0.0, "max",
                     (double)most_ns / 1e3);
}

static json_t *trial_json(const struct tec_canary_trial *t, int frames)
{
    return json_pack("{s:I, s:i, s:I, s:I, s:o, s:I, s:o, s:o}", "frames", (json_int_t)t->frames,
                     "of", frames, "differing", (json_int_t)t->differing, "differing_between",
                     (json_int_t)t->differing_between, "first_differing",
                     t->first_differing >= 0 ? json_integer(t->first_differing) : json_null(),
                     "other_answers", (json_int_t)t->other_answers, "policy_us",
                     times(t->policy_ns, t->policy_max_ns, t->frames), "candidate_us",
                     times(t->candidate_ns, t->candidate_max_ns, t->frames));
}

static json_t *named(const char *name, int version)
{
    return name[0] ? json_pack("{s:o, s:i}", "policy", tec_json_shown(name), "version", version)
                   : json_null();
}

static json_t *report_json(const struct tec_policy_report *r)
{
    return json_pack("{s:I, s:I, s:I, s:i, s:f, s:o, s:o}", "calls", (json_int_t)r->calls,
                     "failures", (json_int_t)r->failures, "slow", (json_int_t)r->slow, "strikes",
                     r->strikes, "last_us", (double)r->last_ns / 1e3, "last_failure",
                     r->last_failure >= 0 ? json_integer(r->last_failure) : json_null(), "message",
                     tec_json_shown(r->message));
}

static json_t *load_json(const struct tec_control *c, const struct tec_canary_status *s)
{
    const struct tec_control_load *l = &c->load;
    if (l->number == 0)
        return json_null();
    const struct tec_canary_trial *trial = l->judged ? &l->trial : &s->trial;
    bool tried = strcmp(l->state, "built") != 0 && (l->judged || s->candidate[0]);
    return json_pack("{s:I, s:s, s:o, s:i, s:o, s:o}", "load", (json_int_t)l->number, "state",
                     l->state, "policy", tec_json_shown(l->policy), "version", l->version, "trial",
                     tried ? trial_json(trial, s->trial_frames) : json_null(), "message",
                     tec_json_shown(l->message));
}

static json_t *events_json(const struct tec_control *c)
{
    json_t *list = json_array();
    int64_t first = c->n_events > TEC_CONTROL_EVENTS ? c->n_events - TEC_CONTROL_EVENTS : 0;
    for (int64_t i = first; i < c->n_events; i++) {
        const struct tec_canary_event *e = &c->events[i % TEC_CONTROL_EVENTS];
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:o, s:i, s:o}", "event", tec_canary_event_name(e->kind),
                            "frame", (json_int_t)e->frame, "policy", tec_json_shown(e->policy),
                            "version", e->version, "message", tec_json_shown(e->message)));
    }
    return list;
}

static json_t *params_json(const struct tec_canary_status *s)
{
    json_t *params = json_object();
    for (int i = 0; i < s->n_params; i++)
        json_object_set_new(params, s->params[i].name,
                            s->params[i].is_int ? json_integer((json_int_t)s->params[i].value)
                                                : json_real(s->params[i].value));
    return params;
}

/* The actions that a server's clients were not given by their deadline; NULL if this is no
 * server. */
static json_t *safety_json(const struct tec_safety *safety)
{
    if (!safety)
        return json_null();
    json_t *misses = json_object();
    for (int i = 0; i < TEC_CAUSES; i++)
        if (atomic_load(&safety->misses[i]) > 0)
            json_object_set_new(misses, tec_cause_name((enum tec_cause)i),
                                json_integer((json_int_t)atomic_load(&safety->misses[i])));
    return json_pack("{s:b, s:I, s:o, s:I, s:I}", "stopped", (int)atomic_load(&safety->stopped),
                     "missed", (json_int_t)tec_safety_misses(safety), "by_cause", misses, "limited",
                     (json_int_t)atomic_load(&safety->limited), "left_out",
                     (json_int_t)atomic_load(&safety->left_out));
}

json_t *tec_control_status(struct tec_control *c)
{
    const struct tec_canary_status *s = tec_canary_look(c->canary);
    return json_pack("{s:b, s:I, s:o, s:i, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "ok", 1, "frame", (json_int_t)s->frame, "policy", tec_json_shown(s->policy),
                     "version", s->version, "decides", tec_json_shown(s->decides), "quarantined",
                     (int)s->report.quarantined, "standby", (int)s->report.standby, "params",
                     params_json(s), "report", report_json(&s->report), "previous",
                     named(s->previous, s->previous_version), "candidate",
                     named(s->candidate, s->candidate_version), "load", load_json(c, s),
                     "deadlines", safety_json(c->options.safety), "memory",
                     tec_frame_memory_state_json(c->engine), "events", events_json(c));
}

/* watch.c - reports the events of policies on stderr, keeps them for clients that ask, and writes
 * the dumps of failed policies. */
#include "base/json_text.h"
#include "tools/control/control.h"

#include "base/out_file.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DUMPS = 16, HOLD_S = 5 };

/* --- dumps -------------------------------------------------------------------------------- */

/* Write a policy's record to a file. The record must be held, or no frame may run. */
static enum tec_status write_dump(struct tec_policy *policy, const char *path,
                                  struct tec_error *err)
{
    struct tec_out_file out = {0};
    TEC_TRY(tec_outfile_file_open_regular(&out, path, err));
    enum tec_status status = tec_policy_dump(policy, out.file, err);
    if (status == TEC_OK)
        status = tec_outfile_file_keep(&out, err);
    tec_outfile_file_drop(&out);
    return status;
}

static bool path_of_dump(const struct tec_control *c, const char *name, int64_t frame,
                         char path[4096])
{
    char plain[64];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof plain; n++)
        plain[n] = (char)(isalnum((unsigned char)name[n]) || name[n] == '_' ? name[n] : '-');
    plain[n] = '\0';
    const char *folder = c->options.dump_dir, *socket = c->options.path;
    const char *prefix = folder && c->options.prefix ? c->options.prefix : "";
    if (!folder && !socket)
        return false;
    return snprintf(path, 4096, "%s%s%s%s-frame%lld.jsonl", folder ? folder : socket,
                    folder ? "/" : ".", prefix, plain, (long long)frame) < 4096;
}

/* Write the record of a policy that failed; `where` receives a text that says where it is or why
 * not. */
static void keep_record(struct tec_control *c, struct tec_policy *policy, int64_t frame,
                        char where[4400])
{
    char path[4096];
    struct tec_error err = {.message = ""};
    if (!path_of_dump(c, tec_policy_name(policy), frame, path))
        snprintf(where, 4400, "give --dump-dir DIR to have its last frames written");
    else if (c->dumps >= MAX_DUMPS)
        snprintf(where, 4400, "%d dumps were written already, this one is not", MAX_DUMPS);
    else if (write_dump(policy, path, &err) != TEC_OK)
        snprintf(where, 4400, "its last frames are not written: %s", err.message);
    else
        snprintf(where, 4400, "its last frames are in %s", path);
    c->dumps += err.message[0] == '\0';
}

/* Report a quarantine once. */
static void tell_quarantine(struct tec_control *c, struct tec_policy *policy, const char *message,
                            int64_t frame)
{
    char where[4400];
    if (c->told == policy)
        return;
    c->told = policy;
    keep_record(c, policy, frame, where);
    tec_say(c->call, "%s; '%s' decides; %s", message, c->fallback, where);
}

static void answer_dump(struct tec_control *c, enum tec_status status, const struct tec_error *err)
{
    json_t *reply = status == TEC_OK
                        ? json_pack("{s:b, s:o}", "ok", 1, "path", tec_json_shown(c->dump.path))
                        : NULL;
    char *line = reply ? tec_json_whole(reply, JSON_COMPACT) : tec_control_failure(err);
    json_decref(reply);
    struct tec_peer *peer = &c->peers[c->dump.peer];
    c->dump.peer = -1;
    if (peer->fd >= 0 && peer->number == c->dump.connection)
        tec_peer_answer(peer, line);
    else
        free(line);
}

void tec_control_dump(struct tec_control *c)
{
    struct tec_error err = {.message = ""};
    struct tec_policy *policy = c->dump.policy;
    if (c->dump.peer < 0)
        return;
    int64_t waited = tec_clock_now(&c->clock) - c->dump.since_ns;
    if (!policy || policy != tec_canary_policy(c->canary)) {
        tec_fail(&err, TEC_INVALID, "the policy was replaced before its record was read");
    } else if (tec_policy_hold(policy)) {
        write_dump(policy, c->dump.path, &err);
    } else if (waited > HOLD_S * INT64_C(1000000000)) {
        tec_fail(&err, TEC_TIME, "no frame began within %d s: a record is read between frames",
                 HOLD_S);
    } else {
        return;
    }
    if (policy)
        tec_policy_go_on(policy);
    answer_dump(c, err.message[0] ? err.status : TEC_OK, &err);
}

/* --- events ------------------------------------------------------------------------------- */

static void follow_load(struct tec_control *c, const struct tec_canary_event *e)
{
    static const char *const states[] = {[TEC_CANARY_TRIAL] = "trial",
                                         [TEC_CANARY_ADOPTED] = "adopted",
                                         [TEC_CANARY_REJECTED] = "rejected",
                                         [TEC_CANARY_RETURNED] = "returned"};
    struct tec_control_load *l = &c->load;
    if (l->number == 0 || e->kind == TEC_CANARY_FALLBACK)
        return;
    if (e->kind == TEC_CANARY_ROLLBACK) {
        if (l->judged && strcmp(l->state, "adopted") == 0)
            l->state = "rolled back";
        else if (strcmp(l->state, "rolled back") == 0)
            l->state = "adopted";
        return;
    }
    l->state = states[e->kind];
    memcpy(l->policy, e->policy, sizeof l->policy);
    l->version = e->version;
    if (!l->judged)
        l->trial = e->trial;
    l->judged = e->kind != TEC_CANARY_TRIAL;
    memcpy(l->message, e->message, sizeof l->message);
}

static void tell(struct tec_control *c, const struct tec_canary_event *e)
{
    static const char *const words[] = {[TEC_CANARY_ADOPTED] = "was adopted",
                                        [TEC_CANARY_REJECTED] = "was rejected: ",
                                        [TEC_CANARY_RETURNED] = "gave way to the one before: ",
                                        [TEC_CANARY_ROLLBACK] = "is in force again, by order",
                                        [TEC_CANARY_FALLBACK] = "stood down: "};
    struct tec_policy *policy = tec_canary_policy(c->canary);
    bool same =
        strcmp(tec_policy_name(policy), e->policy) == 0 && tec_policy_version(policy) == e->version;
    if (e->kind == TEC_CANARY_TRIAL)
        return;
    if (e->kind == TEC_CANARY_FALLBACK && strcmp(e->message, "by order") != 0 && same &&
        tec_policy_hold(policy))
        tell_quarantine(c, policy, e->message, tec_canary_look(c->canary)->report.last_failure);
    else
        tec_say(c->call, "frame %lld: policy '%s' %s%s", (long long)e->frame, e->policy,
                words[e->kind], e->message);
}

/* Report strikes that have no consequence yet. */
static void tell_strikes(struct tec_control *c)
{
    const struct tec_policy_report *r = &tec_canary_look(c->canary)->report;
    if (r->last_failure <= c->struck)
        return;
    c->struck = r->last_failure;
    if (!r->quarantined)
        tec_say(c->call, "%s", r->message);
}

void tec_control_watch(struct tec_control *c)
{
    struct tec_error err = {.message = ""};
    struct tec_canary_event event;
    tell_strikes(c);
    while (tec_canary_next_event(c->canary, &event)) {
        c->events[c->n_events++ % TEC_CONTROL_EVENTS] = event;
        follow_load(c, &event);
        tell(c, &event);
    }
    if (tec_canary_poll(c->canary, &err) != TEC_OK) {
        c->load.state = "rejected";
        c->load.judged = true;
        snprintf(c->load.message, sizeof c->load.message, "%s", err.message);
        tec_say(c->call, "a policy was rejected: %s", err.message);
    }
    if (!c->ended)
        return;
    /* No frame runs any more, so no later frame could report a quarantine that the last one
     * brought. */
    struct tec_policy *policy = tec_canary_policy(c->canary);
    const struct tec_policy_report *report = tec_policy_report(policy);
    if (report->quarantined)
        tell_quarantine(c, policy, report->message, report->last_failure);
}

/* Before a policy is closed that failed on trial or soon after, write its record. */
void tec_control_closing(void *control, struct tec_policy *policy)
{
    struct tec_control *c = control;
    char where[4400];
    if (c->dump.policy == policy)
        c->dump.policy = NULL;
    bool told = c->told == policy;
    if (told)
        c->told = NULL; /* another policy may be created at the same address */
    if (c->ended || told || !tec_policy_report(policy)->struck)
        return;
    if (!c->options.path && !c->options.dump_dir)
        return;
    keep_record(c, policy, tec_policy_report(policy)->last_failure, where);
    tec_say(c->call, "policy '%s' was closed; %s", tec_policy_name(policy), where);
}

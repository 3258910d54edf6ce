/* frame_print.c - prints a frame of `run` as a JSON object and as a line of text. */
#include "tools/frames/frame_print.h"

#include "base/json_text.h"
#include "tools/frames/memory_text.h"
#include "tools/frames/ranking.h"
#include "tools/frames/sentence.h"

#include <string.h>

const char *tec_frame_cause_word(enum tec_cause cause)
{
    return cause == TEC_CAUSE_NONE ? NULL : tec_cause_name(cause);
}

static json_t *number_or_null(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

static json_t *rows_json(const double *actions, int rows, int columns)
{
    json_t *all = json_array();
    for (int r = 0; r < rows; r++) {
        json_t *row = json_array();
        for (int c = 0; c < columns; c++)
            json_array_append_new(row, json_real(actions[r * columns + c]));
        json_array_append_new(all, row);
    }
    return all;
}

/* Whether the frame's actions go out. Actions that are not finite do not: JSON cannot express them,
 * and no robot can use them. */
static bool leaves(const struct tec_frame_out *frame)
{
    return frame->acted && (!frame->actions || frame->rows > 0);
}

static json_t *actions_json(const struct tec_frames *f, const struct tec_frame_out *frame)
{
    json_t *all = json_object();
    if (leaves(frame))
        json_object_set_new(all, f->actions[0],
                            rows_json(frame->actions, frame->rows, frame->columns));
    for (int i = 1; i < f->n_actions; i++) {
        const struct tec_frame_left *left = tec_frame_left_of(frame, i);
        if (left && left->rows > 0)
            json_object_set_new(all, f->actions[i],
                                rows_json(left->actions, left->rows, left->columns));
    }
    return all;
}

/* Of several action nodes each one's: when its chunk left, and what the robot was given. */
static void add_released(json_t *out, const struct tec_frames *f, const struct tec_frame_out *frame)
{
    json_t *all = json_object();
    for (int i = 0; f->n_actions > 1 && i < f->n_actions; i++) {
        const struct tec_action_record *a = &frame->record->actions[i];
        const struct tec_frame_left *left = tec_frame_left_of(frame, i);
        bool gone = left && (left->rows > 0 || left->source != TEC_SOURCE_FRESH);
        bool due = a->deadline_ns >= 0 && a->release_ns >= 0;
        bool limits = left && left->source != TEC_SOURCE_FRESH && !a->left_out;
        const char *cause = tec_frame_cause_word(limits ? TEC_CAUSE_LIMITS : a->cause);
        json_object_set_new(all, f->actions[i],
                            json_pack("{s:s, s:o, s:o, s:b, s:o}", "source",
                                      gone ? tec_action_source_word(left->source) : "none",
                                      "age_us", number_or_null(a->age_us), "slack_us",
                                      due ? json_integer(a->slack_us) : json_null(), "missed",
                                      (int)(a->missed || limits), "cause",
                                      cause ? json_string(cause) : json_null()));
    }
    if (json_object_size(all) > 0)
        json_object_set(out, "released", all);
    json_decref(all);
}

/* Whether the robot was given other actions than the frame's own, because those exceed its limits
 * or because it is stopped for earlier ones. */
static bool refused(const struct tec_frame_out *frame)
{
    return frame->acted && frame->source != TEC_SOURCE_FRESH && !frame->record->actions[0].left_out;
}

/* Add the members of a ring: which observation's actions left, how full the ring is, and what left
 * before them. */
static void add_ring(json_t *out, const struct tec_frames *f, const struct tec_frame_out *frame)
{
    const struct tec_frame_record *r = frame->record;
    json_t *earlier = json_array();
    const struct tec_frame_left *last = tec_frame_left_of(frame, 0);
    int64_t seen = last ? last->seen : -1;
    if (f->stages || (last && last->seen != r->frame))
        json_object_set_new(out, "seen", number_or_null(seen));
    if (f->stages) {
        json_object_set_new(out, "filling", json_boolean(r->filling));
        json_object_set_new(out, "in_flight", json_integer(r->in_flight));
        json_object_set_new(out, "depth", json_integer(r->depth));
    }
    for (int i = 0; f->stages && i < frame->n_left && frame->left[i].actions; i++) {
        const struct tec_frame_left *left = &frame->left[i];
        if (left == tec_frame_left_of(frame, left->action))
            continue;
        json_t *one = json_pack("{s:I, s:I, s:o}", "seen", (json_int_t)left->seen, "age_us",
                                (json_int_t)left->age_us, "actions",
                                rows_json(left->actions, left->rows, left->columns));
        if (f->n_actions > 1)
            json_object_set_new(one, "node", json_string(f->actions[left->action]));
        json_array_append_new(earlier, one);
    }
    if (json_array_size(earlier) > 0)
        json_object_set(out, "earlier", earlier);
    json_decref(earlier);
}

/* Add the action nodes that the decision left out of the frame. */
static void add_left_out(json_t *out, const struct tec_frames *f, const struct tec_frame_out *frame)
{
    json_t *all = json_array();
    for (int i = 0; i < f->n_actions; i++)
        if (frame->record->actions[i].left_out)
            json_array_append_new(all, json_string(f->actions[i]));
    if (json_array_size(all) > 0)
        json_object_set(out, "left_out", all);
    json_decref(all);
}

static json_t *texts_json(const struct tec_frames *f, const struct tec_frame_out *frame)
{
    json_t *all = json_object();
    for (int d = 0; d < f->n_decoders; d++)
        json_object_set_new(all, f->decoders[d], json_array());
    for (int i = 0; i < frame->n_texts; i++) {
        const struct tec_frame_text *t = &frame->texts[i];
        json_t *tokens = json_array();
        for (int k = 0; k < t->n; k++)
            json_array_append_new(tokens, json_integer(t->tokens[k]));
        json_t *one = json_pack("{s:I, s:o, s:s, s:b}", "request", (json_int_t)t->request, "tokens",
                                tokens, "text", t->text, "done", (int)t->done);
        if (t->done)
            json_object_set_new(one, "reason", json_string(t->reason));
        if (t->n_ranked)
            json_object_set_new(one, "ranking", tec_ranking_json(t));
        json_array_append_new(json_object_get(all, f->decoders[t->decoder]), one);
    }
    return all;
}

static json_t *launches_json(const struct tec_frames *f, const struct tec_frame_record *r)
{
    json_t *all = json_array();
    for (int i = 0; i < r->n_launches; i++) {
        const struct tec_launch_record *l = &r->launches[i];
        json_t *one =
            json_pack("{s:s, s:i, s:i, s:i, s:o, s:I, s:I}", "node", l->node, "rows", l->rows,
                      "batch", l->batch, "k", l->k, "request", number_or_null(l->request),
                      "start_us", (json_int_t)((l->start_ns - f->began_ns) / 1000), "end_us",
                      (json_int_t)((l->end_ns - f->began_ns) / 1000));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *plan_json(const struct tec_frames *f, const struct tec_frame_record *r)
{
    const struct tec_action_record *a = &r->actions[0];
    bool due = a->deadline_ns >= 0 && a->release_ns >= 0;
    json_t *plan =
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I}", "policy", r->policy, "tokens",
                  r->tokens, "rows", r->rows, "in_flight", r->in_flight, "refused", r->refused,
                  "shed", r->shed, "snapped", r->snapped, "planner_us",
                  (json_int_t)(r->planner_ns / 1000), "host_us", (json_int_t)(r->host_ns / 1000));
    if (r->drafted) {
        json_object_set_new(plan, "drafted", json_integer(r->drafted));
        json_object_set_new(plan, "kept", json_integer(r->kept));
    }
    json_object_set_new(plan, "slack_us", due ? json_integer(a->slack_us) : json_null());
    json_object_set_new(plan, "launches", launches_json(f, r));
    return plan;
}

static void add_asked(json_t *out, const struct tec_frames *f, const struct tec_frame_out *frame)
{
    json_t *asked = json_array(), *cancelled = json_array();
    for (int i = 0; i < frame->n_asks; i++) {
        const struct tec_ask *a = &frame->asks[i];
        json_array_append_new(asked, json_pack("{s:s, s:o, s:o}", "node", f->decoders[a->decoder],
                                               "request", number_or_null(a->id), "refused",
                                               a->refused ? json_string(a->reason) : json_null()));
    }
    for (int i = 0; i < frame->n_cancels; i++)
        json_array_append_new(cancelled,
                              json_pack("{s:I, s:b}", "request", (json_int_t)frame->cancels[i],
                                        "live", (int)frame->cancelled[i]));
    if (frame->n_asks)
        json_object_set(out, "asked", asked);
    if (frame->n_cancels)
        json_object_set(out, "cancelled", cancelled);
    json_decref(asked);
    json_decref(cancelled);
}

/* Add the streams that prefills read: whose text, and how old that request is. */
static void add_reads(json_t *out, const struct tec_frame_record *r)
{
    json_t *all = json_array();
    for (int i = 0; i < r->n_reads; i++)
        json_array_append_new(all, json_pack("{s:s, s:s, s:o, s:o, s:o}", "node", r->reads[i].node,
                                             "stream", r->reads[i].stream, "request",
                                             number_or_null(r->reads[i].request), "frame",
                                             number_or_null(r->reads[i].frame), "age_us",
                                             number_or_null(r->reads[i].age_us)));
    if (r->n_reads > 0)
        json_object_set(out, "read", all);
    json_decref(all);
}

static const char *source_word(const struct tec_frames *f, const struct tec_frame_out *frame)
{
    bool fresh = f->stages ? frame->acted : frame->observed;
    if (frame->source != TEC_SOURCE_FRESH)
        return tec_action_source_word(frame->source);
    return fresh && (leaves(frame) || !frame->acted) ? "fresh" : "none";
}

void tec_frame_trouble(char *text, size_t room, const struct tec_frames *f,
                       const struct tec_frame_out *frame)
{
    const struct tec_session *session = f->opened.engine->session;
    double ensemble;
    int rows = tec_session_ensembles(session, &ensemble) ? 1 : tec_session_rows(session);
    tec_beyond_text(text, room, &frame->beyond);
    if (frame->acted && frame->actions && frame->rows < rows && frame->source == TEC_SOURCE_FRESH)
        snprintf(text, room,
                 "row %d of %d of the actions is not finite: no row from it on is given",
                 frame->rows, rows);
}

enum tec_status tec_frame_json(json_t **out, const struct tec_frames *f,
                               const struct tec_frame_out *frame, struct tec_error *err)
{
    const struct tec_frame_record *r = frame->record;
    const char *cause = tec_frame_cause_word(refused(frame) ? TEC_CAUSE_LIMITS : r->cause);
    *out = json_pack(
        "{s:I, s:I, s:I, s:o, s:b, s:o, s:s, s:o, s:o, s:o}", "frame", (json_int_t)r->frame,
        "start_us", (json_int_t)((r->start_ns - f->began_ns) / 1000), "end_us",
        (json_int_t)((r->end_ns - f->began_ns) / 1000), "age_us",
        number_or_null(r->actions[0].age_us), "missed", (int)(r->missed || refused(frame)), "cause",
        cause ? json_string(cause) : json_null(), "source", source_word(f, frame), "actions",
        actions_json(f, frame), "text", texts_json(f, frame), "plan", plan_json(f, r));
    if (!*out)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a frame's line");
    if (f->n_sessions > 1)
        json_object_set_new(*out, "session", json_integer(r->session));
    char trouble[160];
    tec_frame_trouble(trouble, sizeof trouble, f, frame);
    if (trouble[0])
        json_object_set_new(*out, "trouble", json_string(trouble));
    add_left_out(*out, f, frame);
    add_released(*out, f, frame);
    add_ring(*out, f, frame);
    add_reads(*out, r);
    add_asked(*out, f, frame);
    if (f->opened.engine->n_memories)
        json_object_set_new(*out, "memory", tec_frame_memory_json(f->opened.engine, r->session));
    return TEC_OK;
}

enum tec_status tec_frame_line(FILE *out, const json_t *frame, struct tec_error *err)
{
    TEC_TRY(
        tec_json_print(out, frame, JSON_COMPACT | JSON_REAL_PRECISION(17), "a frame's line", err));
    fflush(out); /* the caller checks the stream for errors */
    return TEC_OK;
}

void tec_frame_print_ring(FILE *out, const struct tec_frames *f, const struct tec_frame_out *frame)
{
    const struct tec_topology *t = &f->opened.engine->topology;
    int room = 0;
    if (frame->n_left && frame->left[frame->n_left - 1].seen != frame->record->frame)
        fprintf(out, "  of frame %lld", (long long)frame->left[frame->n_left - 1].seen);
    if (frame->n_left > f->n_actions)
        fprintf(out, " (%d left)", frame->n_left);
    for (int i = 0; i < t->n_rings; i++)
        room += t->rings[i].stages * f->n_sessions;
    fprintf(out, "  %d of %d in flight%s", frame->record->in_flight, room,
            frame->record->filling ? ", filling" : "");
}

static void print_action(FILE *out, const double *actions, int columns)
{
    enum { SHOWN = 8 };
    fputc('[', out);
    for (int c = 0; c < columns && c < SHOWN; c++)
        fprintf(out, "%s%7.3f", c ? " " : "", actions[c]);
    fputs(columns > SHOWN ? " ...]" : "]", out);
}

static void print_times(FILE *out, const struct tec_action_record *a)
{
    if (a->age_us >= 0)
        fprintf(out, "  age %6.2f ms", (double)a->age_us / 1e3);
    if (a->age_us >= 0 && a->deadline_ns >= 0)
        fprintf(out, "  slack %7.2f ms", (double)a->slack_us / 1e3);
}

/* What left of the action nodes behind the first. */
static void print_others(FILE *out, const struct tec_frames *f, const struct tec_frame_out *frame)
{
    for (int i = 1; i < f->n_actions; i++) {
        const struct tec_frame_left *left = tec_frame_left_of(frame, i);
        fprintf(out, "  %s ", f->actions[i]);
        if (left && left->rows > 0)
            print_action(out, left->actions, left->columns);
        else
            fputs(left && left->source == TEC_SOURCE_FRESH ? "actions are not finite"
                                                           : "no actions",
                  out);
        print_times(out, &frame->record->actions[i]);
    }
}

void tec_frame_text_line(FILE *out, const struct tec_frames *f, const struct tec_frame_out *frame)
{
    const struct tec_frame_record *r = frame->record;
    fprintf(out, "%4lld  ", (long long)r->frame);
    if (f->n_sessions > 1)
        fprintf(out, "session %d  ", r->session);
    if (frame->acted && frame->rows > 0)
        print_action(out, frame->actions, frame->columns);
    else
        fputs(frame->acted && frame->source == TEC_SOURCE_FRESH ? "actions are not finite"
                                                                : "no actions",
              out);
    if (frame->source != TEC_SOURCE_FRESH)
        fprintf(out, "  %s", tec_action_source_word(frame->source));
    if (frame->beyond.n)
        fprintf(out, "  %d limited", frame->beyond.n);
    print_times(out, &r->actions[0]);
    print_others(out, f, frame);
    if (f->stages)
        tec_frame_print_ring(out, f, frame);
    else if (f->n_decoders)
        fprintf(out, "  batch %d", tec_frame_batch(f, r, NULL));
    if (r->drafted)
        fprintf(out, "  kept %d of %d", r->kept, r->drafted);
    if (r->actions[0].left_out)
        fputs("  left out", out);
    if (refused(frame))
        fputs("  missed (limits)", out);
    else if (r->missed)
        fprintf(out, "  missed (%s)",
                tec_frame_cause_word(r->cause) ? tec_frame_cause_word(r->cause) : "?");
    tec_frame_memory_line(out, f->opened.engine, frame->record->session,
                          f->sessions[frame->record->session].remembered);
    for (int i = 0; i < frame->n_asks; i++)
        if (frame->asks[i].refused)
            fprintf(out, "  %s refused (%s)", f->decoders[frame->asks[i].decoder],
                    frame->asks[i].reason);
    for (int i = 0; i < frame->n_texts; i++)
        if (frame->texts[i].n_ranked)
            tec_ranking_print(out, &frame->texts[i]);
        else if (frame->texts[i].done)
            tec_frame_print_sentence(out, frame->texts[i].whole);
    fputc('\n', out);
    fflush(out);
}

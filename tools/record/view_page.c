/* view_page.c - a robot's frames as JSON for the page, and the page around it. */
#include "tools/record/view_page.h"

#include "base/json_text.h"
#include "tools/picture/page.h"
#include "tools/record/cadence.h"
#include "tools/record/explain.h"
#include "tools/record/view_texts.h"

#include <stdlib.h>
#include <string.h>

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

/* Launches of a frame: [node, lane, start, end, rows, k], milliseconds from the frame's start. */
static json_t *launches_json(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *all = json_array();
    for (size_t i = tec_flight_next(f, frame, frame->launch); i != SIZE_MAX;
         i = tec_flight_next(f, frame, i + 1)) {
        const struct tec_flight_launch *l = &f->launches[i];
        json_array_append_new(all, json_pack("[i, i, f, f, i, i]", l->node, l->lane,
                                             ms(l->start_ns - frame->start_ns),
                                             ms(l->end_ns - frame->start_ns), l->rows, l->k));
    }
    return all;
}

/* Chunks that left: [node, left, observation, late, jump], milliseconds from the frame's start;
 * jump: from the chunk before, in the model's numbers, null where there is none. */
static json_t *left_json(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *all = json_array();
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i], *next = e + 1;
        float jump;
        if (e->kind != TEC_EVENT_RELEASE || e->session != frame->session)
            continue;
        bool joins = i + 1 < f->n_events && next->kind == TEC_FLIGHT_SEAM && next->node == e->node;
        memcpy(&jump, &next->more, joins ? sizeof jump : 0);
        json_array_append_new(all,
                              json_pack("[i, f, f, b, o]", e->node, ms(e->t_ns - frame->start_ns),
                                        ms(e->value - frame->start_ns), (int)e->flag,
                                        joins ? tec_json_number((double)jump) : json_null()));
    }
    return all;
}

static enum tec_status frame_json(json_t **out, struct tec_flight *f, size_t at,
                                  struct tec_error *err)
{
    const struct tec_flight_frame *frame = &f->frames[at];
    bool due = frame->deadline_us >= 0;
    *out = json_pack(
        "{s:I, s:i, s:f, s:f, s:o, s:b, s:s, s:o, s:o, s:f, s:f, s:f, s:i, s:i, s:s, s:o, s:o, "
        "s:o}",
        "frame", (json_int_t)frame->frame, "session", frame->session, "start", ms(frame->start_ns),
        "ms", ms(frame->end_ns - frame->start_ns), "due",
        due ? json_real((double)frame->deadline_us / 1e3 + ms(frame->tick_ns - frame->start_ns))
            : json_null(),
        "missed", (int)frame->missed, "cause", frame->cause, "age",
        frame->age_us < 0 ? json_null() : json_real((double)frame->age_us / 1e3), "slack",
        due && frame->age_us >= 0 ? json_real((double)frame->slack_us / 1e3) : json_null(),
        "policy_ms", (double)frame->planner_us / 1e3, "host_ms", (double)frame->host_us / 1e3,
        "late", ms(frame->late_ns), "tokens", frame->tokens, "in_flight", frame->in_flight,
        "policy", tec_flight_policy(f, frame), "notes", tec_flight_notes(f, frame), "refused",
        tec_flight_refused(f, frame), "launches", launches_json(f, frame));
    if (*out) {
        json_object_set_new(*out, "decisions", tec_flight_decisions(f, frame));
        json_object_set_new(*out, "left", left_json(f, frame));
        json_object_set_new(*out, "requests", tec_view_requests(f, frame));
        json_object_set_new(*out, "kv", tec_view_kv(f, frame));
    }
    if (!frame->missed || !*out)
        return *out ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
    struct tec_miss miss;
    TEC_TRY(tec_explain_miss(&miss, f, frame, err));
    json_object_set_new(*out, "over", json_real((double)miss.us_over / 1e3));
    json_object_set_new(*out, "node", tec_json_shown(miss.node));
    json_object_set_new(*out, "words", tec_json_shown(miss.words));
    return TEC_OK;
}

static enum tec_status head_json(json_t **out, const struct tec_flight *f, struct tec_error *err)
{
    struct tec_cadence c;
    char line[200];
    json_t *nodes = json_array();
    const json_t *name = json_object_get(f->about, "pipeline");
    TEC_TRY(tec_cadence_of(&c, f, 10.0, err));
    tec_cadence_line(&c, line, sizeof line);
    for (int i = 0; i < f->n_nodes; i++)
        json_array_append_new(nodes, tec_json_shown(f->nodes[i]));
    *out = json_pack("{s:O?, s:O?, s:O?, s:s, s:f, s:o, s:s, s:s}", "pipeline", name, "chunks",
                     json_object_get(f->about, "chunks"), "graph",
                     json_object_get(f->about, "graph"), "policy", c.policy, "period_ms",
                     (double)json_integer_value(json_object_get(f->about, "period_us")) / 1e3,
                     "nodes", nodes, "cadence", line, "damage", f->file.damage);
    return *out ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
}

static enum tec_status put(struct tec_buffer *out, json_t *json, struct tec_error *err)
{
    char *text = tec_json_whole(json, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (text)
        tec_buffer_bytes(out, text, strlen(text));
    bool whole = text && !out->failed;
    free(text);
    return whole ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
}

enum tec_status tec_view_data(struct tec_buffer *out, struct tec_flight *f, int64_t after_ns,
                              size_t most, struct tec_error *err)
{
    json_t *head = NULL, *frames = json_array();
    size_t first = f->n_frames > most ? f->n_frames - most : 0;
    enum tec_status status = head_json(&head, f, err);
    for (size_t i = first; i < f->n_frames && status == TEC_OK; i++) {
        json_t *one = NULL;
        if (f->frames[i].end_ns < 0 || f->frames[i].start_ns <= after_ns)
            continue;
        status = frame_json(&one, f, i, err);
        if (one)
            json_array_append_new(frames, one);
    }
    if (head && f->file.n)
        json_object_set_new(head, "texts", tec_view_texts(f));
    if (head)
        json_object_set(head, "frames", frames);
    json_decref(frames);
    if (status == TEC_OK)
        status = put(out, head, err);
    json_decref(head);
    return status;
}

/* --- the page --------------------------------------------------------------------------------- */

static void text(struct tec_buffer *out, const char *s)
{
    tec_buffer_bytes(out, s, strlen(s));
}

static void escaped(struct tec_buffer *out, const char *s)
{
    for (; *s; s++)
        if (*s == '&')
            text(out, "&amp;");
        else if (*s == '<')
            text(out, "&lt;");
        else
            tec_buffer_u8(out, (uint8_t)((unsigned char)*s < 32 ? ' ' : *s));
}

/* JSON inside a script element: "<" would end it. */
static void put_json(struct tec_buffer *out, const struct tec_buffer *json)
{
    for (size_t i = 0; i < json->n; i++)
        if (json->data[i] == '<')
            text(out, "\\u003c");
        else
            tec_buffer_u8(out, json->data[i]);
}

void tec_view_page(struct tec_buffer *out, const char *title, const struct tec_buffer *data)
{
    text(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
              "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
    escaped(out, title);
    text(out, "</title>\n<style>");
    text(out, tec_view_style);
    text(out, "</style></head><body>\n<header><h1>");
    escaped(out, title);
    text(out,
         "</h1><p id=\"cadence\"></p><div class=\"tools\">"
         "<button id=\"freeze\" aria-pressed=\"false\">Freeze</button>"
         "<button id=\"back\" aria-label=\"The frame before\">&lt;</button>"
         "<button id=\"on\" aria-label=\"The next frame\">&gt;</button>"
         "<button id=\"miss\">Next miss</button></div></header>\n"
         "<main><svg id=\"frames\" role=\"img\" aria-label=\"Frames against the budget\"></svg>"
         "<svg id=\"decisions\" role=\"img\" aria-label=\"Decisions of the policy\"></svg>"
         "<svg id=\"requests\" role=\"img\" aria-label=\"Requests over time\"></svg>"
         "<svg id=\"chunks\" role=\"img\" aria-label=\"Chunks of actions over time\"></svg>"
         "<svg id=\"ages\" role=\"img\" aria-label=\"Age of the actions\"></svg>"
         "<div id=\"frame\" aria-live=\"polite\"></div>"
         "<h2>Misses</h2><ol id=\"misses\"></ol>"
         "<h2>Texts</h2><ol id=\"texts\"></ol></main>\n"
         "<script type=\"application/json\" id=\"data\">");
    if (data)
        put_json(out, data);
    text(out, "</script>\n<script>");
    text(out, tec_view_script);
    text(out, "</script>\n</body></html>\n");
}

/* report_json.c - DIR/suite.json: where and how it ran, an object for each cell. */
#include "tests/experiments/keep/keeping.h"

#include <math.h>

#define NUMBER tec_suite_number

static json_t *times(const struct tec_samples *s)
{
    return json_pack("{s:o,s:o,s:o}", "p50", NUMBER(tec_keeping_ms(s, 0.5)), "p99",
                     NUMBER(tec_keeping_ms(s, 0.99)), "max", NUMBER(tec_keeping_ms(s, 1.0)));
}

static double each(const struct tec_keeping_row *r, double sum)
{
    return r->steps ? sum / (double)r->steps : (double)NAN;
}

static json_t *layers_json(const struct tec_keeping *s, const struct tec_keeping_row *r)
{
    json_t *list = json_array();
    for (int l = 0; l < s->layers; l++)
        json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:o}", "rows",
                                              NUMBER(each(r, r->layer_rows[l])), "loaded_bytes",
                                              NUMBER(each(r, r->layer_bytes[l])), "compute_ms",
                                              NUMBER(each(r, r->layer_ns[l]) / 1e6), "wait_ms",
                                              NUMBER(each(r, r->layer_wait[l]) / 1e6)));
    return list;
}

static json_t *row_json(const struct tec_keeping *s, const struct tec_keeping_cell *c,
                        const struct tec_keeping_row *r)
{
    const struct tec_keeping_method *m = &r->method;
    json_t *j = json_pack("{s:s,s:s,s:I}", "method", m->name, "selection",
                          tec_selection_name(m->selection), "steps", (json_int_t)r->steps);
    if (m->selection == TEC_SELECTION_keep && !m->bare)
        json_object_set_new(j, "scoring", json_string(tec_scoring_name(m->scoring)));
    json_object_set_new(j, "ttft_ms", times(&r->ttft));
    json_object_set_new(j, "refresh_ms", times(&r->refresh));
    json_object_set_new(j, "prefill_ms", times(&r->prefill));
    json_object_set_new(j, "wait_ms", times(&r->waited));
    json_object_set_new(j, "choose_ms", times(&r->choose));
    json_object_set_new(j, "score_ms", times(&r->score));
    json_object_set_new(j, "served_ms", times(&r->served));
    json_object_set_new(j, "charged_ms", times(&r->charged));
    json_object_set_new(j, "charged_mean_ms", NUMBER(tec_keeping_mean(&r->charged)));
    json_object_set_new(j, "charged_least_ms", NUMBER(each(r, r->least_ns) / 1e6));
    json_object_set_new(j, "kept_cpu_ms", NUMBER(each(r, r->kept_cpu) / 1e6));
    json_object_set_new(j, "least_cpu_ms", NUMBER(each(r, r->least_cpu) / 1e6));
    json_object_set_new(j, "needed_tokens", NUMBER(each(r, (double)r->needed)));
    json_object_set_new(j, "rows_share", NUMBER(tec_keeping_share(r)));
    json_object_set_new(j, "prefill_speedup", NUMBER(tec_keeping_speedup(c, r, false)));
    json_object_set_new(j, "of_bound", NUMBER(tec_keeping_of_bound(c, r, false)));
    json_object_set_new(j, "over_bare", NUMBER(tec_keeping_over_bare(c, r, false)));
    json_object_set_new(j, "prefill_cpu_ms", times(&r->cpu));
    json_object_set_new(j, "of_bound_cpu", NUMBER(tec_keeping_of_bound(c, r, true)));
    json_object_set_new(j, "over_bare_cpu", NUMBER(tec_keeping_over_bare(c, r, true)));
    if (s->weights)
        json_object_set_new(j, "right", NUMBER(tec_keeping_right(r)));
    json_object_set_new(j, "agree", NUMBER(tec_keeping_agree(r)));
    if (!s->weights)
        json_object_set_new(j, "skill", NUMBER(tec_keeping_skill(r)));
    json_object_set_new(j, "kl", NUMBER(tec_keeping_kl(r)));
    json_object_set_new(j, "refreshed_tokens", NUMBER(each(r, (double)r->refreshed)));
    json_object_set_new(j, "joined_tokens", NUMBER(each(r, (double)r->behind)));
    json_object_set_new(j, "joined_ms", NUMBER(each(r, (double)r->behind_ns) / 1e6));
    json_object_set_new(j, "placed_bytes", NUMBER(each(r, (double)r->loaded)));
    if (m->bare)
        json_object_set_new(j, "same_bytes", json_boolean(r->same));
    if (m->selection == TEC_SELECTION_keep)
        json_object_set_new(j, "layers", layers_json(s, r));
    return j;
}

static json_t *cell_json(const struct tec_keeping *s, const struct tec_keeping_cell *c)
{
    json_t *rows = json_array();
    double steps = (double)c->rows[0].steps;
    for (int i = 0; i < c->n_rows; i++)
        json_array_append_new(rows, row_json(s, c, &c->rows[i]));
    return json_pack(
        "{s:s,s:i,s:s,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:o,s:o}", "experiment", c->experiment,
        "segments", c->segments, "link", c->link.name ? c->link.name : "none", "tokens",
        NUMBER((double)c->tokens / steps), "query_tokens", NUMBER((double)c->query / steps),
        "retrieved", NUMBER((double)c->retrieved / steps), "joined_segments",
        NUMBER((double)c->joined / steps), "changes", (json_int_t)c->changes, "promotions",
        (json_int_t)c->promotions, "demotions", (json_int_t)c->demotions, "retrieve_ms",
        times(&c->retrieve), "rows", rows);
}

/* How often a segment of each class changed in a step of the trace. */
static json_t *classes_json(const struct tec_keeping *s)
{
    json_t *classes = json_object();
    for (int k = 0; k < TEC_TRACE_CLASSES; k++)
        json_object_set_new(
            classes, tec_trace_classes[k],
            json_pack("{s:i,s:I,s:o}", "segments", s->trace.members[k], "changes",
                      (json_int_t)s->trace.changed[k], "changes_segment_step",
                      NUMBER((double)s->trace.changed[k] /
                             ((double)s->trace.members[k] * (double)s->trace.step))));
    return classes;
}

enum tec_status tec_keeping_write_json(const struct tec_keeping *s, struct tec_error *err)
{
    const struct tec_suite_head head = tec_keeping_head(s);
    json_t *cells = json_array();
    for (int i = 0; i < s->n_cells; i++)
        if (s->cells[i].ran)
            json_array_append_new(cells, cell_json(s, &s->cells[i]));
    json_t *measured = json_pack(
        "{s:s,s:s,s:b,s:i,s:I,s:i,s:I,s:I,s:I,s:s,s:f}", "model", s->arch, "size",
        tec_shared_size(&s->call->shared), "quick", s->quick, "steps", s->steps, "seed",
        (json_int_t)s->seed, "layers", s->layers, "token_bytes", (json_int_t)s->token_bytes,
        "weight_bytes", (json_int_t)s->weight_bytes, "plan_bytes", (json_int_t)s->plan_bytes,
        "weights", s->weights ? s->weights : "random", "elapsed_s", (double)s->elapsed_ns / 1e9);
    json_t *more = json_pack("{s:o,s:o}", "measured", measured, "cells", cells);
    if (!s->weights)
        json_object_set_new(more, "classes", classes_json(s));
    json_t *all = tec_suite_head_json(&head, "keep");
    bool whole = all && more && json_object_update(all, more) == 0;
    json_decref(more);
    if (!whole)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a report");
    return tec_suite_write_json(s->call, s->dir, all, s->elapsed_ns > 0, err);
}

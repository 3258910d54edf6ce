/* report_json.c - DIR/suite.json: where and how it ran, an object for each cell, and forwards call
 * by call. */
#include "tests/experiments/actionflow/actionflow.h"

#include <math.h>

#define NUMBER tec_suite_number

static json_t *row_json(const struct tec_actionflow_cell *c, enum tec_actionflow_variant v)
{
    const struct tec_actionflow_row *r = &c->rows[v];
    double speedup = tec_actionflow_ratio(c, TEC_ACTIONFLOW_SEQUENTIAL, v);
    json_t *j =
        json_pack("{s:s,s:I,s:I,s:b,s:I,s:I}", "variant", tec_actionflow_variants[v], "frames",
                  (json_int_t)r->frames, "actions", (json_int_t)r->actions, "equal", r->equal,
                  "compared", (json_int_t)r->compared, "plan_bytes", (json_int_t)r->plan_bytes);
    json_object_set_new(j, "frame_ms",
                        json_pack("{s:o,s:o,s:o}", "p50", NUMBER(tec_actionflow_frame_ms(r, 0.5)),
                                  "p99", NUMBER(tec_actionflow_frame_ms(r, 0.99)), "max",
                                  NUMBER(tec_actionflow_frame_ms(r, 1.0))));
    json_object_set_new(j, "cpu_ms", NUMBER(tec_actionflow_cpu_ms(r, 0.5)));
    json_object_set_new(j, "actions_s", NUMBER(tec_actionflow_actions_s(r)));
    json_object_set_new(j, "age_ms",
                        json_pack("{s:o,s:o}", "p50", NUMBER(tec_actionflow_age_ms(r, 0.5)), "max",
                                  NUMBER(tec_actionflow_age_ms(r, 1.0))));
    json_object_set_new(j, "copied_bytes_frame", NUMBER(tec_actionflow_copied(r)));
    json_object_set_new(j, "launches_frame", NUMBER(tec_actionflow_launches(r)));
    json_object_set_new(j, "formula_bytes_frame", json_integer((json_int_t)r->moved));
    json_object_set_new(j, "speedup", NUMBER(speedup));
    json_object_set_new(j, "of_bound", NUMBER(speedup / tec_actionflow_bound(c)));
    return j;
}

static json_t *cell_json(const struct tec_actionflow_cell *c)
{
    json_t *rows = json_array();
    for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++)
        if (c->rows[v].ran)
            json_array_append_new(rows, row_json(c, (enum tec_actionflow_variant)v));
    return json_pack(
        "{s:i,s:i,s:i,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "K", c->stages, "prompt_tokens",
        c->text, "prefix_tokens", c->prefix, "token_bytes", (json_int_t)c->token_bytes,
        "prefill_ms", NUMBER(tec_actionflow_prefill_ms(c)), "decode_ms",
        NUMBER(tec_actionflow_decode_ms(c)), "bound", NUMBER(tec_actionflow_bound(c)),
        "device_copy_over_rotate",
        NUMBER(tec_actionflow_ratio(c, TEC_ACTIONFLOW_COPY, TEC_ACTIONFLOW_ROTATE)),
        "gather_over_packed",
        NUMBER(tec_actionflow_ratio(c, TEC_ACTIONFLOW_GATHER, TEC_ACTIONFLOW_ROTATE)),
        "naive_over_packed",
        NUMBER(tec_actionflow_ratio(c, TEC_ACTIONFLOW_NAIVE, TEC_ACTIONFLOW_ROTATE)),
        "unpacked_over_packed",
        NUMBER(tec_actionflow_ratio(c, TEC_ACTIONFLOW_UNPACKED, TEC_ACTIONFLOW_ROTATE)), "rows",
        rows);
}

static json_t *op_json(const struct tec_actionflow *s, const struct tec_op_time *o)
{
    double flop = (double)tec_cost_flops(&o->cost), bytes = (double)tec_cost_bytes(&o->cost);
    return json_pack("{s:s,s:s,s:I,s:f,s:I,s:I,s:o,s:o}", "stage", tec_stage_names[o->stage], "op",
                     o->label, "calls", (json_int_t)o->calls, "ms", o->ns / 1e6, "flop",
                     (json_int_t)tec_cost_flops(&o->cost), "bytes",
                     (json_int_t)tec_cost_bytes(&o->cost), "intensity",
                     NUMBER(bytes > 0 ? flop / bytes : (double)NAN), "of_roof",
                     NUMBER(tec_actionflow_roof_ns(s, &o->cost) / o->ns));
}

static json_t *forward_json(const struct tec_actionflow *s, const struct tec_actionflow_forward *f)
{
    json_t *ops = json_array();
    for (int i = 0; i < f->times.n; i++)
        json_array_append_new(ops, op_json(s, &f->times.items[i]));
    return json_pack("{s:s,s:i,s:f,s:f,s:o}", "forward", f->name, "rows", f->rows, "launch_ms",
                     f->times.launch_ns / 1e6, "sum_ms", f->times.sum_ns / 1e6, "ops", ops);
}

static json_t *apart_json(const struct tec_actionflow *s)
{
    const struct tec_actionflow_cell *c = &s->cells[s->by_call];
    json_t *forwards = json_array(), *frames = json_object();
    for (int i = 0; i < TEC_ACTIONFLOW_FORWARDS; i++)
        if (s->forwards[i].known)
            json_array_append_new(forwards, forward_json(s, &s->forwards[i]));
    for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++) {
        if (!tec_actionflow_has_pieces((enum tec_actionflow_variant)v))
            continue;
        json_t *frame = json_object();
        for (int p = 0; p < TEC_ACTIONFLOW_PIECES; p++)
            json_object_set_new(frame, tec_actionflow_pieces[p],
                                NUMBER(tec_actionflow_piece_ms(s, (enum tec_actionflow_variant)v,
                                                               (enum tec_actionflow_piece)p)));
        json_object_set_new(frames, tec_actionflow_variants[v], frame);
    }
    return json_pack("{s:i,s:i,s:o,s:o}", "K", c->stages, "prompt_tokens", c->text, "frame_ms",
                     frames, "forwards", forwards);
}

enum tec_status tec_actionflow_write_json(const struct tec_actionflow *s, struct tec_error *err)
{
    const struct tec_suite_head head = tec_actionflow_head(s);
    json_t *cells = json_array();
    for (int i = 0; i < s->n_cells; i++)
        if (s->cells[i].rows[TEC_ACTIONFLOW_SEQUENTIAL].ran)
            json_array_append_new(cells, cell_json(&s->cells[i]));
    json_t *measured = json_pack(
        "{s:s,s:b,s:i,s:I,s:i,s:s,s:s,s:s,s:i,s:f}", "size", tec_shared_size(&s->call->shared),
        "quick", s->quick, "rounds", s->rounds, "seed", (json_int_t)s->seed, "picture_tokens",
        s->vision, "weights", "random", "pixels", "random", "end_token", "off",
        "preprocessing_in_frame", 0, "elapsed_s", (double)s->elapsed_ns / 1e9);
    json_t *more = json_pack("{s:o,s:{s:o,s:o},s:o,s:o}", "measured", measured, "ceilings",
                             "read_bytes_s", NUMBER(s->read_s), "bf16_flop_s", NUMBER(s->flop_s),
                             "cells", cells, "apart", apart_json(s));
    json_t *all = tec_suite_head_json(&head, "actionflow");
    bool whole = all && more && json_object_update(all, more) == 0;
    json_decref(more);
    if (!whole)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a report");
    return tec_suite_write_json(s->call, s->dir, all, s->elapsed_ns > 0, err);
}

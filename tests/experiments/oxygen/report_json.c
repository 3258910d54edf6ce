/* report_json.c - DIR/suite.json: where and how it ran, and a row for each point. */
#include "tests/experiments/oxygen/oxygen.h"

#include "tools/measure/machine.h"

#include <math.h>

static int64_t node_sum(const struct tec_oxygen_point *p, size_t offset)
{
    int64_t sum = 0;
    for (int i = 0; i < p->n; i++)
        if (!p->frame[i].warmup)
            sum += *(const int64_t *)(const void *)((const char *)&p->frame[i] + offset);
    return sum;
}

static json_t *node_mean(const struct tec_oxygen_point *p, size_t offset)
{
    return tec_suite_number(p->sorted.n ? (double)node_sum(p, offset) / 1e6 / p->sorted.n
                                        : (double)NAN);
}

#define MEAN(member) node_mean(p, offsetof(struct tec_oxygen_frame, member))

static double requests_of(const struct tec_oxygen_point *p)
{
    double n = 0.0;
    for (int i = 0; i < p->n; i++)
        n += p->frame[i].warmup ? 0 : p->frame[i].n_new;
    return n;
}

static json_t *row(const struct tec_oxygen_point *p)
{
    json_t *j = json_pack(
        "{s:s,s:s,s:s,s:s,s:i,s:i,s:o,s:s,s:i,s:i}", "robot", tec_oxygen_robots[p->robot].name,
        "input", tec_oxygen_inputs[p->input], "setting", tec_oxygen_settings[p->setting], "policy",
        tec_oxygen_policies[p->setting], "S", p->S, "N", p->N, "k",
        p->k ? json_integer(p->k) : json_null(), "arrivals", p->load ? p->load->spec : "uniform:1",
        "warmup_frames", p->n - p->sorted.n, "frames", p->sorted.n);
    json_object_set_new(j, "together", json_boolean(p->together));
    json_object_set_new(j, "frame_ms",
                        json_pack("{s:o,s:o,s:o,s:o}", "mean",
                                  tec_suite_number(tec_oxygen_frame_ms(p)), "p50",
                                  tec_suite_number(tec_oxygen_ms_at(p, 0.5)), "p99",
                                  tec_suite_number(tec_oxygen_ms_at(p, 0.99)), "max",
                                  tec_suite_number(tec_oxygen_ms_at(p, 1.0))));
    json_object_set_new(j, "mean_ms",
                        json_pack("{s:o,s:o,s:o,s:o,s:o}", "prefill", MEAN(prefill_ns),
                                  "private_prefill", MEAN(private_ns), "action", MEAN(act_ns),
                                  "decode", MEAN(decode_ns), "host", MEAN(host_ns)));
    json_object_set_new(j, "action_hz", tec_suite_number(tec_oxygen_action_hz(p)));
    json_object_set_new(j, "chunk_hz",
                        tec_suite_number(tec_oxygen_action_hz(p) / TEC_OXYGEN_HORIZON));
    json_object_set_new(j, "actions_s", tec_suite_number(tec_oxygen_actions_s(p)));
    json_object_set_new(j, "tokens_s", tec_suite_number(tec_oxygen_tokens_s(p)));
    json_object_set_new(j, "mean_batch", tec_suite_number(tec_oxygen_batch(p)));
    json_object_set_new(j, "finished", json_integer(p->n_requests));
    json_object_set_new(j, "refused", json_integer((json_int_t)p->refused));
    json_object_set_new(j, "shed", json_integer((json_int_t)p->shed));
    json_object_set_new(j, "policy_failures", json_integer((json_int_t)p->policy_failures));
    json_object_set_new(j, "joules_request", tec_suite_number(p->joules / requests_of(p)));
    json_object_set_new(j, "plan_bytes", json_integer((json_int_t)p->plan_bytes));
    return j;
}

static json_t *memory_json(const struct tec_oxygen *s)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "baseline",
                     (json_int_t)s->memory[TEC_OXYGEN_BASELINE], "parallel",
                     (json_int_t)s->memory[TEC_OXYGEN_PARALLEL], "shared_kv",
                     (json_int_t)s->memory[TEC_OXYGEN_SHARED], "batch_2",
                     (json_int_t)s->memory[TEC_OXYGEN_SETTINGS], "batch_4",
                     (json_int_t)s->memory[TEC_OXYGEN_BATCHING]);
}

enum tec_status tec_oxygen_write_json(const struct tec_oxygen *s, struct tec_error *err)
{
    json_t *rows = json_array();
    for (int i = 0; i < s->n_points; i++)
        if (s->points[i].ran)
            json_array_append_new(rows, row(&s->points[i]));
    const struct tec_suite_head head = tec_oxygen_head(s);
    json_t *energy = s->energy.n ? json_array() : json_null();
    for (int i = 0; i < s->energy.n; i++)
        json_array_append_new(energy, json_string(s->energy.counters[i].name));
    json_t *measured = json_pack(
        "{s:s,s:b,s:i,s:I,s:i,s:i,s:i,s:s,s:s,s:s,s:i,s:f}", "size",
        tec_shared_size(&s->call->shared), "quick", s->quick, "rounds", s->rounds, "seed",
        (json_int_t)s->seed, "horizon", TEC_OXYGEN_HORIZON, "prompt_compact", TEC_OXYGEN_PROMPT,
        "prompt_padded", TEC_OXYGEN_PADDED_PROMPT, "weights", "random", "pixels", "random",
        "end_token", "off", "preprocessing_in_frame", 0, "elapsed_s", (double)s->elapsed_ns / 1e9);
    json_t *all = tec_suite_head_json(&head, "oxygen");
    json_t *more = json_pack("{s:o,s:o,s:o,s:o}", "measured", measured, "energy_counters", energy,
                             "table_2_plan_bytes", memory_json(s), "rows", rows);
    bool whole = all && more && json_object_update(all, more) == 0;
    json_decref(more);
    if (!whole)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a report");
    return tec_suite_write_json(s->call, s->dir, all, s->elapsed_ns > 0, err);
}

/* report_json.c - DIR/suite.json: where and how it ran, and a row for each point. */
#include "tools/suite/suite.h"

#include "tools/machine.h"

#include <math.h>

/* JSON has no NAN: what was not measured is null. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static int64_t node_sum(const struct tec_suite_point *p, size_t offset)
{
    int64_t sum = 0;
    for (int i = 0; i < p->n; i++)
        if (!p->frame[i].warmup)
            sum += *(const int64_t *)(const void *)((const char *)&p->frame[i] + offset);
    return sum;
}

static json_t *node_mean(const struct tec_suite_point *p, size_t offset)
{
    return number(p->sorted.n ? (double)node_sum(p, offset) / 1e6 / p->sorted.n : (double)NAN);
}

#define MEAN(member) node_mean(p, offsetof(struct tec_suite_frame, member))

static double requests_of(const struct tec_suite_point *p)
{
    double n = 0.0;
    for (int i = 0; i < p->n; i++)
        n += p->frame[i].warmup ? 0 : p->frame[i].n_new;
    return n;
}

static json_t *row(const struct tec_suite_point *p)
{
    json_t *j = json_pack(
        "{s:s,s:s,s:s,s:s,s:i,s:i,s:o,s:s,s:i,s:i}", "robot", tec_suite_robots[p->robot].name,
        "input", tec_suite_inputs[p->input], "setting", tec_suite_settings[p->setting], "policy",
        tec_suite_policies[p->setting], "S", p->S, "N", p->N, "k",
        p->k ? json_integer(p->k) : json_null(), "arrivals", p->load ? p->load->spec : "uniform:1",
        "warmup_frames", p->n - p->sorted.n, "frames", p->sorted.n);
    json_object_set_new(j, "frame_ms",
                        json_pack("{s:o,s:o,s:o,s:o}", "mean", number(tec_suite_frame_ms(p)), "p50",
                                  number(tec_suite_ms_at(p, 0.5)), "p99",
                                  number(tec_suite_ms_at(p, 0.99)), "max",
                                  number(tec_suite_ms_at(p, 1.0))));
    json_object_set_new(j, "mean_ms",
                        json_pack("{s:o,s:o,s:o,s:o,s:o}", "prefill", MEAN(prefill_ns),
                                  "private_prefill", MEAN(private_ns), "action", MEAN(act_ns),
                                  "decode", MEAN(decode_ns), "host", MEAN(host_ns)));
    json_object_set_new(j, "action_hz", number(tec_suite_action_hz(p)));
    json_object_set_new(j, "chunk_hz", number(tec_suite_action_hz(p) / TEC_SUITE_HORIZON));
    json_object_set_new(j, "actions_s", number(tec_suite_actions_s(p)));
    json_object_set_new(j, "tokens_s", number(tec_suite_tokens_s(p)));
    json_object_set_new(j, "mean_batch", number(tec_suite_batch(p)));
    json_object_set_new(j, "finished", json_integer(p->n_requests));
    json_object_set_new(j, "refused", json_integer((json_int_t)p->refused));
    json_object_set_new(j, "shed", json_integer((json_int_t)p->shed));
    json_object_set_new(j, "policy_failures", json_integer((json_int_t)p->policy_failures));
    json_object_set_new(j, "joules_request", number(p->joules / requests_of(p)));
    json_object_set_new(j, "plan_bytes", json_integer((json_int_t)p->plan_bytes));
    return j;
}

static json_t *memory_json(const struct tec_suite *s)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "baseline", (json_int_t)s->memory[TEC_SUITE_BASELINE],
                     "parallel", (json_int_t)s->memory[TEC_SUITE_PARALLEL], "shared_kv",
                     (json_int_t)s->memory[TEC_SUITE_SHARED], "batch_2",
                     (json_int_t)s->memory[TEC_SUITE_SETTINGS], "batch_4",
                     (json_int_t)s->memory[TEC_SUITE_BATCHING]);
}

enum tec_status tec_suite_write_json(const struct tec_suite *s, struct tec_error *err)
{
    char path[1024];
    json_t *rows = json_array(), *machine = json_deep_copy(s->machine);
    for (int i = 0; i < s->n_points; i++)
        if (s->points[i].ran)
            json_array_append_new(rows, row(&s->points[i]));
    json_object_set_new(machine, "load_before", json_real(s->load_before));
    json_object_set_new(machine, "load_after", json_real(s->load_after));
    json_t *energy = s->energy.n ? json_array() : json_null();
    for (int i = 0; i < s->energy.n; i++)
        json_array_append_new(energy, json_string(s->energy.counters[i].name));
    json_t *measured = json_pack(
        "{s:s,s:b,s:i,s:I,s:i,s:i,s:i,s:s,s:s,s:s,s:i,s:f}", "size",
        tec_size_names[s->call->shared.size], "quick", s->quick, "rounds", s->rounds, "seed",
        (json_int_t)s->seed, "horizon", TEC_SUITE_HORIZON, "prompt_compact", TEC_SUITE_PROMPT,
        "prompt_padded", TEC_SUITE_PADDED_PROMPT, "weights", "random", "pixels", "random",
        "end_token", "off", "preprocessing_in_frame", 0, "elapsed_s", (double)s->elapsed_ns / 1e9);
    json_t *all = json_pack("{s:o,s:s,s:s,s:s,s:o,s:o,s:o,s:o}", "machine", machine, "commit",
                            tec_machine_commit(), "command", s->command, "suite", "oxygen",
                            "measured", measured, "energy_counters", energy, "table_2_plan_bytes",
                            memory_json(s), "rows", rows);
    if (!all)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a report");
    snprintf(path, sizeof path, "%s/suite.json", s->dir);
    int failed = json_dump_file(all, path, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    bool ended = s->elapsed_ns > 0;
    if (!failed && ended && s->call->shared.format == TEC_FORMAT_JSON) {
        json_dumpf(all, s->call->out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        fputc('\n', s->call->out);
    }
    json_decref(all);
    return failed ? tec_fail(err, TEC_IO, "%s: cannot be written", path) : TEC_OK;
}

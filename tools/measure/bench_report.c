/* bench_report.c - what a measurement says: quantiles and the worst frame with its cause, never a
 * mean alone. */
#include "tools/measure/bench.h"

#include "base/json_text.h"
#include "base/out_file.h"
#include "tools/measure/bandwidth.h"
#include "tools/measure/costs_settings.h"
#include "tools/measure/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

void tec_samples_sort(struct tec_samples *s)
{
    if (s->n > 1)
        qsort(s->ns, (size_t)s->n, sizeof s->ns[0], by_value);
}

int64_t tec_samples_at(const struct tec_samples *s, double q)
{
    int at = (int)(q * (double)s->n + 0.9999999) - 1;
    return s->n ? s->ns[at < 0 ? 0 : at >= s->n ? s->n - 1 : at] : 0;
}

static double us_at(const struct tec_samples *s, double q)
{
    return (double)tec_samples_at(s, q) / 1000.0;
}

static const struct tec_bench_row *find_row(const struct tec_bench *b, const char *policy)
{
    for (int i = 0; i < b->n_rows; i++)
        if (strcmp(b->rows[i].policy, policy) == 0)
            return &b->rows[i];
    return NULL;
}

bool tec_bench_bound(const struct tec_bench *b, struct tec_bench_bound *out)
{
    const struct tec_bench_row *shared = find_row(b, "oxygen"), *alone = find_row(b, "isolated");
    if (!shared || !alone || !shared->step.n || !alone->step1.n || !shared->act.n)
        return false;
    *out = (struct tec_bench_bound){.prefill_us = us_at(&shared->prefill, 0.5),
                                    .action_us = us_at(&shared->act, 0.5),
                                    .step1_us = us_at(&alone->step1, 0.5),
                                    .step_us = us_at(&shared->step, 0.5),
                                    .tokens = (double)alone->tokens / (double)alone->frames,
                                    .k = shared->k,
                                    .rows = shared->steady_rows};
    out->bound = (2.0 * out->prefill_us + out->action_us + out->tokens * out->step1_us) /
                 (out->prefill_us + out->action_us + out->k * out->step_us);
    out->ratio = us_at(&alone->frame, 0.5) / us_at(&shared->frame, 0.5);
    return true;
}

/* Find the part that exceeded its median the most in the worst frame, and by how much. */
static const char *worst_part(const struct tec_bench *b, const struct tec_bench_row *r,
                              double *over_us)
{
    const char *part = "host";
    *over_us = (double)r->worst.host_ns / 1000.0 - us_at(&r->host, 0.5);
    for (int n = 0; n < b->n_nodes; n++) {
        double over = 0.0, usual = (double)tec_histogram_at(&r->nodes[n], 0.5);
        for (int i = 0; i < r->worst.n_launches; i++) {
            const struct tec_launch_record *l = &r->worst.launches[i];
            if (strcmp(l->node, b->nodes[n]) == 0)
                over += ((double)(l->end_ns - l->start_ns) - usual) / 1000.0;
        }
        if (over > *over_us) {
            *over_us = over;
            part = b->nodes[n];
        }
    }
    return part;
}

static json_t *quantiles(const struct tec_samples *s)
{
    return json_pack("{s:i,s:f,s:f,s:f,s:f}", "n", s->n, "p50", us_at(s, 0.5), "p99",
                     us_at(s, 0.99), "p999", us_at(s, 0.999), "max", us_at(s, 1.0));
}

static json_t *nodes_json(const struct tec_bench *b, const struct tec_bench_row *r)
{
    json_t *nodes = json_object();
    for (int n = 0; n < b->n_nodes; n++) {
        const struct tec_histogram *h = &r->nodes[n];
        if (h->n)
            json_object_set_new(nodes, b->nodes[n],
                                json_pack("{s:I,s:f,s:f,s:f}", "n", (json_int_t)h->n, "p50",
                                          (double)tec_histogram_at(h, 0.5) / 1000.0, "p99",
                                          (double)tec_histogram_at(h, 0.99) / 1000.0, "max",
                                          (double)h->max / 1000.0));
    }
    return nodes;
}

static double seconds(const struct tec_bench_row *r)
{
    return r->busy_ns > 0 ? (double)r->busy_ns / 1e9 : 1.0;
}

static double mean_batch(const struct tec_bench_row *r)
{
    return r->launches ? (double)r->launched_rows / (double)r->launches : 0.0;
}

static double mean_depth(const struct tec_bench_row *r)
{
    return r->frames ? (double)r->depths / (double)r->frames : 0.0;
}

/* Report the frames in which a ring filled, its depth, and the age of its actions in frames. */
static json_t *ring_json(const struct tec_bench_row *r)
{
    const struct tec_samples *s = &r->lives;
    return json_pack("{s:I,s:f,s:{s:I,s:I,s:I}}", "filling", (json_int_t)r->filling, "depth",
                     mean_depth(r), "age_frames", "p50", (json_int_t)tec_samples_at(s, 0.5), "p99",
                     (json_int_t)tec_samples_at(s, 0.99), "max",
                     (json_int_t)tec_samples_at(s, 1.0));
}

/* Of several action nodes, each one's time from the tick until its chunk left. */
static json_t *released_json(const struct tec_bench *b, const struct tec_bench_row *r)
{
    const struct tec_loop_options *loop = tec_loop_settings(b->opened.engine->loop);
    json_t *all = json_object();
    for (int i = 0; i < loop->n_actions; i++)
        json_object_set_new(all, loop->actions[i].name, quantiles(&r->released[i]));
    return all;
}

static int64_t measured_frames(const struct tec_bench_row *r)
{
    return r->frames + r->filling;
}

static json_t *row_json(const struct tec_bench *b, const struct tec_bench_row *r)
{
    double over;
    const char *part = worst_part(b, r, &over);
    const struct tec_engine *e = b->opened.engine;
    json_t *row = json_pack(
        "{s:s,s:s,s:I,s:o,s:o,s:o,s:o,s:o}", "policy", r->policy, "params", r->params, "frames",
        (json_int_t)r->frames, "frame_us", quantiles(&r->frame), "action_us", quantiles(&r->action),
        "host_us", quantiles(&r->host), "age_us", quantiles(&r->age), "nodes", nodes_json(b, r));
    json_t *more = json_pack(
        "{s:b,s:f,s:f,s:I,s:I,s:f,s:I,s:I,s:I,s:I,s:I}", "quarantined",
        (int)tec_policy_report(r->owner)->quarantined, "action_hz", (double)r->actions / seconds(r),
        "tokens_s", (double)r->tokens / seconds(r), "text_frames", (json_int_t)r->text_frames,
        "warmup_tokens", (json_int_t)r->warm_tokens, "mean_batch", mean_batch(r), "missed",
        (json_int_t)r->missed, "refused", (json_int_t)r->refused, "shed", (json_int_t)r->shed,
        "peak_bytes", (json_int_t)tec_device_peak(e->device), "host_peak_bytes",
        (json_int_t)b->peak);
    json_object_update(row, more);
    json_decref(more);
    if (tec_bench_actions(b))
        json_object_set_new(row, "released_us", released_json(b, r));
    if (e->topology.n_rings)
        json_object_set_new(row, "ring", ring_json(r));
    json_object_set_new(row, "energy",
                        tec_energy_json(&b->energy, &r->energy, "frame_j", measured_frames(r),
                                        "action_j", r->actions));
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->actions_hash);
    json_object_set_new(row, "repeat",
                        json_pack("{s:s,s:i,s:b}", "actions", hash, "frames", r->hashed, "equal",
                                  (int)r->repeated));
    json_object_set_new(row, "launches",
                        json_pack("{s:f,s:I}", "mean",
                                  r->frames ? (double)r->captures / (double)r->frames : 0.0, "max",
                                  (json_int_t)r->most_captures));
    json_object_set_new(row, "allocations", json_integer((json_int_t)r->allocations));
    json_object_set_new(row, "worst",
                        json_pack("{s:I,s:f,s:s,s:s,s:f}", "frame", (json_int_t)r->worst_at, "us",
                                  (double)(r->worst.end_ns - r->worst.start_ns) / 1000.0, "cause",
                                  tec_cause_name(r->worst.cause), "longest", part, "over_us",
                                  over));
    return row;
}

static json_t *bound_json(const struct tec_bench *b)
{
    struct tec_bench_bound x;
    if (!tec_bench_bound(b, &x))
        return json_null();
    return json_pack("{s:f,s:f,s:f,s:f,s:f,s:i,s:i,s:f,s:f,s:f}", "prefill_us", x.prefill_us,
                     "action_us", x.action_us, "step1_us", x.step1_us, "step_us", x.step_us,
                     "tokens", x.tokens, "k", x.k, "rows", x.rows, "bound", x.bound, "ratio",
                     x.ratio, "of_bound", x.ratio / x.bound);
}

/* The time of one decode step at batch 1: measured in an isolated row if there is one, else the
 * engine's own estimate. */
static double step1_s(const struct tec_bench *b)
{
    for (int i = 0; i < b->n_rows; i++)
        if (b->rows[i].step1.n)
            return (double)tec_samples_at(&b->rows[i].step1, 0.5) / 1e9;
    return tec_costs_us(tec_loop_costs(b->opened.engine->loop), TEC_COST_DECODE, 1, 0.5) / 1e6;
}

/* Faster than memory gives: a cache holds the weights, and their share of its rate means nothing.
 */
static bool in_cache(const struct tec_bench *b, double bytes_s)
{
    return b->read_s > 0.0 && bytes_s > b->read_s;
}

static json_t *memory_json(const struct tec_bench *b)
{
    const struct tec_engine *e = b->opened.engine;
    int64_t bytes = tec_bandwidth_step(e->weights, e->model);
    double step = step1_s(b), used = step > 0.0 ? (double)bytes / step : 0.0;
    bool known = b->read_s > 0.0; /* it is the host's, and not timed where weights lie elsewhere */
    bool cached = in_cache(b, used);
    return json_pack("{s:o,s:I,s:f,s:f,s:b,s:o}", "read_bytes_s",
                     known ? json_real(b->read_s) : json_null(), "step_weight_bytes",
                     (json_int_t)bytes, "step1_us", step * 1e6, "step1_bytes_s", used, "in_cache",
                     (int)cached, "fraction",
                     known && !cached ? json_real(used / b->read_s) : json_null());
}

static double since(const struct tec_bench *b, int64_t ns)
{
    return ns ? (double)(ns - b->start_ns) / 1e6 : -1.0;
}

static json_t *open_json(const struct tec_bench *b)
{
    return json_pack("{s:f,s:f,s:f,s:f,s:f}", "weights_from_ms", since(b, b->weights_ns),
                     "captures_from_ms", since(b, b->captures_ns), "warm_up_from_ms",
                     since(b, b->warm_ns), "open_ms", since(b, b->opened_ns), "first_frame_ms",
                     since(b, b->first_ns));
}

/* Describe the capture of each part: recorded commands, kernels of one turn of its loops, nodes of
 * the graph. */
static json_t *captures_json(const struct tec_plan *plan)
{
    json_t *all = json_array();
    for (int i = 0; i < plan->n_parts; i++) {
        const struct tec_capture *c = plan->parts[i].capture;
        json_array_append_new(all,
                              json_pack("{s:s,s:i,s:i,s:i}", "part", plan->parts[i].name,
                                        "commands", tec_capture_commands(c), "kernels",
                                        tec_capture_kernels(c), "nodes", tec_capture_nodes(c)));
    }
    return all;
}

json_t *tec_bench_json(struct tec_bench *b, const char *command)
{
    const struct tec_engine *e = b->opened.engine;
    json_t *rows = json_array();
    for (int i = 0; i < b->n_rows; i++) {
        struct tec_bench_row *r = &b->rows[i];
        struct tec_samples *all[] = {&r->frame, &r->action, &r->host, &r->age,  &r->prefill,
                                     &r->act,   &r->step1,  &r->step, &r->lives};
        for (size_t s = 0; s < sizeof all / sizeof all[0]; s++)
            tec_samples_sort(all[s]);
        for (int a = 0; a < tec_bench_actions(b); a++)
            tec_samples_sort(&r->released[a]);
    }
    for (int i = 0; i < b->n_rows; i++)
        json_array_append_new(rows, row_json(b, &b->rows[i]));
    json_t *machine = tec_machine_json(e->device);
    json_object_set_new(machine, "load_before", json_real(b->load_before));
    json_object_set_new(machine, "load_after", json_real(b->load_after));
    json_t *measured = json_pack(
        "{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "clock", b->paced ? "paced" : "saturated",
        "turns", "each row in blocks: reset, warm-up, frames; rounds over all rows", "inputs",
        b->inputs[0] ? "file" : "random", "views", b->pictures, "prompt_tokens", b->text, "horizon",
        e->model->flow.horizon, "steps", e->plan->spec.actions[0].steps, "warmup", b->warmup,
        "rounds", b->rounds, "preprocessing_in_frame", 0, "sessions", b->n_sessions);
    return json_pack(
        "{s:o,s:o,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "machine", machine, "settings",
        tec_profile_costs_settings(b->opened.pipeline, b->opened.more.dtype), "commit",
        tec_machine_commit(), "command", command, "model", e->model->name, "dtype",
        e->weights->bf16 ? "bf16" : "f32", "measured", measured, "open", open_json(b), "captures",
        captures_json(e->plan), "memory", memory_json(b), "rows", rows, "bound", bound_json(b));
}

static void print_row(const struct tec_bench *b, const struct tec_bench_row *r, FILE *out)
{
    const struct tec_samples *f = &r->frame;
    double over;
    const char *part = worst_part(b, r, &over);
    char name[64], rate[32] = "-";
    snprintf(name, sizeof name, "%s %s", r->policy, r->params);
    if (r->text_frames)
        snprintf(rate, sizeof rate, "%.1f", (double)r->tokens / seconds(r));
    fprintf(out, "%-18s %6d %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %8s %6.2f %8.1f %5d\n", name,
            (int)r->frames, (double)r->actions / seconds(r), us_at(f, 0.5) / 1e3,
            us_at(f, 0.99) / 1e3, us_at(f, 0.999) / 1e3, us_at(f, 1.0) / 1e3,
            us_at(&r->action, 0.99) / 1e3, rate, mean_batch(r), us_at(&r->host, 0.99),
            (int)r->missed);
    if (b->opened.engine->topology.n_rings)
        fprintf(
            out,
            "  actions %.2f Hz, age p50 %.2f ms, p99 %.2f, max %.2f: %lld to %lld frames; depth "
            "%.3g; %lld frames of filling apart\n",
            (double)r->actions / seconds(r), us_at(&r->age, 0.5) / 1e3, us_at(&r->age, 0.99) / 1e3,
            us_at(&r->age, 1.0) / 1e3, (long long)tec_samples_at(&r->lives, 0.0),
            (long long)tec_samples_at(&r->lives, 1.0), mean_depth(r), (long long)r->filling);
    tec_energy_print(&b->energy, &r->energy, "a frame", measured_frames(r), "an action", r->actions,
                     out);
    fprintf(out, "  worst frame %d: %.2f ms, %s %+.2f ms%s%s\n", (int)r->worst_at,
            (double)(r->worst.end_ns - r->worst.start_ns) / 1e6, part, over / 1e3,
            r->worst.missed ? ", missed: " : "",
            r->worst.missed ? tec_cause_name(r->worst.cause) : "");
    if (tec_policy_report(r->owner)->quarantined)
        fprintf(out, "  %s\n", tec_policy_report(r->owner)->message);
    if (!r->text_frames && r->warm_tokens)
        fprintf(out,
                "  no tok/s: all %lld tokens were made in the warm-up, no text lived on; a shorter "
                "--warmup counts more\n",
                (long long)r->warm_tokens);
}

static void print_nodes(const struct tec_bench *b, const char *node, FILE *out)
{
    for (int i = 0; i < b->n_rows; i++)
        for (int n = 0; n < b->n_nodes; n++) {
            const struct tec_histogram *h = &b->rows[i].nodes[n];
            if (h->n && strcmp(b->nodes[n], node) == 0)
                fprintf(out, "node %s, %s %s: n %d, p50 %.3f ms, p99 %.3f, max %.3f\n", node,
                        b->rows[i].policy, b->rows[i].params, (int)h->n,
                        (double)tec_histogram_at(h, 0.5) / 1e6,
                        (double)tec_histogram_at(h, 0.99) / 1e6, (double)h->max / 1e6);
        }
}

void tec_bench_print(struct tec_bench *b, const char *node, FILE *out)
{
    struct tec_bench_bound x;
    const struct tec_engine *e = b->opened.engine;
    int64_t bytes = tec_bandwidth_step(e->weights, e->model);
    double step = step1_s(b), gb = step > 0.0 ? (double)bytes / step / 1e9 : 0.0;
    tec_machine_print(e->device, out);
    fprintf(out,
            "%s %s, %d views, prompt %d, chunk %d, %d steps; %s; load %.2f before, %.2f after\n"
            "rows take turns: reset, %d frames of warm-up, frames; %d rounds\n",
            e->model->name, e->weights->bf16 ? "bf16" : "f32", b->pictures, b->text,
            e->model->flow.horizon, e->plan->spec.actions[0].steps,
            b->paced ? "paced" : "saturated", b->load_before, b->load_after, b->warmup, b->rounds);
    fprintf(out, "settings: %s\n",
            tec_profile_settings_text(b->opened.pipeline, b->opened.more.dtype, b->call->arena));
    fprintf(out, "%-18s %6s %9s %9s %9s %9s %9s %9s %8s %6s %8s %5s\n", "policy", "frames",
            "action Hz", "frame p50", "p99", "p99.9", "MAX ms", "act p99", "tok/s", "batch",
            "host us", "miss");
    for (int i = 0; i < b->n_rows; i++)
        print_row(b, &b->rows[i], out);
    if (node)
        print_nodes(b, node, out);
    if (tec_bench_bound(b, &x))
        fprintf(out,
                "bound: P %.2f ms, A %.2f, d1 %.3f, d%d %.3f, N %.1f, k %d: %.2fx; measured %.2fx, "
                "%.0f %% of it\n",
                x.prefill_us / 1e3, x.action_us / 1e3, x.step1_us / 1e3, x.rows, x.step_us / 1e3,
                x.tokens, x.k, x.bound, x.ratio, 100.0 * x.ratio / x.bound);
    fprintf(out, "memory: a decode step at batch 1 reads %.2f GB in %.2f ms, %.1f GB/s",
            (double)bytes / 1e9, step * 1e3, gb);
    if (in_cache(b, gb * 1e9))
        fprintf(out, " from a cache, for memory gives %.1f GB/s here", b->read_s / 1e9);
    else if (b->read_s > 0.0)
        fprintf(out, ", %.0f %% of the %.1f GB/s that this machine reads", 1e11 * gb / b->read_s,
                b->read_s / 1e9);
    fputc('\n', out);
    fprintf(out,
            "start: open %.1f ms (weights from %.1f, captures from %.1f, warm-up from %.1f), "
            "first frame at %.1f\n",
            since(b, b->opened_ns), since(b, b->weights_ns), since(b, b->captures_ns),
            since(b, b->warm_ns), since(b, b->first_ns));
}

static enum tec_status write_row(const struct tec_bench_row *r, int index, const char *dir,
                                 struct tec_error *err)
{
    char path[1024];
    struct tec_out_file out = {0};
    snprintf(path, sizeof path, "%s/row%d.hist", dir, index);
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    FILE *f = out.file;
    fprintf(f, "# %s %s: microseconds of a frame, frames\n", r->policy, r->params);
    for (int i = 0, n; i < r->frame.n; i += n) {
        int64_t us = r->frame.ns[i] / 1000;
        for (n = 1; i + n < r->frame.n && r->frame.ns[i + n] / 1000 == us;)
            n++;
        fprintf(f, "%lld %d\n", (long long)us, n);
    }
    return tec_outfile_file_keep(&out, err);
}

enum tec_status tec_bench_write(const struct tec_bench *b, const json_t *report, const char *dir,
                                struct tec_error *err)
{
    char path[1024];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return tec_fail(err, TEC_IO, "%s: %s", dir, strerror(errno));
    snprintf(path, sizeof path, "%s/bench.json", dir);
    TEC_TRY(tec_json_write(path, report, JSON_INDENT(1), err));
    for (int i = 0; i < b->n_rows; i++)
        TEC_TRY(write_row(&b->rows[i], i, dir, err));
    return TEC_OK;
}

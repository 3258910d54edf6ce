/* roofline_report.c - predictions as tables and as JSON. */
#include "base/json_text.h"
#include "tools/measure/machine.h"
#include "tools/measure/modelled.h"

#include <jansson.h>
#include <string.h>

static const char *stage_of(const struct tec_roofline_row *row)
{
    return row->stage ? row->stage : "all";
}

static bool is_decode(const struct tec_roofline_row *row)
{
    return row->part->kind == TEC_PART_DECODE;
}

static bool has_batch(const struct tec_roofline_row *row)
{
    return is_decode(row) || row->part->kind == TEC_PART_VERIFY;
}

/* Its calls are those of a row before it: a private prefill has a frame's, and larger batches have
 * the same. */
static bool repeats(const struct tec_roofline *r, int at)
{
    const struct tec_roofline_row *row = &r->rows[at];
    bool before = row->part->kind == TEC_PART_PREFIX;
    for (int i = 0; i < at; i++)
        before |= has_batch(row) && r->rows[i].part->kind == row->part->kind;
    return before;
}

static void print_sum(const struct tec_roofline_sum *s, FILE *out)
{
    const struct tec_cost *c = &s->cost;
    fprintf(out, "%8lld %11.3f %9.3f %9.3f %10.3f %10.3f %9.3f\n", (long long)s->kernels,
            (double)c->products / 1e9, (double)c->products_f32 / 1e9, (double)c->other / 1e9,
            (double)c->weights / 1e6, (double)tec_cost_plus(c->read, c->written) / 1e6,
            (double)tec_cost_plus(c->kv_read, c->kv_written) / 1e6);
}

static void print_head(const char *first, FILE *out)
{
    fprintf(out, "\n%-14s %-14s %8s %11s %9s %9s %10s %10s %9s\n", first, "", "calls", "GFLOP bf16",
            "f32", "other", "MB weights", "activat.", "KV");
}

/* Parts that stand for one stage of their node. */
static bool has_own_calls(const struct tec_roofline_row *row)
{
    enum tec_part_kind kind = row->part->kind;
    return has_batch(row) || kind == TEC_PART_SCORE || kind == TEC_PART_REMEMBER ||
           ((kind == TEC_PART_RECALL || kind == TEC_PART_RECALL_BRANCH) &&
            strcmp(row->stage, "prefix") == 0);
}

static void print_work(const struct tec_roofline *r, FILE *out)
{
    print_head("work of", out);
    for (int i = 0; i < r->n_rows; i++) {
        fprintf(out, "%-14s %-14s ", r->rows[i].part->name, stage_of(&r->rows[i]));
        print_sum(&r->rows[i].sum, out);
    }
    for (int i = 0; i < r->n_rows; i++) {
        const struct tec_roofline_row *row = &r->rows[i];
        if (repeats(r, i) || row->n_ops == 0)
            continue;
        print_head(has_own_calls(row) ? row->part->name : row->stage, out);
        for (int k = 0; k < row->n_ops; k++) {
            fprintf(out, "%-14s %-14s ", "", row->ops[k].name);
            print_sum(&row->ops[k], out);
        }
    }
}

static void print_times(const struct tec_roofline *r, int peak, FILE *out)
{
    const struct tec_peak *p = r->peaks[peak];
    fprintf(out,
            "\n%s: bf16 %g TFLOP/s (%s), f32 %g TFLOP/s (%s),\n"
            "memory %g GB/s (%s), boundary %g us (%s); ms\n",
            p->title, p->bf16, p->from[0], p->f32, p->from[1], p->memory, p->from[2], p->boundary,
            p->from[3]);
    fprintf(out, "%-14s %-9s %9s %9s %9s %9s %9s\n", "", "", "products", "one term", "+ bound.",
            "two terms", "+ bound.");
    for (int i = 0; i < r->n_rows; i++) {
        const struct tec_roofline_sum *s = &r->rows[i].sum;
        const double *us = s->us[peak];
        double one = us[TEC_BOUND_ONE_TERM], two = us[TEC_BOUND_TWO_TERM];
        fprintf(out, "%-14s %-9s %9.3f %9.3f %9.3f %9.3f %9.3f  predicted\n", r->rows[i].part->name,
                stage_of(&r->rows[i]), us[TEC_BOUND_PRODUCTS] / 1e3, one / 1e3,
                tec_roofline_bounded_us(p, one, s->kernels - s->beside) / 1e3, two / 1e3,
                tec_roofline_bounded_us(p, two, s->kernels - s->beside) / 1e3);
    }
}

/* Calls of a launch: a part runs its loop k times. */
static void print_launches(const struct tec_roofline *r, FILE *out)
{
    const struct tec_ints *ks = &r->pipeline->capture.k;
    fprintf(out, "\n%-14s calls of a launch\n", "variant");
    for (int i = 0; i < r->n_rows; i++) {
        const struct tec_roofline_row *row = &r->rows[i];
        bool last = i + 1 == r->n_rows || r->rows[i + 1].part != row->part;
        if (!last)
            continue;
        fprintf(out, "%-14s", row->part->name);
        if (!is_decode(row) || r->plan->spec.stages)
            fprintf(out, " %lld", (long long)row->sum.kernels);
        for (int k = 0; is_decode(row) && k < ks->n; k++)
            fprintf(out, "%s k = %d: %lld", k ? "," : "", ks->item[k],
                    (long long)row->sum.kernels * ks->item[k]);
        fputc('\n', out);
    }
}

static void print_segments(const struct tec_work_segments *s, int layers, FILE *out)
{
    if (!s->anew)
        return;
    fprintf(out, "recall: %d segments of %d tokens in all, computed anew by layer:", s->n,
            s->tokens);
    for (int i = 0, n; i < layers; i += n) {
        for (n = 1; i + n < layers && s->anew[i + n] == s->anew[i];)
            n++;
        fprintf(out, n > 1 ? " %d x %d" : " %d", s->anew[i], n);
    }
    fputc('\n', out);
}

static json_t *segments_json(const struct tec_work_segments *s, int layers)
{
    json_t *anew = json_array();
    for (int i = 0; s->anew && i < layers; i++)
        json_array_append_new(anew, json_integer(s->anew[i]));
    return json_pack("{s:i, s:i, s:o}", "n", s->n, "tokens", s->tokens, "computed", anew);
}

void tec_roofline_print(const struct tec_roofline *r, FILE *out)
{
    const struct tec_plan *p = r->plan;
    fprintf(out,
            "%s, commit %s: predicted from the costs of its ops, nothing is measured\n"
            "every call reads its weights from memory, also where a cache would still hold them\n"
            "%d picture%s, a prompt of %d token%s, %d steps of %d actions, %s; decode parts: one "
            "step of a full batch, %d tokens made\n",
            r->pipeline->name, tec_machine_commit(), r->size.pictures,
            r->size.pictures == 1 ? "" : "s", r->size.text, r->size.text == 1 ? "" : "s",
            p->spec.actions[0].steps, p->model->flow.horizon, p->weights->bf16 ? "bf16" : "f32",
            r->size.made);
    print_segments(&r->size.segments, p->model->text.stack.layers, out);
    print_launches(r, out);
    print_work(r, out);
    for (int i = 0; i < r->n_peaks; i++)
        print_times(r, i, out);
}

static json_t *sum_json(const struct tec_roofline *r, const struct tec_roofline_sum *s)
{
    const struct tec_cost *c = &s->cost;
    json_t *us = json_object();
    for (int i = 0; i < r->n_peaks; i++) {
        json_t *bounds = json_object();
        for (int b = 0; b < TEC_BOUNDS; b++)
            json_object_set_new(bounds, tec_bound_names[b], json_real(s->us[i][b]));
        json_object_set_new(
            bounds, "boundaries",
            json_real(tec_roofline_bounded_us(r->peaks[i], 0.0, s->kernels - s->beside)));
        json_object_set_new(us, r->peaks[i]->name, bounds);
    }
    return json_pack("{s:I, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I, s:I}, s:o}", "calls",
                     (json_int_t)s->kernels, "flop", "products", (json_int_t)c->products,
                     "products_bytes", (json_int_t)c->products_bytes, "products_f32",
                     (json_int_t)c->products_f32, "other", (json_int_t)c->other, "bytes", "weights",
                     (json_int_t)c->weights, "read", (json_int_t)c->read, "written",
                     (json_int_t)c->written, "kv_read", (json_int_t)c->kv_read, "kv_written",
                     (json_int_t)c->kv_written, "predicted_us", us);
}

static json_t *row_json(const struct tec_roofline *r, const struct tec_roofline_row *row)
{
    json_t *json = sum_json(r, &row->sum), *ops = json_array();
    for (int i = 0; i < row->n_ops; i++) {
        json_t *op = sum_json(r, &row->ops[i]);
        json_object_set_new(op, "op", json_string(row->ops[i].name));
        json_array_append_new(ops, op);
    }
    json_object_set_new(json, "part", json_string(row->part->name));
    json_object_set_new(json, "stage", json_string(stage_of(row)));
    if (has_batch(row))
        json_object_set_new(json, "batch", json_integer(row->part->batch));
    if (row->part->kind == TEC_PART_PACKED)
        json_object_set_new(json, "decode", json_integer(r->plan->spec.stages - 1));
    json_object_set_new(json, "ops", ops);
    return json;
}

static json_t *peak_json(const struct tec_peak *p)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:[s, s, s, s]}", "name", p->name, "title",
                     p->title, "bf16_tflops", p->bf16, "f32_tflops", p->f32, "memory_gbs",
                     p->memory, "boundary_us", p->boundary, "from", p->from[0], p->from[1],
                     p->from[2], p->from[3]);
}

enum tec_status tec_roofline_json(const struct tec_roofline *r, struct tec_arena *arena, FILE *out,
                                  struct tec_error *err)
{
    json_t *modelled = NULL;
    enum tec_status status = tec_modelled_json(&modelled, r, arena, err);
    if (status != TEC_OK) {
        json_decref(modelled);
        return status;
    }
    json_t *machines = json_array(), *rows = json_array(), *k = json_array();
    for (int i = 0; i < r->n_peaks; i++)
        json_array_append_new(machines, peak_json(r->peaks[i]));
    for (int i = 0; i < r->n_rows; i++)
        json_array_append_new(rows, row_json(r, &r->rows[i]));
    for (int i = 0; i < r->pipeline->capture.k.n; i++)
        json_array_append_new(k, json_integer(r->pipeline->capture.k.item[i]));
    json_t *json = json_pack(
        "{s:b, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:o}", "predicted", 1,
        "pipeline", r->pipeline->name, "commit", tec_machine_commit(), "pictures", r->size.pictures,
        "prompt_tokens", r->size.text, "made", r->size.made, "steps",
        r->plan->spec.actions[0].steps, "horizon", r->plan->model->flow.horizon, "bf16",
        r->plan->weights->bf16, "k", k, "machines", machines, "rows", rows, "modelled", modelled);
    if (r->size.segments.anew)
        json_object_set_new(json, "segments",
                            segments_json(&r->size.segments, r->plan->model->text.stack.layers));
    status = tec_json_print(out, json, JSON_INDENT(1) | JSON_REAL_PRECISION(9),
                            "a roofline as JSON", err);
    json_decref(json);
    return status;
}

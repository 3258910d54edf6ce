/* profile_ops_print.c - the times of ops as a table, JSON, CSV, and a flame graph. */
#include "tools/measure/profile_ops.h"

#include "tools/measure/costs_settings.h"
#include "tools/picture/svg.h"

#include <stdlib.h>
#include <string.h>

static double share_of(const struct tec_profiled_ops *ops, const struct tec_profiled_op *op)
{
    return ops->sum_us > 0.0 ? op->us / ops->sum_us : 0.0;
}

static double gflops(const struct tec_profiled_op *op)
{
    return op->us > 0.0 ? (double)tec_cost_flops(&op->cost) / op->us / 1e3 : 0.0;
}

static double gbs(const struct tec_profiled_op *op)
{
    return op->us > 0.0 ? (double)tec_cost_bytes(&op->cost) / op->us / 1e3 : 0.0;
}

static double of_roof(const struct tec_profiled_op *op)
{
    return op->us > 0.0 ? op->roof_us / op->us : 0.0;
}

static int longest_first(const void *a, const void *b)
{
    double x = (*(const struct tec_profiled_op *const *)a)->us;
    double y = (*(const struct tec_profiled_op *const *)b)->us;
    return (x < y) - (x > y);
}

static void layer_text(char text[16], const struct tec_profiled_op *op)
{
    if (op->layer < 0)
        snprintf(text, 16, "all");
    else
        snprintf(text, 16, "%d", op->layer);
}

static void roof_text(char text[16], const struct tec_profiled_ops *ops,
                      const struct tec_profiled_op *op)
{
    snprintf(text, 16, "-");
    if (ops->bytes_s > 0.0)
        snprintf(text, 16, "%.0f%%", 100.0 * of_roof(op));
}

static void print_roof(const struct tec_profiled_ops *ops, FILE *out)
{
    fputs("roof:", out);
    for (int i = 0; i < TEC_PROFILE_RATES; i++)
        if (ops->rates[i].used)
            fprintf(out, " %.1f GFLOP/s %s,", ops->rates[i].flop_s / 1e9, ops->rates[i].name);
    fprintf(out,
            " each of a large product by this engine, %.1f GB/s of a read, measured in this run; "
            "what stays in a cache may lie above it\n",
            ops->bytes_s / 1e9);
}

void tec_profile_print_ops(const struct tec_profiled_ops *ops, FILE *out)
{
    fprintf(out, "settings: %s\n", ops->settings);
    const struct tec_profiled_op **sorted =
        malloc(((size_t)ops->n + 1) * sizeof(const struct tec_profiled_op *));
    if (!sorted)
        return;
    for (int i = 0; i < ops->n; i++)
        sorted[i] = &ops->ops[i];
    qsort(sorted, (size_t)ops->n, sizeof(const struct tec_profiled_op *), longest_first);
    fprintf(out, "%-10s %-12s %-9s %-12s %5s %6s %10s %6s %9s %8s %6s\n", "NODE", "PART", "STAGE",
            "OP", "LAYER", "CALLS", "us", "%", "GFLOP/s", "GB/s", "ROOF");
    for (int i = 0; i < ops->n; i++) {
        const struct tec_profiled_op *op = sorted[i];
        char layer[16], roof[16];
        layer_text(layer, op);
        roof_text(roof, ops, op);
        fprintf(out, "%-10.10s %-12.12s %-9s %-12.12s %5s %6lld %10.1f %6.1f %9.1f %8.1f %6s\n",
                op->node, ops->parts[op->part].name, tec_stage_names[op->stage],
                op->op[0] ? op->op : "(all)", layer, (long long)op->calls, op->us,
                100.0 * share_of(ops, op), gflops(op), gbs(op), roof);
    }
    free(sorted);
    for (int i = 0; i < ops->n_parts; i++)
        fprintf(out, "part %-12s %10.1f us a launch, its calls one by one %10.1f us (%+.1f %%)\n",
                ops->parts[i].name, ops->parts[i].launch_us, ops->parts[i].sum_us,
                100.0 * (ops->parts[i].sum_us / ops->parts[i].launch_us - 1.0));
    if (!(ops->bytes_s > 0.0))
        fprintf(out, "roof: not measured on this device; `tectum graph --roofline` has "
                     "predictions\nof calls that are one kernel the first one has the time\n");
    else
        print_roof(ops, out);
    if (ops->left_out[0])
        fprintf(out, "left out: %s\n", ops->left_out);
}

static json_t *roof_json(const struct tec_profiled_ops *ops)
{
    json_t *roof = json_pack("{s:f}", "gbs", ops->bytes_s / 1e9);
    for (int i = 0; i < TEC_PROFILE_RATES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_gflops", ops->rates[i].name);
        if (ops->rates[i].used)
            json_object_set_new(roof, name, json_real(ops->rates[i].flop_s / 1e9));
    }
    return roof;
}

json_t *tec_profile_ops_json(const struct tec_profiled_ops *ops)
{
    json_t *list = json_array(), *parts = json_array();
    for (int i = 0; i < ops->n; i++) {
        const struct tec_profiled_op *op = &ops->ops[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "node",
                      op->node, "part", ops->parts[op->part].name, "stage",
                      tec_stage_names[op->stage], "op", op->op, "layer",
                      op->layer < 0 ? json_null() : json_integer(op->layer), "calls",
                      (json_int_t)op->calls, "us", op->us, "share", share_of(ops, op), "gflops",
                      gflops(op), "gbs", gbs(op), "of_roof", of_roof(op), "roof_us", op->roof_us));
    }
    for (int i = 0; i < ops->n_parts; i++)
        json_array_append_new(parts,
                              json_pack("{s:s, s:f, s:f}", "part", ops->parts[i].name, "launch_us",
                                        ops->parts[i].launch_us, "sum_us", ops->parts[i].sum_us));
    return json_pack("{s:o, s:o, s:o, s:f, s:f, s:o, s:s}", "settings",
                     tec_profile_costs_settings(ops->pipeline, ops->dtype), "ops", list, "parts",
                     parts, "frame_us", ops->frame_us, "sum_us", ops->sum_us, "roof",
                     roof_json(ops), "left_out", ops->left_out);
}

void tec_profile_ops_csv(const struct tec_profiled_ops *ops, FILE *out)
{
    fputs("node,part,stage,op,layer,calls,us,share,gflops,gbs,of_roof,settings\n", out);
    for (int i = 0; i < ops->n; i++) {
        const struct tec_profiled_op *op = &ops->ops[i];
        char layer[16];
        layer_text(layer, op);
        fprintf(out, "%s,%s,%s,%s,%s,%lld,%.3f,%.6f,%.3f,%.3f,%.4f,%s\n", op->node,
                ops->parts[op->part].name, tec_stage_names[op->stage], op->op, layer,
                (long long)op->calls, op->us, share_of(ops, op), gflops(op), gbs(op), of_roof(op),
                ops->settings);
    }
}

/* --- flame graph ------------------------------------------------------------------------------ */

enum { WIDTH = 1200, ROW = 18, TOP = 30, CHARACTER = 6 };

static const char css[] =
    "text{font:11px sans-serif;fill:#000}.title{font-size:14px}"
    ".part rect{fill:#c9d7e8}.node rect{fill:#e8d3b0}.layer rect{fill:#e5b58a}.op "
    "rect{fill:#d98e6a}"
    "rect{stroke:#fff;stroke-width:.5}g:hover>rect{fill:#f5e663}"
    "@media(prefers-color-scheme:dark){svg{background:#1b1b1b}.title{fill:#eee}}";

static void box(struct tec_svg *svg, const char *class_name, double x, double width, int row,
                const char *name, double us, double whole)
{
    char title[160], shown[64];
    snprintf(title, sizeof title, "%.80s: %.1f us, %.1f %%", name, us, 100.0 * us / whole);
    size_t fit = width > 2.0 * CHARACTER ? (size_t)(width / CHARACTER) - 1 : 0;
    snprintf(shown, sizeof shown, "%.*s", (int)(fit < 60 ? fit : 60), name);
    tec_svg_group(svg, class_name, title);
    tec_svg_rect(svg, x, TOP + row * ROW, width, ROW - 1, 2, NULL);
    if (fit > 1)
        tec_svg_text(svg, x + 3, TOP + row * ROW + 12, NULL, shown);
    tec_svg_group_end(svg);
}

/* Whether two ops stand in one box of that row: 0 part, 1 node and stage, 2 layer, 3 op. */
static bool together(const struct tec_profiled_op *a, const struct tec_profiled_op *b, int row)
{
    bool same = a->part == b->part;
    if (row >= 1)
        same = same && a->stage == b->stage && strcmp(a->node, b->node) == 0;
    if (row >= 2)
        same = same && a->layer == b->layer;
    return row >= 3 ? same && strcmp(a->op, b->op) == 0 : same;
}

static int by_place(const void *a, const void *b)
{
    const struct tec_profiled_op *x = *(const struct tec_profiled_op *const *)a;
    const struct tec_profiled_op *y = *(const struct tec_profiled_op *const *)b;
    if (x->part != y->part)
        return x->part - y->part;
    if (x->stage != y->stage)
        return (int)x->stage - (int)y->stage;
    return x->layer != y->layer ? x->layer - y->layer : x < y ? -1 : x > y;
}

static void name_box(char name[96], const struct tec_profiled_ops *ops,
                     const struct tec_profiled_op *op, int row)
{
    if (row == 0)
        snprintf(name, 96, "%.90s", ops->parts[op->part].name);
    else if (row == 1)
        snprintf(name, 96, "%.40s: %s", op->node, tec_stage_names[op->stage]);
    else if (row == 2)
        snprintf(name, 96, "layer %d", op->layer);
    else
        snprintf(name, 96, "%.90s", op->op);
}

static void draw_row(struct tec_svg *svg, const struct tec_profiled_ops *ops,
                     const struct tec_profiled_op *const *sorted, int row)
{
    static const char *const classes[] = {"part", "node", "layer", "op"};
    double x = 0.0, scale = ops->sum_us > 0.0 ? (double)WIDTH / ops->sum_us : 0.0;
    for (int i = 0; i < ops->n;) {
        double us = 0.0;
        int first = i;
        char name[96];
        for (; i < ops->n && together(sorted[first], sorted[i], row); i++)
            us += sorted[i]->us;
        name_box(name, ops, sorted[first], row);
        box(svg, classes[row], x, us * scale, row, name, us, ops->sum_us);
        x += us * scale;
    }
}

enum tec_status tec_profile_flame(const struct tec_profiled_ops *ops, const char *title,
                                  const char **text, size_t *n, struct tec_arena *arena,
                                  struct tec_error *err)
{
    struct tec_svg svg = {.arena = NULL};
    const struct tec_profiled_op **sorted =
        TEC_NEW(arena, (size_t)ops->n + 1, const struct tec_profiled_op *);
    if (!sorted)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a flame graph");
    for (int i = 0; i < ops->n; i++)
        sorted[i] = &ops->ops[i];
    qsort(sorted, (size_t)ops->n, sizeof(const struct tec_profiled_op *), by_place);
    tec_svg_begin(&svg, arena, WIDTH, TOP + 4 * ROW + 8, css);
    tec_svg_text(&svg, 4, 18, "title", title);
    for (int row = 0; row < 4; row++)
        draw_row(&svg, ops, sorted, row);
    return tec_svg_end(&svg, text, n, err);
}

/* report.c - what the reports of all suites share. */
#include "base/json_text.h"
#include "tests/experiments/suite.h"

#include "tools/measure/machine.h"

#include <math.h>

json_t *tec_suite_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

void tec_suite_cell(FILE *out, double value, int decimals, const char *unit)
{
    if (isfinite(value))
        fprintf(out, " %.*f%s |", decimals, value, unit);
    else
        fputs(" - |", out);
}

void tec_suite_print_head(const struct tec_suite_head *h, FILE *out)
{
    const char *cpu = json_string_value(json_object_get(h->machine, "cpu"));
    const char *tier = json_string_value(json_object_get(h->machine, "tier"));
    double lanes = (double)json_integer_value(json_object_get(h->machine, "lanes"));
    fprintf(out,
            "# %s\n\n%sMachine: %s, %d cores, tier %s, %.0f lanes; load %.2f before, %.2f after; "
            "commit %s; %d points in %.0f s.\n\n```\n%s\n```\n\n",
            h->title,
            h->quick ? "Made with --quick: it shows that the suite works and measures nothing.\n\n"
                     : "",
            cpu ? cpu : "unknown", (int)json_integer_value(json_object_get(h->machine, "cores")),
            tier ? tier : "unknown", lanes, h->load_before, h->load_after, tec_machine_commit(),
            h->points, h->seconds, h->command);
    if (h->load_before > 0.5 || h->load_after > lanes + 0.5)
        fputs("The machine was not quiet: its load says that other processes ran, and ratios of "
              "single "
              "points may be\ntheirs.\n\n",
              out);
}

json_t *tec_suite_head_json(const struct tec_suite_head *h, const char *suite)
{
    json_t *machine = json_deep_copy(h->machine);
    json_object_set_new(machine, "load_before", json_real(h->load_before));
    json_object_set_new(machine, "load_after", json_real(h->load_after));
    return json_pack("{s:o,s:s,s:s,s:s}", "machine", machine, "commit", tec_machine_commit(),
                     "command", h->command, "suite", suite);
}

enum tec_status tec_suite_write_json(const struct tec_invocation *call, const char *dir,
                                     json_t *json, bool ended, struct tec_error *err)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/suite.json", dir);
    enum tec_status status =
        tec_json_write(path, json, JSON_INDENT(1) | JSON_REAL_PRECISION(9), err);
    if (status == TEC_OK && ended && call->shared.format == TEC_FORMAT_JSON)
        status = tec_json_print(call->out, json, JSON_INDENT(1) | JSON_REAL_PRECISION(9),
                                "a report", err);
    json_decref(json);
    return status;
}

struct tec_plot_panel *tec_suite_panel(struct tec_plot *plot, enum tec_plot_kind kind,
                                       const char *title, const char *x_label, const char *y_label)
{
    struct tec_plot_panel *p = &plot->panels[plot->n_panels++];
    *p = (struct tec_plot_panel){
        .kind = kind, .title = title, .x_label = x_label, .y_label = y_label, .decimals = 2};
    return p;
}

struct tec_plot_series *tec_suite_series(struct tec_plot_panel *p, const char *name,
                                         enum tec_plot_color color, bool dashed)
{
    struct tec_plot_series *s = &p->series[p->n_series++];
    *s = (struct tec_plot_series){.name = name, .color = color, .dashed = dashed};
    for (int i = 0; i < TEC_PLOT_POINTS; i++)
        s->value[i] = (double)NAN;
    return s;
}

enum tec_status tec_suite_write_plot(struct tec_plot *plot, const char *dir, const char *name,
                                     struct tec_heap *heap, struct tec_error *err)
{
    char path[1024];
    int kept = 0;
    for (int i = 0; i < plot->n_panels; i++)
        if (plot->panels[i].n_x > 0 && plot->panels[i].n_series > 0)
            plot->panels[kept++] = plot->panels[i];
    plot->n_panels = kept;
    if (kept == 0)
        return TEC_OK;
    snprintf(path, sizeof path, "%s/%s.svg", dir, name);
    return tec_plot_write(plot, path, heap, err);
}

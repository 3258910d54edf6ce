/* figures.c - figures 4 to 7 of the paper from what was measured. */
#include "tests/experiments/oxygen/oxygen.h"

#include "tools/measure/machine.h"
#include "tools/picture/plot.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { HEADLINE_S = 10, HEADLINE_K = 5, HEADLINE_N = 30, PADDED_PANEL = TEC_OXYGEN_ROBOTS };

struct figure {
    const struct tec_oxygen *suite;
    struct tec_arena arena;
    struct tec_plot plot;
};

typedef double metric_fn(const struct tec_oxygen_point *p);

static const char *text(struct figure *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static const char *text(struct figure *f, const char *format, ...)
{
    char line[200];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const char *copy = tec_arena_strdup(&f->arena, line);
    return copy ? copy : "";
}

/* The values of a sweep that were measured, in order, as names. */
static int sweep(struct figure *f, bool of_k, int *values, const char **names)
{
    int n = 0;
    for (const int *v = of_k ? tec_oxygen_k : tec_oxygen_n; *v; v++) {
        bool ran = false;
        for (int i = 0; i < f->suite->n_points && !ran; i++) {
            const struct tec_oxygen_point *p = &f->suite->points[i];
            ran = p->ran && p->robot == TEC_OXYGEN_ROBOTS - 1 &&
                  p->setting == TEC_OXYGEN_BATCHING && !p->load &&
                  (of_k ? p->k == *v && p->N == HEADLINE_N : p->N == *v && p->k == HEADLINE_K);
        }
        if (!ran)
            continue;
        names[n] = text(f, "%d", *v);
        values[n++] = *v;
    }
    return n;
}

/* One setting over N (k as it is in figures over N) or over k (N = 30). */
static void fill(const struct figure *f, struct tec_plot_series *s, metric_fn *metric, int robot,
                 enum tec_oxygen_setting setting, enum tec_oxygen_input input, bool of_k,
                 const int *values, int n)
{
    for (int i = 0; i < n; i++) {
        int N = of_k ? HEADLINE_N : values[i];
        int k = setting != TEC_OXYGEN_BATCHING ? 0 : of_k ? values[i] : HEADLINE_K;
        s->value[i] = metric(tec_oxygen_find(f->suite, robot, setting, input, HEADLINE_S, N, k));
    }
}

static void add_lines(struct figure *f, bool of_k, metric_fn *metric, const char *y_label)
{
    for (int robot = 0; robot < TEC_OXYGEN_ROBOTS; robot++) {
        int values[TEC_PLOT_POINTS] = {0};
        struct tec_plot_panel *p =
            tec_suite_panel(&f->plot, TEC_PLOT_LINES, tec_oxygen_robots[robot].label,
                            of_k ? "decoding steps a frame k" : "decoding steps N", y_label);
        p->n_x = sweep(f, of_k, values, p->x);
        fill(f, tec_suite_series(p, "baseline, padded", TEC_PLOT_GRAY, of_k), metric, robot,
             TEC_OXYGEN_BASELINE, TEC_OXYGEN_PADDED, of_k, values, p->n_x);
        fill(f, tec_suite_series(p, "baseline", TEC_PLOT_RED, of_k), metric, robot,
             TEC_OXYGEN_BASELINE, TEC_OXYGEN_COMPACT, of_k, values, p->n_x);
        fill(f, tec_suite_series(p, "shared prefill, no batching", TEC_PLOT_ORANGE, of_k), metric,
             robot, TEC_OXYGEN_SHARED, TEC_OXYGEN_COMPACT, of_k, values, p->n_x);
        fill(f, tec_suite_series(p, "oxygen", TEC_PLOT_BLUE, false), metric, robot,
             TEC_OXYGEN_BATCHING, TEC_OXYGEN_COMPACT, of_k, values, p->n_x);
    }
}

static void add_heat(struct figure *f, bool of_k)
{
    for (int robot = 0; robot <= PADDED_PANEL; robot++) {
        enum tec_oxygen_input input =
            robot == PADDED_PANEL ? TEC_OXYGEN_PADDED : TEC_OXYGEN_COMPACT;
        int values[TEC_PLOT_POINTS] = {0};
        struct tec_plot_panel *p = tec_suite_panel(
            &f->plot, TEC_PLOT_HEAT,
            robot == PADDED_PANEL ? "padded: any of them" : tec_oxygen_robots[robot].label,
            of_k ? "decoding steps a frame k" : "decoding steps N", NULL);
        p->n_x = sweep(f, of_k, values, p->x);
        for (const int *S = tec_oxygen_s; *S; S++) {
            struct tec_plot_series *s =
                tec_suite_series(p, text(f, "S = %d", *S), TEC_PLOT_BLUE, false);
            bool any = false;
            for (int i = 0; i < p->n_x; i++) {
                int N = of_k ? HEADLINE_N : values[i], k = of_k ? values[i] : HEADLINE_K;
                s->value[i] = tec_oxygen_ratio(
                    tec_oxygen_find(f->suite, robot, TEC_OXYGEN_BASELINE, input, *S, N, 0),
                    tec_oxygen_find(f->suite, robot, TEC_OXYGEN_BATCHING, input, *S, N, k));
                any = any || !isnan(s->value[i]);
            }
            p->n_series -= !any;
        }
    }
}

static void add_ablation(struct figure *f)
{
    int values[TEC_PLOT_POINTS] = {0};
    struct tec_plot_panel *p =
        tec_suite_panel(&f->plot, TEC_PLOT_BARS, "compact", "decoding steps N", "actions/s");
    struct tec_plot_panel *q =
        tec_suite_panel(&f->plot, TEC_PLOT_BARS, "padded", "decoding steps N", "actions/s");
    p->n_x = sweep(f, false, values, p->x);
    q->n_x = sweep(f, false, values, q->x);
    for (int input = 0; input < TEC_OXYGEN_INPUTS; input++) {
        struct tec_plot_panel *one = input == TEC_OXYGEN_PADDED ? q : p;
        fill(f, tec_suite_series(one, "baseline", TEC_PLOT_RED, false), tec_oxygen_action_hz, 0,
             TEC_OXYGEN_BASELINE, (enum tec_oxygen_input)input, false, values, one->n_x);
        if (input == TEC_OXYGEN_COMPACT)
            fill(f, tec_suite_series(one, "parallel", TEC_PLOT_VIOLET, false), tec_oxygen_action_hz,
                 0, TEC_OXYGEN_PARALLEL, TEC_OXYGEN_COMPACT, false, values, one->n_x);
        fill(f, tec_suite_series(one, "shared prefill, no batching", TEC_PLOT_ORANGE, false),
             tec_oxygen_action_hz, 0, TEC_OXYGEN_SHARED, (enum tec_oxygen_input)input, false,
             values, one->n_x);
        fill(f, tec_suite_series(one, "oxygen", TEC_PLOT_BLUE, false), tec_oxygen_action_hz, 0,
             TEC_OXYGEN_BATCHING, (enum tec_oxygen_input)input, false, values, one->n_x);
        struct tec_plot_series *bound =
            tec_suite_series(one, "bound of batching", TEC_PLOT_GRAY, true);
        for (int i = 0; i < one->n_x; i++)
            bound->value[i] = tec_oxygen_action_hz(tec_oxygen_find(
                f->suite, 0, TEC_OXYGEN_SHARED, (enum tec_oxygen_input)input, HEADLINE_S, 5, 0));
    }
}

/* Fig 7 of one category: per-request frequency over a row, batch under it. The baseline serves one
 * request after the other: its frequency over the mean batch, as the paper counts it. */
static void add_load(struct figure *f, const char *category, const char *title, const char *x_label,
                     bool batch)
{
    const struct tec_oxygen_point *base = tec_oxygen_find(
        f->suite, 0, TEC_OXYGEN_BASELINE, TEC_OXYGEN_COMPACT, HEADLINE_S, HEADLINE_N, 0);
    struct tec_plot_panel *p = tec_suite_panel(&f->plot, TEC_PLOT_LINES, title, x_label,
                                               batch ? "mean batch" : "actions/s a request");
    struct tec_plot_series *ours = tec_suite_series(p, batch ? "mean batch" : "oxygen",
                                                    batch ? TEC_PLOT_GREEN : TEC_PLOT_BLUE, false);
    struct tec_plot_series *one_by_one =
        batch ? NULL : tec_suite_series(p, "baseline, one by one", TEC_PLOT_RED, false);
    struct tec_plot_series *apart =
        batch ? NULL : tec_suite_series(p, "oxygen, prefills one by one", TEC_PLOT_VIOLET, false);
    for (const struct tec_oxygen_load *load = tec_oxygen_loads; load->category; load++) {
        const struct tec_oxygen_point *alone = tec_oxygen_load_point(f->suite, load, false);
        const struct tec_oxygen_point *point = tec_oxygen_load_point(f->suite, load, true);
        point = point ? point : alone;
        if (!point || !point->ran || strcmp(load->category, category) != 0)
            continue;
        ours->value[p->n_x] = batch ? tec_oxygen_batch(point) : tec_oxygen_action_hz(point);
        if (apart)
            apart->value[p->n_x] = tec_oxygen_action_hz(alone);
        if (one_by_one)
            one_by_one->value[p->n_x] = tec_oxygen_action_hz(base) / tec_oxygen_batch(point);
        p->x[p->n_x++] = load->label;
    }
}

static void add_loads(struct figure *f)
{
    for (int batch = 0; batch < 2; batch++) {
        add_load(f, "uniform", "uniform", "requests a frame", batch);
        add_load(f, "poisson", "Poisson", "requests a frame, mean", batch);
        add_load(f, "random_length", "random length", "long / short of ten", batch);
    }
}

static void begin(struct figure *f, const char *title, int columns)
{
    memset(&f->plot, 0, sizeof f->plot);
    f->plot.title = title;
    f->plot.columns = columns;
    f->plot.subtitle = text(f, "%s size, random weights; S = 10, k = 5 unless said; commit %s%s",
                            tec_shared_size(&f->suite->call->shared), tec_machine_commit(),
                            f->suite->quick ? "; --quick: no measurement" : "");
}

static enum tec_status write(struct figure *f, const char *name, struct tec_error *err)
{
    return tec_suite_write_plot(&f->plot, f->suite->dir, name, f->suite->call->heap, err);
}

static enum tec_status draw_all(struct figure *f, struct tec_error *err)
{
    begin(f, "Fig 4a: actions and tokens a second over N", TEC_OXYGEN_ROBOTS);
    add_lines(f, false, tec_oxygen_action_hz, "actions/s");
    add_lines(f, false, tec_oxygen_tokens_s, "tokens/s");
    TEC_TRY(write(f, "fig4a", err));
    begin(f, "Fig 4b: actions and tokens a second over k, N = 30", TEC_OXYGEN_ROBOTS);
    add_lines(f, true, tec_oxygen_action_hz, "actions/s");
    add_lines(f, true, tec_oxygen_tokens_s, "tokens/s");
    TEC_TRY(write(f, "fig4b", err));
    begin(f, "Fig 5a: baseline over oxygen, median frames, k = 5", 2);
    add_heat(f, false);
    TEC_TRY(write(f, "fig5a", err));
    begin(f, "Fig 5b: baseline over oxygen, median frames, N = 30", 2);
    add_heat(f, true);
    TEC_TRY(write(f, "fig5b", err));
    begin(f, "Fig 6: what each half gains, LIBERO", 2);
    add_ablation(f);
    TEC_TRY(write(f, "fig6", err));
    begin(f, "Fig 7: arrivals, LIBERO, N = 30", 3);
    add_loads(f);
    return write(f, "fig7", err);
}

enum tec_status tec_oxygen_write_figures(const struct tec_oxygen *suite, struct tec_error *err)
{
    struct figure *f = TEC_NEW(suite->call->arena, 1, struct figure);
    if (!f)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for figures");
    f->suite = suite;
    tec_arena_init(&f->arena, suite->call->heap);
    enum tec_status status = draw_all(f, err);
    tec_arena_finish(&f->arena);
    return status;
}

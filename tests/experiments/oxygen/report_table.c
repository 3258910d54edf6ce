/* report_table.c - DIR/oxygen.md: the paper's ratios beside ours, and what ours were made of. */
#include "tests/experiments/oxygen/oxygen.h"

#include "base/out_file.h"

#include <math.h>
#include <string.h>

/* COMPACT, PADDED: baseline and oxygen on the same input; ACROSS: padded baseline against compact
 * oxygen, what leaving the padding away gains besides. */
enum column { COMPACT, PADDED, ACROSS, COLUMNS };

struct table {
    const struct tec_oxygen *s;
    FILE *out;
};

static const struct tec_oxygen_point *at(const struct table *t, enum tec_oxygen_setting setting,
                                         enum column column, bool divisor, int N, int k)
{
    enum tec_oxygen_input input =
        column == PADDED || (column == ACROSS && !divisor) ? TEC_OXYGEN_PADDED : TEC_OXYGEN_COMPACT;
    return tec_oxygen_find(t->s, 0, setting, input, 10, N, k);
}

static void row(const struct table *t, const char *what, const char *paper,
                const double values[COLUMNS], const char *unit)
{
    bool any = false;
    for (int c = 0; c < COLUMNS; c++)
        any = any || isfinite(values[c]);
    if (!any)
        return; /* no such points in this size */
    fprintf(t->out, "| %s | %s |", what, paper);
    for (int c = 0; c < COLUMNS; c++)
        tec_suite_cell(t->out, values[c], 2, unit);
    fputc('\n', t->out);
}

/* Smallest and largest speed-up of the points over (S, N, k) of all robots. */
static void range(const struct table *t, enum column column, double *low, double *high)
{
    *low = HUGE_VAL;
    *high = -HUGE_VAL;
    for (int i = 0; i < t->s->n_points; i++) {
        const struct tec_oxygen_point *p = &t->s->points[i];
        if (p->setting != TEC_OXYGEN_BATCHING || p->load || p->N % p->k ||
            p->input != (column == PADDED ? TEC_OXYGEN_PADDED : TEC_OXYGEN_COMPACT))
            continue;
        double ratio = tec_oxygen_ratio(
            tec_oxygen_find(t->s, p->robot, TEC_OXYGEN_BASELINE,
                            column == COMPACT ? TEC_OXYGEN_COMPACT : TEC_OXYGEN_PADDED, p->S, p->N,
                            0),
            p);
        *low = fmin(*low, ratio);
        *high = fmax(*high, ratio);
    }
}

static void range_row(const struct table *t)
{
    fputs("| Fig 4, 5: speed-up over all settings | 1.2 to 3.7 |", t->out);
    for (int c = 0; c < COLUMNS; c++) {
        double low, high;
        range(t, (enum column)c, &low, &high);
        if (isfinite(low) && isfinite(high))
            fprintf(t->out, " %.2f to %.2f |", low, high);
        else
            fputs(" - |", t->out);
    }
    fputc('\n', t->out);
}

static void ratio_row(const struct table *t, const char *what, const char *paper,
                      enum tec_oxygen_setting a, int a_n, enum tec_oxygen_setting b, int b_n,
                      int b_k)
{
    double v[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        v[c] = tec_oxygen_ratio(at(t, a, (enum column)c, false, a_n, 0),
                                at(t, b, (enum column)c, true, b_n, b_k));
    row(t, what, paper, v, "");
}

/* Ratios of one setting at two N: on one input, so nothing stands across. */
static void drop_row(const struct table *t, const char *what, const char *paper,
                     enum tec_oxygen_setting setting, int from, int to, int k)
{
    double v[COLUMNS] = {(double)NAN, (double)NAN, (double)NAN};
    for (int c = 0; c < ACROSS; c++)
        v[c] = tec_oxygen_ratio(at(t, setting, (enum column)c, true, to, k),
                                at(t, setting, (enum column)c, true, from, k));
    row(t, what, paper, v, "");
}

/* What often requested frames make more than rarely requested ones, and the range over lengths. */
static void arrivals_rows(const struct table *t)
{
    const struct tec_oxygen_point *rare[2] = {NULL}, *often[2] = {NULL};
    double lengths_low = HUGE_VAL, lengths_high = 0.0;
    double v[COLUMNS] = {(double)NAN, (double)NAN, (double)NAN};
    for (const struct tec_oxygen_load *l = tec_oxygen_loads; l->category; l++)
        for (int together = 0; together < 2; together++) {
            const struct tec_oxygen_point *p = tec_oxygen_load_point(t->s, l, together);
            if (!p || !p->ran)
                continue;
            if (strcmp(l->category, "uniform") == 0) {
                rare[together] = rare[together] ? rare[together] : p;
                often[together] = p;
            }
            if (strcmp(l->category, "random_length") == 0) {
                lengths_low = fmin(lengths_low, tec_oxygen_action_hz(p));
                lengths_high = fmax(lengths_high, tec_oxygen_action_hz(p));
            }
        }
    v[COMPACT] = tec_oxygen_actions_s(often[1]) / tec_oxygen_actions_s(rare[1]);
    row(t, "Fig 7 uniform: actions a second, 4 requests a frame over 1/4, in one launch", "4.4", v,
        "");
    v[COMPACT] = tec_oxygen_actions_s(often[0]) / tec_oxygen_actions_s(rare[0]);
    row(t, "the same, prefills and actions one after the other", "-", v, "");
    v[COMPACT] = tec_oxygen_action_hz(often[1]) / tec_oxygen_action_hz(rare[1]);
    row(t, "Fig 7 uniform: actions a second and request, in one launch", "falls", v, "");
    v[COMPACT] = isfinite(lengths_low) ? lengths_high / lengths_low : (double)NAN;
    row(t, "Fig 7 random length: largest over smallest frequency", "constant", v, "");
}

/* Fig 7, every point: a frame's arrivals in one launch beside the same one after the other. */
static void load_rows(const struct table *t)
{
    bool any = false;
    for (const struct tec_oxygen_load *l = tec_oxygen_loads; l->category; l++)
        for (int together = 0; together < 2; together++) {
            const struct tec_oxygen_point *p = tec_oxygen_load_point(t->s, l, together);
            const struct tec_oxygen_point *apart = tec_oxygen_load_point(t->s, l, false);
            if (!p || !p->ran)
                continue;
            if (!any)
                fputs("\nFig 7: LIBERO, S = 10, N = 30, k = 5. Actions of all requests; the ratio "
                      "is to the same arrivals one after\nthe other. Milliseconds of a frame.\n\n"
                      "| arrivals | a frame | prefill and actions | frames | p50 | p99 | max | "
                      "actions/s | ratio | mean batch | refused |\n"
                      "|---|---|---|---|---|---|---|---|---|---|---|\n",
                      t->out);
            any = true;
            fprintf(t->out, "| %s | %s | %s | %d |", l->category, l->label,
                    together ? "in one launch" : "one after the other", p->sorted.n);
            tec_suite_cell(t->out, tec_oxygen_ms_at(p, 0.5), 2, "");
            tec_suite_cell(t->out, tec_oxygen_ms_at(p, 0.99), 2, "");
            tec_suite_cell(t->out, tec_oxygen_ms_at(p, 1.0), 2, "");
            tec_suite_cell(t->out, tec_oxygen_actions_s(p), 1, "");
            tec_suite_cell(t->out, tec_oxygen_actions_s(p) / tec_oxygen_actions_s(apart), 2, "");
            tec_suite_cell(t->out, tec_oxygen_batch(p), 2, "");
            fprintf(t->out, " %lld |\n", (long long)p->refused);
        }
}

static double joules(const struct tec_oxygen_point *p)
{
    double n = 0.0;
    for (int i = 0; p && i < p->n; i++)
        n += p->frame[i].warmup ? 0 : p->frame[i].n_new;
    return p && p->ran ? p->joules / n : (double)NAN;
}

static void resources_rows(const struct table *t)
{
    static const struct {
        const char *name, *memory, *energy;
        enum tec_oxygen_setting setting;
        int k, slot;
    } rows[] = {
        {"parallel", "1.94", "1.03", TEC_OXYGEN_PARALLEL, 0, TEC_OXYGEN_PARALLEL},
        {"shared prefill, no batching", "1.00", "0.83", TEC_OXYGEN_SHARED, 0, TEC_OXYGEN_SHARED},
        {"oxygen, batch of 2", "1.14", "0.33", TEC_OXYGEN_BATCHING, 10, TEC_OXYGEN_SETTINGS},
        {"oxygen, batch of 4", "1.15", "0.22", TEC_OXYGEN_BATCHING, 5, TEC_OXYGEN_BATCHING},
    };
    const struct tec_oxygen_point *base = at(t, TEC_OXYGEN_BASELINE, COMPACT, true, 20, 0);
    fputs(
        "\nTable 2, over the baseline (LIBERO, S = 10, N = 20). Memory is the bytes of the static "
        "plan;\nenergy is counted by the machine, - where it does not.\n\n"
        "| setting | paper, memory | ours | paper, energy a request | ours |\n"
        "|---|---|---|---|---|\n",
        t->out);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double memory =
            (double)t->s->memory[rows[i].slot] / (double)t->s->memory[TEC_OXYGEN_BASELINE];
        double energy = joules(at(t, rows[i].setting, COMPACT, true, 20, rows[i].k)) / joules(base);
        fprintf(t->out, "| %s | %s |", rows[i].name, rows[i].memory);
        tec_suite_cell(t->out, memory, 2, "");
        fprintf(t->out, " %s |", rows[i].energy);
        tec_suite_cell(t->out, energy, 2, "");
        fputc('\n', t->out);
    }
}

/* The headline points in full: quantiles, not means alone. */
static void frame_rows(const struct table *t)
{
    fputs("\nN = 30, S = 10, and k = 5 for oxygen. Milliseconds of a frame; what launches took on "
          "average is in suite.json.\n\n"
          "| robot | input | policy | frames | p50 | p99 | max | actions/s | tokens/s | mean batch "
          "|\n|---|---|---|---|---|---|---|---|---|---|\n",
          t->out);
    for (int i = 0; i < t->s->n_points; i++) {
        const struct tec_oxygen_point *p = &t->s->points[i];
        if (!p->ran || p->S != 10 || p->N != 30 || p->load || (p->k && p->k != 5))
            continue;
        fprintf(t->out, "| %s | %s | %s | %d |",
                p->input == TEC_OXYGEN_PADDED ? "any" : tec_oxygen_robots[p->robot].label,
                tec_oxygen_inputs[p->input], tec_oxygen_policies[p->setting], p->sorted.n);
        tec_suite_cell(t->out, tec_oxygen_ms_at(p, 0.5), 2, "");
        tec_suite_cell(t->out, tec_oxygen_ms_at(p, 0.99), 2, "");
        tec_suite_cell(t->out, tec_oxygen_ms_at(p, 1.0), 2, "");
        tec_suite_cell(t->out, tec_oxygen_action_hz(p), 1, "");
        tec_suite_cell(t->out, tec_oxygen_tokens_s(p), 1, "");
        tec_suite_cell(t->out, tec_oxygen_batch(p), 2, "");
        fputc('\n', t->out);
    }
}

struct tec_suite_head tec_oxygen_head(const struct tec_oxygen *s)
{
    return (struct tec_suite_head){.machine = s->machine,
                                   .title = "OxyGen's experiments",
                                   .command = s->command,
                                   .load_before = s->load_before,
                                   .load_after = s->load_after,
                                   .seconds = (double)s->elapsed_ns / 1e9,
                                   .points = s->n_points,
                                   .quick = s->quick};
}

static void head(const struct table *t)
{
    const struct tec_suite_head h = tec_oxygen_head(t->s);
    tec_suite_print_head(&h, t->out);
    fprintf(t->out,
            "%s size, random weights (seed %llu), random pixels, end token off, H = %d; rows take "
            "turns, %d round%s.\nCompact: the robot's cameras and a prompt of %d tokens, for both "
            "sides. Padded: three pictures and %d tokens,\nwhat OxyGen's code computes, for both "
            "sides. Across: padded baseline against compact oxygen. Ratios are of median\nframes, "
            "on LIBERO with S = 10 where nothing else is said.\n\n",
            tec_shared_size(&t->s->call->shared), (unsigned long long)t->s->seed,
            TEC_OXYGEN_HORIZON, t->s->rounds, t->s->rounds == 1 ? "" : "s", TEC_OXYGEN_PROMPT,
            TEC_OXYGEN_PADDED_PROMPT);
}

static void write_all(const struct table *t)
{
    head(t);
    fputs("| figure | paper (RTX 4090) | compact | padded | across |\n|---|---|---|---|---|\n",
          t->out);
    range_row(t);
    ratio_row(t, "Fig 6: baseline over oxygen, N = 30, k = 5", "3.1", TEC_OXYGEN_BASELINE, 30,
              TEC_OXYGEN_BATCHING, 30, 5);
    ratio_row(t, "Fig 6: baseline over shared prefill, N = 5", "1.4", TEC_OXYGEN_BASELINE, 5,
              TEC_OXYGEN_SHARED, 5, 0);
    ratio_row(t, "Fig 6: baseline over shared prefill, N = 30", "-", TEC_OXYGEN_BASELINE, 30,
              TEC_OXYGEN_SHARED, 30, 0);
    ratio_row(t, "Fig 6: baseline over parallel, N = 20 (table 2)", "1.07", TEC_OXYGEN_BASELINE, 20,
              TEC_OXYGEN_PARALLEL, 20, 0);
    drop_row(t, "Fig 6: baseline, frame of N = 30 over N = 5", "2.6", TEC_OXYGEN_BASELINE, 5, 30,
             0);
    drop_row(t, "Fig 6: oxygen, frame of N = 30 over N = 10", "nearly 1", TEC_OXYGEN_BATCHING, 10,
             30, 5);
    double v[COLUMNS] = {(double)NAN, (double)NAN, (double)NAN};
    for (int c = 0; c < ACROSS; c++)
        v[c] = tec_oxygen_ratio(at(t, TEC_OXYGEN_SHARED, (enum column)c, true, 5, 0),
                                at(t, TEC_OXYGEN_BATCHING, (enum column)c, true, 30, 5));
    row(t, "Fig 6: of the bound of batching (N = 5, one request), N = 30", "0.86", v, "");
    for (int c = 0; c < ACROSS; c++)
        v[c] = tec_oxygen_batch(at(t, TEC_OXYGEN_BATCHING, (enum column)c, true, 30, 5));
    row(t, "mean batch at N = 30, k = 5 (N / k = 6)", "6", v, "");
    arrivals_rows(t);
    if (at(t, TEC_OXYGEN_BASELINE, COMPACT, true, 20, 0))
        resources_rows(t);
    frame_rows(t);
    load_rows(t);
}

enum tec_status tec_oxygen_write_table(const struct tec_oxygen *s, struct tec_error *err)
{
    struct tec_out_file out = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/oxygen.md", s->dir);
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    const struct table t = {s, out.file};
    write_all(&t);
    return tec_outfile_file_keep(&out, err);
}

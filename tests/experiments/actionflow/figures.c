/* figures.c - figure 5 of the paper, the ages beside it, and what a frame is made of. */
#include "tests/experiments/actionflow/actionflow.h"

#include <math.h>
#include <string.h>

struct figure {
    const struct tec_actionflow *suite;
    struct tec_arena arena;
    struct tec_plot plot;
};

static const enum tec_plot_color colors[TEC_ACTIONFLOW_VARIANTS] = {
    TEC_PLOT_RED, TEC_PLOT_VIOLET, TEC_PLOT_GRAY, TEC_PLOT_ORANGE, TEC_PLOT_GREEN, TEC_PLOT_BLUE};

static const char *name(struct figure *f, const char *format, int value)
{
    char line[64];
    snprintf(line, sizeof line, "%.40s%d", format, value);
    const char *copy = tec_arena_strdup(&f->arena, line);
    return copy ? copy : "";
}

static void begin(struct figure *f, const char *title, int columns)
{
    memset(&f->plot, 0, sizeof f->plot);
    f->plot.title = title;
    f->plot.subtitle = f->suite->quick ? "--quick: not a measurement" : NULL;
    f->plot.columns = columns;
}

/* The cells of a prompt length, one for each K. */
static int cells_of(const struct figure *f, int text,
                    const struct tec_actionflow_cell *cells[TEC_ACTIONFLOW_STAGES])
{
    int n = 0;
    for (int k = 0; k < TEC_ACTIONFLOW_STAGES; k++) {
        const struct tec_actionflow_cell *c =
            tec_actionflow_find(f->suite, tec_actionflow_stages[k], text);
        if (c && c->rows[TEC_ACTIONFLOW_SEQUENTIAL].ran)
            cells[n++] = c;
    }
    return n;
}

static double rate(const struct tec_actionflow_cell *c, enum tec_actionflow_variant v)
{
    return tec_actionflow_actions_s(&c->rows[v]);
}

static double age(const struct tec_actionflow_cell *c, enum tec_actionflow_variant v)
{
    return tec_actionflow_age_ms(&c->rows[v], 0.5);
}

static void add_sweeps(struct figure *f,
                       double (*metric)(const struct tec_actionflow_cell *c,
                                        enum tec_actionflow_variant v),
                       const char *y_label, bool bound)
{
    for (int t = 0; t < TEC_ACTIONFLOW_TEXTS; t++) {
        const struct tec_actionflow_cell *cells[TEC_ACTIONFLOW_STAGES];
        int n = cells_of(f, tec_actionflow_texts[t], cells);
        if (n == 0)
            continue;
        struct tec_plot_panel *p =
            tec_suite_panel(&f->plot, TEC_PLOT_LINES, name(f, "prefix of ", cells[0]->prefix),
                            "tokens of an action K", y_label);
        p->n_x = n;
        for (int i = 0; i < n; i++)
            p->x[i] = name(f, "", cells[i]->stages);
        for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++) {
            struct tec_plot_series *s =
                tec_suite_series(p, tec_actionflow_variants[v], colors[v], false);
            for (int i = 0; i < n; i++)
                s->value[i] = metric(cells[i], (enum tec_actionflow_variant)v);
        }
        struct tec_plot_series *s =
            bound ? tec_suite_series(p, "bound", TEC_PLOT_GRAY, true) : NULL;
        for (int i = 0; s && i < n; i++)
            s->value[i] =
                rate(cells[i], TEC_ACTIONFLOW_SEQUENTIAL) * tec_actionflow_bound(cells[i]);
    }
}

static void add_pieces(struct figure *f)
{
    static const enum tec_plot_color of[TEC_ACTIONFLOW_PIECES] = {
        TEC_PLOT_VIOLET, TEC_PLOT_BLUE, TEC_PLOT_RED, TEC_PLOT_GREEN, TEC_PLOT_ORANGE};
    const struct tec_actionflow_cell *c = &f->suite->cells[f->suite->by_call];
    struct tec_plot_panel *p =
        tec_suite_panel(&f->plot, TEC_PLOT_BARS, name(f, "K = ", c->stages), "a frame of", "ms");
    for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++)
        if (!isnan(tec_actionflow_piece_ms(f->suite, (enum tec_actionflow_variant)v,
                                           TEC_ACTIONFLOW_PREFIX)))
            p->x[p->n_x++] = tec_actionflow_variants[v];
    for (int piece = 0; piece < TEC_ACTIONFLOW_PIECES; piece++) {
        struct tec_plot_series *s =
            tec_suite_series(p, tec_actionflow_pieces[piece], of[piece], false);
        for (int v = 0, x = 0; v < TEC_ACTIONFLOW_VARIANTS; v++) {
            double ms = tec_actionflow_piece_ms(f->suite, (enum tec_actionflow_variant)v,
                                                (enum tec_actionflow_piece)piece);
            if (!isnan(ms))
                s->value[x++] = ms;
        }
    }
}

static enum tec_status write(struct figure *f, const char *file, struct tec_error *err)
{
    return tec_suite_write_plot(&f->plot, f->suite->dir, file, f->suite->call->heap, err);
}

static enum tec_status draw_all(struct figure *f, struct tec_error *err)
{
    begin(f, "Fig 5: actions a second over K", TEC_ACTIONFLOW_TEXTS);
    add_sweeps(f, rate, "actions/s", true);
    TEC_TRY(write(f, "fig5", err));
    begin(f, "From the observation to its action, median", TEC_ACTIONFLOW_TEXTS);
    add_sweeps(f, age, "ms", false);
    TEC_TRY(write(f, "age", err));
    begin(f, "Fig 2: what a frame is made of", 1);
    add_pieces(f);
    return write(f, "fig2", err);
}

enum tec_status tec_actionflow_write_figures(const struct tec_actionflow *suite,
                                             struct tec_error *err)
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

/* figures.c - figures 3, 7, 9 and 10 of the paper. */
#include "tests/experiments/keep/keeping.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct figure {
    const struct tec_keeping *s;
    struct tec_arena arena;
    struct tec_plot plot;
};

static const char *name(struct figure *f, const char *format, int value)
{
    const char *text = tec_arena_printf(&f->arena, "%s%d", format, value);
    return text ? text : "";
}

static void begin(struct figure *f, const char *title, int columns)
{
    memset(&f->plot, 0, sizeof f->plot);
    f->plot.title = title;
    f->plot.subtitle = f->s->quick ? "--quick: not a measurement" : NULL;
    f->plot.columns = columns;
}

static enum tec_status write(struct figure *f, const char *file, struct tec_error *err)
{
    return tec_suite_write_plot(&f->plot, f->s->dir, file, f->s->call->heap, err);
}

static double ttft(const struct tec_keeping_row *r)
{
    return r ? tec_keeping_ms(&r->ttft, 0.5) : (double)NAN;
}

static enum tec_status draw_segments(struct figure *f, struct tec_error *err)
{
    static const char *const methods[] = {"full", "prefix", "reuse", "cacheblend, blocks", "keep"};
    static const enum tec_plot_color colors[] = {TEC_PLOT_RED, TEC_PLOT_ORANGE, TEC_PLOT_GRAY,
                                                 TEC_PLOT_GREEN, TEC_PLOT_BLUE};
    begin(f, "Fig 9: time to the first token over retrieved segments", 1);
    struct tec_plot_panel *p = tec_suite_panel(&f->plot, TEC_PLOT_LINES, NULL, "segments", "ms");
    const struct tec_keeping_cell *cells[TEC_PLOT_POINTS] = {NULL};
    for (int i = 0; i < f->s->n_cells && p->n_x < TEC_PLOT_POINTS; i++) {
        const struct tec_keeping_cell *c = &f->s->cells[i];
        if (!c->ran || strcmp(c->experiment, "segments") != 0)
            continue;
        cells[p->n_x] = c;
        p->x[p->n_x++] = name(f, "", c->segments);
    }
    for (int m = 0; m < 5; m++) {
        struct tec_plot_series *s = tec_suite_series(p, methods[m], colors[m], false);
        for (int i = 0; i < p->n_x; i++)
            s->value[i] = ttft(tec_keeping_find(cells[i], methods[m]));
    }
    return write(f, "fig9", err);
}

/* Rows of a cell whose names begin so: TTFT, KL and agreement over them. */
static void add_rows(struct figure *f, const struct tec_keeping_cell *c, const char *first,
                     const char *title)
{
    struct tec_plot_panel *p = tec_suite_panel(&f->plot, TEC_PLOT_LINES, title, NULL, "ms");
    struct tec_plot_panel *q = tec_suite_panel(&f->plot, TEC_PLOT_LINES, title, NULL, "KL, nats");
    struct tec_plot_series *time = tec_suite_series(p, "TTFT", TEC_PLOT_BLUE, false);
    struct tec_plot_series *kl = tec_suite_series(q, "KL", TEC_PLOT_ORANGE, false);
    for (int i = 1; i < c->n_rows && p->n_x < TEC_PLOT_POINTS; i++) {
        const struct tec_keeping_row *r = &c->rows[i];
        if (strncmp(r->method.name, first, strlen(first)) != 0)
            continue;
        time->value[p->n_x] = ttft(r);
        kl->value[p->n_x] = tec_keeping_kl(r);
        p->x[p->n_x] = r->method.name + strlen(first);
        q->x[p->n_x] = p->x[p->n_x];
        q->n_x = ++p->n_x;
    }
}

static enum tec_status draw_ratio(struct figure *f, struct tec_error *err)
{
    const struct tec_keeping_cell *c = tec_keeping_cell_of(f->s, "ratio", 0);
    if (!c)
        return TEC_OK;
    begin(f, "Fig 10: over the mean share of segments computed anew", 2);
    add_rows(f, c, "keep ", "KEEP, paper's scoring");
    add_rows(f, c, "lift ", "KEEP, lift");
    add_rows(f, c, "cacheblend ", "CacheBlend, share of tokens");
    return write(f, "fig10", err);
}

static enum tec_status draw_blocks(struct figure *f, struct tec_error *err)
{
    const struct tec_keeping_cell *c = tec_keeping_cell_of(f->s, "blocks", 0);
    if (!c)
        return TEC_OK;
    begin(f, "Fig 3: CacheBlend over the tokens of a block", 2);
    add_rows(f, c, "", "a block's tokens");
    return write(f, "fig3", err);
}

/* At most as many points as a chart takes: every k-th layer. */
static enum tec_status draw_layers(struct figure *f, struct tec_error *err)
{
    const struct tec_keeping_cell *c = tec_keeping_cell_of(f->s, "methods", 0);
    const struct tec_keeping_row *r = c ? tec_keeping_find(c, "keep") : NULL;
    if (!r || !r->steps)
        return TEC_OK;
    begin(f, "Fig 7: what a layer computes and what it needs loaded", 1);
    struct tec_plot_panel *p = tec_suite_panel(&f->plot, TEC_PLOT_LINES, NULL, "layer", "ms");
    struct tec_plot_series *compute = tec_suite_series(p, "compute", TEC_PLOT_BLUE, false);
    struct tec_plot_series *slow = tec_suite_series(p, "load at 0.5 GB/s", TEC_PLOT_RED, false);
    struct tec_plot_series *fast = tec_suite_series(p, "load at 5 GB/s", TEC_PLOT_GREEN, false);
    int every = (f->s->layers + TEC_PLOT_POINTS - 1) / TEC_PLOT_POINTS;
    double n = (double)r->steps;
    for (int l = 0; l < f->s->layers; l += every) {
        compute->value[p->n_x] = r->layer_ns[l] / n / 1e6;
        slow->value[p->n_x] = r->layer_bytes[l] / n / 5e8 * 1e3;
        fast->value[p->n_x] = r->layer_bytes[l] / n / 5e9 * 1e3;
        p->x[p->n_x++] = name(f, "", l);
    }
    return write(f, "fig7", err);
}

/* Answers that are right over the share, a line for each scoring. */
static enum tec_status draw_answers(struct figure *f, struct tec_error *err)
{
    static const enum tec_plot_color colors[] = {TEC_PLOT_RED, TEC_PLOT_ORANGE, TEC_PLOT_GREEN,
                                                 TEC_PLOT_BLUE, TEC_PLOT_GRAY};
    begin(f, "Answers that are right over the share computed anew", 1);
    struct tec_plot_panel *p = tec_suite_panel(&f->plot, TEC_PLOT_LINES, NULL, "share", "%");
    for (int i = 0; i < f->s->n_cells && i < 5; i++) {
        const struct tec_keeping_cell *c = &f->s->cells[i];
        bool blend = strcmp(c->experiment, "baselines") == 0;
        struct tec_plot_series *s =
            tec_suite_series(p, blend ? "cacheblend" : c->experiment, colors[i], false);
        for (int k = 1; c->ran && k < c->n_rows && k <= 7; k++) {
            s->value[k - 1] = 100.0 * tec_keeping_right(&c->rows[k]);
            if (!blend)
                p->x[k - 1] = c->rows[k].method.name;
        }
        p->n_x = 7;
    }
    return write(f, "answers", err);
}

static enum tec_status draw_all(struct figure *f, struct tec_error *err)
{
    if (f->s->weights)
        return draw_answers(f, err);
    TEC_TRY(draw_segments(f, err));
    TEC_TRY(draw_ratio(f, err));
    TEC_TRY(draw_blocks(f, err));
    return draw_layers(f, err);
}

enum tec_status tec_keeping_write_figures(const struct tec_keeping *suite, struct tec_error *err)
{
    struct figure *f = TEC_NEW(suite->call->arena, 1, struct figure);
    if (!f)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for figures");
    f->s = suite;
    tec_arena_init(&f->arena, suite->call->heap);
    enum tec_status status = draw_all(f, err);
    tec_arena_finish(&f->arena);
    return status;
}

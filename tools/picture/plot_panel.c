/* plot_panel.c - one panel of a chart. */
#include "tools/picture/plot_panel.h"

#include <math.h>
#include <stdio.h>

enum { LEFT = 46, RIGHT = 12, TOP = 34, BOTTOM = 52, SHADES = 9 };

const char *const tec_plot_classes[TEC_PLOT_COLORS] = {"c0", "c1", "c2", "c3", "c4", "c5"};

/* The area in which values are drawn. */
struct area {
    double x, y, w, h, top; /* top: the value at y */
};

void tec_plot_number(char text[32], double value, int decimals)
{
    static const long long units[] = {1, 10, 100, 1000};
    long long unit = units[decimals], scaled = llround(value * (double)unit);
    if (decimals == 0)
        snprintf(text, 32, "%lld", scaled);
    else
        snprintf(text, 32, "%lld.%0*lld", scaled / unit, decimals, scaled % unit);
}

double tec_plot_axis(double most, double *step)
{
    if (!(most > 0.0))
        most = 1.0;
    double rough = most / 5.0, power = pow(10.0, floor(log10(rough))), lead = rough / power;
    *step = power * (lead <= 1.0   ? 1.0
                     : lead <= 2.0 ? 2.0
                     : lead <= 2.5 ? 2.5
                     : lead <= 5.0 ? 5.0
                                   : 10.0);
    return ceil(most / *step - 1e-9) * *step;
}

static int decimals_of(double step)
{
    for (int d = 0; d < 3; d++) {
        double scaled = step * pow(10.0, d);
        if (scaled > 0.999 && fabs(scaled - round(scaled)) < 1e-6)
            return d;
    }
    return 3;
}

static double largest(const struct tec_plot_panel *p)
{
    double most = 0.0;
    for (int s = 0; s < p->n_series; s++)
        for (int i = 0; i < p->n_x; i++)
            most = fmax(most, p->series[s].value[i]); /* NAN is passed over */
    return most;
}

static double x_of(const struct area *a, const struct tec_plot_panel *p, int i)
{
    return a->x + a->w * ((double)i + 0.5) / p->n_x;
}

static double y_of(const struct area *a, double value)
{
    return a->y + a->h * (1.0 - value / a->top);
}

static void draw_axes(struct tec_svg *svg, const struct tec_plot_panel *p, struct area *a)
{
    double step;
    char text[32];
    a->top = tec_plot_axis(largest(p), &step);
    int n = (int)lround(a->top / step), decimals = decimals_of(step);
    for (int i = 0; i <= n; i++) {
        double y = y_of(a, i * step);
        tec_svg_line(svg, a->x, y, a->x + a->w, y, i ? "grid" : "axis");
        tec_plot_number(text, i * step, decimals);
        tec_svg_text(svg, a->x - 6.0, y + 4.0, "y", text);
    }
}

static void draw_names(struct tec_svg *svg, const struct tec_plot_panel *p, const struct area *a,
                       const struct tec_plot_frame *f)
{
    for (int i = 0; i < p->n_x; i++)
        tec_svg_text(svg, x_of(a, p, i), a->y + a->h + 15.0, "tick", p->x[i]);
    if (p->x_label)
        tec_svg_text(svg, a->x + a->w / 2.0, a->y + a->h + 31.0, "label", p->x_label);
    if (p->title)
        tec_svg_text(svg, a->x + a->w / 2.0, f->y + 2.0, "panel", p->title);
    if (p->y_label)
        tec_svg_text(svg, f->x, f->y + 15.0, "note", p->y_label);
}

static void draw_line(struct tec_svg *svg, const struct tec_plot_panel *p,
                      const struct tec_plot_series *s, const struct area *a)
{
    const char *color = tec_plot_classes[s->color];
    int last = -1;
    tec_svg_group(svg, s->dashed ? "dash" : "line", s->name);
    for (int i = 0; i < p->n_x; i++) {
        if (isnan(s->value[i]))
            continue;
        if (last >= 0 && (last == i - 1 || s->dashed))
            tec_svg_line(svg, x_of(a, p, last), y_of(a, s->value[last]), x_of(a, p, i),
                         y_of(a, s->value[i]), color);
        last = i;
    }
    tec_svg_group_end(svg);
    for (int i = 0; i < p->n_x && !s->dashed; i++) {
        char text[32];
        if (isnan(s->value[i]))
            continue;
        tec_plot_number(text, s->value[i], 2);
        tec_svg_group(svg, NULL,
                      tec_arena_printf(svg->arena, "%s, %s: %s", s->name, p->x[i], text));
        tec_svg_rect(svg, x_of(a, p, i) - 3.0, y_of(a, s->value[i]) - 3.0, 6.0, 6.0, 3.0, color);
        tec_svg_group_end(svg);
    }
}

static void draw_bars(struct tec_svg *svg, const struct tec_plot_panel *p, const struct area *a)
{
    int n = 0, at = 0;
    for (int s = 0; s < p->n_series; s++)
        n += !p->series[s].dashed;
    double group = a->w / p->n_x, width = n ? group * 0.8 / n : 0.0;
    for (int s = 0; s < p->n_series; s++) {
        const struct tec_plot_series *one = &p->series[s];
        if (one->dashed)
            continue;
        for (int i = 0; i < p->n_x; i++) {
            char text[32];
            if (isnan(one->value[i]))
                continue;
            double y = y_of(a, one->value[i]);
            tec_plot_number(text, one->value[i], 2);
            tec_svg_group(svg, tec_plot_classes[one->color],
                          tec_arena_printf(svg->arena, "%s, %s: %s", one->name, p->x[i], text));
            tec_svg_rect(svg, a->x + group * (i + 0.1) + width * at, y, fmax(width - 1.0, 0.5),
                         a->y + a->h - y, 0.0, "bar");
            tec_svg_group_end(svg);
        }
        at++;
    }
}

/* Equal steps of colour between the smallest and the largest value of the panel. */
static void draw_cells(struct tec_svg *svg, const struct tec_plot_panel *p, const struct area *a)
{
    static const char *const shades[SHADES] = {"h0", "h1", "h2", "h3", "h4",
                                               "h5", "h6", "h7", "h8"};
    double low = HUGE_VAL, high = largest(p), w = a->w / p->n_x, h = a->h / p->n_series;
    for (int s = 0; s < p->n_series; s++)
        for (int i = 0; i < p->n_x; i++)
            low = fmin(low, p->series[s].value[i]);
    for (int s = 0; s < p->n_series; s++) {
        double y = a->y + h * s;
        tec_svg_text(svg, a->x - 6.0, y + h / 2.0 + 4.0, "y", p->series[s].name);
        for (int i = 0; i < p->n_x; i++) {
            double v = p->series[s].value[i], x = a->x + w * i;
            int shade =
                isnan(v) || high <= low ? 0 : (int)((v - low) / (high - low) * (SHADES - 0.01));
            char text[32];
            tec_svg_rect(svg, x + 0.5, y + 0.5, w - 1.0, h - 1.0, 2.0,
                         isnan(v) ? "none" : shades[shade]);
            if (isnan(v))
                continue;
            tec_plot_number(text, v, p->decimals);
            tec_svg_text(svg, x + w / 2.0, y + h / 2.0 + 4.0, shade >= 5 ? "hot" : "cell", text);
        }
    }
}

void tec_plot_panel_draw(struct tec_svg *svg, const struct tec_plot_panel *panel,
                         const struct tec_plot_frame *frame)
{
    struct area a = {frame->x + LEFT, frame->y + TOP, frame->w - LEFT - RIGHT,
                     frame->h - TOP - BOTTOM, 1.0};
    if (panel->kind == TEC_PLOT_HEAT)
        draw_cells(svg, panel, &a);
    else
        draw_axes(svg, panel, &a);
    if (panel->kind == TEC_PLOT_BARS)
        draw_bars(svg, panel, &a);
    for (int s = 0; s < panel->n_series && panel->kind != TEC_PLOT_HEAT; s++)
        if (panel->kind == TEC_PLOT_LINES || panel->series[s].dashed)
            draw_line(svg, panel, &panel->series[s], &a);
    draw_names(svg, panel, &a, frame);
}

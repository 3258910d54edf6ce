/* timeline.c - draws a timeline that was laid out. */
#include "tools/picture/timeline.h"

#include "base/out_file.h"
#include "tools/picture/svg.h"
#include "tools/picture/timeline_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Blue, orange and gray stay apart for colour-blind eyes too. */
static const char css[] =
    "text{font:11px 'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif;fill:#1f2933}\n"
    ".page{fill:#fff}\n"
    ".title{font-size:16px;font-weight:bold}\n"
    ".subtitle,.tick,.note{fill:#616e7c}\n"
    ".tick{text-anchor:middle}\n"
    ".even{fill:#f5f7fa}\n"
    ".odd{fill:#fff}\n"
    ".grid{stroke:#d9dfe6;stroke-width:1}\n"
    ".axis{stroke:#9aa5b1;stroke-width:1}\n"
    ".hard rect{fill:#2166ac}\n"
    ".soft rect{fill:#f4a742}\n"
    ".host rect{fill:#87919e}\n"
    ".beside,.release text,.deadline text{paint-order:stroke;stroke:#fff;stroke-width:3px;"
    "stroke-linejoin:round}\n"
    ".labels{pointer-events:none}\n"
    ".labels .hard,.labels .host{fill:#fff;paint-order:stroke;stroke-width:3px}\n"
    ".labels .hard{stroke:#2166ac}\n"
    ".labels .host{stroke:#87919e}\n"
    ".labels .soft{paint-order:stroke;stroke:#f4a742;stroke-width:3px}\n"
    ".release line{stroke:#2f855a;stroke-width:1.5}\n"
    ".release path,.release text{fill:#2f855a}\n"
    ".deadline line{stroke:#c53030;stroke-width:1.5;stroke-dasharray:5 3}\n"
    ".deadline path,.deadline text{fill:#c53030}\n"
    ".left{text-anchor:end}\n";

static const char *const kind_names[] = {"hard", "soft", "host"};
static const char *const kind_texts[] = {"hard: has a deadline", "soft: fills the rest",
                                         "host: outside the graph"};
static const char *const mark_names[] = {"release", "deadline"};

/* Milliseconds with 0 to 3 decimals, by hand: printf would write a comma in some locales. */
static void format_ms(char *text, size_t size, double us, int decimals)
{
    static const long long units[] = {1, 10, 100, 1000};
    long long unit = units[decimals], scaled = llround(us * (double)unit / 1000.0);
    long long whole = scaled < 0 ? -scaled : scaled;
    const char *sign = scaled < 0 ? "-" : "";
    if (decimals == 0)
        snprintf(text, size, "%s%lld", sign, whole);
    else
        snprintf(text, size, "%s%lld.%0*lld", sign, whole / unit, decimals, whole % unit);
}

/* The step of 1, 2 or 5 times a power of ten that gives about ten ticks. At least one us. */
static double tick_step(double range_us)
{
    double rough = fmax(range_us / 10.0, 1.0), power = pow(10.0, floor(log10(rough)));
    double lead = rough / power;
    return power * (lead <= 1.0 ? 1.0 : lead <= 2.0 ? 2.0 : lead <= 5.0 ? 5.0 : 10.0);
}

static void draw_axis(struct tec_svg *svg, const struct tec_timeline_layout *l)
{
    double step = tick_step(l->last_us - l->first_us);
    int decimals = step >= 1000.0 ? 0 : step >= 100.0 ? 1 : step >= 10.0 ? 2 : 3;
    double first = ceil(l->first_us / step - 1e-9), last = floor(l->last_us / step);
    char text[48];
    for (int i = 0; i < 40 && first + i <= last; i++) {
        double us = (first + i) * step, x = tec_timeline_x(l, us);
        tec_svg_line(svg, x, l->top, x, l->bottom + 4.0, "grid");
        format_ms(text, sizeof text, us, decimals);
        tec_svg_text(svg, x, l->bottom + 17.0, "tick", text);
    }
    tec_svg_line(svg, l->left, l->bottom, l->right, l->bottom, "axis");
    tec_svg_text(svg, TEC_TIMELINE_MARGIN, l->bottom + 17.0, "note", "ms");
}

/* The text, or its beginning and an ellipsis, within `width` pixels; NULL when nothing useful is
 * left or memory is refused. */
static const char *shorten(struct tec_arena *arena, const char *text, double width)
{
    size_t most = width > 0.0 ? (size_t)(width / tec_timeline_text_width("x")) : 0, n = 0, at = 0;
    if (tec_timeline_text_width(text) <= width)
        return text;
    if (most < 4)
        return NULL;
    while (text[at] != '\0' && n < most - 1) {
        char *head = tec_arena_strndup(arena, text, at + 1);
        if (!head)
            return NULL;
        n = tec_svg_columns(head);
        at++;
        while (((unsigned char)text[at] & 0xc0) == 0x80)
            at++;
    }
    return tec_arena_printf(arena, "%.*s\xe2\x80\xa6", (int)at, text);
}

static void draw_lanes(struct tec_svg *svg, const struct tec_timeline_layout *l)
{
    for (int i = 0; i < l->timeline->n_lanes; i++) {
        const struct tec_timeline_lane *lane = &l->lanes[i];
        const char *name = l->timeline->lanes[i];
        double width = l->left - TEC_TIMELINE_MARGIN - 10.0;
        const char *fits = shorten(svg->arena, name, width);
        tec_svg_rect(svg, TEC_TIMELINE_MARGIN - 8.0, lane->y, l->right - TEC_TIMELINE_MARGIN + 16.0,
                     lane->height, 0.0, i % 2 ? "odd" : "even");
        tec_svg_group(svg, "lane", name);
        tec_svg_text(svg, TEC_TIMELINE_MARGIN, lane->y + 6.0 + TEC_TIMELINE_BAR / 2.0 + 4.0, NULL,
                     fits ? fits : "");
        tec_svg_group_end(svg);
    }
}

static void draw_bars(struct tec_svg *svg, const struct tec_timeline_layout *l)
{
    for (size_t i = 0; i < l->timeline->n_spans; i++) {
        const struct tec_timeline_bar *bar = &l->bars[i];
        const struct tec_timeline_span *s = bar->span;
        char start[48], end[48], ms[48];
        format_ms(start, sizeof start, s->start_us, 3);
        format_ms(end, sizeof end, s->end_us, 3);
        format_ms(ms, sizeof ms, s->end_us - s->start_us, 3);
        tec_svg_group(svg, kind_names[s->kind],
                      tec_arena_printf(svg->arena, "%s: %s ms, from %s to %s (%s)", s->label, ms,
                                       start, end, kind_names[s->kind]));
        tec_svg_rect(svg, bar->x, bar->y, bar->width, TEC_TIMELINE_BAR, fmin(3.0, bar->width / 3.0),
                     NULL);
        tec_svg_group_end(svg);
    }
}

/* The bars that share a label: one, or a run of equal bars that touch. */
struct run {
    const struct tec_timeline_bar *first, *last;
    int n;
};

static struct run find_run(const struct tec_timeline_layout *l, size_t i)
{
    const struct tec_timeline_bar *bar = &l->bars[i], *end = l->bars + l->timeline->n_spans;
    struct run run = {bar, bar, 1};
    if (tec_timeline_text_width(bar->span->label) <= bar->width - 10.0)
        return run; /* each has room for its own */
    for (const struct tec_timeline_bar *next = bar + 1; next < end; next++) {
        if (next->y != bar->y || next->span->kind != bar->span->kind ||
            next->x > run.last->x + run.last->width + 2.0 ||
            strcmp(next->span->label, bar->span->label) != 0)
            break;
        run.last = next;
        run.n++;
    }
    return run;
}

/* Draw the label in the first of these ways that fits: inside with the duration, inside, beside
 * with it, beside, shortened inside. */
static void draw_label(struct tec_svg *svg, const struct run *run)
{
    const char *label = run->first->span->label, *cut, *kind = kind_names[run->first->span->kind];
    double us = run->last->span->end_us - run->first->span->start_us;
    double end = run->last->x + run->last->width, inside = end - run->first->x - 10.0;
    double beside = run->last->free_x - end - 8.0, x = run->first->x + 5.0;
    double y = run->first->y + TEC_TIMELINE_BAR / 2.0 + 4.0;
    char ms[48];
    format_ms(ms, sizeof ms, us, us < 1000.0 ? 2 : 1);
    if (run->n > 1)
        label = tec_arena_printf(svg->arena, "%s \xc3\x97 %d", label, run->n);
    const char *both = label ? tec_arena_printf(svg->arena, "%s  %s ms", label, ms) : NULL;
    if (!both)
        return;
    double short_width = tec_timeline_text_width(label), width = tec_timeline_text_width(both);
    if (width <= inside)
        tec_svg_text(svg, x, y, kind, both);
    else if (short_width <= inside)
        tec_svg_text(svg, x, y, kind, label);
    else if (width <= beside)
        tec_svg_text(svg, end + 4.0, y, "beside", both);
    else if (short_width <= beside)
        tec_svg_text(svg, end + 4.0, y, "beside", label);
    else if ((cut = shorten(svg->arena, label, inside)) != NULL)
        tec_svg_text(svg, x, y, kind, cut);
}

/* Labels are drawn after the marks, so that no line crosses a label. */
static void draw_labels(struct tec_svg *svg, const struct tec_timeline_layout *l)
{
    tec_svg_group(svg, "labels", NULL);
    for (size_t i = 0; i < l->timeline->n_spans;) {
        struct run run = find_run(l, i);
        draw_label(svg, &run);
        i += (size_t)run.n;
    }
    tec_svg_group_end(svg);
}

static void draw_arrow(struct tec_svg *svg, double x, double y)
{
    tec_svg_path(svg, (double[]){x - 4.5, y - 7.0, x + 4.5, y - 7.0, x, y}, 3, true, NULL);
}

static void draw_flags(struct tec_svg *svg, const struct tec_timeline_layout *l)
{
    for (size_t i = 0; i < l->timeline->n_marks; i++) {
        const struct tec_timeline_flag *flag = &l->flags[i];
        const struct tec_timeline_mark *m = flag->mark;
        double y = flag->line < 0 ? l->top : l->marks_y + flag->line * TEC_TIMELINE_LINE;
        double width = tec_timeline_text_width(m->label) + 10.0;
        char ms[48];
        bool left = flag->x + width > TEC_TIMELINE_WIDTH - 4.0;
        format_ms(ms, sizeof ms, m->time_us, 3);
        tec_svg_group(
            svg, mark_names[m->kind],
            tec_arena_printf(svg->arena, "%s: %s at %s ms", mark_names[m->kind], m->label, ms));
        tec_svg_line(svg, flag->x, y, flag->x, l->bottom, NULL);
        draw_arrow(svg, flag->x, l->top);
        if (flag->line >= 0)
            tec_svg_text(svg, left ? flag->x - 6.0 : flag->x + 6.0, y + 10.0, left ? "left" : NULL,
                         m->label);
        tec_svg_group_end(svg);
    }
}

static void draw_legend(struct tec_svg *svg, const struct tec_timeline_layout *l)
{
    double x = l->left, y = l->bottom + 40.0;
    unsigned kinds = 0, marks = 0;
    for (size_t i = 0; i < l->timeline->n_spans; i++)
        kinds |= 1u << l->timeline->spans[i].kind;
    for (size_t i = 0; i < l->timeline->n_marks; i++)
        marks |= 1u << l->timeline->marks[i].kind;
    for (unsigned k = 0; k < 3; k++) {
        if (!(kinds >> k & 1u))
            continue;
        tec_svg_group(svg, kind_names[k], NULL);
        tec_svg_rect(svg, x, y, 18.0, 11.0, 2.0, NULL);
        tec_svg_text(svg, x + 24.0, y + 9.5, "note", kind_texts[k]);
        tec_svg_group_end(svg);
        x += 24.0 + tec_timeline_text_width(kind_texts[k]) + 22.0;
    }
    for (unsigned k = 0; k < 2; k++) {
        if (!(marks >> k & 1u))
            continue;
        tec_svg_group(svg, mark_names[k], NULL);
        tec_svg_line(svg, x + 6.0, y - 3.0, x + 6.0, y + 14.0, NULL);
        draw_arrow(svg, x + 6.0, y + 2.0);
        tec_svg_text(svg, x + 16.0, y + 9.5, NULL, mark_names[k]);
        tec_svg_group_end(svg);
        x += 16.0 + tec_timeline_text_width(mark_names[k]) + 22.0;
    }
}

enum tec_status tec_timeline_svg(const struct tec_timeline *t, const char **text, size_t *n,
                                 struct tec_arena *arena, struct tec_error *err)
{
    struct tec_timeline_layout layout;
    struct tec_svg svg = {0};
    double y = TEC_TIMELINE_MARGIN;
    TEC_TRY(tec_timeline_place(&layout, t, arena, err));
    tec_svg_begin(&svg, arena, TEC_TIMELINE_WIDTH, layout.height, css);
    tec_svg_rect(&svg, 0.0, 0.0, TEC_TIMELINE_WIDTH, layout.height, 0.0, "page");
    if (t->title)
        tec_svg_text(&svg, TEC_TIMELINE_MARGIN, y += 14.0, "title", t->title);
    if (t->subtitle)
        tec_svg_text(&svg, TEC_TIMELINE_MARGIN, y + (t->title ? 20.0 : 10.0), "subtitle",
                     t->subtitle);
    draw_lanes(&svg, &layout);
    draw_axis(&svg, &layout);
    draw_bars(&svg, &layout);
    draw_flags(&svg, &layout);
    draw_labels(&svg, &layout);
    if (t->n_spans == 0)
        tec_svg_text(&svg, layout.left, layout.bottom + 34.0, "note", "nothing ran");
    draw_legend(&svg, &layout);
    return tec_svg_end(&svg, text, n, err);
}

enum tec_status tec_timeline_write(const struct tec_timeline *timeline, const char *path,
                                   struct tec_heap *heap, struct tec_error *err)
{
    struct tec_arena arena;
    struct tec_out_file out = {0};
    const char *text = NULL;
    size_t n = 0;
    tec_arena_init(&arena, heap);
    enum tec_status status = tec_timeline_svg(timeline, &text, &n, &arena, err);
    if (status == TEC_OK)
        status = tec_outfile_file_open(&out, path, err);
    if (out.file) {
        fwrite(text, 1, n, out.file);
        status = tec_outfile_file_keep(&out, err);
    }
    tec_arena_finish(&arena);
    return status;
}

/* plot.c - charts as SVG. */
#include "tools/picture/plot.h"

#include "base/out_file.h"
#include "tools/picture/plot_panel.h"

#include <math.h>
#include <string.h>

enum { PANEL_W = 330, PANEL_H = 270, MARGIN = 24, HEAD = 58, LEGEND = 34 };

/* The colours of the timeline and two more; colour-blind eyes can tell them apart, too. */
static const char css[] =
    "text{font:11px 'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif;fill:#1f2933}\n"
    ".page{fill:#fff}\n"
    ".title{font-size:16px;font-weight:bold}\n"
    ".panel{font-size:12px;font-weight:bold;text-anchor:middle}\n"
    ".subtitle,.tick,.label,.note{fill:#616e7c}\n"
    ".tick,.label,.cell,.hot{text-anchor:middle}\n"
    ".y{text-anchor:end;fill:#616e7c}\n"
    ".hot{fill:#fff}\n"
    ".grid{stroke:#d9dfe6;stroke-width:1}\n"
    ".axis{stroke:#9aa5b1;stroke-width:1}\n"
    ".c0{fill:#2166ac;stroke:#2166ac}.c1{fill:#f4a742;stroke:#f4a742}\n"
    ".c2{fill:#2f855a;stroke:#2f855a}.c3{fill:#c53030;stroke:#c53030}\n"
    ".c4{fill:#87919e;stroke:#87919e}.c5{fill:#7b5ea7;stroke:#7b5ea7}\n"
    ".line line{stroke-width:1.8}\n"
    ".dash line{stroke-width:1.5;stroke-dasharray:5 3}\n"
    ".bar{stroke:none}\n"
    ".none{fill:#f5f7fa}\n"
    ".h0{fill:#f7fbff}.h1{fill:#deebf7}.h2{fill:#c6dbef}.h3{fill:#9ecae1}.h4{fill:#6baed6}\n"
    ".h5{fill:#4292c6}.h6{fill:#2171b5}.h7{fill:#08519c}.h8{fill:#08306b}\n";

static enum tec_status check_panel(const struct tec_plot_panel *p, struct tec_error *err)
{
    const char *title = p->title ? p->title : "(untitled)";
    if (p->n_x < 1 || p->n_x > TEC_PLOT_POINTS || p->n_series < 1 ||
        p->n_series > TEC_PLOT_SERIES || p->decimals < 0 || p->decimals > 3)
        return tec_fail(err, TEC_INVALID,
                        "plot, panel '%.60s': %d points of %d series; 1 to %d of "
                        "1 to %d can be drawn",
                        title, p->n_x, p->n_series, TEC_PLOT_POINTS, TEC_PLOT_SERIES);
    for (int s = 0; s < p->n_series; s++)
        for (int i = 0; i < p->n_x; i++) {
            double v = p->series[s].value[i];
            if (!isnan(v) && !(v >= 0.0 && v < 1e15))
                return tec_fail(err, TEC_INVALID, "plot, panel '%.60s': series '%.40s' is %g at %d",
                                title, p->series[s].name, v, i);
        }
    return TEC_OK;
}

static double text_width(const char *text)
{
    return 6.1 * (double)tec_svg_columns(text);
}

/* List each name once, in the order of the panels; heat maps label their rows themselves. */
static void draw_legend(struct tec_svg *svg, const struct tec_plot *plot, double y)
{
    const char *seen[TEC_PLOT_COLORS * TEC_PLOT_SERIES];
    int n = 0;
    double x = MARGIN;
    for (int i = 0; i < plot->n_panels; i++) {
        const struct tec_plot_panel *p = &plot->panels[i];
        for (int s = 0; p->kind != TEC_PLOT_HEAT && s < p->n_series; s++) {
            const struct tec_plot_series *one = &p->series[s];
            bool known = n == (int)(sizeof seen / sizeof seen[0]);
            for (int k = 0; k < n && !known; k++)
                known = strcmp(seen[k], one->name) == 0;
            if (known)
                continue;
            seen[n++] = one->name;
            tec_svg_group(svg, one->dashed ? "dash" : "line", NULL);
            if (one->dashed)
                tec_svg_line(svg, x, y + 6.0, x + 20.0, y + 6.0, tec_plot_classes[one->color]);
            else
                tec_svg_rect(svg, x, y + 1.0, 20.0, 10.0, 2.0, tec_plot_classes[one->color]);
            tec_svg_group_end(svg);
            tec_svg_text(svg, x + 26.0, y + 10.0, "note", one->name);
            x += 26.0 + text_width(one->name) + 20.0;
        }
    }
}

enum tec_status tec_plot_svg(const struct tec_plot *plot, const char **text, size_t *n,
                             struct tec_arena *arena, struct tec_error *err)
{
    struct tec_svg svg = {0};
    if (plot->n_panels < 1 || plot->n_panels > TEC_PLOT_PANELS || plot->columns < 1)
        return tec_fail(err, TEC_INVALID, "plot: %d panels in rows of %d; 1 to %d can be drawn",
                        plot->n_panels, plot->columns, TEC_PLOT_PANELS);
    for (int i = 0; i < plot->n_panels; i++)
        TEC_TRY(check_panel(&plot->panels[i], err));
    int columns = plot->columns < plot->n_panels ? plot->columns : plot->n_panels;
    int rows = (plot->n_panels + columns - 1) / columns;
    double width = 2.0 * MARGIN + (double)columns * PANEL_W;
    if (width < 640.0)
        width = 640.0;
    double height = HEAD + MARGIN + (double)rows * PANEL_H + LEGEND;
    tec_svg_begin(&svg, arena, width, height, css);
    tec_svg_rect(&svg, 0.0, 0.0, width, height, 0.0, "page");
    if (plot->title)
        tec_svg_text(&svg, MARGIN, MARGIN + 6.0, "title", plot->title);
    if (plot->subtitle)
        tec_svg_text(&svg, MARGIN, MARGIN + 24.0, "subtitle", plot->subtitle);
    for (int i = 0; i < plot->n_panels; i++) {
        int column = i % columns, row = i / columns;
        const struct tec_plot_frame frame = {.x = MARGIN + column * (double)PANEL_W,
                                             .y = HEAD + 12.0 + row * (double)PANEL_H,
                                             .w = PANEL_W,
                                             .h = PANEL_H};
        tec_plot_panel_draw(&svg, &plot->panels[i], &frame);
    }
    draw_legend(&svg, plot, height - LEGEND + 4.0);
    return tec_svg_end(&svg, text, n, err);
}

enum tec_status tec_plot_write(const struct tec_plot *plot, const char *path, struct tec_heap *heap,
                               struct tec_error *err)
{
    struct tec_arena arena;
    struct tec_out_file out = {0};
    const char *text = NULL;
    size_t n = 0;
    tec_arena_init(&arena, heap);
    enum tec_status status = tec_plot_svg(plot, &text, &n, &arena, err);
    if (status == TEC_OK)
        status = tec_outfile_file_open(&out, path, err);
    if (status == TEC_OK) {
        fwrite(text, 1, n, out.file);
        status = tec_outfile_file_keep(&out, err);
    }
    tec_arena_finish(&arena);
    return status;
}

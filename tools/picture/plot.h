/* plot.h - charts as SVG: lines, bars and heat maps in panels side by side. */
#ifndef TEC_TOOLS_PICTURE_PLOT_H
#define TEC_TOOLS_PICTURE_PLOT_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { TEC_PLOT_SERIES = 8, TEC_PLOT_POINTS = 16, TEC_PLOT_PANELS = 16 };

enum tec_plot_kind {
    TEC_PLOT_LINES, /* a line with points a series; gaps where a value is missing */
    TEC_PLOT_BARS,  /* groups of bars, a series a colour */
    TEC_PLOT_HEAT   /* a row a series, a column a name: the value in a coloured cell */
};

/* Colours by what a series is, the same in every chart. */
enum tec_plot_color {
    TEC_PLOT_BLUE,
    TEC_PLOT_ORANGE,
    TEC_PLOT_GREEN,
    TEC_PLOT_RED,
    TEC_PLOT_GRAY,
    TEC_PLOT_VIOLET,
    TEC_PLOT_COLORS
};

/* Values at each x; NAN is a value that is missing. */
struct tec_plot_series {
    const char *name;
    enum tec_plot_color color;
    bool dashed; /* a line without points: a bound, a reference */
    double value[TEC_PLOT_POINTS];
};

/* x positions are names, evenly spaced: the settings of a sweep. */
struct tec_plot_panel {
    enum tec_plot_kind kind;
    const char *title, *x_label, *y_label; /* NULL leaves one out */
    int n_x, n_series, decimals;           /* decimals of a heat map's cells: 0 to 3 */
    const char *x[TEC_PLOT_POINTS];
    struct tec_plot_series series[TEC_PLOT_SERIES];
};

/* Panels in rows of `columns`. Names may hold any text; they are borrowed for the call. Series with
 * one name share a line of the legend. */
struct tec_plot {
    const char *title, *subtitle; /* NULL leaves one out */
    int columns, n_panels;
    struct tec_plot_panel panels[TEC_PLOT_PANELS];
};

/* Draw the picture as text in the arena. Axes of lines and bars begin at 0. TEC_INVALID names the
 * panel that cannot be drawn (too many points, a negative or infinite value); TEC_NO_MEMORY. */
enum tec_status tec_plot_svg(const struct tec_plot *plot, const char **text, size_t *n,
                             struct tec_arena *arena, struct tec_error *err);

/* Draw the picture into a file. TEC_IO. */
enum tec_status tec_plot_write(const struct tec_plot *plot, const char *path, struct tec_heap *heap,
                               struct tec_error *err);

#endif

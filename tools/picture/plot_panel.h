/* plot_panel.h - one panel of a chart: axes, lines, bars, cells. */
#ifndef TEC_TOOLS_PICTURE_PLOT_PANEL_H
#define TEC_TOOLS_PICTURE_PLOT_PANEL_H

#include "tools/picture/plot.h"
#include "tools/picture/svg.h"

/* The place of a panel, in pixels. */
struct tec_plot_frame {
    double x, y, w, h;
};

extern const char *const tec_plot_classes[TEC_PLOT_COLORS];

/* Draw a panel that has been checked. */
void tec_plot_panel_draw(struct tec_svg *svg, const struct tec_plot_panel *panel,
                         const struct tec_plot_frame *frame);

/* A value with 0 to 3 decimals and no comma, whatever the locale. */
void tec_plot_number(char text[32], double value, int decimals);

/* The end of an axis from 0: at least `most`, a round number of `*step`s (4 to 6 of them). */
double tec_plot_axis(double most, double *step);

#endif

/* timeline_layout.h - where everything of a timeline goes, before anything is drawn. */
#ifndef TEC_TOOLS_PICTURE_TIMELINE_LAYOUT_H
#define TEC_TOOLS_PICTURE_TIMELINE_LAYOUT_H

#include "tools/picture/timeline.h"

/* Pixels. Text is 11 pixels high; its width is estimated, as fonts differ. */
enum {
    TEC_TIMELINE_WIDTH = 1200,
    TEC_TIMELINE_MARGIN = 24,
    TEC_TIMELINE_BAR = 22,
    TEC_TIMELINE_ROW = 26,
    TEC_TIMELINE_LINE = 16,
    TEC_TIMELINE_ROWS = 24,      /* most bars above each other in one lane */
    TEC_TIMELINE_MARK_LINES = 4, /* most lines of mark labels */
};

/* A bar: its place, and how far its row is free to the right. */
struct tec_timeline_bar {
    const struct tec_timeline_span *span;
    int row; /* in its lane */
    double x, y, width, free_x;
};

/* A mark: x, and the line of its label (-1: no room for it). */
struct tec_timeline_flag {
    const struct tec_timeline_mark *mark;
    double x;
    int line;
};

struct tec_timeline_lane {
    double y, height;
};

struct tec_timeline_layout {
    const struct tec_timeline *timeline;
    double first_us, last_us;        /* of the axis */
    double left, right, top, bottom; /* of the lanes */
    double marks_y;                  /* top of the lines of mark labels */
    double height;                   /* of the picture */
    struct tec_timeline_bar *bars;   /* n_spans, by lane and start */
    struct tec_timeline_flag *flags; /* n_marks, by time */
    struct tec_timeline_lane *lanes; /* n_lanes */
};

/* Estimated pixels of a label. */
double tec_timeline_text_width(const char *text);

double tec_timeline_x(const struct tec_timeline_layout *layout, double time_us);

enum tec_status tec_timeline_place(struct tec_timeline_layout *layout,
                                   const struct tec_timeline *timeline, struct tec_arena *arena,
                                   struct tec_error *err);

#endif

/* timeline.h - draws what ran when, lane by lane, as an SVG picture. */
#ifndef TEC_TOOLS_PICTURE_TIMELINE_H
#define TEC_TOOLS_PICTURE_TIMELINE_H

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

/* HARD work has a deadline, SOFT work fills the rest, HOST work is outside the graph. */
enum tec_span_kind { TEC_SPAN_HARD, TEC_SPAN_SOFT, TEC_SPAN_HOST };
enum tec_mark_kind { TEC_MARK_RELEASE, TEC_MARK_DEADLINE };

struct tec_timeline_span {
    int lane; /* index into the lanes */
    enum tec_span_kind kind;
    const char *label;
    double start_us, end_us; /* start <= end, on the clock of all spans and marks */
};

struct tec_timeline_mark {
    enum tec_mark_kind kind;
    const char *label;
    double time_us;
};

/* One or several frames. Labels may hold any text. All pointers are borrowed for the call. */
struct tec_timeline {
    const char *title, *subtitle; /* NULL leaves them out */
    const char *const *lanes;     /* names, from top to bottom */
    int n_lanes;
    const struct tec_timeline_span
        *spans; /* in any order; those that overlap in a lane are stacked */
    size_t n_spans;
    const struct tec_timeline_mark *marks;
    size_t n_marks;
};

/* The picture as text in the arena: a time axis in ms, a bar a span with its label (in the bar,
 * beside it, or only under the pointer when there is no room), a line a mark, a legend.
 * TEC_INVALID names the span or mark that cannot be drawn; TEC_NO_MEMORY. */
enum tec_status tec_timeline_svg(const struct tec_timeline *timeline, const char **text, size_t *n,
                                 struct tec_arena *arena, struct tec_error *err);

/* Draw the picture into a file. TEC_IO. */
enum tec_status tec_timeline_write(const struct tec_timeline *timeline, const char *path,
                                   struct tec_heap *heap, struct tec_error *err);

#endif

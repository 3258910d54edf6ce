/* svg.h - writes an SVG picture as text: shapes, groups, escaped labels. */
#ifndef TEC_TOOLS_PICTURE_SVG_H
#define TEC_TOOLS_PICTURE_SVG_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* A picture being written, in pixels from the top left. Zero it, begin, draw, end. The text grows
 * in the arena; once memory is refused every call does nothing and tec_svg_end says so. Labels and
 * classes may hold anything: they are escaped, and what XML cannot hold (control characters, bytes
 * that are not UTF-8) becomes U+FFFD. Looks come from CSS classes; a class of NULL is left out.
 * Equal calls give equal bytes, whatever the locale. */
struct tec_svg {
    struct tec_arena *arena; /* borrowed */
    char *text;
    size_t used, size;
    bool refused;
};

/* `css` is written as it is: it must come from the program, not from a user. */
void tec_svg_begin(struct tec_svg *svg, struct tec_arena *arena, double width, double height,
                   const char *css);

/* The whole text, NUL-terminated, in the arena. TEC_NO_MEMORY. */
enum tec_status tec_svg_end(struct tec_svg *svg, const char **text, size_t *n,
                            struct tec_error *err);

/* Groups nest. `title` (may be NULL) is what a browser shows under the pointer. */
void tec_svg_group(struct tec_svg *svg, const char *class_name, const char *title);
/* A group that can be found by its id and reached by the keyboard. */
void tec_svg_item(struct tec_svg *svg, const char *class_name, const char *id, const char *title);
void tec_svg_group_end(struct tec_svg *svg);

void tec_svg_rect(struct tec_svg *svg, double x, double y, double width, double height,
                  double radius, const char *class_name);
void tec_svg_line(struct tec_svg *svg, double x1, double y1, double x2, double y2,
                  const char *class_name);

/* x, y: start of the baseline, or its middle or end where the class says text-anchor. */
void tec_svg_text(struct tec_svg *svg, double x, double y, const char *class_name,
                  const char *text);

/* n points x, y, x, y, ...: an open line, or a closed shape. */
void tec_svg_path(struct tec_svg *svg, const double *points, size_t n, bool closed,
                  const char *class_name);

/* Columns that a label takes on a screen: one a character, two for East Asian wide ones. */
size_t tec_svg_columns(const char *text);

#endif

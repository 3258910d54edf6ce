/* layout.h - where the items of a drawing stand, and which way its links take between them: in
 * layers from left to right, no link through a box. */
#ifndef TEC_TOOLS_PICTURE_LAYOUT_H
#define TEC_TOOLS_PICTURE_LAYOUT_H

#include "tools/picture/drawing.h"

struct tec_item_box {
    double x, y, w, h; /* pixels; y of the top */
};

/* The way of a link: points x, y, x, y, ... from one box to the other. */
struct tec_route {
    double *points;
    size_t n;
};

struct tec_placing {
    struct tec_item_box *boxes; /* of each item; w and h are given, x and y are found */
    struct tec_route *routes;   /* of each link */
    double width, height;
};

/* `boxes` have the items' sizes. A link over several layers keeps a row of its own in each between;
 * one that goes back, or stays in its layer, goes below everything. Owned by the arena.
 * TEC_NO_MEMORY. */
enum tec_status tec_placing_make(struct tec_placing *layout, const struct tec_drawing *drawing,
                                 struct tec_item_box *boxes, struct tec_arena *arena,
                                 struct tec_error *err);

#endif

/* top_views.h - what `top` shows of a robot, a view at a time. */
#ifndef TEC_TOOLS_RECORD_TOP_VIEWS_H
#define TEC_TOOLS_RECORD_TOP_VIEWS_H

#include "tools/record/cadence.h"

enum tec_top_view {
#define VIEW(name, key, text) TEC_TOP_##name,
#include "tools/record/top_views.def"
#undef VIEW
    TEC_TOP_VIEWS
};

/* The view of a key, TEC_TOP_VIEWS for another key; and "n nodes  r requests ...". */
enum tec_top_view tec_top_view_of(char key);
void tec_top_print_keys(FILE *out);

/* A view as lines. `status`: what a running robot answers to the order `status`; NULL for a
 * recording, which knows less of memories and policy. */
void tec_top_print(FILE *out, enum tec_top_view view, const struct tec_flight *f,
                   const struct tec_cadence *c, const json_t *status);

#endif

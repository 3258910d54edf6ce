/* launch_rows.h - between the files that fill frame tables: one row of a request, one prefix. */
#ifndef TEC_GRAPH_RUN_LAUNCH_ROWS_H
#define TEC_GRAPH_RUN_LAUNCH_ROWS_H

#include "graph/run/launch.h"

/* A prompt, and the region that its keys go to. */
struct tec_prefix_place {
    int region;
    const struct tec_prefix_input *input;
};

/* Into a part's prefix table: n observations, each a sequence of its own. `last_row` gets the last
 * row of each. */
void tec_fill_prefixes(const struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_prefix_place *places, int n);
/* The same of one. */
void tec_fill_prefix(const struct tec_plan *plan, struct tec_plan_part *part, int region,
                     const struct tec_prefix_input *o);

/* Of that its pictures alone. */
void tec_fill_pictures(const struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_prefix_input *o);
/* Keys that row r of `rows` sees; pictures are rows lead .. text - 1. */
int tec_prefix_visible(const struct tec_text *model, int r, int lead, int text, int rows);

/* Row i of a decode table, before and after a launch. */
void tec_fill_row(const struct tec_plan *plan, struct tec_decode_table *t, int i,
                  const struct tec_row_state *row);
void tec_read_row(const struct tec_decode_table *t, int i, struct tec_row_state *row);

/* Let sequence i of `rows` be read from a copy: a move of all that the row sees to `at` of the
 * gathered space. Returns where the next one goes. */
int tec_fill_move(const struct tec_plan *plan, struct tec_moves *moves, struct tec_rows *rows,
                  int i, const struct tec_row_state *row, int at);

/* The robot's state, or zeros, to the table. */
void tec_fill_state(const struct tec_model *model, struct tec_prefix_table *table,
                    const float *state);

/* The rows of a chunk over `prefix` rows in a region. */
void tec_fill_suffix(const struct tec_plan *plan, struct tec_plan_part *part, int region,
                     int prefix, const struct tec_action_inputs *actions);

#endif

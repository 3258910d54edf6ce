/* launch_rows.h - between the files that fill frame tables: one row of a request, one prefix. */
#ifndef TEC_GRAPH_RUN_LAUNCH_LAUNCH_ROWS_H
#define TEC_GRAPH_RUN_LAUNCH_LAUNCH_ROWS_H

#include "graph/run/launch/launch.h"

/* Into a part's prefix table: n observations, each a sequence of its own. `last_row` gets the last
 * row of each. */
void tec_fill_prefixes(const struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_prefix_place *places, int n);
/* The same of one. */
void tec_fill_prefix(const struct tec_plan *plan, struct tec_plan_part *part, int region,
                     const struct tec_prefix_input *o);

/* The rows that continue behind the last layer's keys: the i-th of them is row `at` of the table.
 */
static inline void tec_fill_last(struct tec_prefix_table *t, int i, int at)
{
    t->last_row[i] = at;
    t->last.pos[i] = t->prefix.pos[at];
    t->last.slot[i] = t->prefix.slot[at];
    t->last.visible[i] = t->prefix.visible[at];
    t->last.seq[i] = t->prefix.seq[at];
}

/* Of that its pictures alone. */
void tec_fill_pictures(const struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_prefix_input *o);
/* Keys that row r of `rows` sees; pictures are rows lead .. text - 1. */
int tec_prefix_visible(const struct tec_text *model, int r, int lead, int text, int rows);

/* A table of a part to its place on the device. Of a part with a table of rows: run it, and fetch
 * what became of them from `rows`; a failure of the device is the replay's. A table that the part
 * changes is told to the replay (replay->tables). */
void tec_launch_upload(const struct tec_plan *plan, const struct tec_plan_part *part,
                       const struct tec_table_block *table);
struct tec_replay_table tec_launch_table(const struct tec_table_block *block);
void tec_launch_rows(const struct tec_plan *plan, const struct tec_plan_part *part,
                     const struct tec_table_block *rows, struct tec_replay *replay);

/* Row i of a decode table, before and after a launch. */
void tec_fill_row(const struct tec_plan *plan, struct tec_decode_table *t, int i,
                  const struct tec_row_state *row);
void tec_read_row(const struct tec_decode_table *t, int i, struct tec_row_state *row);

/* Let sequence i of `rows` be read from a copy: a move of all that the row sees to `at` of the
 * gathered space. Returns where the next one goes. */
int tec_fill_move(const struct tec_plan *plan, struct tec_moves *moves, struct tec_rows *rows,
                  int i, const struct tec_row_state *row, int at);

/* The robot's state of observation `at`, or zeros, to the table. */
void tec_fill_state(const struct tec_model *model, struct tec_prefix_table *table, int at,
                    const float *state);

/* The prefix that actions stand on. */
struct tec_stand {
    int region, rows;
};

/* How many first actions each of n observations is given: before the rows of any of them. */
void tec_fill_given(struct tec_prefix_table *table, const struct tec_action_inputs *actions, int n);
/* The rows of a chunk of observation `at`. */
void tec_fill_suffix(const struct tec_plan *plan, struct tec_plan_part *part, int at,
                     struct tec_stand on, const struct tec_action_inputs *actions);
/* How many observations the suffix is of. State rows of none see a key of their own piece, and
 * nobody reads them. */
void tec_count_suffixes(const struct tec_model *model, struct tec_prefix_table *table, int n);

/* launch_pictures.c: pairs of tokens around pictures in a prompt, the rows of these, and whether a
 * picture is between those of a pair. Each must be, and there is room for those of every slot. */
int tec_prefix_pairs(const struct tec_vision *v, const struct tec_prefix_input *o);
int tec_prefix_around(const struct tec_vision *v, const struct tec_prefix_input *o);
bool tec_prefix_sees(const struct tec_prefix_input *o, int pair);
enum tec_status tec_prefix_check_around(const struct tec_plan *plan,
                                        const struct tec_prefix_input *o, struct tec_error *err);
/* The rows of its pictures are there: the towers have none to make. */
void tec_know_pictures(const struct tec_plan *plan, struct tec_prefix_table *table);
/* Give the device a picture: its address if the device reads host memory, else a copy in the
 * table's own place. */
void tec_give_picture(const struct tec_plan *plan, const struct tec_plan_part *part, int i,
                      const uint8_t *picture);
/* Give the device the pictures of all prompts; returns how many rows they become. */
int tec_give_pictures(const struct tec_plan *plan, const struct tec_plan_part *part,
                      const struct tec_prefix_place *places, int n);

/* A prompt that becomes features; see tec_prefix_check_marks. */
void tec_fill_features(const struct tec_plan *plan, struct tec_plan_part *part, int region,
                       const struct tec_prefix_input *o);

#endif

/* layers.h - rows of a text through its layers, which are words (graph/model/program.h): at once,
 * or a layer in two halves where somebody else goes on between them. */
#ifndef TEC_GRAPH_NODES_LAYERS_H
#define TEC_GRAPH_NODES_LAYERS_H

#include "graph/nodes/built.h"

/* The text on its way, rows x [rows, width] at its beginning: what `enter` makes of them is done.
 * `reading` stays the caller's. False without memory. */
bool tec_layers_begin(struct tec_built *b, struct tec_lower *l, const struct tec_reading *reading,
                      int x);

/* The same of a prefill's pictures and prompt: its first rows, and the token of each row behind
 * them. */
bool tec_lower_prompt(struct tec_lower *l, struct tec_built *b, const struct tec_reading *reading);

/* The rows that enter a layer now; behind the last one those that leave it. */
int tec_layers_rows(const struct tec_built *b, int layer);

/* All layers; the rows behind the last one. */
int tec_layers_run(struct tec_built *b);

/* One layer of rows that all go on. */
void tec_layers_step(struct tec_built *b, int layer);

/* The two halves of a layer: rows to queries, keys and values, stored; and from there on. q is -1
 * where keys and values are all. */
struct tec_keys tec_layers_keys(struct tec_built *b, int layer);
int tec_layers_rest(struct tec_built *b, int layer, struct tec_keys keys);

/* Rows that a layer goes on with: `row` [rows->max] in device memory. The labels, of queries and of
 * everything else that is taken, outlive the program that is made. */
struct tec_rows_left {
    const struct tec_rows *rows;
    const int *row;
    const char *queries, *label;
};

/* Between the halves: goes on with the listed rows alone. */
void tec_layers_take(struct tec_built *b, int layer, const struct tec_rows_left *on,
                     struct tec_keys *keys);

/* In front of a layer: goes on with the listed rows alone; `row` and `label` as above. */
void tec_layers_enter(struct tec_built *b, int layer, const struct tec_rows *rows, const int *row,
                      const char *label);

/* What `leave` makes of rows behind the last layer; `round`: it enters a GEMM. */
int tec_layers_leave(struct tec_built *b, bool round);

#endif

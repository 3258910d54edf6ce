/* soft.h - language: new requests stored, launches of rows filled, run and settled. */
#ifndef TEC_GRAPH_RUN_LOOP_SOFT_H
#define TEC_GRAPH_RUN_LOOP_SOFT_H

#include "graph/run/loop/state.h"

/* The items of language. */
void tec_loop_add_soft(struct tec_loop *l, bool observed);
/* A new request of a row stands on its session's prefix. */
void tec_loop_store(struct tec_loop *l, int row);
/* Of an item n rows of the order, from `first` on, advance by k steps: filled, launched, settled.
 */
void tec_loop_fill_rows(struct tec_loop *l, struct tec_scheduled *it, int first, int n, int k);
void tec_loop_launch_rows(struct tec_loop *l, struct tec_scheduled *it);
void tec_loop_settle_rows(struct tec_loop *l, struct tec_scheduled *it);

#endif

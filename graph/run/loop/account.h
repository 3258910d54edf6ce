/* account.h - costs, misses, the frame's result. */
#ifndef TEC_GRAPH_RUN_LOOP_ACCOUNT_H
#define TEC_GRAPH_RUN_LOOP_ACCOUNT_H

#include "graph/run/loop/state.h"

void tec_loop_account_open(struct tec_loop *l); /* the record's frame begins */
void tec_loop_account(struct tec_loop *l);

#endif

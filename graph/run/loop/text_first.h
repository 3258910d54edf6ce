/* text_first.h - hard texts: which hard nodes wait for, or which have a hard deadline. */
#ifndef TEC_GRAPH_RUN_LOOP_TEXT_FIRST_H
#define TEC_GRAPH_RUN_LOOP_TEXT_FIRST_H

#include "graph/run/loop/state.h"

enum { TEC_TEXTS_BEHIND = -2 };

/* Those of a chain go in, with what they need: in front of an action (-1: of none), or behind its
 * actions. */
void tec_loop_add_texts(struct tec_loop *l, struct tec_chain *c, int who, int of);

#endif

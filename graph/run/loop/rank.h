/* rank.h - texts of a scored tree in their order. */
#ifndef TEC_GRAPH_RUN_LOOP_RANK_H
#define TEC_GRAPH_RUN_LOOP_RANK_H

#include "graph/run/loop/state.h"

/* The texts of a decoder's tree, the likeliest first, equals in their order, what is not a number
 * last; out [n_texts], scratch [n_texts + n_nodes]. */
void tec_rank(const struct tec_decoder *decoder, const float *likely, struct tec_ranked *out,
              double *scratch);
/* Memory for it, by utterance, from the loop's arena; false: there is none. */
bool tec_rank_memory(struct tec_loop *l);

#endif

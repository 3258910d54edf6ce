/* surplus.h - tensors of a checkpoint that its model does not read. */
#ifndef TEC_GRAPH_MODEL_SURPLUS_H
#define TEC_GRAPH_MODEL_SURPLUS_H

#include "graph/model/model.h"

/* Whether every tensor of the checkpoint is one that the model reads or names in `ignored`, or a
 * buffer that frameworks save and nobody reads. Else TEC_MALFORMED, which names the first that is
 * none, and the most alike that is read; or TEC_NO_MEMORY. */
enum tec_status tec_model_accounts_for(const struct tec_model *model,
                                       const struct tec_checkpoint *checkpoint,
                                       struct tec_heap *heap, struct tec_error *err);

#endif

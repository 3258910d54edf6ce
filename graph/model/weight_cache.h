/* weight_cache.h - packed weights kept in a file between starts (base/store/blocks.h): a start that
 * finds its file maps it, and reads, converts and packs nothing.
 *
 * A file belongs to what its bytes depend on: the checkpoint's files (headers, sizes, times of last
 * change, inodes; of an adapter its factors), the model's description (its texts and what it is
 * given), layout of matrices, precision, what of the model is loaded, TEC_WEIGHT_PACKING and the
 * program's version. Another one is not used: it says so in a line, and the weights are loaded as
 * without. */
#ifndef TEC_GRAPH_MODEL_WEIGHT_CACHE_H
#define TEC_GRAPH_MODEL_WEIGHT_CACHE_H

#include "base/store/blocks.h"
#include "graph/model/weights.h"
#include "kernels/team.h"

/* Raised by whoever changes what loading makes of a checkpoint: bytes, order or sizes of blocks
 * (tests/weight_cache.c notices). */
enum { TEC_WEIGHT_PACKING = 5 };

/* The file of these weights, mapped, where there is one that is theirs and whole; every byte of it
 * was read and its hash compared, by the threads of `team` (NULL: the caller's alone). NULL
 * otherwise; what was found instead is said. Close with tec_blocks_close. */
struct tec_blocks *tec_weight_cache_open(const struct tec_weights_options *options,
                                         struct tec_team *team, struct tec_heap *heap);

/* Write the file of weights that were loaded from a checkpoint. What is in the way is said: a start
 * does not fail for it. */
void tec_weight_cache_write(const struct tec_weights_options *options,
                            const struct tec_weights *weights, struct tec_heap *heap);

#endif

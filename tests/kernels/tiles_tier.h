/* tiles_tier.h - the kernels for a tile unit on an emulated one (tiles_emulated.h), as one more
 * tier of the harness. */
#ifndef TEC_TESTS_KERNELS_TILES_TIER_H
#define TEC_TESTS_KERNELS_TILES_TIER_H

#include "kernels/kernels.h"

#include <stdbool.h>

/* Whether this machine has the vectors that they use beside tiles. */
bool tiles_tier_runs_here(void);

/* Those of these vectors, with gemm_int8 and gemm_bf16 by tiles: of the latter, products whose x
 * may be read as terms alone. */
struct tec_kernels tiles_tier_table(void);

#endif

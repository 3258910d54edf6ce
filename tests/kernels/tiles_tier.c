/* tiles_tier.c - kernels for a tile unit, compiled for the emulated one: a tier of the harness on
 * every machine. */
#include "tests/kernels/tiles_tier.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"
enum { VECTORS = TEC_TIER_avx2 };
#else
#include "kernels/neon/panels.h"
enum { VECTORS = TEC_TIER_neon };
#endif
enum { INT8_BYTES = 1 };
#include "tests/kernels/tiles_emulated.h"

#if defined(__x86_64__)
#include "kernels/panels/rows_x86.inc"
#else
#include "kernels/panels/rows_neon.inc"
#endif

#include "kernels/panels/gemm_int8_tiles.inc"
/* Less than a cache holds, so that small products have blocks and pieces, too. */
#define TILES_BLOCK 96
#define TILES_DEPTH 320
#define TILES_FAR 4096
#include "kernels/panels/gemm_tiles.inc"

static void gemm_bf16(const struct tec_gemm_args *a, struct tec_part part)
{
    run_tiles(a, part, a->rounded ? 1 : 2);
}

bool tiles_tier_runs_here(void)
{
    return tec_tier_runs_here((enum tec_tier)VECTORS);
}

struct tec_kernels tiles_tier_table(void)
{
    struct tec_kernels table = tec_kernels_for((enum tec_tier)VECTORS);
    table.gemm_bf16 = gemm_bf16;
    table.gemm_int8 = run_int8_tiles;
    return table;
}

/* gemm.c - the AVX2 gemm_bf16 and gemm_f32 kernels: the tile shapes for the shared bodies.
 *
 * kernels/panels/gemm_bf16.inc has the algorithm and its cache blocking. A panel of 16 columns is
 * two vectors, so a tile of 6 rows has 12 accumulators in the 16 registers. Up to two rows take
 * several panels at a time instead (FEW): then only the speed of reading weights counts. Every
 * shape sums over k in the same order, so the bytes do not depend on it. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"
#include "kernels/panels/conv3x3.inc"
#include "kernels/panels/gemm_bf16.inc"
#include "kernels/panels/gemm_f32.inc"
#include "kernels/panels/windows.inc"

/* clang-format off */
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1)
CHAIN_TILE(1, 1) CHAIN_TILE(2, 1) CHAIN_TILE(3, 1)
CHAIN_TILE(4, 1) CHAIN_TILE(5, 1) CHAIN_TILE(6, 1)
FEW(1, 1) FEW(1, 3) FEW(2, 1) FEW(2, 2)
CHAIN_FEW(1, 1) CHAIN_FEW(1, 3) CHAIN_FEW(2, 1) CHAIN_FEW(2, 2)

static const struct tiles tiles = {
    .depth = DEPTH, .pace = LINE, .copy = copy_block,
    .few = {{3, few_1_3, few_1_1}, {2, few_2_2, few_2_1}},
    .tile = {{tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1}},
};
static const struct tiles chains_of_floats = {
    .depth = FLOATS_DEPTH, .pace = (size_t)2 * LINE, .copy = copy_block,
    .few = {{3, chains_1_3, chains_1_1}, {2, chains_2_2, chains_2_1}},
    .tile = {{chain_1_1, chain_2_1, chain_3_1, chain_4_1, chain_5_1, chain_6_1}},
};
static const struct tiles chains_of_windows = {
    .depth = DEPTH, .pace = (size_t)2 * LINE, .copy = copy_windows,
    .tile = {{chain_1_1, chain_2_1, chain_3_1, chain_4_1, chain_5_1, chain_6_1}},
};
/* clang-format on */

void tec_gemm_bf16_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_blocks(a, part, &tiles);
}

void tec_gemm_f32_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_blocks(a, part, a->windows ? &chains_of_windows : &chains_of_floats);
}

void tec_conv3x3_avx2(const struct tec_conv_args *a, struct tec_part part)
{
    run_conv(a, part, &chains_of_floats);
}

#endif

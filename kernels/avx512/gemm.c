/* gemm.c - the AVX-512 gemm_bf16 and gemm_f32 kernels: the tile shapes for the shared bodies.
 *
 * kernels/panels/gemm_bf16.inc has the algorithm and its cache blocking. A panel of 16 columns is
 * one vector, so a tile of 13 rows and 2 panels has 26 accumulators in the 32 registers. Up to
 * eight rows take up to four panels at a time instead (FEW): then only the speed of reading weights
 * counts. Every shape sums over k in the same order, so the bytes do not depend on it. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"
#include "kernels/panels/conv3x3.inc"
#include "kernels/panels/gemm_bf16.inc"
#include "kernels/panels/gemm_f32.inc"
#include "kernels/panels/windows.inc"

/* clang-format off */
#define EACH_FEW(make, panels)                                          \
    make(1, panels) make(2, panels) make(3, panels) make(4, panels)     \
    make(5, panels) make(6, panels) make(7, panels) make(8, panels)
#define EACH(make, panels)                                              \
    EACH_FEW(make, panels) make(9, panels) make(10, panels)             \
    make(11, panels) make(12, panels) make(13, panels)

EACH(TILE, 1)
EACH(TILE, 2)
EACH_FEW(FEW, 1)
EACH(CHAIN_TILE, 1)
EACH(CHAIN_TILE, 2)
EACH_FEW(CHAIN_FEW, 1)
FEW(1, 4) FEW(2, 4) FEW(3, 4) FEW(4, 4) FEW(5, 4) FEW(6, 4) FEW(7, 3) FEW(8, 3)
CHAIN_FEW(1, 4) CHAIN_FEW(2, 4) CHAIN_FEW(3, 4) CHAIN_FEW(4, 4)
CHAIN_FEW(5, 4) CHAIN_FEW(6, 4) CHAIN_FEW(7, 3) CHAIN_FEW(8, 3)

#define NAME(rows, panels) tile_##rows##_##panels,
#define CHAIN_NAME(rows, panels) chain_##rows##_##panels,
static const struct tiles tiles = {
    .depth = DEPTH, .pace = LINE, .copy = copy_block,
    .few = {{4, few_1_4, few_1_1}, {4, few_2_4, few_2_1}, {4, few_3_4, few_3_1},
            {4, few_4_4, few_4_1}, {4, few_5_4, few_5_1}, {4, few_6_4, few_6_1},
            {3, few_7_3, few_7_1}, {3, few_8_3, few_8_1}},
    .tile = {{EACH(NAME, 1)}, {EACH(NAME, 2)}},
};
static const struct tiles chains_of_floats = {
    .depth = FLOATS_DEPTH, .pace = (size_t)2 * LINE, .copy = copy_block,
    .few = {{4, chains_1_4, chains_1_1}, {4, chains_2_4, chains_2_1}, {4, chains_3_4, chains_3_1},
            {4, chains_4_4, chains_4_1}, {4, chains_5_4, chains_5_1}, {4, chains_6_4, chains_6_1},
            {3, chains_7_3, chains_7_1}, {3, chains_8_3, chains_8_1}},
    .tile = {{EACH(CHAIN_NAME, 1)}, {EACH(CHAIN_NAME, 2)}},
};
static const struct tiles chains_of_windows = {
    .depth = DEPTH, .pace = (size_t)2 * LINE, .copy = copy_windows,
    .tile = {{EACH(CHAIN_NAME, 1)}, {EACH(CHAIN_NAME, 2)}},
};
/* clang-format on */

void tec_gemm_bf16_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    run_blocks(a, part, &tiles);
}

void tec_gemm_f32_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    run_blocks(a, part, a->windows ? &chains_of_windows : &chains_of_floats);
}

void tec_conv3x3_avx512(const struct tec_conv_args *a, struct tec_part part)
{
    run_conv(a, part, &chains_of_floats);
}

#endif

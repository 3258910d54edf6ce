/* gemm_int8_tiles.c - the AVX-512 gemm_int8 kernel where the processor has a tile unit (AMX).
 *
 * kernels/panels/gemm_int8_tiles.inc has the algorithm. Sums over a group are whole numbers, hence
 * exact, so it gives the same bits as every other kernel, and a few rows may go the other way. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"
#include "kernels/avx512/tiles.h"

/* Up to so many rows vectors are faster: a tile has 16, however few are wanted. Of 7 rows they are
 * by 4 % (k = 2048, n = 16384); of 8 they are as fast there, and slower by 12 % the other way round
 * (doc/measurements/peers_amx_2026-11-30.md). */
enum { INT8_BYTES = 1, FEW = 7 };

#include "kernels/panels/rows_x86.inc"

#include "kernels/panels/gemm_int8_tiles.inc"

void tec_tiles_gemm_int8_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    if (tec_live(a->rows, a->max_rows) <= FEW)
        tec_gemm_int8_avx512(a, part);
    else
        run_int8_tiles(a, part);
}

#endif

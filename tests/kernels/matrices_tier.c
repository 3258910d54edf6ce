/* matrices_tier.c - what kernels/neon/gemm_bf16_mm.c computes, written down: one sum after the
 * other, of emulated steps. A tier of the harness on every machine. */
#include "tests/kernels/matrices_tier.h"

#include "tests/kernels/matrices_emulated.h"

#include <stddef.h>

#if defined(__x86_64__)
enum { VECTORS = TEC_TIER_avx2 };
#else
enum { VECTORS = TEC_TIER_neon };
#endif

/* Panels of 16 columns, lines of two k (kernels/matrix.h). */
static float product(const struct tec_gemm_args *a, int row, int col)
{
    enum { COLS = 16 };
    int lines = (a->k + 1) / 2;
    const float *x = a->x + (size_t)row * (size_t)a->ldx;
    const uint16_t *w = (const uint16_t *)a->w +
                        ((size_t)(col / COLS) * (size_t)lines * COLS + (size_t)(col % COLS)) * 2;
    float sum = 0.0F;
    for (int k = 0; k < a->k; k += 2, w += (ptrdiff_t)2 * COLS) {
        uint16_t two[2] = {tec_bf16_bits(x[k]), k + 1 < a->k ? tec_bf16_bits(x[k + 1]) : 0};
        sum = matrices_step(sum, two, w);
    }
    return sum;
}

static void gemm_bf16(const struct tec_gemm_args *a, struct tec_part part)
{
    if (!a->rounded) {
        tec_kernels_for((enum tec_tier)VECTORS).gemm_bf16(a, part);
        return;
    }
    struct tec_range share = tec_share(part, a->n, 16);
    int rows = tec_live(a->rows, a->max_rows);
    for (int r = 0; r < rows; r++) {
        const float *gate = tec_is_fixed(a->fixed, r) ? a->fixed_gate : a->gate;
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int c = share.first; c < share.last; c++) {
            float sum = product(a, r, c);
            if (a->bias)
                sum += a->bias[c];
            if (gate)
                sum *= gate[c];
            y[c] = a->add ? y[c] + sum : sum;
        }
    }
}

struct tec_kernels matrices_tier_table(void)
{
    struct tec_kernels table = tec_kernels_for((enum tec_tier)VECTORS);
    table.gemm_bf16 = gemm_bf16;
    return table;
}

/* gemm_int8.c - the reference gemm_int8 kernel: products with 8-bit weights, a scale for each
 * column.
 *
 * For each group of k x is rounded to whole numbers of a unit, so the sum over a group is exact and
 * does not depend on its order. Only the sums of groups, times their units, are added in
 * float32, in order. So every CPU tier gives the same bits. */
#include "kernels/int8.h"
#include "kernels/ref/gemm_finish.h"
#include "kernels/ref/ref.h"

#include <math.h>
#include <string.h>

/* The unit of x[first .. last - 1] in so many digits, and in *per what x is multiplied by; NaN if
 * some x is not finite. */
static float unit_of(const float *x, int first, int last, int digits, float *per)
{
    uint32_t most = 0;
    float largest;
    for (int k = first; k < last; k++) {
        float size = fabsf(x[k]);
        uint32_t bits;
        memcpy(&bits, &size, sizeof bits);
        most = bits > most ? bits : most;
    }
    if (most >= 0x7f800000U)
        return NAN;
    memcpy(&largest, &most, sizeof largest);
    if (digits == 1)
        return tec_int8_unit(largest, per);
    *per = ldexpf(1.0F, tec_int8_finer(most));
    return 1.0F / *per;
}

/* The product of one row of x and column c of a panel. */
static float column(const float *x, int k, int digits, const unsigned char *panel, int c)
{
    float sum = 0.0F, scale;
    for (int first = 0; first < k; first += TEC_INT8_GROUP) {
        int last = k - first < TEC_INT8_GROUP ? k : first + TEC_INT8_GROUP, whole = 0;
        float per = 0.0F, unit = unit_of(x, first, last, digits, &per);
        if (isnan(unit))
            return NAN;
        for (int i = first; i < last; i++) {
            int at = c * TEC_INT8_DEEP + i % TEC_INT8_DEEP;
            whole += (int)rintf(x[i] * per) * (int8_t)panel[tec_int8_at(i) + (size_t)at];
        }
        sum = fmaf((float)whole, unit, sum);
    }
    memcpy(&scale, panel + (size_t)c * sizeof scale, sizeof scale);
    return sum * scale;
}

void tec_gemm_int8_ref(const struct tec_gemm_args *a, struct tec_part part)
{
    struct tec_range columns = tec_share(part, a->n, 16);
    int rows = tec_live(a->rows, a->max_rows);
    for (int c = columns.first; c < columns.last; c++) {
        const unsigned char *panel =
            (const unsigned char *)a->w + (size_t)(c / 16) * tec_int8_panel(a->k);
        for (int r = 0; r < rows; r++)
            finish(a, r, c,
                   column(a->x + (size_t)r * (size_t)a->ldx, a->k, a->digits, panel, c % 16));
    }
}

/* gemm_int4.c - the reference gemm_int4 kernel: products with 4-bit weights in groups of k.
 *
 * For each group x is rounded to whole numbers of a power of two, so the sum over a group is exact
 * and does not depend on its order. Only the sums of groups, times their scales, are added in
 * float32, in order. So every CPU tier gives the same bits. */
#include "kernels/int4.h"
#include "kernels/ref/gemm_finish.h"
#include "kernels/ref/ref.h"

#include <math.h>

/* One group of k: its part of a row of x and of a panel, and the order in which x is read. */
struct group {
    const float *x;
    const int *order;
    const unsigned char *at; /* the group's line of scales in the panel */
    int first, last, digits;
};

static float nth(const struct group *g, int k)
{
    return g->x[g->order ? g->order[k] : k];
}

/* The reciprocal of the unit of x in this group; 0 if some x is not finite. */
static float finer(const struct group *g)
{
    uint32_t largest = 0;
    for (int k = g->first; k < g->last; k++) {
        float x = fabsf(nth(g, k));
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000U ? ldexpf(1.0F, tec_int4_finer(largest, g->digits)) : 0.0F;
}

/* The sum of x (nibble - zero) over a group for column c of the panel, from the digits of x. */
static float dot(const struct group *g, int c)
{
    int sums[TEC_INT4_DIGITS] = {0}, zero = g->at[TEC_INT4_ZEROS + c];
    float per = finer(g);
    if (per == 0.0F)
        return NAN;
    for (int k = g->first; k < g->last; k++) {
        uint32_t word;
        size_t line = (size_t)(1 + (k - g->first) / TEC_INT4_DEEP) * TEC_INT4_LINE;
        memcpy(&word, g->at + line + 4 * (size_t)c, sizeof word);
        int nibble = (int)(word >> (4 * (k % TEC_INT4_DEEP)) & 15U);
        int x = (int)rintf(nth(g, k) * per);
        for (int d = 0; d < g->digits; d++) {
            int digit = ((x + 128) & 255) - 128;
            sums[d] += digit * (nibble - zero);
            x = (x - digit) / 256;
        }
    }
    float sum = (float)sums[g->digits - 1];
    for (int d = g->digits - 2; d >= 0; d--)
        sum = fmaf(sum, 256.0F, (float)sums[d]);
    return sum / per;
}

/* The product of one row of x and one column of a panel. */
static float column(const struct tec_gemm_args *a, const float *x, const unsigned char *panel,
                    int c, const int *order)
{
    float sum = 0.0F;
    for (int first = 0; first < a->k; first += a->group) {
        const unsigned char *at = panel + tec_int4_group(first / a->group, a->group);
        int last = a->k - first < a->group ? a->k : first + a->group;
        struct group g = {x, order, at, first, last, a->digits == 2 ? 2 : TEC_INT4_DIGITS};
        uint16_t scale;
        memcpy(&scale, at + 2 * (size_t)c, sizeof scale);
        sum = fmaf(dot(&g, c), tec_half_float(scale), sum);
    }
    return sum;
}

void tec_gemm_int4_ref(const struct tec_gemm_args *a, struct tec_part part)
{
    struct tec_range columns = tec_share(part, a->n, 16);
    int rows = tec_live(a->rows, a->max_rows);
    size_t size = tec_int4_panel(a->k, a->group);
    for (int c = columns.first; c < columns.last; c++) {
        const unsigned char *panel = (const unsigned char *)a->w + (size_t)(c / 16) * size;
        const int *order = a->order;
        if (order && a->order_of)
            order += (size_t)a->order_of[c / 16] * (size_t)a->k;
        for (int r = 0; r < rows; r++)
            finish(a, r, c, column(a, a->x + (size_t)r * (size_t)a->ldx, panel, c % 16, order));
    }
}

#include "kernels/int4.h"
#include "kernels/ref/ref.h"

#include <math.h>

/* One column of a panel times one row. */
static float dot(const struct tec_gemm_args *a, const float *x, const unsigned char *panel, int c,
                 const int *order)
{
    float sum = 0.0F;
    for (int first = 0; first < a->k; first += a->group) {
        const unsigned char *at = panel + tec_int4_group(first / a->group, a->group);
        int last = a->k - first < a->group ? a->k : first + a->group;
        uint16_t scale;
        memcpy(&scale, at + 2 * (size_t)c, sizeof scale);
        int zero = at[TEC_INT4_ZEROS + c];
        float part = 0.0F;
        for (int k = first; k < last; k++) {
            uint32_t word;
            size_t line = (size_t)(1 + (k - first) / TEC_INT4_DEEP) * TEC_INT4_LINE;
            memcpy(&word, at + line + 4 * (size_t)c, sizeof word);
            int nibble = (int)(word >> (4 * (k % TEC_INT4_DEEP)) & 15U);
            part = fmaf(x[order ? order[k] : k], (float)(nibble - zero), part);
        }
        sum = fmaf(part, tec_half_float(scale), sum);
    }
    return sum;
}

static void finish(const struct tec_gemm_args *a, int r, int c, float sum)
{
    float *y = a->y + (size_t)r * (size_t)a->ldy + (size_t)c;
    if (a->bias)
        sum += a->bias[c];
    const float *gate = tec_is_fixed(a->fixed, r) ? a->fixed_gate : a->gate;
    if (gate)
        sum *= gate[c];
    *y = a->add ? *y + sum : sum;
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
            finish(a, r, c, dot(a, a->x + (size_t)r * (size_t)a->ldx, panel, c % 16, order));
    }
}

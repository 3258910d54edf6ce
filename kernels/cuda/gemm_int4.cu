/* gemm_int4.cu - y (+)= gate * (x W^T + bias), W of 4-bit weights in groups (kernels/int4.h).
 *
 * A thread has one column and ROWS rows, and goes through k in the order of the reference with the
 * same fused steps: the bits are its bits, whatever the rows. Sixteen threads read a line at once.
 */
#include "kernels/cuda/lang.cuh"
#include "kernels/int4.h"

enum { THREADS = 64, ROWS = 4 };

static __device__ __forceinline__ void finish(const struct tec_gemm_args &a, int r, int column,
                                              float v, int fixed)
{
    if (a.bias)
        v = __fadd_rn(v, a.bias[column]);
    const float *gate = r < fixed ? a.fixed_gate : a.gate;
    if (gate)
        v = __fmul_rn(v, gate[column]);
    float *y = a.y + (size_t)r * (size_t)a.ldy + (size_t)column;
    *y = a.add ? __fadd_rn(*y, v) : v;
}

static __global__ void __launch_bounds__(THREADS) gemm_int4_kernel(struct tec_gemm_args a)
{
    int column = (int)(blockIdx.x * THREADS + threadIdx.x), first = (int)blockIdx.y * ROWS;
    wait_previous();
    release_next();
    int live = live_count(a.rows, a.max_rows), fixed = a.fixed ? *a.fixed : 0;
    if (column >= a.n || first >= live)
        return;
    const unsigned char *at = static_cast<const unsigned char *>(a.w) +
                              (size_t)(column / 16) * tec_int4_panel(a.k, a.group);
    const int *order = a.order;
    if (order && a.order_of)
        order += (size_t)a.order_of[column / 16] * (size_t)a.k;
    float sums[ROWS] = {};
    for (int from = 0; from < a.k; from += a.group) {
        int last = a.k - from < a.group ? a.k : from + a.group;
        uint16_t bits = reinterpret_cast<const uint16_t *>(at)[column % 16];
        float scale = tec_half_float(bits), part[ROWS] = {};
        int zero = at[TEC_INT4_ZEROS + column % 16];
        at += TEC_INT4_LINE;
        for (int k = from; k < last; k += TEC_INT4_DEEP, at += TEC_INT4_LINE) {
            uint32_t word = reinterpret_cast<const uint32_t *>(at)[column % 16];
            TEC_UNROLL
            for (int j = 0; j < TEC_INT4_DEEP; j++) {
                float w = (float)((int)(word >> (4 * j) & 15U) - zero);
                const float *x = a.x + (order ? order[k + j] : k + j);
                TEC_UNROLL
                for (int r = 0; r < ROWS; r++)
                    if (first + r < live)
                        part[r] = fmaf(x[(size_t)(first + r) * (size_t)a.ldx], w, part[r]);
            }
        }
        TEC_UNROLL
        for (int r = 0; r < ROWS; r++)
            sums[r] = fmaf(part[r], scale, sums[r]);
    }
    TEC_UNROLL
    for (int r = 0; r < ROWS; r++)
        if (first + r < live)
            finish(a, first + r, column, sums[r], fixed);
}

void tec_cuda_gemm_int4(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    dim3 grid((unsigned)ceil_div(a->n, THREADS), (unsigned)ceil_div(a->max_rows, ROWS));
    tec_cuda_start(launch, gemm_int4_kernel, grid, dim3(THREADS), 0, *a);
}

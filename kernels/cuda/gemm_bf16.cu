/* gemm_bf16.cu - y (+)= gate * (x W^T + bias) on tensor cores, W bf16, x float32 in two terms. */
#include "kernels/cuda/gemm_then.cuh"

/* Code for sm_90a runs on 9.0 alone. */
bool tec_cuda_groups(int capability)
{
#if !defined(__CUDACC__) || defined(TECTUM_CUDA_90A)
    return capability == 90;
#else
    return (void)capability, false;
#endif
}

/* Stores rows, and leaves the sums of squares of what then stands in their panels, for a norm
 * behind. The warp reads again what its lanes have stored: by quads, as norm.cu has them, and when
 * no sum takes a register any more. */
struct store_leaving : store_rows {
    float *squares; /* [row][n / 16]; NULL: nobody asks for them */

    template <int M, int N>
    __device__ __forceinline__ void after(int n, const int (&panel)[M], int first,
                                          struct rows rows) const
    {
        enum { TOGETHER = N < 4 ? N : 4 };
        if (!squares)
            return;
        __syncwarp();
        int row = first + (int)threadIdx.x % WARP / 4, at = (int)threadIdx.x % 4 * QUAD;
        TEC_UNROLL
        for (int i = 0; i < M; i++) {
            TEC_UNROLL
            for (int j = 0; j < N; j += TOGETHER)
                if (panel[i] < n / 16)
                    leave<TOGETHER>(n, panel[i], row + j * 8, rows.live, at);
        }
    }
    /* Of groups of 8 rows; `row`: this lane's of the first, `at`: its columns of the panel. */
    template <int TOGETHER>
    __device__ __forceinline__ void leave(int n, int panel, int row, int live, int at) const
    {
        float4 v[TOGETHER];
        TEC_UNROLL
        for (int j = 0; j < TOGETHER; j++)
            v[j] = row + j * 8 < live ? quad_at(row + j * 8, panel * 16 + at)
                                      : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
        TEC_UNROLL
        for (int j = 0; j < TOGETHER; j++) {
            float sum = panel_squares(squares_of(v[j]));
            if (at == 0 && row + j * 8 < live)
                squares[(size_t)(row + j * 8) * (size_t)(n / 16) + (size_t)panel] = sum;
        }
    }
    __device__ __forceinline__ float4 quad_at(int r, int column) const
    {
        return *reinterpret_cast<const float4 *>(y + (size_t)r * (size_t)ldy + (size_t)column);
    }
};

const void *tec_cuda_cluster_kernel(void)
{
    return (const void *)gemm_groups_kernel<groups_64, single_finish<store_leaving>>;
}

static struct single_finish<store_leaving> finish(const struct tec_gemm_args *a, float *squares) {
    return {*a, {{{}, a->y, a->ldy, a->add}, squares}};
}

void tec_cuda_gemm_bf16(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    start_product<true>(a, NULL, finish(a, NULL), launch);
}

void tec_cuda_gemm_leaving(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    start_product<true>(a, NULL, finish(a, launch->squares), launch);
}

bool tec_cuda_gemm_normed(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          struct tec_cuda_launch *launch)
{
    return chain_apart(a, a->y, a->ldy) && start_product<true>(a, norm, finish(a, NULL), launch);
}

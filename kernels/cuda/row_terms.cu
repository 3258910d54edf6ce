/* row_terms.cu - rows of x as bf16 terms, written once for all the columns of a product. */
#include "kernels/cuda/row_terms.cuh"

#include "kernels/cuda/gemm_tiles.cuh"

/* A block takes 8 rows and CHUNKS x 8 columns; eight threads in a row hold the eight rows of a
 * block of 8 x 8, so that it is written in one piece. */
enum { CHUNKS = 32, ROW_THREADS = 8 * CHUNKS };

template <int TERMS>
static __global__ void __launch_bounds__(ROW_THREADS)
    row_terms_kernel(struct tec_gemm_args a, int first, unsigned char *terms)
{
    wait_previous();
    release_next();
    int in = (int)blockIdx.y * 8 + (int)threadIdx.x % 8, r = first + in;
    int column = ((int)blockIdx.x * CHUNKS + (int)threadIdx.x / 8) * 8;
    int pieces = ceil_div(a.k, (int)TERMS_K);
    if (r >= live_count(a.rows, a.max_rows) || column >= pieces * TERMS_K)
        return;
    const float *x = a.x + (size_t)r * (size_t)a.ldx;
    float4 low = quad_of(x, column, a.k), up = quad_of(x, column + 4, a.k);
    uint4 high, rest;
    high.x = split_terms(make_float2(low.x, low.y), &rest.x);
    high.y = split_terms(make_float2(low.z, low.w), &rest.y);
    high.z = split_terms(make_float2(up.x, up.y), &rest.z);
    high.w = split_terms(make_float2(up.z, up.w), &rest.w);
    struct terms_out out = {terms, pieces, TERMS};
    unsigned char *to = out.place(in, column);
    *reinterpret_cast<uint4 *>(to) = high;
    if (TERMS == 2)
        *reinterpret_cast<uint4 *>(to + TERM_BYTES) = rest;
}

void tec_cuda_row_terms(const struct tec_gemm_args *a, int terms, int first, int count,
                        struct tec_cuda_launch *launch)
{
    dim3 blocks((unsigned)ceil_div(ceil_div(a->k, (int)TERMS_K) * TERMS_K, CHUNKS * 8),
                (unsigned)ceil_div(count, 8));
    tec_cuda_start(launch, terms == 2 ? row_terms_kernel<2> : row_terms_kernel<1>, blocks,
                   dim3(ROW_THREADS), 0, *a, first, launch->terms);
}

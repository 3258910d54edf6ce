/* embed.cu - rows of a token table: plain float32 rows, or bf16 in tiles. */
#include "kernels/cuda/row.cuh"

/* The address of column c of row `row` in TEC_MATRIX_ROWS (float) and TEC_MATRIX_TILES (bf16), see
 * kernels/matrix.h. In tiles, eight columns that begin at a multiple of eight are neighbours. */
static __device__ __forceinline__ const float *place(const float *w, int row, int c, int k)
{
    return w + (size_t)row * (size_t)k + c;
}

static __device__ __forceinline__ const bf16 *place(const bf16 *w, int row, int c, int k)
{
    size_t tile = (size_t)(row / 16) * (size_t)((k + 15) / 16) + (size_t)(c / 16);
    int matrix = row % 16 / 8 + c % 16 / 8 * 2;
    return w + tile * 256 + matrix * 64 + row % 8 * 8 + c % 8;
}

template <class T>
static __global__ void __launch_bounds__(ROW_THREADS)
    embed_kernel(struct tec_embed_args a, bool wide, bool wide_y)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.k - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    int id = a.ids[r];
    id = id >= 0 && id < a.n ? id : 0;
    struct quad v = quad_load(place(static_cast<const T *>(a.w), id, c, a.k), n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        v.v[i] *= a.scale;
    quad_store(a.y + ((size_t)*a.first + (size_t)r) * (size_t)a.ldy + c, v, n, wide_y);
}

template <class T>
static void embed(const struct tec_embed_args *a, struct tec_cuda_launch *launch, size_t row)
{
    tec_cuda_start(launch, embed_kernel<T>, quad_grid(a->max_rows, a->k), dim3(ROW_THREADS), 0, *a,
                   rows_aligned(a->w, row, QUAD * sizeof(T)), floats_aligned(a->y, a->ldy));
}

void tec_cuda_embed_f32(const struct tec_embed_args *a, struct tec_cuda_launch *launch)
{
    embed<float>(a, launch, (size_t)a->k * sizeof(float));
}

void tec_cuda_embed_bf16(const struct tec_embed_args *a, struct tec_cuda_launch *launch)
{
    embed<bf16>(a, launch, 0);
}

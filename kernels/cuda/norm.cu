/* norm.cu - layernorm, rmsnorm and head_norm: a block for each row, sums in float32.
 *
 * A thread's quads, and how their sums meet: norm.cuh. A first mean in float32 is off by a few
 * units of the largest element; layernorm therefore sums the distances from it, which are nearly
 * exact, and moves mean and variance by what that sum shows. */
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/row_digits.cuh"
#include "kernels/cuda/row_terms.cuh"

struct row {
    const float *x;
    int cols;
    bool wide;
};

/* Total of v over the warps of the block, in every lane that of its own; `room` is not in use by
 * another total. */
static __device__ __forceinline__ float warps_sum(float v, float room[NORM_THREADS])
{
    int warps = (int)blockDim.x / WARP;
    if (warps == 1)
        return v;
    room[threadIdx.x] = v;
    __syncthreads();
    float total = 0.0F;
    for (int i = 0; i < warps; i++)
        total += room[i * WARP + (int)threadIdx.x % WARP];
    return total;
}

/* f(i, c, quad) for each quad of this thread, c its first column: quad i < HELD from registers, the
 * others read again. */
template <int HELD, class F>
static __device__ __forceinline__ void each_quad(const struct row &row, struct quad held[HELD], F f)
{
    int step = (int)blockDim.x * QUAD, c = (int)threadIdx.x * QUAD;
    TEC_UNROLL
    for (int i = 0; i < HELD; i++, c += step)
        if (c < row.cols)
            f(i, c, held[i]);
    for (; c < row.cols; c += step)
        f(HELD, c, quad_load(row.x + c, row.cols - c, row.wide));
}

/* The quad at column c; zeros beyond the row, or without a vector. */
static __device__ __forceinline__ struct quad some(const float *x, int c, int cols, bool wide)
{
    return quad_load(x ? x + c : x, x ? cols - c : 0, wide);
}

/* The first HELD quads of this thread. */
template <int HELD>
static __device__ __forceinline__ void hold(struct quad held[HELD], const float *x, int cols,
                                            bool wide)
{
    TEC_UNROLL
    for (int i = 0; i < HELD; i++) {
        int c = ((int)threadIdx.x + i * (int)blockDim.x) * QUAD;
        held[i] = some(x, c, cols, wide);
    }
}

/* The mean, as two terms, that is subtracted from each element, and the factor that then scales it.
 */
struct statistics {
    float mean, rest, scale;
};

/* Mean over the row of what f(sum, x) adds to the sum. */
template <int HELD, class F>
static __device__ __forceinline__ float mean_of(const struct row &row, struct quad held[HELD],
                                                float room[NORM_THREADS], F f)
{
    float sum = 0.0F;
    each_quad<HELD>(row, held, [&](int, int c, const struct quad &x) {
        TEC_UNROLL
        for (int i = 0; i < QUAD; i++)
            if (c + i < row.cols)
                sum = f(sum, x.v[i]);
    });
    return warp_sum(warps_sum(sum, room)) / (float)row.cols;
}

/* Mean of the row's squares, by panels. A warp takes its quads together; zeros beyond the row. */
template <int HELD>
static __device__ __forceinline__ float mean_square(const struct row &row, struct quad held[HELD],
                                                    float room[NORM_THREADS])
{
    int step = (int)blockDim.x * QUAD, lane = (int)threadIdx.x % WARP;
    int c = (int)threadIdx.x * QUAD + HELD * step;
    float sum = 0.0F;
    TEC_UNROLL
    for (int i = 0; i < HELD; i++)
        sum += panel_squares(quad_squares(held[i].v));
    for (; c - lane * QUAD < row.cols; c += step) {
        struct quad x = quad_load(row.x + c, row.cols - c, row.wide);
        sum += panel_squares(quad_squares(x.v));
    }
    return tree_of_eight(warps_sum(sum, room), 4) / (float)row.cols;
}

template <int HELD, bool CENTRED>
static __device__ __forceinline__ struct statistics measure(const struct row &row,
                                                            struct quad held[HELD], float eps)
{
    __shared__ float room[CENTRED ? 3 : 1][NORM_THREADS];
    struct statistics s = {0.0F, 0.0F, 0.0F};
    float squares;
    if constexpr (CENTRED) {
        float mean = mean_of<HELD>(row, held, room[0], [](float sum, float x) { return sum + x; });
        s.mean = mean;
        float rest = mean_of<HELD>(row, held, room[1],
                                   [mean](float sum, float x) { return sum + (x - mean); });
        s.rest = rest;
        squares = mean_of<HELD>(row, held, room[2], [mean, rest](float sum, float x) {
            return add_square(sum, x - mean - rest);
        });
    } else {
        squares = mean_square<HELD>(row, held, room[0]);
    }
    s.scale = norm_scale(squares, eps);
    return s;
}

/* A row's quad at column c goes to y, or where it is left as terms. */
struct norm_plain {
    struct terms_out terms;

    __device__ __forceinline__ void put(const tec_norm_args &a, int r, int c, const struct quad &q,
                                        bool wide) const
    {
        if (terms.at)
            terms.quad(r, c, make_float2(q.v[0], q.v[1]), make_float2(q.v[2], q.v[3]));
        else
            quad_store(a.y + (size_t)r * (size_t)a.ldy + c, q, a.cols - c, wide);
    }
};

/* It is left as digits: columns are whole groups, so a warp has one of them. */
struct norm_digits {
    struct digits_out digits;

    __device__ __forceinline__ void put(const tec_norm_args &, int r, int c, const struct quad &q,
                                        bool) const
    {
        if (digits.digits == 1)
            digits_quad<1>(digits, r, c, q.v);
        else
            digits_quad<2>(digits, r, c, q.v);
    }
};

template <int HELD, bool CENTRED, class Out>
static __global__ void __launch_bounds__(NORM_THREADS)
    norm_kernel(struct tec_norm_args a, bool wide, bool wide_out, Out out)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x;
    if (r >= live_count(a.rows, a.max_rows))
        return;
    struct row row = {a.x + (size_t)r * (size_t)a.ldx, a.cols, wide};
    bool fixed = a.fixed && r < *a.fixed;
    const float *weights = fixed ? a.fixed_weight : a.weight;
    const float *biases = fixed ? a.fixed_bias : a.bias;
    struct quad held[HELD], weight[HELD], bias[HELD]; /* all on their way before the first sum */
    hold<HELD>(held, row.x, a.cols, wide);
    hold<HELD>(weight, weights, a.cols, wide_out);
    hold<HELD>(bias, biases, a.cols, wide_out);
    struct statistics s = measure<HELD, CENTRED>(row, held, a.eps);
    each_quad<HELD>(row, held, [&](int at, int c, const struct quad &x) {
        struct quad w = at < HELD ? weight[at] : some(weights, c, a.cols, wide_out);
        struct quad b = at < HELD ? bias[at] : some(biases, c, a.cols, wide_out);
        TEC_UNROLL
        for (int i = 0; i < QUAD; i++) {
            float v = CENTRED ? x.v[i] - s.mean - s.rest : x.v[i];
            w.v[i] = normed(v, s.scale, __fadd_rn(a.offset, w.v[i]), b.v[i], a.round);
        }
        out.put(a, r, c, w, wide_out);
    });
}

template <bool CENTRED, class Out>
static void norm_to(const struct tec_norm_args *a, const Out &out, struct tec_cuda_launch *launch)
{
    int quads = ceil_div(a->cols, QUAD), threads = norm_threads(a->cols);
    bool wide = floats_aligned(a->x, a->ldx);
    bool wide_out = floats_aligned(a->y, a->ldy) && floats_aligned(a->weight, 0) &&
                    floats_aligned(a->bias, 0) && floats_aligned(a->fixed_weight, 0) &&
                    floats_aligned(a->fixed_bias, 0);
    dim3 grid((unsigned)a->max_rows), block((unsigned)threads);
    if (quads <= threads)
        tec_cuda_start(launch, norm_kernel<1, CENTRED, Out>, grid, block, 0, *a, wide, wide_out,
                       out);
    else if (quads <= 2 * threads)
        tec_cuda_start(launch, norm_kernel<2, CENTRED, Out>, grid, block, 0, *a, wide, wide_out,
                       out);
    else
        tec_cuda_start(launch, norm_kernel<4, CENTRED, Out>, grid, block, 0, *a, wide, wide_out,
                       out);
}

template <bool CENTRED>
static void norm(const struct tec_norm_args *a, struct tec_cuda_launch *launch)
{
    struct norm_digits digits = {digits_left(launch, a->y)};
    struct norm_plain plain = {terms_out_of(launch, a->y)};
    if (digits.digits.at)
        norm_to<CENTRED>(a, digits, launch);
    else
        norm_to<CENTRED>(a, plain, launch);
}

void tec_cuda_layernorm(const struct tec_norm_args *a, struct tec_cuda_launch *launch)
{
    norm<true>(a, launch);
}

void tec_cuda_rmsnorm(const struct tec_norm_args *a, struct tec_cuda_launch *launch)
{
    norm<false>(a, launch);
}

/* A warp takes a head; a block the heads of a row in turns. */
static __global__ void __launch_bounds__(NORM_THREADS) head_norm_kernel(struct tec_head_norm_args a)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    if (r >= live_count(a.rows, a.max_rows))
        return;
    for (int h = warp; h < a.heads; h += NORM_WARPS) {
        float *x = a.x + (size_t)r * (size_t)a.ld + a.at + (size_t)h * (size_t)a.head_dim;
        float sum = 0.0F;
        for (int d = lane; d < a.head_dim; d += WARP)
            sum = add_square(sum, x[d]);
        float scale = norm_scale(warp_sum(sum) / (float)a.head_dim, a.eps);
        for (int d = lane; d < a.head_dim; d += WARP) {
            float weight = __fadd_rn(a.offset, a.weight ? a.weight[d] : 0.0F);
            x[d] = normed(x[d], scale, weight, 0.0F, a.round);
        }
    }
}

void tec_cuda_head_norm(const struct tec_head_norm_args *a, struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, head_norm_kernel, dim3((unsigned)a->max_rows), dim3(NORM_THREADS), 0,
                   *a);
}

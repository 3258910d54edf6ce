/* row_digits.cu - rows of x as signed digits, written once for all the columns of a product. */
#include "kernels/cuda/row_digits.cuh"

#include "kernels/cuda/row.cuh"

enum { DIGITS_THREADS = DIGITS_WARPS * WARP, DIGITS_QUADS = DIGITS_K / QUAD };

/* A group of a row: its numbers, and how many there are. */
struct digits_group {
    const float *x;   /* the row; without an order its numbers begin here */
    const int *order; /* of this group; NULL: none */
    int count;
};

/* The numbers of a step; zeros where there are none. */
static __device__ __forceinline__ void
digits_load(struct quad (&q)[DIGITS_QUADS], const struct digits_group &g, int step, bool wide)
{
    TEC_UNROLL
    for (int i = 0; i < DIGITS_QUADS; i++) {
        int k = step * DIGITS_K + i * QUAD;
        if (!g.order) {
            q[i] = quad_load(g.x + k, g.count - k, wide);
            continue;
        }
        TEC_UNROLL
        for (int e = 0; e < QUAD; e++)
            q[i].v[e] = k + e < g.count ? g.x[g.order[k + e]] : 0.0F;
    }
}

static __device__ __forceinline__ unsigned digits_largest(const struct quad (&q)[DIGITS_QUADS],
                                                          unsigned largest)
{
    TEC_UNROLL
    for (int i = 0; i < DIGITS_QUADS * QUAD; i++)
        largest = max(largest, __float_as_uint(q[i / QUAD].v[i % QUAD]) & 0x7fffffffU);
    return largest;
}

/* A step's digits, 16 bytes at a time. */
template <int DIGITS>
static __device__ __forceinline__ void digits_store(const struct digits_out &out, int r, int group,
                                                    int step, const struct quad (&q)[DIGITS_QUADS],
                                                    float per)
{
    unsigned char *to = out.place(r, group, step);
    TEC_UNROLL
    for (int half = 0; half < 2; half++) {
        unsigned word[4][DIGITS];
        TEC_UNROLL
        for (int i = 0; i < 4; i++)
            digits_of<DIGITS>(word[i], q[half * 4 + i].v, per);
        TEC_UNROLL
        for (int d = 0; d < DIGITS; d++)
            *reinterpret_cast<uint4 *>(to + d * DIGITS_EIGHT + half * 128) =
                make_uint4(word[0][d], word[1][d], word[2][d], word[3][d]);
    }
}

/* Lanes 0 .. 7 of a warp have 8 rows, as do the next ones, of whom up to four share a group. What
 * they write of 8 rows is one piece of 128 bytes. Blocks: groups, rows. */
template <int DIGITS>
static __global__ void __launch_bounds__(DIGITS_THREADS)
    row_digits_kernel(struct tec_gemm_args a, struct tec_cuda_digits form, const int *order,
                      int first, struct digits_out out, int wide)
{
    wait_previous();
    release_next();
    int lane = (int)threadIdx.x % WARP, part = lane / 8, lanes = tec_cuda_digits_lanes(&form);
    int warp = (int)blockIdx.x * DIGITS_WARPS + (int)threadIdx.x / WARP;
    int group = warp * (DIGITS_LANES / lanes) + part / lanes, begin = group * form.group;
    int in = (int)blockIdx.y * 8 + lane % 8, r = first + in;
    bool lives = r < live_count(a.rows, a.max_rows) && group < out.groups;
    struct digits_group g = {a.x, NULL, 0};
    if (lives) {
        g.x += (size_t)r * (size_t)a.ldx + (size_t)(order ? 0 : begin);
        g.order = order ? order + begin : NULL;
        g.count = min(form.k - begin, form.group);
    }
    struct quad q[DIGITS_QUADS];
    unsigned largest = 0;
    for (int step = part % lanes; step < out.steps; step += lanes) {
        digits_load(q, g, step, wide);
        largest = digits_largest(q, largest);
    }
    if (lanes > 1)
        largest = max(largest, __shfl_xor_sync(ALL_LANES, largest, 8));
    if (lanes > 2)
        largest = max(largest, __shfl_xor_sync(ALL_LANES, largest, 16));
    if (!lives)
        return;
    float per, unit = digits_unit<DIGITS>(largest, &per);
    for (int step = part % lanes; step < out.steps; step += lanes) {
        if (out.steps > lanes) /* else they are still here */
            digits_load(q, g, step, wide);
        digits_store<DIGITS>(out, in, group, step, q, per);
    }
    if (part % lanes == 0)
        *out.unit(in, group) = unit;
}

void tec_cuda_row_digits(const struct tec_gemm_args *a, const struct tec_cuda_digits *form,
                         const int *order, int first, int count, struct tec_cuda_launch *launch)
{
    dim3 blocks((unsigned)tec_cuda_digits_blocks(form), (unsigned)ceil_div(count, 8));
    tec_cuda_start(launch,
                   form->digits == 1   ? row_digits_kernel<1>
                   : form->digits == 2 ? row_digits_kernel<2>
                                       : row_digits_kernel<3>,
                   blocks, dim3(DIGITS_THREADS), 0, *a, *form, order, first,
                   digits_out_of(launch->terms, form, count), (int)floats_aligned(a->x, a->ldx));
}

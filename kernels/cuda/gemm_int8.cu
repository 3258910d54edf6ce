/* gemm_int8.cu - y (+)= gate * (x W^T + bias), W of 8-bit weights (kernels/int8.h), on tensor
 * cores: the bytes of the CPU.
 *
 * A whole number of x is one or two signed digits of 8 bits, so a group is one or two products of
 * bytes with whole sums, at twice the rate of bf16 ones; weights are stored as the instruction
 * wants them. A warp has the sums of one panel for one group of k; the warps of a block take DEEP
 * groups at once, then add theirs in turn to the chain that all share, in the order of k. Few rows:
 * groups beside one another, so that a matrix of few columns still occupies the device. Many rows:
 * panels, which share what was made of x. */
#include "kernels/cuda/gemm_digits.h"
#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/cuda/row.cuh"
#include "kernels/int8.h"

/* Digits of x; groups of k, panels and groups of 8 rows of a block. */
template <int EACH_, int DEEP_, int ACROSS_, int N_> struct int8_shape {
    enum : int {
        EACH = EACH_,
        DEEP = DEEP_,
        ACROSS = ACROSS_,
        N = N_,
        WARPS = DEEP * ACROSS,
        THREADS = WARPS * WARP,
        RESIDENT = N == 8                ? 2
                   : N == 4              ? 3
                   : N == 2 || EACH == 1 ? 4
                                         : 5, /* blocks that registers are for */
        ROWS = N * 8,
        LD = TEC_INT8_GROUP / 4 + 4, /* words of a row of digits: lanes meet no bank conflict */
        DIGITS = ROWS * LD,          /* words of one digit of a group */
        CHAIN = N * 4 * WARP,        /* floats of a panel */
        SHARED = (DEEP * EACH * DIGITS + DEEP * ROWS + ACROSS * CHAIN) * 4
    };
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
};

enum { INT8_STEPS = TEC_INT8_GROUP / 32, INT8_WORDS = 4 * INT8_STEPS };

/* A lane's words of a panel in one group: of each 16 k the line lane % 4, columns lane / 4 and 8
 * more. Those of 32 k are an operand of mma_s8. Zeros where there are none. */
static __device__ __forceinline__ void int8_fetch(unsigned (&w)[INT8_WORDS], const tec_gemm_args &a,
                                                  int panel, int group)
{
    int lane = (int)threadIdx.x % WARP;
    const unsigned char *at = (const unsigned char *)a.w + (size_t)panel * tec_int8_panel(a.k) +
                              (size_t)(lane / 4) * TEC_INT8_DEEP;
    TEC_UNROLL
    for (int s = 0; s < INT8_WORDS / 2; s++) {
        int k = group * TEC_INT8_GROUP + s * 16 + lane % 4 * TEC_INT8_DEEP;
        TEC_UNROLL
        for (int half = 0; half < 2; half++)
            w[2 * s + half] =
                panel < a.n / 16 && k < a.k
                    ? *reinterpret_cast<const unsigned *>(at + tec_int8_at(k) + half * 32)
                    : 0U;
    }
}

/* The unit of a group of finite x, and what they are multiplied by. */
template <int EACH> static __device__ __forceinline__ float int8_unit(unsigned largest, float *per)
{
    if (EACH == 1)
        return tec_int8_unit(__uint_as_float(largest), per);
    int finer = tec_int8_finer(largest);
    *per = __uint_as_float((unsigned)(127 + finer) << 23);
    return __uint_as_float((unsigned)(127 - finer) << 23);
}

/* One row of x in one group: its digits, high ones first, `apart` words apart, and its unit. A warp
 * does it. */
template <int EACH>
static __device__ __forceinline__ void int8_digits(const float *x, int count, bool wide,
                                                   unsigned *digits, int apart, float *unit)
{
    int lane = (int)threadIdx.x % WARP;
    struct quad q = quad_load(x + lane * QUAD, count - lane * QUAD, wide);
    unsigned largest = 0;
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        largest = max(largest, __float_as_uint(q.v[i]) & 0x7fffffffU);
    TEC_UNROLL
    for (int other = WARP / 2; other; other /= 2)
        largest = max(largest, __shfl_xor_sync(ALL_LANES, largest, other));
    bool finite = largest < 0x7f800000U;
    float per, whole = int8_unit<EACH>(finite ? largest : 0U, &per);
    unsigned digit[2] = {0, 0};
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++) {
        int raised = (finite ? __float2int_rn(__fmul_rn(q.v[i], per)) : 0) + 128;
        digit[0] |= ((unsigned)raised >> 8 & 0xffU) << (8 * i);
        digit[1] |= (((unsigned)raised & 0xffU) ^ 0x80U) << (8 * i); /* less 128 */
    }
    TEC_UNROLL
    for (int d = 0; d < EACH; d++) /* of one digit, the low one has all of it */
        digits[d * apart + lane] = digit[2 - EACH + d];
    if (lane == 0)
        *unit = finite ? whole : __uint_as_float(0x7fc00000U);
}

/* Where a block keeps what its warps share. */
template <class S> struct int8_shared {
    unsigned *digits; /* [DEEP][EACH][ROWS][LD] */
    float *units;     /* [DEEP][ROWS] */
    float *chain;     /* [ACROSS][N][4][WARP] */

    __device__ __forceinline__ unsigned *at(int deep) const
    {
        return digits + deep * S::EACH * S::DIGITS;
    }
};

/* Digits of the block's rows in the DEEP groups from `group` on; rows that do not live: zeros. */
template <class S>
static __device__ __forceinline__ void int8_rows(const struct int8_shared<S> &shared,
                                                 const tec_gemm_args &a, int group, int first,
                                                 int live, bool wide)
{
    for (int i = (int)threadIdx.x / WARP; i < S::DEEP * S::ROWS; i += S::WARPS) {
        int deep = i / S::ROWS, r = i % S::ROWS, k = (group + deep) * TEC_INT8_GROUP;
        int count = first + r < live ? min(a.k - k, TEC_INT8_GROUP) : 0;
        const float *x = count > 0 ? a.x + (size_t)(first + r) * (size_t)a.ldx + k : a.x;
        int8_digits<S::EACH>(x, count, wide, shared.at(deep) + r * S::LD, S::DIGITS,
                             shared.units + i);
    }
}

/* The exact sums of a warp's panel and group; those of high digits and of low ones, joined. */
template <class S>
static __device__ __forceinline__ void int8_multiply(sums<1, S::N> &whole,
                                                     const unsigned (&w)[INT8_WORDS],
                                                     const struct int8_shared<S> &shared, int deep)
{
    int lane = (int)threadIdx.x % WARP;
    const unsigned *x = shared.at(deep) + lane / 4 * S::LD + lane % 4;
    int parts[S::EACH][S::N][4];
    TEC_UNROLL
    for (int i = 0; i < S::EACH * S::N * 4; i++)
        parts[i / 4 / S::N][i / 4 % S::N][i % 4] = 0;
    TEC_UNROLL
    for (int s = 0; s < INT8_STEPS; s++) {
        TEC_UNROLL
        for (int j = 0; j < S::N; j++) {
            TEC_UNROLL
            for (int d = 0; d < S::EACH; d++) {
                const unsigned *digits = x + d * S::DIGITS + j * 8 * S::LD + s * 8;
                unsigned of_x[2] = {digits[0], digits[4]};
                mma_s8(parts[d][j], w + 4 * s, of_x);
            }
        }
    }
    TEC_UNROLL
    for (int i = 0; i < S::N * 4; i++)
        whole[0][i / 4][i % 4] = (float)((S::EACH > 1 ? parts[0][i / 4][i % 4] * 256 : 0) +
                                         parts[S::EACH - 1][i / 4][i % 4]);
}

/* Each warp's sums join the chain of its panel, one group after the other. Those of a group that
 * there is not are zeros. */
template <class S>
static __device__ __forceinline__ void
int8_join(const sums<1, S::N> &whole, const struct int8_shared<S> &shared, int deep, int across)
{
    int lane = (int)threadIdx.x % WARP;
    float *chain = shared.chain + across * S::CHAIN + lane;
    const float *units = shared.units + deep * S::ROWS + lane % 4 * 2;
    for (int d = 0; d < S::DEEP; d++) {
        TEC_UNROLL
        for (int i = 0; i < S::N * 4; i++)
            if (d == deep)
                chain[i * WARP] =
                    fmaf(whole[0][i / 4][i % 4], units[i / 4 * 8 + i % 2], chain[i * WARP]);
        __syncthreads();
    }
}

template <class S>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_int8_kernel(struct tec_gemm_args a, int wide)
{
    TEC_SHARED(unsigned, memory);
    float *behind = reinterpret_cast<float *>(memory + S::DEEP * S::EACH * S::DIGITS);
    struct int8_shared<S> shared = {
        memory, behind, behind + S::DEEP *S::ROWS
    };
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    int deep = warp % S::DEEP, across = warp / S::DEEP;
    int panel = (int)blockIdx.y * S::ACROSS + across, first = (int)blockIdx.x * S::ROWS;
    unsigned w[INT8_WORDS];
    int8_fetch(w, a, panel, deep); /* constant, so it does not wait for the kernel in front */
    wait_previous();
    release_next();
    struct rows rows = {live_count(a.rows, a.max_rows), a.fixed ? *a.fixed : 0};
    if (first >= rows.live)
        return;
    for (int i = deep; i < S::N * 4; i += S::DEEP)
        shared.chain[across * S::CHAIN + i * WARP + lane] = 0.0F;
    int groups = ceil_div(a.k, TEC_INT8_GROUP);
    for (int group = 0; group < groups; group += S::DEEP) {
        sums<1, S::N> whole;
        int8_rows<S>(shared, a, group, first, rows.live, wide);
        __syncthreads();
        int8_multiply<S>(whole, w, shared, deep);
        int8_join<S>(whole, shared, deep, across);
        int8_fetch(w, a, panel, group + S::DEEP + deep); /* on its way while rows are read */
    }
    if (deep > 0 || panel >= a.n / 16)
        return;
    const float *scales = reinterpret_cast<const float *>((const unsigned char *)a.w +
                                                          (size_t)panel * tec_int8_panel(a.k)) +
                          lane / 4;
    sums<1, S::N> total;
    TEC_UNROLL
    for (int i = 0; i < S::N * 4; i++)
        total[0][i / 4][i % 4] =
            __fmul_rn(shared.chain[across * S::CHAIN + i * WARP + lane], scales[i % 4 / 2 * 8]);
    int taken[1] = {panel};
    struct single_finish<store_rows> finish = {
        a,
        {
            {}, a.y, a.ldy, a.add
        }
    };
    finish.run(total, taken, first, rows);
}

template <class S> static void start(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    dim3 grid((unsigned)ceil_div(a->max_rows, S::ROWS), (unsigned)ceil_div(a->n / 16, S::ACROSS));
    tec_cuda_start(launch, gemm_int8_kernel<S>, grid, dim3(S::THREADS), S::SHARED, *a,
                   (int)floats_aligned(a->x, a->ldx));
}

#define INT8_TILE(name, digits, deep, across, n, ...)                        \
    typedef int8_shape<digits, deep, across, n> name;                        \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&     \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads, \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

void tec_cuda_gemm_int8(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    if (digits_first(a->n, a->k, a->max_rows, a->digits, &facts)) {
        tec_cuda_gemm_digits(a, launch);
        return;
    }
    enum gemm_tile_id tile = int8_choose(a->max_rows, a->digits);
#define INT8_TILE(name, ...) \
    if (tile == GEMM_##name) \
        start<name>(a, launch);
#include "kernels/cuda/gemm_tiles.def"
}

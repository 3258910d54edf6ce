/* gemm_int8_few_mma.cuh - products with 8-bit weights (kernels/int8.h) of few rows, for any finish,
 * on tensor cores: the bytes of the CPU.
 *
 * A whole number of x is one or two signed digits of 8 bits, so a group is one or two products of
 * bytes with whole sums, at twice the rate of bf16 ones; weights are stored as the instruction
 * wants them. A warp has the sums of one panel for one group of k; the warps of a block take DEEP
 * groups at once, then add theirs in turn to the chain that all share, in the order of k. Up to 16
 * rows: groups beside one another, so that a matrix of few columns still occupies the device. More:
 * panels, which share what was made of x.
 *
 * Chains lie in shared memory, so at the end any warp can have any of them: the warps of a panel,
 * or of a pair of panels that a finish wants in one thread, take the groups of 8 rows among them.
 */
#pragma once

#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/cuda/gemm_int8_choice.h"
#include "kernels/cuda/gemm_norm.cuh"
#include "kernels/cuda/row.cuh"
#include "kernels/int8.h"

/* Digits of x; groups of k, panels and groups of 8 rows of a block. */
template <int EACH_, int DEEP_, int ACROSS_, int N_> struct int8_few_mma_shape {
    enum : int {
        EACH = EACH_,
        DEEP = DEEP_,
        ACROSS = ACROSS_,
        N = N_,
        WARPS = DEEP * ACROSS,
        THREADS = WARPS * WARP,
        RESIDENT = N == 8 || THREADS > 256 ? 2
                   : N == 4                ? 3
                   : N == 2 || EACH == 1   ? 4
                                           : 5, /* blocks that registers are for */
        NORMED_RESIDENT = RESIDENT < 4 ? RESIDENT : 4,
        ROWS = N * 8,
        LD = TEC_INT8_GROUP / 4 + 4, /* words of a row of digits: lanes meet no bank conflict */
        DIGITS = ROWS * LD,          /* words of one digit of a group */
        CHAIN = N * 4 * WARP,        /* floats of a panel */
        SHARED = (DEEP * EACH * DIGITS + DEEP * ROWS + ACROSS * CHAIN) * 4
    };
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
};

enum { INT8_FEW_MMA_STEPS = TEC_INT8_GROUP / 32, INT8_FEW_MMA_WORDS = 4 * INT8_FEW_MMA_STEPS };

/* A lane's words of a panel in one group: of each 16 k the line lane % 4, columns lane / 4 and 8
 * more. Those of 32 k are an operand of mma_s8. Zeros where there are none. */
static __device__ __forceinline__ void
int8_few_mma_fetch(unsigned (&w)[INT8_FEW_MMA_WORDS], const tec_gemm_args &a, int panel, int group)
{
    int lane = (int)threadIdx.x % WARP;
    const unsigned char *at = (const unsigned char *)a.w + (size_t)panel * tec_int8_panel(a.k) +
                              (size_t)(lane / 4) * TEC_INT8_DEEP;
    TEC_UNROLL
    for (int s = 0; s < INT8_FEW_MMA_WORDS / 2; s++) {
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
template <int EACH>
static __device__ __forceinline__ float int8_few_mma_unit(unsigned largest, float *per)
{
    if (EACH == 1)
        return tec_int8_unit(__uint_as_float(largest), per);
    int finer = tec_int8_finer(largest);
    *per = __uint_as_float((unsigned)(127 + finer) << 23);
    return __uint_as_float((unsigned)(127 - finer) << 23);
}

/* One row of x in one group, of which each lane has four: its digits, high ones first, `apart`
 * words apart, and its unit. A warp does it. */
template <int EACH>
static __device__ __forceinline__ void int8_few_mma_digits(const struct quad &q, unsigned *digits,
                                                           int apart, float *unit)
{
    int lane = (int)threadIdx.x % WARP;
    unsigned largest = 0;
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        largest = max(largest, __float_as_uint(q.v[i]) & 0x7fffffffU);
    TEC_UNROLL
    for (int other = WARP / 2; other; other /= 2)
        largest = max(largest, __shfl_xor_sync(ALL_LANES, largest, other));
    bool finite = largest < 0x7f800000U;
    float per, whole = int8_few_mma_unit<EACH>(finite ? largest : 0U, &per);
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
template <class S> struct int8_few_mma_shared {
    unsigned *digits; /* [DEEP][EACH][ROWS][LD] */
    float *units;     /* [DEEP][ROWS] */
    float *chain;     /* [ACROSS][N][4][WARP] */

    __device__ __forceinline__ unsigned *at(int deep) const
    {
        return digits + deep * S::EACH * S::DIGITS;
    }
};

/* What x goes through before it is rounded: nothing, or a norm of its rows. begin() is done once by
 * the block; of() makes of four columns of its row r, of which there are `count`, what is
 * multiplied. */
struct int8_few_mma_plain {
    template <class S>
    __device__ __forceinline__ void begin(const struct int8_few_mma_shared<S> &, int, int)
    {
    }
    __device__ __forceinline__ struct quad of(const struct quad &x, int, int, int) const
    {
        return x;
    }
};

/* Of whole quads of columns. Scales lie behind the chains; what is added up for them, where digits
 * will be. */
struct int8_few_mma_normed {
    struct norm_front front;
    const float *scales;
    int fixed; /* rows of the block that take the second vectors */

    template <class S>
    __device__ __forceinline__ void begin(const struct int8_few_mma_shared<S> &shared, int first,
                                          int live)
    {
        enum { AT_ONCE = S::ROWS * NORM_WARPS < S::WARPS * WARP ? S::ROWS : S::WARPS * WARP / 8 };
        static_assert(AT_ONCE * NORM_WARPS * 8 <= S::DEEP * S::EACH * S::DIGITS, "no room");
        float *room = reinterpret_cast<float *>(shared.digits);
        float *at = shared.chain + S::ACROSS * S::CHAIN;
        int count = min(live - first, (int)S::ROWS);
        if (front.left) {
            add_left<S::WARPS>(at, front.a, front.left, first, S::ROWS, count);
            __syncthreads();
        } else {
            measure_together<S::WARPS>(at, room, front.a, first, count);
        }
        scales = at;
        fixed = front.a.fixed ? *front.a.fixed - first : 0;
    }
    static __device__ __forceinline__ struct quad vector(const float *from, int column)
    {
        return quad_load(from ? from + column : from, from ? QUAD : 0, true);
    }
    __device__ __forceinline__ struct quad of(struct quad x, int r, int column, int count) const
    {
        if (count <= 0)
            return x;
        bool second = r < fixed;
        struct quad weight = vector(second ? front.a.fixed_weight : front.a.weight, column);
        struct quad bias = vector(second ? front.a.fixed_bias : front.a.bias, column);
        TEC_UNROLL
        for (int i = 0; i < QUAD; i++)
            x.v[i] = normed(x.v[i], scales[r], __fadd_rn(front.a.offset, weight.v[i]), bias.v[i],
                            front.a.round);
        return x;
    }
};

/* Digits of the block's rows in the DEEP groups from `group` on; rows that do not live: zeros. */
template <class S, class Front>
static __device__ __forceinline__ void
int8_few_mma_rows(const struct int8_few_mma_shared<S> &shared, const tec_gemm_args &a,
                  const Front &front, int group, int first, int live, bool wide)
{
    int column = (int)threadIdx.x % WARP * QUAD;
    for (int i = (int)threadIdx.x / WARP; i < S::DEEP * S::ROWS; i += S::WARPS) {
        int deep = i / S::ROWS, r = i % S::ROWS, k = (group + deep) * TEC_INT8_GROUP;
        int count = (first + r < live ? min(a.k - k, TEC_INT8_GROUP) : 0) - column;
        const float *x = a.x + (size_t)(first + r) * (size_t)a.ldx + k + column;
        struct quad q = front.of(quad_load(x, count, wide), r, k + column, count);
        int8_few_mma_digits<S::EACH>(q, shared.at(deep) + r * S::LD, S::DIGITS, shared.units + i);
    }
}

/* The exact sums of a warp's panel and group; those of high digits and of low ones, joined. */
template <class S>
static __device__ __forceinline__ void
int8_few_mma_multiply(sums<1, S::N> &whole, const unsigned (&w)[INT8_FEW_MMA_WORDS],
                      const struct int8_few_mma_shared<S> &shared, int deep)
{
    int lane = (int)threadIdx.x % WARP;
    const unsigned *x = shared.at(deep) + lane / 4 * S::LD + lane % 4;
    int parts[S::EACH][S::N][4];
    TEC_UNROLL
    for (int i = 0; i < S::EACH * S::N * 4; i++)
        parts[i / 4 / S::N][i / 4 % S::N][i % 4] = 0;
    TEC_UNROLL
    for (int s = 0; s < INT8_FEW_MMA_STEPS; s++) {
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
int8_few_mma_join(const sums<1, S::N> &whole, const struct int8_few_mma_shared<S> &shared, int deep,
                  int across)
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

/* How the warps of a block end: OWNERS of them have M panels whose columns one thread wants, and
 * each EACH groups of 8 rows. */
template <class S, class Finish> struct int8_few_mma_end {
    enum : int {
        M = Finish::PAIRS ? 2 : 1,
        OWNERS = M * S::DEEP,
        EACH = (S::N + OWNERS - 1) / OWNERS
    };
    static_assert(S::ACROSS % M == 0, "a block has whole pairs");
};

/* A warp's share of the chains, times the scales of their columns, goes to the finish. */
template <class S, class Finish>
static __device__ __forceinline__ void
int8_few_mma_finish(const tec_gemm_args &a, const Finish &finish,
                    const struct int8_few_mma_shared<S> &shared, int first, struct rows rows)
{
    typedef int8_few_mma_end<S, Finish> end;
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    int from = warp / end::OWNERS * end::M, group = warp % end::OWNERS * end::EACH;
    if (group >= S::N)
        return;
    sums<end::M, end::EACH> total;
    int taken[end::M];
    TEC_UNROLL
    for (int i = 0; i < end::M; i++) {
        taken[i] = finish.panel((int)blockIdx.y * S::ACROSS + from + i);
        int panel = min(taken[i], a.n / 16 - 1); /* of none, what the finish leaves out */
        const float *scales = reinterpret_cast<const float *>((const unsigned char *)a.w +
                                                              (size_t)panel * tec_int8_panel(a.k)) +
                              lane / 4;
        const float *chain = shared.chain + (from + i) * S::CHAIN + group * 4 * WARP + lane;
        TEC_UNROLL
        for (int j = 0; j < end::EACH * 4; j++)
            total[i][j / 4][j % 4] = __fmul_rn(chain[j * WARP], scales[j % 4 / 2 * 8]);
    }
    finish.run(total, taken, first + group * 8, rows);
}

template <class S, class Finish, class Front>
static __device__ __forceinline__ void
int8_few_mma_tile(const tec_gemm_args &a, const Finish &finish, Front front, bool wide)
{
    TEC_SHARED(unsigned, memory);
    float *behind = reinterpret_cast<float *>(memory + S::DEEP * S::EACH * S::DIGITS);
    struct int8_few_mma_shared<S> shared = {
        memory, behind, behind + S::DEEP *S::ROWS
    };
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    int deep = warp % S::DEEP, across = warp / S::DEEP, first = (int)blockIdx.x * S::ROWS;
    int panel = finish.panel((int)blockIdx.y * S::ACROSS + across);
    unsigned w[INT8_FEW_MMA_WORDS];
    int8_few_mma_fetch(w, a, panel,
                       deep); /* constant, so it does not wait for the kernel in front */
    wait_previous();
    release_next();
    struct rows rows = live_rows(a);
    if (first >= rows.live)
        return;
    for (int i = deep; i < S::N * 4; i += S::DEEP)
        shared.chain[across * S::CHAIN + i * WARP + lane] = 0.0F;
    front.begin(shared, first, rows.live);
    int groups = ceil_div(a.k, TEC_INT8_GROUP);
    for (int group = 0; group < groups; group += S::DEEP) {
        sums<1, S::N> whole;
        int8_few_mma_rows<S>(shared, a, front, group, first, rows.live, wide);
        __syncthreads();
        int8_few_mma_multiply<S>(whole, w, shared, deep);
        int8_few_mma_join<S>(whole, shared, deep, across);
        int8_few_mma_fetch(w, a, panel,
                           group + S::DEEP + deep); /* on its way while rows are read */
    }
    int8_few_mma_finish<S>(a, finish, shared, first, rows);
}

template <class S, class Finish>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_int8_few_mma_kernel(struct tec_gemm_args a, Finish finish, int wide)
{
    int8_few_mma_tile<S>(a, finish, int8_few_mma_plain(), wide);
}

/* a.x is the norm's x; what is copied in 16 bytes begins at such. */
template <class S, class Finish>
static __global__ void __launch_bounds__(S::THREADS, S::NORMED_RESIDENT)
    gemm_int8_few_mma_normed_kernel(struct tec_gemm_args a, Finish finish, struct norm_front norm)
{
    int8_few_mma_tile<S>(a, finish, int8_few_mma_normed{norm, NULL, 0}, true);
}

#define INT8_FEW_MMA_TILE(name, digits, deep, across, n, ...)                \
    typedef int8_few_mma_shape<digits, deep, across, n> name;                \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&     \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads, \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

/* Whether a finish has a kernel of this tile. FEW: of tiles of less than 64 rows too; of 8 rows a
 * block has one panel, or one pair. */
template <class S, class Finish, bool FEW> static constexpr bool int8_few_mma_suits()
{
    return (FEW || S::N == 8) && (S::N > 1 || S::ACROSS == (Finish::PAIRS ? 2 : 1));
}

/* Start a product, with what goes along behind it; norm: in front of it, and a->x and a->ldx are
 * the norm's, or NULL. */
template <bool FEW, class Finish>
static void int8_few_mma_launch(const struct gemm_start &start, const struct tec_gemm_args *a,
                                const struct tec_norm_args *norm, const Finish &finish,
                                struct tec_cuda_launch *launch)
{
    dim3 blocks((unsigned)start.x, (unsigned)start.y);
    int wide = floats_aligned(a->x, a->ldx);
    if constexpr (FEW) {
        if (norm) {
            struct norm_front front = {*norm, launch->left ? launch->squares : NULL};
#define INT8_FEW_MMA_TILE(name, ...)                                                           \
    if constexpr (int8_few_mma_suits<name, Finish, true>())                                    \
        if (start.tile == GEMM_##name)                                                         \
            tec_cuda_start(launch, gemm_int8_few_mma_normed_kernel<name, Finish>, blocks,      \
                           dim3(name::THREADS), name::SHARED + name::ROWS * sizeof(float), *a, \
                           finish, front);
#include "kernels/cuda/gemm_tiles.def"
            return;
        }
    }
#define INT8_FEW_MMA_TILE(name, ...)                                               \
    if constexpr (int8_few_mma_suits<name, Finish, FEW>())                         \
        if (start.tile == GEMM_##name)                                             \
            tec_cuda_start(launch, gemm_int8_few_mma_kernel<name, Finish>, blocks, \
                           dim3(name::THREADS), name::SHARED, *a, finish, wide);
#include "kernels/cuda/gemm_tiles.def"
}

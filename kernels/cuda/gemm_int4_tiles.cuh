/* gemm_int4_tiles.cuh - 4-bit weights and rows of x on their way to the tensor cores.
 *
 * A nibble minus its zero is an integer of five bits, exact in bf16: it is multiplied as it is, and
 * the sum of a group by the group's scale, in float32. x goes in three bf16 terms, which are all
 * of it, the smallest first.
 *
 * Which k of 16 a lane holds is free, as long as both operands agree. So lane l (t = l % 4) takes
 * the word of line t of four lines, eight k of one column, and its two multiplies take nibbles
 * 0, 4 | 1, 5 and 2, 6 | 3, 7 of it: neighbours after one shift and one mask. Of x it takes the
 * same eight k, which lie in one piece.
 *
 * A stage holds for each of DEEP splits: of each panel the line of scales and K / 8 lines, halves
 * of every second pair of lines exchanged so that lanes meet no bank conflict; and the rows of x at
 * these k, padded by 16 bytes for the same reason. A stage is of one group; what it has no k for is
 * zero. */
#pragma once

#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/int4.h"

/* WARPS = DEEP (splits of k) x ACROSS (columns) x DOWN (rows) warps of M panels, N groups of 8
 * rows. DEEP = 1: one warp after the other split, with a running total. */
template <int DEEP_, int ACROSS_, int DOWN_, int M_, int N_, int K_, int STAGES_>
struct int4_shape {
    enum : int {
        DEEP = DEEP_,
        ACROSS = ACROSS_,
        DOWN = DOWN_,
        M = M_,
        N = N_,
        K = K_,
        STAGES = STAGES_,
        EACH = ACROSS * DOWN * WARP, /* threads of a split: they fetch what they use */
        THREADS = DEEP * EACH,
        PANELS = ACROSS * M,
        COLUMNS = PANELS * 16,
        ROWS = DOWN * N * 8,
        LINES = K / TEC_INT4_DEEP + 1,
        PIECE = LINES * TEC_INT4_LINE, /* bytes of a panel */
        LDX = K + 4,                   /* floats */
        WEIGHTS = PANELS * PIECE,
        PART = WEIGHTS + ROWS * LDX * 4, /* of one split */
        STAGE = DEEP * PART,
        SHARED = STAGES * STAGE,
        UNROLL = 2, /* of copies: addresses take registers */
        RESIDENT = M * N > 4  ? 1
                   : M *N > 2 ? 3
                              : 4 /* blocks that there should be registers for */
    };
    static_assert(K % 32 == 0, "multiplies are in pairs");
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
    static_assert(DEEP == 1 || (DEEP - 1) * EACH * M * N * 4 * 4 <= SHARED, "sums meet in stages");
};

/* A step of one split: its group (none from `groups` on), first k, and how many, perhaps none. */
struct int4_step {
    int group, k, depth;
    bool ends; /* the group does */
};

template <class S>
static __device__ __forceinline__ struct int4_step int4_step(const struct int4_cut &c, int split,
                                                             int step)
{
    struct int4_step s;
    s.group = split * c.each + step / c.pieces;
    s.k = s.group * c.group + step % c.pieces * S::K;
    s.depth = max(min(min(s.k + S::K, (s.group + 1) * c.group), c.k) - s.k, 0);
    if (step / c.pieces >= c.each || s.group >= c.groups)
        s.group = c.groups, s.depth = 0;
    s.ends = s.group < c.groups && (step + 1) % c.pieces == 0;
    return s;
}

/* Weights of a step of one split; first: the tile's first panel. */
template <class S>
static __device__ __forceinline__ void int4_fetch_weights(unsigned char *part,
                                                          const tec_gemm_args &a, int first,
                                                          const struct int4_step &s)
{
    size_t panel = tec_int4_panel(a.k, a.group), head = tec_int4_group(s.group, a.group);
    int skip = (s.k - s.group * a.group) / TEC_INT4_DEEP; /* lines of the group before the step */
    TEC_UNROLL_BY(S::UNROLL)
    for (int c = (int)threadIdx.x % S::EACH; c < S::WEIGHTS / 16; c += S::EACH) {
        int p = c / (S::PIECE / 16), line = c % (S::PIECE / 16) / 4, in = c % 4;
        bool there = first + p < a.n / 16 && (line - 1) * TEC_INT4_DEEP < s.depth;
        bool valid = there && s.group * a.group < a.k;
        size_t from = valid ? (size_t)(first + p) * panel + head +
                                  (size_t)(line ? line + skip : 0) * TEC_INT4_LINE + (size_t)in * 16
                            : 0;
        int to = line ? in ^ (((line - 1) >> 1 & 1) * 2) : in;
        copy16_async(part + p * S::PIECE + line * TEC_INT4_LINE + to * 16,
                     (const unsigned char *)a.w + from, valid);
    }
}

/* Rows first .. of x at a step, in the order of its packed k where it has one. */
template <class S>
static __device__ __forceinline__ void int4_fetch_rows(unsigned char *part, const tec_gemm_args &a,
                                                       const int *order, int first, int live,
                                                       const struct int4_step &s)
{
    float *to = reinterpret_cast<float *>(part + S::WEIGHTS);
    TEC_UNROLL_BY(S::UNROLL)
    for (int c = (int)threadIdx.x % S::EACH; c < S::ROWS * (S::K / 4); c += S::EACH) {
        int r = c / (S::K / 4), in = c % (S::K / 4) * 4;
        bool valid = first + r < live && in < s.depth;
        const float *from = a.x;
        float *place = to + r * S::LDX + in;
        if (valid)
            from += (size_t)(first + r) * (size_t)a.ldx;
        if (!order || !valid)
            copy16_async(place, valid ? from + s.k + in : from, valid);
        else
            for (int i = 0; i < 4; i++)
                place[i] = from[order[s.k + in + i]];
    }
}

/* 128 + zero, negative, twice. */
static __device__ __forceinline__ unsigned int4_base(const unsigned char *piece, int column)
{
    return (0xc300U | piece[TEC_INT4_ZEROS + column]) * 0x10001U;
}

/* Two multiplies' operands out of the words of columns g and g + 8; none: zeros. */
static __device__ __forceinline__ void int4_operands(unsigned (&a)[2][4],
                                                     const unsigned char *piece, int line,
                                                     const unsigned (&base)[2], bool there)
{
    int g = (int)threadIdx.x % WARP / 4, swap = (line >> 1 & 1) * 8;
    const unsigned *words = reinterpret_cast<const unsigned *>(piece + (1 + line) * TEC_INT4_LINE);
    TEC_UNROLL
    for (int half = 0; half < 2; half++) {
        unsigned word = words[(g + half * 8) ^ swap];
        TEC_UNROLL
        for (int j = 0; j < 4; j++) {
            unsigned raised = (word >> (4 * j) & 0x000f000fU) | 0x43004300U; /* 128 + nibble */
            a[j / 2][j % 2 * 2 + half] = there ? add_bf16_pairs(raised, base[half]) : 0U;
        }
    }
}

/* Two neighbours as three terms, which carry all 24 bits of each: an integer times a term is exact,
 * so that the products are those of float32. */
static __device__ __forceinline__ unsigned all_terms(float2 v, unsigned *rest, unsigned *last)
{
    unsigned high = split_terms(v, rest);
    float x = v.x - __uint_as_float(high << 16), y = v.y - __uint_as_float(high & 0xffff0000U);
    (void)split_terms(make_float2(x, y), last);
    return high;
}

/* The warp's part of a step, added to c; the smallest term first. One term where x holds bf16
 * values: the others would be zero. */
template <class S, int TERMS>
static __device__ __forceinline__ void int4_multiply(sums<S::M, S::N> &c, const unsigned char *part,
                                                     int depth)
{
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, t = lane % 4;
    const unsigned char *pieces = part + warp % S::ACROSS * (S::M * S::PIECE);
    const float *x = reinterpret_cast<const float *>(part + S::WEIGHTS) +
                     (warp / S::ACROSS % S::DOWN * (S::N * 8) + lane / 4) * S::LDX + t * 8;
    unsigned base[S::M][2];
    TEC_UNROLL
    for (int i = 0; i < S::M * 2; i++)
        base[i / 2][i % 2] = int4_base(pieces + i / 2 * S::PIECE, lane / 4 + i % 2 * 8);
    TEC_UNROLL_BY(1)
    for (int k = 0; k < depth; k += 32, x += 32) {
        unsigned w[S::M][2][4];
        TEC_UNROLL
        for (int i = 0; i < S::M; i++)
            int4_operands(w[i], pieces + i * S::PIECE, k / 8 + t, base[i], k + t * 8 < depth);
        TEC_UNROLL
        for (int j = 0; j < S::N; j++) {
            unsigned high[4], rest[4], last[4] = {};
            float4 one = *reinterpret_cast<const float4 *>(x + j * 8 * S::LDX);
            float4 two = *reinterpret_cast<const float4 *>(x + j * 8 * S::LDX + 4);
            high[0] = all_terms(make_float2(one.x, two.x), &rest[0], &last[0]);
            high[1] = all_terms(make_float2(one.y, two.y), &rest[1], &last[1]);
            high[2] = all_terms(make_float2(one.z, two.z), &rest[2], &last[2]);
            high[3] = all_terms(make_float2(one.w, two.w), &rest[3], &last[3]);
            TEC_UNROLL
            for (int m = 0; m < 2 * S::M; m++) {
                if (TERMS == 3) {
                    mma_bf16(c[m / 2][j], w[m / 2][m % 2], last + m % 2 * 2);
                    mma_bf16(c[m / 2][j], w[m / 2][m % 2], rest + m % 2 * 2);
                }
                mma_bf16(c[m / 2][j], w[m / 2][m % 2], high + m % 2 * 2);
            }
        }
    }
}

/* A group's sums times its scales, added to total; c begins anew. */
template <class S>
static __device__ __forceinline__ void int4_scale(sums<S::M, S::N> &total, sums<S::M, S::N> &c,
                                                  const unsigned char *part)
{
    int warp = (int)threadIdx.x / WARP, g = (int)threadIdx.x % WARP / 4;
    TEC_UNROLL
    for (int i = 0; i < S::M; i++) {
        const uint16_t *scales =
            reinterpret_cast<const uint16_t *>(part + (warp % S::ACROSS * S::M + i) * S::PIECE);
        float scale[2] = {tec_half_float(scales[g]), tec_half_float(scales[g + 8])};
        TEC_UNROLL
        for (int j = 0; j < S::N; j++) {
            TEC_UNROLL
            for (int e = 0; e < 4; e++)
                total[i][j][e] = fmaf(c[i][j][e], scale[e / 2], total[i][j][e]);
        }
    }
    clear(c);
}

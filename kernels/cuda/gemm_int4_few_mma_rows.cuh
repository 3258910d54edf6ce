/* gemm_int4_few_mma_rows.cuh - rows of x as signed digits for mma_s8, made by the warp that
 * multiplies them.
 *
 * x is taken as whole numbers of a unit for each row and group, 2 or 3 signed digits of 8 bits
 * (kernels/int4.h). The unit is a power of two, so that to multiply by it is to divide by its
 * reciprocal, as the reference does. Up to four rows: a lane has four k of each, and what lanes
 * need of one another goes through shared memory. Up to eight: a lane has the k of its row that it
 * multiplies. */
#pragma once

#include "kernels/cuda/gemm_int4_weights.cuh"

/* Of a row's group, whose largest |x| has these bits: the unit, NaN if some x is not finite, and
 * its reciprocal. */
static __device__ __forceinline__ float int4_few_mma_unit(unsigned largest, int digits, float *per)
{
    int finer = tec_int4_finer(largest, digits);
    *per = __uint_as_float((unsigned)(127 + finer) << 23);
    return __uint_as_float(largest < 0x7f800000U ? (unsigned)(127 - finer) << 23 : 0x7fc00000U);
}

/* round(x * per) with 128 added to each digit, digits being bytes from the lowest on. Two of them
 * are below 2^15: added to 2^23 + 2^22 the product is rounded, to the same as by itself since that
 * sum is even, and stands in the lowest bits. x * per is exact, or so small that it rounds to 0. */
template <int DIGITS>
static __device__ __forceinline__ unsigned int4_few_mma_raised(float x, float per)
{
    if (DIGITS == 2)
        return __float_as_uint(fmaf(x, per, 12582912.0F + 32896.0F));
    return (unsigned)__float2int_rn(__fmul_rn(x, per)) + 0x808080U;
}

/* The digits of eight k as operands, the highest first. What is not finite becomes any. */
template <int DIGITS>
static __device__ __forceinline__ void
int4_few_mma_digits(unsigned (&b)[DIGITS][2], const float (&x)[TEC_INT4_DEEP], float per)
{
    TEC_UNROLL
    for (int odd = 0; odd < 2; odd++) {
        unsigned q[4];
        TEC_UNROLL
        for (int i = 0; i < 4; i++)
            q[i] = int4_few_mma_raised<DIGITS>(x[2 * i + odd], per);
        unsigned one = __byte_perm(q[0], q[1], 0x5140), two = __byte_perm(q[2], q[3], 0x5140);
        b[DIGITS - 1][odd] = __byte_perm(one, two, 0x5410) ^ 0x80808080U;
        b[DIGITS - 2][odd] = __byte_perm(one, two, 0x7632) ^ 0x80808080U;
        if (DIGITS == 3)
            b[0][odd] = __byte_perm(__byte_perm(q[0], q[1], 0x0062),
                                    __byte_perm(q[2], q[3], 0x0062), 0x5410) ^
                        0x80808080U;
    }
}

/* The rows of a launch, and the order of their k or NULL. */
struct int4_few_mma_rows {
    const float *x;
    const int *order;
    int ldx, first, live;

    /* Groups of 8 that live, of N. */
    template <int N> __device__ __forceinline__ int groups() const
    {
        return min(ceil_div(live - first, 8), N);
    }
    /* Columns k .. k + 3 of row r. */
    __device__ __forceinline__ float4 four(int r, int k) const
    {
        const float *row = x + (size_t)r * (size_t)ldx;
        if (!order)
            return *reinterpret_cast<const float4 *>(row + k);
        const int *at = order + k;
        return make_float4(row[at[0]], row[at[1]], row[at[2]], row[at[3]]);
    }
};

static __device__ __forceinline__ unsigned int4_few_mma_larger(unsigned most, float x)
{
    return max(most, __float_as_uint(x) & 0x7fffffffU);
}

/* Eight rows in INT4_K k: of each 32 a lane has the eight from lane % 4 * 8 on, of row lane / 4. */
struct int4_few_mma_eight {
    enum : int { ROWS = 8, SHARED = 0 };
    float v[INT4_STEPS][TEC_INT4_DEEP], per;
    unsigned most; /* the bits of the largest |x| of the group so far */

    __device__ __forceinline__ void begin()
    {
        most = 0;
    }
    /* From row `first` and column k on, `depth` of these; zeros beyond. */
    __device__ __forceinline__ void load(const struct int4_few_mma_rows &rows, int first, int k,
                                         int depth)
    {
        int r = first + (int)threadIdx.x % WARP / 4, in = (int)threadIdx.x % 4 * TEC_INT4_DEEP;
        float4 four[INT4_STEPS][2] = {};
        depth = r < rows.live ? depth : 0;
        if (!rows.order) {
            const float *row = rows.x + (size_t)r * (size_t)rows.ldx;
            const float4 *at = reinterpret_cast<const float4 *>(row + (k + in));
            TEC_UNROLL
            for (int s = 0; s < INT4_STEPS; s++)
                if (s * 32 + in < depth)
                    four[s][0] = at[s * 8], four[s][1] = at[s * 8 + 1];
        } else {
            TEC_UNROLL
            for (int s = 0; s < INT4_STEPS; s++)
                if (s * 32 + in < depth) {
                    four[s][0] = rows.four(r, k + in + s * 32);
                    four[s][1] = rows.four(r, k + in + s * 32 + 4);
                }
        }
        TEC_UNROLL
        for (int i = 0; i < INT4_STEPS * 2; i++) {
            float *to = &v[i / 2][i % 2 * 4];
            to[0] = four[i / 2][i % 2].x;
            to[1] = four[i / 2][i % 2].y;
            to[2] = four[i / 2][i % 2].z;
            to[3] = four[i / 2][i % 2].w;
        }
    }
    __device__ __forceinline__ void look()
    {
        TEC_UNROLL
        for (int i = 0; i < INT4_K / 4; i++)
            most = int4_few_mma_larger(most, v[i / 8][i % 8]);
    }
    /* All of the group has been looked at: the units of a lane's two rows of sums. */
    template <int DIGITS> __device__ __forceinline__ void units(float (&unit)[2])
    {
        int lane = (int)threadIdx.x % WARP;
        most = max(most, __shfl_xor_sync(ALL_LANES, most, 1));
        most = max(most, __shfl_xor_sync(ALL_LANES, most, 2));
        float mine = int4_few_mma_unit(most, DIGITS, &per);
        unit[0] = __shfl_sync(ALL_LANES, mine, lane % 4 * 8);
        unit[1] = __shfl_sync(ALL_LANES, mine, lane % 4 * 8 + 4);
    }
    template <int DIGITS> __device__ __forceinline__ void share(unsigned *) const
    {
    }
    template <int DIGITS>
    __device__ __forceinline__ void operand(unsigned (&b)[DIGITS][2], const unsigned *, int s) const
    {
        int4_few_mma_digits<DIGITS>(b, v[s], per);
    }
};

/* Four rows in INT4_K k: a lane has the four from lane * 4 on, of each. */
struct int4_few_mma_four {
    enum : int {
        ROWS = 4,
        LD = INT4_K / 4 + 4, /* words of a digit of a row */
        SHARED = ROWS * TEC_INT4_DIGITS * LD * 4
    };
    float v[ROWS][4], per[ROWS];
    unsigned most[ROWS];
    int live;

    __device__ __forceinline__ void begin()
    {
        TEC_UNROLL
        for (int r = 0; r < ROWS; r++)
            most[r] = 0;
    }
    __device__ __forceinline__ void load(const struct int4_few_mma_rows &rows, int first, int k,
                                         int depth)
    {
        int in = (int)threadIdx.x % WARP * 4;
        live = rows.live - first;
        TEC_UNROLL
        for (int r = 0; r < ROWS; r++) {
            float4 four = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
            if (r < live && in < depth)
                four = rows.four(first + r, k + in);
            v[r][0] = four.x, v[r][1] = four.y, v[r][2] = four.z, v[r][3] = four.w;
        }
    }
    __device__ __forceinline__ void look()
    {
        TEC_UNROLL
        for (int i = 0; i < ROWS * 4; i++)
            most[i / 4] = int4_few_mma_larger(most[i / 4], v[i / 4][i % 4]);
    }
    template <int DIGITS> __device__ __forceinline__ void units(float (&unit)[2])
    {
        int t = (int)threadIdx.x % 4;
        TEC_UNROLL
        for (int r = 0; r < ROWS; r++) {
            if (r >= live)
                break;
            TEC_UNROLL
            for (int other = WARP / 2; other; other /= 2)
                most[r] = max(most[r], __shfl_xor_sync(ALL_LANES, most[r], other));
            float mine = int4_few_mma_unit(most[r], DIGITS, &per[r]);
            if (t == r / 2)
                unit[r % 2] = mine;
        }
    }
    /* Neighbouring lanes exchange digits, so that each has a word of even or of odd k. */
    template <int DIGITS> __device__ __forceinline__ void share(unsigned *at) const
    {
        int lane = (int)threadIdx.x % WARP;
        bool odd = lane % 2;
        __syncwarp(); /* all have used what is there */
        TEC_UNROLL
        for (int r = 0; r < ROWS; r++) {
            if (r >= live)
                break;
            unsigned q[4];
            TEC_UNROLL
            for (int i = 0; i < 4; i++)
                q[i] = int4_few_mma_raised<DIGITS>(v[r][i], per[r]);
            TEC_UNROLL
            for (int pair = 0; pair < (DIGITS + 1) / 2; pair++) { /* of digits, from the lowest */
                unsigned taken = pair ? 0x0062U : 0x5140U;
                unsigned even_k = __byte_perm(q[0], q[2], taken);
                unsigned odd_k = __byte_perm(q[1], q[3], taken);
                unsigned got = __shfl_xor_sync(ALL_LANES, odd ? even_k : odd_k, 1);
                unsigned low = odd ? got : even_k, up = odd ? odd_k : got;
                unsigned *to = at + (r * DIGITS + DIGITS - 1 - 2 * pair) * LD + lane;
                to[0] = __byte_perm(low, up, 0x5410) ^ 0x80808080U;
                if (!pair)
                    to[-LD] = __byte_perm(low, up, 0x7632) ^ 0x80808080U;
            }
        }
    }
    template <int DIGITS>
    __device__ __forceinline__ void operand(unsigned (&b)[DIGITS][2], const unsigned *at,
                                            int s) const
    {
        int lane = (int)threadIdx.x % WARP, r = lane / 4 % ROWS; /* four more that do not live */
        TEC_UNROLL
        for (int d = 0; d < DIGITS; d++) {
            uint2 two =
                *reinterpret_cast<const uint2 *>(at + (r * DIGITS + d) * LD + s * 8 + lane % 4 * 2);
            b[d][0] = two.x;
            b[d][1] = two.y;
        }
    }
};

/* instructions.cu - shuffles, votes, fragments and conversions against plain arithmetic. */
#include "kernels/bf16.h"
#include "tests/cuda_emulator/self_test/self_test.h"

enum { SHUFFLES = 7 };

static __global__ void shuffle_kernel(int *y)
{
    wait_previous();
    release_next();
    int lane = (int)threadIdx.x;
    y[lane * SHUFFLES + 0] = __shfl_sync(ALL_LANES, lane, lane * 5);
    y[lane * SHUFFLES + 1] = __shfl_sync(ALL_LANES, lane, 3, 8);
    y[lane * SHUFFLES + 2] = __shfl_xor_sync(ALL_LANES, lane, 9);
    y[lane * SHUFFLES + 3] = __shfl_up_sync(ALL_LANES, lane, 3, 16);
    y[lane * SHUFFLES + 4] = __shfl_down_sync(ALL_LANES, lane, 2);
    y[lane * SHUFFLES + 5] = (int)__ballot_sync(ALL_LANES, lane % 3 == 0);
    unsigned half = lane < 16 ? 0xffffU : 0xffff0000U;
    int low = __all_sync(half, lane < 16), some = __any_sync(half, lane == 20);
    int sum = (int)__reduce_add_sync(half, (unsigned)lane);
    int most = (int)__reduce_max_sync(half, (unsigned)lane ^ 5U);
    int least = (int)__reduce_min_sync(half, (unsigned)lane ^ 5U);
    y[lane * SHUFFLES + 6] = low * 100000 + some * 10000 + sum * 10 + (most & 7) - least;
}

void (*kernel_of_instructions())(int *)
{
    return shuffle_kernel;
}

static bool shuffles_right()
{
    int y[WARP * SHUFFLES] = {};
    run_kernel(shuffle_kernel, dim3(1), dim3(WARP), 0, (int *)y);
    for (int l = 0; l < WARP; l++) {
        int low = l < 16, sum = low ? 120 : 376, most = low ? 15 : 31, least = low ? 0 : 16;
        int want[SHUFFLES] = {l * 5 % 32,
                              l / 8 * 8 + 3,
                              l ^ 9,
                              l % 16 >= 3 ? l - 3 : l,
                              l + 2 < 32 ? l + 2 : l,
                              0x49249249,
                              low * 100000 + !low * 10000 + sum * 10 + (most & 7) - least};
        if (memcmp(want, y + l * SHUFFLES, sizeof want) != 0)
            return false;
    }
    return true;
}

/* c = a b^T (and a b, with b transposed as it is loaded), 16 x 8 x 16. */
template <bool Transposed>
static __global__ void product_kernel(const bf16 *a, const bf16 *b, float *c)
{
    enum { LD = 24, ROWS = Transposed ? 16 : 8, COLS = Transposed ? 8 : 16 };
    wait_previous();
    release_next();
    TEC_SHARED(bf16, s);
    bf16 *sb = s + 16 * LD;
    int lane = (int)threadIdx.x;
    for (int i = lane; i < 32; i += WARP)
        copy16_async(s + i / 2 * LD + i % 2 * 8, a + i * 8, true);
    copy16_async(sb + lane % 16 / (COLS / 8) * LD + lane % 16 % (COLS / 8) * 8, b + lane % 16 * 8,
                 true);
    copy_commit();
    copy_wait<0>();
    __syncwarp();
    unsigned fa[4], fb[2];
    float sum[4] = {1, 2, 3, 4};
    load_matrices_x4(fa, s + lane % 16 * LD + lane / 16 * 8);
    if (Transposed)
        load_matrices_x2_transposed(fb, sb + lane % 16 * LD);
    else
        load_matrices_x2(fb, sb + lane % 8 * LD + lane / 8 % 2 * 8);
    mma_bf16(sum, fa, fb);
    for (int i = 0; i < 4; i++)
        c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

template <bool Transposed> static bool product_right()
{
    alignas(16) bf16 a[16 * 16], b[16 * 8];
    float c[16 * 8];
    for (int i = 0; i < 256; i++)
        a[i] = (float)(i * 11 % 17 - 8);
    for (int i = 0; i < 128; i++)
        b[i] = (float)(i * 5 % 13 - 6);
    run_kernel(product_kernel<Transposed>, dim3(1), dim3(WARP), 4096, (const bf16 *)a,
               (const bf16 *)b, (float *)c);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++) {
            float sum = (float)(1 + n % 2 + m / 8 * 2);
            for (int k = 0; k < 16; k++)
                sum += (float)a[m * 16 + k] * (float)b[Transposed ? k * 8 + n : n * 16 + k];
            if (c[m * 8 + n] != sum)
                return false;
        }
    return true;
}

/* c += a b of signed bytes, 16 x 8 x 32; a is row-major, b column-major. */
static __global__ void bytes_kernel(const signed char *a, const signed char *b, int *c)
{
    wait_previous();
    release_next();
    int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    unsigned fa[4], fb[2];
    int sum[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++)
        fa[i] = *(const unsigned *)(a + (g + i % 2 * 8) * 32 + i / 2 * 16 + t * 4);
    for (int i = 0; i < 2; i++)
        fb[i] = *(const unsigned *)(b + g * 32 + i * 16 + t * 4);
    int from[4];
    mma_s8(sum, fa, fb);
    mma_s8_from(from, -5, fa, fb);
    for (int i = 0; i < 4; i++)
        c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = from[i] + 5 + i + 1 == sum[i] ? sum[i] : -1;
}

static bool bytes_right()
{
    alignas(16) signed char a[16 * 32], b[8 * 32];
    int c[16 * 8];
    for (int i = 0; i < 512; i++)
        a[i] = (signed char)(i % 7 == 0 ? -128 : i * 37 % 255 - 127);
    for (int i = 0; i < 256; i++)
        b[i] = (signed char)(i % 5 == 0 ? 127 : i * 53 % 255 - 127);
    run_kernel(bytes_kernel, dim3(1), dim3(WARP), 0, (const signed char *)a,
               (const signed char *)b, (int *)c);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++) {
            int sum = 1 + n % 2 + m / 8 * 2;
            for (int k = 0; k < 32; k++)
                sum += a[m * 32 + k] * b[n * 32 + k];
            if (c[m * 8 + n] != sum)
                return false;
        }
    return true;
}

static __global__ void vote_kernel(int *y)
{
    wait_previous();
    release_next();
    int t = (int)threadIdx.x;
    int odd = __syncthreads_count(t % 2), any = __syncthreads_or(t == 77),
        all = __syncthreads_and(t < 96), none = __syncthreads_and(t < 95);
    y[t] = odd * 1000 + any * 100 + all * 10 + none;
}

static bool votes_right()
{
    int y[96] = {};
    run_kernel(vote_kernel, dim3(1), dim3(96), 0, (int *)y);
    for (int t = 0; t < 96; t++)
        if (y[t] != 48110)
            return false;
    return true;
}

/* As everywhere else in the engine. */
static bool conversions_right()
{
    for (uint32_t i = 0; i < 0x10000U; i++) {
        uint32_t bits = i << 16 | (i * 40503U & 0xffffU);
        float f = __uint_as_float(bits);
        if (isnan(f))
            continue;
        if (__bfloat16_as_ushort(__float2bfloat16(f)) != tec_bf16_bits(f) ||
            round_bf16(f) != tec_bf16_round(f))
            return false;
    }
    return __byte_perm(0x03020100U, 0x07060504U, 0x6420U) == 0x06040200U &&
           __brev(1U) == 0x80000000U && __clz(1) == 31 && min(-1, 2) == -1 &&
           max(3.0F, -1.0F) == 3.0F && __float2int_rn(2.5F) == 2;
}

std::string check_instructions()
{
    if (!shuffles_right())
        return "a shuffle or a vote";
    if (!product_right<false>() || !product_right<true>() || !bytes_right())
        return "ldmatrix or mma";
    if (!votes_right())
        return "a vote of the block";
    if (!conversions_right())
        return "a conversion";
    return "";
}

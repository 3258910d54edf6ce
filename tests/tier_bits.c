/* tier_bits.c - products have the same bits on every vector tier of a CPU, whatever its processor.
 *
 * A machine has the tiers of one processor alone, so what they compute is compared with hashes that
 * the first of them gave: they change only where the order of a sum does. */
#include "kernels/conv.h"
#include "kernels/int4.h"
#include "kernels/int8.h"
#include "kernels/matrix.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 23, N = 112, K = 384, GROUP = 64 };

static uint64_t state;
static float x[ROWS * K], y[ROWS * N], bias[N];

static uint32_t next(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 32);
}

/* Exact on every machine: 24 bits, from -1 to 1. */
static float number(void)
{
    return ((float)(next() >> 8) - 8388608.0F) * 0x1p-23F;
}

static uint64_t hash(const void *data, size_t size)
{
    uint64_t sum = 14695981039346656037U; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const unsigned char *)data)[i]) * 1099511628211U;
    return sum;
}

/* Panels of random words; of float16 scales near 2^-7, and of zeros up to 16. */
static unsigned char *int4_weights(void)
{
    size_t size = tec_int4_size(N, K, GROUP), panel = tec_int4_panel(K, GROUP);
    unsigned char *w = calloc(1, size);
    REQUIRE(w);
    for (size_t i = 0; i < size; i++)
        w[i] = (unsigned char)next();
    for (size_t p = 0; p < N / 16; p++)
        for (int g = 0; g < K / GROUP; g++) {
            unsigned char *head = w + p * panel + tec_int4_group(g, GROUP);
            for (size_t c = 0; c < 16; c++) {
                head[2 * c + 1] = 0x20;
                head[TEC_INT4_ZEROS + c] %= 17;
            }
        }
    return w;
}

static unsigned char *int8_weights(void)
{
    unsigned char *w = calloc(1, tec_int8_size(N, K));
    float *plain = malloc(sizeof(float) * N * K);
    REQUIRE(w && plain);
    for (int i = 0; i < N * K; i++)
        plain[i] = number();
    tec_int8_pack(w, N, K, 0, N, plain);
    free(plain);
    return w;
}

static unsigned char *float_weights(bool bf16)
{
    unsigned char *w = calloc(1, tec_matrix_size(TEC_MATRIX_PANELS, bf16, N, K));
    float *plain = malloc(sizeof(float) * N * K);
    REQUIRE(w && plain);
    for (int i = 0; i < N * K; i++)
        plain[i] = number();
    tec_matrix_pack(w, TEC_MATRIX_PANELS, bf16, N, K, 0, N, plain);
    free(plain);
    return w;
}

/* How a product is made: by which kernel, from which tier on, from how many digits of x. */
struct how {
    enum tec_kernel_id id;
    int above, digits;
};

/* The hash of a product of `rows` rows, by every tier above `above` that runs here. */
static void expect(struct how how, const void *w, int rows, uint64_t want)
{
    struct tec_gemm_args a = {.x = x,
                              .ldx = K,
                              .w = w,
                              .bias = bias,
                              .y = y,
                              .ldy = N,
                              .rows = &rows,
                              .max_rows = ROWS,
                              .n = N,
                              .k = K,
                              .group = GROUP,
                              .digits = how.digits};
    for (int t = how.above + 1; t < TEC_TIER_COUNT; t++) {
        if (!tec_tier_runs_here((enum tec_tier)t))
            continue;
        const struct tec_kernels table = tec_kernels_for((enum tec_tier)t);
        memset(y, 0, sizeof y);
        tec_kernel_infos[how.id].run(&table, &a, (struct tec_part){0, 1});
        uint64_t got = hash(y, sizeof(float) * N * (size_t)rows);
        if (got != want)
            fprintf(stderr, "# %s, %d rows: %016" PRIx64 "\n", tec_tier_name((enum tec_tier)t),
                    rows, got);
        CHECK(got == want);
    }
}

/* Few rows and many take different ways through a tier. */
static void product(struct how how, unsigned char *w, const uint64_t want[3])
{
    static const int rows[] = {1, 4, ROWS};
    for (int i = 0; i < ROWS * K; i++)
        x[i] = number();
    for (int i = 0; i < N; i++)
        bias[i] = number();
    for (int i = 0; i < 3; i++)
        expect(how, w, rows[i], want[i]);
    free(w);
}

TEST(float32_weights)
{
    state = 1;
    product((struct how){TEC_KERNEL_gemm_f32, TEC_TIER_ref, 0}, float_weights(false),
            (const uint64_t[]){0xf10d16aaad99a4ee, 0x16c838dceda6987f, 0x8e9da5c273dd22ad});
}

TEST(bf16_weights)
{
    state = 2;
    product((struct how){TEC_KERNEL_gemm_bf16, TEC_TIER_ref, 0}, float_weights(true),
            (const uint64_t[]){0xb12538606b30c80b, 0xefe5dc8c7cf6561e, 0x4428c6ab997385f9});
}

TEST(four_bit_weights)
{
    state = 3;
    product((struct how){TEC_KERNEL_gemm_int4, -1, 3}, int4_weights(),
            (const uint64_t[]){0x5606120cb9cfbd45, 0xbfb17a9b178295e3, 0xc0dbee6638b65f74});
}

TEST(four_bit_weights_and_two_digits)
{
    state = 3;
    product((struct how){TEC_KERNEL_gemm_int4, -1, 2}, int4_weights(),
            (const uint64_t[]){0xa939491293507f52, 0x0ce664c47fb48765, 0x72d61b4ce306b6bd});
}

TEST(eight_bit_weights)
{
    state = 4;
    product((struct how){TEC_KERNEL_gemm_int8, -1, 0}, int8_weights(),
            (const uint64_t[]){0xb2f304b02da6e3a0, 0xad647869c5328676, 0xda7ec3c010a6def6});
}

TEST(eight_bit_weights_and_one_digit)
{
    state = 4;
    product((struct how){TEC_KERNEL_gemm_int8, -1, 1}, int8_weights(),
            (const uint64_t[]){0x084faaec8a17964c, 0x73dce9a921b11b09, 0x87f3a5d8c9400c95});
}

/* Squares of windows: their transforms, and sums of two chains and more. */
TEST(convolutions)
{
    enum { HIGH = 5, WIDE = 9, CHANNELS = 40, OUT = 48 };
    const uint64_t want = 0x7045c4ab0675ebce;
    const int rows = HIGH * WIDE;
    static float plain[OUT * 9 * CHANNELS], room[OUT * CHANNELS], pixels[HIGH * WIDE * 48],
        result[HIGH * WIDE * OUT];
    unsigned char *w = calloc(1, tec_conv_size(TEC_MATRIX_PANELS, OUT, CHANNELS));
    REQUIRE(w);
    state = 5;
    for (int i = 0; i < OUT * 9 * CHANNELS; i++)
        plain[i] = number();
    for (int i = 0; i < HIGH * WIDE * 48; i++)
        pixels[i] = number();
    tec_conv_pack(w, TEC_MATRIX_PANELS, OUT, CHANNELS, plain, NULL, room);
    struct tec_conv_args a = {.x = pixels,
                              .ldx = 48,
                              .w = w,
                              .y = result,
                              .ldy = OUT,
                              .rows = &rows,
                              .max_rows = HIGH * WIDE,
                              .in_h = HIGH,
                              .in_w = WIDE,
                              .out_w = WIDE,
                              .pad = 1,
                              .n = OUT,
                              .k = CHANNELS};
    for (int t = TEC_TIER_ref + 1; t < TEC_TIER_COUNT; t++) {
        if (!tec_tier_runs_here((enum tec_tier)t))
            continue;
        const struct tec_kernels table = tec_kernels_for((enum tec_tier)t);
        memset(result, 0, sizeof result);
        table.conv3x3(&a, (struct tec_part){0, 1});
        uint64_t got = hash(result, sizeof result);
        if (got != want)
            fprintf(stderr, "# %s: %016" PRIx64 "\n", tec_tier_name((enum tec_tier)t), got);
        CHECK(got == want);
    }
    free(w);
}

TAP_MAIN

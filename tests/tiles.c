/* tiles.c - the emulated tile unit is what the manual of the real one describes: the order of its
 * sums, what it flushes. That the real one has its bytes too is a check of kernels.t, where there
 * is one; here, that a process may use it amid signals, threads and children. */
#include "base/thread.h"
#include "kernels/kernels.h"
#include "tests/tap.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include "kernels/avx2/vec.h"
#else
#include "kernels/neon/vec.h"
#endif
#include "tests/kernels/tiles_emulated.h"

static uint16_t x[16][32], w[16][32]; /* rows of k; pairs of k, of each column two */
static float sums[16][16];

static void begin(void)
{
    memset(x, 0, sizeof x);
    memset(w, 0, sizeof w);
    memset(sums, 0, sizeof sums);
}

/* x[row][k] times w[k][column]. */
static void put(int row, int column, int k, float a, float b)
{
    x[row][k] = tec_bf16_bits(a);
    w[k / 2][2 * column + k % 2] = tec_bf16_bits(b);
}

static void product(void)
{
    TILES_START();
    TILE_LOAD(0, sums);
    TILE_LOAD(1, x);
    TILE_LOAD(2, w);
    TILE_PRODUCT(0, 1, 2);
    TILE_STORE(0, sums);
    TILES_STOP();
}

TEST(each_row_meets_each_column)
{
    begin();
    for (int i = 0; i < 16; i++)
        put(i, 15 - i, 2 * i + i % 2, (float)(i + 1), 3.0F);
    product();
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++)
            CHECK(sums[r][c] == (r + c == 15 ? 3.0F * (float)(r + 1) : 0.0F));
}

TEST(even_and_odd_k_are_chains_of_their_own)
{
    begin(); /* 1 is lost beside 2^24, in the chain that has both */
    put(0, 0, 0, 0x1p24F, 1.0F);
    put(0, 0, 2, 1.0F, 1.0F);
    put(0, 0, 4, -0x1p24F, 1.0F);
    product();
    CHECK(sums[0][0] == 0.0F);
    begin();
    put(0, 0, 0, 0x1p24F, 1.0F);
    put(0, 0, 3, 1.0F, 1.0F);
    put(0, 0, 4, -0x1p24F, 1.0F);
    product();
    CHECK(sums[0][0] == 1.0F);
}

TEST(the_sum_comes_last)
{
    begin(); /* 1 + 1 is not lost beside 2^25, where each would be */
    sums[2][3] = 0x1p25F;
    put(2, 3, 6, 1.0F, 2.0F);
    put(2, 3, 7, 1.0F, 2.0F);
    product();
    CHECK(sums[2][3] == 0x1p25F + 4.0F);
    begin();
    sums[2][3] = 0x1p25F;
    put(2, 3, 6, 1.0F, 2.0F);
    product();
    CHECK(sums[2][3] == 0x1p25F);
}

TEST(what_is_below_the_normal_range_counts_as_zero)
{
    begin();
    put(0, 0, 0, 0x1p-127F, 1.0F);     /* read */
    put(1, 1, 2, 0x1p-100F, 0x1p-27F); /* made */
    put(2, 2, 4, 0x1p-126F, 1.0F);     /* the least that is not */
    sums[3][3] = 0x1p-130F;
    product();
    CHECK(sums[0][0] == 0.0F);
    CHECK(sums[1][1] == 0.0F);
    CHECK(sums[2][2] == 0x1p-126F);
    CHECK(sums[3][3] == 0.0F);
}

TEST(bytes_have_signs_and_meet_by_fours)
{
    static int8_t a[16][64], b[16][64];
    static int32_t whole[16][16];
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 64; k++) {
            a[i][k] = (int8_t)(k == 63 ? -128 : 3 * k - 100 + i);
            b[i][k] = (int8_t)(k == 63 ? -128 : 90 - 2 * k - i);
            whole[i][k / 4] = i - k / 4;
        }
    TILES_START();
    TILE_LOAD(3, whole);
    TILE_LOAD(4, a);
    TILE_LOAD(5, b);
    TILE_DOT(3, 4, 5);
    TILE_STORE(3, whole);
    TILES_STOP();
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) {
            int sum = r - c; /* row k / 4 of the weights has four k of each column */
            for (int k = 0; k < 64; k++)
                sum += a[r][k] * b[k / 4][4 * c + k % 4];
            CHECK(whole[r][c] == sum);
        }
}

/* Two terms lose at most 2^-17 (or half of the least bf16), and are exact where 16 bits hold x. */
TEST(two_terms_of_a_float)
{
    for (uint32_t bits = 0x00800000U; bits < 0x7f7f8000U; bits += 7919) {
        float a;
        memcpy(&a, &bits, sizeof a);
        float two = tec_bf16_two(a), low = two - tec_bf16_round(a);
        CHECK(fabs((double)two - (double)a) <= ldexp((double)a, -17) + 0x1p-134);
        CHECK(low == tec_bf16_round(low));
        CHECK(tec_bf16_two(-a) == -two);
    }
    CHECK(tec_bf16_two(1.0F + 0x1p-15F) == 1.0F + 0x1p-15F);
    CHECK(tec_bf16_two(0.0F) == 0.0F);
}

#if defined(__x86_64__)
enum { ROWS = 40, N = 64, K = 512 };
static float activations[ROWS * K];
static _Alignas(64) uint16_t weights[N * K];

static void (*kernel)(const struct tec_gemm_args *a, struct tec_part part);

/* A product by this machine's own unit. */
static void multiply(float *y)
{
    static const int rows = ROWS;
    struct tec_gemm_args a = {.x = activations, .w = weights, .y = y, .rows = &rows, .rounded = 1};
    a.max_rows = ROWS;
    a.k = a.ldx = K;
    a.n = a.ldy = N;
    kernel(&a, (struct tec_part){0, 1});
}

static void prepare(void)
{
    kernel = tec_kernels_for(TEC_TIER_avx512).gemm_bf16;
    for (int i = 0; i < ROWS * K; i++)
        activations[i] = (float)(i * 37 % 255 - 127) / 64.0F;
    for (int i = 0; i < N * K; i++)
        weights[i] = tec_bf16_bits((float)(i * 53 % 251 - 125) / 64.0F);
}

static float amid[ROWS * N]; /* what a signal's handler computes */
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    multiply(amid);
    signals++;
}

static void *multiply_beside(void *y)
{
    for (int i = 0; i < 50; i++)
        multiply(y);
    return NULL;
}

/* A signal's handler uses the unit amid a product, another thread beside it, and a child after it:
 * the system keeps each one's tiles. */
TEST(signals_threads_and_children_leave_a_product_alone)
{
    static float want[ROWS * N], got[ROWS * N], beside[ROWS * N];
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_signal}, before;
    pthread_attr_t twice; /* the stack, as its product may be interrupted by the handler's */
    pthread_t thread;
    if (!tec_tier_has_tiles())
        SKIP("no tile unit on this machine");
    prepare();
    multiply(want);
    sigaction(SIGALRM, &action, &before);
    REQUIRE(pthread_attr_init(&twice) == 0);
    REQUIRE(pthread_attr_setstacksize(&twice, (size_t)2 * TEC_THREAD_STACK) == 0);
    REQUIRE(pthread_create(&thread, &twice, multiply_beside, beside) == 0);
    pthread_attr_destroy(&twice);
    setitimer(ITIMER_REAL, &often, NULL);
    int wrong = 0;
    for (int i = 0; i < 1000 || (signals < 20 && i < 1000000); i++) {
        multiply(got);
        wrong += memcmp(got, want, sizeof want) != 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    pthread_join(thread, NULL);
    sigaction(SIGALRM, &before, NULL);
    CHECK_INT(wrong, ==, 0);
    CHECK_INT(signals, >=, 20);
    CHECK(memcmp(amid, want, sizeof want) == 0);
    CHECK(memcmp(beside, want, sizeof want) == 0);
    pid_t child = fork();
    if (child == 0) {
        multiply(got);
        _exit(memcmp(got, want, sizeof want) != 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Tiles that are in use make every change of threads, and every frame of a signal, 8 KiB larger. */
TEST(a_product_gives_the_unit_back)
{
    enum { TILE_DATA = 1 << 18 };
    static float y[ROWS * N];
    unsigned a = 0, d = 0;
    if (!tec_tier_has_tiles())
        SKIP("no tile unit on this machine");
    prepare();
    multiply(y);
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1)); /* what is not as it was at first */
    CHECK_INT(a & TILE_DATA, ==, 0);
}
#endif

TAP_MAIN

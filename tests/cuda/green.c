/* green.c - the second stream in a green context: its share of the multiprocessors, loops, what may
 * not be there. */
#include "tests/cuda/bench.h"

static struct bench b;
static struct tec_error err;
static float y[TEC_STREAM_COUNT][BLOCK];

static enum tec_status open_with(const char *wanted, int beside)
{
    bench_clean();
    setenv("TECTUM_CUDA_GREEN", wanted, 1);
    enum tec_status status = bench_open(&b, beside, 0, &err);
    unsetenv("TECTUM_CUDA_GREEN");
    return status;
}

static void work(void *user)
{
    (void)bench_run(&b, &b.sides[1], 5, 4, 11, y[1], user);
}

/* Both streams at once, each with a loop. */
static void run_both(void)
{
    struct tec_replay first, second = {0};
    REQUIRE(bench_record(&b, &b.sides[0], &err) == TEC_OK);
    REQUIRE(bench_record(&b, &b.sides[1], &err) == TEC_OK);
    for (int i = 0; i < 3; i++) {
        tec_device_fork(b.device, work, &second);
        (void)bench_run(&b, &b.sides[0], i, 3, 11, y[0], &first);
        tec_device_join(b.device);
        CHECK(first.status == TEC_OK && second.status == TEC_OK);
        CHECK_INT(bench_wrong(y[0], i, 3) + bench_wrong(y[1], 5, 4), ==, 0);
    }
}

static int contexts(void)
{
    struct cuda_emulator_counters c;
    cuda_emulator_counters(&c);
    return c.greens;
}

TEST(there_is_one_for_whoever_asks)
{
    REQUIRE(open_with("0", 40) == TEC_OK);
    CHECK_INT(contexts(), ==, 0);
    bench_close(&b);
    REQUIRE(open_with("1", 0) == TEC_OK); /* one stream */
    CHECK_INT(contexts(), ==, 0);
    bench_close(&b);
    REQUIRE(open_with("1", 40) == TEC_OK);
    CHECK_INT(contexts(), ==, 1);
    run_both();
    bench_close(&b);
    bench_check_empty();
}

/* An H100 gives out groups of eight: of 33 that are declared 32 are taken, and never 40. */
TEST(a_share_is_rounded_down)
{
    for (int most = 8; most < 132; most++) { /* from 129 on rounding up would be too many */
        REQUIRE(open_with("1", most) == TEC_OK);
        CHECK_INT(cuda_emulator_green_processors(), ==, most / 8 * 8);
        bench_close(&b);
    }
    CHECK_INT(open_with("1", 7), ==, TEC_DEVICE);
    CHECK(strstr(err.message, "cuda:0: opening a green context (TECTUM_CUDA_GREEN): ") ==
          err.message);
    CHECK(strstr(err.message, "cudaErrorInvalidResourceConfiguration") != NULL);
    bench_close(&b);
    bench_check_empty();
}

/* The driver's functions that are looked up: every "cuXyz" of the source. */
static size_t looked_up(char functions[16][40])
{
    static char text[1 << 15];
    size_t found = 0;
    FILE *in = fopen(TECTUM_SOURCE "/kernels/cuda/green.c", "re");
    REQUIRE(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    for (const char *at = text; (at = strstr(at, "\"cu")); at++) {
        size_t n = strcspn(at + 1, "\"");
        REQUIRE(found < 16 && n < sizeof functions[0]);
        memcpy(functions[found], at + 1, n);
        functions[found++][n] = '\0';
    }
    return found;
}

/* Each of the driver's functions may be missing, and may fail. */
TEST(what_the_driver_lacks_is_told)
{
    static char functions[16][40];
    size_t n = looked_up(functions);
    CHECK_INT(n, ==, 9);
    for (size_t i = 0; i < n; i++) {
        char lacks[64];
        snprintf(lacks, sizeof lacks, "no %s", functions[i]);
        bench_clean();
        cuda_emulator_fail(lacks, 1, cudaErrorUnknown);
        setenv("TECTUM_CUDA_GREEN", "1", 1);
        CHECK_INT(bench_open(&b, 40, 0, &err), ==, TEC_DEVICE);
        CHECK(strstr(err.message, "green context") && strstr(err.message, "cudaErrorNotSupported"));
        bench_close(&b);
        bench_check_empty();
        bench_clean();
        cuda_emulator_fail(functions[i], 1, cudaErrorUnknown);
        enum tec_status status = bench_open(&b, 40, 0, &err);
        if (status == TEC_OK)
            status = bench_record(&b, &b.sides[1], &err);
        bool leaves = strcmp(functions[i], "cuGreenCtxDestroy") == 0;
        CHECK_INT(status, ==, leaves ? TEC_OK : TEC_DEVICE);
        CHECK(leaves || (strncmp(err.message, "cuda:0: ", 8) == 0 &&
                         strstr(err.message, "cudaErrorUnknown")));
        bench_close(&b);
        if (!leaves)
            bench_check_empty();
        unsetenv("TECTUM_CUDA_GREEN");
    }
    bench_clean();
}

TAP_MAIN

/* stamps.c - a capture that times its commands by the device's clock: its times are those of the
 * emulator's, which moves by 1000 ns a kernel, and it makes what the capture makes. */
#include "tests/cuda/bench.h"

enum { COMMANDS = 11, TURNS = 3 };

static struct bench b;
static struct tec_error err;
static float y[BLOCK];

static void open_bench(void)
{
    bench_clean();
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    REQUIRE(bench_record(&b, &b.sides[0], &err) == TEC_OK);
    REQUIRE(tec_capture_commands(b.sides[0].capture) == COMMANDS);
}

static void close_bench(struct tec_capture *stamped)
{
    tec_capture_free(stamped);
    bench_close(&b);
    bench_check_empty();
    bench_clean();
}

/* Run the side's inputs through another capture of the same commands. */
static enum tec_status run_as(struct tec_capture *capture, int turns)
{
    struct tec_capture *own = b.sides[0].capture;
    struct tec_replay r;
    b.sides[0].capture = capture;
    enum tec_status status = bench_run(&b, &b.sides[0], 1, turns, FLAGS - 1, y, &r);
    b.sides[0].capture = own;
    return status;
}

/* Every command is one kernel, and the loop's begin has all turns but the last: the loop's first
 * kernel, and in each of two turns its stamp, four kernels, their stamps and the loop's kernel;
 * less the stamp that is taken off, as of every other. */
TEST(each_command_has_its_kernels_time)
{
    static const int64_t want[COMMANDS] = {1000, 1000, 21000, 1000, 1000, 1000,
                                           1000, 1000, 1000,  1000, 1000};
    struct tec_capture *stamped;
    int64_t ns[COMMANDS];
    open_bench();
    REQUIRE(tec_capture_stamped(&stamped, b.sides[0].capture, &b.arena, &err) == TEC_OK);
    CHECK_INT(run_as(stamped, TURNS), ==, TEC_OK);
    CHECK_INT(bench_wrong(y, 1, TURNS), ==, 0);
    REQUIRE(tec_capture_times(stamped, ns, &err) == TEC_OK);
    for (int i = 0; i < COMMANDS; i++)
        CHECK_INT(ns[i], ==, want[i]);
    CHECK_INT(run_as(stamped, 1), ==, TEC_OK); /* a single turn */
    REQUIRE(tec_capture_times(stamped, ns, &err) == TEC_OK);
    CHECK_INT(ns[2], ==, 1000);
    close_bench(stamped);
}

/* A loop without turns: its commands still have the stamps of the replay before, which are no times
 * of this one. The loop's first kernel is its end's, as nothing lies between. */
TEST(what_is_not_reached_takes_no_time)
{
    static const int64_t want[COMMANDS] = {1000, 1000, 0, 0, 0, 0, 0, 1000, 1000, 1000, 1000};
    struct tec_capture *stamped;
    int64_t ns[COMMANDS];
    open_bench();
    REQUIRE(tec_capture_stamped(&stamped, b.sides[0].capture, &b.arena, &err) == TEC_OK);
    CHECK_INT(run_as(stamped, TURNS), ==, TEC_OK);
    CHECK_INT(run_as(stamped, 0), ==, TEC_OK);
    struct tec_arena_mark before = tec_arena_mark(&b.arena);
    REQUIRE(tec_capture_times(stamped, ns, &err) == TEC_OK);
    for (int i = 0; i < COMMANDS; i++)
        CHECK_INT(ns[i], ==, want[i]);
    CHECK(tec_arena_mark(&b.arena).used == before.used); /* asking again takes no more memory */
    close_bench(stamped);
}

/* Nobody asked: a capture has no kernel of it, also while another one of the same list is timed. */
TEST(a_capture_is_not_timed_unless_asked)
{
    struct cuda_emulator_counters before, after;
    struct tec_capture *stamped;
    int64_t ns[COMMANDS];
    open_bench();
    REQUIRE(tec_capture_stamped(&stamped, b.sides[0].capture, &b.arena, &err) == TEC_OK);
    cuda_emulator_counters(&before);
    CHECK_INT(run_as(b.sides[0].capture, TURNS), ==, TEC_OK);
    cuda_emulator_counters(&after);
    /* Three marks and the end, the loop's kernels, and two commands around four in each turn. */
    CHECK_INT(after.kernels - before.kernels, ==, 4 + 1 + TURNS + 2 + 4 * TURNS);
    CHECK_INT(tec_capture_times(b.sides[0].capture, ns, &err), ==, TEC_INVALID);
    close_bench(stamped);
}

TEST(a_failure_leaves_nothing)
{
    static const char *const calls[] = {"cudaMalloc", "cudaStreamBeginCapture",
                                        "cudaLaunchKernelEx", "cudaGraphInstantiate"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct tec_capture *stamped;
        open_bench();
        cuda_emulator_fail(calls[i], 1, cudaErrorUnknown);
        CHECK(tec_capture_stamped(&stamped, b.sides[0].capture, &b.arena, &err) != TEC_OK);
        CHECK(strncmp(err.message, "cuda:0: ", 8) == 0);
        CHECK(stamped == NULL);
        close_bench(stamped);
    }
}

TAP_MAIN

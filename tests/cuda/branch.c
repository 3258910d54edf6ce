/* branch.c - a capture with a branch on the CUDA device: both ways side by side in the graph, the
 * same values in every order, times of its own, failures; and a memory's prompt whose importance is
 * one. */
#include "tests/cuda/bench.h"
#include "tests/recall.h"

enum { MARK = 5, COMMANDS = 8 };

static struct bench b;
static struct tec_capture *capture;
static float *ways[2]; /* what is beside the branch writes, and what the branch writes */

/* --- the device ------------------------------------------------------------------------------ */

static void open_bench(enum cuda_emulator_when when, unsigned seed)
{
    bench_clean();
    cuda_emulator_timing(when, seed);
    bench_branches = true;
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    bench_branches = false;
    for (int i = 0; i < 2; i++)
        ways[i] = tec_device_get(b.device, BLOCK * sizeof(float));
    REQUIRE(ways[0] && ways[1]);
}

static void close_bench(void)
{
    tec_capture_free(capture);
    capture = NULL;
    for (int i = 0; i < 2; i++)
        tec_device_put(b.device, ways[i]);
    bench_close(&b);
    bench_check_empty();
    bench_clean();
}

static void add(const float *from, float *to, const char *label)
{
    const struct tec_map_args a = {from, to, &b.sides[0].counts->rows, ROWS, LD, LD, COLS, 0};
    tec_capture_add(capture, TEC_KERNEL_copy_rows, &a, true, label);
}

static void add_step(float *y, const float *x, const char *label)
{
    const struct tec_euler_args a = {y,    x,   &b.sides[0].counts->rows, ROWS, LD, LD, COLS,
                                     1.0F, NULL};
    tec_capture_add(capture, TEC_KERNEL_euler, &a, true, label);
}

/* y = x; in a branch its way is y and then twice that, with a mark; beside it the other way is y,
 * and then three times that; joined, y is the branch's and then the sum of both. */
static enum tec_status record(void)
{
    struct bench_side *s = &b.sides[0];
    TEC_TRY(tec_capture_begin(&capture, b.device, TEC_STREAM_MAIN, &b.arena, &err));
    add(s->x, s->y, "first");
    tec_capture_branch(capture, true);
    add(s->y, ways[1], "branch");
    add_step(ways[1], s->y, "branch step");
    tec_capture_mark(capture, MARK);
    tec_capture_branch(capture, false);
    add(s->y, ways[0], "beside");
    add_step(ways[0], ways[0], "beside step");
    tec_capture_join(capture);
    add(ways[1], s->y, "joined");
    add_step(s->y, ways[0], "last");
    return tec_capture_end(capture, &err);
}

static void reached(void *user, int mark, int64_t now_ns)
{
    float *seen = user;
    CHECK_INT(mark, ==, MARK);
    CHECK(now_ns > 0);
    tec_device_fetch(b.device, seen, ways[1], BLOCK * sizeof(float));
}

/* Wrong elements of y and of what was fetched in the middle. */
static int run_once(const struct tec_capture *of)
{
    struct bench_side *s = &b.sides[0];
    const struct bench_counts counts = {.rows = ROWS};
    float x[BLOCK], y[BLOCK], seen[BLOCK] = {0};
    int wrong = 0;
    for (int i = 0; i < BLOCK; i++)
        x[i] = bench_x(3, i / LD, i % LD);
    tec_device_upload(b.device, TEC_STREAM_MAIN, s->x, x, sizeof x);
    tec_device_upload(b.device, TEC_STREAM_MAIN, s->counts, &counts, sizeof counts);
    struct tec_replay r = {.marked = reached, .user = seen};
    tec_device_replay(b.device, of, &r);
    tec_device_download(b.device, TEC_STREAM_MAIN, y, s->y, sizeof y);
    CHECK_INT(r.status, ==, TEC_OK);
    CHECK(r.mark_ns[MARK] >= r.start_ns && r.mark_ns[MARK] <= r.end_ns);
    for (int i = 0; i < ROWS * COLS; i++) {
        int at = i / COLS * LD + i % COLS;
        wrong += y[at] != 4 * x[at] || seen[at] != 2 * x[at];
    }
    return wrong;
}

TEST(every_order_gives_the_same_values)
{
    static const enum cuda_emulator_when whens[] = {CUDA_EMULATOR_LOWEST, CUDA_EMULATOR_HIGHEST,
                                                    CUDA_EMULATOR_SHUFFLED, CUDA_EMULATOR_EARLY};
    for (size_t i = 0; i < sizeof whens / sizeof whens[0]; i++) {
        open_bench(whens[i], 7);
        REQUIRE(record() == TEC_OK);
        CHECK(tec_device_branches(b.device));
        CHECK_INT(tec_capture_commands(capture), ==, COMMANDS);
        for (int k = 0; k < 5; k++)
            CHECK_INT(run_once(capture), ==, 0);
        close_bench();
    }
}

/* Times of a stamped capture, in which the clock moves by 1000 ns a kernel, stamps included. */
static void check_times(enum cuda_emulator_when when, const int64_t want[COMMANDS])
{
    struct tec_capture *stamped;
    int64_t ns[COMMANDS];
    open_bench(when, 0);
    REQUIRE(record() == TEC_OK);
    REQUIRE(tec_capture_stamped(&stamped, capture, &b.arena, &err) == TEC_OK);
    CHECK_INT(run_once(stamped), ==, 0);
    REQUIRE(tec_capture_times(stamped, ns, &err) == TEC_OK);
    for (int i = 0; i < COMMANDS; i++)
        CHECK_INT(ns[i], ==, want[i]);
    tec_capture_free(stamped);
    close_bench();
}

/* Both ways begin behind "first": what runs second has the first way's kernels in its time. Oldest
 * first that is what is beside the branch, newest first the branch: no edge is between them. What
 * joins them has neither. */
TEST(both_ways_are_side_by_side)
{
    check_times(CUDA_EMULATOR_LOWEST,
                (const int64_t[]){1000, 1000, 1000, 1000, 7000, 1000, 1000, 1000});
    check_times(CUDA_EMULATOR_HIGHEST,
                (const int64_t[]){1000, 5000, 1000, 1000, 1000, 1000, 1000, 1000});
}

TEST(a_branch_may_be_switched_off)
{
    const struct tec_device_options asked = {.kind = "cuda", .measure = true, .branches = true};
    struct tec_device *measuring;
    setenv("TECTUM_CUDA_BRANCH", "0", 1);
    check_times(CUDA_EMULATOR_HIGHEST,
                (const int64_t[]){1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
    REQUIRE(tec_device_open(&measuring, &asked, &b.heap, &err) == TEC_OK);
    CHECK(!tec_device_branches(measuring));
    int64_t off = tec_device_workspace(measuring);
    tec_device_close(measuring);
    unsetenv("TECTUM_CUDA_BRANCH");
    REQUIRE(tec_device_open(&measuring, &asked, &b.heap, &err) == TEC_OK);
    CHECK(tec_device_branches(measuring));
    CHECK_INT(tec_device_workspace(measuring), ==, 2 * off);
    tec_device_close(measuring);
    bench_clean();
}

TEST(a_device_with_few_processors_branches_when_told_to)
{
    const struct tec_device_options asked = {.kind = "cuda", .measure = true, .branches = true};
    const int processors[] = {16, 20, 63, 64, 132};
    struct tec_device *measuring;
    for (size_t i = 0; i < 2 * sizeof processors / sizeof processors[0]; i++) {
        cuda_emulator_device(87, processors[i / 2], (size_t)1 << 32);
        if (i % 2)
            setenv("TECTUM_CUDA_BRANCH", "1", 1);
        REQUIRE(tec_device_open(&measuring, &asked, &b.heap, &err) == TEC_OK);
        CHECK_INT(tec_device_branches(measuring), ==, i % 2 || processors[i / 2] >= 64);
        tec_device_close(measuring);
        unsetenv("TECTUM_CUDA_BRANCH");
    }
    bench_clean();
}

/* A failure in the middle of a branch leaves no stream that captures: the device closes. */
TEST(a_failure_in_a_branch_is_told)
{
    for (int nth = 1; nth <= 7; nth++) {
        open_bench(CUDA_EMULATOR_LOWEST, 0);
        cuda_emulator_fail("cudaLaunchKernelEx", nth, cudaErrorUnknown);
        CHECK_INT(record(), ==, TEC_DEVICE);
        CHECK(strncmp(err.message, "cuda:0: capture of ", 19) == 0);
        close_bench();
    }
}

/* --- a prompt -------------------------------------------------------------------------------- */

/* Keys and values of a prompt whose importance is a branch, in every order in which work may run:
 * those of one that chooses between two launches of a layer. In bf16 what lies beside the branch's
 * queries is never written (it passes in registers), in float32 it is. */
static void every_order(bool bf16)
{
    static const enum cuda_emulator_when whens[] = {CUDA_EMULATOR_LOWEST, CUDA_EMULATOR_HIGHEST,
                                                    CUDA_EMULATOR_SHUFFLED, CUDA_EMULATOR_SHUFFLED,
                                                    CUDA_EMULATOR_EARLY};
    const struct tec_recall_rule rule = {
        .selection = TEC_SELECTION_keep, .scoring = TEC_SCORING_lift, .ratios = some};
    unsigned char sets[2][LAYERS * SEGMENTS] = {{0}};
    size_t size, other;
    bench_clean();
    cuda_emulator_protect(false);
    tap.device = "cuda";
    unsigned char *want = run_as(&rule, bf16, false, sets[0], &size);
    for (size_t i = 0; i < sizeof whens / sizeof whens[0]; i++) {
        struct cuda_emulator_counters c;
        bench_clean();
        cuda_emulator_protect(false);
        cuda_emulator_timing(whens[i], (unsigned)i);
        unsigned char *got = run_as(&rule, bf16, true, sets[1], &other);
        CHECK(size == other && memcmp(want, got, size) == 0);
        CHECK(memcmp(sets[0], sets[1], sizeof sets[0]) == 0);
        free(got);
        cuda_emulator_counters(&c);
        CHECK_INT(c.reports, ==, 0);
        CHECK_INT(c.streams + c.events + c.graphs + c.execs, ==, 0);
    }
    free(want);
    bench_clean();
}

TEST(every_order_of_a_branching_recall_gives_the_same_bytes)
{
    every_order(false);
    every_order(true);
}

/* A prompt is a launch a layer, where it was two, but for the last layer. */
TEST(a_branching_recall_is_a_launch_a_layer)
{
    const struct tec_recall_rule rule = {
        .selection = TEC_SELECTION_keep, .scoring = TEC_SCORING_paper, .ratios = some};
    unsigned long launches[2];
    for (int branches = 0; branches < 2; branches++) {
        struct cuda_emulator_counters before, after;
        bench_clean();
        cuda_emulator_protect(false);
        tap.device = "cuda";
        branching = branches;
        open_model(true, 1);
        branching = false;
        make_prompt(5);
        int region = tec_kv_pool_take(&plan->prefixes);
        cuda_emulator_counters(&before);
        REQUIRE(run(&rule, region));
        cuda_emulator_counters(&after);
        launches[branches] = after.graph_launches - before.graph_launches;
        CHECK_INT(launches[branches], ==,
                  branches ? (unsigned long)recall.layers : 2UL * (unsigned long)recall.layers - 1);
        close_recall();
    }
    bench_clean();
}

TAP_MAIN

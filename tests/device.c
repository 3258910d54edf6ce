/* device.c - captures replay in order with their barriers, loops and marks; memory is counted. */
#include "kernels/device.h"
#include "tests/device_facts.h"
#include "tests/tap.h"

enum { ROWS = 6, COLS = 8, LD = 16, WIDE = 32 };

/* A device of `lanes` with the reference tier, and an arena for captures. */
struct bench {
    struct tec_heap heap;
    struct tec_arena arena;
    struct tec_device *device;
    struct tec_capture *capture;
    float x[ROWS * LD], y[ROWS * LD], z[ROWS * WIDE], w[WIDE * COLS];
    int rows, count, stop, stop_after;
    int marks[200], n_marks;
};

static void set_up(struct bench *b, int lanes)
{
    memset(b, 0, sizeof *b);
    const struct tec_device_options options = {
        .kind = "cpu", .threads = lanes, .spin_us = 100, .tier = TEC_TIER_ref};
    REQUIRE(tec_device_open(&b->device, &options, &b->heap, NULL) == TEC_OK);
    tec_arena_init(&b->arena, &b->heap);
    REQUIRE(tec_capture_begin(&b->capture, b->device, TEC_STREAM_MAIN, &b->arena, NULL) == TEC_OK);
    b->rows = ROWS;
    for (int i = 0; i < ROWS * LD; i++)
        b->x[i] = (float)(i % 13) - 6;
    for (int i = 0; i < WIDE * COLS; i++)
        b->w[i] = (float)(i % 7) - 3;
}

static void tear_down(struct bench *b)
{
    tec_arena_finish(&b->arena);
    tec_device_close(b->device);
    CHECK_INT(b->heap.live, ==, 0);
}

static void add_copy(struct bench *b, const float *from, float *to, bool barrier)
{
    const struct tec_map_args a = {from, to, &b->rows, ROWS, LD, LD, COLS, 0};
    tec_capture_add(b->capture, TEC_KERNEL_copy_rows, &a, barrier, "copy");
}

/* y += 1 * x: the number of times it ran is y / x. */
static void add_step(struct bench *b)
{
    const struct tec_euler_args a = {b->y, b->x, &b->rows, ROWS, LD, LD, COLS, 1.0F, NULL};
    tec_capture_add(b->capture, TEC_KERNEL_euler, &a, false, "step");
}

/* Rows of y are written by lane, columns of z too: a lane reads what others wrote. */
static void add_product(struct bench *b)
{
    const struct tec_gemm_args a = {.x = b->y,
                                    .w = b->w,
                                    .y = b->z,
                                    .rows = &b->rows,
                                    .max_rows = ROWS,
                                    .ldx = LD,
                                    .ldy = WIDE,
                                    .n = WIDE,
                                    .k = COLS};
    tec_capture_add(b->capture, TEC_KERNEL_gemm_f32, &a, true, "product");
}

static void note(void *user, int mark, int64_t now_ns)
{
    struct bench *b = user;
    CHECK_INT(now_ns, >, 0);
    if (b->n_marks < (int)(sizeof b->marks / sizeof b->marks[0]))
        b->marks[b->n_marks++] = mark;
    if (b->stop_after && b->n_marks == b->stop_after)
        b->stop = 1;
}

static struct tec_replay replay(struct bench *b)
{
    struct tec_replay r = {.marked = note, .user = b};
    int64_t calls = b->heap.calls;
    b->n_marks = 0;
    tec_device_replay(b->device, b->capture, &r);
    CHECK_INT(b->heap.calls, ==, calls);
    CHECK_INT(r.end_ns, >=, r.start_ns);
    return r;
}

TEST(devices_that_cannot_be_are_refused)
{
    struct tec_heap heap = {0};
    struct tec_device *device = NULL;
    struct tec_error err;
    struct tec_device_options options = {.kind = "abacus", .threads = 1, .tier = TEC_TIER_ref};
    CHECK_INT(tec_device_open(&device, &options, &heap, &err), ==, TEC_UNSUPPORTED);
    CHECK(strstr(err.message, "abacus") != NULL);
    options.kind = "cpu";
    options.tier = TEC_TIER_COUNT;
    CHECK_INT(tec_device_open(&device, &options, &heap, &err), ==, TEC_UNSUPPORTED);
    options.tier = TEC_TIER_ref;
    options.threads = -1;
    CHECK_INT(tec_device_open(&device, &options, &heap, &err), ==, TEC_INVALID);
    options.threads = 2;
    for (int n = 1; n <= 2; n++) {
        heap.calls = 0;
        heap.fail_at = n;
        CHECK_INT(tec_device_open(&device, &options, &heap, &err), ==, TEC_NO_MEMORY);
        CHECK_INT(heap.live, ==, 0);
    }
    CHECK(device == NULL);
    tec_device_close(NULL);
}

TEST(facts_of_a_device)
{
    struct bench b;
    set_up(&b, 3);
    CHECK_STR(tec_device_kind(b.device), "cpu");
    CHECK_INT(tec_device_lanes(b.device), ==, 3);
    CHECK_STR(tec_device_computes(b.device), "ref");
    CHECK_INT(device_kernels_of(b.device)->layout, ==, TEC_MATRIX_ROWS);
    tear_down(&b);
}

TEST(memory_is_counted_apart_from_the_host)
{
    struct bench b;
    set_up(&b, 1);
    int64_t host = b.heap.bytes;
    float *memory = tec_device_get(b.device, 1000), back[4] = {0};
    const float values[4] = {1, 2, 3, 4};
    REQUIRE(memory);
    CHECK_INT((uintptr_t)memory % 64, ==, 0);
    CHECK(memory[0] == 0.0F);
    CHECK_INT(device_bytes_of(b.device), ==, 1000);
    CHECK_INT(b.heap.bytes, ==, host);
    tec_device_upload(b.device, TEC_STREAM_MAIN, memory, values, sizeof values);
    tec_device_download(b.device, TEC_STREAM_MAIN, back, memory, sizeof back);
    CHECK(memcmp(back, values, sizeof back) == 0);
    tec_device_put(b.device, memory);
    CHECK_INT(device_bytes_of(b.device), ==, 0);
    CHECK_INT(tec_device_peak(b.device), ==, 1000);
    tear_down(&b);
}

TEST(replays_give_the_same_bytes_on_any_number_of_lanes)
{
    float want[ROWS * WIDE];
    for (int lanes = 1; lanes <= 3; lanes++) {
        struct bench b;
        set_up(&b, lanes);
        add_copy(&b, b.x, b.y, false);
        add_product(&b);
        REQUIRE(tec_capture_end(b.capture, NULL) == TEC_OK);
        CHECK_INT(tec_capture_commands(b.capture), ==, 2);
        for (int turn = 0; turn < 40; turn++) {
            memset(b.y, 0, sizeof b.y);
            replay(&b);
            if (lanes == 1 && turn == 0)
                memcpy(want, b.z, sizeof want);
            REQUIRE(memcmp(want, b.z, sizeof want) == 0);
        }
        double sum = 0; /* one element by hand: row 1, column 2 */
        for (int k = 0; k < COLS; k++)
            sum += (double)(b.x[LD + k] * b.w[2 * COLS + k]);
        CHECK((double)b.z[WIDE + 2] == sum);
        tear_down(&b);
    }
}

TEST(arguments_are_copied_counts_are_live)
{
    struct bench b;
    set_up(&b, 2);
    add_copy(&b, b.x, b.y, false);
    REQUIRE(tec_capture_end(b.capture, NULL) == TEC_OK);
    b.rows = 2;
    replay(&b);
    CHECK(b.y[LD + 1] == b.x[LD + 1]);
    CHECK(b.y[2 * LD] == 0.0F);
    b.rows = ROWS + 100; /* clamped to what was planned */
    replay(&b);
    CHECK(b.y[(ROWS - 1) * LD] == b.x[(ROWS - 1) * LD]);
    tear_down(&b);
}

struct seen {
    enum tec_kernel_id kernels[8];
    bool barriers[8];
    const char *labels[8];
    int n;
};

static void see(void *user, enum tec_kernel_id kernel, const void *args, bool barrier,
                const char *label)
{
    struct seen *s = user;
    CHECK(args != NULL);
    REQUIRE(s->n < 8);
    s->kernels[s->n] = kernel;
    s->barriers[s->n] = barrier;
    s->labels[s->n++] = label;
}

TEST(a_visit_tells_kernels_barriers_and_labels)
{
    struct bench b;
    struct seen s = {.n = 0};
    set_up(&b, 1);
    add_copy(&b, b.x, b.y, false);
    tec_capture_repeat(b.capture, &b.count, &b.stop);
    add_step(&b);
    tec_capture_repeat_end(b.capture);
    add_product(&b);
    tec_capture_mark(b.capture, 3);
    REQUIRE(tec_capture_end(b.capture, NULL) == TEC_OK);
    CHECK_INT(tec_capture_commands(b.capture), ==, 6);
    CHECK_INT(tec_capture_bytes(b.capture), >, sizeof(struct tec_gemm_args));
    tec_capture_visit(b.capture, see, &s);
    REQUIRE(s.n == 3);
    CHECK_INT(s.kernels[0], ==, TEC_KERNEL_copy_rows);
    CHECK_INT(s.kernels[1], ==, TEC_KERNEL_euler);
    CHECK_INT(s.kernels[2], ==, TEC_KERNEL_gemm_f32);
    CHECK(!s.barriers[0] && !s.barriers[1] && s.barriers[2]);
    CHECK_STR(s.labels[2], "product");
    tear_down(&b);
}

/* One step a turn; the mark in the loop may set `stop`. */
static void record_loop(struct bench *b)
{
    tec_capture_repeat(b->capture, &b->count, &b->stop);
    add_step(b);
    tec_capture_mark(b->capture, 1);
    tec_capture_repeat_end(b->capture);
    tec_capture_mark(b->capture, 2);
    REQUIRE(tec_capture_end(b->capture, NULL) == TEC_OK);
}

static void check_turns(struct bench *b, int count, int stop_after, int turns)
{
    memset(b->y, 0, sizeof b->y);
    b->count = count;
    b->stop = 0;
    b->stop_after = stop_after;
    struct tec_replay r = replay(b);
    CHECK_INT(b->n_marks, ==, turns + 1);
    CHECK_INT(b->marks[b->n_marks - 1], ==, 2);
    CHECK((r.mark_ns[1] != 0) == (turns > 0));
    for (int row = 0; row < ROWS; row++)
        CHECK(b->y[row * LD] == (float)turns * b->x[row * LD]);
}

TEST(a_loop_runs_count_times_or_until_stop)
{
    for (int lanes = 1; lanes <= 3; lanes++) {
        struct bench b;
        set_up(&b, lanes);
        record_loop(&b);
        check_turns(&b, 0, 0, 0);
        check_turns(&b, 1, 0, 1);
        check_turns(&b, 7, 0, 7);
        check_turns(&b, 30, 0, 30);
        check_turns(&b, 7, 1, 1);
        check_turns(&b, 7, 4, 4);
        check_turns(&b, 7, 7, 7);
        check_turns(&b, -3, 0, 0);
        tear_down(&b);
    }
}

TEST(marks_come_in_order_and_are_forgotten_by_the_next_replay)
{
    struct bench b;
    set_up(&b, 2);
    for (int i = 0; i < 5; i++) {
        add_copy(&b, b.x, b.y, true);
        tec_capture_mark(b.capture, 10 + i);
    }
    REQUIRE(tec_capture_end(b.capture, NULL) == TEC_OK);
    struct tec_replay r = replay(&b);
    REQUIRE(b.n_marks == 5);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(b.marks[i], ==, 10 + i);
        CHECK_INT(r.mark_ns[10 + i], >=, i ? r.mark_ns[9 + i] : r.start_ns);
    }
    CHECK_INT(r.mark_ns[14], ==, r.end_ns); /* behind all commands */
    CHECK_INT(r.mark_ns[9], ==, 0);
    r.mark_ns[9] = 77;
    r.marked = NULL;
    tec_device_replay(b.device, b.capture, &r);
    CHECK_INT(r.mark_ns[9], ==, 0);
    CHECK_INT(r.mark_ns[10], >, 0);
    tear_down(&b);
}

TEST(wrong_recordings_are_reported_at_the_end)
{
    for (int wrong = 0; wrong < 5; wrong++) {
        struct bench b;
        struct tec_error err;
        set_up(&b, 1);
        add_copy(&b, b.x, b.y, false);
        if (wrong == 0 || wrong == 1)
            tec_capture_repeat(b.capture, &b.count, &b.stop);
        if (wrong == 1) /* nested */
            tec_capture_repeat(b.capture, &b.count, &b.stop);
        if (wrong == 1 || wrong == 2)
            tec_capture_repeat_end(b.capture);
        if (wrong == 3)
            tec_capture_mark(b.capture, -1);
        if (wrong == 4)
            tec_capture_mark(b.capture, TEC_MAX_MARKS);
        CHECK_INT(tec_capture_end(b.capture, &err), ==, TEC_INVALID);
        tear_down(&b);
    }
}

TEST(no_memory_while_recording_is_reported_at_the_end)
{
    enum tec_status status = TEC_NO_MEMORY;
    int failures = 0;
    for (int n = 1; status == TEC_NO_MEMORY; n++) {
        struct bench b;
        set_up(&b, 1);
        b.heap.fail_at = b.heap.calls + n;
        for (int i = 0; i < 300; i++)
            add_copy(&b, b.x, b.y, false);
        status = tec_capture_end(b.capture, NULL);
        CHECK(status == TEC_OK || status == TEC_NO_MEMORY);
        failures += status != TEC_OK;
        tear_down(&b);
        REQUIRE(n < 100);
    }
    CHECK_INT(failures, >, 2);
}

/* Of commands with one key the first is run, once or twice, and stands for all turns of all. */
TEST(a_large_capture_is_sampled)
{
    struct bench b;
    struct tec_replay_samples samples = {.least = 100.0};
    set_up(&b, 2);
    b.count = 5;
    add_copy(&b, b.x, b.y, true);
    tec_capture_weigh(b.capture, 3, 1.0);
    tec_capture_repeat(b.capture, &b.count, &b.stop);
    add_step(&b);
    tec_capture_weigh(b.capture, 7, 30.0);
    tec_capture_repeat_end(b.capture);
    tec_capture_mark(b.capture, 2);
    add_step(&b);
    tec_capture_weigh(b.capture, 7, 30.0);
    add_product(&b);
    REQUIRE(tec_capture_end(b.capture, NULL) == TEC_OK);
    struct tec_replay r = {.samples = &samples, .marked = note, .user = &b};
    tec_device_replay(b.device, b.capture, &r);
    CHECK_INT(samples.commands, ==, 8);
    CHECK_INT(samples.run, ==, 3); /* the product has no key */
    CHECK_INT(samples.n, ==, 2);
    CHECK_INT(b.n_marks, ==, 0);
    float times = b.y[0] / b.x[0];
    CHECK(times == 2.0F || times == 3.0F); /* copied, then one or two steps */
    CHECK_INT(r.mark_ns[2] - r.start_ns, ==, samples.items[0].ns + 5 * samples.items[1].ns);
    CHECK_INT(r.end_ns - r.mark_ns[2], >, samples.items[1].ns);
    r = (struct tec_replay){.samples = &samples};
    tec_device_replay(b.device, b.capture, &r);
    CHECK_INT(samples.run, ==, 4); /* the product again */
    CHECK_INT(r.mark_ns[2] - r.start_ns, ==, samples.items[0].ns + 5 * samples.items[1].ns);
    samples.known = true;
    b.y[0] = 0.0F;
    r = (struct tec_replay){.samples = &samples};
    tec_device_replay(b.device, b.capture, &r);
    CHECK_INT(samples.run, ==, 4);
    CHECK_INT(r.end_ns, ==, r.start_ns);
    CHECK_INT(r.mark_ns[2], ==, r.start_ns);
    CHECK(b.y[0] == 0.0F);
    tear_down(&b);
}

TEST(a_small_capture_is_run_whole)
{
    struct bench b;
    struct tec_replay_samples samples = {.least = 200.0};
    set_up(&b, 2);
    b.count = 5;
    tec_capture_repeat(b.capture, &b.count, &b.stop);
    add_step(&b);
    tec_capture_weigh(b.capture, 7, 30.0);
    tec_capture_repeat_end(b.capture);
    REQUIRE(tec_capture_end(b.capture, NULL) == TEC_OK);
    struct tec_replay r = {.samples = &samples};
    tec_device_replay(b.device, b.capture, &r);
    CHECK(b.y[0] == 5.0F * b.x[0]);
    CHECK_INT(samples.replays, ==, 0);
    b.count = 7; /* turns count */
    tec_device_replay(b.device, b.capture, &r);
    CHECK_INT(samples.commands, ==, 7);
    tear_down(&b);
}

TEST(a_measuring_device_counts_without_memory)
{
    struct tec_heap heap = {0};
    struct tec_device *device = NULL;
    const struct tec_device_options options = {
        .kind = "cpu", .measure = true, .threads = 1, .tier = TEC_TIER_ref};
    REQUIRE(tec_device_open(&device, &options, &heap, NULL) == TEC_OK);
    CHECK_STR(tec_device_kind(device), "cpu");
    int64_t host = heap.bytes;
    size_t huge = (size_t)1 << 40;
    unsigned char *a = tec_device_get(device, huge), *b = tec_device_get(device, 100);
    REQUIRE(a && b);
    CHECK_INT((uintptr_t)a % 64, ==, 0);
    CHECK_INT((uintptr_t)b - (uintptr_t)a, >=, huge);
    CHECK_INT(device_bytes_of(device), ==, huge + 100);
    CHECK_INT(heap.bytes, ==, host);
    char text[4] = "abc";
    tec_device_upload(device, TEC_STREAM_MAIN, a, text, sizeof text);
    tec_device_download(device, TEC_STREAM_MAIN, text, a, sizeof text);
    CHECK_STR(text, "abc");
    tec_device_put(device, a);
    tec_device_close(device);
    CHECK_INT(heap.live, ==, 0);
}

/* A capture of a copy, a product and a mark, of so much work, on a device that was told `threads`;
 * replays that a first one in a warm-up makes of it, and all later ones. */
static void lanes_tried(int threads, double work, int *first, int *later)
{
    struct bench b;
    static struct tec_replay_samples samples;
    samples = (struct tec_replay_samples){.least = 1e12};
    set_up(&b, threads);
    add_copy(&b, b.x, b.y, false);
    add_product(&b);
    tec_capture_weigh(b.capture, 0, work);
    tec_capture_mark(b.capture, 7);
    REQUIRE(tec_capture_end(b.capture, NULL) == TEC_OK);
    struct tec_replay r = {.marked = note, .user = &b, .samples = &samples};
    tec_device_replay(b.device, b.capture, &r);
    *first = b.n_marks;
    float once[ROWS * WIDE];
    memcpy(once, b.z, sizeof once);
    b.n_marks = 0;
    tec_device_replay(b.device, b.capture, &r);
    r.samples = NULL;
    tec_device_replay(b.device, b.capture, &r);
    *later = b.n_marks;
    CHECK(memcmp(once, b.z, sizeof once) == 0);
    CHECK(once[0] != 0.0F);
    tear_down(&b);
}

TEST(a_small_capture_is_tried_with_fewer_lanes_in_the_warm_up)
{
    const struct tec_device_options any = {.kind = "cpu", .tier = TEC_TIER_ref};
    int first, later, lanes = tec_device_threads(&any);
    lanes_tried(0, 1000.0, &first, &later);
    if (lanes == 1)
        CHECK_INT(first, ==, 1);
    else /* twice with one lane, twice with two, ..., and once with what was chosen */
        CHECK(first >= 5 && first % 2 == 1);
    CHECK_INT(later, ==, 2);
    lanes_tried(0, 1e11, &first, &later); /* work for all */
    CHECK(first == 1 && later == 2);
    lanes_tried(2, 1000.0, &first, &later); /* somebody has said how many */
    CHECK(first == 1 && later == 2);
}

/* The sum of a step is its own input. */
TEST(what_a_capture_changes_is_renewed_behind_each_try)
{
    static struct tec_replay_samples samples;
    const float zeros[ROWS * LD] = {0};
    for (double least = 1e12; least > 0; least = least > 1 ? 1 : 0) { /* tried, then sampled */
        struct bench b;
        samples = (struct tec_replay_samples){.least = least};
        set_up(&b, 0);
        add_step(&b);
        tec_capture_weigh(b.capture, 0, 1000.0);
        REQUIRE(tec_capture_end(b.capture, NULL) == TEC_OK);
        struct tec_replay r = {.samples = &samples, .tables = {{b.y, zeros, sizeof zeros}}};
        tec_device_replay(b.device, b.capture, &r);
        CHECK_INT(samples.replays, ==, least == 1);
        for (int i = 0; i < ROWS * LD; i++)
            if (least > 1 && i % LD < COLS)
                CHECK(b.y[i] == b.x[i]);
            else
                CHECK(b.y[i] == 0.0F);
        tear_down(&b);
    }
}

TAP_MAIN

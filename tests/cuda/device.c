/* device.c - the CUDA device behind the seam, on the emulator: opening, copies, captures, loops,
 * two streams; in every order in which work may run. */
#include "kernels/cuda/sizes.h"
#include "tests/box.h"
#include "tests/cuda/bench.h"
#include "tests/device_facts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <threads.h>
#include <unistd.h>

static const struct order {
    enum cuda_emulator_when when;
    unsigned seed;
} orders[] = {{CUDA_EMULATOR_LOWEST, 0},   {CUDA_EMULATOR_HIGHEST, 0},  {CUDA_EMULATOR_SHUFFLED, 1},
              {CUDA_EMULATOR_SHUFFLED, 2}, {CUDA_EMULATOR_SHUFFLED, 3}, {CUDA_EMULATOR_EARLY, 0}};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static struct bench b;
static struct tec_error err;

static void set_up_in(int beside, const struct order *order)
{
    bench_clean();
    cuda_emulator_timing(order->when, order->seed);
    if (bench_open(&b, beside, 0, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(b.device && b.n_sides);
}

static void set_up(int beside)
{
    set_up_in(beside, &orders[0]);
}

static void tear_down(void)
{
    bench_close(&b);
    bench_check_empty();
}

static void record(struct bench_side *s)
{
    if (bench_record(&b, s, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(tec_device_failure(b.device, NULL) == TEC_OK);
}

/* --- opening --------------------------------------------------------------------------------- */

TEST(facts_of_the_device)
{
    for (int beside = 0; beside < 2; beside++) {
        set_up(beside);
        CHECK_STR(tec_device_kind(b.device), "cuda");
        CHECK_STR(tec_device_computes(b.device), "sm_90");
        CHECK_INT(tec_device_lanes(b.device), ==, 132);
        CHECK_INT(tec_device_lanes_concurrent(b.device), ==, beside);
        CHECK_INT(tec_device_layout(b.device), ==, TEC_MATRIX_TILES);
        CHECK(!tec_device_reads_host(b.device));
        CHECK(device_kernels_of(b.device) == NULL);
        CHECK_INT(tec_device_room(b.device), >, 1 << 20);
        struct cuda_emulator_counters c;
        cuda_emulator_counters(&c);
        CHECK_INT(c.device_bytes, ==, device_bytes_of(b.device));
        CHECK_INT(tec_device_peak(b.device), ==, device_bytes_of(b.device));
        tear_down();
    }
}

static void refused(const struct tec_device_options *options, const char *says)
{
    struct tec_heap heap = {0};
    struct tec_device *device = NULL;
    err.message[0] = '\0';
    CHECK_INT(tec_device_check(options, &err), ==, TEC_DEVICE);
    err.message[0] = '\0';
    CHECK_INT(tec_device_open(&device, options, &heap, &err), ==, TEC_DEVICE);
    if (!strstr(err.message, says) || strchr(err.message, '\n'))
        fprintf(stderr, "# %s\n", err.message);
    CHECK(strstr(err.message, says) != NULL);
    CHECK(strchr(err.message, '\n') == NULL);
    CHECK(device == NULL);
    CHECK_INT(heap.live, ==, 0);
}

TEST(what_cannot_be_opened_says_why)
{
    struct tec_device_options options = {.kind = "cuda"};
    bench_clean();
    cuda_emulator_absent(cudaErrorInsufficientDriver);
    refused(&options, "no NVIDIA driver");
    cuda_emulator_absent(cudaErrorNoDevice);
    refused(&options, "no CUDA device");
    cuda_emulator_absent(cudaSuccess);
    cuda_emulator_driver(12020);
    refused(&options, "the NVIDIA driver is for CUDA 12.2");
    cuda_emulator_driver(0);
    options.index = 1;
    refused(&options, "cuda:1: there are 1 CUDA devices");
    options.index = -1;
    refused(&options, "cuda:-1");
    options.index = 0;
    cuda_emulator_device(75, 40, (size_t)1 << 30);
    refused(&options, "cuda:0 is an sm_75; sm_80");
    bench_check_empty();
    bench_clean();
}

TEST(lanes_beside_are_fewer_than_all)
{
    struct tec_heap heap = {0};
    struct tec_device *device = NULL;
    bench_clean();
    cuda_emulator_device(90, 1, (size_t)1 << 30);
    const struct tec_device_options options = {.kind = "cuda", .beside = 1};
    CHECK_INT(tec_device_open(&device, &options, &heap, &err), ==, TEC_INVALID);
    CHECK_INT(heap.live, ==, 0);
    bench_clean();
}

static void check_workspace(const struct tec_device *device, int64_t bytes)
{
    struct cuda_emulator_counters c;
    cuda_emulator_counters(&c);
    CHECK_INT(tec_device_workspace(device), ==, bytes);
    CHECK_INT(c.device_bytes, ==, bytes);
    CHECK_INT(device_bytes_of(device), ==, bytes);
    CHECK_INT(tec_device_peak(device), ==, bytes);
}

/* On 9.0 every stream has memory for rows as terms; elsewhere it is taken when a plan asks for it,
 * once, by a device that only measures as well. */
TEST(memory_for_rows_of_products_is_taken_once)
{
    for (int i = 0; i < 8; i++) {
        struct tec_heap heap = {0};
        struct tec_device *measuring, *device;
        struct tec_device_options o = {.kind = "cuda", .beside = i / 2 % 2, .branches = i / 4};
        bench_clean();
        cuda_emulator_device(i % 2 ? 87 : 90, 132, (size_t)1 << 30);
        REQUIRE(tec_device_open(&device, &o, &heap, &err) == TEC_OK);
        o.measure = true;
        REQUIRE(tec_device_open(&measuring, &o, &heap, &err) == TEC_OK);
        int64_t without = tec_device_workspace(measuring), streams = 1 + o.beside + o.branches;
        int64_t with = without + (i % 2) * streams * TEC_CUDA_TERMS;
        check_workspace(device, without);
        for (int turn = 0; turn < 2; turn++) {
            CHECK_INT(tec_device_take_rows(device, &err), ==, TEC_OK);
            CHECK_INT(tec_device_take_rows(measuring, &err), ==, TEC_OK);
            check_workspace(device, with);
            CHECK_INT(tec_device_workspace(measuring), ==, with);
            CHECK_INT(device_bytes_of(measuring), ==, with);
        }
        tec_device_close(measuring);
        tec_device_close(device);
        CHECK_INT(heap.live, ==, 0);
        bench_check_empty();
    }
    bench_clean();
}

TEST(memory_for_rows_of_products_may_end)
{
    struct tec_heap heap = {0};
    struct tec_device *device;
    const struct tec_device_options o = {.kind = "cuda", .beside = 1};
    bench_clean();
    cuda_emulator_device(87, 40, (size_t)150 << 20);
    REQUIRE(tec_device_open(&device, &o, &heap, &err) == TEC_OK);
    for (int turn = 0; turn < 2; turn++) { /* what one stream has got already is not taken again */
        CHECK_INT(tec_device_take_rows(device, &err), ==, TEC_NO_MEMORY);
        CHECK_STR(err.message, "cuda:0: no memory for rows of products, 64 MiB on each stream");
        CHECK_INT(tec_device_failure(device, NULL), ==, TEC_OK);
    }
    tec_device_close(device);
    CHECK_INT(heap.live, ==, 0);
    bench_check_empty();
    bench_clean();
}

/* Host memory that ends while a device is opened. */
TEST(refused_host_memory_leaves_nothing)
{
    bool opened = false;
    for (int n = 1; !opened && n < 20; n++) {
        struct tec_heap heap = {.fail_at = n};
        struct tec_device *device = NULL;
        const struct tec_device_options options = {.kind = "cuda", .beside = 1};
        bench_clean();
        enum tec_status status = tec_device_open(&device, &options, &heap, &err);
        opened = status == TEC_OK;
        CHECK(opened || status == TEC_NO_MEMORY);
        tec_device_close(device);
        CHECK_INT(heap.live, ==, 0);
        bench_check_empty();
    }
    CHECK(opened);
}

TEST(memory_is_zeroed_counted_and_ends)
{
    set_up(0);
    int64_t before = device_bytes_of(b.device);
    unsigned char *all[20], back[1000];
    for (int i = 0; i < 20; i++) {
        all[i] = tec_device_get(b.device, 1000);
        REQUIRE(all[i] && (uintptr_t)all[i] % 64 == 0);
        memset(back, 1, sizeof back);
        tec_device_download(b.device, TEC_STREAM_MAIN, back, all[i], sizeof back);
        for (int c = 0; c < 1000; c++)
            REQUIRE(back[c] == 0);
    }
    CHECK_INT(device_bytes_of(b.device), ==, before + 20000);
    CHECK(tec_device_get(b.device, (size_t)1 << 50) == NULL);
    CHECK_INT(tec_device_failure(b.device, NULL), ==, TEC_OK); /* that one does not stay */
    for (int i = 0; i < 20; i++)
        tec_device_put(b.device, all[i * 7 % 20]);
    tec_device_put(b.device, NULL);
    CHECK_INT(device_bytes_of(b.device), ==, before);
    CHECK_INT(tec_device_peak(b.device), ==, before + 20000);
    tear_down();
}

/* In every order: zero when it is given, whoever uses it first. */
TEST(what_is_copied_to_fresh_memory_stays)
{
    for (int o = 0; o < ORDERS; o++)
        for (int stream = 0; stream < TEC_STREAM_COUNT; stream++) {
            unsigned char back[100], want[100];
            set_up_in(1, &orders[o]);
            unsigned char *there = tec_device_get(b.device, sizeof back);
            REQUIRE(there);
            memset(want, 0xA5, sizeof want);
            tec_device_upload(b.device, (enum tec_stream)stream, there, want, sizeof want);
            for (int after = stream; after >= 0; after--) { /* all work of both streams has ended */
                tec_device_download(b.device, (enum tec_stream)after, back, there, sizeof back);
                CHECK(memcmp(back, want, sizeof back) == 0);
            }
            tec_device_put(b.device, there);
            tear_down();
        }
}

/* --- copies ---------------------------------------------------------------------------------- */

static void fill(unsigned char *to, size_t size, unsigned salt)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)((i * 2654435761U + salt) >> 13);
}

TEST(copies_of_all_sizes_around_the_staging)
{
    enum { STAGING = 4 << 20 };
    static const size_t sizes[] = {
        0, 1, 63, 64, 65, STAGING - 1, STAGING, STAGING + 1, STAGING + 64, 2 * STAGING + 7};
    size_t most = 2 * STAGING + 8;
    unsigned char *from = malloc(most), *back = malloc(most), *want = malloc(most);
    for (int o = 0; o < ORDERS; o += 2) {
        set_up_in(0, &orders[o]);
        unsigned char *there = tec_device_get(b.device, most);
        REQUIRE(from && back && want && there);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t n = sizes[i];
            fill(want, n, (unsigned)i);
            memcpy(from, want, n);
            tec_device_upload(b.device, TEC_STREAM_MAIN, there, from, n);
            memset(from, 0xEE, n);
            memset(back, 0xDD, n + 1);
            tec_device_download(b.device, TEC_STREAM_MAIN, back, there, n);
            CHECK(memcmp(back, want, n) == 0);
            CHECK_INT(back[n], ==, 0xDD);
        }
        tec_device_put(b.device, there);
        tear_down();
    }
    free(from);
    free(back);
    free(want);
}

/* More than the staging holds, in pieces, before anything asks whether they have arrived. */
TEST(many_copies_share_the_staging)
{
    enum { PIECE = 100 * 1000, PIECES = 100 };
    set_up(0);
    unsigned char *there = tec_device_get(b.device, (size_t)PIECE * PIECES);
    static unsigned char piece[PIECE], want[PIECE];
    REQUIRE(there);
    for (int i = 0; i < PIECES; i++) {
        fill(piece, PIECE, (unsigned)i);
        tec_device_upload(b.device, TEC_STREAM_MAIN, there + (size_t)i * PIECE, piece,
                          (size_t)(PIECE - i));
    }
    for (int i = 0; i < PIECES; i++) {
        fill(want, PIECE, (unsigned)i);
        tec_device_download(b.device, TEC_STREAM_MAIN, piece, there + (size_t)i * PIECE,
                            (size_t)(PIECE - i));
        CHECK(memcmp(piece, want, (size_t)(PIECE - i)) == 0);
    }
    tec_device_put(b.device, there);
    tear_down();
}

/* --- captures -------------------------------------------------------------------------------- */

TEST(marks_come_in_order_and_at_once)
{
    for (int o = 0; o < ORDERS; o++) {
        float y[BLOCK];
        struct tec_replay r;
        set_up_in(0, &orders[o]);
        struct bench_side *s = &b.sides[0];
        record(s);
        for (int turn = 0; turn < 5; turn++) {
            REQUIRE(bench_run(&b, s, turn, 3, 11, y, &r) == TEC_OK);
            CHECK_INT(bench_wrong(y, turn, 3), ==, 0);
            REQUIRE(s->n_marks == 3);
            for (int i = 0; i < 3; i++) {
                CHECK_INT(s->marks[i], ==, i + 1);
                CHECK_INT(s->marked_ns[i], ==, r.mark_ns[i + 1]);
                CHECK_INT(s->marked_ns[i], >=, i ? s->marked_ns[i - 1] : r.start_ns);
            }
            CHECK_INT(r.end_ns, >=, r.mark_ns[3]);
            CHECK_INT(r.mark_ns[0], ==, 0);
            CHECK_INT(r.mark_ns[4], ==, 0);
        }
        r.marked = NULL;
        tec_device_replay(b.device, s->capture, &r);
        CHECK_INT(r.status, ==, TEC_OK);
        tear_down();
    }
}

TEST(a_loop_runs_count_times_or_until_stop)
{
    static const struct {
        int count, stop_after, turns;
    } cases[] = {{0, 11, 0}, {1, 11, 1}, {7, 11, 7}, {10, 11, 10}, {-3, 11, 0},
                 {7, 1, 1},  {7, 4, 4},  {7, 7, 7},  {10, 9, 9},   {0, 1, 0}};
    for (int o = 0; o < ORDERS; o++) {
        float y[BLOCK];
        struct tec_replay r;
        set_up_in(0, &orders[o]);
        record(&b.sides[0]);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            REQUIRE(bench_run(&b, &b.sides[0], (int)i, cases[i].count, cases[i].stop_after, y,
                              &r) == TEC_OK);
            CHECK_INT(bench_wrong(y, (int)i, cases[i].turns), ==, 0);
            CHECK_INT(b.sides[0].n_marks, ==, 3);
        }
        tear_down();
    }
}

/* One launch for k steps: that is what loops are for. */
TEST(a_replay_is_one_launch_and_takes_nothing)
{
    float y[BLOCK];
    struct tec_replay r;
    struct cuda_emulator_counters before, after;
    set_up(0);
    record(&b.sides[0]);
    REQUIRE(bench_run(&b, &b.sides[0], 1, 9, 11, y, &r) == TEC_OK);
    cuda_emulator_counters(&before);
    int64_t calls = b.heap.calls;
    for (int i = 0; i < 20; i++)
        bench_run(&b, &b.sides[0], i, i % 10, 11, y, &r);
    cuda_emulator_counters(&after);
    CHECK_INT(b.heap.calls, ==, calls);
    CHECK_INT(after.graph_launches, ==, before.graph_launches + 20);
    CHECK_INT(after.allocations, ==, before.allocations);
    CHECK_INT(after.instantiations, ==, before.instantiations);
    CHECK_INT(after.captures, ==, before.captures);
    CHECK_INT(after.uploads, ==, before.uploads);
    CHECK_INT(tec_capture_kernels(b.sides[0].capture), ==, after.kernel_nodes);
    CHECK_INT(tec_capture_nodes(b.sides[0].capture), ==, after.kernel_nodes + 1); /* the loop */
    tear_down();
}

/* Much behind the last mark: when a replay returns, that has ended too. In a second life of the
 * device as well, whose memory may be that of the first. */
TEST(a_replay_returns_when_everything_has_ended)
{
    for (int o = 0; o < 2 * ORDERS; o++) {
        set_up_in(0, &orders[o / 2]);
        struct bench_side *s = &b.sides[0];
        REQUIRE(tec_capture_begin(&s->capture, b.device, s->stream, &b.arena, &err) == TEC_OK);
        bench_copy(s, s->x, s->y, &s->counts->rows, ROWS, COLS, "copy");
        tec_capture_mark(s->capture, 1);
        tec_capture_repeat(s->capture, &s->counts->count, &s->counts->stop);
        for (int i = 0; i < 3; i++)
            bench_step(s);
        tec_capture_repeat_end(s->capture);
        REQUIRE(tec_capture_end(s->capture, &err) == TEC_OK);
        const struct bench_counts counts = {.rows = ROWS, .count = 7};
        tec_device_upload(b.device, s->stream, s->counts, &counts, sizeof counts);
        for (int turn = 0; turn < 4; turn++) {
            struct tec_replay r = {0};
            tec_device_replay(b.device, s->capture, &r);
            CHECK_INT(r.status, ==, TEC_OK);
            CHECK_INT(cuda_emulator_progress(100), ==, 0);
        }
        tear_down();
    }
}

/* What a frame uploads finds room: each replay has emptied the staging. */
TEST(uploads_between_replays_never_wait)
{
    enum { MIB = 1 << 20 };
    static unsigned char pixels[MIB];
    set_up(0);
    struct bench_side *s = &b.sides[0];
    unsigned char *there = tec_device_get(b.device, MIB);
    REQUIRE(there);
    record(s);
    for (int i = 0; i < 10; i++) {
        struct tec_replay r = {0};
        unsigned long before = cuda_emulator_calls("cudaStreamQuery");
        tec_device_upload(b.device, s->stream, there, pixels, MIB);
        CHECK_INT(cuda_emulator_calls("cudaStreamQuery"), ==, before);
        tec_device_replay(b.device, s->capture, &r);
        CHECK_INT(r.status, ==, TEC_OK);
    }
    tec_device_put(b.device, there);
    tear_down();
}

/* Only newer devices start a kernel before the one in front has ended, and only code that is made
 * for them waits for it then. */
TEST(kernels_overlap_where_they_can)
{
    static const struct {
        int capability, code;
        unsigned long overlaps; /* none in the body of the loop */
    } cases[] = {{80, 90, 0}, {89, 90, 0}, {90, 90, 5}, {90, 80, 0}, {120, 90, 5}, {120, 89, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cuda_emulator_counters c;
        float y[BLOCK];
        struct tec_replay r;
        bench_clean();
        cuda_emulator_device(cases[i].capability, 100, (size_t)1 << 30);
        cuda_emulator_code(cases[i].code);
        REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
        record(&b.sides[0]);
        cuda_emulator_counters(&c);
        CHECK_INT(c.overlaps, ==, cases[i].overlaps);
        CHECK_INT(c.overlap_edges, ==, c.overlaps); /* a kernel is in front of each that may */
        REQUIRE(bench_run(&b, &b.sides[0], 1, 3, 11, y, &r) == TEC_OK);
        CHECK_INT(bench_wrong(y, 1, 3), ==, 0);
        tear_down();
    }
}

TEST(an_unknown_word_of_the_environment_is_an_error)
{
    static const char *const names[] = {"TECTUM_CUDA_BRANCH", "TECTUM_CUDA_CLUSTERS",
                                        "TECTUM_CUDA_GREEN", "TECTUM_CUDA_OVERLAP"};
    static const char *const words[] = {"", "off", "00", "2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
            bench_clean();
            setenv(names[i], words[w], 1);
            enum tec_status status = bench_open(&b, 0, 0, &err);
            unsetenv(names[i]);
            CHECK_INT(status, ==, TEC_INVALID);
            CHECK(strstr(err.message, names[i]) == err.message);
            bench_close(&b);
        }
}

static void check_folder(const char *folder, enum tec_status wanted)
{
    bench_clean();
    setenv("TECTUM_CUDA_GRAPHS", folder, 1);
    enum tec_status status = bench_open(&b, 0, 0, &err);
    unsetenv("TECTUM_CUDA_GRAPHS");
    CHECK_INT(status, ==, wanted);
    if (status == TEC_OK) {
        tear_down();
        return;
    }
    CHECK(strstr(err.message, "TECTUM_CUDA_GRAPHS in the environment is '") == err.message);
    CHECK(strstr(err.message, folder) != NULL);
    bench_close(&b);
}

TEST(a_folder_for_graphs_must_be_one)
{
    struct box box;
    box_make(&box);
    check_folder("", TEC_OK);
    check_folder(box.dir, TEC_OK);
    check_folder("/nowhere/at/all", TEC_INVALID);
    box_put(&box, "file", "no folder");
    CHECK_INT(chmod(box.path, 0700), ==, 0);
    check_folder(box.path, TEC_INVALID);
    CHECK_INT(chmod(box.dir, 0500), ==, 0);
    check_folder(box.dir, geteuid() == 0 ? TEC_OK : TEC_INVALID); /* root may write anywhere */
    CHECK_INT(chmod(box.dir, 0700), ==, 0);
    box_remove(&box);
}

/* What the environment says of it: nowhere, or in the bodies of loops, too. */
TEST(overlap_is_chosen)
{
    static const struct {
        const char *wanted;
        int capability;
        unsigned long overlaps;
    } cases[] = {{"0", 90, 0}, {"1", 90, 5}, {"loops", 90, 9}, {"loops", 89, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cuda_emulator_counters c;
        float y[BLOCK];
        struct tec_replay r;
        bench_clean();
        cuda_emulator_device(cases[i].capability, 100, (size_t)1 << 30);
        setenv("TECTUM_CUDA_OVERLAP", cases[i].wanted, 1);
        enum tec_status status = bench_open(&b, 0, 0, &err);
        unsetenv("TECTUM_CUDA_OVERLAP");
        REQUIRE(status == TEC_OK);
        record(&b.sides[0]);
        cuda_emulator_counters(&c);
        CHECK_INT(c.overlaps, ==, cases[i].overlaps);
        CHECK_INT(c.overlap_edges, ==, c.overlaps); /* a body's first kernel waits for its turn */
        REQUIRE(bench_run(&b, &b.sides[0], 1, 3, 11, y, &r) == TEC_OK);
        CHECK_INT(bench_wrong(y, 1, 3), ==, 0);
        tear_down();
    }
}

TEST(a_mark_in_a_loop_is_refused)
{
    set_up(0);
    struct bench_side *s = &b.sides[0];
    REQUIRE(tec_capture_begin(&s->capture, b.device, s->stream, &b.arena, &err) == TEC_OK);
    tec_capture_repeat(s->capture, &s->counts->count, &s->counts->stop);
    bench_step(s);
    tec_capture_mark(s->capture, 1);
    tec_capture_repeat_end(s->capture);
    CHECK_INT(tec_capture_end(s->capture, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "a mark in a loop") != NULL);
    /* a mistake of the caller: the device goes on */
    float y[BLOCK];
    struct tec_replay r;
    record(s);
    CHECK_INT(bench_run(&b, s, 2, 2, 11, y, &r), ==, TEC_OK);
    CHECK_INT(bench_wrong(y, 2, 2), ==, 0);
    tear_down();
}

TEST(many_captures_each_with_many_marks)
{
    enum { MANY = 40 };
    static struct tec_capture *all[MANY];
    struct cuda_emulator_counters c;
    set_up(0);
    struct bench_side *s = &b.sides[0];
    for (int i = 0; i < MANY; i++) {
        REQUIRE(bench_record(&b, s, &err) == TEC_OK);
        all[i] = s->capture;
        CHECK_INT(tec_capture_kernels(all[i]), ==, tec_capture_kernels(all[0]));
    }
    cuda_emulator_counters(&c);
    CHECK_INT(c.execs, ==, MANY);
    CHECK_INT(c.uploads, ==, MANY); /* the first launch is as fast as any */
    CHECK_INT(c.graphs, ==, 0);
    for (int i = 0; i < 2 * MANY; i++) {
        float y[BLOCK];
        struct tec_replay r;
        s->capture = all[i * 7 % MANY];
        REQUIRE(bench_run(&b, s, i, i % 5, 11, y, &r) == TEC_OK);
        CHECK_INT(bench_wrong(y, i, i % 5), ==, 0);
    }
    for (int i = 0; i < MANY; i++)
        tec_capture_free(all[i]);
    cuda_emulator_counters(&c);
    CHECK_INT(c.execs, ==, 0);
    REQUIRE(tec_capture_begin(&s->capture, b.device, s->stream, &b.arena, &err) == TEC_OK);
    for (int i = 0; i < TEC_MAX_MARKS; i++) {
        bench_copy(s, s->x, s->y, &s->counts->rows, ROWS, COLS, "copy");
        tec_capture_mark(s->capture, TEC_MAX_MARKS - 1 - i);
    }
    REQUIRE(tec_capture_end(s->capture, &err) == TEC_OK);
    struct tec_replay r = {0};
    tec_device_replay(b.device, s->capture, &r);
    CHECK_INT(r.status, ==, TEC_OK);
    for (int i = 1; i < TEC_MAX_MARKS; i++)
        CHECK(r.mark_ns[i] > 0 && r.mark_ns[i] <= r.mark_ns[i - 1]);
    tear_down();
}

/* --- two streams ----------------------------------------------------------------------------- */

enum { ROUNDS = 12 };

static int wrong_concurrent;
static atomic_int arrived;
static _Thread_local bool meets; /* at the next mark in front of a loop */

/* Both threads are between their copy and their loop, so that the two loops run at the same time;
 * for a second at most: the other one may have failed. */
static void meet(int mark)
{
    if (mark != 1 || !meets)
        return;
    meets = false;
    int both = (atomic_fetch_add(&arrived, 1) / 2 + 1) * 2;
    for (int i = 0; i < 1000 && atomic_load(&arrived) < both; i++)
        thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void work(void *user)
{
    float y[BLOCK];
    struct tec_replay r;
    (void)user;
    for (int i = 0; i < 3; i++) {
        meets = i == 0 && bench_marked;
        wrong_concurrent += bench_run(&b, &b.sides[1], 50 + i, i + 2, 11, y, &r) != TEC_OK;
        wrong_concurrent += bench_wrong(y, 50 + i, i + 2);
    }
}

TEST(the_second_stream_never_disturbs_the_first)
{
    for (int o = 0; o < ORDERS; o++) {
        float y[BLOCK];
        struct tec_replay r;
        set_up_in(1, &orders[o]);
        record(&b.sides[0]);
        record(&b.sides[1]);
        wrong_concurrent = 0;
        bench_marked = meet;
        for (int i = 0; i < ROUNDS; i++) {
            tec_device_fork(b.device, work, NULL);
            meets = true;
            REQUIRE(bench_run(&b, &b.sides[0], i, i % 7, 11, y, &r) == TEC_OK);
            CHECK_INT(bench_wrong(y, i, i % 7), ==, 0);
            CHECK_INT(b.sides[0].n_marks, ==, 3);
            tec_device_join(b.device);
        }
        bench_marked = NULL;
        CHECK_INT(wrong_concurrent, ==, 0);
        CHECK_INT(atomic_load(&arrived), ==, 2 * ROUNDS * (o + 1));
        CHECK_INT(b.sides[1].n_marks, ==, 3);
        tear_down();
    }
}

TEST(a_device_of_one_stream_never_forks)
{
    set_up(0);
    wrong_concurrent = 0;
    tec_device_fork(b.device, work, NULL);
    tec_device_join(b.device);
    CHECK_INT(b.sides[1].n_marks, ==, 0);
    tear_down();
}

TAP_MAIN

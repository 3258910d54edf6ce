/* bench.h - what tests of the CUDA device share: a device with captures on each of its streams
 * whose results say which kernels ran and how often. The device is the emulator of
 * tests/cuda_emulator. */
#ifndef TEC_TESTS_CUDA_BENCH_H
#define TEC_TESTS_CUDA_BENCH_H

#include "kernels/device.h"
#include "tests/tap.h"

#include <cuda_emulator_control.h>

enum { ROWS = 6, COLS = 8, LD = 16, FLAGS = 12, BLOCK = ROWS * LD };

/* What the kernels of a stream count with: on the device, and what the host uploads. */
struct bench_counts {
    int rows, count, stop, flags, one;
};

/* One stream's memory. */
struct bench_side {
    enum tec_stream stream;
    float *x, *y;
    float *flags, *shifted; /* [FLAGS, LD] */
    struct bench_counts *counts;
    struct tec_capture *capture;
    int marks[16], n_marks;
    int64_t marked_ns[16];
};

struct bench {
    struct tec_heap heap;
    struct tec_arena arena;
    struct tec_device *device;
    struct bench_side sides[TEC_STREAM_COUNT];
    int n_sides;
};

static bool bench_branches;            /* devices that are opened have branches */
static void (*bench_marked)(int mark); /* called at each mark of a replay, where somebody set it */

static inline void bench_upload(const struct bench *b, void *to, const void *from, size_t size)
{
    tec_device_upload(b->device, TEC_STREAM_MAIN, to, from, size);
}

/* Memory of the device, which is given back with tec_device_put; the test ends without. */
static inline void *bench_get(const struct bench *b, size_t size)
{
    void *p = tec_device_get(b->device, size);
    REQUIRE(p);
    return p;
}

/* As at the start of the process. */
static inline void bench_clean(void)
{
    cudaDeviceReset();
    cuda_emulator_reset();
    cuda_emulator_protect(true);
}

static inline enum tec_status bench_take(struct bench *b, struct bench_side *s,
                                         struct tec_error *err)
{
    s->x = tec_device_get(b->device, BLOCK * sizeof(float));
    s->y = tec_device_get(b->device, BLOCK * sizeof(float));
    s->flags = tec_device_get(b->device, FLAGS * LD * sizeof(float));
    s->shifted = tec_device_get(b->device, FLAGS * LD * sizeof(float));
    s->counts = tec_device_get(b->device, sizeof *s->counts);
    if (s->x && s->y && s->flags && s->shifted && s->counts)
        return TEC_OK;
    enum tec_status failed = tec_device_failure(b->device, err);
    return failed != TEC_OK ? failed : tec_fail(err, TEC_NO_MEMORY, "cuda:0: no memory");
}

static inline enum tec_status bench_open(struct bench *b, int beside, int patience_ms,
                                         struct tec_error *err)
{
    const struct tec_device_options options = {
        .kind = "cuda", .beside = beside, .branches = bench_branches, .patience_ms = patience_ms};
    memset(b, 0, sizeof *b);
    tec_arena_init(&b->arena, &b->heap);
    TEC_TRY(tec_device_open(&b->device, &options, &b->heap, err));
    b->n_sides = beside ? 2 : 1;
    for (int i = 0; i < b->n_sides; i++) {
        b->sides[i].stream = (enum tec_stream)i;
        TEC_TRY(bench_take(b, &b->sides[i], err));
    }
    return TEC_OK;
}

/* Whatever there is, after a failure too. */
static inline void bench_close(struct bench *b)
{
    for (int i = 0; i < TEC_STREAM_COUNT; i++) {
        struct bench_side *s = &b->sides[i];
        tec_capture_free(s->capture);
        if (!b->device)
            continue;
        tec_device_put(b->device, s->x);
        tec_device_put(b->device, s->y);
        tec_device_put(b->device, s->flags);
        tec_device_put(b->device, s->shifted);
        tec_device_put(b->device, s->counts);
    }
    tec_device_close(b->device);
    tec_arena_finish(&b->arena);
    CHECK_INT(b->heap.live, ==, 0);
}

/* Nothing of a device that has been closed is left. */
static inline void bench_check_empty(void)
{
    struct cuda_emulator_counters c;
    cuda_emulator_counters(&c);
    CHECK_INT(c.device_bytes, ==, 0);
    CHECK_INT(c.pinned_bytes, ==, 0);
    CHECK_INT(c.streams, ==, 0);
    CHECK_INT(c.events, ==, 0);
    CHECK_INT(c.graphs, ==, 0);
    CHECK_INT(c.execs, ==, 0);
    CHECK_INT(c.greens, ==, 0);
    CHECK_INT(c.reports, ==, 0);
    CHECK_INT(c.allocations, ==, c.frees);
}

/* --- a capture ------------------------------------------------------------------------------- */

static inline void bench_copy(struct bench_side *s, const float *from, float *to, const int *rows,
                              int max, int cols, const char *label)
{
    const struct tec_map_args a = {from, to, rows, max, LD, LD, cols, 0};
    tec_capture_add(s->capture, TEC_KERNEL_copy_rows, &a, true, label);
}

static inline void bench_step(struct bench_side *s)
{
    const struct tec_euler_args a = {s->y, s->x, &s->counts->rows, ROWS, LD, LD, COLS, 1.0F, NULL};
    tec_capture_add(s->capture, TEC_KERNEL_euler, &a, true, "step");
}

/* y = x, mark 1, count times y += x until a flag stops it, mark 2, y += x, mark 3. In each turn the
 * flags move up by one, and the first becomes `stop`. */
static inline enum tec_status bench_record(struct bench *b, struct bench_side *s,
                                           struct tec_error *err)
{
    struct bench_counts *c = s->counts;
    TEC_TRY(tec_capture_begin(&s->capture, b->device, s->stream, &b->arena, err));
    bench_copy(s, s->x, s->y, &c->rows, ROWS, COLS, "copy");
    tec_capture_mark(s->capture, 1);
    tec_capture_repeat(s->capture, &c->count, &c->stop);
    bench_step(s);
    bench_copy(s, s->flags + LD, s->shifted, &c->flags, FLAGS - 1, 1, "shift");
    bench_copy(s, s->shifted, s->flags, &c->flags, FLAGS - 1, 1, "shift");
    bench_copy(s, s->flags, (float *)(void *)&c->stop, &c->one, 1, 1, "shift");
    tec_capture_repeat_end(s->capture);
    tec_capture_mark(s->capture, 2);
    bench_step(s);
    tec_capture_mark(s->capture, 3);
    return tec_capture_end(s->capture, err);
}

static inline void bench_note(void *user, int mark, int64_t now_ns)
{
    struct bench_side *s = user;
    REQUIRE(s->n_marks < 16);
    s->marked_ns[s->n_marks] = now_ns;
    s->marks[s->n_marks++] = mark;
    if (bench_marked)
        bench_marked(mark);
}

static inline float bench_x(int salt, int r, int c)
{
    return (float)((r * 31 + c * 7 + salt * 13) % 29 - 14);
}

/* Upload x and the counts, replay, download y. The stop is set before the loop: only what it is at
 * the end of a turn counts. */
static inline enum tec_status bench_run(struct bench *b, struct bench_side *s, int salt, int count,
                                        int stop_after, float *y, struct tec_replay *replay)
{
    float x[BLOCK], flags[FLAGS * LD] = {0};
    const struct bench_counts counts = {
        .rows = ROWS, .count = count, .stop = 1, .flags = FLAGS - 1, .one = 1};
    for (int i = 0; i < BLOCK; i++)
        x[i] = bench_x(salt, i / LD, i % LD);
    flags[stop_after * LD] = 1.0F;
    tec_device_upload(b->device, s->stream, s->x, x, sizeof x);
    tec_device_upload(b->device, s->stream, s->flags, flags, sizeof flags);
    tec_device_upload(b->device, s->stream, s->counts, &counts, sizeof counts);
    memset(x, 0xEE, sizeof x); /* may be used again at once */
    s->n_marks = 0;
    *replay = (struct tec_replay){.marked = bench_note, .user = s};
    tec_device_replay(b->device, s->capture, replay);
    tec_device_download(b->device, s->stream, y, s->y, BLOCK * sizeof(float));
    return tec_device_failure(b->device, NULL);
}

/* Wrong elements of y after so many turns of the loop. */
static inline int bench_wrong(const float *y, int salt, int turns)
{
    int wrong = 0;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            wrong += y[r * LD + c] != (float)(turns + 2) * bench_x(salt, r, c);
    return wrong;
}

#endif

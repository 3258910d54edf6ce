/* failure.c - the CUDA device when calls fail: each function of the runtime that it uses, each of
 * its calls in turn. One located error, nothing left over, no hang. */
#include "base/clock.h"
#include "kernels/matrix.h"
#include "tests/box.h"
#include "tests/cuda/bench.h"

#include <ctype.h>
#include <glob.h>

enum { MAX_FUNCTIONS = 64, MAX_SITES = 200, PATIENCE_MS = 200, BESIDE = 40 };

static struct bench b;
static struct tec_error err;
static const struct tec_clock wall = {NULL};

/* --- what the device calls ------------------------------------------------------------------- */

static char functions[MAX_FUNCTIONS][64];
static int n_functions;

/* A place in the sources where one is called. */
static struct {
    char file[200], function[64];
    int first, last; /* lines */
} sites[MAX_SITES];
static int n_sites;

static void add_function(const char *name, size_t length)
{
    for (int i = 0; i < n_functions; i++)
        if (strlen(functions[i]) == length && memcmp(functions[i], name, length) == 0)
            return;
    REQUIRE(n_functions < MAX_FUNCTIONS && length < sizeof functions[0]);
    memcpy(functions[n_functions], name, length);
    functions[n_functions++][length] = '\0';
}

static int lines_until(const char *text, const char *end)
{
    int n = 1;
    for (; text < end; text++)
        n += *text == '\n';
    return n;
}

/* The call at `at`, from its name to the parenthesis that ends it. */
static void add_site(const char *file, const char *text, const char *at, size_t length)
{
    const char *end = at + length;
    int depth = 0;
    do {
        depth += (*end == '(') - (*end == ')');
    } while (*end && depth > 0 && end++);
    REQUIRE(n_sites < MAX_SITES && strlen(file) < sizeof sites[0].file);
    strcpy(sites[n_sites].file, file);
    memcpy(sites[n_sites].function, at, length);
    sites[n_sites].first = lines_until(text, at);
    sites[n_sites++].last = lines_until(text, end);
}

/* The one that a kernel calls, on the device: it returns nothing. */
static bool of_kernels(const char *name, size_t length)
{
    static const char set[] = "cudaGraphSetConditional";
    return length == sizeof set - 1 && memcmp(name, set, length) == 0;
}

/* Every word cudaXyz( of a file. */
static void scan(const char *file, const char *text)
{
    for (const char *at = text; (at = strstr(at, "cuda")); at += 4) {
        size_t n = 4;
        if (!isupper((unsigned char)at[4]) ||
            (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
            continue;
        while (isalnum((unsigned char)at[n]))
            n++;
        if (at[n] == '(' && strncmp(at, "cudaGetError", 12) != 0 &&
            strncmp(at, "cudaGetLast", 11) != 0 && !of_kernels(at, n)) {
            add_function(at, n);
            add_site(file, text, at, n);
        }
    }
}

static void list_functions(void)
{
    static char text[1 << 17];
    glob_t found;
    if (n_functions)
        return;
    REQUIRE(glob(TECTUM_SOURCE "/kernels/cuda/*.c", 0, NULL, &found) == 0);
    REQUIRE(glob(TECTUM_SOURCE "/kernels/cuda/*.cu*", GLOB_APPEND, NULL, &found) == 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *in = fopen(found.gl_pathv[i], "re");
        REQUIRE(in);
        text[fread(text, 1, sizeof text - 1, in)] = '\0';
        fclose(in);
        scan(found.gl_pathv[i], text);
    }
    globfree(&found);
    add_function("kernel", 6);
    CHECK_INT(n_functions, >, 20);
}

/* One that gives something back: when it fails, that is not given back. A kernel's failure is kept.
 */
static bool leaves(const char *function)
{
    return strcmp(function, "kernel") == 0 || strstr(function, "Free") ||
           strstr(function, "Destroy") || strcmp(function, "cudaStreamEndCapture") == 0;
}

/* --- the life of a device -------------------------------------------------------------------- */

static float y[TEC_STREAM_COUNT][BLOCK];

static void work(void *user)
{
    struct tec_replay *r = user;
    (void)bench_run(&b, &b.sides[1], 5, 4, 11, y[1], r);
}

/* A product whose kernel wants more shared memory than one has without asking, and whose 16 splits
 * are a cluster of more blocks than one has without asking. Behind its weights are its rows. */
enum { DEEP = 16 * 128, MIDDLE_ROWS = 20 };

static size_t product_bytes(void)
{
    return tec_matrix_size(TEC_MATRIX_TILES, true, LD, DEEP) + ROWS * DEEP * sizeof(float);
}

static void add_product(const struct bench_side *s, const unsigned char *w)
{
    const struct tec_gemm_args a = {
        .x = (const float *)(w + tec_matrix_size(TEC_MATRIX_TILES, true, LD, DEEP)),
        .w = w,
        .y = s->flags,
        .rows = &s->counts->rows,
        .max_rows = MIDDLE_ROWS,
        .ldx = DEEP,
        .ldy = LD,
        .n = LD,
        .k = DEEP};
    tec_capture_add(s->capture, TEC_KERNEL_gemm_bf16, &a, true, "product");
}

/* A capture with a product and a branch, and what is read in its middle. */
static enum tec_status live_branch(const unsigned char *w, struct tec_error *e)
{
    struct bench_side *s = &b.sides[0];
    struct tec_capture *old = s->capture;
    struct tec_replay r = {0};
    TEC_TRY(tec_capture_begin(&s->capture, b.device, s->stream, &b.arena, e));
    struct tec_capture *own = s->capture;
    add_product(s, w);
    tec_capture_branch(own, true);
    bench_copy(s, s->x, s->shifted, &s->counts->one, 1, COLS, "branch");
    tec_capture_branch(own, false);
    bench_copy(s, s->x, s->y, &s->counts->rows, ROWS, COLS, "beside");
    enum tec_status status = tec_capture_end(own, e);
    s->capture = old;
    if (status == TEC_OK)
        tec_device_replay(b.device, own, &r);
    tec_device_fetch(b.device, y[0], s->shifted, sizeof(float));
    tec_capture_free(own);
    return status == TEC_OK ? tec_device_failure(b.device, e) : status;
}

/* What is sent beside the streams, and awaited. */
static enum tec_status live_sends(struct tec_error *e)
{
    struct bench_side *s = &b.sides[0];
    float *from = tec_device_pin(b.device, BLOCK * sizeof(float));
    if (from) {
        memset(from, 0, BLOCK * sizeof(float));
        tec_device_send(b.device, s->x, from, BLOCK * sizeof(float));
        tec_device_note(b.device, 1);
        tec_device_await(b.device, s->stream, 1);
        tec_device_download(b.device, s->stream, y[0], s->x, sizeof(float));
    }
    tec_device_unpin(b.device, from);
    enum tec_status failed = tec_device_failure(b.device, e);
    return from || failed != TEC_OK ? failed
                                    : tec_fail(e, TEC_NO_MEMORY, "cuda:0: no pinned memory");
}

/* Open, take, record, and run both streams at once; the first thing that went wrong. */
static enum tec_status live(struct tec_error *e)
{
    struct tec_replay first, second = {0};
    bench_branches = true;
    enum tec_status opened = bench_open(&b, BESIDE, 0, e);
    bench_branches = false;
    TEC_TRY(opened);
    (void)tec_device_room(b.device);
    char address[32];
    (void)tec_device_address(b.device, address);
    TEC_TRY(bench_record(&b, &b.sides[0], e));
    TEC_TRY(bench_record(&b, &b.sides[1], e));
    unsigned char *w = tec_device_get(b.device, product_bytes());
    enum tec_status status = w ? live_branch(w, e) : tec_device_failure(b.device, e);
    tec_device_put(b.device, w);
    TEC_TRY(status);
    TEC_TRY(live_sends(e));
    for (int i = 0; i < 2; i++) {
        tec_device_fork(b.device, work, &second);
        (void)bench_run(&b, &b.sides[0], i, 3, 11, y[0], &first);
        tec_device_join(b.device);
        TEC_TRY(tec_device_failure(b.device, e));
        CHECK(first.status == TEC_OK && second.status == TEC_OK);
        CHECK_INT(bench_wrong(y[0], i, 3) + bench_wrong(y[1], 5, 4), ==, 0);
    }
    return TEC_OK;
}

/* A sentence that says which device, what was asked of it and why not. */
static bool located(const char *message)
{
    bool where =
        strncmp(message, "cuda:0: ", 8) == 0 || strncmp(message, "no CUDA device", 14) == 0;
    return where && strlen(message) > 16 && !strchr(message, '\n');
}

/* Call number nth fails: true when there was such a call. */
static bool fail_one(const char *function, int nth, cudaError_t error, bool keeps)
{
    bench_clean();
    cuda_emulator_protect(false); /* only costs time here */
    cuda_emulator_fail(function, nth, error);
    err.message[0] = '\0';
    enum tec_status status = live(&err);
    bool sane = status == TEC_OK || status == TEC_DEVICE ||
                (status == TEC_NO_MEMORY && error == cudaErrorMemoryAllocation);
    if (!sane || (status != TEC_OK && !located(err.message)))
        fprintf(stderr, "# %s %d: %d %s\n", function, nth, (int)status, err.message);
    CHECK(sane);
    CHECK(status == TEC_OK || located(err.message));
    int64_t before = tec_clock_now(&wall);
    bench_close(&b);
    CHECK_INT(tec_clock_now(&wall) - before, <, 10000000000);
    bool reached = strcmp(function, "kernel") == 0
                       ? status != TEC_OK
                       : cuda_emulator_calls(function) >= (unsigned long)nth;
    if (!keeps && !leaves(function))
        bench_check_empty();
    return reached;
}

/* Of a function the first `most` calls; how many there were. */
static int fail_calls(const char *function, cudaError_t error, bool keeps, int most)
{
    int nth = 1;
    while (nth <= most && fail_one(function, nth, error, keeps))
        nth++;
    return nth - 1;
}

/* Of each function, without a green context and with one. */
static int fail_all(cudaError_t error, bool keeps, int most)
{
    int failures = 0;
    struct box graphs;
    box_make(&graphs);
    setenv("TECTUM_CUDA_GRAPHS", graphs.dir, 1);
    list_functions();
    for (int i = 0; i < n_functions; i++) {
        int n = fail_calls(functions[i], error, keeps, most);
        setenv("TECTUM_CUDA_GREEN", "1", 1);
        n += fail_calls(functions[i], error, keeps, most);
        unsetenv("TECTUM_CUDA_GREEN");
        if (n == 0)
            fprintf(stderr, "# %s was never called\n", functions[i]);
        CHECK_INT(n, >, 0);
        failures += n;
    }
    unsetenv("TECTUM_CUDA_GRAPHS");
    box_remove(&graphs);
    bench_clean();
    return failures;
}

static bool calls_failed, cleaning_failed; /* the tests that no_call_has_been_left_out needs */

TEST(every_call_may_fail)
{
    printf("# %d calls failed\n", fail_all(cudaErrorUnknown, false, 60));
    calls_failed = true;
}

TEST(every_call_may_lack_memory)
{
    fail_all(cudaErrorMemoryAllocation, false, 8);
}

TEST(the_device_may_keep_the_failure)
{
    fail_all(cudaErrorIllegalAddress, true, 8);
}

/* --- in the middle --------------------------------------------------------------------------- */

static void open_and_record(int patience_ms)
{
    bench_clean();
    REQUIRE(bench_open(&b, 0, patience_ms, &err) == TEC_OK);
    REQUIRE(bench_record(&b, &b.sides[0], &err) == TEC_OK);
}

TEST(a_failed_device_does_nothing_more)
{
    struct tec_replay r;
    struct cuda_emulator_counters before, after;
    open_and_record(0);
    REQUIRE(bench_run(&b, &b.sides[0], 1, 3, 11, y[0], &r) == TEC_OK);
    cuda_emulator_fail("kernel", 6, cudaErrorIllegalAddress); /* in the loop */
    CHECK_INT(bench_run(&b, &b.sides[0], 2, 3, 11, y[0], &r), ==, TEC_DEVICE);
    CHECK_INT(r.status, ==, TEC_DEVICE);
    CHECK_INT(r.mark_ns[1], >, 0);
    CHECK_INT(r.mark_ns[3], ==, 0);
    CHECK_INT(tec_device_failure(b.device, &err), ==, TEC_DEVICE);
    CHECK(strstr(err.message, "cuda:0: replay at or before 'shift'") != NULL);
    CHECK(strstr(err.message, "cudaErrorIllegalAddress") != NULL);
    cuda_emulator_counters(&before);
    memset(y[0], 0x55, sizeof y[0]);
    CHECK_INT(bench_run(&b, &b.sides[0], 3, 3, 11, y[0], &r), ==, TEC_DEVICE);
    CHECK(r.status == TEC_DEVICE && r.end_ns >= r.start_ns && r.mark_ns[1] == 0);
    CHECK_INT(((unsigned char *)y[0])[7], ==, 0x55); /* nothing came */
    CHECK(tec_device_get(b.device, 100) == NULL);
    struct tec_error again;
    CHECK_INT(bench_record(&b, &b.sides[0], &again), ==, TEC_DEVICE);
    CHECK_STR(again.message, err.message); /* the first failure stays */
    cuda_emulator_counters(&after);
    CHECK_INT(after.calls, ==, before.calls);
    bench_close(&b);
    bench_clean();
}

/* Opened with asked_ms and word as TECTUM_CUDA_PATIENCE: so long, and hardly longer, is waited. */
static void wait_for_a_launch(int asked_ms, const char *word, int expected_ms)
{
    struct tec_replay r;
    setenv("TECTUM_CUDA_PATIENCE", word, 1);
    open_and_record(asked_ms);
    unsetenv("TECTUM_CUDA_PATIENCE");
    REQUIRE(bench_run(&b, &b.sides[0], 1, 3, 11, y[0], &r) == TEC_OK);
    cuda_emulator_hang(1);
    int64_t before = tec_clock_now(&wall);
    CHECK_INT(bench_run(&b, &b.sides[0], 2, 3, 11, y[0], &r), ==, TEC_DEVICE);
    int64_t took = tec_clock_now(&wall) - before;
    printf("# a launch that hangs: given up after %.0f ms of %d\n", (double)took / 1e6,
           expected_ms);
    CHECK_INT(took, >=, (int64_t)expected_ms * 1000000);
    CHECK_INT(took, <, (int64_t)expected_ms * 1000000 + 1000000000);
    CHECK_INT(tec_device_failure(b.device, &err), ==, TEC_DEVICE);
    CHECK(strstr(err.message, "cuda:0: replay at or before 'copy'") != NULL);
    before = tec_clock_now(&wall);
    bench_close(&b);
    CHECK_INT(tec_clock_now(&wall) - before, <, 1000000000);
    bench_clean();
}

TEST(a_launch_that_never_ends_is_given_up)
{
    wait_for_a_launch(PATIENCE_MS, "3600", PATIENCE_MS); /* what the program asks for goes first */
    wait_for_a_launch(0, "2", 2000);
}

TEST(a_patience_that_is_no_time_is_an_error)
{
    static const char *const words[] = {"", "0", "-1", "2s", "1e9", "99999999999999999999"};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        bench_clean();
        setenv("TECTUM_CUDA_PATIENCE", words[w], 1);
        enum tec_status status = bench_open(&b, 0, 0, &err);
        unsetenv("TECTUM_CUDA_PATIENCE");
        CHECK_INT(status, ==, TEC_INVALID);
        CHECK(strstr(err.message, "TECTUM_CUDA_PATIENCE in the environment is '") == err.message);
        bench_close(&b);
    }
}

TEST(a_copy_may_fail_on_its_way)
{
    enum { LARGE = 5 << 20 };
    static unsigned char large[LARGE];
    for (int nth = 1; nth <= 4; nth++) { /* two pieces there, two back */
        open_and_record(0);
        void *there = tec_device_get(b.device, LARGE);
        REQUIRE(there);
        cuda_emulator_fail("cudaMemcpyAsync", nth, cudaErrorECCUncorrectable);
        tec_device_upload(b.device, TEC_STREAM_MAIN, there, large, LARGE);
        tec_device_download(b.device, TEC_STREAM_MAIN, large, there, LARGE);
        CHECK_INT(tec_device_failure(b.device, &err), ==, TEC_DEVICE);
        CHECK(strncmp(err.message, nth < 3 ? "cuda:0: copy to" : "cuda:0: copy from", 15) == 0);
        CHECK(strstr(err.message, "cudaErrorECCUncorrectable") != NULL);
        tec_device_put(b.device, there);
        bench_close(&b);
        bench_clean();
    }
}

/* What is given back behind a failure is not given back either: in the body of a loop, and where
 * fresh memory cannot be set. */
TEST(what_cleans_up_may_fail_too)
{
    bench_clean();
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    cuda_emulator_fail("cudaLaunchKernelEx", 4, cudaErrorUnknown);
    cuda_emulator_fail("cudaStreamEndCapture", 1, cudaErrorUnknown);
    CHECK_INT(bench_record(&b, &b.sides[0], &err), ==, TEC_DEVICE);
    CHECK(located(err.message));
    bench_close(&b);
    bench_clean();
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    cuda_emulator_fail("cudaMemsetAsync", 1, cudaErrorUnknown);
    cuda_emulator_fail("cudaFree", 1, cudaErrorUnknown);
    CHECK(tec_device_get(b.device, 100) == NULL);
    CHECK_INT(tec_device_failure(b.device, &err), ==, TEC_DEVICE);
    CHECK(located(err.message));
    bench_close(&b);
    bench_clean();
    cleaning_failed = true;
}

/* --- all places ------------------------------------------------------------------------------ */

/* No call in the device's sources is left that nothing above made fail; what has not run yet runs
 * here. */
TEST(no_call_has_been_left_out)
{
    if (!calls_failed)
        every_call_may_fail();
    if (!cleaning_failed)
        what_cleans_up_may_fail_too();
    CHECK_INT(n_sites, >=, n_functions - 2);
    for (int i = 0; i < n_sites; i++) {
        bool failed = cuda_emulator_failed_at(sites[i].file, sites[i].first, sites[i].last);
        if (!failed)
            fprintf(stderr, "# %s:%d: %s never failed\n", sites[i].file, sites[i].first,
                    sites[i].function);
        CHECK(failed);
    }
}

TAP_MAIN

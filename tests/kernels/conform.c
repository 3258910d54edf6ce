/* conform.c - the conformance harness: it runs every kernel of every tier against the reference and
 * reports the first difference.
 *
 * Usage: kernels.t --peaks | [--bench] [--layers [--peak TFLOP/s]] [--first] [--small] [--seed N]
 * [--tier NAME] [--schedule 0..2] [--capability 80] [--threads] [pattern]; --peaks only tells what
 * the machine can do, --first ends at the first failure, --small tries no sizes of real models,
 * --threads gives each lane of a CPU tier a thread. */
#include "tests/kernels/conform.h"
#include "base/thread.h"
#include "tests/kernels/bench_cuda.h"
#include "tests/kernels/buffers.h"
#include "tests/kernels/cuda_tier.h"
#include "tests/kernels/matrices_tier.h"
#include "tests/kernels/pairs_tier.h"
#include "tests/kernels/tiles_tier.h"

#if defined(__x86_64__)
#endif

#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The bytes of each output: before, after ref, and after fast. */
static struct {
    unsigned char *before, *want, *got;
    size_t size;
} kept[CONFORM_OUTS];

static void *copy_of(const void *from, size_t size)
{
    void *to = malloc(size ? size : 1);
    if (!to)
        abort();
    return memcpy(to, from, size);
}

static void drop_copies(void)
{
    for (int o = 0; o < CONFORM_OUTS; o++) {
        free(kept[o].before);
        free(kept[o].want);
        free(kept[o].got);
    }
    memset(kept, 0, sizeof kept);
}

static bool first_only;

__attribute__((format(printf, 2, 0))) static void report(struct conform *c, const char *format,
                                                         va_list args)
{
    if (!c->failed && !c->quiet) { /* the first difference is the useful one */
        fprintf(stderr, "# %s %s: ", c->kernel, c->tier);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        if (first_only)
            exit(1);
    }
    c->failed = true;
}

void conform_fail(struct conform *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(c, format, args);
    va_end(args);
}

void conform_close(struct conform *c, double got, double want, double bound, const char *format,
                   ...)
{
    double ratio = got == want ? 0.0 : fabs(got - want) / bound;
    if (ratio > c->worst)
        c->worst = ratio;
    if (ratio <= 1.0) /* also false for NaN */
        return;
    char where[100];
    va_list args;
    va_start(args, format);
    vsnprintf(where, sizeof where, format, args);
    va_end(args);
    conform_fail(c, "%s: got %.9g, want %.9g, bound %.3g", where, got, want, bound);
}

void conform_same(struct conform *c, int out, size_t size, const char *format, ...)
{
    const unsigned char *got = kept[out].got, *want = kept[out].want;
    size_t at = 0;
    while (at < size && got[at] == want[at])
        at++;
    if (at == size)
        return;
    char where[100];
    va_list args;
    va_start(args, format);
    vsnprintf(where, sizeof where, format, args);
    va_end(args);
    conform_fail(c, "%s: output %d differs from the reference at byte %zu", where, out, at);
}

void conform_rounded(struct conform *c, int rows, int ld, int cols)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < cols; i++) {
            uint32_t bits;
            memcpy(&bits, kept[0].got + ((size_t)r * (size_t)ld + (size_t)i) * sizeof bits,
                   sizeof bits);
            if (bits & 0xffffU)
                conform_fail(c, "row %d column %d is not a bf16", r, i);
        }
}

static void restore(const struct conform_call *call)
{
    for (int o = 0; o < call->outs; o++)
        memcpy(call->out[o].at, kept[o].before, kept[o].size);
}

struct lane {
    void (*run)(const struct tec_kernels *kernels, const void *args, struct tec_part part);
    const struct tec_kernels *kernels;
    const void *args;
    struct tec_part part;
};

static void *run_lane(void *user)
{
    const struct lane *lane = user;
    lane->run(lane->kernels, lane->args, lane->part);
    return NULL;
}

/* All lanes at once: what two of them touch without order is a race that a sanitizer reports. */
static void run_threads(struct lane *lanes, int n)
{
    pthread_t threads[3];
    for (int i = 0; i < n; i++)
        if (!tec_thread_start(&threads[i], run_lane, &lanes[i]))
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* Run from the same initial bytes: lanes one after the other, in reverse order when there are
 * three, or each in a thread. */
static void run_lanes(struct conform *c, const struct conform_call *call, bool fast, int lanes,
                      int live)
{
    restore(call);
    if (c->live)
        *c->live = live;
    struct lane lane[3];
    for (int i = 0; i < lanes; i++) {
        lane[i] = (struct lane){.run = tec_kernel_infos[c->id].run,
                                .kernels = fast ? c->fast : c->ref,
                                .args = fast ? call->fast : call->ref,
                                .part = {lanes == 3 ? lanes - 1 - i : i, lanes}};
        if (!c->threads || lanes == 1)
            run_lane(&lane[i]);
    }
    if (c->threads && lanes > 1)
        run_threads(lane, lanes);
    const char *trouble = fast ? cuda_tier_trouble() : NULL;
    if (trouble)
        conform_fail(c, "%s", trouble);
}

/* Expect that output `o` holds `rows` from the rows of the first `live` counts, and is untouched
 * elsewhere. */
static void expect(struct conform *c, const struct conform_call *call, int o,
                   const unsigned char *rows, int live, const char *when)
{
    const struct conform_out *out = &call->out[o];
    const unsigned char *now = out->at;
    unsigned char *right = copy_of(out->row ? kept[o].before : rows, kept[o].size);
    int last = live * (out->per > 1 ? out->per : 1);
    for (int r = 0; out->row && r < last && r < out->rows; r++) {
        size_t at = out->stride * (size_t)(out->map ? out->map[r] : r + out->first);
        memcpy(right + at, rows + at, out->row);
    }
    size_t at = 0;
    while (at < kept[o].size && right[at] == now[at])
        at++;
    if (at < kept[o].size)
        conform_fail(c, "%s (%d of %d live): output %d at byte %zu of %zu (rows of %zu every %zu)",
                     when, live, call->live, o, at, kept[o].size, out->row, out->stride);
    free(right);
}

static void run_fewer(struct conform *c, const struct conform_call *call, bool fast, int live)
{
    run_lanes(c, call, fast, 1 + live % 2, live);
    for (int o = 0; o < call->outs; o++)
        if (call->out[o].row)
            expect(c, call, o, fast ? kept[o].got : kept[o].want, live,
                   fast ? "fewer rows change a row or touch another" : "reference, fewer rows");
}

static void run_full(struct conform *c, const struct conform_call *call, bool fast)
{
    run_lanes(c, call, fast, 1, call->live);
    for (int o = 0; o < call->outs; o++) {
        unsigned char *now = copy_of(call->out[o].at, kept[o].size);
        *(fast ? &kept[o].got : &kept[o].want) = now;
        *(fast ? &c->got[o] : &c->want[o]) = now;
        expect(c, call, o, now, call->live, fast ? "writes where it must not" : "reference writes");
    }
}

void conform_run(struct conform *c, const struct conform_call *call)
{
    drop_copies();
    for (int o = 0; o < call->outs; o++) {
        kept[o].size = buffers_size(call->out[o].at);
        kept[o].before = copy_of(call->out[o].at, kept[o].size);
    }
    run_full(c, call, false);
    run_full(c, call, true);
    for (int lanes = 2; lanes <= 3; lanes++) {
        run_lanes(c, call, true, lanes, call->live);
        for (int o = 0; o < call->outs; o++)
            expect(c, call, o, kept[o].got, call->live, "lanes change the result");
    }
    if (call->full && c->live && !c->threads) { /* one lane: nothing to watch */
        run_lanes(c, call, true, 1, call->live + 3);
        for (int o = 0; o < call->outs; o++)
            expect(c, call, o, kept[o].got, call->live, "a count past max_rows is not clamped");
    }
    if (!c->live || call->live < 1)
        return;
    int few = conform_int(0, call->live - 1);
    run_fewer(c, call, true, few);
    run_fewer(c, call, false, few);
    if (few != 1 && call->live > 1)
        run_fewer(c, call, true, 1);
}

void conform_end(struct conform *c)
{
    int broken = buffers_end();
    if (broken >= 0)
        conform_fail(c, "wrote outside buffer %d of the shape", broken);
    drop_copies();
    c->live = NULL;
    c->shapes++;
}

double conform_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of several times, because noise only ever adds time. */
static double best_seconds(struct conform *c, const struct conform_call *call, bool fast)
{
    double best = 1e30;
    if (c->live)
        *c->live = call->live;
    for (int runs = 0; runs < 3 || (runs < 50 && best * runs < 0.02); runs++) {
        double start = conform_seconds();
        tec_kernel_infos[c->id].run(fast ? c->fast : c->ref, fast ? call->fast : call->ref,
                                    (struct tec_part){0, 1});
        double took = conform_seconds() - start;
        best = took < best ? took : best;
    }
    return best;
}

void conform_time(struct conform *c, const char *shape, const struct conform_call *call,
                  double bytes, double flops)
{
    if (!c->bench)
        return;
    double ref = best_seconds(c, call, false), fast = best_seconds(c, call, true);
    printf("# bench %-14s %-6s %-20s %11.0f ns %11.0f ns %7.2fx", c->kernel, c->tier, shape,
           ref * 1e9, fast * 1e9, ref / fast);
    if (bytes > 0)
        printf(" %7.2f GB/s", bytes / fast * 1e-9);
    if (flops > 0)
        printf(" %7.2f GF/s", flops / fast * 1e-9);
    putchar('\n');
}

struct options {
    const char *pattern, *tier;
    uint64_t seed;
    int schedule; /* of the emulator; -1: each */
    int like;     /* a compute capability; 0: that of the device */
    double peak;  /* peak of bf16 products, for --layers; 0: not known */
    bool bench, layers, small, threads, peaks;
};

static struct options parse(int argc, char **argv)
{
    struct options o = {"*",   "*",  (uint64_t)time(NULL), -1, 0, 0.0, false, false, false,
                        false, false};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0)
            o.bench = true;
        else if (strcmp(argv[i], "--peaks") == 0)
            o.peaks = true;
        else if (strcmp(argv[i], "--first") == 0)
            first_only = true;
        else if (strcmp(argv[i], "--small") == 0)
            o.small = true;
        else if (strcmp(argv[i], "--threads") == 0)
            o.threads = true;
        else if (strcmp(argv[i], "--layers") == 0)
            o.layers = true;
        else if (strcmp(argv[i], "--peak") == 0 && i + 1 < argc)
            o.peak = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            o.seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--tier") == 0 && i + 1 < argc)
            o.tier = argv[++i];
        else if (strcmp(argv[i], "--schedule") == 0 && i + 1 < argc)
            o.schedule = atoi(argv[++i]);
        else if (strcmp(argv[i], "--capability") == 0 && i + 1 < argc)
            o.like = atoi(argv[++i]);
        else
            o.pattern = argv[i];
    }
    return o;
}

struct tally {
    int run, failed;
};

/* Check one kernel of one tier. */
static void check(const struct options *o, struct tally *tally, struct conform c,
                  void (*run)(struct conform *c))
{
    tally->run++;
    buffers_seed(o->seed);
    run(&c);
    printf("%sok %d - %s %s (%d shapes, worst error %.2f of bound)\n", c.failed ? "not " : "",
           tally->run, c.kernel, c.tier, c.shapes, c.worst);
    tally->failed += c.failed;
}

/* Kernels for instructions that are emulated: a tile unit, dot products of pairs, or products of
 * matrices. */
enum emulated { TILES, PAIRS, MATRICES };

static void check_emulated(const struct options *o, struct tally *tally,
                           const struct tec_kernels *ref, enum emulated what, enum tec_kernel_id id)
{
    static const struct {
        const char *name, *tier;
        struct tec_kernels (*table)(void);
    } all[] = {{"tiles", "tiles, emulated", tiles_tier_table},
               {"pairs", "pairs, emulated", pairs_tier_table},
               {"matrices", "matrices, emulated", matrices_tier_table}};
    const char *name = all[what].name, *kernel = tec_kernel_infos[id].name;
    if (fnmatch(o->tier, name, 0) != 0 || fnmatch(o->pattern, kernel, 0) != 0)
        return;
    if (!tiles_tier_runs_here()) {
        printf("ok %d - %s # SKIP not on this machine\n", ++tally->run, name);
        return;
    }
    const struct tec_kernels fast = all[what].table();
    check(o, tally,
          (struct conform){.kernel = kernel,
                           .tier = all[what].tier,
                           .id = id,
                           .ref = ref,
                           .fast = &fast,
                           .slow = o->small || id == TEC_KERNEL_gemm_int8,
                           .threads = o->threads,
                           .tiles = what == TILES,
                           .pairs = what == PAIRS,
                           .matrices = what == MATRICES,
                           .same_order = true},
          id == TEC_KERNEL_gemm_int8 ? conform_gemm_int8 : conform_terms);
}

static void check_cpu(const struct options *o, struct tally *tally, const struct tec_kernels *ref)
{
    for (int t = TEC_TIER_ref; t < TEC_TIER_COUNT; t++) { /* ref too: against the exact values */
        const struct tec_kernels fast = tec_kernels_for((enum tec_tier)t);
        struct tec_kernels below = {0};
        if (t > TEC_TIER_ref)
            below = tec_kernels_for((enum tec_tier)(t - 1));
        const char *tier = tec_tier_name((enum tec_tier)t);
        if (fnmatch(o->tier, tier, 0) != 0)
            continue;
        if (!tec_tier_runs_here((enum tec_tier)t)) {
            printf("ok %d - %s # SKIP not on this machine\n", ++tally->run, tier);
            continue;
        }
#define KERNEL(name, args)                                              \
    if (fast.name != below.name && fnmatch(o->pattern, #name, 0) == 0)  \
        check(o, tally,                                                 \
              (struct conform){.kernel = #name,                         \
                               .tier = tier,                            \
                               .id = TEC_KERNEL_##name,                 \
                               .ref = ref,                              \
                               .fast = &fast,                           \
                               .bench = o->bench && t > TEC_TIER_ref,   \
                               .slow = o->small,                        \
                               .tiles = conform_has_tiles(&fast),       \
                               .pairs = conform_has_pairs(&fast),       \
                               .matrices = conform_has_matrices(&fast), \
                               .threads = o->threads,                   \
                               .same_order = true},                     \
              conform_##name);
#include "kernels/kernels.def"
#undef KERNEL
    }
}

static void check_cuda_once(const struct options *o, struct tally *tally,
                            const struct tec_kernels *ref, const char *tier, bool slow)
{
    const struct tec_kernels fast = cuda_tier_table();
#define KERNEL(name, args)                              \
    if (fnmatch(o->pattern, #name, 0) == 0)             \
        check(o, tally,                                 \
              (struct conform){.kernel = #name,         \
                               .tier = tier,            \
                               .id = TEC_KERNEL_##name, \
                               .ref = ref,              \
                               .fast = &fast,           \
                               .bench = o->bench,       \
                               .slow = slow},           \
              conform_##name);
#include "kernels/kernels.def"
#undef KERNEL
}

static void check_cuda(const struct options *o, struct tally *tally, const struct tec_kernels *ref)
{
    static const char *const names[CUDA_TIER_SCHEDULES] = {"cuda forward", "cuda reverse",
                                                           "cuda random"};
    static const char *const before_90[CUDA_TIER_SCHEDULES] = {
        "cuda forward, as sm_80", "cuda reverse, as sm_80", "cuda random, as sm_80"};
    const char *why = NULL;
    if (fnmatch(o->tier, "cuda", 0) != 0)
        return;
    enum cuda_tier_kind kind = cuda_tier_open(&why);
    if (kind == CUDA_TIER_NONE)
        printf("ok %d - cuda # SKIP %s\n", ++tally->run, why);
    cuda_tier_like(o->like);
    if (kind != CUDA_TIER_NONE &&
        o->layers) { /* nothing else: the checks have a run of their own */
        bool timed = conform_bench_cuda(o->pattern, o->peak, kind == CUDA_TIER_EMULATED);
        tally->failed += !timed;
        printf("%s %d - layers of %s are timed\n", timed ? "ok" : "not ok", ++tally->run,
               o->pattern);
        cuda_tier_close();
        return;
    }
    if (kind == CUDA_TIER_REAL)
        check_cuda_once(o, tally, ref, "cuda", o->small);
    for (int s = 0; kind == CUDA_TIER_EMULATED && s < CUDA_TIER_SCHEDULES; s++) {
        if (o->schedule >= 0 && o->schedule != s)
            continue;
        cuda_tier_schedule(s, o->seed);
        check_cuda_once(o, tally, ref, names[s], true);
        if (o->like || fnmatch(o->pattern, "gemm_bf16", 0) != 0)
            continue;
        struct options products = *o; /* the emulated device has warp groups, others do not */
        products.pattern = "gemm_bf16";
        cuda_tier_like(80);
        check_cuda_once(&products, tally, ref, before_90[s], true);
        cuda_tier_like(0);
    }
    cuda_tier_close();
}

int main(int argc, char **argv); /* by another name where tests are linked into one program */

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (o.peaks) {
        conform_print_peaks();
        return 0;
    }
    printf("# seed %llu\n", (unsigned long long)o.seed);
    const struct tec_kernels ref = tec_kernels_for(TEC_TIER_ref);
    struct tally tally = {0, 0};
    check_cpu(&o, &tally, &ref);
    check_emulated(&o, &tally, &ref, TILES, TEC_KERNEL_gemm_bf16);
    check_emulated(&o, &tally, &ref, TILES, TEC_KERNEL_gemm_int8);
    check_emulated(&o, &tally, &ref, PAIRS, TEC_KERNEL_gemm_bf16);
    check_emulated(&o, &tally, &ref, MATRICES, TEC_KERNEL_gemm_bf16);
    check_cuda(&o, &tally, &ref);
    buffers_seed(o.seed);
    if (strcmp(o.tier, "*") == 0 && !o.threads) /* its wrong lanes would be races */
        tally.failed += conform_self_test(&tally.run);
    if (o.bench)
        conform_bench_gemm(o.pattern);
    printf("1..%d\n", tally.run);
    return tally.failed != 0;
}

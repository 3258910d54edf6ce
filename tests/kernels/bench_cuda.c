/* bench_cuda.c - times the CUDA kernels of real models' layers and compares them with what the GPU
 * can do.
 *
 * Weights rotate through more memory than the caches hold, and launches follow each other in a
 * graph, as they do in a frame; two events around the graph give the time. */
#include "tests/kernels/bench_cuda.h"

#ifndef TECTUM_HAS_CUDA

bool conform_bench_cuda(const char *pattern, double peak, bool slow)
{
    (void)pattern, (void)peak, (void)slow;
    return false;
}

#else

#include "kernels/cuda/gpu.h"
#include "kernels/matrix.h"
#include "tests/kernels/bench_layers.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL(name, args) extern __typeof__(tec_cuda_##name) tec_cuda_##name __attribute__((weak));
#include "kernels/kernels.def"
#undef KERNEL

enum { PARTIALS = 32 << 20, MAX_ROWS = 1024, REPEATS = 20, WORST = 5, SMALL = 40 };
enum { FIRST = 16, UNWRITTEN = 0x41 }; /* numbers of y that are looked at; their bytes before */

/* One call: its arguments, what it moves and computes, and how many copies of its weights fit the
 * pool. */
struct call {
    union layer_args args;
    double bytes, flops;
    size_t weights; /* bytes, of a gemm only */
};

struct result {
    const struct layer *layer;
    double us, bytes, flops, share, lost;
};

struct bench {
    struct tec_cuda_launch launch;
    cudaEvent_t begin, end;
    char *pool;         /* weights, keys, inputs */
    float *y, *scratch; /* outputs */
    int *ints;          /* rows, then zeros, then one for each key */
    size_t pool_size, out_size;
    double copy, peak; /* bytes and FLOP a second */
    bool slow;
    int n, failed;
    struct result results[LAYERS];
};

static void start(struct bench *b, enum tec_kernel_id id, const void *args)
{
    switch (id) {
#define KERNEL(name, type)                     \
    case TEC_KERNEL_##name:                    \
        if (tec_cuda_##name)                   \
            tec_cuda_##name(args, &b->launch); \
        break;
#include "kernels/kernels.def"
#undef KERNEL
    case TEC_KERNEL_COUNT:
        break;
    }
}

static bool exists(enum tec_kernel_id id)
{
    switch (id) {
#define KERNEL(name, type)  \
    case TEC_KERNEL_##name: \
        return tec_cuda_##name != NULL;
#include "kernels/kernels.def"
#undef KERNEL
    case TEC_KERNEL_COUNT:
        break;
    }
    return false;
}

/* --- calls ----------------------------------------------------------------------------------- */

static int *live(struct bench *b, int rows)
{
    (void)cudaMemcpy(b->ints, &rows, sizeof rows, cudaMemcpyHostToDevice);
    return b->ints;
}

static int *zeros(struct bench *b)
{
    return b->ints + 16;
}

static void make_gemm(struct bench *b, struct call *c, const struct layer *l)
{
    bool bf16 = l->kernel == TEC_KERNEL_gemm_bf16;
    int ldx = tec_padded(l->k), n = tec_padded(l->n);
    c->weights = tec_matrix_size(TEC_MATRIX_TILES, bf16, n, l->k);
    c->args.gemm = (struct tec_gemm_args){.x = b->scratch,
                                          .w = b->pool,
                                          .y = b->y,
                                          .rows = live(b, l->rows),
                                          .max_rows = l->rows,
                                          .ldx = ldx,
                                          .ldy = n,
                                          .n = n,
                                          .k = l->k};
    c->flops = 2.0 * l->rows * n * l->k;
    c->bytes = (double)c->weights + 4.0 * l->rows * ((double)ldx + n);
}

/* One sequence over n keys that every row sees; for vision one sequence for each n rows; rows that
 * decode have one each. */
static void make_attention(struct bench *b, struct call *c, const struct layer *l)
{
    bool bf16 = l->kernel == TEC_KERNEL_attention_bf16;
    enum { TABLE = 4 * MAX_ROWS };
    static int table[TABLE];
    int per = l->rows > l->n ? l->n : l->rows > 8 ? l->rows : 1, seqs = (l->rows + per - 1) / per;
    int *row_seq = table, *visible = table + MAX_ROWS, *spans = table + 2 * MAX_ROWS;
    struct tec_seq *seq = (struct tec_seq *)(void *)(table + 3 * MAX_ROWS);
    for (int r = 0; r < l->rows; r++) {
        row_seq[r] = r / per;
        visible[r] = l->n;
    }
    for (int s = 0; s < seqs; s++) {
        spans[2 * s] = s * l->n;
        spans[2 * s + 1] = l->n;
        seq[s] = (struct tec_seq){s, 1};
    }
    int *at = b->ints + 16 + MAX_ROWS;
    (void)cudaMemcpy(at, table, sizeof table, cudaMemcpyHostToDevice);
    double keys = (double)seqs * l->n * l->kv * l->k * (bf16 ? 2 : 4);
    int ld = l->heads * l->k;
    c->args.attention =
        (struct tec_attention_args){.q = b->scratch,
                                    .k = b->pool,
                                    .v = b->pool + (b->pool_size / 2),
                                    .out = b->y,
                                    .scratch = b->y + b->out_size / 2 / sizeof(float),
                                    .row_seq = at,
                                    .visible = at + MAX_ROWS,
                                    .spans = (struct tec_span *)(void *)(at + 2 * MAX_ROWS),
                                    .seqs = (struct tec_seq *)(void *)(at + 3 * MAX_ROWS),
                                    .rows = live(b, l->rows),
                                    .max_rows = l->rows,
                                    .ldq = ld,
                                    .ldo = ld,
                                    .heads = l->heads,
                                    .kv_heads = l->kv,
                                    .head_dim = l->k,
                                    .terms = bf16 ? 0 : 2, /* as a bf16 plan has it */
                                    .scale = 0.0625F};
    c->flops = 4.0 * l->rows * l->n * ld;
    c->bytes = 2.0 * keys + 8.0 * l->rows * ld;
}

static void make_rope(struct bench *b, struct call *c, const struct layer *l)
{
    int q = l->heads * l->k, kv = l->kv * l->k, ld = q + 2 * kv;
    c->args.rope = (struct tec_rope_args){.qkv = b->scratch,
                                          .q = b->y,
                                          .k = b->pool,
                                          .v = b->pool + (b->pool_size / 2),
                                          .slot = zeros(b),
                                          .pos = zeros(b),
                                          .cos_sin = (float *)(void *)b->pool,
                                          .rows = live(b, l->rows),
                                          .max_rows = l->rows,
                                          .ld = ld,
                                          .ldq = q,
                                          .k_at = q,
                                          .v_at = q + kv,
                                          .heads = l->heads,
                                          .kv_heads = l->kv,
                                          .head_dim = l->k};
    c->bytes = l->rows * (4.0 * ld + 4.0 * q + 4.0 * kv);
}

static void make_rowwise(struct bench *b, struct call *c, const struct layer *l)
{
    int ld = tec_padded(l->n), *rows = live(b, l->rows);
    const float *table = (float *)(void *)b->pool;
    c->bytes = 8.0 * l->rows * l->n;
    switch (l->kernel) {
    case TEC_KERNEL_gelu:
        c->args.map = (struct tec_map_args){b->scratch, b->y, rows, l->rows, ld, ld, l->n, 0};
        break;
    case TEC_KERNEL_gelu_mul:
        c->args.gated =
            (struct tec_gated_args){b->scratch, b->y, rows, l->rows, 2 * ld, ld, l->n, 0, ld, 0};
        c->bytes *= 1.5;
        break;
    case TEC_KERNEL_euler:
        c->args.euler =
            (struct tec_euler_args){b->y, b->scratch, rows, l->rows, ld, ld, l->n, 0.1F, NULL};
        c->bytes *= 1.5;
        break;
    case TEC_KERNEL_embed_bf16:
        c->args.embed = (struct tec_embed_args){b->pool, zeros(b),         b->y, rows, zeros(b),
                                                l->rows, tec_padded(l->k), l->n, l->k, 1.0F};
        c->bytes = 6.0 * l->rows * l->k;
        break;
    default:
        c->args.norm =
            (struct tec_norm_args){.x = b->scratch,
                                   .weight = table,
                                   .bias = l->kernel == TEC_KERNEL_layernorm ? table : NULL,
                                   .y = b->y,
                                   .rows = rows,
                                   .max_rows = l->rows,
                                   .ldx = ld,
                                   .ldy = ld,
                                   .cols = l->n,
                                   .eps = 1e-6F};
    }
}

static void make(struct bench *b, struct call *c, const struct layer *l)
{
    memset(c, 0, sizeof *c);
    if (l->kernel == TEC_KERNEL_gemm_f32 || l->kernel == TEC_KERNEL_gemm_bf16)
        make_gemm(b, c, l);
    else if (l->kernel == TEC_KERNEL_attention_f32 || l->kernel == TEC_KERNEL_attention_bf16)
        make_attention(b, c, l);
    else if (l->kernel == TEC_KERNEL_rope_bf16)
        make_rope(b, c, l);
    else
        make_rowwise(b, c, l);
}

/* --- time ------------------------------------------------------------------------------------ */

/* Capture `repeats` launches, each with the next copy of the weights, as one graph: started one by
 * one, small kernels would wait for the host. */
static cudaError_t capture(struct bench *b, const struct layer *l, struct call *c, int repeats,
                           cudaGraphExec_t *exec)
{
    size_t copies = c->weights ? b->pool_size / c->weights : 1;
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamBeginCapture(b->launch.stream, cudaStreamCaptureModeThreadLocal);
    b->launch.error = error;
    b->launch.first = true;
    for (int i = 0; i < repeats; i++) {
        if (c->weights)
            c->args.gemm.w = b->pool + c->weights * ((size_t)i % (copies ? copies : 1));
        start(b, l->kernel, &c->args);
    }
    if (error == cudaSuccess)
        error = cudaStreamEndCapture(b->launch.stream, &graph);
    if (error == cudaSuccess)
        error = b->launch.error;
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(exec, graph, 0);
    if (graph)
        (void)cudaGraphDestroy(graph);
    return error;
}

/* Whether the first numbers of y have been written: a kernel without code for this device ends
 * well, too. */
static bool wrote(const struct bench *b)
{
    float y[FIRST], before[FIRST];
    memset(before, UNWRITTEN, sizeof before);
    memcpy(y, before, sizeof y);
    return cudaMemcpy(y, b->y, sizeof y, cudaMemcpyDeviceToHost) == cudaSuccess &&
           memcmp(y, before, sizeof y) != 0;
}

/* The time of one launch in microseconds, measured when all are made for the second time; negative
 * on failure. */
static double time_of(struct bench *b, const struct layer *l, struct call *c, int repeats)
{
    cudaGraphExec_t exec = NULL;
    float ms = 0.0F;
    cudaError_t error = capture(b, l, c, repeats, &exec);
    if (error == cudaSuccess)
        error = cudaMemset(b->y, UNWRITTEN, FIRST * sizeof *b->y);
    if (error == cudaSuccess)
        error = cudaGraphLaunch(exec, b->launch.stream);
    if (error == cudaSuccess)
        error = cudaEventRecord(b->begin, b->launch.stream);
    if (error == cudaSuccess)
        error = cudaGraphLaunch(exec, b->launch.stream);
    if (error == cudaSuccess)
        error = cudaEventRecord(b->end, b->launch.stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(b->launch.stream);
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&ms, b->begin, b->end);
    if (exec)
        (void)cudaGraphExecDestroy(exec);
    if (error == cudaSuccess && wrote(b))
        return 1e3 * (double)ms / repeats;
    printf("# {\"kernel\": \"%s\", \"layer\": \"%s\", \"error\": \"%s\"}\n", l->name, l->what,
           error == cudaSuccess ? "it wrote nothing" : cudaGetErrorString(error));
    return -1.0;
}

/* The bandwidth of a copy, whose reads and writes both count; the best of several. */
static double copy_rate(struct bench *b)
{
    size_t half = b->pool_size / 2;
    double best = 0.0;
    for (int i = 0; i < 6; i++) {
        float ms = 0.0F;
        (void)cudaEventRecord(b->begin, b->launch.stream);
        (void)cudaMemcpyAsync(b->pool, b->pool + half, half, cudaMemcpyDeviceToDevice,
                              b->launch.stream);
        (void)cudaEventRecord(b->end, b->launch.stream);
        if (cudaStreamSynchronize(b->launch.stream) == cudaSuccess &&
            cudaEventElapsedTime(&ms, b->begin, b->end) == cudaSuccess && ms > 0.0F)
            best = fmax(best, 2e3 * (double)half / (double)ms);
    }
    return best;
}

static void measure(struct bench *b, const char *pattern)
{
    for (int i = 0; i < LAYERS; i++) {
        struct layer l = layers[i];
        struct call c;
        if (fnmatch(pattern, l.name, 0) != 0 || !exists(l.kernel))
            continue;
        if (b->slow) {
            l.rows = l.rows > SMALL ? SMALL : l.rows;
            l.n = l.n > 64 ? 64 : l.n;
            l.k = l.k > 64 && l.heads == 0 ? 64 : l.k;
        }
        make(b, &c, &l);
        double us = time_of(b, &l, &c, b->slow ? 2 : REPEATS);
        if (us > 0.0)
            b->results[b->n++] = (struct result){&layers[i], us, c.bytes, c.flops, 0.0, 0.0};
        else
            b->failed++;
    }
}

/* --- report ---------------------------------------------------------------------------------- */

static int by_lost(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    return x->lost < y->lost ? 1 : x->lost > y->lost ? -1 : 0;
}

static void judge(struct bench *b, double peak)
{
    double best = 0.0;
    for (int i = 0; i < b->n; i++)
        best = fmax(best, b->results[i].flops / b->results[i].us * 1e6);
    b->peak = peak > 0.0 ? peak * 1e12 : best;
    printf("# {\"ceiling\": {\"copy_gb_s\": %.1f, \"bf16_tflop_s\": %.2f, \"from\": \"%s\"}}\n",
           b->copy * 1e-9, b->peak * 1e-12, peak > 0.0 ? "given" : "the best of these kernels");
    for (int i = 0; i < b->n; i++) {
        struct result *r = &b->results[i];
        double least = 0.0;
        if (b->copy > 0.0)
            least = r->bytes / b->copy * 1e6;
        if (b->peak > 0.0)
            least = fmax(least, r->flops / b->peak * 1e6);
        r->share = least / r->us;
        r->lost = r->layer->calls * fmax(0.0, r->us - least);
        printf("# {\"kernel\": \"%s\", \"layer\": \"%s\", \"rows\": %d, \"us\": %.2f, \"gb_s\": "
               "%.1f, \"tflop_s\": %.2f, \"of_ceiling\": %.3f, \"calls\": %d, \"lost_us\": %.1f}\n",
               r->layer->name, r->layer->what, r->layer->rows, r->us, r->bytes / r->us * 1e-3,
               r->flops / r->us * 1e-6, r->share, r->layer->calls, r->lost);
    }
    qsort(b->results, (size_t)b->n, sizeof b->results[0], by_lost);
    printf("# most time above the ceilings, in a frame:\n");
    for (int i = 0; i < b->n && i < WORST; i++)
        printf("# %d. %-14s %-18s %8.1f us = %4d x (%7.2f us, %3.0f %% of its ceiling)\n", i + 1,
               b->results[i].layer->name, b->results[i].layer->what, b->results[i].lost,
               b->results[i].layer->calls, b->results[i].us, 100.0 * b->results[i].share);
}

/* --- device ---------------------------------------------------------------------------------- */

static void *device_bytes(size_t size, int value)
{
    void *at = NULL;
    if (cudaMalloc(&at, size) != cudaSuccess || cudaMemset(at, value, size) != cudaSuccess)
        return NULL;
    return at;
}

static int attribute(enum cudaDeviceAttr which)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess ? value : 0;
}

/* Set every byte to 0x3c: this gives small numbers as bf16 and as float32; the ints that matter are
 * set to position 0. */
static bool open_bench(struct bench *b, bool slow)
{
    struct tec_cuda_launch *l = &b->launch;
    b->slow = slow;
    b->pool_size = slow ? (size_t)8 << 20 : (size_t)2 << 30;
    b->out_size = slow ? (size_t)4 << 20 : (size_t)256 << 20;
    b->pool = device_bytes(b->pool_size, 0x3c);
    b->scratch = device_bytes(b->out_size, 0x3c);
    b->y = device_bytes(b->out_size, 0);
    b->ints = device_bytes((16 + 5 * MAX_ROWS) * sizeof(int), 0);
    l->partials = device_bytes(PARTIALS, 0);
    l->tickets = device_bytes(TEC_CUDA_TICKETS * sizeof(int), 0);
    l->partials_size = PARTIALS;
    l->terms_size = (size_t)64 << 20;
    l->terms = device_bytes(l->terms_size, 0x3c);
    l->capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                    attribute(cudaDevAttrComputeCapabilityMinor);
    l->processors = attribute(cudaDevAttrMultiProcessorCount);
    l->overlap = l->capability >= 90;
    l->groups = tec_cuda_groups(l->capability);
    l->clusters = tec_gpu_clusters(l->capability);
    l->first = true;
    return b->pool && b->scratch && b->y && b->ints && l->partials && l->terms && l->tickets &&
           cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking) == cudaSuccess &&
           cudaEventCreate(&b->begin) == cudaSuccess && cudaEventCreate(&b->end) == cudaSuccess &&
           cudaDeviceSynchronize() == cudaSuccess;
}

static void close_bench(struct bench *b)
{
    void *all[] = {b->pool,         b->scratch,       b->y, b->ints, b->launch.partials,
                   b->launch.terms, b->launch.tickets};
    if (b->begin)
        (void)cudaEventDestroy(b->begin);
    if (b->end)
        (void)cudaEventDestroy(b->end);
    if (b->launch.stream)
        (void)cudaStreamDestroy(b->launch.stream);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        (void)cudaFree(all[i]);
}

bool conform_bench_cuda(const char *pattern, double peak, bool slow)
{
    static struct bench b;
    if (open_bench(&b, slow)) {
        b.copy = copy_rate(&b);
        measure(&b, pattern);
        judge(&b, peak);
    } else {
        printf("# {\"error\": \"the CUDA device has not the memory for a bench\"}\n");
    }
    close_bench(&b);
    return b.n > 0 && b.failed == 0;
}

#endif

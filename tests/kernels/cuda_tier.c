/* cuda_tier.c - the CUDA kernels as one more tier of the harness, on a GPU or in the emulator: each
 * call is a launch and a wait. */
#include "tests/kernels/cuda_tier.h"

#include <stdlib.h>

#ifdef TECTUM_HAS_CUDA

#include "kernels/cuda/chain.h"
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/row_digits.h"
#include "kernels/grids.h"

#include <stdio.h>
#include <string.h>

#ifdef TECTUM_CUDA_EMULATED
#include <cuda_emulator.h>
#include <cuda_emulator_control.h>
#endif

/* TERMS: little, so that products of many rows take them in several parts. */
enum { PARTIALS = 4 << 20, TERMS = 4 << 20, UNSET_EMULATED = 64 << 10, UNSET = 0xff };

static struct {
    struct tec_cuda_launch launch;
    bool open, troubled;
    char trouble[400];
} tier;

static void trouble(const char *kernel, const char *what, cudaError_t error)
{
    if (tier.troubled) /* the first one is the useful one */
        return;
    tier.troubled = true;
    snprintf(tier.trouble, sizeof tier.trouble, "%s: %s%s%s", kernel, what,
             error == cudaSuccess ? "" : ": ",
             error == cudaSuccess ? "" : cudaGetErrorString(error));
}

const char *cuda_tier_trouble(void)
{
    if (!tier.troubled)
        return NULL;
    tier.troubled = false;
    return tier.trouble;
}

#ifdef TECTUM_CUDA_EMULATED
static const enum cuda_tier_kind kind = CUDA_TIER_EMULATED;

static void found(void *user, const char *line)
{
    (void)user;
    trouble("emulator", line, cudaSuccess);
}

static void watch(void)
{
    cuda_emulator_on_finding(found, NULL);
}

/* --- what kernels/grids.h says of a call, against what the launcher started ---------------------
 */

enum { GRIDS = 64 };
static struct cuda_emulator_grid told[GRIDS];
static size_t n_told;

static void tell(void *user, const struct tec_grid *g)
{
    (void)user;
    if (n_told < GRIDS)
        told[n_told] = (struct cuda_emulator_grid){{g->blocks[0], g->blocks[1], g->blocks[2]},
                                                   (unsigned)g->threads,
                                                   g->shared,
                                                   g->cluster > 1 ? g->cluster : 1,
                                                   g->name ? g->name : "a kernel without a name"};
    n_told++;
}

static bool same_grid(const struct cuda_emulator_grid *a, const struct cuda_emulator_grid *b)
{
    return memcmp(a->blocks, b->blocks, sizeof a->blocks) == 0 && a->threads == b->threads &&
           a->shared == b->shared && a->cluster == b->cluster && strcmp(a->name, b->name) == 0;
}

static void compare_grids(const char *name)
{
    struct cuda_emulator_grid started[GRIDS];
    size_t n = cuda_emulator_grids(started, GRIDS), i = 0;
    char what[300];
    while (i < n && i < n_told && same_grid(&started[i], &told[i]))
        i++;
    if (i == n && (n == n_told || (n == GRIDS && n_told > GRIDS)))
        return;
    struct cuda_emulator_grid none = {{0}, 0, 0, 0, "none"}, *is = i < n ? &started[i] : &none;
    struct cuda_emulator_grid *said = i < n_told && i < GRIDS ? &told[i] : &none;
    snprintf(what, sizeof what,
             "start %zu of %zu is %s, %u x %u x %u of %u, %zu bytes, clusters of %u; "
             "kernels/grids.h says "
             "%s, %u x %u x %u of %u, %zu bytes, clusters of %u, of %zu",
             i, n, is->name, is->blocks[0], is->blocks[1], is->blocks[2], is->threads, is->shared,
             is->cluster, said->name, said->blocks[0], said->blocks[1], said->blocks[2],
             said->threads, said->shared, said->cluster, n_told);
    trouble(name, what, cudaSuccess);
}

static void tell_command(enum tec_kernel_id kernel, const void *args)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(&tier.launch);
    cuda_emulator_counters_clear();
    n_told = 0;
    tec_grids_of(kernel, args, &facts, tell, NULL);
}

static void tell_digits(const struct tec_cuda_digits *form, int count)
{
    cuda_emulator_counters_clear();
    n_told = 1;
    told[0] = (struct cuda_emulator_grid){
        {(unsigned)tec_cuda_digits_blocks(form), (unsigned)ceil_div(count, 8), 1},
        32 * DIGITS_WARPS,
        0,
        1,
        "row_digits_kernel"};
}

static bool chain_told(void)
{
    return n_told > 0;
}

static void tell_chain(const struct tec_cuda_chain *chain)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(&tier.launch);
    cuda_emulator_counters_clear();
    n_told = 0;
    if (!tec_grids_of_chain(chain, &facts, tell, NULL))
        n_told = 0;
}

static void tell_list(const struct tec_capture *list)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(&tier.launch);
    cuda_emulator_counters_clear();
    n_told = 0;
    for (int at = 0; at < list->n;)
        at += tec_grids_at(list, at, &facts, tell, NULL);
}

void cuda_tier_schedule(int order, uint64_t seed)
{
    cuda_emulator_schedule((enum cuda_emulator_order)order, seed);
}

/* A sanitizer tracks its own allocator best. */
void *cuda_tier_alloc(size_t size)
{
    return aligned_alloc(64, size);
}

void cuda_tier_free(void *at)
{
    free(at);
}
#else
static const enum cuda_tier_kind kind = CUDA_TIER_REAL;

static void watch(void)
{
}

/* Nothing says here with which grid a kernel was started. */
static void compare_grids(const char *name)
{
    (void)name;
}

static void tell_command(enum tec_kernel_id kernel, const void *args)
{
    (void)kernel, (void)args;
}

static void tell_chain(const struct tec_cuda_chain *chain)
{
    (void)chain;
}

static void tell_digits(const struct tec_cuda_digits *form, int count)
{
    (void)form, (void)count;
}

static void tell_list(const struct tec_capture *list)
{
    (void)list;
}

static bool chain_told(void)
{
    return false;
}

void cuda_tier_schedule(int order, uint64_t seed)
{
    (void)order, (void)seed;
}

void *cuda_tier_alloc(size_t size)
{
    void *at = NULL;
    if (!tier.open)
        return aligned_alloc(64, size);
    return cudaMallocManaged(&at, size, cudaMemAttachGlobal) == cudaSuccess ? at : NULL;
}

void cuda_tier_free(void *at)
{
    if (tier.open)
        (void)cudaFree(at);
    else
        free(at);
}
#endif

static int capability; /* to plan for; 0: that of the device */
static bool no_clusters;

static int attribute(enum cudaDeviceAttr which)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess ? value : 0;
}

static void plan_for(struct tec_cuda_launch *launch, int like)
{
    launch->capability = like         ? like
                         : capability ? capability
                                      : 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                                            attribute(cudaDevAttrComputeCapabilityMinor);
    if (kind == CUDA_TIER_EMULATED || !like) /* code for sm_90a has no other products */
        launch->groups = tec_cuda_groups(launch->capability);
    launch->clusters = launch->groups && !no_clusters ? tec_gpu_clusters(launch->capability) : 0;
}

void cuda_tier_clusters(bool wanted)
{
    no_clusters = !wanted;
    cuda_tier_plan_for(0, 0);
}

void cuda_tier_like(int like)
{
    capability = kind == CUDA_TIER_EMULATED ? like : 0;
    cuda_tier_plan_for(0, 0);
}

void cuda_tier_plan_for(int like, int processors)
{
    if (!tier.open)
        return;
    plan_for(&tier.launch, like);
    tier.launch.processors = processors ? processors : attribute(cudaDevAttrMultiProcessorCount);
}

void cuda_tier_room(size_t partials, size_t terms)
{
    tier.launch.partials_size = partials && partials < PARTIALS ? partials : PARTIALS;
    tier.launch.terms_size = terms && terms < TERMS ? terms : TERMS;
}

static cudaError_t open_device(struct tec_cuda_launch *launch)
{
    size_t tickets = TEC_CUDA_TICKETS * sizeof(int);
    cudaError_t error = cudaSetDevice(0);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&launch->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&launch->partials, PARTIALS);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&launch->terms, TERMS);
    launch->terms_size = TERMS;
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&launch->squares, TEC_CUDA_SQUARES);
    launch->squares_size = TEC_CUDA_SQUARES;
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&launch->tickets, tickets);
    if (error == cudaSuccess)
        error = cudaMemset(launch->tickets, 0, tickets);
    if (error == cudaSuccess)
        error = cudaDeviceSynchronize();
    launch->partials_size = PARTIALS;
    plan_for(launch, 0);
    launch->processors = attribute(cudaDevAttrMultiProcessorCount);
    launch->overlap = launch->capability >= 90;
    return error;
}

enum cuda_tier_kind cuda_tier_open(const char **why)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count < 1) {
        *why = error == cudaSuccess ? "no CUDA device" : cudaGetErrorString(error);
        return CUDA_TIER_NONE;
    }
    error = open_device(&tier.launch);
    if (error != cudaSuccess) {
        fprintf(stderr, "# the CUDA device does not open: %s\n", cudaGetErrorString(error));
        abort();
    }
    watch();
    tier.open = true;
    return kind;
}

void cuda_tier_close(void)
{
    if (!tier.open)
        return;
    (void)cudaFree(tier.launch.partials);
    (void)cudaFree(tier.launch.terms);
    (void)cudaFree(tier.launch.squares);
    (void)cudaFree(tier.launch.tickets);
    (void)cudaStreamDestroy(tier.launch.stream);
    tier.open = false;
}

/* Overwrite the partial sums of an earlier kernel, because they must not be read. */
static void before(void)
{
    size_t size = kind == CUDA_TIER_EMULATED ? UNSET_EMULATED : PARTIALS;
    tier.launch.kernels = 0;
    tier.launch.first = true;
    tier.launch.error = cudaMemsetAsync(tier.launch.partials, UNSET, size, tier.launch.stream);
}

static void after(const char *name)
{
    static int tickets[TEC_CUDA_TICKETS], none[TEC_CUDA_TICKETS];
    cudaError_t error = tier.launch.error, waited = cudaStreamSynchronize(tier.launch.stream);
    if (error != cudaSuccess)
        trouble(name, "does not start", error);
    else if (waited != cudaSuccess)
        trouble(name, "does not end", waited);
    else if (tier.launch.kernels == 0)
        trouble(name, "started nothing", cudaSuccess);
    else
        compare_grids(name);
    if (error != cudaSuccess || waited != cudaSuccess)
        return;
    error = cudaMemcpy(tickets, tier.launch.tickets, sizeof tickets, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess)
        trouble(name, "tickets", error);
    else if (memcmp(tickets, none, sizeof none) != 0)
        trouble(name, "a ticket is not 0 at the end", cudaSuccess);
}

#define KERNEL(name, args)                                                          \
    static void run_##name(const struct tec_##args##_args *a, struct tec_part part) \
    {                                                                               \
        if (part.lane != 0)                                                         \
            return;                                                                 \
        before();                                                                   \
        tell_command(TEC_KERNEL_##name, a);                                         \
        tec_cuda_##name(a, &tier.launch);                                           \
        after(#name);                                                               \
    }
#include "kernels/kernels.def"
#undef KERNEL

static bool start_chain(const struct tec_cuda_chain *chain)
{
    before();
    tell_chain(chain);
    if (!tec_cuda_gemm_chain(chain, &tier.launch)) {
        if (chain_told())
            trouble("chain", "was not started, as kernels/grids.h says it is", cudaSuccess);
        return false;
    }
    after("chain");
    return true;
}

bool cuda_tier_chain(enum tec_kernel_id product, const struct tec_norm_args *norm,
                     const struct tec_gemm_args *gemm, enum tec_kernel_id next, const void *args,
                     bool left)
{
    static const enum tec_cuda_then thens[TEC_KERNEL_COUNT + 1] = {
#define THEN(kernel, args, input) [TEC_KERNEL_##kernel] = TEC_CUDA_THEN_##kernel,
#include "kernels/cuda/chains.def"
#undef THEN
    };
    const struct tec_cuda_chain chain = {.norm = norm,
                                         .gemm = gemm,
                                         .int8 = product == TEC_KERNEL_gemm_int8,
                                         .then = thens[next],
                                         .args = args,
                                         .left = left};
    return start_chain(&chain);
}

void cuda_tier_leave(enum tec_kernel_id product, const struct tec_gemm_args *gemm)
{
    const struct tec_cuda_chain chain = {
        .gemm = gemm, .int8 = product == TEC_KERNEL_gemm_int8, .leaves = true};
    cudaError_t error =
        cudaMemsetAsync(tier.launch.squares, UNSET, tier.launch.squares_size, tier.launch.stream);
    if (error != cudaSuccess)
        trouble("chain", "unset squares", error);
    start_chain(&chain);
}

int cuda_tier_list(const struct tec_capture *list)
{
    before();
    tell_list(list);
    for (int at = 0; at < list->n;)
        at += tec_gpu_start(list, at, &tier.launch);
    after("list");
    return tier.launch.kernels;
}

bool cuda_tier_digits(const struct tec_gemm_args *a, const struct tec_cuda_digits *form,
                      const int *order, int first, int count, void *to, size_t size)
{
    if (!tier.open)
        return false;
    before();
    tell_digits(form, count);
    tier.launch.error = cudaMemcpy(tier.launch.terms, to, size, cudaMemcpyHostToDevice);
    tec_cuda_row_digits(a, form, order, first, count, &tier.launch);
    after("row_digits");
    cudaError_t error = cudaMemcpy(to, tier.launch.terms, size, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess)
        trouble("row_digits", "its digits", error);
    return true;
}

bool cuda_tier_reads_terms(void)
{
    return tier.launch.groups;
}

int cuda_tier_norm_rows(enum tec_kernel_id product, const struct tec_gemm_args *gemm, bool left)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(&tier.launch);
    const struct tec_cuda_chain chain = {.gemm = gemm, .int8 = product == TEC_KERNEL_gemm_int8};
    return chain_digits(&chain, &facts) ? 0 : chain_norm_rows(left, chain_groups(&chain, &facts));
}

bool cuda_tier_rope_fits(enum tec_kernel_id product, const struct tec_gemm_args *gemm,
                         const struct tec_rope_args *rope)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(&tier.launch);
    return product == TEC_KERNEL_gemm_int8 ? chain_rope_fits_bytes(gemm, &facts)
                                           : chain_rope_fits(gemm, rope, &facts);
}

struct tec_kernels cuda_tier_table(void)
{
    return (struct tec_kernels){
#define KERNEL(name, args) .name = run_##name,
#include "kernels/kernels.def"
#undef KERNEL
        .layout = TEC_MATRIX_TILES,
    };
}

#endif

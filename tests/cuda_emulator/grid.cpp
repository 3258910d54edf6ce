/* A grid: limits of the machine, shared memory, the order of blocks, findings. */
#include "tests/cuda_emulator/machine.h"

#include <algorithm>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif
#if defined(EMULATOR_ASAN) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

namespace cuda_emulator
{
enum { SHARED_LIMIT = 227 << 10, FENCE = 1024, UNSET = 0xff, CANARY = 0xa5 };

cuda_emulator_order schedule_order;
fiber host;
bool dropped;
struct cuda_emulator_work work;
uint3 block_index;
dim3 grid_size;
unsigned cluster_size;
unsigned char *shared_memory;

alignas(128) static unsigned char arena[SHARED_LIMIT + FENCE];
static size_t shared_size;
static uint64_t seed = 1;
static const char *running = "no kernel";
static std::mutex turn;
static cuda_emulator_finding *handler;
static void *handler_user;

const char *kernel_name()
{
    return running;
}

unsigned random_below(unsigned n)
{
    if (schedule_order != CUDA_EMULATOR_RANDOM || n == 0)
        return 0;
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)((seed >> 32) * n >> 32);
}

void report(const char *line)
{
    if (handler) {
        handler(handler_user, line);
        return;
    }
    fprintf(stderr, "%s\n", line);
    abort();
}

void check_shared(const void *p, size_t size, size_t align, const char *what)
{
    uintptr_t at = (uintptr_t)p, own = (uintptr_t)arena;
    if (at % align)
        fail("%s: address %p of shared memory is not a multiple of %zu", what, p, align);
    if (at >= own && at < own + sizeof arena) {
        if (at + size > own + shared_size)
            fail("%s: byte %zu of the block's %zu bytes of shared memory", what,
                 (size_t)(at - own) + size, shared_size);
        return;
    }
    if (!shared_arrays_hold(p, size))
        fail("%s: the %zu bytes at %p are not in one array of shared memory", what, size, p);
}

/* NaN: what nobody has written must not be read. */
static void unset_shared()
{
    memset(arena, UNSET, shared_size);
    shared_arrays_unset();
}

static void fence_shared(size_t size)
{
    ASAN_UNPOISON_MEMORY_REGION(arena, sizeof arena);
    shared_memory = arena;
    shared_size = size;
    memset(arena + size, CANARY, FENCE);
    ASAN_POISON_MEMORY_REGION(arena + size, sizeof arena - size);
}

#if !defined(EMULATOR_ASAN) && !defined(__SANITIZE_ADDRESS__)
static void finding_of_block(const char *what)
{
    char line[600];
    snprintf(line, sizeof line, "cuda emulator: %s: block (%u,%u,%u): %s", running, block_index.x,
             block_index.y, block_index.z, what);
    report(line);
    dropped = true;
}

static void check_fence()
{
    const unsigned char *fence = arena + shared_size; /* its first byte, and each like the next */
    if (fence[0] != CANARY || memcmp(fence, fence + 1, FENCE - 1) != 0)
        finding_of_block("wrote past the end of its shared memory");
}
#else
static void check_fence() /* the write itself was found */
{
}
#endif

static bool fits(dim3 grid, dim3 block, size_t shared, unsigned cluster)
{
    const char *what = NULL;
    if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7fffffffU || grid.y > 65535 ||
        grid.z > 65535)
        what = "a grid has 1 .. 2147483647 x 65535 x 65535 blocks";
    else if (block.x < 1 || block.y < 1 || block.z < 1 || block.x > 1024 || block.y > 1024 ||
             block.z > 64 || block.x * block.y * block.z > MAX_THREADS)
        what = "a block has 1 .. 1024 threads, at most 64 in z";
    else if (shared > SHARED_LIMIT)
        what = "a block has at most 232448 bytes of shared memory";
    else if (cluster < 1 || cluster > MAX_CLUSTER || grid.z % cluster)
        what = "a cluster has 1 .. 16 blocks, and a grid is whole clusters along z";
    if (!what)
        return true;
    char line[600];
    snprintf(line, sizeof line,
             "cuda emulator: %s: grid (%u,%u,%u) of blocks (%u,%u,%u) with %zu bytes: %s", running,
             grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, what);
    report(line);
    return false;
}

/* Blocks in an order that visits each once: i -> (first + i * step) mod count. */
struct visit {
    uint64_t first, step;
};

static uint64_t common(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static visit choose_visit(uint64_t count)
{
    if (schedule_order == CUDA_EMULATOR_FORWARD || count == 1)
        return {0, 1};
    if (schedule_order == CUDA_EMULATOR_REVERSE)
        return {count - 1, count - 1};
    unsigned below = count > 0x7fffffffU ? 0x7fffffffU : (unsigned)count;
    visit v = {random_below(below), 1 + (uint64_t)random_below(below)};
    while (common(v.step, count) != 1)
        v.step++;
    return v;
}

/* The state of a block that waits is aside while others of its cluster run. */
static void swap_block(unsigned place)
{
    static std::vector<unsigned char> aside[MAX_CLUSTER];
    if (cluster_size == 1)
        return;
    aside[place].resize(SHARED_LIMIT);
    std::swap_ranges(arena, arena + shared_size, aside[place].data());
    shared_arrays_swap(place);
    copies_swap(place);
    barriers_swap(place);
    products_swap(place);
    block_swap(place);
}

/* A block from its beginning; true: it waits for the others of its cluster. */
static bool begin_block(dim3 size, const std::function<void()> &body)
{
    if (cluster_size > 1)
        block_shape(size);
    unset_shared();
    copies_forget();
    barriers_forget();
    products_forget();
    return block_run(body);
}

/* Blocks of a cluster, whose first is block_index, in an order by the schedule: each as far as it
 * goes alone, again and again until all have ended. */
static void run_cluster(dim3 size, const std::function<void()> &body)
{
    bool waits[MAX_CLUSTER] = {}, fresh = true, more = true;
    unsigned first = block_index.z;
    for (; more && !dropped; fresh = false) {
        visit v = choose_visit(cluster_size);
        uint64_t at = v.first;
        more = false;
        for (unsigned i = 0; i < cluster_size && !dropped; i++, at = (at + v.step) % cluster_size) {
            if (!fresh && !waits[at])
                continue;
            block_index.z = first + (unsigned)at;
            swap_block((unsigned)at);
            waits[at] = fresh ? begin_block(size, body) : block_go_on();
            if (!dropped && !waits[at])
                check_fence();
            swap_block((unsigned)at);
            more = more || waits[at];
        }
    }
}

static void run_blocks(dim3 size, const std::function<void()> &body)
{
    uint64_t count = (uint64_t)grid_size.x * grid_size.y * (grid_size.z / cluster_size);
    visit v = choose_visit(count);
    uint64_t at = v.first;
    for (uint64_t i = 0; i < count && !dropped; i++, at = (at + v.step) % count) {
        block_index.x = (unsigned)(at % grid_size.x);
        block_index.y = (unsigned)(at / grid_size.x % grid_size.y);
        block_index.z = (unsigned)(at / grid_size.x / grid_size.y) * cluster_size;
        run_cluster(size, body);
    }
    if (dropped)
        blocks_drop();
}

void run_grid(const char *name, dim3 grid, dim3 block, size_t shared, unsigned cluster,
              const std::function<void()> &body)
{
    std::lock_guard<std::mutex> guard(turn);
    running = name;
    host = fiber();
    dropped = false;
    if (fits(grid, block, shared, cluster)) {
        grid_size = grid;
        cluster_size = cluster;
        work.grids++;
        shared_arrays_choose(file_of_kernel(name));
        block_shape(block);
        fence_shared(shared);
        run_blocks(block, body);
    }
    running = "no kernel";
}
} // namespace cuda_emulator

void cuda_emulator_schedule(enum cuda_emulator_order order, uint64_t seed)
{
    std::lock_guard<std::mutex> guard(cuda_emulator::turn);
    cuda_emulator::schedule_order = order;
    cuda_emulator::seed = seed * 2654435761U + 1;
}

void cuda_emulator_on_finding(cuda_emulator_finding *handler, void *user)
{
    std::lock_guard<std::mutex> guard(cuda_emulator::turn);
    cuda_emulator::handler = handler;
    cuda_emulator::handler_user = user;
}

struct cuda_emulator_work cuda_emulator_work(void)
{
    std::lock_guard<std::mutex> guard(cuda_emulator::turn);
    return cuda_emulator::work;
}

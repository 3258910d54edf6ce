/* cuda_emulator.h - what a test asks of the emulator, and what its two halves ask of each other.
 *
 * run_grid runs a kernel: every thread of a block on a fiber of its own, one block after another,
 * on the calling thread. It may be called from several host threads; they take turns. It must not
 * be called from inside a kernel.
 *
 * A finding is one line: kernel, block, thread, what is wrong. It goes to the function set with
 * cuda_emulator_on_finding, after which the rest of the grid is dropped and run_grid returns; with
 * none set (the default) it is printed and the process aborts. */
#ifndef TEC_TESTS_CUDA_EMULATOR_H
#define TEC_TESTS_CUDA_EMULATOR_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who runs first, wherever the order of threads and blocks is open; when asynchronous copies land.
 * A missing barrier shows in at least one of them. */
enum cuda_emulator_order {
    CUDA_EMULATOR_FORWARD, /* the lowest warp as far as it can, then the next; copies land late */
    CUDA_EMULATOR_REVERSE, /* the highest lane, warp and block first; copies land at once */
    CUDA_EMULATOR_RANDOM,  /* by the seed: lanes, warps, blocks and copies */
    CUDA_EMULATOR_ORDERS
};

/* For the grids that follow; the default is FORWARD. */
void cuda_emulator_schedule(enum cuda_emulator_order order, uint64_t seed);

typedef void cuda_emulator_finding(void *user, const char *line);
void cuda_emulator_on_finding(cuda_emulator_finding *handler, void *user);

/* Grids run so far; threads run; switches between them. */
struct cuda_emulator_work {
    uint64_t grids, threads, switches;
};
struct cuda_emulator_work cuda_emulator_work(void);

#ifdef __cplusplus
}

#include <functional>

namespace cuda_emulator
{
/* Run a kernel now: `body` is one thread of it. `shared` is the bytes of shared memory that the
 * launch asks for, `cluster` how many blocks along z may meet. */
void run_grid(const char *name, dim3 grid, dim3 block, size_t shared, unsigned cluster,
              const std::function<void()> &body);

/* What cudaLaunchKernelEx calls: part of a capture, or queued on the stream. `function` identifies
 * the kernel; `name` lives as long as the process. */
cudaError_t launch(const cudaLaunchConfig_t &config, const char *name, const void *function,
                   std::function<void()> body);
} // namespace cuda_emulator
#endif

#endif

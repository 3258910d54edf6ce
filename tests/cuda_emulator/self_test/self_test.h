/* self_test.h - kernels that are right, and the same with one mistake each, for the emulator. */
#pragma once

#include "kernels/cuda/lang.cuh"

#include <string>

/* Runs a case's kernel with `broken` or without; true when what it computed is right. */
typedef bool trial(bool broken);

enum found_by {
    BY_VALUE,   /* wrong values under at least one schedule */
    BY_FINDING, /* a finding, whose text has `expect`, under every schedule */
    BY_SANITIZER,
};

struct emulator_case {
    const char *name;
    trial *run;
    enum found_by by;
    const char *expect;
};

extern const emulator_case barrier_cases[], memory_cases[], group_cases[], cluster_cases[];
extern const int n_barrier_cases, n_memory_cases, n_group_cases, n_cluster_cases;

/* A kernel of instructions.cu. */
void (*kernel_of_instructions())(int *);

/* Results of instructions against plain arithmetic; the name of the first that is wrong, or "". */
std::string check_instructions();

/* Start with a fresh launch, by clusters of so many blocks; waits. */
template <class... Params, class... Args>
static void run_clusters(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared,
                         unsigned cluster, Args... args)
{
    cuda_emulator::run_grid("kernel", grid, block, shared, cluster,
                            [=]() { kernel((Params)args...); });
}

template <class... Params, class... Args>
static void run_kernel(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared,
                       Args... args)
{
    run_clusters(kernel, grid, block, shared, 1, args...);
}

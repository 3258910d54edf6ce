/* self_test.cpp - the emulator finds the mistakes that it is for, and accuses nobody else. */
#include "tests/cuda_emulator/self_test/self_test.h"

#include <stdio.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static struct {
    int run, failed;
} tally;
static std::string finding;

static void found(void *, const char *line)
{
    if (finding.empty())
        finding = line;
}

static void result(bool ok, const char *name, const char *what, const std::string &why)
{
    tally.run++;
    tally.failed += !ok;
    printf("%sok %d - %s: %s\n", ok ? "" : "not ", tally.run, name, what);
    if (!ok)
        fprintf(stderr, "# %s: %s\n", name, why.c_str());
}

/* In a process of its own: whether it was ended by the sanitizer. */
static bool dies(const emulator_case &c)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(0);
        c.run(true);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status != 0;
}

static void check_right(const emulator_case &c)
{
    std::string why;
    for (int order = 0; order < CUDA_EMULATOR_ORDERS; order++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            finding.clear();
            cuda_emulator_schedule((cuda_emulator_order)order, seed);
            bool right = c.run(false);
            if (!finding.empty() || !right)
                why = "order " + std::to_string(order) + ": " +
                      (right ? finding : "wrong values " + finding);
        }
    result(why.empty(), c.name, "without it, nothing is found", why);
}

static void check_broken(const emulator_case &c)
{
    int wrong = 0, expected = 0, dead = 0;
    std::string last;
    for (int order = 0; order < CUDA_EMULATOR_ORDERS; order++) {
        finding.clear();
        cuda_emulator_schedule((cuda_emulator_order)order, 3);
        if (c.by == BY_SANITIZER) {
            dead += dies(c);
            continue;
        }
        wrong += !c.run(true) && finding.empty();
        expected += !finding.empty() && finding.find(c.expect) != std::string::npos;
        last = finding;
    }
    bool ok = c.by == BY_VALUE     ? wrong > 0
              : c.by == BY_FINDING ? expected == CUDA_EMULATOR_ORDERS
                                   : dead == CUDA_EMULATOR_ORDERS;
    result(ok, c.name, "is found", last.empty() ? "not found" : last);
}

static void check_cases(const emulator_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        check_right(cases[i]);
        check_broken(cases[i]);
    }
}

static __global__ void count_kernel(int *counts)
{
    wait_previous();
    release_next();
    __syncthreads();
    atomicAdd(counts + threadIdx.x, 1);
}

/* Host threads take turns. */
static void check_threads()
{
    enum { HOSTS = 3, RUNS = 50 };
    int counts[HOSTS][64] = {};
    std::thread hosts[HOSTS];
    finding.clear();
    for (int h = 0; h < HOSTS; h++)
        hosts[h] = std::thread([&counts, h]() {
            for (int i = 0; i < RUNS; i++)
                run_kernel(count_kernel, dim3(2), dim3(64), 0, (int *)counts[h]);
        });
    bool ok = true;
    for (int h = 0; h < HOSTS; h++) {
        hosts[h].join();
        for (int i = 0; i < 64; i++)
            ok = ok && counts[h][i] == 2 * RUNS;
    }
    result(ok && finding.empty(), "several host threads", "take turns", "counts are wrong");
}

/* A start under the name of that file. */
static cudaError_t start_as(const char *file, void (*kernel)(int *), cudaStream_t stream)
{
    return cuda_emulator::launch({dim3(1), dim3(1), 0, stream, nullptr, 0},
                                 cuda_emulator::kernel_of("launch, kernel", file),
                                 reinterpret_cast<const void *>(kernel), []() {});
}

/* barriers.cu starts what is in it; what is in another file, or not static, it does not. */
static void check_files()
{
    cudaStream_t stream;
    bool ok = cudaStreamCreate(&stream) == cudaSuccess;
    ok = ok && start_as("self_test/instructions.cu", kernel_of_instructions(), stream) == 0;
    unsigned long before = cuda_emulator::counters().reports;
    ok = ok && start_as("self_test/barriers.cu", kernel_of_instructions(), stream) ==
                   cudaErrorInvalidDeviceFunction;
    ok = ok &&
         start_as("self_test/barriers.cu", count_kernel, stream) == cudaErrorInvalidDeviceFunction;
    ok = ok && cuda_emulator::counters().reports == before + 2;
    ok = ok && cudaStreamSynchronize(stream) == cudaSuccess && cudaStreamDestroy(stream) == 0;
    result(ok, "a kernel of another file", "is not started", cuda_emulator_report());
}

int main()
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    cuda_emulator_on_finding(found, NULL);
    for (int order = 0; order < CUDA_EMULATOR_ORDERS; order++) {
        cuda_emulator_schedule((cuda_emulator_order)order, 1);
        finding.clear();
        std::string wrong = check_instructions();
        result(wrong.empty() && finding.empty(), "instructions", "give what they should",
               wrong + finding);
    }
    check_cases(barrier_cases, n_barrier_cases);
    check_cases(memory_cases, n_memory_cases);
    check_cases(group_cases, n_group_cases);
    check_cases(cluster_cases, n_cluster_cases);
    check_threads();
    check_files();
    printf("1..%d\n", tally.run);
    return tally.failed != 0;
}

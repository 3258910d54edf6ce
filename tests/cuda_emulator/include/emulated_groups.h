/* emulated_groups.h - the twin of kernels/cuda/ptx_groups.cuh: every name there, with the same
 * meaning. */
#pragma once

#include <emulated_thread.h>
#include <emulated_warp.h>

#define TEC_WARP_GROUPS 1

typedef unsigned long long barrier;

namespace cuda_emulator
{
void barrier_make(barrier *b, int arrivals);
void barrier_come(barrier *b, int bytes);
void barrier_sleep(barrier *b, int parity, const char *file, int line);
void copies_arrive(barrier *b);
void bulk_issue(void *to, const void *from, int bytes, barrier *b);

/* Products of a warp: one quarter of those of its group. `registers`: a lane's four words of bytes
 * in the place of a. */
struct product_ask {
    void *c;
    int n;
    bool fresh; /* what is in c does not count */
    unsigned long long a, b;
    const unsigned *registers;
};
unsigned long long matrix_of(const void *first, int along_k, int along_rows);
void product_issue(product_ask *ask, const char *file, int line);
void products_fence(const char *file, int line);
void products_close(const char *file, int line);
void products_settle(int left, const char *file, int line);
} // namespace cuda_emulator

static inline void barrier_init(barrier *b, int arrivals)
{
    cuda_emulator::barrier_make(b, arrivals);
}
static inline void barriers_ready()
{
}
static inline void barrier_arrive(barrier *b)
{
    cuda_emulator::barrier_come(b, 0);
}
static inline void barrier_arrive_written(barrier *b, EMULATOR_HERE)
{
    __syncwarp(~0U, file, line);
    if (threadIdx.x % 32 == 0)
        cuda_emulator::barrier_come(b, 0);
}
static inline void barrier_arrive_copied(barrier *b)
{
    cuda_emulator::copies_arrive(b);
}
static inline void barrier_expect(barrier *b, int bytes)
{
    cuda_emulator::barrier_come(b, bytes);
}
static inline void barrier_wait(barrier *b, int parity, EMULATOR_HERE)
{
    cuda_emulator::barrier_sleep(b, parity, file, line);
}
static inline void copy_bulk(void *to, const void *from, int bytes, barrier *b)
{
    cuda_emulator::bulk_issue(to, from, bytes, b);
}

static inline int cluster_blocks()
{
    return (int)cuda_emulator::cluster_size;
}
static inline void meet_cluster(EMULATOR_HERE)
{
    cuda_emulator::meet_cluster(file, line);
}

static inline unsigned long long shared_matrix(const void *first, int along_k, int along_rows)
{
    return cuda_emulator::matrix_of(first, along_k, along_rows);
}
static inline void products_begin(EMULATOR_HERE)
{
    cuda_emulator::products_fence(file, line);
}
static inline void products_commit(EMULATOR_HERE)
{
    cuda_emulator::products_close(file, line);
}
template <int N> static inline void products_wait(EMULATOR_HERE)
{
    cuda_emulator::products_settle(N, file, line);
}
template <int N> static inline void products_hold(float (&)[N][4])
{
}
template <int N> static inline void products_hold(int (&)[N][4])
{
}
template <int N> static inline void products_hold(unsigned (&)[N][4])
{
}
template <int N>
static inline void product_async(float (&c)[N][4], unsigned long long a, unsigned long long b,
                                 EMULATOR_HERE)
{
    static_assert(N == 1 || N == 2 || N == 4 || N == 8 || N == 16,
                  "ptx_groups.cuh has no such product");
    cuda_emulator::product_ask ask = {&c[0][0], N, false, a, b, NULL};
    cuda_emulator::product_issue(&ask, file, line);
}
template <bool FRESH, int N>
static inline void product_s8_async(int (&c)[N][4], const unsigned (&a)[4], unsigned long long b,
                                    EMULATOR_HERE)
{
    static_assert(N == 8 || N == 16, "ptx_groups.cuh has no such product");
    cuda_emulator::product_ask ask = {&c[0][0], N, FRESH, 0, b, a};
    cuda_emulator::product_issue(&ask, file, line);
}

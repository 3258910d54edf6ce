/* barriers.cu - waiting too little, for the wrong ones, or in a branch. */
#include "tests/cuda_emulator/self_test/self_test.h"

enum { THREADS = 128, WARPS = THREADS / WARP, ROUNDS = 6 };

/* Sums of 128 values, in several rounds that use the same memory again. */
enum sum_mistake { NONE, BEFORE_USE, AFTER_USE };
template <int Mistake> static __global__ void sum_kernel(float *y)
{
    wait_previous();
    release_next();
    __shared__ float part[WARPS];
    for (int round = 0; round < ROUNDS; round++) {
        float v = warp_sum((float)(threadIdx.x + (unsigned)round));
        if (threadIdx.x % WARP == 0)
            part[threadIdx.x / WARP] = v;
        if (Mistake != BEFORE_USE)
            __syncthreads();
        v = 0;
        for (int w = 0; w < WARPS; w++)
            v += part[w];
        if (Mistake != AFTER_USE)
            __syncthreads();
        y[(unsigned)round * THREADS + threadIdx.x] = v;
    }
}

template <int Mistake> static bool sum(bool broken)
{
    float y[ROUNDS * THREADS] = {};
    run_kernel(broken ? sum_kernel<Mistake> : sum_kernel<NONE>, dim3(1), dim3(THREADS), 0, y);
    for (int i = 0; i < ROUNDS * THREADS; i++)
        if (y[i] != (float)(THREADS * (THREADS - 1) / 2 + THREADS * (i / THREADS)))
            return false;
    return true;
}

/* Lanes of one warp hand values on through memory. */
template <bool Broken> static __global__ void neighbour_kernel(int *y)
{
    wait_previous();
    release_next();
    __shared__ int s[WARP];
    s[threadIdx.x] = (int)threadIdx.x;
    if (!Broken)
        __syncwarp();
    y[threadIdx.x] = s[(threadIdx.x + 1) % WARP];
}

static bool neighbour(bool broken)
{
    int y[WARP];
    run_kernel(broken ? neighbour_kernel<true> : neighbour_kernel<false>, dim3(1), dim3(WARP), 0,
               y);
    for (int i = 0; i < WARP; i++)
        if (y[i] != (i + 1) % WARP)
            return false;
    return true;
}

/* A chain of copies, two groups in flight. */
template <int Left, bool Barrier> static __global__ void stream_kernel(const float *x, float *y)
{
    wait_previous();
    release_next();
    TEC_SHARED(float, s);
    enum { STEPS = 8, BYTES16 = 4 };
    int t = (int)threadIdx.x;
    copy16_async(s + t * BYTES16, x + t * BYTES16, true);
    copy_commit();
    float sum = 0;
    for (int i = 0; i < STEPS; i++) {
        int next = (i + 1) % 2 * THREADS * BYTES16;
        if (i + 1 < STEPS)
            copy16_async(s + next + t * BYTES16, x + ((i + 1) * THREADS + t) * BYTES16, true);
        copy_commit();
        copy_wait<Left>();
        __syncthreads();
        sum += s[i % 2 * THREADS * BYTES16 + (t + 37) % THREADS * BYTES16 + 1];
        if (Barrier)
            __syncthreads();
    }
    copy_wait<0>(); /* nothing lands after the block */
    y[t] = sum;
}

template <int Left, bool Barrier> static bool stream(bool broken)
{
    enum { COUNT = 8 * THREADS * 4 };
    alignas(16) float x[COUNT];
    float y[THREADS] = {};
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i * 7 % 1000);
    run_kernel(broken ? stream_kernel<Left, Barrier> : stream_kernel<1, true>, dim3(1),
               dim3(THREADS), 2 * THREADS * 16, (const float *)x, (float *)y);
    for (int t = 0; t < THREADS; t++) {
        float sum = 0;
        for (int i = 0; i < 8; i++)
            sum += x[(i * THREADS + (t + 37) % THREADS) * 4 + 1];
        if (y[t] != sum)
            return false;
    }
    return true;
}

enum branch {
    STRAIGHT,
    SHUFFLE_IN_BRANCH,
    SHUFFLE_IN_TWO,
    EXIT_BEFORE_SHUFFLE,
    EXIT_AFTER_OTHERS_WAIT,
    ABSENT_SOURCE,
    NOT_NAMED,
    BARRIER_IN_BRANCH,
    BARRIER_IN_TWO,
    EXIT_BEFORE_BARRIER,
    HALF_WARP,
    NO_WAIT,
    ONE_NO_WAIT,
    NO_RELEASE
};

template <int B> static __device__ int shuffles(int lane)
{
    int v = lane;
    if (B == SHUFFLE_IN_BRANCH) {
        if (lane < 16)
            v = __shfl_xor_sync(ALL_LANES, v, 1);
    } else if (B == SHUFFLE_IN_TWO) {
        if (lane < 16)
            v = __shfl_xor_sync(ALL_LANES, v, 1);
        else
            v = __shfl_xor_sync(ALL_LANES, v, 1);
    } else if (B == ABSENT_SOURCE) {
        if (lane < 16)
            v = __shfl_xor_sync(0xffffU, v, 16);
    } else if (B == NOT_NAMED)
        v = __shfl_xor_sync(0xffffU, v, 1);
    else
        v = __shfl_xor_sync(ALL_LANES, v, 1);
    return v;
}

template <int B> static __device__ void barriers(int t)
{
    if (B == BARRIER_IN_TWO) {
        if (t < WARP)
            __syncthreads();
        else
            __syncthreads();
    } else if (B != BARRIER_IN_BRANCH || t < WARP)
        __syncthreads();
}

template <int B> static __global__ void branch_kernel(int *y)
{
    int t = (int)threadIdx.x, lane = t % WARP;
    if (B != NO_WAIT && (B != ONE_NO_WAIT || t != 5))
        wait_previous();
    if (B != NO_RELEASE)
        release_next();
    if (B == EXIT_BEFORE_SHUFFLE && lane == 0)
        return;
    if (B == EXIT_AFTER_OTHERS_WAIT && lane == 31)
        return;
    int v = shuffles<B>(lane);
    if (B == EXIT_BEFORE_BARRIER && t == 40)
        return;
    barriers<B>(t);
    y[t] = v;
}

template <int B> static bool branch(bool broken)
{
    enum { BLOCK = B == HALF_WARP ? 48 : 64 };
    int y[64] = {};
    run_kernel(broken ? branch_kernel<B> : branch_kernel<STRAIGHT>, dim3(1),
               dim3(broken ? BLOCK : 64), 0, (int *)y);
    for (int i = 0; i < 64; i++)
        if (y[i] != (i % WARP ^ 1))
            return false;
    return true;
}

/* What blocks hand to one another comes in no order. */
template <bool Broken> static __global__ void blocks_kernel(int *y)
{
    wait_previous();
    release_next();
    int b = (int)blockIdx.x;
    y[b] = Broken && b > 0 ? y[b - 1] + 1 : b;
}

static bool blocks(bool broken)
{
    int y[17] = {};
    run_kernel(broken ? blocks_kernel<true> : blocks_kernel<false>, dim3(17), dim3(1), 0, (int *)y);
    for (int i = 0; i < 17; i++)
        if (y[i] != i)
            return false;
    return true;
}

/* The last block to take a ticket adds up. */
template <bool Broken> static __global__ void ticket_kernel(int *part, int *ticket, int *sum)
{
    wait_previous();
    release_next();
    __shared__ int turn;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = (int)blockIdx.x + 1;
        __threadfence();
        turn = atomicAdd(ticket, 1);
    }
    __syncthreads();
    bool last = Broken ? blockIdx.x == gridDim.x - 1 : turn == (int)gridDim.x - 1;
    if (!last || threadIdx.x)
        return;
    for (int i = 0; i < (int)gridDim.x; i++)
        *sum += part[i];
    *ticket = 0;
}

static bool ticket(bool broken)
{
    int part[9] = {}, ticket = 0, sum = 0;
    run_kernel(broken ? ticket_kernel<true> : ticket_kernel<false>, dim3(9), dim3(32), 0,
               (int *)part, &ticket, &sum);
    return sum == 45 && ticket == 0;
}

const emulator_case barrier_cases[] = {
    {"no barrier before shared memory is read", sum<BEFORE_USE>, BY_VALUE, ""},
    {"no barrier before shared memory is used again", sum<AFTER_USE>, BY_VALUE, ""},
    {"no __syncwarp between a store and a load", neighbour, BY_VALUE, ""},
    {"a wait for one group too few", stream<2, true>, BY_VALUE, ""},
    {"no barrier before a stage is filled again", stream<1, false>, BY_VALUE, ""},
    {"a shuffle in a branch", branch<SHUFFLE_IN_BRANCH>, BY_FINDING, "a shuffle at"},
    {"a shuffle in both of two branches", branch<SHUFFLE_IN_TWO>, BY_FINDING, "meets lane"},
    {"a lane that ended is named", branch<EXIT_BEFORE_SHUFFLE>, BY_FINDING, "a shuffle at"},
    {"a lane that others wait for ends", branch<EXIT_AFTER_OTHERS_WAIT>, BY_FINDING,
     "a shuffle at"},
    {"a shuffle from a lane that takes no part", branch<ABSENT_SOURCE>, BY_FINDING, "reads lane"},
    {"a shuffle by a lane that is not named", branch<NOT_NAMED>, BY_FINDING, "without this one"},
    {"a barrier in a branch", branch<BARRIER_IN_BRANCH>, BY_FINDING, "__syncthreads at"},
    {"a barrier in both of two branches", branch<BARRIER_IN_TWO>, BY_FINDING,
     "meets __syncthreads"},
    {"a thread that ends before a barrier", branch<EXIT_BEFORE_BARRIER>, BY_FINDING,
     "__syncthreads at"},
    {"half a warp that names all of it", branch<HALF_WARP>, BY_FINDING, "never were"},
    {"no wait_previous", branch<NO_WAIT>, BY_FINDING, "without wait_previous"},
    {"no wait_previous in one thread", branch<ONE_NO_WAIT>, BY_FINDING, "without wait_previous"},
    {"no release_next", branch<NO_RELEASE>, BY_FINDING, "release_next"},
    {"a block that reads another one's result", blocks, BY_VALUE, ""},
    {"the block of the highest number taken for the last", ticket, BY_VALUE, ""},
};
const int n_barrier_cases = sizeof barrier_cases / sizeof barrier_cases[0];

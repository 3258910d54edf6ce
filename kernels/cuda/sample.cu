/* sample.cu - a token drawn: what the reference does, a block a row. Sums are of integers, so that
 * the order in which threads add does not show. */
#include "kernels/cuda/row.cuh"
#include "kernels/sample.h"

enum { THREADS = 256 };

struct chosen {
    uint32_t key;
    unsigned long long target;
};

static __device__ __forceinline__ unsigned long long weight_of(float x, float top, bool weighed)
{
    return weighed ? (unsigned long long)tec_sample_weight(x, top) : 1ULL;
}

/* Find the key as the reference's find_key does; the whole block takes part. */
static __device__ uint32_t find_key(const float *x, int cols, float top, uint32_t least,
                                    bool weighed, unsigned long long target,
                                    unsigned long long *sums, struct chosen *shared)
{
    uint32_t found = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        sums[threadIdx.x] = 0;
        __syncthreads();
        for (int c = (int)threadIdx.x; c < cols; c += THREADS) {
            uint32_t key = tec_sample_key(x[c]);
            if (key >= least && (uint64_t)key >> (shift + 8) == (uint64_t)found >> (shift + 8))
                atomicAdd(&sums[key >> shift & 255U], weight_of(x[c], top, weighed));
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = TEC_SAMPLE_DIGITS - 1;
            for (; digit > 0 && sums[digit] < target; digit--)
                target -= sums[digit];
            shared->key = found | (uint32_t)digit << shift;
            shared->target = target;
        }
        __syncthreads();
        found = shared->key;
        target = shared->target;
        __syncthreads();
    }
    return found;
}

static __device__ float largest(float v, float *room)
{
    room[threadIdx.x] = v;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if ((int)threadIdx.x < half)
            room[threadIdx.x] = fmaxf(room[threadIdx.x], room[threadIdx.x + half]);
        __syncthreads();
    }
    return room[0];
}

static __global__ void __launch_bounds__(THREADS) sample_kernel(struct tec_sample_args a)
{
    __shared__ unsigned long long sums[TEC_SAMPLE_DIGITS];
    __shared__ struct chosen shared;
    __shared__ float room[THREADS];
    wait_previous();
    release_next();
    int r = (int)blockIdx.x;
    if (r >= live_count(a.rows, a.max_rows))
        return;
    float *x = a.x + (size_t)r * (size_t)a.ld, t = a.temperature[r], top = -INFINITY;
    bool draws = t > 0.0F;
    for (int c = (int)threadIdx.x; c < a.cols; c += THREADS) {
        float v = a.round ? round_bf16(x[c]) : x[c];
        v = draws ? __fdiv_rn(v, t) : v;
        top = fmaxf(top, v);
        x[c] = v;
    }
    if (!draws)
        return;
    top = largest(top, room);
    uint32_t least = 0;
    if (a.top_k[r] > 0 && a.top_k[r] < a.cols)
        least = find_key(x, a.cols, top, 0, false, (unsigned long long)a.top_k[r], sums, &shared);
    if (a.top_p[r] < 1.0F) {
        if (threadIdx.x == 0)
            shared.target = 0;
        __syncthreads();
        unsigned long long mine = 0;
        for (int c = (int)threadIdx.x; c < a.cols; c += THREADS)
            mine += tec_sample_key(x[c]) >= least ? weight_of(x[c], top, true) : 0;
        atomicAdd(&shared.target, mine);
        __syncthreads();
        unsigned long long target =
            (unsigned long long)((double)a.top_p[r] * (double)shared.target);
        __syncthreads();
        uint32_t more =
            find_key(x, a.cols, top, least, true, target > 1 ? target : 1, sums, &shared);
        least = more > least ? more : least;
    }
    for (int c = (int)threadIdx.x; c < a.cols; c += THREADS)
        x[c] = tec_sample_key(x[c]) < least
                   ? -INFINITY
                   : x[c] + tec_sample_noise(a.seed + 2 * (size_t)r, a.pos[r], c);
}

void tec_cuda_sample(const struct tec_sample_args *a, struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, sample_kernel, dim3((unsigned)a->max_rows), dim3(THREADS), 0, *a);
}

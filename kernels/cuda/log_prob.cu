/* log_prob.cu - how likely chosen tokens are to follow a row: a block a row. The order of its sum
 * follows from the columns alone: thread by thread over the columns it takes in turn, then a tree
 * of the threads. */
#include "kernels/cuda/row.cuh"

enum { THREADS = 256 };

static __device__ __forceinline__ float logit(const float *x, int c, bool round)
{
    return round ? round_bf16(x[c]) : x[c];
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

static __device__ double total(double v, double *room)
{
    room[threadIdx.x] = v;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if ((int)threadIdx.x < half)
            room[threadIdx.x] += room[threadIdx.x + half];
        __syncthreads();
    }
    return room[0];
}

static __global__ void __launch_bounds__(THREADS) log_prob_kernel(struct tec_log_prob_args a)
{
    __shared__ float tops[THREADS];
    __shared__ double sums[THREADS];
    wait_previous();
    release_next();
    int r = (int)blockIdx.x;
    if (r >= live_count(a.rows, a.max_rows))
        return;
    const float *x = a.x + (size_t)r * (size_t)a.ld;
    int first = max(a.first[r], 0), last = min(a.first[r + 1], a.max_entries);
    if (first >= last)
        return;
    float top = -INFINITY;
    for (int c = (int)threadIdx.x; c < a.cols; c += THREADS)
        top = fmaxf(top, logit(x, c, a.round));
    top = largest(top, tops);
    double sum = 0.0;
    for (int c = (int)threadIdx.x; c < a.cols; c += THREADS)
        sum += (double)expf(__fsub_rn(logit(x, c, a.round), top));
    double all = (double)top + log(total(sum, sums));
    for (int e = first + (int)threadIdx.x; e < last; e += THREADS) {
        int id = a.id[e];
        bool there = id >= 0 && id < a.cols;
        a.y[e] = there ? (float)((double)logit(x, id, a.round) - all) : -INFINITY;
    }
}

void tec_cuda_log_prob(const struct tec_log_prob_args *a, struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, log_prob_kernel, dim3((unsigned)a->max_rows), dim3(THREADS), 0, *a);
}

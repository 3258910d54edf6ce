/* repetition_penalty.cu - tokens that were there before become less likely. */
#include "kernels/cuda/row.cuh"

/* A thread a word of the set: whoever has the newest token's word adds it, so no one waits. */
static __global__ void __launch_bounds__(ROW_THREADS)
    repetition_penalty_kernel(struct tec_repetition_penalty_args a)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, word = (int)(blockIdx.y * ROW_THREADS + threadIdx.x);
    if (r >= live_count(a.rows, a.max_rows) || word * 32 >= a.cols)
        return;
    uint32_t *at = a.used + (size_t)r * (size_t)a.words + word, used = *at;
    int token = a.token[r];
    if (token >= 0 && token < a.cols && token / 32 == word) {
        used |= (uint32_t)1 << (token % 32);
        *at = used;
    }
    float *x = a.x + (size_t)r * (size_t)a.ld + (size_t)word * 32;
    for (int i = 0; i < 32; i++)
        if ((used >> i & 1U) && word * 32 + i < a.cols)
            x[i] = x[i] < 0.0F ? __fmul_rn(x[i], a.penalty) : __fdiv_rn(x[i], a.penalty);
}

void tec_cuda_repetition_penalty(const struct tec_repetition_penalty_args *a,
                                 struct tec_cuda_launch *launch)
{
    int words = ceil_div(a->cols, 32);
    dim3 grid((unsigned)a->max_rows, (unsigned)ceil_div(words, ROW_THREADS));
    tec_cuda_start(launch, repetition_penalty_kernel, grid, dim3(ROW_THREADS), 0, *a);
}

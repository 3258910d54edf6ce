/* logits_mask.cu - what may not follow the place of a row is out: a thread a column looks for it
 * among the place's entries, which ascend. */
#include "kernels/cuda/row.cuh"

#include <float.h>

static __global__ void __launch_bounds__(ROW_THREADS)
    logits_mask_kernel(struct tec_logits_mask_args a)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = (int)(blockIdx.y * ROW_THREADS + threadIdx.x);
    if (r >= live_count(a.rows, a.max_rows) || c >= a.cols)
        return;
    int place = a.place[r];
    if (place < 0 || place >= a.trie.n)
        return;
    int low = a.trie.first[place], end = a.trie.first[place + 1], high = end;
    if (low >= high)
        return;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (a.trie.id[middle] < c)
            low = middle + 1;
        else
            high = middle;
    }
    float *x = a.x + (size_t)r * (size_t)a.ld + c;
    if (low >= end || a.trie.id[low] != c)
        *x = -INFINITY;
    else if (!(*x > -INFINITY))
        *x = -FLT_MAX;
}

void tec_cuda_logits_mask(const struct tec_logits_mask_args *a, struct tec_cuda_launch *launch)
{
    dim3 grid((unsigned)a->max_rows, (unsigned)ceil_div(a->cols, ROW_THREADS));
    tec_cuda_start(launch, logits_mask_kernel, grid, dim3(ROW_THREADS), 0, *a);
}

/* patchify.cu - pictures to rows of patches: bytes through a table of colours, floats as numbers.
 */
#include "kernels/cuda/lang.cuh"

enum { THREADS = 128 };

/* Without an index that only the run knows, which would put the three on the stack. */
static __device__ float of_channel(const float *of, int channel)
{
    return channel == 0 ? of[0] : channel == 1 ? of[1] : of[2];
}

/* A block writes one patch. */
static __global__ void __launch_bounds__(THREADS) patchify_kernel(struct tec_patchify_args a)
{
    wait_previous();
    release_next();
    int across = a.width / a.patch, patches = across * (a.height / a.patch);
    int area = a.patch * a.patch;
    int r = (int)blockIdx.x, picture = r / patches;
    if (picture >= live_count(a.count, a.max_pictures))
        return;
    int top = r % patches / across * a.patch, left = r % across * a.patch;
    size_t first = 3 * ((size_t)top * (size_t)a.width + (size_t)left);
    float *y = a.y + (size_t)r * (size_t)a.ldy;
    for (int c = (int)threadIdx.x; c < 3 * area; c += THREADS) {
        int channel = c / area, dy = c % area / a.patch, dx = c % a.patch;
        size_t at = first + 3 * ((size_t)dy * (size_t)a.width + (size_t)dx) + (size_t)channel;
        if (a.floats) {
            float x = reinterpret_cast<const float *>(a.pictures[picture])[at];
            y[c] = (x - of_channel(a.mean, channel)) / of_channel(a.std, channel);
        } else {
            y[c] = a.lut[256 * channel + a.pictures[picture][at]];
        }
    }
}

void tec_cuda_patchify(const struct tec_patchify_args *a, struct tec_cuda_launch *launch)
{
    int patches = a->width / a->patch * (a->height / a->patch);
    tec_cuda_start(launch, patchify_kernel, dim3((unsigned)(a->max_pictures * patches)),
                   dim3(THREADS), 0, *a);
}

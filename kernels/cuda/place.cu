/* place.cu - kept keys and values to their slots, keys rotated to their place.
 *
 * A thread takes one pair of one key head, or one element of a value (of a key too where nothing is
 * rotated), for its token of every place that its block takes. */
#include "kernels/cuda/rope.cuh"

enum { THREADS = 128, PLACES = 64 /* that are taken side by side, at most */ };

static __device__ __forceinline__ float kept(float v)
{
    return v;
}

static __device__ __forceinline__ float kept(bf16 v)
{
    return __bfloat162float(v);
}

/* One unit of one token of a place. */
template <class T>
static __device__ __forceinline__ void place_unit(const struct tec_place_args &a,
                                                  const struct tec_place &place, int t, int unit)
{
    int dim = a.head_dim, cols = a.kv_heads * dim, half = a.cos_sin ? dim / 2 : 0;
    int keys = half ? cols / 2 : cols;
    size_t from = (size_t)t * (size_t)cols, to = (size_t)(place.slot + t) * (size_t)cols;
    if (unit >= keys) {
        if (place.v && unit - keys < cols)
            static_cast<T *>(a.v)[to + (size_t)(unit - keys)] =
                static_cast<const T *>(place.v)[from + (size_t)(unit - keys)];
        return;
    }
    if (!place.k)
        return;
    int at = half ? unit / half * dim + unit % half : unit;
    const T *x = static_cast<const T *>(place.k) + from + at;
    T *y = static_cast<T *>(a.k) + to + at;
    if (!half) {
        *y = *x;
        return;
    }
    float2 angle = reinterpret_cast<const float2 *>(
        a.cos_sin)[(size_t)(place.pos + t) * (size_t)half + (size_t)(unit % half)];
    rotate(kept(x[0]), kept(x[half]), y, half, angle, false, false);
}

template <class T>
static __global__ void __launch_bounds__(THREADS) place_kv_kernel(struct tec_place_args a)
{
    wait_previous();
    release_next();
    int t = (int)blockIdx.x, unit = (int)(blockIdx.y * THREADS + threadIdx.x);
    int count = live_count(a.count, a.max_places);
    for (int i = (int)blockIdx.z; i < count; i += (int)gridDim.z) {
        struct tec_place place = a.places[i];
        if (t < place.tokens) /* t is below max_tokens */
            place_unit<T>(a, place, t, unit);
    }
}

template <class T>
static void place_kv(const struct tec_place_args *a, struct tec_cuda_launch *launch)
{
    int cols = a->kv_heads * a->head_dim, units = a->cos_sin ? cols / 2 + cols : 2 * cols;
    int places = a->max_places < PLACES ? a->max_places : PLACES;
    if (a->max_places <= 0 || a->max_tokens <= 0)
        return;
    dim3 grid((unsigned)a->max_tokens, (unsigned)ceil_div(units, THREADS), (unsigned)places);
    tec_cuda_start(launch, place_kv_kernel<T>, grid, dim3(THREADS), 0, *a);
}

void tec_cuda_place_kv_f32(const struct tec_place_args *a, struct tec_cuda_launch *launch)
{
    place_kv<float>(a, launch);
}

void tec_cuda_place_kv_bf16(const struct tec_place_args *a, struct tec_cuda_launch *launch)
{
    place_kv<bf16>(a, launch);
}

/* rope.cu - q | k | v rows: rotation by position, k and v into their slots. */
#include "kernels/cuda/rope.cuh"

enum { THREADS = 128 };

/* One element, or with the pair's other one `half` further, as they are or rounded. */
template <class T>
static __device__ __forceinline__ void move(const float *x, T *to, int half, bool round)
{
    put(to, round ? round_bf16(x[0]) : x[0]);
    if (half)
        put(to + half, round ? round_bf16(x[half]) : x[half]);
}

/* A thread takes one pair of one head of q, k or v: where nothing is rotated, one element. */
template <class T>
static __global__ void __launch_bounds__(THREADS) rope_kernel(struct tec_rope_args a)
{
    wait_previous();
    release_next();
    const bool rounds = sizeof(T) == sizeof(bf16);
    int r = (int)blockIdx.x, unit = (int)(blockIdx.y * THREADS + threadIdx.x);
    int half = a.cos_sin ? a.head_dim / 2 : 0, width = half ? half : a.head_dim;
    int queries = a.q_at >= 0 ? a.heads : 0;
    int head = unit / width, i = unit % width;
    if (r >= live_count(a.rows, a.max_rows) || head >= queries + 2 * a.kv_heads)
        return;
    const float *x = a.qkv + (size_t)r * (size_t)a.ld + i;
    float2 angle = make_float2(1.0F, 0.0F);
    if (half)
        angle = reinterpret_cast<const float2 *>(
            a.cos_sin)[(size_t)a.pos[r] * (size_t)half + (size_t)i];
    if (head < queries) {
        float *q = a.q + (size_t)r * (size_t)a.ldq + head * a.head_dim + i;
        x += a.q_at + head * a.head_dim;
        if (half)
            rotate(x[0], x[half], q, half, angle, rounds && a.round_q, rounds);
        else
            move(x, q, 0, rounds);
        return;
    }
    head -= queries;
    bool value = head >= a.kv_heads;
    head -= value ? a.kv_heads : 0;
    x += (value ? a.v_at : a.k_at) + head * a.head_dim;
    T *to = static_cast<T *>(value ? a.v : a.k) + head * a.head_dim + i +
            (size_t)a.slot[r] * (size_t)(a.kv_heads * a.head_dim);
    if (half && !value)
        rotate(x[0], x[half], to, half, angle, rounds && a.round_k, false);
    else
        move(x, to, half, false);
}

template <class T> static void rope(const struct tec_rope_args *a, struct tec_cuda_launch *launch)
{
    int width = a->cos_sin ? a->head_dim / 2 : a->head_dim;
    int heads = (a->q_at >= 0 ? a->heads : 0) + 2 * a->kv_heads;
    dim3 grid((unsigned)a->max_rows, (unsigned)ceil_div(heads * width, THREADS));
    tec_cuda_start(launch, rope_kernel<T>, grid, dim3(THREADS), 0, *a);
}

void tec_cuda_rope_f32(const struct tec_rope_args *a, struct tec_cuda_launch *launch)
{
    rope<float>(a, launch);
}

void tec_cuda_rope_bf16(const struct tec_rope_args *a, struct tec_cuda_launch *launch)
{
    rope<bf16>(a, launch);
}

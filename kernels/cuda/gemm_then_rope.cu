/* gemm_then_rope.cu - a product that is q | k | v: rotation by position, k and v into their slots.
 */
#include "kernels/cuda/chain.h"
#include "kernels/cuda/gemm_int8.cuh"
#include "kernels/cuda/gemm_then.cuh"
#include "kernels/cuda/rope.cuh"

/* The destination of a column of q | k | v: one of the three, and the column's index in it. */
struct home {
    enum { Q, K, V, NONE } of;
    int at;
};

static __device__ __forceinline__ struct home home_of(const tec_rope_args &a, int column)
{
    int kv = a.kv_heads * a.head_dim;
    if (a.q_at >= 0 && column >= a.q_at && column < a.q_at + a.heads * a.head_dim)
        return home{home::Q, column - a.q_at};
    if (column >= a.k_at && column < a.k_at + kv)
        return home{home::K, column - a.k_at};
    if (column >= a.v_at && column < a.v_at + kv)
        return home{home::V, column - a.v_at};
    return home{home::NONE, 0};
}

template <class T>
static __device__ __forceinline__ T *in_slot(const tec_rope_args &a, struct home home, int slot)
{
    return static_cast<T *>(home.of == home::V ? a.v : a.k) + home.at +
           (size_t)slot * (size_t)(a.kv_heads * a.head_dim);
}

/* Without a rotation, float32. */
struct store_heads : reads_nothing {
    enum : int { TOGETHER = 1 };
    struct tec_rope_args a;

    __device__ __forceinline__ int place_of(int r) const
    {
        return a.slot[r];
    }
    __device__ __forceinline__ nothing load(int, int, int) const
    {
        return nothing();
    }
    __device__ __forceinline__ void operator()(int slot, nothing, int r, int column, float v) const
    {
        struct home home = home_of(a, column);
        if (home.of == home::Q)
            a.q[(size_t)r * (size_t)a.ldq + (size_t)home.at] = v;
        else if (home.of != home::NONE)
            *in_slot<float>(a, home, slot) = v;
    }
};

/* Pairs of panels: 16 columns of the first half of a head and those that they rotate with; k and v
 * become bf16. */
struct store_rotated : reads_nothing {
    enum : bool { WIDE = false, WHOLE = false }; /* chain_rope_fits */
    struct tec_rope_args a;

    __host__ __device__ int pairs() const
    {
        return rope_pairs(&a);
    }
    __device__ int panel(int pair, int which) const
    {
        int head = pair / (a.head_dim / 32), queries = a.q_at >= 0 ? a.heads : 0, at = a.q_at;
        if (head >= queries) {
            head -= queries;
            at = head < a.kv_heads ? a.k_at : a.v_at;
            head -= head < a.kv_heads ? 0 : a.kv_heads;
        }
        at += head * a.head_dim + which * (a.head_dim / 2);
        return at / 16 + pair % (a.head_dim / 32);
    }
    struct place {
        int pos, slot;
    };
    __device__ __forceinline__ struct place place_of(int r) const
    {
        return {a.pos[r], a.slot[r]};
    }
    /* The angle of a column of q or k. */
    __device__ __forceinline__ float2 load(struct place place, int, int column) const
    {
        struct home home = home_of(a, column);
        size_t at = (size_t)place.pos * (size_t)(a.head_dim / 2);
        if (home.of != home::Q && home.of != home::K)
            return make_float2(1.0F, 0.0F);
        return reinterpret_cast<const float2 *>(a.cos_sin)[at + (size_t)(home.at % a.head_dim)];
    }
    __device__ __forceinline__ void operator()(struct place place, float2 angle, int r, int column,
                                               float lo, float hi) const
    {
        struct home home = home_of(a, column);
        int half = a.head_dim / 2;
        if (home.of == home::V) {
            put(in_slot<bf16>(a, home, place.slot), lo);
            put(in_slot<bf16>(a, home, place.slot) + half, hi);
        } else if (home.of == home::Q) {
            rotate(lo, hi, a.q + (size_t)r * (size_t)a.ldq + home.at, half, angle, a.round_q, true);
        } else {
            rotate(lo, hi, in_slot<bf16>(a, home, place.slot), half, angle, a.round_k, false);
        }
    }
};

/* Rotated rows to bf16 memory, others to float32: the two that models have. */
bool tec_cuda_gemm_then_rope_f32(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_rope_args *then, struct tec_cuda_launch *launch)
{
    return heads_go_along(a, norm, then) && start_singles(a, store_heads{{}, *then}, launch);
}

bool tec_cuda_gemm_then_rope_bf16(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                  const struct tec_rope_args *then, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    return rope_goes_along(a, then) && chain_rope_fits(a, then, &facts) &&
           start_pairs(a, norm, store_rotated{{}, *then}, launch);
}

bool tec_cuda_int8_then_rope_f32(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_rope_args *then, struct tec_cuda_launch *launch)
{
    return heads_go_along(a, norm, then) &&
           start_int8<false>(a, NULL, single_finish<store_heads>{*a, {{}, *then}}, launch);
}

bool tec_cuda_int8_then_rope_bf16(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                  const struct tec_rope_args *then, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    return rope_goes_along(a, then) && chain_rope_fits_bytes(a, &facts) &&
           start_int8<true>(a, norm, pair_finish<store_rotated>{*a, {{}, *then}}, launch);
}

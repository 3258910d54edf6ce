/* gemm_chain.cu - products with what stands in front of them and behind them. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/chain.h"
#include "kernels/cuda/gemm_kernel.cuh"
#include "kernels/cuda/rope.cuh"

struct store_gelu {
    struct tec_map_args a;

    __device__ __forceinline__ void operator()(int r, int column, float v) const
    {
        if (column >= a.cols)
            return;
        v = activation_gelu(v);
        a.y[(size_t)r * (size_t)a.ldy + (size_t)column] = a.round ? round_bf16(v) : v;
    }
};

/* Pairs of panels: 16 columns of the gate and those of up. */
struct store_gated {
    struct tec_gated_args a;

    __host__ __device__ int pairs() const
    {
        return ceil_div(a.cols, 16);
    }
    __device__ int panel(int pair, int which) const
    {
        return (which ? a.up_at : a.gate_at) / 16 + pair;
    }
    __device__ __forceinline__ void operator()(int r, int column, float gate, float up) const
    {
        column -= a.gate_at;
        if (column >= a.cols)
            return;
        float v = activation_gelu(gate) * up;
        a.y[(size_t)r * (size_t)a.ldy + (size_t)column] = a.round ? round_bf16(v) : v;
    }
};

/* Where a column of q | k | v belongs: which of them, and its place there. */
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
static __device__ __forceinline__ T *slot_of(const tec_rope_args &a, struct home home, int r)
{
    return static_cast<T *>(home.of == home::V ? a.v : a.k) + home.at +
           (size_t)a.slot[r] * (size_t)(a.kv_heads * a.head_dim);
}

/* Without a rotation, float32. */
struct store_heads {
    struct tec_rope_args a;

    __device__ __forceinline__ void operator()(int r, int column, float v) const
    {
        struct home home = home_of(a, column);
        if (home.of == home::Q)
            a.q[(size_t)r * (size_t)a.ldq + (size_t)home.at] = v;
        else if (home.of != home::NONE)
            *slot_of<float>(a, home, r) = v;
    }
};

/* Pairs of panels: 16 columns of the first half of a head and those that they rotate with; k and v
 * become bf16. */
struct store_rotated {
    struct tec_rope_args a;

    __host__ __device__ int pairs() const
    {
        return ((a.q_at >= 0 ? a.heads : 0) + 2 * a.kv_heads) * (a.head_dim / 32);
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
    __device__ __forceinline__ void operator()(int r, int column, float lo, float hi) const
    {
        struct home home = home_of(a, column);
        int half = a.head_dim / 2;
        if (home.of == home::V) {
            put(slot_of<bf16>(a, home, r), lo);
            put(slot_of<bf16>(a, home, r) + half, hi);
            return;
        }
        float2 angle = reinterpret_cast<const float2 *>(
            a.cos_sin)[(size_t)a.pos[r] * (size_t)half + (size_t)(home.at % a.head_dim)];
        if (home.of == home::Q)
            rotate(lo, hi, a.q + (size_t)r * (size_t)a.ldq + home.at, half, angle, a.round_q, true);
        else
            rotate(lo, hi, slot_of<bf16>(a, home, r), half, angle, a.round_k, false);
    }
};

template <class Then, class Args>
static bool start_pairs(const struct tec_gemm_args *a, const Args *then,
                        struct tec_cuda_launch *launch)
{
    struct product<pair_finish<Then>> product = {
        a, {*a, {*then}}, split_of(a->n, a->k), launch
    };
    if (!product.start_few())
        product.start_many();
    return true;
}

/* What only towers do, which have many rows. */
template <class Then, class Args>
static bool start_singles(const struct tec_gemm_args *a, const Args *then,
                          struct tec_cuda_launch *launch)
{
    struct product<single_finish<Then>> product = {
        a, {*a, {*then}}, split_of(a->n, a->k), launch
    };
    if (a->max_rows > 32)
        product.start_many();
    return a->max_rows > 32;
}

/* Nothing of x is written while other blocks may still read it. */
static bool apart(const struct tec_gemm_args *a, const float *to, int ld)
{
    uintptr_t x = reinterpret_cast<uintptr_t>(a->x), y = reinterpret_cast<uintptr_t>(to);
    size_t rows = (size_t)a->max_rows * sizeof(float);
    return y + rows * (size_t)ld <= x || x + rows * (size_t)a->ldx <= y;
}

static bool start_gelu(const struct tec_gemm_args *a, const struct tec_map_args *then,
                       struct tec_cuda_launch *launch)
{
    bool same = then->rows == a->rows && then->max_rows == a->max_rows && then->ldx == a->ldy;
    if (!same || then->cols > a->n || !apart(a, then->y, then->ldy))
        return false;
    return start_singles<store_gelu>(a, then, launch);
}

static bool start_gated(const struct tec_gemm_args *a, const struct tec_gated_args *then,
                        struct tec_cuda_launch *launch)
{
    bool same = then->rows == a->rows && then->max_rows == a->max_rows && then->ldx == a->ldy;
    bool whole = then->gate_at % 16 == 0 && then->up_at % 16 == 0 &&
                 then->gate_at + then->cols <= a->n && then->up_at + then->cols <= a->n;
    if (!same || !whole || !apart(a, then->y, then->ldy))
        return false;
    return start_pairs<store_gated>(a, then, launch);
}

/* Rotated rows to bf16 memory, others to float32: the two that models have. */
static bool start_rope(const struct tec_gemm_args *a, const struct tec_rope_args *then, bool bf16,
                       struct tec_cuda_launch *launch)
{
    bool same = then->rows == a->rows && then->max_rows == a->max_rows && then->ld == a->ldy;
    if (!same || (then->q_at >= 0 && !apart(a, then->q, then->ldq)))
        return false;
    if (!then->cos_sin)
        return !bf16 && start_singles<store_heads>(a, then, launch);
    int kv = then->kv_heads * then->head_dim, q = then->heads * then->head_dim;
    bool queries = then->q_at < 0 || (then->q_at % 16 == 0 && then->q_at + q <= a->n);
    bool whole = then->head_dim % 32 == 0 && then->k_at % 16 == 0 && then->v_at % 16 == 0 &&
                 then->k_at + kv <= a->n && then->v_at + kv <= a->n;
    return bf16 && queries && whole && start_pairs<store_rotated>(a, then, launch);
}

bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch)
{
    if (chain->norm || chain->gemm->add)
        return false;
    if (chain->gelu)
        return start_gelu(chain->gemm, chain->gelu, launch);
    if (chain->gated)
        return start_gated(chain->gemm, chain->gated, launch);
    return chain->rope && start_rope(chain->gemm, chain->rope, chain->rope_bf16, launch);
}

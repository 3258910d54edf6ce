/* chain_rules.h - which commands in a row are done by one kernel: a product with what stands
 * directly in front of it and behind it. Plain C, for the device and for the model of kernels
 * (kernels/grids.h). Bytes are those of the commands one by one. */
#ifndef TEC_KERNELS_CUDA_CHAIN_RULES_H
#define TEC_KERNELS_CUDA_CHAIN_RULES_H

#include "kernels/args.h"
#include "kernels/cuda/gemm_int8_choice.h"

enum tec_cuda_then {
    TEC_CUDA_THEN_NOTHING,
#define THEN(kernel, args, input) TEC_CUDA_THEN_##kernel,
#include "kernels/cuda/chains.def"
#undef THEN
    TEC_CUDA_THEN_COUNT
};

/* A product of norm's output, then one of chains.def. What lies between them is not written. */
struct tec_cuda_chain {
    const struct tec_norm_args *norm; /* rmsnorm, of few rows; NULL = none */
    const struct tec_gemm_args *gemm;
    bool int8; /* gemm is one of gemm_int8, else of gemm_bf16 */
    enum tec_cuda_then then;
    const void *args; /* of what is behind */
    bool left;        /* the product in front of the norm has left its rows' sums of squares */
    bool leaves;      /* gemm does, and is alone: those of its y */
};

/* Whether the product is multiplied by warp groups. */
static inline bool chain_groups(const struct tec_cuda_chain *chain, const struct tec_cuda_facts *f)
{
    return f->groups && !chain->int8;
}

/* Whether the digits of the product's rows are written first, by a kernel of its own. */
static inline bool chain_digits(const struct tec_cuda_chain *chain, const struct tec_cuda_facts *f)
{
    return chain->int8 && int8_choose(chain->gemm, f).part > 0;
}

/* The most rows of a product that begins with its norm. Where no sums are left, its blocks measure
 * all rows again, which by warp groups takes longer than a norm of its own where there are many:
 * with 51 rows on an H100. */
static inline int chain_norm_rows(bool left, bool groups)
{
    return groups && !left ? 16 : 64;
}

/* True if the output does not overlap x, which other blocks may still read. */
static inline bool chain_apart(const struct tec_gemm_args *a, const float *to, int ld)
{
    uintptr_t x = (uintptr_t)a->x, y = (uintptr_t)to;
    size_t rows = (size_t)a->max_rows * sizeof(float);
    return y + rows * (size_t)ld <= x || x + rows * (size_t)a->ldx <= y;
}

/* Whether the product may begin with the norm; vectors and rows move as quads. */
static inline bool chain_begins(const struct tec_cuda_chain *chain, bool left,
                                const struct tec_cuda_facts *f)
{
    const struct tec_norm_args *norm = chain->norm;
    const struct tec_gemm_args *a = chain->gemm;
    bool same = a->x == norm->y && a->ldx == norm->ldy && a->rows == norm->rows &&
                a->max_rows == norm->max_rows && a->k == norm->cols;
    bool quads = norm->cols % 4 == 0 && floats_aligned(norm->x, norm->ldx) &&
                 floats_aligned(norm->weight, 0) && floats_aligned(norm->bias, 0) &&
                 floats_aligned(norm->fixed_weight, 0) && floats_aligned(norm->fixed_bias, 0);
    return same && quads && a->max_rows <= chain_norm_rows(left, chain_groups(chain, f)) &&
           !chain_digits(chain, f);
}

/* Whether the product `first`, which adds to its y, leaves the sums of squares of that for the norm
 * that `next` begins with: of whole panels. What is left is written, read again, and waited for;
 * few rows are measured by the next product while its first weights come. From how many numbers on
 * it is worth it is what a model says (doc/roofline.md): none was measured. */
static inline bool chain_left(const struct tec_cuda_chain *first, const struct tec_cuda_chain *next,
                              const struct tec_cuda_facts *f)
{
    const struct tec_gemm_args *a = first->gemm;
    const struct tec_norm_args *norm = next->norm;
    enum { MANY_ROWS = 17, MANY = 8192, MANY_OF_GROUPS = 24576 };
    bool same = a->add && a->y == norm->x && a->ldy == norm->ldx && a->rows == norm->rows &&
                a->max_rows == norm->max_rows && a->n == norm->cols;
    size_t numbers = (size_t)a->max_rows * (size_t)a->n;
    bool worth = a->max_rows >= MANY_ROWS ||
                 numbers >= (size_t)(chain_groups(next, f) ? MANY_OF_GROUPS : MANY);
    return same && worth && numbers / 16 * sizeof(float) <= f->squares_size &&
           !chain_digits(first, f) && chain_begins(next, true, f);
}

/* --- what goes along behind a product: the condition, and the pairs of panels that it takes ----
 */

static TEC_ANYWHERE inline int gated_pairs(const struct tec_gated_args *then)
{
    return ceil_div(then->cols, 16);
}

static inline bool gated_goes_along(const struct tec_gemm_args *a,
                                    const struct tec_gated_args *then)
{
    bool same = then->rows == a->rows && then->max_rows == a->max_rows && then->ldx == a->ldy;
    bool whole = then->gate_at % 16 == 0 && then->up_at % 16 == 0 &&
                 then->gate_at + then->cols <= a->n && then->up_at + then->cols <= a->n;
    return same && whole && chain_apart(a, then->y, then->ldy);
}

/* What stands behind products of vision towers alone: those have many rows, and no rmsnorm that a
 * product could begin with. */
static inline bool chain_is_of_tower(const struct tec_gemm_args *a,
                                     const struct tec_norm_args *norm)
{
    return a->max_rows > 32 && !norm;
}

static inline bool gelu_goes_along(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                   const struct tec_map_args *then)
{
    bool same = then->rows == a->rows && then->max_rows == a->max_rows && then->ldx == a->ldy;
    return chain_is_of_tower(a, norm) && same && then->cols <= a->n &&
           chain_apart(a, then->y, then->ldy);
}

static inline bool rope_reads(const struct tec_gemm_args *a, const struct tec_rope_args *then)
{
    bool same = then->rows == a->rows && then->max_rows == a->max_rows && then->ld == a->ldy;
    return same && (then->q_at < 0 || chain_apart(a, then->q, then->ldq));
}

static inline bool heads_go_along(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                  const struct tec_rope_args *then)
{
    return chain_is_of_tower(a, norm) && rope_reads(a, then) && !then->cos_sin;
}

static TEC_ANYWHERE inline int rope_pairs(const struct tec_rope_args *then)
{
    return ((then->q_at >= 0 ? then->heads : 0) + 2 * then->kv_heads) * (then->head_dim / 32);
}

/* Whether a product of bf16 weights has a tile that goes together with rope_bf16 behind it. By warp
 * groups one of 17 to 128 rows has the registers for the angles of few rows at a time: with 51 rows
 * both in one took 41 us, one after the other 23 (H100). In a cluster a block has 8 rows at a time.
 */
static inline bool chain_rope_fits(const struct tec_gemm_args *a, const struct tec_rope_args *then,
                                   const struct tec_cuda_facts *f)
{
    if (!f->groups || a->max_rows <= 16 || a->max_rows > 128)
        return true;
    struct gemm_ask ask = {a->n, a->k,  a->max_rows, 2 * rope_pairs(then), true,
                           true, false, false,       a->rounded != 0};
    struct gemm_choice c = gemm_choose(&ask, f);
    return gemm_cluster(&c, f) > 1;
}

/* The same of 8-bit weights: by warp groups one of up to 128 rows has no more registers than that,
 * and no clusters. That it is slow there, too, was not measured. */
static inline bool chain_rope_fits_bytes(const struct tec_gemm_args *a,
                                         const struct tec_cuda_facts *f)
{
    return !f->groups || a->max_rows > 128 || int8_choose(a, f).part == 0;
}

static inline bool rope_goes_along(const struct tec_gemm_args *a, const struct tec_rope_args *then)
{
    int kv = then->kv_heads * then->head_dim, q = then->heads * then->head_dim;
    bool queries = then->q_at < 0 || (then->q_at % 16 == 0 && then->q_at + q <= a->n);
    bool whole = then->head_dim % 32 == 0 && then->k_at % 16 == 0 && then->v_at % 16 == 0 &&
                 then->k_at + kv <= a->n && then->v_at + kv <= a->n;
    return rope_reads(a, then) && then->cos_sin && queries && whole;
}

#endif

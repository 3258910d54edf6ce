/* chain_terms.h - when a kernel leaves its rows as the bf16 terms, or the digits of 8 bits, that
 * the product behind it reads, in place of float32: plain C, for the device and for the model of
 * kernels (kernels/grids.h).
 *
 * Products of many rows by warp groups read x as terms, which row_terms writes for them. Where the
 * product alone reads what the kernel in front makes, that kernel writes the terms itself. A term
 * is a function of the float32 value, so bytes are the same. Both kernels stand next to each other
 * on one stream: nothing comes between that could write where the terms lie. */
#ifndef TEC_KERNELS_CUDA_CHAIN_TERMS_H
#define TEC_KERNELS_CUDA_CHAIN_TERMS_H

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/chain_ask.h"
#include "kernels/cuda/chain_list.h"

/* x as terms, ready for a product; x NULL: it is float32. They lie in the memory for the terms of
 * rows, or in that for partial sums: products of many rows need no sums there. Or as digits, of so
 * many rows, in the former. */
struct chain_handed {
    const float *x;
    int terms, k;
    bool among_sums;
    int digits, rows; /* 0: bf16 terms */
};

/* Rows that a command makes. `behind`: in one kernel with the product in front of it. */
struct chain_rows {
    const float *y;
    const int *rows;
    int max_rows, ld, cols;
    bool behind;
};

/* Whether one thread block, on tensor cores, has all keys of its rows, which it stores at the end,
 * two columns at a time. */
static inline bool chain_attends_whole(const struct tec_attention_args *a, bool bf16,
                                       const struct tec_cuda_facts *f)
{
    if (a->max_rows < 1 || a->head_dim % 2 != 0 || attention_is_wide(a))
        return false;
    struct attention_choice c = bf16 ? attention_choose_bf16(a, f) : attention_choose_f32(a, f);
    return (bf16 || c.terms) && c.plan.splits == 1;
}

/* y NULL: no kernel leaves what this command makes as terms. */
static inline struct chain_rows chain_rows_of(const struct tec_capture_step *c,
                                              const struct tec_cuda_facts *f)
{
    struct chain_rows made = {NULL, NULL, 0, 0, 0, false};
    if (c->kernel == TEC_KERNEL_rmsnorm || c->kernel == TEC_KERNEL_layernorm) {
        const struct tec_norm_args *a = c->args;
        made = (struct chain_rows){a->y, a->rows, a->max_rows, a->ldy, a->cols, false};
    } else if (c->kernel == TEC_KERNEL_attention_bf16 || c->kernel == TEC_KERNEL_attention_f32) {
        const struct tec_attention_args *a = c->args;
        if (chain_attends_whole(a, c->kernel == TEC_KERNEL_attention_bf16, f))
            made = (struct chain_rows){a->out, a->rows, a->max_rows, a->ldo, a->heads * a->head_dim,
                                       false};
    } else if (c->kernel == TEC_KERNEL_gelu_mul || c->kernel == TEC_KERNEL_silu_mul) {
        const struct tec_gated_args *a = c->args;
        made = (struct chain_rows){a->y, a->rows, a->max_rows, a->ldy, a->cols, true};
    } else if (c->kernel == TEC_KERNEL_gelu || c->kernel == TEC_KERNEL_gelu_erf) {
        const struct tec_map_args *a = c->args;
        made = (struct chain_rows){a->y, a->rows, a->max_rows, a->ldy, a->cols, true};
    }
    return made;
}

/* The product at `at`, with what is behind it if that goes along (*together). Bytes of its x as
 * terms if it reads them, and all rows at once; else 0: as with so few rows that a norm may be in
 * the product, which then has the norm's x as float32. */
static inline size_t chain_terms_read(const struct tec_capture *capture, int at,
                                      const struct tec_cuda_facts *f, bool *together, int *terms)
{
    struct tec_cuda_chain chain = {.gemm = NULL};
    struct gemm_ask ask;
    int n = chain_product(capture, at, &chain);
    if (n == 0 || chain.int8 || chain.gemm->max_rows <= chain_norm_rows(true, f->groups))
        return 0;
    *together = n > 1 && chain_ask(&chain, f, &ask);
    if (!*together)
        ask = chain_plain_ask(chain.gemm, false);
    enum gemm_tile_id tile = gemm_choose(&ask, f).tile;
    if (tile == GEMM_NONE || gemm_tiles[tile].terms != 0 || ask.rows > terms_part(&ask, f))
        return 0;
    *terms = ask.rounded ? 1 : 2;
    return terms_bytes(ask.rows, *terms, ask.k);
}

/* Whether the command at `at` is the one that alone reads what the one before it makes. */
static inline bool chain_follows(const struct tec_capture *capture, int at)
{
    const struct tec_capture_step *c = &capture->commands[at];
    return at > 0 && c[-1].kind == TEC_RUN && chain_next(capture, at - 1) == c && !c->joins &&
           c->branch == c[-1].branch;
}

/* Whether a product reads just what was made. */
static inline bool chain_reads(const struct tec_gemm_args *a, const struct chain_rows *made)
{
    return a->x == made->y && a->rows == made->rows && a->max_rows == made->max_rows &&
           a->ldx == made->ld && a->k == made->cols;
}

/* What a norm leaves for a product of many rows with 8-bit weights, in whole groups of k. */
static inline struct chain_handed chain_handed_digits(const struct tec_capture_step *c,
                                                      const struct tec_cuda_facts *f)
{
    const struct chain_handed none = {NULL, 0, 0, false, 0, 0};
    const struct tec_gemm_args *a = c->args;
    struct digits_choice choice = int8_choose(a, f);
    struct chain_rows made = chain_rows_of(c - 1, f);
    bool norm = c[-1].kernel == TEC_KERNEL_rmsnorm || c[-1].kernel == TEC_KERNEL_layernorm;
    if (!norm || !chain_reads(a, &made) || a->k % TEC_INT8_GROUP != 0 || a->max_rows > choice.part)
        return none;
    return (struct chain_handed){a->x, 0, a->k, false, choice.form.digits, a->max_rows};
}

/* What the kernel in front of the command at `at` leaves for it. A finish leaves its rows where
 * those that its own product reads are not: that one may have them from in front, too. */
static inline struct chain_handed chain_handed_to(const struct tec_capture *capture, int at,
                                                  const struct tec_cuda_facts *f)
{
    const struct chain_handed none = {NULL, 0, 0, false, 0, 0};
    int terms = 0, terms_before = 0;
    bool together = false;
    if (at >= capture->n || !chain_follows(capture, at))
        return none;
    const struct tec_capture_step *c = &capture->commands[at];
    if (c->kind == TEC_RUN && c->kernel == TEC_KERNEL_gemm_int8)
        return chain_handed_digits(c, f);
    if (!f->groups)
        return none;
    struct chain_rows made = chain_rows_of(c - 1, f);
    size_t size = made.y ? chain_terms_read(capture, at, f, &together, &terms) : 0;
    if (size == 0)
        return none;
    const struct tec_gemm_args *a = c->args;
    if (!chain_reads(a, &made) || a->k % 16 != 0)
        return none;
    bool among_sums = size <= f->partials_size;
    if (made.behind) {
        if (!chain_follows(capture, at - 1) ||
            chain_terms_read(capture, at - 2, f, &together, &terms_before) == 0 || !together)
            return none;
        among_sums = !chain_handed_to(capture, at - 2, f).among_sums;
        if (among_sums && size > f->partials_size)
            return none;
    }
    return (struct chain_handed){a->x, terms, a->k, among_sums, 0, 0};
}

/* Commands that a chain does. */
static inline int chain_length(const struct tec_cuda_chain *chain)
{
    return 1 + (chain->norm != NULL) + (chain->then != TEC_CUDA_THEN_NOTHING);
}

#endif

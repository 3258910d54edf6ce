/* rope.c - the reference rope kernels: rotates queries and keys by position, stores keys and values
 * in slots. */
#include "kernels/ref/ref.h"
#include "kernels/ref/rotate.h"

/* Element d of a head, rotated; if angle is NULL, the element unchanged (but rounded as asked). */
static float rotated(const float *head, const float *angle, int d, int dim,
                     struct tec_rounding round)
{
    float other = angle ? head[d < dim / 2 ? d + dim / 2 : d - dim / 2] : 0;
    return tec_rotated(head[d], other, angle, d, dim, round);
}

static const float *angle_of(const struct tec_rope_args *a, int row)
{
    return a->cos_sin ? a->cos_sin + (size_t)a->pos[row] * (size_t)(a->head_dim / 2) * 2 : NULL;
}

static void rotate_queries(const struct tec_rope_args *a, int row, struct tec_rounding round)
{
    const float *x = a->qkv + (size_t)row * (size_t)a->ld + a->q_at;
    float *q = a->q + (size_t)row * (size_t)a->ldq;
    for (int c = 0; c < a->heads * a->head_dim; c++) {
        int d = c % a->head_dim;
        q[c] = rotated(x + (c - d), angle_of(a, row), d, a->head_dim, round);
    }
}

void tec_rope_f32_ref(const struct tec_rope_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    int dim = a->head_dim;
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = a->qkv + (size_t)r * (size_t)a->ld;
        size_t at = (size_t)a->slot[r] * (size_t)(a->kv_heads * dim);
        if (a->q_at >= 0)
            rotate_queries(a, r, (struct tec_rounding){0, 0});
        for (int c = 0; c < a->kv_heads * dim; c++) {
            const float *head = x + a->k_at + (c - c % dim);
            ((float *)a->k)[at + (size_t)c] =
                rotated(head, angle_of(a, r), c % dim, dim, (struct tec_rounding){0, 0});
            ((float *)a->v)[at + (size_t)c] = x[a->v_at + c];
        }
    }
}

void tec_rope_bf16_ref(const struct tec_rope_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    int dim = a->head_dim;
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = a->qkv + (size_t)r * (size_t)a->ld;
        size_t at = (size_t)a->slot[r] * (size_t)(a->kv_heads * dim);
        if (a->q_at >= 0)
            rotate_queries(a, r, (struct tec_rounding){a->round_q, 1});
        for (int c = 0; c < a->kv_heads * dim; c++) {
            const float *head = x + a->k_at + (c - c % dim);
            float k =
                rotated(head, angle_of(a, r), c % dim, dim, (struct tec_rounding){a->round_k, 1});
            ((uint16_t *)a->k)[at + (size_t)c] = tec_bf16_bits(k);
            ((uint16_t *)a->v)[at + (size_t)c] = tec_bf16_bits(x[a->v_at + c]);
        }
    }
}

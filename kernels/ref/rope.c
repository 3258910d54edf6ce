#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

static float rounded(float x, int round)
{
    return round ? tec_bf16_round(x) : x;
}

/* What to round: values before the rotation, and after it. */
struct rounding {
    int before, after;
};

/* Element d of a head, rotated; angle NULL leaves it where it is. */
static float rotated(const float *head, const float *angle, int d, int dim, struct rounding round)
{
    int half = dim / 2, i = d % (half ? half : 1);
    float x = rounded(head[d], round.before);
    if (!angle)
        return rounded(x, round.after);
    float c = angle[(size_t)i * 2], s = angle[(size_t)i * 2 + 1];
    if (d < half)
        return rounded(x * c - rounded(head[d + half], round.before) * s, round.after);
    return rounded(x * c + rounded(head[d - half], round.before) * s, round.after);
}

static const float *angle_of(const struct tec_rope_args *a, int row)
{
    return a->cos_sin ? a->cos_sin + (size_t)a->pos[row] * (size_t)(a->head_dim / 2) * 2 : NULL;
}

static void rotate_queries(const struct tec_rope_args *a, int row, struct rounding round)
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
            rotate_queries(a, r, (struct rounding){0, 0});
        for (int c = 0; c < a->kv_heads * dim; c++) {
            const float *head = x + a->k_at + (c - c % dim);
            ((float *)a->k)[at + (size_t)c] =
                rotated(head, angle_of(a, r), c % dim, dim, (struct rounding){0, 0});
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
            rotate_queries(a, r, (struct rounding){a->round_q, 1});
        for (int c = 0; c < a->kv_heads * dim; c++) {
            const float *head = x + a->k_at + (c - c % dim);
            float k = rotated(head, angle_of(a, r), c % dim, dim, (struct rounding){a->round_k, 1});
            ((uint16_t *)a->k)[at + (size_t)c] = tec_bf16_bits(k);
            ((uint16_t *)a->v)[at + (size_t)c] = tec_bf16_bits(x[a->v_at + c]);
        }
    }
}

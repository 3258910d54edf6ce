/* mass.c - the reference attention_mass kernels: the weights of attention, summed over ranges of
 * keys.
 *
 * The keys of a head are walked twice in float64: the first walk finds the largest score and the
 * sum, the second adds each key's weight to its range. The sum of a range over the heads is
 * float32, with heads in order. */
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

#include <math.h>

struct head {
    const struct tec_mass_args *mass;
    struct tec_attention_args a;
    int row, head, bf16;
    double top, sum;
    int range;    /* the range that keys are counted to */
    double share; /* the sum of the weights of its keys so far */
};

static double score(const struct head *h, int slot)
{
    const struct tec_attention_args *a = &h->a;
    const float *q = a->q + (size_t)h->row * (size_t)a->ldq + (size_t)h->head * (size_t)a->head_dim;
    size_t kv_head = (size_t)(h->head / (a->heads / a->kv_heads));
    size_t at = ((size_t)slot * (size_t)a->kv_heads + kv_head) * (size_t)a->head_dim;
    double dot = 0;
    for (int d = 0; d < a->head_dim; d++) {
        float k = h->bf16 ? tec_bf16_float(((const uint16_t *)a->k)[at + (size_t)d])
                          : ((const float *)a->k)[at + (size_t)d];
        dot += (double)q[d] * (double)k;
    }
    double scaled = (double)a->scale * dot;
    return a->cap > 0 ? (double)a->cap * tanh(scaled / (double)a->cap) : scaled;
}

static void add_to_sum(struct head *h, int key, double score)
{
    (void)key;
    double top = score > h->top ? score : h->top;
    h->sum = h->sum * exp(h->top - top) + exp(score - top);
    h->top = top;
}

/* Add the sum of a complete range to the result and go on to the next range. */
static void close_range(struct head *h)
{
    h->mass->out[(size_t)h->row * (size_t)h->a.ldo + (size_t)h->range] += (float)h->share;
    h->share = 0;
    h->range++;
}

static void add_to_range(struct head *h, int key, double score)
{
    int n = tec_live(h->mass->n_ranges, h->mass->max_ranges);
    while (h->range < n && key >= h->mass->ends[h->range])
        close_range(h);
    if (h->range < n)
        h->share += exp(score - h->top) / h->sum;
}

static void each_key(struct head *h, void (*add)(struct head *h, int key, double score))
{
    struct tec_attention_walk walk = tec_attention_walk_init(&h->a, h->a.row_seq[h->row]);
    int visible = h->a.visible[h->row], first = tec_attention_first(&h->a, visible), slot;
    for (int key = 0; key < visible && tec_attention_walk_next(&walk, 1, &slot) == 1; key++)
        if (key >= first)
            add(h, key, score(h, slot));
}

static void add_row(const struct tec_mass_args *a, int row, int bf16)
{
    int n = tec_live(a->n_ranges, a->max_ranges);
    for (int s = 0; s < n; s++)
        a->out[(size_t)row * (size_t)a->ldo + (size_t)s] = 0;
    for (int i = 0; i < a->heads; i++) {
        struct head h = {.mass = a,
                         .a = tec_mass_attention(a),
                         .row = row,
                         .head = i,
                         .bf16 = bf16,
                         .top = -HUGE_VAL};
        each_key(&h, add_to_sum);
        each_key(&h, add_to_range);
        if (h.range < n)
            close_range(&h);
    }
}

static void add_rows(const struct tec_mass_args *a, struct tec_part part, int bf16)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++)
        add_row(a, r, bf16);
}

void tec_attention_mass_f32_ref(const struct tec_mass_args *a, struct tec_part part)
{
    add_rows(a, part, 0);
}

void tec_attention_mass_bf16_ref(const struct tec_mass_args *a, struct tec_part part)
{
    add_rows(a, part, 1);
}

/* attention_whole.c - attention over whole numbers of 13 bits, for processors with AVX-512 and
 * VNNI.
 *
 * A row of a query, a key, a value, or of a query's weights in a block of keys is whole numbers
 * times a unit of its own, its largest magnitude LIMIT_LONG or LIMIT_SHORT of them: a sum of
 * products is then exact in 32 bits, whoever adds it up. A value's unit is multiplied to its weight
 * before that is rounded, so nothing of a row depends on keys that it does not see. Softmax is that
 * of float32, with powers of two. A unit that is not finite is infinite, with numbers that are all
 * 0: so is every product with it NaN.
 *
 * The bytes of a query do not depend on its company, as those of attention.inc do not. Attention
 * that may not be rounded so, or is of another kind, goes the way of attention.c. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/whole.h"

#include "kernels/unroll.h"
#include "kernels/vector/runs.inc"

#include "kernels/vector/attend.inc"

enum {
    LIMIT_LONG = 8191,  /* 64 * 8191 * 4095 < 2^31: weights, and queries of up to 64 elements */
    LIMIT_SHORT = 4095, /* 128 * 4095 * 4095 < 2^31: keys, values, other queries */
    WHOLE_DIM = TEC_ATTENTION_WHOLE_DIM,
    WHOLE_VECTORS = WHOLE_DIM / VEC_WIDTH,
    EACH = KEYS / VEC_WIDTH
};

struct whole_tile {
    struct tile t;
    int32_t *k, *v, *q; /* pairs: [width / 2][KEYS], [KEYS / 2][width], [MOST][width / 2] */
    float limit;        /* of queries */
    float *q_unit;      /* [MOST] times the scale and log2 e, so that scores are powers of two */
    float k_unit[KEYS], v_unit[KEYS];
};

/* Rows as they lie, one to a lane of `units`. */
struct whole_rows {
    const void *memory;
    size_t at[VEC_WIDTH], next[VEC_WIDTH];
    int dim, bf16;
    float per[VEC_WIDTH]; /* whole numbers of 1 */
};

VEC_INLINE vec whole_part(const struct whole_rows *r, int i, int d, int bf16)
{
    return load_kv(r->memory, r->at[i] + (size_t)d, r->next[i] + (size_t)d, r->dim - d, bf16);
}

/* The units of rows whose largest magnitudes are `top`, and their inverses. A largest one below
 * 2^-100 counts as that, NaN as infinite: vec_max and vec_min give the second where one is NaN. */
VEC_INLINE vec whole_unit(vec top, float limit, float *per)
{
    top = vec_max(vec_set(0x1p-100F), vec_min(top, vec_set(INFINITY)));
    vec_store(per, vec_div(vec_set(limit), top));
    return vec_mul(top, vec_set(1.0F / limit));
}

VEC_INLINE vec whole_units(struct whole_rows *r, float limit, int bf16)
{
    vec most[VEC_WIDTH];
    for (int i = 0; i < VEC_WIDTH; i++) {
        most[i] = vec_set(0);
        for (int d = 0; d < r->dim; d += VEC_WIDTH)
            most[i] = whole_most(most[i], whole_part(r, i, d, bf16));
    }
    vec_transpose(most);
    for (int i = 1; i < VEC_WIDTH; i++)
        most[0] = whole_most(most[0], most[i]);
    return whole_unit(most[0], limit, r->per);
}

/* Row i as whole numbers, zeros up to `width`. */
VEC_INLINE void whole_row(const struct whole_rows *r, int i, int width, int16_t *to, int bf16)
{
    vec per = vec_set(r->per[i]);
    for (int d = 0; d < r->dim; d += VEC_WIDTH)
        whole_store(to + d, vec_mul(whole_part(r, i, d, bf16), per));
    for (int d = (r->dim + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH; d < width; d += VEC_WIDTH)
        whole_store(to + d, vec_set(0));
}

/* Rows of slots j, j + 1, ...; the last one again behind them. */
VEC_INLINE struct whole_rows whole_slots(const struct tile *t, const void *memory, const int *slots,
                                         int j, int n)
{
    struct whole_rows r = {.memory = memory, .dim = t->a->head_dim};
    for (int i = 0; i < VEC_WIDTH; i++) {
        int key = j + i, later = key + VEC_WIDTH;
        r.at[i] = slot_at(t, slots[key < n ? key : n - 1]);
        r.next[i] = slot_at(t, slots[later < n ? later : n - 1]);
    }
    return r;
}

/* Pairs of keys' elements, keys as lanes. */
VEC_INLINE void whole_keys(struct whole_tile *w, const int *slots, int n, int bf16)
{
    int dim = w->t.a->head_dim, width = (dim + 2 * VEC_WIDTH - 1) / (2 * VEC_WIDTH) * 2 * VEC_WIDTH;
    int16_t row[VEC_WIDTH][WHOLE_DIM];
    for (int j = 0; j < n; j += VEC_WIDTH) {
        struct whole_rows r = whole_slots(&w->t, w->t.a->k, slots, j, n);
        vec_store(w->k_unit + j, whole_units(&r, LIMIT_SHORT, bf16));
        for (int i = 0; i < VEC_WIDTH; i++)
            whole_row(&r, i, width, row[i], bf16);
        for (int d = 0; d < dim; d += 2 * VEC_WIDTH) {
            vec x[VEC_WIDTH];
            for (int i = 0; i < VEC_WIDTH; i++)
                x[i] = vec_load((const float *)(const void *)(row[i] + d));
            vec_transpose(x);
            for (int i = 0; i < VEC_WIDTH && d + 2 * i < dim; i++)
                vec_store((float *)(void *)(w->k + (size_t)(d / 2 + i) * KEYS + j), x[i]);
        }
    }
}

/* Pairs of values' rows, elements as lanes. */
VEC_INLINE void whole_values(struct whole_tile *w, const int *slots, int n, int bf16)
{
    for (int j = 0; j < n; j += VEC_WIDTH) {
        struct whole_rows r = whole_slots(&w->t, w->t.a->v, slots, j, n);
        vec_store(w->v_unit + j, whole_units(&r, LIMIT_SHORT, bf16));
        for (int i = 0; i < VEC_WIDTH; i += 2) {
            int32_t *to = w->v + (size_t)(j + i) / 2 * (size_t)w->t.width;
            vec per = vec_set(r.per[i]), beside = vec_set(r.per[i + 1]);
            for (int d = 0; d < r.dim; d += VEC_WIDTH)
                whole_keep(to + d, whole_pairs(vec_mul(whole_part(&r, i, d, bf16), per),
                                               vec_mul(whole_part(&r, i + 1, d, bf16), beside)));
        }
    }
}

VEC_TARGET static void whole_block(struct whole_tile *w, const int *slots, int n)
{
    if (w->t.bf16) {
        whole_keys(w, slots, n, 1);
        whole_values(w, slots, n, 1);
    } else {
        whole_keys(w, slots, n, 0);
        whole_values(w, slots, n, 0);
    }
}

/* The run's queries. */
VEC_TARGET static void whole_queries(struct whole_tile *w, int count)
{
    const struct tec_attention_args *a = w->t.a;
    struct whole_rows r = {.memory = a->q, .dim = a->head_dim};
    vec scale = vec_set(a->scale * 1.44269504F);
    for (int i = 0; i < count; i += VEC_WIDTH) {
        for (int j = 0; j < VEC_WIDTH; j++) {
            int query = i + j, later = query + VEC_WIDTH;
            r.at[j] = query_at(&w->t, query < count ? query : count - 1, a->ldq);
            r.next[j] = query_at(&w->t, later < count ? later : count - 1, a->ldq);
        }
        vec_store(w->q_unit + i, vec_mul(whole_units(&r, w->limit, 0), scale));
        for (int j = 0; j < VEC_WIDTH && i + j < count; j++)
            whole_row(&r, j, w->t.width,
                      (int16_t *)(void *)(w->q + (size_t)(i + j) * (size_t)w->t.width / 2), 0);
    }
}

/* Products of n queries from query i on with lanes c, c + 1, ... of the block's keys, in the keys'
 * units. */
VEC_INLINE void whole_scores(const struct whole_tile *w, int i, int c, const int n, float *to)
{
    whole s[TOGETHER * VEC_BLOCK];
    const int half = w->t.width / 2, pairs = (w->t.a->head_dim + 1) / 2;
    const int32_t *q = w->q + (size_t)i * (size_t)half, *k = w->k + c;
    TEC_UNROLL
    for (int m = 0; m < n * VEC_BLOCK; m++)
        s[m] = whole_zero();
    for (int d = 0; d < pairs; d++, q++, k += KEYS) {
        whole x[VEC_BLOCK];
        TEC_UNROLL
        for (int b = 0; b < VEC_BLOCK; b++)
            x[b] = whole_load(k + (ptrdiff_t)b * VEC_WIDTH);
        TEC_UNROLL
        for (int m = 0; m < n; m++) {
            whole y = whole_every(q + (size_t)m * (size_t)half);
            TEC_UNROLL
            for (int b = 0; b < VEC_BLOCK; b++)
                whole_dot(&s[m * VEC_BLOCK + b], x[b], y);
        }
    }
    TEC_UNROLL
    for (int m = 0; m < n * VEC_BLOCK; m++) {
        int at = c + m % VEC_BLOCK * VEC_WIDTH;
        vec_store(to + (ptrdiff_t)(m / VEC_BLOCK) * KEYS + at,
                  vec_mul(whole_vec(s[m]), vec_load(w->k_unit + at)));
    }
}

/* Lanes of x whose keys, counted from c on, are below `keys`; `other` in the rest. */
VEC_INLINE vec whole_seen(int keys, int c, vec x, vec other)
{
    return keys >= c + VEC_WIDTH ? x : keys > c ? vec_pick(keys - c, x, other) : other;
}

/* The largest scores of n queries from query i on; what the older blocks are multiplied by. */
VEC_INLINE void whole_tops(const struct whole_tile *w, int i, const int n, int keys,
                           const float *scores)
{
    const vec low = vec_set(-INFINITY);
    vec most[8];
    TEC_UNROLL
    for (int m = 0; m < 8; m++) {
        most[m] = low;
        TEC_UNROLL
        for (int c = 0; m < n && c < KEYS; c += VEC_WIDTH)
            most[m] = vec_max(most[m],
                              whole_seen(keys, c, vec_load(scores + (ptrdiff_t)m * KEYS + c), low));
    }
    vec unit = vec_load_some(w->q_unit + i, n), old = vec_load_some(w->t.max + i, n);
    vec max = vec_max(old, vec_mul(whole_largests(most), unit));
    vec keep = whole_power(vec_sub(old, max));
    vec_store_some(w->t.max + i, max, n);
    vec_store_some(w->t.keep + i, keep, n);
    vec_store_some(w->t.sum + i, vec_mul(vec_load_some(w->t.sum + i, n), keep), n);
}

/* Scores of n queries from query i on become weights times their values' units, in whole numbers
 * of `unit`. */
VEC_INLINE void whole_weights(const struct whole_tile *w, int i, const int n, int keys, float *x,
                              int16_t *to, float *unit)
{
    const vec zero = vec_set(0);
    float per[VEC_WIDTH];
    vec sum[8], top[8];
    TEC_UNROLL
    for (int m = 0; m < 8; m++) {
        sum[m] = top[m] = zero;
        if (m >= n)
            continue;
        vec scale = vec_set(w->q_unit[i + m]), max = vec_set(w->t.max[i + m]);
        TEC_UNROLL
        for (int c = 0; c < KEYS; c += VEC_WIDTH) {
            /* Rounded as the largest was: never above it. */
            vec e = vec_mul(vec_load(x + (ptrdiff_t)m * KEYS + c), scale);
            e = whole_power(vec_sub(e, max));
            sum[m] = vec_add(sum[m], whole_seen(keys, c, e, zero));
            e = whole_seen(keys, c, vec_mul(e, vec_load(w->v_unit + c)), zero);
            top[m] = vec_max(top[m], e);
            vec_store(x + (ptrdiff_t)m * KEYS + c, e);
        }
    }
    vec_store_some(unit, whole_unit(whole_largests(top), LIMIT_LONG, per), n);
    vec_store_some(w->t.sum + i, vec_add(vec_load_some(w->t.sum + i, n), whole_totals(sum)), n);
    TEC_UNROLL
    for (int m = 0; m < n; m++) {
        TEC_UNROLL
        for (int c = 0; c < KEYS; c += VEC_WIDTH)
            whole_store(to + (ptrdiff_t)m * KEYS + c,
                        vec_mul(vec_load(x + (ptrdiff_t)m * KEYS + c), vec_set(per[m])));
    }
}

/* acc = keep acc + unit P V for n queries in `vectors` vectors of columns from column c on. */
VEC_INLINE void whole_sums(const struct whole_tile *w, int i, int c, const int n, const int vectors,
                           int pairs, const int16_t *p, const float *unit)
{
    whole s[TOGETHER * VEC_BLOCK];
    const int32_t *of = (const int32_t *)(const void *)p, *v = w->v + c;
    TEC_UNROLL
    for (int m = 0; m < n * vectors; m++)
        s[m] = whole_zero();
    for (int j = 0; j < pairs; j++, of++, v += w->t.width) {
        whole x[VEC_BLOCK];
        TEC_UNROLL
        for (int b = 0; b < vectors; b++)
            x[b] = whole_load(v + (ptrdiff_t)b * VEC_WIDTH);
        TEC_UNROLL
        for (int m = 0; m < n; m++) {
            whole y = whole_every(of + (ptrdiff_t)m * (KEYS / 2));
            TEC_UNROLL
            for (int b = 0; b < vectors; b++)
                whole_dot(&s[m * vectors + b], x[b], y);
        }
    }
    float *acc = w->t.acc + (size_t)i * (size_t)w->t.width + c;
    TEC_UNROLL
    for (int m = 0; m < n; m++, acc += w->t.width) {
        vec keep = vec_set(w->t.keep[i + m]), one = vec_set(unit[m]);
        TEC_UNROLL
        for (int b = 0; b < vectors; b++) {
            float *at = acc + (ptrdiff_t)b * VEC_WIDTH;
            vec_store(at, vec_fma(whole_vec(s[m * vectors + b]), one, vec_mul(vec_load(at), keep)));
        }
    }
}

VEC_INLINE void whole_some(const struct whole_tile *w, int i, const int n, int keys)
{
    int wide = VEC_BLOCK * VEC_WIDTH, width = w->t.width, c = 0;
    _Alignas(64) float x[TOGETHER * KEYS];
    _Alignas(64) int16_t p[TOGETHER * KEYS];
    float unit[TOGETHER];
    for (int k = 0; k < KEYS; k += wide)
        whole_scores(w, i, k, n, x);
    whole_tops(w, i, n, keys, x);
    whole_weights(w, i, n, keys, x, p, unit);
    for (; c + wide <= width; c += wide)
        whole_sums(w, i, c, n, VEC_BLOCK, (keys + 1) / 2, p, unit);
    for (; c < width; c += VEC_WIDTH)
        whole_sums(w, i, c, n, 1, (keys + 1) / 2, p, unit);
}

/* Most blocks are seen whole: then a compiler knows that no lane is left out. */
VEC_INLINE void whole_together(const struct tile *t, int i, const int n)
{
    const struct whole_tile *w = (const struct whole_tile *)(const void *)t;
    if (t->seen[i] == KEYS)
        whole_some(w, i, n, KEYS);
    else
        whole_some(w, i, n, t->seen[i]);
}
FOR_EACH_NUMBER(whole_add, whole_together);

static void whole_attend_block(struct tile *t, const int *slots, int at, int n, int from, int count)
{
    whole_block((struct whole_tile *)(void *)t, slots, n);
    add_block(t, at, n, from, count, whole_add);
}

static void whole_attend(struct tile *t, int count)
{
    whole_queries((struct whole_tile *)(void *)t, count);
    memset(t->acc, 0, (size_t)count * (size_t)t->width * sizeof *t->acc);
    each_block(t, count, whole_attend_block);
    for (int i = 0; i < count; i++)
        write_out(t, i);
}

/* Whether this attention may be in whole numbers, and is such that this file has it. */
static bool attends_whole(const struct tec_attention_args *a)
{
    return a->whole && a->head_dim <= WHOLE_DIM && a->window == 0 && a->cap == 0 && !a->bias;
}

/* Queries of a tile: as many as the scratch memory that attention has in float32 holds, which has
 * whole blocks of keys and values twice as large, and scores. */
VEC_INLINE int whole_tile_size(int head_dim)
{
    size_t width = (size_t)tec_attention_width(head_dim);
    size_t room = tec_attention_scratch(head_dim) - KEYS * width;
    size_t most = room / (width / 2 + width + 4) / VEC_WIDTH * VEC_WIDTH;
    return most < MOST ? (int)most : MOST;
}

VEC_TARGET static void attend_whole(const struct tec_attention_args *a, struct tec_part part,
                                    int bf16)
{
    struct whole_tile w = {.t = tile_of(a, part, bf16),
                           .limit = a->head_dim <= 64 ? LIMIT_LONG : LIMIT_SHORT};
    size_t width = (size_t)w.t.width, most = (size_t)whole_tile_size(a->head_dim);
    w.k = (int32_t *)(void *)w.t.k;
    w.v = w.k + KEYS * width / 2;
    w.q = w.v + KEYS * width / 2;
    w.t.acc = (float *)(void *)w.q + most * width / 2;
    w.t.max = w.t.acc + most * width;
    w.t.sum = w.t.max + most;
    w.t.keep = w.t.sum + most;
    w.q_unit = w.t.keep + most;
    attend_all(&w.t, part, (int)most, whole_attend);
}

void tec_whole_attention_f32_avx512(const struct tec_attention_args *a, struct tec_part part)
{
    if (attends_whole(a))
        attend_whole(a, part, 0);
    else
        tec_attention_f32_avx512(a, part);
}

void tec_whole_attention_bf16_avx512(const struct tec_attention_args *a, struct tec_part part)
{
    if (attends_whole(a))
        attend_whole(a, part, 1);
    else
        tec_attention_bf16_avx512(a, part);
}

#endif

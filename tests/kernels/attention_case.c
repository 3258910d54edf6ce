/* attention_case.c - builds random sequences, spans and KV memory for the checks of attention and
 * of its mass. */
#include "tests/kernels/attention_case.h"
#include "kernels/bf16.h"

#include <math.h>
#include <string.h>

bool case_on_cuda(const struct conform *c)
{
    return strncmp(c->tier, "cuda", 4) == 0;
}

/* Cut runs of slots in shuffled order: spans begin and end anywhere, empty ones among them. */
static void cut_spans(struct conform *c, struct attention_case *w, struct case_shape s)
{
    struct tec_seq *seqs = conform_buf(c, (size_t)s.seqs, sizeof *seqs);
    int room = 40 * s.seqs, used = 0, next = 0;
    w->spans = conform_buf(c, (size_t)room, sizeof *w->spans);
    w->length = conform_ints(c, (size_t)s.seqs, 0);
    for (int i = 0; i < s.seqs; i++) {
        int left = s.full || conform_int(0, 2) ? s.keys : conform_int(1, s.keys);
        w->length[i] = left;
        seqs[i].first = used;
        for (seqs[i].spans = 0; left > 0; seqs[i].spans++) {
            int n = seqs[i].spans < 38 ? conform_int(0, left) : left;
            n = conform_int(0, 1) ? n : left;
            next += conform_int(0, 3);
            w->spans[used++] = (struct tec_span){next, n};
            next += n;
            left -= n;
        }
    }
    w->slots = next + 3;
    /* The logical order of spans need not be that of their slots. */
    for (int i = 0; i < s.seqs; i++)
        for (int j = 0; j + 1 < seqs[i].spans; j++) {
            int at = seqs[i].first + j, other = seqs[i].first + conform_int(j, seqs[i].spans - 1);
            struct tec_span x = w->spans[at];
            w->spans[at] = w->spans[other];
            w->spans[other] = x;
        }
    for (int i = 2; s.view == CASE_FORKED && i < s.seqs; i += 1 + i % 3) {
        struct tec_span *own = &w->spans[seqs[i].first];
        w->length[i] += w->spans[0].length - own->length;
        *own = w->spans[0];
    }
    w->a.seqs = seqs;
    w->a.spans = w->spans;
}

int case_slot(const struct attention_case *w, int seq, int key)
{
    const struct tec_span *span = w->spans + w->a.seqs[seq].first;
    while (key >= span->length) {
        key -= span->length;
        span++;
    }
    return span->slot + key;
}

/* Fill memory: slots that no sequence holds become NaN; slots that a sequence holds get values of a
 * family. */
static void fill_memory(struct conform *c, struct attention_case *w, struct case_shape s,
                        enum conform_family family)
{
    size_t cols = (size_t)s.kv_heads * (size_t)s.dim, count = (size_t)w->slots * cols;
    w->k = conform_buf(c, count, sizeof *w->k);
    w->v = conform_buf(c, count, sizeof *w->v);
    for (int i = 0; i < s.seqs; i++)
        for (int key = 0; key < w->length[i]; key++) {
            size_t at = (size_t)case_slot(w, i, key) * cols;
            conform_fill(w->k + at, cols, family == CONFORM_OFFSET ? CONFORM_NORMAL : family, 1.0F);
            conform_fill(w->v + at, cols, family, 1.0F);
        }
    w->keys = (char *)w->k;
    w->values = (char *)w->v;
    if (w->bf16) {
        w->keys = conform_buf(c, count, sizeof(uint16_t));
        w->values = conform_buf(c, count, sizeof(uint16_t));
        conform_bits((uint16_t *)(void *)w->keys, w->k, count);
        conform_bits((uint16_t *)(void *)w->values, w->v, count);
        conform_round(w->k, count);
        conform_round(w->v, count);
    }
    w->a.k = w->keys;
    w->a.v = w->values;
}

/* Choose rows: those of one sequence are mostly neighbours, and some see nothing. */
static void choose_rows(struct conform *c, struct attention_case *w, struct case_shape s)
{
    int rows = s.seqs * s.rows;
    int *seq = conform_ints(c, (size_t)rows, 0), *visible = conform_ints(c, (size_t)rows, 0);
    for (int r = 0; r < rows; r++) {
        seq[r] = s.full || conform_int(0, 9) ? r / s.rows : conform_int(0, s.seqs - 1);
        int n = w->length[seq[r]];
        visible[r] = s.view == CASE_ALL      ? n
                     : s.view == CASE_CAUSAL ? n - s.rows + 1 + r % s.rows
                     : s.view == CASE_SOME   ? n * (1 - seq[r] % 2)
                                             : conform_int(0, n);
        visible[r] = visible[r] < 0 ? 0 : visible[r];
    }
    w->a.row_seq = seq;
    w->a.visible = visible;
    w->a.max_rows = rows;
    w->a.rows = conform_live(c, rows);
}

struct attention_case case_build(struct conform *c, struct case_shape s, bool bf16,
                                 enum conform_family family)
{
    struct attention_case w = {.bf16 = bf16};
    cut_spans(c, &w, s);
    fill_memory(c, &w, s, family);
    choose_rows(c, &w, s);
    struct tec_attention_args *a = &w.a;
    int cols = s.heads * s.dim;
    a->ldq = conform_ld(cols);
    a->ldo = conform_ld(cols);
    float *q = conform_buf(c, (size_t)a->max_rows * (size_t)a->ldq, sizeof *q);
    for (int r = 0; r < a->max_rows; r++)
        conform_fill(q + (size_t)r * (size_t)a->ldq, (size_t)cols, family,
                     family == CONFORM_OFFSET ? 0.01F : 3.0F);
    a->q = w.q = q;
    a->out = conform_buf(c, (size_t)a->max_rows * (size_t)a->ldo, sizeof *a->out);
    a->scratch = conform_buf(c, CASE_LANES * tec_attention_scratch(s.dim), sizeof *a->scratch);
    a->heads = s.heads;
    a->kv_heads = s.kv_heads;
    a->head_dim = s.dim;
    a->scale = (float)(1 / sqrt((double)s.dim));
    a->round = s.round;
    int often = case_on_cuda(c) ? 5 : 2; /* there, these leave the tiled kernels */
    if (conform_int(0, often) == 0)
        a->window = conform_int(1, conform_int(1, 2 * s.keys));
    if (conform_int(0, 2 * often) == 0)
        a->cap = (float)conform_int(1, 50);
    return w;
}

struct tec_attention_args case_shuffled(struct conform *c, const struct attention_case *w,
                                        int *from)
{
    struct tec_attention_args a = w->a;
    int n = a.max_rows;
    int *seq = conform_ints(c, (size_t)n, 0), *visible = conform_ints(c, (size_t)n, 0);
    int *pos = conform_ints(c, (size_t)n, 0);
    float *q = conform_buf(c, (size_t)n * (size_t)a.ldq, sizeof *q);
    for (int r = 0; r < n; r++)
        from[r] = r;
    for (int r = 0; r + 1 < n; r++) {
        int other = conform_int(r, n - 1), x = from[r];
        from[r] = from[other];
        from[other] = x;
    }
    for (int r = 0; r < n; r++) {
        seq[r] = a.row_seq[from[r]];
        pos[r] = a.bias ? a.pos[from[r]] : 0;
        visible[r] = a.visible[from[r]];
        memcpy(q + (size_t)r * (size_t)a.ldq, a.q + (size_t)from[r] * (size_t)a.ldq,
               (size_t)a.heads * (size_t)a.head_dim * sizeof *q);
    }
    a.q = q;
    a.row_seq = seq;
    a.visible = visible;
    a.pos = pos;
    return a;
}

struct tec_attention_args case_recut(struct conform *c, const struct attention_case *w, int seqs)
{
    struct tec_attention_args a = w->a;
    struct tec_seq *to = conform_buf(c, (size_t)seqs, sizeof *to);
    int room = 0, used = 0;
    for (int i = 0; i < seqs; i++)
        room += 3 * a.seqs[i].spans + w->length[i] + 1;
    struct tec_span *spans = conform_buf(c, (size_t)room, sizeof *spans);
    for (int i = 0; i < seqs; i++) {
        to[i].first = used;
        for (int j = 0; j < a.seqs[i].spans; j++) {
            struct tec_span s = w->spans[a.seqs[i].first + j];
            spans[used++] = (struct tec_span){0, 0};
            while (s.length > 0) {
                int n = conform_int(1, s.length);
                spans[used++] = (struct tec_span){s.slot, n};
                s.slot += n;
                s.length -= n;
            }
        }
        to[i].spans = used - to[i].first;
    }
    a.seqs = to;
    a.spans = spans;
    return a;
}

void case_put_key(struct attention_case *w, int seq, int key, float value)
{
    int cols = w->a.kv_heads * w->a.head_dim;
    uint16_t bits = tec_bf16_bits(value);
    size_t size = w->bf16 ? sizeof bits : sizeof value;
    size_t at = (size_t)case_slot(w, seq, key) * (size_t)cols;
    for (size_t i = at; i < at + (size_t)cols; i++) {
        w->k[i] = value;
        memcpy(w->keys + i * size, w->bf16 ? (const void *)&bits : &value, size);
    }
}

void case_spoil(struct attention_case *w, struct case_shape s, int from)
{
    int cols = s.kv_heads * s.dim;
    for (int key = from; key < w->length[0]; key++)
        for (int i = 0; i < cols; i++) {
            size_t size = w->bf16 ? 2 : 4, at = (size_t)(case_slot(w, 0, key) * cols + i) * size;
            float bad = i % 2 ? NAN : INFINITY;
            uint16_t bits = tec_bf16_bits(bad);
            memcpy(w->keys + at, w->bf16 ? (const void *)&bits : &bad, size);
            memcpy(w->values + at, w->bf16 ? (const void *)&bits : &bad, size);
        }
}

/* check_place.c - checks that kept keys and values are placed in KV memory as rope stores fresh
 * ones, and that nothing else changes. */
#include "kernels/bf16.h"
#include "kernels/matrix.h"
#include "tests/kernels/conform.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POSITIONS = 700 };

struct shape {
    int places, tokens, kv_heads, dim;
    bool rotated;
};

static const struct shape edges[] = {
    {1, 1, 1, 2, true},  {3, 5, 1, 14, true},   {4, 9, 2, 16, true},   {2, 3, 3, 22, true},
    {5, 7, 1, 34, true}, {2, 20, 2, 128, true}, {3, 33, 1, 256, true}, {2, 6, 1, 9, false},
    {1, 4, 1, 1, false}, {90, 2, 2, 64, true}};
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 30 };

/* What was kept, and the memory before and as it must be afterwards. */
struct kept {
    struct tec_place_args a;
    struct tec_place *places;
    float *fresh; /* [tokens of all places, cols]: the keys before they were rounded */
    char *right_k, *right_v, *junk;
    size_t size, row, bytes;   /* of an element, of a slot, of the memory */
    struct tec_rope_args rope; /* rope of one place; rope_stores fills its rows */
    float *x;
    int *slot, *pos, *rows;
};

static const float *table(struct conform *c, int half)
{
    float *t = conform_buf(c, (size_t)POSITIONS * (size_t)half * 2, sizeof *t);
    for (int i = 0; i < POSITIONS * half; i++) {
        double angle = conform_int(0, 100000) * 0.01;
        t[2 * i] = (float)cos(angle);
        t[2 * i + 1] = (float)sin(angle);
    }
    return t;
}

static void *noise(struct conform *c, size_t size)
{
    unsigned char *at = conform_buf(c, size, 1);
    for (size_t i = 0; i < size; i++)
        at[i] = (unsigned char)conform_int(0, 255);
    return at;
}

/* Keep keys and values. Keys are values of a family, rounded where they are kept in bf16; where
 * nothing is rotated they are any bits, as values always are. Places leave gaps now and then and
 * come in any order. */
static void keep(struct conform *c, struct kept *y, struct shape s, enum conform_family family)
{
    size_t cols = (size_t)s.kv_heads * (size_t)s.dim, each = (size_t)s.tokens * cols;
    y->places = conform_buf(c, (size_t)s.places, sizeof *y->places);
    y->fresh = conform_buf(c, (size_t)s.places * each, sizeof(float));
    conform_fill(y->fresh, (size_t)s.places * each, family, 3.0F);
    char *ks = noise(c, (size_t)s.places * each * y->size);
    char *vs = noise(c, (size_t)s.places * each * y->size);
    for (int i = 0; i < s.places; i++) {
        struct tec_place *p = &y->places[s.places - 1 - i];
        void *k = ks + (size_t)i * each * y->size, *v = vs + (size_t)i * each * y->size;
        const float *fresh = y->fresh + (size_t)(p - y->places) * each;
        if (s.rotated && y->size == 2)
            conform_bits(k, fresh, each);
        else if (s.rotated)
            memcpy(k, fresh, each * y->size);
        int pos = conform_int(0, POSITIONS - s.tokens), what = conform_int(0, 5);
        *p = (struct tec_place){k, v, s.tokens, i * (s.tokens + 1), pos};
        if (conform_int(0, 2) == 0)
            p->tokens = conform_int(-1, s.tokens + 2);
        p->k = what == 1 ? NULL : p->k;
        p->v = what == 2 ? NULL : p->v;
    }
}

static void prepare_rope(struct conform *c, struct kept *y)
{
    int cols = y->a.kv_heads * y->a.head_dim, tokens = y->a.max_tokens;
    y->rope = (struct tec_rope_args){.k = y->right_k,
                                     .v = y->junk,
                                     .max_rows = tokens,
                                     .q_at = -1,
                                     .ld = 2 * tec_padded(cols),
                                     .v_at = tec_padded(cols),
                                     .kv_heads = y->a.kv_heads,
                                     .head_dim = y->a.head_dim,
                                     .cos_sin = y->a.cos_sin,
                                     .round_k = 1};
    y->rope.qkv = y->x = conform_buf(c, (size_t)tokens * (size_t)y->rope.ld, sizeof(float));
    y->rope.slot = y->slot = conform_ints(c, (size_t)tokens, 0);
    y->rope.pos = y->pos = conform_ints(c, (size_t)tokens, 0);
    y->rope.rows = y->rows = conform_ints(c, 1, 0);
}

/* Store the keys of a place as rope stores them when they are fresh. */
static void rope_stores(struct kept *y, const struct tec_kernels *by, int i, int tokens)
{
    size_t cols = (size_t)y->a.kv_heads * (size_t)y->a.head_dim;
    *y->rows = tokens;
    for (int t = 0; t < tokens; t++) {
        float *x = y->x + (size_t)t * (size_t)y->rope.ld;
        y->slot[t] = y->places[i].slot + t;
        y->pos[t] = y->places[i].pos + t;
        memcpy(x, y->fresh + (size_t)(i * y->a.max_tokens + t) * cols, cols * sizeof *x);
        memset(x + y->rope.v_at, 0, cols * sizeof *x);
    }
    enum tec_kernel_id id = y->size == 2 ? TEC_KERNEL_rope_bf16 : TEC_KERNEL_rope_f32;
    tec_kernel_infos[id].run(by, &y->rope, (struct tec_part){0, 1});
}

static void expected(struct kept *y, const struct tec_kernels *by, int count)
{
    memcpy(y->right_k, y->a.k, y->bytes);
    memcpy(y->right_v, y->a.v, y->bytes);
    for (int i = 0; i < count && i < y->a.max_places; i++) {
        const struct tec_place *p = &y->places[i];
        int tokens = p->tokens < y->a.max_tokens ? p->tokens : y->a.max_tokens;
        if (tokens <= 0)
            continue;
        size_t at = (size_t)p->slot * y->row, n = (size_t)tokens * y->row;
        if (p->v)
            memcpy(y->right_v + at, p->v, n);
        if (p->k && y->a.cos_sin)
            rope_stores(y, by, i, tokens);
        else if (p->k)
            memcpy(y->right_k + at, p->k, n);
    }
}

static void compare(struct conform *c, struct kept *y, int which, int live)
{
    const struct tec_place_args *a = &y->a;
    expected(y, which ? c->fast : c->ref, live);
    struct conform_call call = {.ref = a, .fast = a, .live = live, .outs = 2};
    call.out[0] = (struct conform_out){.at = a->k};
    call.out[1] = (struct conform_out){.at = a->v};
    void *k = memcpy(conform_buf(c, y->bytes, 1), a->k, y->bytes);
    void *v = memcpy(conform_buf(c, y->bytes, 1), a->v, y->bytes);
    conform_run(c, &call);
    const char *whose = which ? "" : "reference: ";
    if (memcmp(which ? c->got[0] : c->want[0], y->right_k, y->bytes) != 0)
        conform_fail(c, "%skeys of %d places of %d tokens, %d x %d", whose, a->max_places,
                     a->max_tokens, a->kv_heads, a->head_dim);
    if (memcmp(which ? c->got[1] : c->want[1], y->right_v, y->bytes) != 0)
        conform_fail(c, "%svalues of %d places of %d tokens, %d x %d", whose, a->max_places,
                     a->max_tokens, a->kv_heads, a->head_dim);
    if (which && y->bytes > 1 << 20)
        conform_time(c, "places", &call, 4.0 * (double)y->bytes, 0);
    memcpy(a->k, k, y->bytes);
    memcpy(a->v, v, y->bytes);
}

static void place_shape(struct conform *c, struct shape s, bool bf16, int live,
                        enum conform_family family)
{
    struct kept y = {.size = bf16 ? 2 : 4};
    y.row = (size_t)s.kv_heads * (size_t)s.dim * y.size;
    y.bytes = (size_t)s.places * (size_t)(s.tokens + 1) * y.row;
    y.a = (struct tec_place_args){.max_places = s.places,
                                  .max_tokens = s.tokens,
                                  .kv_heads = s.kv_heads,
                                  .head_dim = s.dim,
                                  .count = conform_ints(c, 1, live),
                                  .k = noise(c, y.bytes),
                                  .v = noise(c, y.bytes)};
    y.a.cos_sin = s.rotated ? table(c, s.dim / 2) : NULL;
    keep(c, &y, s, family);
    y.a.places = y.places;
    y.right_k = conform_buf(c, y.bytes, 1);
    y.right_v = conform_buf(c, y.bytes, 1);
    y.junk = conform_buf(c, y.bytes, 1);
    prepare_rope(c, &y);
    for (int which = 0; which < 2; which++) /* rope of the reference, then of the tier */
        compare(c, &y, which, live);
    conform_end(c);
}

static void place_kv(struct conform *c, bool bf16)
{
    for (int i = 0; i < EDGES; i++)
        place_shape(c, edges[i], bf16, edges[i].places, CONFORM_NORMAL);
    for (int i = 0; i < conform_few(c, RANDOM); i++) {
        struct shape s = {conform_int(1, 9), conform_int(1, 40), conform_int(1, 3),
                          2 * conform_int(1, 60), conform_int(0, 3) > 0};
        s.dim -= s.rotated ? 0 : conform_int(0, 1);
        place_shape(c, s, bf16, conform_int(-1, s.places + 2),
                    (enum conform_family)(i % CONFORM_FAMILIES));
    }
    place_shape(c, (struct shape){8, conform_scale(c, 150, 20), 2, 256, true}, bf16, 8,
                CONFORM_NORMAL);
}

void conform_place_kv_f32(struct conform *c)
{
    place_kv(c, false);
}

void conform_place_kv_bf16(struct conform *c)
{
    place_kv(c, true);
}

/* gemm_bf16_mm.c - the NEON gemm_bf16 kernel for processors with products of matrices of bf16
 * (`bf16`, Cortex-X2 and Neoverse V1 and newer): products whose x holds bf16 values. All others go
 * the way of gemm.c.
 *
 * A `bfmmla` multiplies 2 x 4 bf16 by 4 x 2: two rows of x, which are copied so that 4 k of both
 * lie side by side, and two columns, whose 4 k are in two lines of a panel and meet when they are
 * loaded, once for all rows of a tile. A `bfdot`, for few rows, takes a line as it lies: 2 k of
 * four columns. Both add two products to each other, then to the sum, so each (row, column) is
 * one chain over pairs of k, k = 0, 2, 4, ..., with the same bytes for every number of rows, tile
 * and lane count.
 *
 * The two sums of a step are rounded to odd, and what is below the normal range counts as 0, read
 * or made, whatever the thread's modes are: but for one, FPCR.EBF, which newer processors have, and
 * which is cleared meanwhile (tests/kernels/matrices_emulated.h is the step in plain C). */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/panels.h"
#include "kernels/panels/blocks.inc"

enum {
    MM_K = 4,            /* k of one product, */
    MM_BYTES = 16,       /* and bytes of its rows */
    MM_FEW_DEEP = 16384, /* the most k of few rows, which become pairs at once */
    MM_SUMS = ROWS_TILE / 2 * SPLIT * 2
};

/* The bf16 of four values of each of two rows, x0 and x1 (NULL: zeros), from k on. */
VEC_INLINE bfloat16x8_t mm_rows(const float *x0, const float *x1, int k, int count)
{
    vec first = vec_load_some(x0 + k, count - k), second = vec_set(0.0F);
    if (x1)
        second = vec_load_some(x1 + k, count - k);
    return vreinterpretq_bf16_u16(
        vuzp2q_u16(vreinterpretq_u16_f32(first), vreinterpretq_u16_f32(second)));
}

/* Rows of each tile in pairs, the last one of an odd number with zeros; zeros beyond k. */
VEC_TARGET static void mm_copy(const struct tec_gemm_args *a, struct slab *b)
{
    int tiles = (b->rows + ROWS_TILE - 1) / ROWS_TILE;
    for (int i = 0; i < tiles; i++) {
        int first = b->rows * i / tiles, last = b->rows * (i + 1) / tiles;
        for (int r = first; r < last; r += 2) {
            const float *x = a->x + (size_t)(b->row + r) * (size_t)a->ldx + (size_t)b->k;
            char *to = (char *)(b->x + (size_t)(first + (r - first) / 2) * LDX);
            for (int k = 0; k < b->depth; k += MM_K, to += MM_BYTES) {
                bfloat16x8_t both = mm_rows(x, r + 1 < last ? x + a->ldx : NULL, k, b->depth);
                memcpy(to, &both, sizeof both);
            }
        }
    }
}

VEC_INLINE float32x4_t mm_halves(vec x, vec y, bool upper)
{
    float64x2_t one = vreinterpretq_f64_f32(x), two = vreinterpretq_f64_f32(y);
    return vreinterpretq_f32_f64(upper ? vzip2q_f64(one, two) : vzip1q_f64(one, two));
}

/* Sums as a tile has them, two rows and two columns in each, from and to rows of four columns. */
VEC_INLINE void mm_begin(const struct tile *t, vec *sums, int rows)
{
    TEC_UNROLL
    for (int i = 0; i < (rows + 1) / 2 * SPLIT; i++) {
        int r = i / SPLIT * 2, v = i % SPLIT;
        vec first = vec_set(0.0F), second = first;
        if (t->more) {
            first = vec_load(sum_of(t, r * SPLIT + v, SPLIT, true));
            if (r + 1 < rows)
                second = vec_load(sum_of(t, (r + 1) * SPLIT + v, SPLIT, true));
        }
        sums[2 * i] = mm_halves(first, second, false);
        sums[2 * i + 1] = mm_halves(first, second, true);
    }
}
VEC_INLINE void mm_end(const struct tile *t, const vec *sums, int rows)
{
    TEC_UNROLL
    for (int i = 0; i < (rows + 1) / 2 * SPLIT; i++) {
        int r = i / SPLIT * 2, v = i % SPLIT;
        vec_store(sum_of(t, r * SPLIT + v, SPLIT, true),
                  mm_halves(sums[2 * i], sums[2 * i + 1], false));
        if (r + 1 < rows)
            vec_store(sum_of(t, (r + 1) * SPLIT + v, SPLIT, true),
                      mm_halves(sums[2 * i], sums[2 * i + 1], true));
    }
}

/* 4 k of all rows and of a panel, whose lines are at `first` and `second`. */
VEC_INLINE void mm_step(vec *sums, const char *first, const char *second, const char *x, int rows)
{
    bfloat16x8_t two[ROWS_TILE / 2];
    TEC_UNROLL
    for (int p = 0; p < (rows + 1) / 2; p++)
        memcpy(&two[p], x + (size_t)p * LDX * sizeof(float), sizeof two[p]);
    TEC_UNROLL
    for (int v = 0; v < SPLIT; v++) {
        uint32x4_t one, other;
        memcpy(&one, first + 16 * (size_t)v, sizeof one);
        memcpy(&other, second + 16 * (size_t)v, sizeof other);
        bfloat16x8_t low = vreinterpretq_bf16_u32(vzip1q_u32(one, other));
        bfloat16x8_t high = vreinterpretq_bf16_u32(vzip2q_u32(one, other));
        TEC_UNROLL
        for (int p = 0; p < (rows + 1) / 2; p++) {
            vec *sum = sums + (ptrdiff_t)(p * SPLIT + v) * 2;
            sum[0] = vbfmmlaq_f32(sum[0], two[p], low);
            sum[1] = vbfmmlaq_f32(sum[1], two[p], high);
        }
    }
}

/* A second line where the last one of a panel has none: x is zeros there, products with it -0,
 * which leave every sum. */
static const uint32_t mm_nothing[PANEL] = {
    0x80008000, 0x80008000, 0x80008000, 0x80008000, 0x80008000, 0x80008000, 0x80008000, 0x80008000,
    0x80008000, 0x80008000, 0x80008000, 0x80008000, 0x80008000, 0x80008000, 0x80008000, 0x80008000};

/* rows is a constant: this becomes one function for each. */
VEC_INLINE void mm_tile(const struct tile *at, int rows)
{
    const struct tile own = *at, *t = &own; /* no store to a sum can change it */
    const char *x = (const char *)t->x, *w = t->w, *next = t->turn ? t->w : t->next;
    vec sums[MM_SUMS];
    mm_begin(t, sums, rows);
    int left = (t->k + 1) / 2;
    for (; left > 1;
         left -= 2, x += MM_BYTES, w += (ptrdiff_t)2 * LINE, next += (ptrdiff_t)2 * LINE) {
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + LINE, 0, 2);
        mm_step(sums, w, w + LINE, x, rows);
    }
    if (left)
        mm_step(sums, w, (const char *)mm_nothing, x, rows);
    mm_end(t, sums, rows);
}

/* Of few rows: x is pairs of bf16. rows and panels are constants. */
VEC_INLINE void mm_few(const struct tile *at, int rows, int panels)
{
    const struct tile own = *at, *t = &own;
    const float *x = t->x;
    const char *w = t->w;
    vec sums[ROWS_FEW * SPLIT * 2];
    int vectors = panels * SPLIT, all = (t->k + 1) / 2;
    TEC_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        sums[i] = vec_set(0.0F);
    for (int i = 0; i < all; i++, x++, w += LINE) {
        const char *ahead =
            i + AHEAD < all ? w + (size_t)AHEAD * LINE : t->next + (size_t)(i + AHEAD - all) * LINE;
        bfloat16x8_t pairs[ROWS_FEW];
        TEC_UNROLL
        for (int p = 0; p < panels; p++)
            __builtin_prefetch(ahead + (size_t)p * t->panel);
        TEC_UNROLL
        for (int r = 0; r < rows; r++)
            pairs[r] = vreinterpretq_bf16_f32(vec_set(x[(size_t)r * t->ldx]));
        TEC_UNROLL
        for (int v = 0; v < vectors; v++) {
            bfloat16x8_t weights;
            memcpy(&weights, line_of(w, t->panel, v), sizeof weights);
            TEC_UNROLL
            for (int r = 0; r < rows; r++)
                sums[r * vectors + v] = vbfdotq_f32(sums[r * vectors + v], weights, pairs[r]);
        }
    }
    TEC_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        vec_store(sum_of(t, i, vectors, false), sums[i]);
}

#define MM_TILE(rows)                                               \
    UNSHARED VEC_TARGET static void mm_##rows(const struct tile *t) \
    {                                                               \
        mm_tile(t, rows);                                           \
    }
#define MM_FEW(rows, panels)                                              \
    VEC_TARGET static void mm_few_##rows##_##panels(const struct tile *t) \
    {                                                                     \
        mm_few(t, rows, panels);                                          \
    }
/* clang-format off */
MM_TILE(1) MM_TILE(2) MM_TILE(3) MM_TILE(4) MM_TILE(5) MM_TILE(6)
MM_FEW(1, 1) MM_FEW(1, 2) MM_FEW(2, 1) MM_FEW(2, 2) MM_FEW(3, 1) MM_FEW(4, 1)

static const struct tiles tiles = {
    .depth = DEPTH, .pace = LINE, .copy = mm_copy,
    .few = {{2, mm_few_1_2, mm_few_1_1}, {2, mm_few_2_2, mm_few_2_1},
            {1, mm_few_3_1, mm_few_3_1}, {1, mm_few_4_1, mm_few_4_1}},
    .tile = {{mm_1, mm_2, mm_3, mm_4, mm_5, mm_6}},
};
/* clang-format on */

/* Few rows become pairs at once. */
VEC_TARGET static void run_few(const struct tec_gemm_args *a, struct tec_part part, int rows)
{
    _Alignas(LINE) float x[ROWS_FEW * MM_FEW_DEEP / 2];
    struct tec_gemm_args of_pairs = *a;
    of_pairs.x = x;
    of_pairs.ldx = (a->k + 3) / 4 * 2;
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < a->k; k += MM_K) {
            bfloat16x8_t four = mm_rows(a->x + (size_t)r * (size_t)a->ldx, NULL, k, a->k);
            memcpy(x + (ptrdiff_t)r * of_pairs.ldx + k / 2, &four, sizeof four / 2);
        }
    struct gemm g = gemm_of(&of_pairs, part, &tiles);
    few_rows(&g);
}

void tec_gemm_bf16_mm_neon(const struct tec_gemm_args *a, struct tec_part part)
{
    enum { EBF = 1 << 13 }; /* other products, with other roundings */
    if (!a->rounded) {
        tec_gemm_bf16_neon(a, part);
        return;
    }
    struct gemm g = gemm_of(a, part, &tiles);
    uint64_t modes;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    if (modes & EBF) /* what is read and written stays between the two */
        __asm__ volatile("msr fpcr, %0" ::"r"(modes & ~(uint64_t)EBF) : "memory");
    if (g.rows > 0 && g.rows <= ROWS_FEW && a->k <= MM_FEW_DEEP)
        run_few(a, part, g.rows);
    else if (g.rows > 0)
        many_rows(&g);
    if (modes & EBF)
        __asm__ volatile("msr fpcr, %0" ::"r"(modes) : "memory");
}

#endif

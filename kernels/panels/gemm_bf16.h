/* gemm_bf16.h - y = x W^T with W in bf16 panels; a tier includes its panels.h, then this.
 *
 * Each (row, column) has one accumulator, and k runs 0, 1, 2, ... through one chain of fused
 * multiply-adds. Where k is cut into blocks the unfinished sum is stored as float32 and taken up
 * again, which is exact: so the bytes are the same for every row count, tile and lane count.
 *
 * Up to ROWS_FEW rows the weights' way from memory is all that counts: several panels are read side
 * by side, x is used where it lies, and nothing is blocked. With more rows a block of up to BLOCK
 * rows by DEPTH k of x is copied to the stack, where its rows do not evict one another, and used
 * for GROUP panels; a pair of panels stays in L1 while the tiles of the block pass over it. */
#ifndef TEC_KERNELS_PANELS_GEMM_BF16_H
#define TEC_KERNELS_PANELS_GEMM_BF16_H

#include "kernels/panels/finish.h"

#include <string.h>

enum {
    PANEL = 16,
    LINE = 64,   /* bytes of a line: 16 columns of two k */
    AHEAD = 8,   /* lines that a prefetch runs ahead in a panel */
    DEPTH = 256, /* even */
    BLOCK = 52,
    GROUP = 16,
    LDX = DEPTH + 16, /* of the copied block */
    SPLIT = PANEL / VEC_WIDTH
};

/* One register tile: sums over k columns of x and of some panels. */
struct tile {
    const float *x;
    size_t ldx;
    const char *w;    /* the first panel, at the first k (even) */
    size_t panel;     /* bytes from one panel to the next */
    const char *next; /* read soon after: the first panel of the tile that follows */
    int k;
    bool more; /* the sums begin with what `sums` holds */
    float *sums;
    int ld;
};

/* One k of all rows and panels: weights `w`, x[row * ldx]. */
VEC_INLINE void step(vec *sums, const vec *w, const float *x, size_t ldx, int rows, int vectors)
{
    TEC_UNROLL
    for (int r = 0; r < rows; r++) {
        vec all = vec_set(x[(size_t)r * ldx]);
        TEC_UNROLL
        for (int v = 0; v < vectors; v++)
            sums[r * vectors + v] = vec_fma(all, w[v], sums[r * vectors + v]);
    }
}

/* Lines first .. last - 1, prefetching `ahead` bytes further. */
VEC_INLINE void lines(const struct tile *t, vec *sums, size_t ldx, int first, int last,
                      ptrdiff_t ahead, bool copied, int rows, int panels)
{
    const float *x = t->x + 2 * (size_t)first;
    const char *w = t->w + (size_t)first * LINE;
    size_t panel = t->panel;
    for (int i = first; i < last; i++, x += 2, w += LINE) {
        vec weights[8];
        TEC_UNROLL
        for (int p = 0; p < panels; p++) {
            if (copied)
                _mm_prefetch(w + (size_t)p * panel + ahead, _MM_HINT_T1);
            else
                _mm_prefetch(w + (size_t)p * panel + ahead, _MM_HINT_T0);
        }
        TEC_UNROLL
        for (int v = 0; v < panels * SPLIT; v++)
            weights[v] = pair_first(w + (size_t)(v / SPLIT) * panel + 4 * VEC_WIDTH * (v % SPLIT));
        step(sums, weights, x, ldx, rows, panels * SPLIT);
        if (copied)
            TEC_RELOAD();
        TEC_UNROLL
        for (int v = 0; v < panels * SPLIT; v++)
            weights[v] = pair_second(w + (size_t)(v / SPLIT) * panel + 4 * VEC_WIDTH * (v % SPLIT));
        step(sums, weights, x + 1, ldx, rows, panels * SPLIT);
    }
}

/* copied, rows and panels are constants: this becomes one function for each. */
VEC_INLINE void tile(const struct tile *t, bool copied, int rows, int panels)
{
    enum { MOST = 32 };
    vec sums[MOST];
    int vectors = panels * SPLIT, whole = t->k / 2;
    size_t ldx = copied ? LDX : t->ldx;
    TEC_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        sums[i] = t->more ? vec_load(t->sums + (i / vectors) * t->ld + (i % vectors) * VEC_WIDTH)
                          : vec_set(0.0F);
    /* Prefetch further down the same panels, and near their end the next ones from their top. */
    int turn = copied ? 0 : whole > AHEAD ? whole - AHEAD : 0;
    lines(t, sums, ldx, 0, turn, AHEAD * LINE, copied, rows, panels);
    lines(t, sums, ldx, turn, whole, t->next - t->w - (ptrdiff_t)turn * LINE, copied, rows, panels);
    if (t->k % 2) {
        vec weights[8];
        const char *w = t->w + (size_t)whole * LINE;
        TEC_UNROLL
        for (int v = 0; v < vectors; v++)
            weights[v] =
                pair_first(w + (size_t)(v / SPLIT) * t->panel + 4 * VEC_WIDTH * (v % SPLIT));
        step(sums, weights, t->x + 2 * (size_t)whole, ldx, rows, vectors);
    }
    TEC_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        vec_store(t->sums + (i / vectors) * t->ld + (i % vectors) * VEC_WIDTH, sums[i]);
}

typedef void tile_fn(const struct tile *t);

/* tile_<rows>_<panels> on a copied block; few_<rows>_<panels> on x where it lies. */
#define TILE(rows, panels)                                              \
    VEC_TARGET static void tile_##rows##_##panels(const struct tile *t) \
    {                                                                   \
        tile(t, true, rows, panels);                                    \
    }
#define FEW(rows, panels)                                              \
    VEC_TARGET static void few_##rows##_##panels(const struct tile *t) \
    {                                                                  \
        tile(t, false, rows, panels);                                  \
    }

/* The functions of a tier. For few rows, by rows - 1: the panels read side by side, the function
 * for them, and the one for a single panel. For tiles, by panels - 1 and rows - 1. */
struct tiles {
    struct {
        int panels;
        tile_fn *side_by_side, *one;
    } few[ROWS_FEW];
    tile_fn *tile[PANELS_TILE][ROWS_TILE];
};

/* Where work on one GEMM stands. */
struct gemm {
    const struct tec_gemm_args *a;
    const struct tiles *tiles;
    size_t panel;    /* bytes of one */
    int first, last; /* panels of this lane */
};

static const char *panel_at(const struct gemm *g, int p)
{
    return (const char *)g->a->w + (size_t)p * g->panel;
}

VEC_TARGET static void few_rows(const struct gemm *g, int rows)
{
    const struct tec_gemm_args *a = g->a;
    float sums[ROWS_FEW * PANELS_FEW * PANEL];
    int most = g->tiles->few[rows - 1].panels, count;
    for (int p = g->first; p < g->last; p += count) {
        count = g->last - p < most ? 1 : most;
        int next = p + count < g->last ? p + count : p;
        struct tile t = {.x = a->x,
                         .ldx = (size_t)a->ldx,
                         .w = panel_at(g, p),
                         .panel = g->panel,
                         .next = panel_at(g, next),
                         .k = a->k,
                         .sums = sums,
                         .ld = PANELS_FEW * PANEL};
        if (count == most)
            g->tiles->few[rows - 1].side_by_side(&t);
        else
            g->tiles->few[rows - 1].one(&t);
        for (int r = 0; r < rows; r++)
            finish_row(a, sums + r * t.ld, r, p * PANEL, count * PANEL);
    }
}

/* A block of rows at `depth` k from `k`, and its sums over a group of panels. */
struct slab {
    float x[BLOCK * LDX], sums[BLOCK * GROUP * PANEL];
    int row, rows, k, depth;
};

VEC_TARGET static void copy_block(const struct tec_gemm_args *a, struct slab *b)
{
    for (int r = 0; r < b->rows; r++)
        memcpy(b->x + r * LDX, a->x + (size_t)(b->row + r) * (size_t)a->ldx + (size_t)b->k,
               (size_t)b->depth * sizeof(float));
}

/* Panels p .. p + count - 1 of the group that begins at `group`, all rows of the block. */
VEC_TARGET static void block_panels(const struct gemm *g, struct slab *b, int group, int p,
                                    int count, int next)
{
    size_t at = (size_t)b->k / 2 * LINE;
    struct tile t = {.w = panel_at(g, p) + at,
                     .panel = g->panel,
                     .next = panel_at(g, next) + at,
                     .k = b->depth,
                     .more = b->k > 0,
                     .ld = GROUP * PANEL};
    int tiles = (b->rows + ROWS_TILE - 1) / ROWS_TILE;
    for (int i = 0; i < tiles; i++) {
        int first = b->rows * i / tiles, last = b->rows * (i + 1) / tiles;
        t.x = b->x + first * LDX;
        t.sums = b->sums + (first * GROUP + p - group) * PANEL;
        g->tiles->tile[count - 1][last - first - 1](&t);
        t.next = t.w; /* once is enough */
    }
}

VEC_TARGET static void block_group(const struct gemm *g, struct slab *b, int group, int end)
{
    const struct tec_gemm_args *a = g->a;
    for (b->k = 0; b->k < a->k; b->k += DEPTH) {
        b->depth = a->k - b->k < DEPTH ? a->k - b->k : DEPTH;
        copy_block(a, b);
        int count = PANELS_TILE;
        for (int p = group; p < end; p += count) {
            count = end - p < PANELS_TILE ? 1 : PANELS_TILE;
            block_panels(g, b, group, p, count, p + count < end ? p + count : group);
        }
    }
    for (int r = 0; r < b->rows; r++)
        finish_row(a, b->sums + r * GROUP * PANEL, b->row + r, group * PANEL,
                   (end - group) * PANEL);
}

VEC_TARGET static void many_rows(const struct gemm *g, int rows)
{
    struct slab b;
    int blocks = (rows + BLOCK - 1) / BLOCK;
    for (int i = 0; i < blocks; i++) {
        b.row = (int)((long)rows * i / blocks);
        b.rows = (int)((long)rows * (i + 1) / blocks) - b.row;
        for (int group = g->first; group < g->last; group += GROUP)
            block_group(g, &b, group, group + GROUP < g->last ? group + GROUP : g->last);
    }
}

VEC_TARGET static void run_bf16(const struct tec_gemm_args *a, struct tec_part part,
                                const struct tiles *tiles)
{
    struct tec_range share = tec_share(part, a->n, PANEL);
    struct gemm g = {.a = a,
                     .tiles = tiles,
                     .panel = ((size_t)a->k + 1) / 2 * LINE,
                     .first = share.first / PANEL,
                     .last = share.last / PANEL};
    int rows = tec_live(a->rows, a->max_rows);
    if (rows <= ROWS_FEW && rows > 0)
        few_rows(&g, rows);
    else if (rows > 0)
        many_rows(&g, rows);
}

#endif

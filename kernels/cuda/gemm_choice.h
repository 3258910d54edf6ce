/* gemm_choice.h - how k is cut, and which tile a product takes: plain C, for the launchers and for
 * the model of kernels (kernels/grids.h).
 *
 * k is cut in splits that depend on the matrix (n, k) alone. Who sums which split is free, so the
 * choice may follow the rows and the device. */
#ifndef TEC_KERNELS_CUDA_GEMM_CHOICE_H
#define TEC_KERNELS_CUDA_GEMM_CHOICE_H

#include "kernels/cuda/row_digits_room.h"
#include "kernels/cuda/row_terms_room.h"
#include "kernels/cuda/sizes.h"
#include "kernels/int8.h"

enum { F32_CHAIN = 32 }; /* k of a chain of float32 products: kernels/panels/gemm_f32.inc, CHAIN */

enum gemm_tile_id {
    GEMM_NONE, /* no kernel fits */
#define MMA_TILE(name, ...) GEMM_##name,
#define GROUP_TILE(name, ...) GEMM_##name,
#define TERMS_TILE(name, ...) GEMM_##name,
#define INT4_FEW_MMA_TILE(name, ...) GEMM_##name,
#define INT4_MANY_MMA_TILE(name, ...) GEMM_##name,
#define INT8_FEW_MMA_TILE(name, ...) GEMM_##name,
#define INT8_MANY_MMA_TILE(name, ...) GEMM_##name,
#define INT8_MANY_GROUPS_TILE(name, ...) GEMM_##name,
#define F32_TILE(name, ...) GEMM_##name,
#include "kernels/cuda/gemm_tiles.def"
    GEMM_TILES
};

/* The tile of a thread block. Shared memory is that of the plain kernel, bytes. */
struct gemm_tile {
    const char *name;
    int terms; /* of x, in the multiplies; 0: as many as the product asks for */
    int columns, rows, k, stages, threads, shared;
    int registers, normed; /* of a thread; with a norm in front */
    int resident;          /* blocks of a multiprocessor at most; 0: as many as fit */
    int clocks;            /* of a step (of two terms) of all resident blocks; 0: not known */
};

/* Rows of a warp of INT4_FEW_MMA_TILE, and bytes that it shares of them. */
enum {
    int4_few_mma_four_rows = 4,
    int4_few_mma_four_shared = 4 * 3 * (128 / 4 + 4) * 4,
    int4_few_mma_eight_rows = 8,
    int4_few_mma_eight_shared = 0
};

#ifdef __cplusplus
#define GEMM_TABLE static constexpr
#else
#define GEMM_TABLE static const
#endif

GEMM_TABLE struct gemm_tile gemm_tiles[GEMM_TILES] = {
    {"none", 0, 16, 1, 16, 0, 0, 0, 0, 0, 0, 0},
#define MMA_TILE(name, terms, across, down, m, n, k, stages, registers, normed) \
    {#name,                                                                     \
     terms,                                                                     \
     (across) * (m)*16,                                                         \
     (down) * (n)*8,                                                            \
     k,                                                                         \
     stages,                                                                    \
     (across) * (down)*32,                                                      \
     (stages) * ((across) * (m) * (k)*32 + (down) * (n)*8 * ((k) + 8) * 4),     \
     registers,                                                                 \
     normed,                                                                    \
     0,                                                                         \
     0},
#define GROUP_TILE(name, terms, n, groups, k, stages, registers)                   \
    {#name,                                                                        \
     terms,                                                                        \
     128,                                                                          \
     (groups) * (n)*8,                                                             \
     k,                                                                            \
     stages,                                                                       \
     (groups)*128 + 128,                                                           \
     (stages) * (8 * (k)*32 + (terms) * (groups) * (n) * (k)*16 + 16 * (k) + 32) + \
         (groups) * (n)*32,                                                        \
     registers,                                                                    \
     registers,                                                                    \
     2,                                                                            \
     0},
#define TERMS_TILE(name, n, across, stages, resident, clocks, registers) \
    {#name,                                                              \
     0,                                                                  \
     (across)*128,                                                       \
     (n)*8,                                                              \
     64,                                                                 \
     stages,                                                             \
     (across)*256 + 32,                                                  \
     (stages) * ((across)*8 * 64 * 32 + (n)*2 * 1024) + 16 * (stages),   \
     registers,                                                          \
     0,                                                                  \
     resident,                                                           \
     clocks},
#define INT4_FEW_MMA_TILE(name, x, deep, m, n, stages, registers)                  \
    {#name,                                                                        \
     0,                                                                            \
     (m)*16,                                                                       \
     (n)*x##_rows,                                                                 \
     128 * (deep),                                                                 \
     stages,                                                                       \
     (deep)*32,                                                                    \
     (deep) * ((stages) * (m) * (1 + 128 / 8) * 64 +                               \
               ((n) > 2 ? 1 : 2) * ((m) * (n)*32 * 16 + (m)*16 * 4) + x##_shared), \
     registers,                                                                    \
     0,                                                                            \
     0,                                                                            \
     0},
#define INT4_MANY_MMA_TILE(name, n, stages, whole, registers)                             \
    {                                                                                     \
        #name,     0,                                                                     \
        128,       (n)*16,                                                                \
        128,       stages,                                                                \
        256,       (stages) * (8 * (1 + 128 / 8) * 64 + (n)*2 * 4 * 8 * 32 + (n)*16 * 4), \
        registers, 0,                                                                     \
        0,         0},
#define INT8_FEW_MMA_TILE(name, digits, deep, across, n, registers, normed)      \
    {#name,                                                                      \
     digits,                                                                     \
     (across)*16,                                                                \
     (n)*8,                                                                      \
     128 * (deep),                                                               \
     1,                                                                          \
     (deep) * (across)*32,                                                       \
     ((deep) * (digits) * (n)*8 * 36 + (deep) * (n)*8 + (across) * (n)*128) * 4, \
     registers,                                                                  \
     normed,                                                                     \
     0,                                                                          \
     0},
#define INT8_MANY_MMA_TILE(name, digits, across, down, n, stages, resident, registers,           \
                           instructions)                                                         \
    {#name,                                                                                      \
     digits,                                                                                     \
     (across)*32,                                                                                \
     (down) * (n)*8,                                                                             \
     TEC_INT8_GROUP,                                                                             \
     stages,                                                                                     \
     (across) * (down)*32,                                                                       \
     (stages) * ((across)*32 * TEC_INT8_GROUP + (down) * (n)*8 * ((digits)*TEC_INT8_GROUP + 4)), \
     registers,                                                                                  \
     0,                                                                                          \
     0,                                                                                          \
     0},
#define INT8_MANY_GROUPS_TILE(name, digits, n, stages, resident, clocks, registers)          \
    {                                                                                        \
        #name,                                                                               \
        digits,                                                                              \
        128,                                                                                 \
        (n)*8,                                                                               \
        128,                                                                                 \
        stages,                                                                              \
        288,                                                                                 \
        (stages) * (8 * (128 * 16 + 32) + (n)*4 * (digits)*DIGITS_EIGHT + (n)*32 + 16) + 24, \
        registers,                                                                           \
        0,                                                                                   \
        resident,                                                                            \
        clocks},
#define F32_TILE(name, columns, rows, m, n, chains, stages, registers) \
    {#name,                                                            \
     1,                                                                \
     columns,                                                          \
     rows,                                                             \
     (chains)*F32_CHAIN,                                               \
     stages,                                                           \
     (chains) * ((columns) / (m)) * ((rows) / (n)),                    \
     4 * (chains) *                                                    \
         ((stages) * ((columns) + (rows)) * (F32_CHAIN + 4) +          \
          ((chains) > 1 ? (columns) * (rows) : 0)),                    \
     registers,                                                        \
     0,                                                                \
     0,                                                                \
     0},
#include "kernels/cuda/gemm_tiles.def"
};

/* --- k --------------------------------------------------------------------------------------- */

/* Splits 0 .. count - 1 of `each` blocks of 16 k; the last may be shorter. */
struct split {
    int blocks, each, count;
};

/* Splits are whole steps of the pipeline (STEP_BLOCKS), so that walking over them never stops
 * within a step. Matrices of few columns are cut until WANTED blocks of `columns` can work. */
enum { STEP_BLOCKS = 4, LEAST_BLOCKS = 8, WANTED = 128, MOST_SPLITS = 32 };

static inline struct split split_of(int n, int k, int columns)
{
    int blocks = ceil_div(k, 16), wanted = ceil_div(WANTED, ceil_div(n, columns));
    int most = blocks / LEAST_BLOCKS < MOST_SPLITS ? blocks / LEAST_BLOCKS : MOST_SPLITS;
    int count = wanted < most ? wanted : most;
    if (count < 1)
        count = 1;
    int each = ceil_div(ceil_div(blocks, count), STEP_BLOCKS) * STEP_BLOCKS;
    struct split split = {blocks, each, ceil_div(blocks, each)};
    return split;
}

/* --- products of bf16 weights ---------------------------------------------------------------- */

/* A product, of capacity `rows`, with what stands around it. */
struct gemm_ask {
    int n, k, rows;
    int places;   /* panels of 16 columns that its tiles take, n / 16 or as the finish wants them */
    bool pairs;   /* the finish takes panels in pairs */
    bool few;     /* there are tiles for up to 32 rows */
    bool wide;    /* the finish leaves registers for the widest tiles */
    bool norm;    /* x is a norm's output, made by the product */
    bool rounded; /* x holds bf16 values */
};

struct gemm_choice {
    enum gemm_tile_id tile; /* of terms_*: of the first part of the rows */
    bool walk;              /* a block takes all splits, one after the other */
    struct split split;
};

static inline int gemm_tile_count(enum gemm_tile_id id, int rows, int places)
{
    return ceil_div(rows, gemm_tiles[id].rows) * ceil_div(places, gemm_tiles[id].columns / 16);
}

/* Blocks for the splits, where there is room for their sums. */
static inline bool gemm_fits(enum gemm_tile_id id, const struct gemm_ask *ask,
                             const struct split *split, const struct tec_cuda_facts *f)
{
    int tiles = gemm_tile_count(id, ask->rows, ask->places);
    size_t all = (size_t)tiles * (size_t)split->count;
    size_t sums = (size_t)gemm_tiles[id].columns * (size_t)gemm_tiles[id].rows * sizeof(float);
    return split->count == 1 || (all * sums <= f->partials_size && tiles <= TEC_CUDA_TICKETS);
}

/* The first of these tiles that has room for the rows; GEMM_NONE: they are too many. */
static inline enum gemm_tile_id gemm_few(const enum gemm_tile_id ids[3], const struct gemm_ask *ask,
                                         const struct split *split, const struct tec_cuda_facts *f)
{
    for (int i = 0; ask->few && i < 3; i++)
        if (ask->rows <= gemm_tiles[ids[i]].rows && gemm_fits(ids[i], ask, split, f))
            return ids[i];
    return GEMM_NONE;
}

/* Whether a block for each split of a tile is done before one block for each tile that walks over
 * all its splits, counted in steps of a tile that multiplies bound: each wave of blocks has what is
 * around its steps, a block of a split its sums to leave and to be added up, and the last one of a
 * tile all of them. So 192 tiles on 128 processors take three waves of halves, not two of which the
 * second is half empty. The three numbers are those of a model of the kernel: none was measured. */
enum { SHARE_AROUND = 2, SHARE_LEFT = 4, SHARE_ADDED = 2 };
static inline bool gemm_shares(enum gemm_tile_id id, const struct gemm_ask *ask,
                               const struct split *split, const struct tec_cuda_facts *f)
{
    int tiles = gemm_tile_count(id, ask->rows, ask->places), step = gemm_tiles[id].k / 16;
    long long walk = ceil_div(split->blocks, step) + SHARE_AROUND;
    long long part = split->each / step + SHARE_AROUND + SHARE_LEFT;
    long long added = SHARE_ADDED * (long long)split->count;
    return ceil_div(tiles * split->count, f->processors) * part + added <
           ceil_div(tiles, f->processors) * walk;
}

/* Whether many rows take the large tiles: they occupy the device, and their waves are done before
 * those of small ones, which have half the rows. A wave of these takes more than half as long,
 * since weights are read for fewer rows; with one term, whose multiplies hide less of that, more
 * still. These numbers are estimates: none was measured. */
enum { LARGE_WAVE = 16, SMALL_WAVE = 9, SMALL_WAVE_ROUNDED = 11 };
static inline bool gemm_large_tiles(enum gemm_tile_id large, enum gemm_tile_id small,
                                    const struct gemm_ask *ask, const struct tec_cuda_facts *f)
{
    int tiles = gemm_tile_count(large, ask->rows, ask->places);
    int waves = ceil_div(gemm_tile_count(small, ask->rows, ask->places), f->processors);
    int wave = gemm_tiles[small].terms == 1 ? SMALL_WAVE_ROUNDED : SMALL_WAVE;
    return tiles >= f->processors && LARGE_WAVE * ceil_div(tiles, f->processors) <= wave * waves;
}

/* Tiles are as large as leaves no processor idle; splits become blocks with few rows, and with many
 * where tiles alone would leave half of the device idle, or take more steps. */
static inline struct gemm_choice gemm_choose_mma(const struct gemm_ask *ask,
                                                 const struct tec_cuda_facts *f)
{
    const enum gemm_tile_id few[3] = {ask->pairs ? GEMM_rows_8_pairs : GEMM_rows_8, GEMM_rows_16,
                                      GEMM_rows_32};
    bool rounded = ask->rounded && !ask->norm;
    enum gemm_tile_id small = rounded ? GEMM_rounded_rows_64 : GEMM_rows_64;
    enum gemm_tile_id large = rounded ? GEMM_rounded_rows_128 : GEMM_rows_128;
    struct gemm_choice c = {GEMM_NONE, false, {0, 0, 0}};
    c.split = split_of(ask->n, ask->k, gemm_tiles[GEMM_rows_64_narrow].columns);
    c.tile = gemm_few(few, ask, &c.split, f);
    if (c.tile != GEMM_NONE)
        return c;
    if (!ask->norm && ask->rows > 64 && gemm_large_tiles(large, small, ask, f)) {
        c.tile = large;
        c.walk = c.split.count > 1;
        return c;
    }
    int tiles = gemm_tile_count(small, ask->rows, ask->places);
    bool share =
        ask->rows <= 64 || tiles * 2 <= f->processors || gemm_shares(small, ask, &c.split, f);
    if (tiles * c.split.count < f->processors && gemm_fits(GEMM_rows_64_narrow, ask, &c.split, f)) {
        c.tile = GEMM_rows_64_narrow;
    } else if (c.split.count == 1 || (share && gemm_fits(small, ask, &c.split, f))) {
        c.tile = small;
    } else if (!ask->norm) {
        c.tile = small;
        c.walk = true;
    }
    return c;
}

/* Clocks of a launch of so many tiles: as many waves as they need, each with what surrounds its
 * steps. */
enum { TERMS_AROUND = 4000 };
static inline long long terms_cost(enum gemm_tile_id id, int rows, int terms,
                                   const struct gemm_ask *ask, const struct split *split,
                                   const struct tec_cuda_facts *f)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    int steps = ceil_div(split->blocks, t->k / 16);
    long long wave = (long long)t->clocks * terms / 2 * steps + TERMS_AROUND;
    return ceil_div(gemm_tile_count(id, rows, ask->places), f->processors * t->resident) * wave;
}

/* The tile of `rows` rows whose terms are there. The widest has no registers for a second sum. */
static inline enum gemm_tile_id terms_choose(int rows, const struct gemm_ask *ask,
                                             const struct split *split,
                                             const struct tec_cuda_facts *f)
{
    int terms = ask->rounded ? 1 : 2;
    long long few = terms_cost(GEMM_terms_64, rows, terms, ask, split, f);
    long long many = terms_cost(GEMM_terms_128, rows, terms, ask, split, f);
    long long least = many < few ? many : few;
    if (ask->wide && split->count == 1 &&
        terms_cost(GEMM_terms_wide, rows, terms, ask, split, f) < least)
        return GEMM_terms_wide;
    return least == many ? GEMM_terms_128 : GEMM_terms_64;
}

/* Rows whose terms there is room for at once, a multiple of the largest tile's; 0: for none. */
static inline int terms_part(const struct gemm_ask *ask, const struct tec_cuda_facts *f)
{
    int rows = gemm_tiles[GEMM_terms_128].rows;
    return tec_cuda_terms_room(f->terms_size, ask->rounded ? 1 : 2, ask->k) / rows * rows;
}

/* Bytes of so many rows as terms, as many as whole tiles of the largest read. */
static inline size_t terms_bytes(int rows, int terms, int k)
{
    int tile = gemm_tiles[GEMM_terms_128].rows;
    return (size_t)ceil_div(rows, tile) * (size_t)(tile / TERMS_ROWS) *
           tec_cuda_terms_size(terms, k);
}

/* Few rows split as blocks: they leave processors idle else. A norm goes with at most 64 rows. */
static inline struct gemm_choice gemm_choose_groups(const struct gemm_ask *ask,
                                                    const struct tec_cuda_facts *f)
{
    static const enum gemm_tile_id few[3] = {GEMM_groups_8, GEMM_groups_16, GEMM_groups_32};
    struct gemm_choice c = {GEMM_NONE, false, {0, 0, 0}};
    int most = gemm_tiles[GEMM_groups_64].rows;
    c.split = split_of(ask->n, ask->k, gemm_tiles[GEMM_groups_64].columns);
    c.tile = gemm_few(few, ask, &c.split, f);
    if (c.tile != GEMM_NONE)
        return c;
    bool idle = gemm_tile_count(GEMM_groups_64, ask->rows, ask->places) * 2 <= f->processors;
    if (ask->rows <= (idle ? 2 : 1) * most && gemm_fits(GEMM_groups_64, ask, &c.split, f)) {
        c.tile = GEMM_groups_64;
    } else if (!ask->norm) {
        int part = terms_part(ask, f);
        c.tile = terms_choose(ask->rows < part || part == 0 ? ask->rows : part, ask, &c.split, f);
        c.walk = c.tile != GEMM_terms_wide;
    }
    return c;
}

/* GEMM_NONE: the product and its norm are not started together. */
static inline struct gemm_choice gemm_choose(const struct gemm_ask *ask,
                                             const struct tec_cuda_facts *f)
{
    return f->groups ? gemm_choose_groups(ask, f) : gemm_choose_mma(ask, f);
}

/* Blocks of a cluster: those of a tile's splits, which then add their sums together, a part each;
 * 1: the last of them adds all (gemm_split.cuh). They have to wait for one another, which of few
 * rows or two splits takes longer than all of the adding: by a model (doc/roofline.md), none of it
 * was measured. */
enum { SHARED_ROWS = 32, SHARED_SPLITS = 3 };
static inline int gemm_cluster(const struct gemm_choice *c, const struct tec_cuda_facts *f)
{
    int n = c->split.count;
    bool many = c->tile == GEMM_groups_32 || c->tile == GEMM_groups_64;
    bool room = n <= TEC_CUDA_CLUSTER && f->clusters >> n & 1U;
    return many && n >= SHARED_SPLITS && room ? n : 1;
}

/* --- products of bytes ----------------------------------------------------------------------- */

/* Digits of the rows of a product, and how many rows have theirs written first, at a time: 0:
 * blocks make the digits of their rows, of all at once. */
struct digits_choice {
    struct tec_cuda_digits form;
    int part;
};

/* Rows whose digits there is room for at once, a multiple of the largest tile's; 0: for none. */
static inline int digits_part(const struct tec_cuda_digits *form, enum gemm_tile_id largest,
                              const struct tec_cuda_facts *f)
{
    int rows = gemm_tiles[largest].rows;
    return tec_cuda_digits_room(f->terms_size, form) / rows * rows;
}

/* A start of a product: its tile, and blocks along x and y. */
struct gemm_start {
    enum gemm_tile_id tile;
    int x, y;
};

/* A block for each tile, rows along x. */
static inline struct gemm_start gemm_start_of(enum gemm_tile_id id, int rows, int places)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    return (struct gemm_start){id, ceil_div(rows, t->rows), ceil_div(places, t->columns / 16)};
}

/* --- products of float32 weights -------------------------------------------------------------- */

/* Large tiles where they are enough to keep the device busy. */
static inline enum gemm_tile_id f32_choose(int n, int rows, const struct tec_cuda_facts *f)
{
    return gemm_tile_count(GEMM_f32_large, rows, ceil_div(n, 16)) * 2 > f->processors
               ? GEMM_f32_large
               : GEMM_f32_small;
}

#endif

/* attention_plan.h - how a launcher cuts the rows of attention, and the grid; plain C, for the
 * launchers and for the model of kernels (kernels/grids.h).
 *
 * The launcher knows capacities alone; bytes depend on nothing that is chosen here. */
#ifndef TEC_KERNELS_CUDA_ATTENTION_PLAN_H
#define TEC_KERNELS_CUDA_ATTENTION_PLAN_H

#include "kernels/args.h"
#include "kernels/cuda/sizes.h"

/* Keys of a block, blocks of a chunk, threads; heads of more columns than WIDE have a kernel of
 * their own. JOB: ints of a thread block's state in shared memory, a multiple of four. */
enum { KEYS = 64, CHUNK = 2, THREADS = 256, WIDE = 256, JOB = 20 };

/* The tiling of the rows, chosen by the launcher. Grid: x = row tiles * starts, y = kv_heads *
 * head_tiles, z = splits. */
struct attention_plan {
    int rows;       /* of a tile */
    int heads;      /* query heads that a tile takes of one row */
    int head_tiles; /* of one key-value head */
    int starts;     /* thread blocks that share the runs of a tile */
    int splits;     /* thread blocks that share the chunks of a run; 1 unless starts = rows */
    int capacity;   /* chunks that there is room for in `partials`, for each block in x and y */
    bool near;      /* answers wait in a multiprocessor for the next chunk, not in `out` */
    float *partials;
    int *tickets;
};
/* The largest number of packed rows in a tile. */
static TEC_ANYWHERE inline int partial_rows(const struct attention_plan *plan)
{
    return plan->rows * plan->heads;
}
/* Floats of a packed row in `partials`, and of one chunk: fours, as they are read by. */
static TEC_ANYWHERE inline int partial_columns(int head_dim)
{
    return (head_dim + 3) / 4 * 4;
}
static TEC_ANYWHERE inline int partial_size(const struct attention_plan *plan, int head_dim)
{
    return (partial_rows(plan) * (partial_columns(head_dim) + 2) + 3) / 4 * 4;
}
/* Choose the tiling: tiles of m packed rows, at most `splits` blocks along the keys. */
static inline struct attention_plan attention_tiles(const struct tec_attention_args *a, int m)
{
    int group = a->heads / a->kv_heads;
    struct attention_plan y = {0};
    y.heads = group < m ? group : m;
    y.head_tiles = ceil_div(group, y.heads);
    y.rows = m / y.heads;
    if (y.rows > a->max_rows)
        y.rows = a->max_rows;
    y.starts = 1;
    y.splits = 1;
    return y;
}

static inline int attention_row_tiles(const struct tec_attention_args *a,
                                      const struct attention_plan *plan)
{
    return ceil_div(a->max_rows, plan->rows);
}

/* Tiles of one launch, whole or not. */
static inline int attention_tile_count(const struct tec_attention_args *a,
                                       const struct attention_plan *plan)
{
    return attention_row_tiles(a, plan) * a->kv_heads * plan->head_tiles;
}

/* Let several blocks share the keys of a tile, where there are too few tiles for the device. The
 * caller gives the plan its memory where splits > 1. */
static inline void attention_split(const struct tec_attention_args *a,
                                   const struct tec_cuda_facts *f, struct attention_plan *plan)
{
    enum { MOST = 16 };
    int tiles = attention_tile_count(a, plan), blocks = tiles * plan->rows;
    int splits = ceil_div(f->processors, tiles); /* those without a chunk occupy them, too */
    size_t item = (size_t)blocks * (size_t)partial_size(plan, a->head_dim) * sizeof(float);
    size_t capacity = f->partials_size / item;
    if (splits < 2 || capacity < 2 || blocks > TEC_CUDA_TICKETS)
        return;
    plan->starts = plan->rows;
    plan->splits = splits < MOST ? splits : (int)MOST;
    plan->capacity = capacity < 1U << 20 ? (int)capacity : 1 << 20;
}

/* Blocks along x, y and z. */
static inline void attention_blocks(const struct tec_attention_args *a,
                                    const struct attention_plan *plan, unsigned blocks[3])
{
    blocks[0] = (unsigned)(attention_row_tiles(a, plan) * plan->starts);
    blocks[1] = (unsigned)(a->kv_heads * plan->head_tiles);
    blocks[2] = (unsigned)plan->splits;
}

/* Shared memory that a block may ask for, bytes: the CUDA programming guide's table of compute
 * capabilities; of 11.0 the capacity that NVIDIA's CUTLASS has for sm_110. */
static inline size_t shared_limit(int capability)
{
    const size_t kib = 1024;
    if (capability == 80 || capability == 87)
        return 163 * kib;
    if (capability == 90 || capability == 100 || capability == 103 || capability == 110)
        return 227 * kib;
    return 99 * kib;
}

/* Whether the tiled kernels have no code for this. */
static inline bool attention_is_wide(const struct tec_attention_args *a)
{
    return a->head_dim > WIDE || a->bias || a->cap > 0.0F || a->window > 0;
}

/* --- bf16 memory ----------------------------------------------------------------------------- */

/* In bf16: whole instructions, and eight more so that rows begin in different banks. */
static TEC_ANYWHERE inline int bf16_row_stride(int head_dim)
{
    return (head_dim + 15) / 16 * 16 + 8;
}

enum { BF16_P_LD = KEYS + 8 };

static inline size_t bf16_shared_size(int m, int stages, int head_dim)
{
    size_t row = (size_t)bf16_row_stride(head_dim) * 2;
    return (size_t)(2 * m + 2 * stages * KEYS) * row + (size_t)(2 * m * BF16_P_LD) * 2 +
           (size_t)m * (8 + 8 + 1) * sizeof(float) + (4 + JOB) * sizeof(int);
}

/* In floats: so that rows begin in different banks. */
static TEC_ANYWHERE inline int answer_row_stride(int head_dim)
{
    return head_dim + 8;
}

/* Packed rows of a tile, stages of keys and values, bf16 terms of what float32 memory holds (0: the
 * multiplies are float32's, or memory is bf16), and the plan. */
struct attention_choice {
    int m, stages, terms;
    size_t shared;
    struct attention_plan plan;
};

/* Answers wait in shared memory where that leaves as many thread blocks on a multiprocessor: two
 * small tiles at most, or a large one. */
static inline void attention_bring_near(const struct tec_attention_args *a,
                                        const struct tec_cuda_facts *f, struct attention_choice *c)
{
    enum { RESERVED = 1024 }; /* of each block */
    size_t all = shared_limit(f->capability) + RESERVED, most = c->m == 16 ? 2 : 1;
    size_t more = (size_t)(c->m * answer_row_stride(a->head_dim)) * sizeof(float);
    size_t blocks = all / (c->shared + RESERVED);
    blocks = blocks < most ? blocks : most;
    if (c->plan.splits > 1 || blocks == 0 || blocks * (c->shared + more + RESERVED) > all)
        return;
    c->plan.near = true;
    c->shared += more;
}

/* Large tiles where half the device or more has one, their answers are near, and they are less than
 * half as many: in a block of keys one of 64 rows has 2.2 times the instructions of one of 16, and
 * answers that wait in `out` cost more than large tiles save (doc/roofline.md). Else small ones
 * whose keys are shared too. Of heads of more than 128 columns two small blocks find room in a
 * multiprocessor. */
static inline struct attention_choice attention_choose_bf16(const struct tec_attention_args *a,
                                                            const struct tec_cuda_facts *f)
{
    int dim = a->head_dim;
    struct attention_choice c = {64, dim <= 64 ? 2 : 1, 0, 0, attention_tiles(a, 64)};
    struct attention_plan small = attention_tiles(a, 16);
    int large = attention_tile_count(a, &c.plan);
    c.shared = bf16_shared_size(c.m, c.stages, dim);
    attention_bring_near(a, f, &c);
    if (c.plan.near && 2 * large >= f->processors && attention_tile_count(a, &small) > 2 * large)
        return c;
    c.m = 16;
    c.stages = dim <= 128 ? 2 : 1;
    c.shared = bf16_shared_size(c.m, c.stages, dim);
    c.plan = attention_tiles(a, c.m);
    attention_split(a, f, &c.plan);
    attention_bring_near(a, f, &c);
    return c;
}

/* --- sums of weights over bf16 memory -------------------------------------------------------- */

/* Heads of one key-value head whose weights are added to one another first, whatever the tile, and
 * stages of keys. A query is MASS_TERMS bf16 numbers: all of its 24 bits. */
enum { MASS_HEADS = 16, MASS_STAGES = 2, MASS_TERMS = 3 };

/* Packed rows of a tile (0: heads are too wide, or there is no room), its rows, the heads that it
 * has of a row at a time, and thread blocks, each with a place in `partials`. */
struct mass_choice {
    int m, rows, heads, blocks;
    size_t shared;
};

static inline size_t mass_shared_size(int m, int head_dim)
{
    size_t row = (size_t)bf16_row_stride(head_dim) * 2;
    size_t queries = (size_t)m * (MASS_TERMS * row + sizeof(float) * (KEYS + 1 + 8 + 5 + 2));
    return queries + (size_t)(MASS_STAGES * KEYS) * row + (KEYS + 4) * sizeof(int);
}

/* The bytes where sums of ranges wait: those for partial sums, or those for the terms of rows,
 * whose users are one at a time, too. */
static inline bool mass_among_terms(const struct tec_cuda_facts *f)
{
    return f->terms_size > f->partials_size;
}

/* The sums of each range for the packed rows of a tile. */
static inline size_t mass_place(const struct tec_mass_args *a, int m)
{
    return (size_t)m * (size_t)a->max_ranges * sizeof(float);
}

/* Large tiles where they, and the places of their sums, occupy the device twice; else small ones.
 */
static inline struct mass_choice mass_choose(const struct tec_mass_args *a,
                                             const struct tec_cuda_facts *f)
{
    int group = a->heads / a->kv_heads, heads = group < MASS_HEADS ? group : MASS_HEADS;
    struct mass_choice none = {0, 0, 0, 0, 0};
    if (a->head_dim > WIDE || a->max_ranges < 1 || a->max_rows < 1)
        return none;
    for (int m = 64; m >= MASS_HEADS; m -= 48) {
        struct mass_choice c = {m, m / heads, heads, 0, mass_shared_size(m, a->head_dim)};
        size_t room = mass_among_terms(f) ? f->terms_size : f->partials_size;
        size_t places = room / mass_place(a, m);
        int tiles = ceil_div(a->max_rows, c.rows), wanted = 2 * f->processors;
        c.blocks = places < (size_t)tiles ? (int)places : tiles;
        bool large = c.blocks >= wanted && c.shared <= shared_limit(f->capability);
        if (large || (m == MASS_HEADS && c.blocks > 0))
            return c;
    }
    return none;
}

/* --- float32 memory -------------------------------------------------------------------------- */

/* In floats: a multiple of four that is odd in fours, so that rows begin in different banks. */
static TEC_ANYWHERE inline int f32_row_stride(int head_dim)
{
    return ((head_dim + 3) / 4 | 1) * 4;
}

enum { F32_P_LD = KEYS + 4 };

static inline size_t f32_shared_size(int m, int piece, int head_dim)
{
    return ((size_t)(m + 2 * piece) * (size_t)f32_row_stride(head_dim) +
            (size_t)m * (F32_P_LD + 1)) *
               sizeof(float) +
           (4 + JOB) * sizeof(int);
}

/* Heads of at most TERMS_WIDE columns are multiplied as terms, where that will do; TERMS_NARROW: of
 * large tiles' instances. */
enum { TERMS_NARROW = 80, TERMS_WIDE = 128 };

/* Both terms of a block of keys, then of its values, have the place of one stage of bf16 memory.
 * Each tile splits all keys into terms: so large tiles, unless small ones find room all at once. */
static inline struct attention_choice attention_choose_terms(const struct tec_attention_args *a,
                                                             const struct tec_cuda_facts *f)
{
    struct attention_choice c = {16, 1, 2, 0, attention_tiles(a, 16)};
    if (attention_tile_count(a, &c.plan) <= f->processors) {
        attention_split(a, f, &c.plan);
    } else {
        c.m = 64;
        c.plan = attention_tiles(a, c.m);
    }
    c.shared = bf16_shared_size(c.m, c.stages, a->head_dim);
    c.plan.near = c.m == 16 || a->head_dim <= TERMS_NARROW; /* in registers */
    return c;
}

/* `stages`: keys of a piece. */
static inline struct attention_choice attention_choose_f32(const struct tec_attention_args *a,
                                                           const struct tec_cuda_facts *f)
{
    int dim = a->head_dim, m = dim <= 80 ? 64 : dim <= 128 ? 32 : 16;
    if (a->terms == 2 && dim <= TERMS_WIDE)
        return attention_choose_terms(a, f);
    struct attention_choice c = {m, dim <= 128 ? 64 : 16, 0, 0, attention_tiles(a, m)};
    c.shared = f32_shared_size(m, c.stages, dim);
    attention_split(a, f, &c.plan);
    return c;
}

#endif

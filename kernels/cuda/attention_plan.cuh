/* attention_plan.cuh - how a launcher cuts the rows of attention, and the grid.
 *
 * The launcher knows capacities alone; bytes depend on nothing that is chosen here. */
#pragma once

#include "kernels/cuda/lang.cuh"

/* The tiling of the rows, chosen by the launcher. Grid: x = row tiles * starts, y = kv_heads *
 * head_tiles, z = splits. */
struct attention_plan {
    int rows;       /* of a tile */
    int heads;      /* query heads that a tile takes of one row */
    int head_tiles; /* of one key-value head */
    int starts;     /* thread blocks that share the runs of a tile */
    int splits;     /* thread blocks that share the chunks of a run; 1 unless starts = rows */
    int capacity;   /* chunks that there is room for in `partials`, for each block in x and y */
    float *partials;
    int *tickets;
};
/* The largest number of packed rows in a tile. */
static __host__ __device__ __forceinline__ int partial_rows(const struct attention_plan &plan)
{
    return plan.rows * plan.heads;
}
/* Choose the tiling: tiles of m packed rows, at most `splits` blocks along the keys. */
static inline struct attention_plan attention_tiles(const struct tec_attention_args *a, int m)
{
    int group = a->heads / a->kv_heads;
    struct attention_plan y = {};
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

/* Let several blocks share the keys of a tile, where there are too few tiles for the device. */
static inline void attention_split(const struct tec_attention_args *a,
                                   const struct tec_cuda_launch *launch,
                                   struct attention_plan *plan)
{
    enum { MOST = 16 };
    int tiles = attention_tile_count(a, plan), blocks = tiles * plan->rows;
    int splits = ceil_div(launch->processors, tiles); /* those without a chunk occupy them, too */
    size_t item =
        (size_t)blocks * (size_t)partial_rows(*plan) * (size_t)(a->head_dim + 2) * sizeof(float);
    size_t capacity = launch->partials ? launch->partials_size / item : 0;
    if (splits < 2 || capacity < 2 || blocks > TEC_CUDA_TICKETS || !launch->tickets)
        return;
    plan->starts = plan->rows;
    plan->splits = splits < MOST ? splits : MOST;
    plan->capacity = capacity < 1U << 20 ? (int)capacity : 1 << 20;
    plan->partials = launch->partials;
    plan->tickets = launch->tickets;
}

static inline dim3 attention_grid(const struct tec_attention_args *a,
                                  const struct attention_plan *plan)
{
    return dim3((unsigned)(attention_row_tiles(a, plan) * plan->starts),
                (unsigned)(a->kv_heads * plan->head_tiles), (unsigned)plan->splits);
}

/* Shared memory that a block may ask for, bytes. */
static inline size_t shared_limit(int capability)
{
    if (capability == 80 || capability == 87)
        return 163U * 1024U;
    if (capability == 90 || capability == 100 || capability == 103)
        return 227U * 1024U;
    return 99U * 1024U;
}

/* kernels.h - the table through which everything above calls compute. */
#ifndef TEC_KERNELS_KERNELS_H
#define TEC_KERNELS_KERNELS_H

#include "kernels/args.h"

#include <stdbool.h>
#include <stddef.h>

/* The share of a kernel that one lane of the team does: lane 0 .. lanes - 1. Lanes write disjoint
 * outputs; the split never changes a result. */
struct tec_part {
    int lane, lanes;
};

/* Rows or columns first .. last - 1 of n in units of `grain`, for one lane. */
struct tec_range {
    int first, last;
};
static inline struct tec_range tec_share(struct tec_part part, int n, int grain)
{
    int units = (n + grain - 1) / grain;
    int first = (int)((long)units * part.lane / part.lanes) * grain;
    int last = (int)((long)units * (part.lane + 1) / part.lanes) * grain;
    return (struct tec_range){first, last < n ? last : n};
}

/* A live count read through its pointer, clamped to 0 .. capacity. */
static inline int tec_live(const int *count, int capacity)
{
    int n = *count;
    return n < 0 ? 0 : n > capacity ? capacity : n;
}

/* A run of rows cut to those that there are. */
static inline struct tec_span tec_rows_within(struct tec_span s, int rows)
{
    if (s.slot < 0 || s.slot >= rows || s.length < 0)
        return (struct tec_span){0, 0};
    return (struct tec_span){s.slot, s.length < rows - s.slot ? s.length : rows - s.slot};
}

/* Whether row r is one of the first rows that take the second set of vectors (args.h). */
static inline bool tec_is_fixed(const int *fixed, int r)
{
    return fixed && r < *fixed;
}

enum tec_kernel_id {
#define KERNEL(name, args) TEC_KERNEL_##name,
#include "kernels/kernels.def"
#undef KERNEL
    TEC_KERNEL_COUNT
};

/* The layout of weight matrices that a tier wants: row-major as they are stored, panels, or tiles
 * of tensor cores (kernels/matrix.h). */
enum tec_matrix_layout { TEC_MATRIX_ROWS, TEC_MATRIX_PANELS, TEC_MATRIX_TILES };

struct tec_kernels {
#define KERNEL(name, args) void (*name)(const struct tec_##args##_args *a, struct tec_part part);
#include "kernels/kernels.def"
#undef KERNEL
    enum tec_matrix_layout layout; /* one for all kernels of a table that read matrices */
};

/* The properties of a kernel that are known without running it. */
struct tec_kernel_info {
    const char *name;
    size_t args_size;
    void (*run)(const struct tec_kernels *table, const void *args, struct tec_part part);
};
extern const struct tec_kernel_info tec_kernel_infos[TEC_KERNEL_COUNT];

enum tec_tier {
#define TIER(name) TEC_TIER_##name,
#include "kernels/tiers.def"
#undef TIER
    TEC_TIER_COUNT
};

const char *tec_tier_name(enum tec_tier tier);

/* The tier of that name, or TEC_TIER_COUNT. */
enum tec_tier tec_tier_find(const char *name);

/* Whether this machine can execute the tier's own kernels: its processor has the instructions, and
 * the system enables them. */
bool tec_tier_runs_here(enum tec_tier tier);

/* Whether tier avx512 multiplies with a tile unit (AMX) on this machine. */
bool tec_tier_has_tiles(void);

/* The fastest tier that runs here. */
enum tec_tier tec_tier_best(void);

/* The best table whose tier is at most `tier`; entries a tier lacks come from the tiers below. */
struct tec_kernels tec_kernels_for(enum tec_tier tier);

/* Floats of scratch that attention needs for each lane. */
size_t tec_attention_scratch(int head_dim);

#define TIER(name) void tec_kernels_add_##name(struct tec_kernels *kernels);
#include "kernels/tiers.def"
#undef TIER

#endif

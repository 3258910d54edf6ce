/* kernels.c - the tables of kernels and of CPU tiers, and which tiers run on this machine.
 *
 * A table for a tier is filled tier by tier from the reference on: each tier overrides the kernels
 * that it improves, so none has to be complete but the reference. */
#include "kernels/kernels.h"

#include "kernels/avx512/avx512.h"

#include <string.h>

static const struct {
    const char *name;
    void (*add)(struct tec_kernels *kernels);
} tiers[TEC_TIER_COUNT] = {
#define TIER(name) [TEC_TIER_##name] = {#name, tec_kernels_add_##name},
#include "kernels/tiers.def"
#undef TIER
};

#define KERNEL(name, args)                                                                       \
    static void run_##name(const struct tec_kernels *table, const void *a, struct tec_part part) \
    {                                                                                            \
        table->name((const struct tec_##args##_args *)a, part);                                  \
    }
#include "kernels/kernels.def"
#undef KERNEL

const struct tec_kernel_info tec_kernel_infos[TEC_KERNEL_COUNT] = {
#define KERNEL(name, args) \
    [TEC_KERNEL_##name] = {#name, sizeof(struct tec_##args##_args), run_##name},
#include "kernels/kernels.def"
#undef KERNEL
};

const char *tec_tier_name(enum tec_tier tier)
{
    return tiers[tier].name;
}

enum tec_tier tec_tier_find(const char *name)
{
    for (int t = 0; t < TEC_TIER_COUNT; t++)
        if (strcmp(tiers[t].name, name) == 0)
            return (enum tec_tier)t;
    return TEC_TIER_COUNT;
}

bool tec_tier_runs_here(enum tec_tier tier)
{
#if defined(__x86_64__)
    if (tier == TEC_TIER_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (tier == TEC_TIER_avx512)
        return tec_tier_runs_here(TEC_TIER_avx2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq");
#elif defined(__aarch64__)
    if (tier == TEC_TIER_neon)
        return true;
#endif
    return tier == TEC_TIER_ref;
}

bool tec_tier_has_tiles(void)
{
#if defined(__x86_64__)
    return tec_tier_runs_here(TEC_TIER_avx512) && tec_tiles_permitted();
#else
    return false;
#endif
}

enum tec_tier tec_tier_best(void)
{
    enum tec_tier best = TEC_TIER_ref;
    for (int t = 0; t < TEC_TIER_COUNT; t++)
        if (tec_tier_runs_here((enum tec_tier)t))
            best = (enum tec_tier)t;
    return best;
}

struct tec_kernels tec_kernels_for(enum tec_tier tier)
{
    struct tec_kernels kernels;
    memset(&kernels, 0, sizeof kernels);
    for (int t = 0; t <= (int)tier; t++)
        tiers[t].add(&kernels);
    return kernels;
}

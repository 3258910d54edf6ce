/* exp_avx512.c - tests e^x, the ratio of gelu_erf and the soft cap of the avx512 tier against
 * float64, by exp.inc, and the powers of two of attention in whole numbers. */
#include "tests/tap.h"
#if defined(__x86_64__)
#include "kernels/avx512/vec.h"
#define EXP_TIER TEC_TIER_avx512
#include "tests/exp.inc"

#include "kernels/avx512/whole.h"

VEC_TARGET static float one_power(float x)
{
    return vec_first(whole_power(vec_set(x)));
}

TEST(powers_are_within_the_stated_error)
{
    if (!tec_tier_runs_here(EXP_TIER))
        SKIP("not on this machine");
    double most = 0;
    for (int i = 0; i <= 120 * 1024; i++) {
        double x = -i / 1024.0;
        most = fmax(most, fabs((double)one_power((float)x) / exp2(x) - 1));
    }
    CHECK(most < ldexp(1, -17));
    CHECK(most > ldexp(1, -18)); /* else nothing was compared */
}

TEST(powers_at_the_ends)
{
    if (!tec_tier_runs_here(EXP_TIER))
        SKIP("not on this machine");
    CHECK(one_power(0) == 1);
    CHECK(one_power(-120) == 0x1p-120F);
    CHECK(one_power(-1e30F) == 0x1p-120F);
    CHECK(one_power(-INFINITY) == 0x1p-120F);
    CHECK(isnan(one_power(NAN)));
}
#endif

TAP_MAIN

/* matrices.c - emulated products of matrices of bf16 are what the manual of the real ones
 * describes: the order of their sums, how they round, what they flush. That the real ones have
 * their bytes too is a check of kernels.t, where there are some. */
#include "tests/kernels/matrices_emulated.h"
#include "tests/tap.h"

/* sum + (a b + c d). */
static float step(float sum, float a, float b, float c, float d)
{
    const uint16_t x[] = {tec_bf16_bits(a), tec_bf16_bits(c)};
    const uint16_t w[] = {tec_bf16_bits(b), tec_bf16_bits(d)};
    return matrices_step(sum, x, w);
}

TEST(both_products_are_added)
{
    CHECK(step(1.0F, 2.0F, 3.0F, 4.0F, 5.0F) == 27.0F);
    CHECK(step(-1.0F, 0.5F, 3.0F, 4.0F, -0.25F) == -0.5F);
}

TEST(they_are_added_to_each_other_first)
{
    /* 1 + 1 is not lost beside 2^25, each by itself would be */
    CHECK(step(0x1p25F, 1.0F, 1.0F, 1.0F, 1.0F) == 0x1p25F + 4.0F);
    CHECK(step(0x1p25F, 1.0F, 2.0F, 1.0F, 2.0F) == 0x1p25F + 4.0F);
    /* 2^30 is gone before the sum is looked at, and 1 was lost beside it: but for its last bit */
    CHECK(step(0.0F, 0x1p15F, 0x1p15F, 1.0F, 1.0F) == 0x1p30F + 0x1p7F);
    CHECK(step(-0x1p30F, 0x1p15F, 0x1p15F, 1.0F, 1.0F) == 0x1p7F);
}

TEST(what_is_inexact_ends_in_a_one)
{
    CHECK(step(0x1p24F, 1.0F, 1.0F, 0.0F, 0.0F) == 0x1p24F + 2.0F);
    CHECK(step(0x1p24F, 1.0F, 3.0F, 0.0F, 0.0F) == 0x1p24F + 2.0F); /* not + 4, the nearest even */
    CHECK(step(0x1p24F, 1.0F, 2.0F, 0.0F, 0.0F) == 0x1p24F + 2.0F);
    CHECK(step(0x1p24F, 1.0F, 4.0F, 0.0F, 0.0F) == 0x1p24F + 4.0F);
    /* whatever its sign, and however little it is */
    CHECK(step(-0x1p24F, -1.0F, 1.0F, 0.0F, 0.0F) == -0x1p24F - 2.0F);
    CHECK(step(1.0F, 0x1p-60F, 0x1p-60F, 0.0F, 0.0F) == 1.0F + 0x1p-23F);
    CHECK(step(1.0F, -0x1p-60F, 0x1p-60F, 0.0F, 0.0F) == 1.0F - 0x1p-24F);
}

TEST(what_is_below_the_normal_range_counts_as_zero)
{
    CHECK(step(0.0F, 0x1p-127F, 0x1p100F, 0.0F, 0.0F) == 0.0F);            /* read */
    CHECK(step(0.0F, 0.0F, 0.0F, 0x1p100F, 0x1p-127F) == 0.0F);            /* read */
    CHECK(step(0x1p-130F, 0.0F, 0.0F, 0.0F, 0.0F) == 0.0F);                /* taken up */
    CHECK(step(0.0F, 0x1p-100F, 0x1p-27F, 0.0F, 0.0F) == 0.0F);            /* a product */
    CHECK(step(0.0F, 0x1p-63F, 0x1.02p-63F, -0x1p-63F, 0x1p-63F) == 0.0F); /* a sum of two */
    CHECK(step(-0x1p-126F, 0x1.02p-63F, 0x1p-63F, 0.0F, 0.0F) == 0.0F);    /* a sum */
    CHECK(step(0.0F, 0x1p-126F, 1.0F, 0.0F, 0.0F) == 0x1p-126F);
}

TEST(what_is_too_large_is_infinite)
{
    CHECK(step(0.0F, 0x1p100F, 0x1p28F, 0.0F, 0.0F) == INFINITY);
    CHECK(step(0.0F, 0x1p100F, -0x1p27F, 0x1p100F, -0x1p27F) == -INFINITY);
    CHECK(isnan(step(0.0F, 0x1p100F, 0x1p28F, -0x1p100F, 0x1p28F)));
    /* what is not quite is the largest of all */
    CHECK(step(FLT_MAX, 0x1p50F, 0x1p50F, 0.0F, 0.0F) == FLT_MAX);
}

/* A zero beyond the last of an odd number of k, or a pair of them, changes no sum. */
TEST(zeros_change_nothing)
{
    CHECK(step(3.0F, 5.0F, 7.0F, 0.0F, 0.0F) == 38.0F);
    CHECK(signbit(step(-0.0F, 0.0F, -0.0F, 0.0F, -0.0F)) != 0);
    CHECK(signbit(step(0.0F, 0.0F, -0.0F, 0.0F, -0.0F)) == 0);
}

TAP_MAIN

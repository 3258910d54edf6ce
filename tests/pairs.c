/* pairs.c - emulated dot products of bf16 pairs are what the manual of the real ones describes: the
 * order of their sums, what they flush. That the real ones have their bytes too is a check of
 * kernels.t, where there are some. */
#include "tests/kernels/pairs_emulated.h"
#include "tests/tap.h"

/* a b + c d on top of sum, a and b in the upper halves. */
static float dot(float sum, float a, float b, float c, float d)
{
    vec sums = vec_set(sum);
    float x, two[VEC_WIDTH] = {a, c};
    uint16_t line[2 * VEC_WIDTH] = {tec_bf16_bits(b), tec_bf16_bits(d)}; /* as a panel has them */
    float made[VEC_WIDTH / 2];
    pairs_store(made, vec_load(two));
    pairs_dot(&sums, pairs_load((const char *)line), pairs_set(made));
    vec_store(two, sums);
    x = two[0];
    return x;
}

TEST(both_products_are_added)
{
    CHECK(dot(1.0F, 2.0F, 3.0F, 4.0F, 5.0F) == 27.0F);
    CHECK(dot(-1.0F, 0.5F, 3.0F, 4.0F, -0.25F) == -0.5F);
}

TEST(the_first_of_two_is_added_first)
{
    /* 1 is lost beside 2^24 unless that is gone when it comes */
    CHECK(dot(0x1p24F, -0x1p24F, 1.0F, 1.0F, 1.0F) == 1.0F);
    CHECK(dot(0x1p24F, 1.0F, 1.0F, -0x1p24F, 1.0F) == 0.0F);
}

TEST(each_product_is_added_by_itself)
{
    /* 1 + 1 would not be lost beside 2^25 */
    CHECK(dot(0x1p25F, 1.0F, 2.0F, 1.0F, 2.0F) == 0x1p25F);
    /* and is not rounded before: 2^-16 of the product reaches the sum */
    CHECK(dot(-1.0F, 1.0F + 0x1p-7F, 1.0F - 0x1p-7F, 0.0F, 0.0F) == -0x1p-14F);
}

TEST(what_is_below_the_normal_range_counts_as_zero)
{
    CHECK(dot(0.0F, 0x1p-127F, 1.0F, 0.0F, 0.0F) == 0.0F);     /* read */
    CHECK(dot(0.0F, 0.0F, 0.0F, 1.0F, 0x1p-127F) == 0.0F);     /* read */
    CHECK(dot(0.0F, 0x1p-100F, 0x1p-27F, 0.0F, 0.0F) == 0.0F); /* made */
    CHECK(dot(0x1p-130F, 0.0F, 0.0F, 0.0F, 0.0F) == 0.0F);     /* taken up */
    CHECK(dot(0.0F, 0x1p-126F, 1.0F, 0.0F, 0.0F) == 0x1p-126F);
}

TAP_MAIN

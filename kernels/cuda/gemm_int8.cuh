/* gemm_int8.cuh - products with 8-bit weights (kernels/int8.h) of any number of rows, for any
 * finish. */
#pragma once

#include "kernels/cuda/gemm_int8_few_mma.cuh"
#include "kernels/cuda/gemm_int8_many_groups.cuh"
#include "kernels/cuda/gemm_int8_many_mma.cuh"

/* Start a product whose blocks make the digits of their rows; norm: as int8_few_mma_launch. */
template <bool FEW, class Finish>
static bool start_int8_few(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                           const struct digits_choice *choice, const Finish &finish,
                           struct tec_cuda_launch *launch)
{
    struct gemm_start start = int8_few_start(choice, a->max_rows, finish.places(), Finish::PAIRS);
    int8_few_mma_launch<FEW>(start, a, norm, finish, launch);
    return true;
}

/* Start a product whose digits are written first. */
template <class Finish>
static bool start_int8_many(const struct tec_gemm_args *a, const struct digits_choice *choice,
                            const Finish &finish, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    each_part_of_digits(a, choice, NULL, launch, [&](int base, int count, unsigned char *at) {
        struct gemm_start start = int8_many_start(choice, count, finish.places(), &facts);
        if (launch->groups) {
            int8_many_groups_launch(start, a, finish, {at, base, count}, launch);
        } else {
            struct digits_out out = digits_out_of(at, &choice->form, count);
            int8_many_mma_launch(start, a, finish, {out.at, out.units, base}, launch);
        }
    });
    return true;
}

/* Start a product of any number of rows; with a norm they are few (chain_begins). */
template <bool FEW, class Finish>
static bool start_int8(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                       const Finish &finish, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct digits_choice choice = int8_choose(a, &facts);
    return norm || choice.part == 0 ? start_int8_few<FEW>(a, norm, &choice, finish, launch)
                                    : start_int8_many(a, &choice, finish, launch);
}

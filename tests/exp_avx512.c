/* exp_avx512.c - tests e^x and the ratio of gelu_erf of the avx512 tier against float64; exp.inc
 * holds the tests. */
#include "tests/tap.h"
#if defined(__x86_64__)
#include "kernels/avx512/vec.h"
#define EXP_TIER TEC_TIER_avx512
#include "tests/exp.inc"
#endif

TAP_MAIN

/* exp_avx2.c - tests e^x, the ratio of gelu_erf and the soft cap of the avx2 tier against float64;
 * exp.inc holds the tests. */
#include "tests/tap.h"
#if defined(__x86_64__)
#include "kernels/avx2/vec.h"
#define EXP_TIER TEC_TIER_avx2
#include "tests/exp.inc"
#endif

TAP_MAIN

/* exp_neon.c - tests e^x, the ratio of gelu_erf and the soft cap of the neon tier against float64;
 * exp.inc holds the tests. */
#include "tests/tap.h"
#if defined(__aarch64__)
#include "kernels/neon/vec.h"
#define EXP_TIER TEC_TIER_neon
#include "tests/exp.inc"
#endif

TAP_MAIN

#include "tests/tap.h"
#if defined(__x86_64__)
#include "kernels/avx2/vec.h"
#define EXP_TIER TEC_TIER_avx2
#include "tests/exp.inc"
#endif

TAP_MAIN

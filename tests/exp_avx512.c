#include "tests/tap.h"
#if defined(__x86_64__)
#include "kernels/avx512/vec.h"
#define EXP_TIER TEC_TIER_avx512
#include "tests/exp.inc"
#endif

TAP_MAIN

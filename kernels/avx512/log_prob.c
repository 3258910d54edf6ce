#if defined(__x86_64__)
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/vec.h"

#include "kernels/vector/log_prob.inc"
#endif

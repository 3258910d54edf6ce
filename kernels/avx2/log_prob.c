#if defined(__x86_64__)
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/vec.h"

#include "kernels/vector/log_prob.inc"
#endif

/* embed.c - the AVX2 embed kernels: the shared body, which is plain C. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/panels/embed.inc"
#endif

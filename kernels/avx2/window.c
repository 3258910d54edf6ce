/* window.c - the AVX2 kernels that go over a picture in windows: the shared body over vectors of 8
 * floats. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/window.inc"
#endif

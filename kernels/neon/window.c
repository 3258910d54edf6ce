/* window.c - the NEON kernels that go over a picture in windows: the shared body over vectors of 4
 * floats. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/window.inc"
#endif

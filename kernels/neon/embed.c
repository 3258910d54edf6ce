/* embed.c - the NEON embed kernels: the shared body, which is plain C. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/panels/embed.inc"
#endif

/* buffers.h - the fenced buffers of the shape being checked, for the harness itself. */
#ifndef TEC_TESTS_KERNELS_BUFFERS_H
#define TEC_TESTS_KERNELS_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

void buffers_seed(uint64_t seed);

/* Bytes of the buffer that begins at `at`; aborts when there is none. */
size_t buffers_size(const void *at);

/* Number of the first buffer with a broken fence, or -1; frees all. */
int buffers_end(void);

#endif

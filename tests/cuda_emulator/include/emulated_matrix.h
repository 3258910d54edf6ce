/* emulated_matrix.h - what a warp's matrix instructions exchange. */
#pragma once

namespace cuda_emulator
{
/* One lane's share of c[16 x 8] += a[16 x 16] b[16 x 8]. */
struct mma_fragments {
    unsigned a[4], b[2];
    float c[4];
};
void multiply_fragments(mma_fragments *f, const char *file, int line);

/* The same of c[16 x 8] += a[16 x 32] b[32 x 8], signed bytes and whole sums. */
struct mma_s8_fragments {
    unsigned a[4], b[2];
    int c[4];
};
void multiply_s8_fragments(mma_s8_fragments *f, const char *file, int line);

/* Two or four 8 x 8 matrices of 16 bits. */
struct matrix_load {
    const void *row; /* lane m * 8 + r: row r of matrix m */
    int matrices;
    bool transposed;
    unsigned registers[4];
};
void load_fragments(matrix_load *load, const char *file, int line);
} // namespace cuda_emulator

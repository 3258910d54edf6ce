/* ldmatrix and mma, of bf16 and of bytes: the fragments that a warp holds, as ptx.cuh tells where they lie. */
#include "tests/cuda_emulator/machine.h"

#include <emulated_matrix.h>
#include <stdint.h>
#include <string.h>

namespace cuda_emulator
{
enum { M = 16, N = 8, K = 16 };

/* The two bf16 of a register as float32. */
struct two {
    float v[2];
};
static two floats_of(unsigned pair)
{
    unsigned bits[2] = {pair << 16, pair & 0xffff0000U};
    two f;
    memcpy(f.v, bits, sizeof f.v);
    return f;
}

static void multiply(float c[M][N], const float a[M][K], const float b[K][N])
{
    for (int r = 0; r < M; r++) {
        float sum[N]; /* in registers, whatever a and b may overlap with */
        memcpy(sum, c[r], sizeof sum);
        for (int k = 0; k < K; k++)
            for (int n = 0; n < N; n++)
                sum[n] += a[r][k] * b[k][n];
        memcpy(c[r], sum, sizeof sum);
    }
}

static void complete_mma(void *const deposits[32], unsigned)
{
    alignas(32) float a[M][K], b[K][N], c[M][N];
    for (int lane = 0; lane < WARP_LANES; lane++) {
        const mma_fragments *f = (const mma_fragments *)deposits[lane];
        int g = lane / 4, t = 2 * (lane % 4);
        for (int i = 0; i < 4; i++) {
            two pair = floats_of(f->a[i]);
            memcpy(&a[g + i % 2 * 8][t + i / 2 * 8], pair.v, sizeof pair.v);
        }
        for (int i = 0; i < 2; i++) {
            two pair = floats_of(f->b[i]);
            b[t + i * 8][g] = pair.v[0];
            b[t + i * 8 + 1][g] = pair.v[1];
        }
        for (int i = 0; i < 2; i++)
            memcpy(&c[g + i * 8][t], &f->c[2 * i], 2 * sizeof(float));
    }
    multiply(c, a, b);
    for (int lane = 0; lane < WARP_LANES; lane++) {
        mma_fragments *f = (mma_fragments *)deposits[lane];
        for (int i = 0; i < 2; i++)
            memcpy(&f->c[2 * i], &c[lane / 4 + i * 8][2 * (lane % 4)], 2 * sizeof(float));
    }
}

enum { K_S8 = 32 };

/* Sums wrap, as registers do. */
static void multiply_s8(int c[M][N], const int8_t a[M][K_S8], const int8_t b[N][K_S8])
{
    for (int r = 0; r < M; r++)
        for (int n = 0; n < N; n++) {
            int sum = 0;
            for (int k = 0; k < K_S8; k++)
                sum += a[r][k] * b[n][k];
            c[r][n] = (int)((unsigned)c[r][n] + (unsigned)sum);
        }
}

static void complete_mma_s8(void *const deposits[32], unsigned)
{
    alignas(32) int8_t a[M][K_S8], b[N][K_S8];
    int c[M][N];
    for (int lane = 0; lane < WARP_LANES; lane++) {
        const mma_s8_fragments *f = (const mma_s8_fragments *)deposits[lane];
        int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++)
            memcpy(&a[g + i % 2 * 8][4 * t + i / 2 * 16], &f->a[i], sizeof f->a[i]);
        for (int i = 0; i < 2; i++)
            memcpy(&b[g][4 * t + i * 16], &f->b[i], sizeof f->b[i]);
        for (int i = 0; i < 2; i++)
            memcpy(&c[g + i * 8][2 * t], &f->c[2 * i], 2 * sizeof(int));
    }
    multiply_s8(c, a, b);
    for (int lane = 0; lane < WARP_LANES; lane++) {
        mma_s8_fragments *f = (mma_s8_fragments *)deposits[lane];
        for (int i = 0; i < 2; i++)
            memcpy(&f->c[2 * i], &c[lane / 4 + i * 8][2 * (lane % 4)], 2 * sizeof(int));
    }
}

/* Matrix m is 8 rows of 8; row r begins where lane m * 8 + r says. */
static void complete_load(void *const deposits[32], unsigned)
{
    const matrix_load *any = (const matrix_load *)deposits[0];
    for (int m = 0; m < any->matrices; m++) {
        uint16_t matrix[8][8];
        for (int r = 0; r < 8; r++)
            memcpy(matrix[r], ((const matrix_load *)deposits[m * 8 + r])->row, sizeof matrix[r]);
        for (int lane = 0; lane < WARP_LANES; lane++) {
            int r = lane / 4, k = 2 * (lane % 4);
            unsigned low = any->transposed ? matrix[k][r] : matrix[r][k];
            unsigned high = any->transposed ? matrix[k + 1][r] : matrix[r][k + 1];
            ((matrix_load *)deposits[lane])->registers[m] = low | high << 16;
        }
    }
}

static const operation mma_operation = {"mma", complete_mma};
static const operation mma_s8_operation = {"mma.s8", complete_mma_s8};
static const operation load_operations[2][2] = {
    {{"ldmatrix.x2", complete_load}, {"ldmatrix.x2.trans", complete_load}},
    {{"ldmatrix.x4", complete_load}, {"ldmatrix.x4.trans", complete_load}}};

void multiply_fragments(mma_fragments *f, const char *file, int line)
{
    meet(&mma_operation, ~0U, f, file, line);
}

void multiply_s8_fragments(mma_s8_fragments *f, const char *file, int line)
{
    meet(&mma_s8_operation, ~0U, f, file, line);
}

void load_fragments(matrix_load *load, const char *file, int line)
{
    const operation *what = &load_operations[load->matrices == 4][load->transposed];
    if ((int)current->lane < load->matrices * 8)
        check_shared(load->row, 16, 16, what->name);
    meet(what, ~0U, load, file, line);
}
} // namespace cuda_emulator

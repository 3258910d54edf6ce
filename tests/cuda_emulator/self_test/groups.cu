/* groups.cu - barriers in shared memory, bulk copies and products by groups of four warps. */
#include "tests/cuda_emulator/self_test/self_test.h"

#include <emulated_groups.h>
#include <string.h>

enum mistake {
    NONE,
    NOT_AWAITED,     /* the copies */
    PARITY,          /* of the wait for them */
    TOO_FEW_BYTES,   /* waited for */
    TOO_MANY_BYTES,  /* none of them comes */
    NOT_BEGUN,       /* products */
    NOT_DONE,        /* when their sums are read */
    WRITTEN_OVER,    /* their operand, while they are on their way */
    REGISTERS_OVER,  /* likewise, where it is in registers */
    NOT_COMMITTED,   /* the last of them */
    OTHER_OF_A_WARP, /* one warp of the group multiplies something else */
    NOT_MADE,        /* the barrier */
    NOT_LANDED,      /* copies of threads, when the barrier is told of them */
    COPY_NOT_ALIGNED,
    MATRIX_NOT_ALIGNED
};

/* Blocks of 8 x 8: [row / 8][k / 8]. x is 64 x 16, then 16 x 16; c = their product, twice. */
enum { GROUP = 128, ROWS = 64, COLUMNS = 16, K = 16, BLOCK = 128, A = 2048, B = 512, AT = A + B };

template <int M> static __device__ void bring(unsigned char *s, const unsigned char *x, barrier *b)
{
    if (M != NOT_MADE)
        barrier_init(b, 1);
    barriers_ready();
    barrier_expect(b, A + B + (M == TOO_FEW_BYTES ? -B : M == TOO_MANY_BYTES ? 16 : 0));
    copy_bulk(s, x + (M == COPY_NOT_ALIGNED ? 8 : 0), A, b);
    copy_bulk(s + A, x + A, B, b);
}

template <int M> static __global__ void groups_kernel(const unsigned char *x, float *c)
{
    wait_previous();
    release_next();
    TEC_SHARED(unsigned char, s);
    barrier *b = reinterpret_cast<barrier *>(s + AT);
    int t = (int)threadIdx.x, warp = t / WARP, lane = t % WARP;
    if (t == 0)
        bring<M>(s, x, b);
    __syncthreads();
    if (M != NOT_AWAITED)
        barrier_wait(b, M == PARITY);
    float sums[2][4] = {};
    unsigned long long rows =
        shared_matrix(s + (M == MATRIX_NOT_ALIGNED ? 8 : 0), BLOCK, 2 * BLOCK);
    unsigned long long columns = shared_matrix(s + A, BLOCK, 2 * BLOCK);
    for (int turn = 0; turn < 2; turn++) {
        if (M != NOT_BEGUN)
            products_begin();
        product_async(sums, rows, M == OTHER_OF_A_WARP && warp == 2 ? rows : columns);
        if (M != NOT_COMMITTED || turn == 0)
            products_commit();
        if (M == WRITTEN_OVER)
            reinterpret_cast<float *>(s)[t] = 0.0F;
        if (M != NOT_DONE)
            products_wait<0>();
    }
    for (int i = 0; i < 8; i++) {
        int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        c[row * COLUMNS + column] = sums[i / 4][i % 4];
    }
    if (M == NOT_DONE)
        products_wait<0>();
    if (M == TOO_FEW_BYTES && t == 0)
        barrier_expect(b, B);
    if (M == NOT_AWAITED || M == PARITY || M == TOO_FEW_BYTES) /* nothing lands after the block */
        barrier_wait(b, M == TOO_FEW_BYTES);
}

/* Each thread brings 16 bytes, of which `bytes` come and zeros behind them, for its neighbour. */
template <int M> static __global__ void told_kernel(const float *x, float *y, int bytes)
{
    wait_previous();
    release_next();
    TEC_SHARED(unsigned char, s);
    barrier *b = reinterpret_cast<barrier *>(s + AT);
    int t = (int)threadIdx.x, other = (t + 1) % GROUP;
    if (t == 0)
        barrier_init(b, GROUP);
    __syncthreads();
    copy16_part_async(s + t * 16, x + t * 4, bytes);
    if (M == NOT_LANDED)
        barrier_arrive(b);
    else
        barrier_arrive_copied(b);
    barrier_wait(b, 0);
    for (int i = 0; i < 4; i++)
        y[other * 4 + i] = reinterpret_cast<float *>(s)[other * 4 + i];
    if (M == NOT_LANDED) { /* nothing lands after the block */
        copy_commit();
        copy_wait<0>();
    }
}

template <int M> static bool told(bool broken)
{
    alignas(16) float x[GROUP * 4];
    float y[GROUP * 4] = {};
    for (int i = 0; i < GROUP * 4; i++)
        x[i] = (float)(i + 1);
    for (int bytes = 0; bytes <= 16; bytes += 4) {
        run_kernel(broken ? told_kernel<M> : told_kernel<NONE>, dim3(1), dim3(GROUP), AT + 8,
                   (const float *)x, (float *)y, bytes);
        for (int i = 0; i < GROUP * 4; i++)
            if (!(y[i] == (i % 4 * 4 < bytes ? x[i] : 0.0F)))
                return false;
    }
    return true;
}

static int at(int row, int k)
{
    return row / 8 * BLOCK + k / 8 * BLOCK / 2 + row % 8 * 8 + k % 8;
}

template <int M> static bool groups(bool broken)
{
    alignas(16) bf16 x[(A + B) / 2 + 8];
    float c[ROWS * COLUMNS] = {};
    for (int i = 0; i < (A + B) / 2; i++)
        x[i] = (float)(i * 11 % 17 - 8);
    run_kernel(broken ? groups_kernel<M> : groups_kernel<NONE>, dim3(1), dim3(GROUP), AT + 8,
               (const unsigned char *)x, (float *)c);
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < COLUMNS; n++) {
            float sum = 0.0F;
            for (int k = 0; k < K; k++)
                sum += (float)x[at(m, k)] * (float)x[A / 2 + at(n, k)];
            if (c[m * COLUMNS + n] != 2.0F * sum)
                return false;
        }
    return true;
}

/* Products of bytes: c = 2 a b^T, a 64 x 32 in registers, b as blocks of 8 x 16. */
enum { K_S8 = 32, B_S8 = ROWS * K_S8 };

template <int M> static __global__ void bytes_kernel(const int8_t *a, const int8_t *b, int *c)
{
    wait_previous();
    release_next();
    TEC_SHARED(int8_t, s);
    int t = (int)threadIdx.x, warp = t / WARP, lane = t % WARP;
    for (int i = t; i < B_S8; i += GROUP)
        s[i / K_S8 / 8 * 256 + i % K_S8 / 16 * 128 + i / K_S8 % 8 * 16 + i % 16] = b[i];
    __syncthreads();
    unsigned own[4];
    for (int i = 0; i < 4; i++)
        memcpy(&own[i], a + (warp * 16 + lane / 4 + i % 2 * 8) * K_S8 + lane % 4 * 4 + i / 2 * 16,
               4);
    int sums[8][4] = {};
    sums[lane % 8][0] = 5; /* does not count */
    unsigned long long columns = shared_matrix(s, 128, 256);
    if (M != NOT_BEGUN)
        products_begin();
    product_s8_async<true>(sums, own, columns);
    product_s8_async<M == OTHER_OF_A_WARP>(sums, own, columns);
    products_commit();
    if (M == WRITTEN_OVER)
        s[t] = 1;
    if (M == REGISTERS_OVER)
        own[t % 4] = 0x01010101U;
    if (M != NOT_DONE)
        products_wait<0>();
    for (int i = 0; i < 32; i++) {
        int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        c[row * ROWS + column] = sums[i / 4][i % 4];
    }
    if (M == NOT_DONE)
        products_wait<0>();
}

template <int M> static bool bytes(bool broken)
{
    int8_t a[ROWS * K_S8], b[B_S8];
    int c[ROWS * ROWS] = {};
    for (int i = 0; i < B_S8; i++) {
        a[i] = (int8_t)(i * 37 % 256 - 128);
        b[i] = (int8_t)(i * 101 % 251 - 125);
    }
    run_kernel(broken ? bytes_kernel<M> : bytes_kernel<NONE>, dim3(1), dim3(GROUP), B_S8,
               (const int8_t *)a, (const int8_t *)b, (int *)c);
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < ROWS; n++) {
            int sum = 0;
            for (int k = 0; k < K_S8; k++)
                sum += a[m * K_S8 + k] * b[n * K_S8 + k];
            if (c[m * ROWS + n] != 2 * sum)
                return false;
        }
    return true;
}

const emulator_case group_cases[] = {
    {"no wait for bulk copies", groups<NOT_AWAITED>, BY_VALUE, ""},
    {"a wait for the phase before", groups<PARITY>, BY_VALUE, ""},
    {"a wait for too few bytes", groups<TOO_FEW_BYTES>, BY_VALUE, ""},
    {"a wait for bytes that nobody sends", groups<TOO_MANY_BYTES>, BY_FINDING,
     "what it waits for does not come"},
    {"products that are not begun", groups<NOT_BEGUN>, BY_FINDING, "without products_begin"},
    {"sums read before the wait", groups<NOT_DONE>, BY_VALUE, ""},
    {"an operand written over", groups<WRITTEN_OVER>, BY_VALUE, ""},
    {"products in no group", groups<NOT_COMMITTED>, BY_FINDING, "products are on their way"},
    {"a warp with other products", groups<OTHER_OF_A_WARP>, BY_FINDING, "different products"},
    {"a barrier told of copies before they land", told<NOT_LANDED>, BY_VALUE, ""},
    {"a barrier that was not made", groups<NOT_MADE>, BY_FINDING, "nobody has made"},
    {"a bulk copy from a misaligned address", groups<COPY_NOT_ALIGNED>, BY_FINDING,
     "not a multiple of 16"},
    {"products of bytes that are not begun", bytes<NOT_BEGUN>, BY_FINDING,
     "without products_begin"},
    {"sums of bytes read before the wait", bytes<NOT_DONE>, BY_VALUE, ""},
    {"bytes written over", bytes<WRITTEN_OVER>, BY_VALUE, ""},
    {"registers written over", bytes<REGISTERS_OVER>, BY_VALUE, ""},
    {"sums of bytes that begin anew", bytes<OTHER_OF_A_WARP>, BY_VALUE, ""},
    {"a misaligned matrix", groups<MATRIX_NOT_ALIGNED>, BY_FINDING, "not a multiple of 16"},
};
const int n_group_cases = sizeof group_cases / sizeof group_cases[0];

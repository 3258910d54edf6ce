/* conform.h - holds a fast kernel to the reference: same inputs, a derived bound, fenced memory.
 *
 * One check per line of kernels.def, `conform_<name>(struct conform *c)` in check_<family>.c. For
 * each shape it allocates with conform_buf, fills the argument struct, names the outputs and calls
 * conform_run, compares with conform_close, and ends the shape with conform_end:
 *
 *     float *x = conform_buf(c, count, sizeof *x), *y = conform_buf(c, count, sizeof *y);
 *     conform_fill(x, count, family, 3.0F);
 *     struct tec_map_args a = {x, y, conform_live(c, rows), rows, ld, ld, cols, 0};
 *     struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .outs = 1};
 *     call.out[0] = (struct conform_out){y, rows, cols * sizeof *y, ld * sizeof *y};
 *     conform_run(c, &call);
 *     const float *got = c->got[0], *want = c->want[0];
 *     conform_close(c, got[i], want[i], bound, "[%dx%d] at %d", rows, cols, i);
 *     conform_end(c);
 *
 * conform_run restores the outputs to what they held (NaN, or what the check put there) before each
 * of: ref once; fast with 1, 2 and 3 lanes (each lane in turn, also in reverse; with --threads all
 * at once), whose bytes must be equal; fast and ref with fewer live rows. Bytes outside the live
 * rows' columns must be untouched, and the rows that do live must be the bytes of the full run. */
#ifndef TEC_TESTS_KERNELS_CONFORM_H
#define TEC_TESTS_KERNELS_CONFORM_H

#include "kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONFORM_OUTS = 12 };

struct conform {
    const char *kernel, *tier;
    enum tec_kernel_id id;
    const struct tec_kernels *ref, *fast;
    bool bench; /* --bench: checks may call conform_time */
    /* Sums in the order of the reference, so that products which are exact give the same bytes. A
     * tier of another order still has one order for every row: its bound is in the check. */
    bool same_order;
    bool tiles; /* bf16 terms of x are multiplied by a tile unit: the bound is in check_terms.c */
    bool pairs; /* one term is, by dot products that flush what is below the normal range */
    bool matrices; /* one term is, by products of matrices, two k at a time, rounded to odd */
    bool threads;  /* each lane of a run has a thread of its own: for the thread sanitizer */
    bool slow;     /* some thousand times slower than the others: conform_scale */
    bool quiet;    /* the self-test expects failures */
    bool failed;
    double worst; /* largest error seen, as a fraction of its bound */
    int shapes;
    int *live; /* the live count of this shape: conform_live */
    /* Copies of each output buffer after ref and after fast, from the output's `at`, as many bytes
     * as the buffer has; valid until conform_end. */
    const void *want[CONFORM_OUTS], *got[CONFORM_OUTS];
};

/* Input families: roughly normal; a large common offset; few distinct values; denormals; all
 * equal; all zero. The last family is for loops: for (f = 0; f < CONFORM_FAMILIES; f++). */
enum conform_family {
    CONFORM_NORMAL,
    CONFORM_OFFSET,
    CONFORM_TIES,
    CONFORM_DENORMAL,
    CONFORM_EQUAL,
    CONFORM_ZERO,
    CONFORM_FAMILIES
};

int conform_int(int low, int high); /* uniform, both ends included */
float conform_float(float scale);   /* roughly normal */
int conform_ld(int cols);           /* a legal stride: cols rounded up to 16, sometimes more */

/* A size of a real model where the tier is fast; where it is slow, at most about `most`, and what
 * is left over after whole multiples of 64 stays. */
int conform_scale(const struct conform *c, int size, int most);

/* So many random shapes: with --threads a fifth, for a race does not ask for a special size. */
int conform_few(const struct conform *c, int shapes);

/* `count` elements of `size` bytes, aligned to 64, filled with NaN (ints: 0x7fc0prefetch), fenced
 * on both sides. conform_ints is one of ints that hold `value`. */
void *conform_buf(struct conform *c, size_t count, size_t size);
int *conform_ints(struct conform *c, size_t count, int value);

/* The live count, for the args' `rows` (or `count`) pointer; conform_run changes it. */
int *conform_live(struct conform *c, int value);

void conform_fill(float *buf, size_t count, enum conform_family family, float scale);
/* A buffer of a family; bf16: of bf16 values. conform_normal: of the normal family. */
float *conform_filled(struct conform *c, size_t count, enum conform_family family, bool bf16);
float *conform_normal(struct conform *c, size_t count);
void conform_round(float *buf, size_t count); /* each to the nearest bf16 */
void conform_bits(uint16_t *bits, const float *from, size_t count);

/* [rows, k] packed for a table's layout in a buffer of its own. */
void *conform_matrix(struct conform *c, const struct tec_kernels *table, bool bf16, int rows, int k,
                     const float *src);

/* Something a kernel writes. Live row r occupies `row` bytes at stride * (map ? map[r] : r + first)
 * (with `per` > 1, rows r * per .. r * per + per - 1). Nothing else of the buffer may change. row
 * 0: the whole buffer, compared between lane counts only. */
struct conform_out {
    void *at; /* from conform_buf */
    int rows; /* live rows of the full run, times per */
    size_t row, stride;
    const int *map;
    int first, per;
};

struct conform_call {
    const void *ref, *fast; /* argument structs; they differ where matrices are packed */
    int live;               /* live count of the full run */
    bool full;              /* live is the capacity: larger counts must be clamped to it */
    int outs;
    struct conform_out out[CONFORM_OUTS];
};

/* All the runs described above. */
void conform_run(struct conform *c, const struct conform_call *call);

/* |got - want| <= bound, NaN fails, the same value passes even with bound 0. */
void conform_close(struct conform *c, double got, double want, double bound, const char *format,
                   ...) __attribute__((format(printf, 5, 6)));
/* Output 0 of the fast kernel holds nothing but bf16 values in `cols` columns of its rows, `ld`
 * floats apart. */
void conform_rounded(struct conform *c, int rows, int ld, int cols);
/* Bytes [0, size) of output `out` are equal in ref and fast. */
void conform_same(struct conform *c, int out, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void conform_fail(struct conform *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Tables of a GPU alone: the best vector tier of this processor, for kernels that promise its
 * bytes. False: the checked table is one of the CPU, or this processor has no vector tier. */
bool conform_vector(const struct conform *c, struct tec_kernels *table);
/* `rows` rows of output 0 of the fast kernel, `cols` floats each, `ld` apart, are those at `want`.
 */
void conform_rows(struct conform *c, const float *want, int rows, int cols, int ld);

/* Fences are whole? Then free all buffers of this shape. */
void conform_end(struct conform *c);

/* Bench of ref and fast, best of several: ns, ratio, and where given GB/s and GF/s. */
void conform_time(struct conform *c, const char *shape, const struct conform_call *call,
                  double bytes, double flops);
double conform_seconds(void);

/* Products whose x may be read as bf16 terms: part of gemm_bf16's check, and all that an emulated
 * tile unit has. */
void conform_terms(struct conform *c);

/* gemm_f32 of `table` over windows of a picture; not of CUDA, which has no such product. */
void conform_picture(struct conform *c, const struct tec_kernels *table);
/* Whether a table of the CPU has products by the processor's own tile unit. */
bool conform_has_tiles(const struct tec_kernels *table);
/* Whether it has products by the processor's dot products of bf16 pairs. */
bool conform_has_pairs(const struct tec_kernels *table);
/* Whether it has products by the processor's products of matrices of bf16. */
bool conform_has_matrices(const struct tec_kernels *table);

/* Products with what stands around them in one kernel: bytes of one by one. For the cuda tier. */
void conform_chains(struct conform *c);
/* What a kernel leaves as terms for the product behind it: the bytes of float32 rows. The same. */
void conform_handed(struct conform *c);
/* Split products in clusters: the bytes of those that are none. The same. */
void conform_clusters(struct conform *c);
/* Rows as signed digits in device memory. The same. */
void conform_digits(struct conform *c);

/* Deliberately wrong kernels must be caught; the bench of GEMM shapes against measured peaks. */
int conform_self_test(int *number);
void conform_bench_gemm(const char *pattern);

/* What this machine can do at most on one lane and on two, a line of JSON each. */
void conform_print_peaks(void);

#define KERNEL(name, args) void conform_##name(struct conform *c);
#include "kernels/kernels.def"
#undef KERNEL

#endif

/* matrix.c - tests of the packed layout of weight matrices: every element reads back, whole or by
 * pieces, with its padding. */
#include "kernels/matrix.h"
#include "kernels/bf16.h"
#include "tests/tap.h"

#include <stdlib.h>

enum { MOST_ROWS = 70, MOST_K = 70 };

static float source[MOST_ROWS * MOST_K];
static uint16_t bits[MOST_ROWS * MOST_K];

static void fill(int rows, int k)
{
    for (int i = 0; i < rows * k; i++) {
        source[i] = (float)(i * 37 % 1009) * 1.001F - 500.0F;
        bits[i] = tec_bf16_bits(source[i]);
    }
}

static float wanted(int rows, int k, int row, int i, bool bf16)
{
    if (row >= rows)
        return 0.0F;
    float x = source[row * k + i];
    return bf16 ? tec_bf16_round(x) : x;
}

/* Where column i of a row lies. Panels have 16 rows; in each of TEC_MATRIX_PANELS a line has one
 * column of them, for bf16 two, and each of TEC_MATRIX_TILES is made of blocks of 16 columns: four
 * matrices of 8 x 8, first those of the first 8 columns. */
static size_t place_of(enum tec_matrix_layout layout, bool bf16, int k, size_t row, size_t i)
{
    size_t panel = row / 16, c = row % 16;
    if (layout == TEC_MATRIX_PANELS && bf16)
        return ((panel * (((size_t)k + 1) / 2) + i / 2) * 16 + c) * 2 + i % 2;
    if (layout == TEC_MATRIX_PANELS)
        return (panel * (size_t)k + i) * 16 + c;
    if (layout == TEC_MATRIX_TILES && bf16)
        return (panel * (size_t)tec_matrix_blocks(k) + i / 16) * 256 + i % 16 / 8 * 128 +
               c / 8 * 64 + c % 8 * 8 + i % 8;
    return row * tec_matrix_stride(k, bf16) + i;
}

static void read_row(const void *packed, enum tec_matrix_layout layout, bool bf16, int k, int row,
                     float *out)
{
    for (int i = 0; i < k; i++) {
        size_t at = place_of(layout, bf16, k, (size_t)row, (size_t)i);
        out[i] =
            bf16 ? tec_bf16_float(((const uint16_t *)packed)[at]) : ((const float *)packed)[at];
    }
}

/* Check every element of every row, padding included. */
static bool reads_back(const void *packed, enum tec_matrix_layout layout, bool bf16, int rows,
                       int k)
{
    float row[MOST_K];
    for (int r = 0; r < tec_padded(rows); r++) {
        read_row(packed, layout, bf16, k, r, row);
        for (int i = 0; i < k; i++)
            if (row[i] != wanted(rows, k, r, i, bf16))
                return false;
    }
    return true;
}

static const int shapes[][2] = {{1, 1}, {16, 2}, {17, 31}, {33, 32}, {48, 33}, {70, 70}, {15, 65}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };
enum { LAYOUTS = TEC_MATRIX_TILES + 1 };

TEST(whole_matrices_read_back)
{
    for (int s = 0; s < SHAPES; s++)
        for (int form = 0; form < 2 * LAYOUTS; form++) {
            int rows = shapes[s][0], k = shapes[s][1];
            enum tec_matrix_layout layout = (enum tec_matrix_layout)(form / 2);
            bool bf16 = form & 1;
            fill(rows, k);
            void *packed = calloc(1, tec_matrix_size(layout, bf16, rows, k));
            REQUIRE(packed);
            tec_matrix_pack(packed, layout, bf16, rows, k, 0, rows, source);
            CHECK(reads_back(packed, layout, bf16, rows, k));
            free(packed);
        }
}

TEST(pieces_give_the_bytes_of_the_whole)
{
    for (int s = 0; s < SHAPES; s++)
        for (int form = 0; form < 2 * LAYOUTS; form++) {
            int rows = shapes[s][0], k = shapes[s][1];
            enum tec_matrix_layout layout = (enum tec_matrix_layout)(form / 2);
            bool bf16 = form & 1;
            size_t size = tec_matrix_size(layout, bf16, rows, k);
            fill(rows, k);
            char *whole = calloc(1, size), *pieces = calloc(1, size);
            REQUIRE(whole && pieces);
            tec_matrix_pack(whole, layout, bf16, rows, k, 0, rows, source);
            for (int r = 0; r < rows; r += 32) {
                int n = rows - r < 32 ? rows - r : 32;
                tec_matrix_pack(pieces, layout, bf16, rows, k, r, n,
                                source + (size_t)r * (size_t)k);
            }
            CHECK(memcmp(whole, pieces, size) == 0);
            free(whole);
            free(pieces);
        }
}

TEST(a_line_holds_sixteen_columns_of_two_k)
{
    fill(32, 5);
    uint16_t *packed = calloc(1, tec_matrix_size(TEC_MATRIX_PANELS, true, 32, 5));
    REQUIRE(packed);
    tec_matrix_pack(packed, TEC_MATRIX_PANELS, true, 32, 5, 0, 32, source);
    CHECK_INT(packed[0], ==, bits[0]);
    CHECK_INT(packed[1], ==, bits[1]);
    CHECK_INT(packed[2], ==, bits[5]);
    CHECK_INT(packed[32], ==, bits[2]);                  /* the second line: k = 2 */
    CHECK_INT(packed[(size_t)3 * 32], ==, bits[16 * 5]); /* the second panel */
    CHECK_INT(packed[(size_t)2 * 32], ==, bits[4]);      /* the last k, */
    CHECK_INT(packed[(size_t)2 * 32 + 1], ==, 0);        /* which has no pair */
    free(packed);
}

TEST(a_block_holds_four_matrices_of_eight_by_eight)
{
    fill(32, 21);
    uint16_t *packed = calloc(1, tec_matrix_size(TEC_MATRIX_TILES, true, 32, 21));
    REQUIRE(packed);
    tec_matrix_pack(packed, TEC_MATRIX_TILES, true, 32, 21, 0, 32, source);
    CHECK_INT(packed[1], ==, bits[1]);
    CHECK_INT(packed[8], ==, bits[21]);                            /* row 1 */
    CHECK_INT(packed[64], ==, bits[8 * 21]);                       /* row 8 */
    CHECK_INT(packed[128], ==, bits[8]);                           /* k 8 */
    CHECK_INT(packed[3 * 64 + 7 * 8 + 7], ==, bits[15 * 21 + 15]); /* the last of a block */
    CHECK_INT(packed[256 + 4], ==, bits[20]);                      /* the second block, */
    CHECK_INT(packed[256 + 5], ==, 0);                             /* beyond k */
    CHECK_INT(packed[2 * 256 + 8], ==, bits[17 * 21]);             /* the second panel */
    CHECK_INT(packed[3 * 256 + 128 + 64], ==, 0);
    free(packed);
}

/* The second matrix begins at a panel border, as if alone. */
static void join(enum tec_matrix_layout layout, bool bf16)
{
    enum { A = 16, B = 20, K = 9 };
    fill(A + B, K);
    size_t first = tec_matrix_size(layout, bf16, A, K),
           second = tec_matrix_size(layout, bf16, B, K);
    char *joined = calloc(1, first + second), *alone = calloc(1, second);
    REQUIRE(joined && alone);
    CHECK_INT(tec_matrix_size(layout, bf16, A + B, K), ==, first + second);
    tec_matrix_pack(joined, layout, bf16, A + B, K, 0, A, source);
    tec_matrix_pack(joined, layout, bf16, A + B, K, A, B, source + (size_t)A * K);
    tec_matrix_pack(alone, layout, bf16, B, K, 0, B, source + (size_t)A * K);
    CHECK(memcmp(joined + first, alone, second) == 0);
    free(joined);
    free(alone);
}

TEST(joined_matrices_lie_as_if_alone)
{
    for (int form = 0; form < 2 * LAYOUTS; form++)
        join((enum tec_matrix_layout)(form / 2), form & 1);
}

TEST(rows_beyond_the_padding_are_not_written)
{
    fill(40, 4);
    for (int form = 0; form < 2 * LAYOUTS; form++) {
        enum tec_matrix_layout layout = (enum tec_matrix_layout)(form / 2);
        size_t size = tec_matrix_size(layout, form & 1, 16, 4);
        char *packed = calloc(1, size + 64);
        REQUIRE(packed);
        tec_matrix_pack(packed, layout, form & 1, 16, 4, 0, 40, source);
        for (int i = 0; i < 64; i++)
            CHECK_INT(packed[size + (size_t)i], ==, 0);
        free(packed);
    }
}

TEST(sizes_are_multiples_of_a_line)
{
    for (int rows = 1; rows < 40; rows++)
        for (int k = 1; k < 40; k++)
            for (int form = 0; form < 2 * LAYOUTS; form++)
                CHECK_INT(tec_matrix_size((enum tec_matrix_layout)(form / 2), form & 1, rows, k) %
                              64,
                          ==, 0);
}

TAP_MAIN

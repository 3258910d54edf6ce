/* matrix.c - packs weight matrices into the layouts that kernels read. */
#include "kernels/matrix.h"

#include "kernels/bf16.h"

#include <string.h>

enum { PANEL = 16, STRIP = 32, BLOCK = 16, HALF = 8 };

static size_t pairs_of(int k)
{
    return ((size_t)k + 1) / 2;
}

/* The number of bf16 values stored for one row of a panel, with its padding. */
static size_t stored_k(enum tec_matrix_layout layout, int k)
{
    return layout == TEC_MATRIX_TILES ? (size_t)tec_matrix_blocks(k) * BLOCK : pairs_of(k) * 2;
}

size_t tec_matrix_size(enum tec_matrix_layout layout, bool bf16, int rows, int k)
{
    size_t padded = ((size_t)rows + PANEL - 1) / PANEL * PANEL;
    return bf16 ? padded * stored_k(layout, k) * sizeof(uint16_t)
                : padded * (size_t)k * sizeof(float);
}

/* The position of column i of row c within a panel of TEC_MATRIX_TILES. */
static size_t in_tiles(size_t c, size_t i)
{
    size_t matrix = i % BLOCK / HALF * 2 + c / HALF;
    return i / BLOCK * PANEL * BLOCK + matrix * HALF * HALF + c % HALF * HALF + i % HALF;
}

/* Round columns at .. at + count - 1 of up to 16 rows into a strip; missing rows become zeros. */
static void load_strip(uint16_t strip[PANEL][STRIP], const float *src, int k, int rows, int at,
                       int count)
{
    memset(strip, 0, sizeof(uint16_t[PANEL][STRIP]));
    for (int r = 0; r < rows; r++) {
        size_t from = (size_t)r * (size_t)k + (size_t)at;
        for (int i = 0; i < count; i++)
            strip[r][i] = tec_bf16_bits(src[from + (size_t)i]);
    }
}

static void store_pairs(uint16_t *line, uint16_t strip[PANEL][STRIP], int count)
{
    for (int i = 0; i < count; i += 2)
        for (int c = 0; c < PANEL; c++) {
            *line++ = strip[c][i];
            *line++ = strip[c][i + 1];
        }
}

static void store_tiles(uint16_t *block, uint16_t strip[PANEL][STRIP], int count)
{
    for (int i = 0; i < tec_matrix_blocks(count) * BLOCK; i += HALF)
        for (int c = 0; c < PANEL; c++)
            memcpy(block + in_tiles((size_t)c, (size_t)i), &strip[c][i], HALF * sizeof *block);
}

/* Pack one panel of bf16. Source rows are read in strips of STRIP columns, so that the sixteen rows
 * do not evict one another from the cache. */
static void pack_halves(uint16_t *panel, enum tec_matrix_layout layout, const float *src, int k,
                        int rows)
{
    uint16_t strip[PANEL][STRIP];
    for (int at = 0; at < k; at += STRIP) {
        int count = k - at < STRIP ? k - at : STRIP;
        load_strip(strip, src, k, rows, at, count);
        if (layout == TEC_MATRIX_TILES)
            store_tiles(panel + (size_t)at * PANEL, strip, count);
        else
            store_pairs(panel + (size_t)at * PANEL, strip, count);
    }
}

static void pack_floats(float *panel, const float *src, int k, int rows)
{
    for (int i = 0; i < k; i++)
        for (int c = 0; c < PANEL; c++)
            panel[(size_t)i * PANEL + (size_t)c] =
                c < rows ? src[(size_t)c * (size_t)k + (size_t)i] : 0.0F;
}

/* The number of source rows that fit into the matrix with its padding. */
static int fitting(int rows, int first, int n)
{
    int room = tec_padded(rows) - first;
    return n < room ? n : room;
}

static void pack_panels(void *packed, enum tec_matrix_layout layout, bool bf16, int k, int first,
                        int n, const float *src)
{
    for (int r = 0; r < n; r += PANEL) {
        int rows = n - r < PANEL ? n - r : PANEL;
        size_t panel = (size_t)(first + r) / PANEL;
        size_t from = (size_t)r * (size_t)k;
        if (!bf16)
            pack_floats((float *)packed + panel * PANEL * (size_t)k, src + from, k, rows);
        else
            pack_halves((uint16_t *)packed + panel * PANEL * stored_k(layout, k), layout,
                        src + from, k, rows);
    }
}

static bool in_rows(enum tec_matrix_layout layout, bool bf16)
{
    return layout == TEC_MATRIX_ROWS || (layout == TEC_MATRIX_TILES && !bf16);
}

void tec_matrix_pack(void *packed, enum tec_matrix_layout layout, bool bf16, int rows, int k,
                     int first, int n, const float *src)
{
    n = fitting(rows, first, n);
    if (!in_rows(layout, bf16)) {
        pack_panels(packed, layout, bf16, k, first, n, src);
        return;
    }
    size_t stride = tec_matrix_stride(k, bf16);
    for (int r = 0; r < n; r++) {
        size_t at = ((size_t)first + (size_t)r) * stride;
        const float *row = src + (size_t)r * (size_t)k;
        if (!bf16)
            memcpy((float *)packed + at, row, (size_t)k * sizeof *row);
        for (int i = 0; bf16 && i < k; i++)
            ((uint16_t *)packed)[at + (size_t)i] = tec_bf16_bits(row[i]);
    }
}

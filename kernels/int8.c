/* int8.c - rounds weights to 8 bits, a scale for each column, and packs them into panels. */
#include "kernels/int8.h"

#include <math.h>
#include <string.h>

enum { PANEL = 16 };

static float largest_of(const float *row, int k)
{
    float most = 0.0F;
    for (int i = 0; i < k; i++) {
        float size = fabsf(row[i]);
        most = size > most ? size : most;
    }
    return most;
}

/* Whole numbers of four k to their bytes. The sum with 1.5 * 2^23 is rounded to a whole number, to
 * nearest even, whose low byte is the weight's. */
static void put_four(unsigned char *to, const float *w, int count, float per)
{
    for (int i = 0; i < count; i++) {
        float raised = w[i] * per + 0x1.8p23F;
        uint32_t bits;
        memcpy(&bits, &raised, sizeof bits);
        to[i] = (unsigned char)bits;
    }
}

static void put_row(unsigned char *panel, int column, const float *row, int k)
{
    float most = largest_of(row, k), scale = most / 127.0F;
    if (most < 0x1p-100F)
        return; /* zeros */
    memcpy(panel + (size_t)column * sizeof scale, &scale, sizeof scale);
    for (int i = 0; i < k; i += TEC_INT8_DEEP) {
        unsigned char *to = panel + tec_int8_at(i) + (size_t)column * TEC_INT8_DEEP;
        put_four(to, row + i, k - i < TEC_INT8_DEEP ? k - i : TEC_INT8_DEEP, 127.0F / most);
    }
}

void tec_int8_pack(void *packed, int rows, int k, int first, int n, const float *src)
{
    int room = (rows + PANEL - 1) / PANEL * PANEL - first;
    n = n < room ? n : room;
    for (int r = 0; r < n; r++) {
        unsigned char *panel =
            (unsigned char *)packed + (size_t)((first + r) / PANEL) * tec_int8_panel(k);
        put_row(panel, (first + r) % PANEL, src + (size_t)r * (size_t)k, k);
    }
}

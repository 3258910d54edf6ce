/* argmax.h - the place of a row's first largest number; a tier gives vec and take_larger. */
#ifndef TEC_KERNELS_PANELS_ARGMAX_H
#define TEC_KERNELS_PANELS_ARGMAX_H

#include "kernels/bf16.h"

#include <math.h>
#include <string.h>

/* For each element of a vector: the largest so far, and the first column of the vector it came from
 * as an int. */
struct most {
    vec value, at;
};

VEC_INLINE void take_larger(struct most *most, vec x, int at, int round);

/* Whatever is left to decide one by one: a row without a number above -infinity, its tail. */
static inline int argmax_plain(const float *row, int first, int cols, int best, float most,
                               int round)
{
    for (int c = first; c < cols; c++) {
        float x = round ? tec_bf16_round(row[c]) : row[c];
        if (best < 0 ? x == x : x > most) {
            best = c;
            most = x;
        }
    }
    return best;
}

VEC_INLINE int argmax_row(const float *row, int cols, int round)
{
    enum { CHAINS = 4, STEP = CHAINS * VEC_WIDTH };
    struct most most[CHAINS];
    float values[STEP];
    int places[STEP], c = 0, best = -1;
    TEC_UNROLL
    for (int i = 0; i < CHAINS; i++)
        most[i] = (struct most){vec_set(-INFINITY), vec_set(0.0F)};
    for (; c + STEP <= cols; c += STEP) {
        TEC_UNROLL
        for (int i = 0; i < CHAINS; i++)
            take_larger(&most[i], vec_load(row + c + i * VEC_WIDTH), c + i * VEC_WIDTH, round);
    }
    TEC_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        vec_store(values + i * VEC_WIDTH, most[i].value);
        memcpy(places + i * VEC_WIDTH, &most[i].at, sizeof most[i].at);
    }
    float top = -INFINITY;
    for (int i = 0; i < STEP; i++) {
        int place = places[i] + i % VEC_WIDTH;
        if (values[i] > top || (values[i] == top && best >= 0 && place < best)) {
            top = values[i];
            best = place;
        }
    }
    /* Nothing above -infinity: the first number, which the plain way finds from the start. */
    best = argmax_plain(row, best < 0 ? 0 : c, cols, best, top, round);
    return best < 0 ? 0 : best;
}

#endif

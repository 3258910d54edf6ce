/* place.c - the reference place_kv kernels: copies kept keys and values to slots, and rotates the
 * keys.
 *
 * The rotation is that of rope, product by product, so keys that were rounded before they were kept
 * get the bytes that rope would store. */
#include "kernels/place.h"
#include "kernels/ref/ref.h"
#include "kernels/ref/rotate.h"

#include <string.h>

static void keys_f32(const struct tec_place_args *a, const float *from, float *to, int pos)
{
    int dim = a->head_dim, half = dim / 2;
    const float *angle = a->cos_sin + (size_t)pos * (size_t)half * 2;
    for (int c = 0; c < a->kv_heads * dim; c++) {
        int d = c % dim;
        to[c] = tec_rotated(from[c], from[d < half ? c + half : c - half], angle, d, dim,
                            (struct tec_rounding){0, 0});
    }
}

static void keys_bf16(const struct tec_place_args *a, const uint16_t *from, uint16_t *to, int pos)
{
    int dim = a->head_dim, half = dim / 2;
    const float *angle = a->cos_sin + (size_t)pos * (size_t)half * 2;
    for (int c = 0; c < a->kv_heads * dim; c++) {
        int d = c % dim;
        float x = tec_bf16_float(from[c]);
        float other = tec_bf16_float(from[d < half ? c + half : c - half]);
        to[c] = tec_bf16_bits(tec_rotated(x, other, angle, d, dim, (struct tec_rounding){0, 1}));
    }
}

static void place(const struct tec_place_args *a, struct tec_part part, size_t size)
{
    struct tec_place_walk w = tec_place_begin(a, part);
    while (tec_place_next(a, &w))
        for (int t = w.first; t < w.last; t++) {
            size_t row = tec_place_at(a, 1), from = tec_place_at(a, t);
            size_t to = tec_place_at(a, w.place->slot + t);
            const char *k = w.place->k, *v = w.place->v;
            if (v)
                memcpy((char *)a->v + to * size, v + from * size, row * size);
            if (k && !a->cos_sin)
                memcpy((char *)a->k + to * size, k + from * size, row * size);
            else if (k && size == sizeof(float))
                keys_f32(a, (const float *)w.place->k + from, (float *)a->k + to, w.place->pos + t);
            else if (k)
                keys_bf16(a, (const uint16_t *)w.place->k + from, (uint16_t *)a->k + to,
                          w.place->pos + t);
        }
}

void tec_place_kv_f32_ref(const struct tec_place_args *a, struct tec_part part)
{
    place(a, part, sizeof(float));
}

void tec_place_kv_bf16_ref(const struct tec_place_args *a, struct tec_part part)
{
    place(a, part, sizeof(uint16_t));
}

/* images.c - what the three judges of pictures share. */
#include "tests/judge/images.h"

#include <math.h>

enum tec_status tec_images_open(struct tec_tensors **out, const struct tec_verify *v,
                                const char *file, struct tec_error *err)
{
    const char *path = tec_arena_printf(v->arena, "%s/%s", v->dir, file);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the path of %s", file);
    return tec_tensors_open(out, path, v->heap, err);
}

enum tec_status tec_images_picture(struct tec_image *out, const struct tec_verify *v,
                                   const struct tec_tensors *tensors, const char *name,
                                   struct tec_error *err)
{
    const struct tec_stored *t = name ? tec_tensors_find(tensors, name) : NULL;
    if (!t)
        return tec_fail(err, TEC_NOT_FOUND, "no tensor '%s'", name ? name : "(none)");
    bool gray = t->rank == 2, colour = t->rank == 3 && t->shape[2] == 3;
    if (t->dtype != TEC_U8 || !(gray || colour) || t->shape[0] > TEC_IMAGE_SIDE ||
        t->shape[1] > TEC_IMAGE_SIDE)
        return tec_fail(err, TEC_SHAPE, "tensor '%s' is not a picture", name);
    TEC_TRY(tec_image_new(out, (int)t->shape[0], (int)t->shape[1], gray ? 1 : 3, v->arena, err));
    return tec_tensors_read(tensors, t, 0, out->pixels, (size_t)t->bytes, err);
}

enum tec_status tec_images_read(void **data, const struct tec_verify *v,
                                const struct tec_tensors *tensors, const char *name,
                                enum tec_dtype dtype, size_t n, struct tec_error *err)
{
    const struct tec_stored *t = name ? tec_tensors_find(tensors, name) : NULL;
    size_t bytes = n * (size_t)tec_dtype_bits(dtype) / 8;
    if (!t)
        return tec_fail(err, TEC_NOT_FOUND, "no tensor '%s'", name ? name : "(none)");
    if (t->dtype != dtype || t->bytes != bytes)
        return tec_fail(err, TEC_SHAPE, "tensor '%s' is not %zu elements of %s", name, n,
                        tec_dtype_name(dtype));
    *data = tec_arena_push(v->arena, bytes, 1, 64);
    if (!*data)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for tensor '%s'", name);
    return tec_tensors_read(tensors, t, 0, *data, bytes, err);
}

void tec_images_bytes(struct tec_verify *v, const char *check, const unsigned char *got,
                      const unsigned char *want, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += got[i] != want[i];
    tec_verify_report(v, check, (double)wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
}

void tec_images_near_bytes(struct tec_verify *v, const char *check, const unsigned char *got,
                           const unsigned char *want, size_t n, double bound)
{
    double max = 0.0, sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        max = d > max ? d : max;
        sum += d * d;
    }
    tec_verify_report(v, check, max, n ? sqrt(sum / (double)n) : 0.0, bound, max <= bound, NULL,
                      NULL);
}

void tec_images_floats(struct tec_verify *v, const char *check, const float *got, const float *want,
                       size_t n, double bound)
{
    double max = 0.0, sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (!(d <= max)) /* written so that NaN is kept */
            max = d;
        sum += d * d;
    }
    tec_verify_report(v, check, max, n ? sqrt(sum / (double)n) : 0.0, bound, max <= bound, NULL,
                      NULL);
}

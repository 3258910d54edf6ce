/* images.h - what the three judges of pictures share: inputs as pictures, comparisons. */
#ifndef TEC_TESTS_JUDGE_IMAGES_H
#define TEC_TESTS_JUDGE_IMAGES_H

#include "base/image/image.h"
#include "base/store/safetensors.h"
#include "tests/judge/verify.h"

/* A file of the case's folder: expected.safetensors, inputs.safetensors. */
enum tec_status tec_images_open(struct tec_tensors **out, const struct tec_verify *v,
                                const char *file, struct tec_error *err);

/* The U8 tensor [h, w, 3] or [h, w] of that name as a picture, in the case's arena. */
enum tec_status tec_images_picture(struct tec_image *out, const struct tec_verify *v,
                                   const struct tec_tensors *tensors, const char *name,
                                   struct tec_error *err);

/* The tensor of that name, which must have `dtype` and n elements: its elements as they are stored
 * (data, in the case's arena). */
enum tec_status tec_images_read(void **data, const struct tec_verify *v,
                                const struct tec_tensors *tensors, const char *name,
                                enum tec_dtype dtype, size_t n, struct tec_error *err);

/* Report how many of n bytes differ; bound 0. */
void tec_images_bytes(struct tec_verify *v, const char *check, const unsigned char *got,
                      const unsigned char *want, size_t n);

/* Report the largest difference of n bytes; bound as given. */
void tec_images_near_bytes(struct tec_verify *v, const char *check, const unsigned char *got,
                           const unsigned char *want, size_t n, double bound);

/* Report the largest difference of n floats; bound as given. */
void tec_images_floats(struct tec_verify *v, const char *check, const float *got, const float *want,
                       size_t n, double bound);

#endif

/* lut.h - bytes to floats by table, and floats to bytes. */
#ifndef TEC_BASE_IMAGE_LUT_H
#define TEC_BASE_IMAGE_LUT_H

#include <stddef.h>
#include <stdint.h>

/* Tables of the 256 bytes. Every step is rounded to float32, in the order written:
 *   plain      x
 *   unit       x / 255
 *   signed     x / 255 * 2 - 1
 *   normalise  (x / 255 - mean) / deviation */
void tec_lut_plain(float lut[256]);
void tec_lut_unit(float lut[256]);
void tec_lut_signed(float lut[256]);
void tec_lut_normalise(float lut[256], float mean, float deviation);

/* normalise for each channel of a picture: table c has mean[c] and deviation[c], rounded to float32
 * first. A picture that goes through several networks has one such set for each. */
void tec_lut_channels(float (*luts)[256], const double *mean, const double *deviation,
                      int channels);

/* The table rounded to bfloat16, nearest, ties to even. */
void tec_lut_bf16(uint16_t out[256], const float lut[256]);

/* [height, width, channels] bytes to planes [channels, height, width], one table a channel. */
void tec_lut_planes(float *chw, const unsigned char *hwc, int height, int width, int channels,
                    const float (*luts)[256]);

/* Floats in [0, 1] to bytes: 255 * x in float32, truncated. Below 0 and NaN give 0, above 1 gives
 * 255. */
void tec_u8_from_unit(unsigned char *out, const float *in, size_t n);

/* Floats in [0, 255] to bytes: rounded, halves to even, clamped; NaN gives 0. What torch does to
 * bytes that it resizes in float32. */
void tec_u8_from_plain(unsigned char *out, const float *in, size_t n);

#endif

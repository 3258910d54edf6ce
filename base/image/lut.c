/* lut.c - bytes to floats by table, and floats to bytes. */
#include "base/image/lut.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

void tec_lut_plain(float lut[256])
{
    for (int i = 0; i < 256; i++)
        lut[i] = (float)i;
}

void tec_lut_unit(float lut[256])
{
    for (int i = 0; i < 256; i++)
        lut[i] = (float)i / 255.0F;
}

void tec_lut_signed(float lut[256])
{
    for (int i = 0; i < 256; i++)
        lut[i] = (float)i / 255.0F * 2.0F - 1.0F;
}

void tec_lut_normalise(float lut[256], float mean, float deviation)
{
    for (int i = 0; i < 256; i++)
        lut[i] = ((float)i / 255.0F - mean) / deviation;
}

void tec_lut_channels(float (*luts)[256], const double *mean, const double *deviation, int channels)
{
    for (int c = 0; c < channels; c++)
        tec_lut_normalise(luts[c], (float)mean[c], (float)deviation[c]);
}

void tec_lut_bf16(uint16_t out[256], const float lut[256])
{
    for (int i = 0; i < 256; i++) {
        uint32_t bits;
        memcpy(&bits, &lut[i], sizeof bits);
        uint32_t round = 0x7fffU + (bits >> 16 & 1U);
        bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
        out[i] = (uint16_t)(nan ? bits >> 16 | 0x40U : (bits + round) >> 16);
    }
}

void tec_lut_planes(float *chw, const unsigned char *hwc, int height, int width, int channels,
                    const float (*luts)[256])
{
    size_t n = (size_t)height * (size_t)width, per = (size_t)channels;
    for (size_t c = 0; c < per; c++)
        for (size_t i = 0; i < n; i++)
            chw[c * n + i] = luts[c][hwc[i * per + c]];
}

void tec_u8_from_unit(unsigned char *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = 255.0F * in[i];
        out[i] = x >= 255.0F ? 255 : x > 0.0F ? (unsigned char)x : 0;
    }
}

void tec_u8_from_plain(unsigned char *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = nearbyintf(in[i]);
        out[i] = x >= 255.0F ? 255 : x > 0.0F ? (unsigned char)x : 0;
    }
}

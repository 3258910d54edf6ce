/* resize_run.c - separable resize, horizontal pass first; no allocation. */
#include "base/image/resize_plan.h"

#include <string.h>

/* Half of the last bit that stays. */
static int32_t half_of(const struct tec_axis *axis)
{
    return 1 << (axis->bits - 1);
}

static unsigned char clip(int32_t sum, int bits)
{
    int32_t v = sum >> bits;
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void across_u8(const struct tec_axis *axis, unsigned char *out, const unsigned char *in,
                      int channels)
{
    if (axis->in == axis->out) {
        memcpy(out, in, (size_t)axis->in * (size_t)channels);
        return;
    }
    const int32_t half = half_of(axis);
    for (int i = 0; i < axis->out; i++) {
        const int32_t *w = axis->fixed + (size_t)i * (size_t)axis->taps;
        const unsigned char *p = in + (size_t)axis->first[i] * (size_t)channels;
        int n = axis->count[i];
        if (channels == 3) {
            int32_t r = half, g = half, b = half;
            for (int t = 0; t < n; t++, p += 3) {
                r += p[0] * w[t];
                g += p[1] * w[t];
                b += p[2] * w[t];
            }
            *out++ = clip(r, axis->bits);
            *out++ = clip(g, axis->bits);
            *out++ = clip(b, axis->bits);
        } else {
            int32_t v = half;
            for (int t = 0; t < n; t++)
                v += p[t] * w[t];
            *out++ = clip(v, axis->bits);
        }
    }
}

static void across_f32(const struct tec_axis *axis, float *out, const float *in, int channels)
{
    if (axis->in == axis->out) {
        memcpy(out, in, (size_t)axis->in * (size_t)channels * sizeof *out);
        return;
    }
    for (int i = 0; i < axis->out; i++) {
        const float *w = axis->real + (size_t)i * (size_t)axis->taps;
        const float *p = in + (size_t)axis->first[i] * (size_t)channels;
        for (int c = 0; c < channels; c++) {
            float v = 0.0F;
            for (int t = 0; t < axis->count[i]; t++)
                v += p[t * channels + c] * w[t];
            *out++ = v;
        }
    }
}

/* One output row from rows of `n` samples; `sums` holds n. */
static void down_u8(const struct tec_axis *axis, int i, unsigned char *out,
                    const unsigned char *rows, size_t n, int32_t *sums)
{
    const int32_t *w = axis->fixed + (size_t)i * (size_t)axis->taps;
    for (size_t x = 0; x < n; x++)
        sums[x] = half_of(axis);
    for (int t = 0; t < axis->count[i]; t++)
        for (size_t x = 0; x < n; x++)
            sums[x] += rows[(size_t)t * n + x] * w[t];
    for (size_t x = 0; x < n; x++)
        out[x] = clip(sums[x], axis->bits);
}

static void down_f32(const struct tec_axis *axis, int i, float *out, const float *rows, size_t n)
{
    const float *w = axis->real + (size_t)i * (size_t)axis->taps;
    for (size_t x = 0; x < n; x++)
        out[x] = 0.0F;
    for (int t = 0; t < axis->count[i]; t++)
        for (size_t x = 0; x < n; x++)
            out[x] += rows[(size_t)t * n + x] * w[t];
}

/* The row of padding left of, above, right of and below the picture. */
static void pad_f32(const struct tec_resize *plan, float *out)
{
    size_t n = (size_t)plan->spec.height * (size_t)plan->spec.width * (size_t)plan->spec.channels;
    if (plan->spec.fit != TEC_FIT_STRETCH)
        for (size_t i = 0; i < n; i++)
            out[i] = plan->spec.pad;
}

static size_t place_of(const struct tec_resize *plan, int row)
{
    return ((size_t)(plan->top + row) * (size_t)plan->spec.width + (size_t)plan->left) *
           (size_t)plan->spec.channels;
}

void tec_resize_run_u8(const struct tec_resize *plan, unsigned char *out, const unsigned char *in,
                       void *scratch)
{
    const struct tec_resize_spec *s = &plan->spec;
    size_t n = (size_t)plan->columns * (size_t)s->channels;
    size_t stride = (size_t)s->in_width * (size_t)s->channels;
    int32_t *sums = scratch;
    unsigned char *rows = (unsigned char *)(sums + n);
    if (s->fit != TEC_FIT_STRETCH)
        memset(out, (unsigned char)s->pad,
               (size_t)s->height * (size_t)s->width * (size_t)s->channels);
    for (int y = plan->first_row; y < plan->last_row; y++)
        across_u8(&plan->across, rows + (size_t)(y - plan->first_row) * n, in + (size_t)y * stride,
                  s->channels);
    for (int y = 0; y < plan->rows; y++)
        down_u8(&plan->down, y, out + place_of(plan, y),
                rows + (size_t)(plan->down.first[y] - plan->first_row) * n, n, sums);
}

static void finish_f32(const struct tec_resize *plan, float *out, const float *rows)
{
    size_t n = (size_t)plan->columns * (size_t)plan->spec.channels;
    pad_f32(plan, out);
    for (int y = 0; y < plan->rows; y++)
        down_f32(&plan->down, y, out + place_of(plan, y),
                 rows + (size_t)(plan->down.first[y] - plan->first_row) * n, n);
}

void tec_resize_run_f32(const struct tec_resize *plan, float *out, const float *in, void *scratch)
{
    size_t channels = (size_t)plan->spec.channels, n = (size_t)plan->columns * channels;
    float *rows = scratch;
    for (int y = plan->first_row; y < plan->last_row; y++)
        across_f32(&plan->across, rows + (size_t)(y - plan->first_row) * n,
                   in + (size_t)y * (size_t)plan->spec.in_width * channels, plan->spec.channels);
    finish_f32(plan, out, rows);
}

void tec_resize_run_u8_f32(const struct tec_resize *plan, float *out, const unsigned char *in,
                           const float lut[256], void *scratch)
{
    size_t channels = (size_t)plan->spec.channels, n = (size_t)plan->columns * channels;
    size_t stride = (size_t)plan->spec.in_width * channels;
    float *row = scratch, *rows = row + stride;
    for (int y = plan->first_row; y < plan->last_row; y++) {
        for (size_t x = 0; x < stride; x++)
            row[x] = lut[in[(size_t)y * stride + x]];
        across_f32(&plan->across, rows + (size_t)(y - plan->first_row) * n, row,
                   plan->spec.channels);
    }
    finish_f32(plan, out, rows);
}

/* axis.c - the weights of one direction of a resize, as Pillow and as torch compute them. */
#include "base/image/axis.h"

#include <math.h>

enum { MOST_BITS = 22 }; /* after the point, as in Pillow */

static const double pi = 3.14159265358979323846;

static double support_of(enum tec_filter filter)
{
    static const double supports[] = {
#define FILTER(name, text, support) support,
#include "base/image/filters.def"
#undef FILTER
    };
    return supports[filter];
}

/* Cubic convolution (Keys 1981) with parameter a. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0)
        return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
    return 0.0;
}

static double sinc(double x)
{
    return x == 0.0 ? 1.0 : sin(x * pi) / (x * pi);
}

static double weight(enum tec_filter filter, double x)
{
    double t = fabs(x);
    switch (filter) {
    case TEC_FILTER_BOX:
        return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case TEC_FILTER_BILINEAR:
        return t < 1.0 ? 1.0 - t : 0.0;
    case TEC_FILTER_HAMMING:
        return t == 0.0   ? 1.0
               : t >= 1.0 ? 0.0
                          : sin(t * pi) / (t * pi) * (0.54 + 0.46 * cos(t * pi));
    case TEC_FILTER_BICUBIC:
        return cubic(x, -0.5);
    case TEC_FILTER_LANCZOS:
        return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
    default:
        return 1.0;
    }
}

static void store(struct tec_axis *axis, int i, int tap, double w)
{
    size_t at = (size_t)i * (size_t)axis->taps + (size_t)tap;
    double scaled = w * (double)(1 << axis->bits);
    axis->fixed[at] = (int32_t)(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
    axis->real[at] = (float)w;
}

/* Weights of output i. The window is widened by the reduction. Products and truncations in Pillow's
 * order: a weight may fall on either side of a rounding step otherwise. */
static void weigh_smooth(struct tec_axis *axis, enum tec_filter filter, int i, double *row)
{
    double scale = (double)axis->in / axis->out, wide = scale < 1.0 ? 1.0 : scale;
    double support = support_of(filter) * wide, narrow = 1.0 / wide;
    double centre = (i + 0.5) * scale, sum = 0.0;
    int low = (int)(centre - support + 0.5), high = (int)(centre + support + 0.5);
    low = low < 0 ? 0 : low;
    high = high > axis->in ? axis->in : high;
    for (int t = 0; t < high - low; t++) {
        row[t] = weight(filter, (t + low - centre + 0.5) * narrow);
        sum += row[t];
    }
    for (int t = 0; t < high - low && sum != 0.0; t++)
        row[t] /= sum;
    axis->first[i] = low;
    axis->count[i] = high - low;
}

/* As many bits after the point as leave the largest weight below 2^15. */
static int bits_of_16(struct tec_axis *axis, enum tec_filter filter, double *row)
{
    double largest = 0.0;
    int bits = 0;
    for (int i = 0; i < axis->out; i++) {
        weigh_smooth(axis, filter, i, row);
        for (int t = 0; t < axis->count[i]; t++)
            largest = row[t] > largest ? row[t] : largest;
    }
    while (bits < MOST_BITS && (int)(0.5 + largest * (double)(1 << (bits + 1))) < 1 << 15)
        bits++;
    return bits;
}

static void fill_smooth(struct tec_axis *axis, enum tec_filter filter, double *row)
{
    for (int i = 0; i < axis->out; i++) {
        weigh_smooth(axis, filter, i, row);
        for (int t = 0; t < axis->count[i]; t++)
            store(axis, i, t, row[t]);
    }
}

/* Pillow adds the step again and again, and so does this. */
static void fill_nearest(struct tec_axis *axis)
{
    double step = (double)axis->in / axis->out, at = step * 0.5;
    for (int i = 0; i < axis->out; i++, at += step) {
        axis->first[i] = at < axis->in ? (int)at : axis->in - 1;
        axis->count[i] = 1;
        store(axis, i, 0, 1.0);
    }
}

/* torch without antialias, align_corners false: the two or four neighbours, those beyond the
 * border counted at the border. Positions are float32 with one rounding, as in torch: for some
 * sizes this moves a weight by 1e-5, and models were trained so. */
static void fill_sharp(struct tec_axis *axis, enum tec_filter filter)
{
    float scale = (float)axis->in / (float)axis->out;
    bool linear = filter == TEC_FILTER_BILINEAR;
    for (int i = 0; i < axis->out; i++) {
        float at = fmaf(scale, (float)i + 0.5F, -0.5F);
        double w[4] = {0};
        at = linear && at < 0.0F ? 0.0F : at;
        int base = (int)floorf(at), from = linear ? base : base - 1;
        int to = linear ? base + 1 : base + 2;
        int low = from < 0 ? 0 : from, high = to >= axis->in ? axis->in - 1 : to;
        double part = (double)(at - (float)base);
        for (int j = from; j <= to; j++) {
            int inside = j < low ? low : j > high ? high : j;
            double x = part - (j - base);
            w[inside - low] += linear ? 1.0 - fabs(x) : cubic(x, -0.75);
        }
        for (int t = 0; t <= high - low; t++)
            store(axis, i, t, w[t]);
        axis->first[i] = low;
        axis->count[i] = high - low + 1;
    }
}

enum tec_status tec_axis_plan(struct tec_axis *axis, int in, int out,
                              const struct tec_resize_spec *spec, struct tec_arena *arena,
                              struct tec_error *err)
{
    enum tec_filter filter = spec->filter;
    bool sharp = spec->sharp;
    double scale = (double)in / out;
    double support = support_of(filter) * (scale < 1.0 ? 1.0 : scale);
    int taps = sharp ? 4 : (int)ceil(support) * 2 + 1;
    size_t n = (size_t)out * (size_t)taps;
    double *row = NULL;
    *axis = (struct tec_axis){.in = in, .out = out, .taps = taps, .bits = MOST_BITS};
    axis->first = TEC_NEW(arena, (size_t)out, int);
    axis->count = TEC_NEW(arena, (size_t)out, int);
    axis->fixed = TEC_NEW(arena, n, int32_t);
    axis->real = TEC_NEW(arena, n, float);
    struct tec_arena_mark mark = tec_arena_mark(arena);
    row = TEC_NEW(arena, (size_t)taps, double);
    if (!axis->first || !axis->count || !axis->fixed || !axis->real || !row)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the weights of a resize from %d to %d",
                        in, out);
    if (spec->half)
        axis->bits = bits_of_16(axis, filter, row);
    if (filter == TEC_FILTER_NEAREST)
        fill_nearest(axis);
    else if (sharp)
        fill_sharp(axis, filter);
    else
        fill_smooth(axis, filter, row);
    tec_arena_rewind(arena, mark);
    return TEC_OK;
}

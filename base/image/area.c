/* area.c - the mean over areas of OpenCV's resize, and what stands in for it where pixels get more.
 *
 * Both passes are separable and have the same weights, since squares become squares. Sums are made
 * in the order of the reference, so that results are equal to the bit. */
#include "base/image/area.h"

#include "base/image/image.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CHANNELS = 3, ONE = 1 << 11 };

/* Shrinking: pixel `from` of the source counts for pixel `to` by `weight`. */
struct cover {
    int to, from;
    float weight;
};

struct tec_area {
    int in_side, side;
    int whole;           /* shrinking by a whole number: that; else 0 */
    struct cover *cover; /* shrinking; in the order of `to`, then of `from` */
    int n_cover;
    int *first; /* growing, [side]: pixel of the source, and by how much the next one counts */
    short *next;
};

/* The cells that each pixel covers: a rest of one, whole ones, a rest of one. */
static void cover_cells(struct tec_area *a, double scale)
{
    for (int to = 0; to < a->side; to++) {
        double begin = to * scale, end = begin + scale;
        double width = fmin(scale, a->in_side - begin);
        int last = (int)floor(end), first = (int)ceil(begin);
        last = last < a->in_side - 1 ? last : a->in_side - 1;
        first = first < last ? first : last;
        if (first - begin > 1e-3)
            a->cover[a->n_cover++] =
                (struct cover){to, first - 1, (float)((first - begin) / width)};
        for (int from = first; from < last; from++)
            a->cover[a->n_cover++] = (struct cover){to, from, (float)(1.0 / width)};
        if (end - last > 1e-3)
            a->cover[a->n_cover++] =
                (struct cover){to, last, (float)(fmin(fmin(end - last, 1.0), width) / width)};
    }
}

static void place_pairs(struct tec_area *a, double scale)
{
    double inverse = (double)a->side / a->in_side;
    for (int to = 0; to < a->side; to++) {
        int from = (int)floor(to * scale);
        float part = (float)((to + 1) - (from + 1) * inverse);
        part = part <= 0.0F ? 0.0F : part - floorf(part);
        if (from >= a->in_side - 1) {
            from = a->in_side - 1;
            part = 0.0F;
        }
        a->first[to] = from;
        a->next[to] = (short)rintf(part * ONE);
    }
}

enum tec_status tec_area_plan(const struct tec_area **out, int in_side, int side,
                              struct tec_arena *arena, struct tec_error *err)
{
    if (in_side < 1 || side < 1 || in_side > TEC_IMAGE_SIDE || side > TEC_IMAGE_SIDE)
        return tec_fail(err, TEC_INVALID, "areas of %d pixels to %d; sides are 1 to %d", in_side,
                        side, TEC_IMAGE_SIDE);
    struct tec_area *a = TEC_NEW(arena, 1, struct tec_area);
    double scale = 1.0 / ((double)side / in_side);
    size_t most = (size_t)in_side + 2 * (size_t)side;
    if (!a)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the plan of areas");
    *a = (struct tec_area){.in_side = in_side, .side = side};
    a->cover = TEC_NEW(arena, in_side > side ? most : 1, struct cover);
    a->first = TEC_NEW(arena, (size_t)side, int);
    a->next = TEC_NEW(arena, (size_t)side, short);
    if (!a->cover || !a->first || !a->next)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the weights of areas");
    if (in_side < side)
        place_pairs(a, scale);
    else if (fabs(rint(scale) - scale) < DBL_EPSILON)
        a->whole = (int)rint(scale);
    else
        cover_cells(a, scale);
    *out = a;
    return TEC_OK;
}

size_t tec_area_scratch(const struct tec_area *a)
{
    size_t row = (size_t)a->side * CHANNELS * sizeof(float);
    return a->in_side < a->side ? (size_t)a->in_side * row : 2 * row;
}

static unsigned char byte_of(float x)
{
    float whole = rintf(x);
    return (unsigned char)(whole < 0.0F ? 0.0F : whole > 255.0F ? 255.0F : whole);
}

/* Means of squares of whole pixels; those of four are rounded up from the half. */
static void run_whole(const struct tec_area *a, unsigned char *out, const unsigned char *in)
{
    int n = a->whole;
    size_t row = (size_t)a->in_side * CHANNELS;
    float part = 1.0F / (float)((int64_t)n * n);
    for (int y = 0; y < a->side; y++)
        for (int x = 0; x < a->side * CHANNELS; x++) {
            size_t left = (size_t)(x / CHANNELS) * (size_t)n * CHANNELS + (size_t)(x % CHANNELS);
            const unsigned char *corner = in + (size_t)y * (size_t)n * row + left;
            int64_t sum = 0;
            for (int dy = 0; dy < n; dy++)
                for (int dx = 0; dx < n; dx++)
                    sum += corner[(size_t)dy * row + (size_t)dx * CHANNELS];
            *out++ = n == 2 ? (unsigned char)((sum + 2) >> 2) : byte_of((float)sum * part);
        }
}

/* A row of the source as areas of its columns. */
static void sum_columns(const struct tec_area *a, float *row, const unsigned char *in)
{
    memset(row, 0, (size_t)a->side * CHANNELS * sizeof *row);
    for (int i = 0; i < a->n_cover; i++) {
        const struct cover *c = &a->cover[i];
        for (int k = 0; k < CHANNELS; k++)
            row[c->to * CHANNELS + k] += (float)in[c->from * CHANNELS + k] * c->weight;
    }
}

static void run_cover(const struct tec_area *a, unsigned char *out, const unsigned char *in,
                      float *scratch)
{
    int n = a->side * CHANNELS;
    float *row = scratch, *sum = scratch + n;
    for (int i = 0; i < a->n_cover; i++) {
        const struct cover *c = &a->cover[i];
        bool begins = i == 0 || c->to != c[-1].to;
        sum_columns(a, row, in + (size_t)c->from * (size_t)a->in_side * CHANNELS);
        for (int x = 0; x < n; x++)
            sum[x] = begins ? c->weight * row[x] : sum[x] + c->weight * row[x];
        if (i + 1 < a->n_cover && c[1].to == c->to)
            continue;
        for (int x = 0; x < n; x++)
            out[(size_t)c->to * (size_t)n + (size_t)x] = byte_of(sum[x]);
    }
}

static void run_pairs(const struct tec_area *a, unsigned char *out, const unsigned char *in,
                      int *rows)
{
    int n = a->side * CHANNELS, last = a->in_side - 1;
    for (int y = 0; y <= last; y++)
        for (int x = 0; x < n; x++) {
            int from = a->first[x / CHANNELS], next = a->next[x / CHANNELS];
            const unsigned char *p =
                in + ((size_t)y * (size_t)a->in_side + (size_t)from) * CHANNELS;
            int k = x % CHANNELS, beside = next ? CHANNELS : 0;
            rows[(size_t)y * (size_t)n + (size_t)x] = p[k] * (ONE - next) + p[k + beside] * next;
        }
    for (int y = 0; y < a->side; y++) {
        const int *one = rows + (size_t)a->first[y] * (size_t)n;
        const int *two = a->first[y] < last ? one + n : one;
        int next = a->next[y];
        for (int x = 0; x < n; x++)
            *out++ = (unsigned char)((((ONE - next) * (one[x] >> 4) >> 16) +
                                      (next * (two[x] >> 4) >> 16) + 2) >>
                                     2);
    }
}

void tec_area_run(const struct tec_area *a, unsigned char *out, const unsigned char *in,
                  void *scratch)
{
    if (a->in_side == a->side)
        memcpy(out, in, (size_t)a->side * (size_t)a->side * CHANNELS);
    else if (a->in_side < a->side)
        run_pairs(a, out, in, scratch);
    else if (a->whole)
        run_whole(a, out, in);
    else
        run_cover(a, out, in, scratch);
}

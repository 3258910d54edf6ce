/* source.c - supplies the values of tensors: from a checkpoint, or random ones from a seed.
 *
 * Runs at load, from several threads at once: a source is immutable. A random value is a hash of
 * seed, tensor name and index, so rows can be made in any order and the same seed always gives the
 * same model. Checkpoint values must be finite; a dry source is asked for sizes only and reads
 * nothing. */
#include "graph/model/source.h"

#include "base/store/adapter.h"
#include "kernels/bf16.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static bool real_numbers(enum tec_dtype dtype)
{
    return dtype == TEC_F32 || dtype == TEC_BF16 || dtype == TEC_F16 || dtype == TEC_F64;
}

static void print_shape(char text[128], int rank, const int64_t *shape)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && n < 100; i++)
        n += (size_t)snprintf(text + n, 128 - n, "%s%lld", i ? ", " : "", (long long)shape[i]);
}

static enum tec_status check_shape(const struct tec_weight_source *source,
                                   const struct tec_expected *expected,
                                   const struct tec_stored *stored, struct tec_error *err)
{
    if (!tec_expected_shape(expected, stored->rank, stored->shape)) {
        char is[128], must[128];
        print_shape(is, stored->rank, stored->shape);
        print_shape(must, expected->rank, expected->shape);
        return tec_fail(err, TEC_SHAPE, "%s: tensor '%s' must be [%s], is [%s]",
                        source->checkpoint->path, stored->name, must, is);
    }
    if (!real_numbers(stored->dtype))
        return tec_fail(err, TEC_SHAPE,
                        "%s: tensor '%s' is %s; weights must be F32, BF16, F16 or F64",
                        source->checkpoint->path, stored->name, tec_dtype_name(stored->dtype));
    return TEC_OK;
}

enum tec_status tec_weight_find(const struct tec_weight_source *source,
                                const struct tec_expected *expected, struct tec_found *found,
                                struct tec_error *err)
{
    *found = (struct tec_found){.name = expected->names[0], .rows = expected->shape[0], .cols = 1};
    for (int i = 1; i < expected->rank; i++)
        found->cols *= expected->shape[i];
    if (!source->checkpoint)
        return TEC_OK;
    for (int i = 0; i < expected->n_names && !found->stored; i++) {
        found->stored = tec_checkpoint_tensor(source->checkpoint, expected->names[i]);
        found->name = expected->names[i];
    }
    if (!found->stored) {
        char must[128];
        print_shape(must, expected->rank, expected->shape);
        return tec_fail(err, TEC_NOT_FOUND, "%s: lacks tensor '%s%s' [%s]",
                        source->checkpoint->path, source->checkpoint->prefix, expected->names[0],
                        must);
    }
    return check_shape(source, expected, found->stored, err);
}

/* splitmix64: each index gives its own value, so rows can be made in any order. */
static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

/* Two values to a number: its low half, then its high one. */
static void fill_random(uint64_t seed, const char *name, int64_t first, int64_t n, float centre,
                        float reach, float *out)
{
    uint64_t key = XXH3_64bits_withSeed(name, strlen(name), seed);
    float unit = reach * 0x1p-31F;
    int64_t i = 0;
    if (first % 2 && n > 0)
        out[i++] = centre + (float)(int32_t)(mix(key + (uint64_t)first / 2) >> 32) * unit;
    for (; i < n; i += 2) {
        uint64_t bits = mix(key + (uint64_t)(first + i) / 2);
        out[i] = centre + (float)(int32_t)(uint32_t)bits * unit;
        if (i + 1 < n)
            out[i + 1] = centre + (float)(int32_t)(bits >> 32) * unit;
    }
}

static enum tec_status check_finite(const struct tec_weight_source *source, const char *name,
                                    int64_t first, int64_t n, const float *x, struct tec_error *err)
{
    float sum = 0.0F; /* x - x is 0 for finite values, NaN for others */
    for (int64_t i = 0; i < n; i++)
        sum += x[i] - x[i];
    if (sum == 0.0F)
        return TEC_OK;
    int64_t i = 0;
    while (isfinite(x[i]))
        i++;
    return tec_fail(err, TEC_MALFORMED, "%s: tensor '%s' element %lld is %s",
                    source->checkpoint->path, name, (long long)first + i,
                    isnan(x[i]) ? "NaN" : "infinite");
}

static void round_all(const struct tec_weight_source *source, int64_t n, float *x)
{
    for (int64_t i = 0; source->bf16 && i < n; i++)
        x[i] = tec_bf16_round(x[i]);
}

enum tec_status tec_weight_rows(const struct tec_weight_source *source,
                                const struct tec_found *found, int64_t first, int64_t n, float *out,
                                struct tec_error *err)
{
    int64_t at = (found->first + first) * found->cols, count = n * found->cols;
    if (source->dry)
        return TEC_OK;
    if (!source->checkpoint) {
        fill_random(source->seed, found->name, at, count, 0.0F, sqrtf(3.0F / (float)found->cols),
                    out);
        round_all(source, count, out);
        return TEC_OK;
    }
    TEC_TRY(tec_checkpoint_read_f32(source->checkpoint, found->stored, (uint64_t)at, out,
                                    (size_t)count, err));
    round_all(source, count, out);
    return check_finite(source, found->stored->name, at, count, out, err);
}

enum tec_status tec_weight_vector(const struct tec_weight_source *source, const char *name, int n,
                                  float centre, float *out, struct tec_error *err)
{
    if (source->dry)
        return TEC_OK;
    memset(out, 0, (size_t)n * sizeof *out);
    if (!name)
        return TEC_OK;
    struct tec_expected e = {.names = {name}, .n_names = 1, .rank = 1, .shape = {n}};
    struct tec_found found;
    TEC_TRY(tec_weight_find(source, &e, &found, err));
    if (!source->checkpoint) {
        fill_random(source->seed, name, 0, n, centre, 0.1F, out);
        round_all(source, n, out);
        return TEC_OK;
    }
    return tec_weight_rows(source, &found, 0, n, out, err);
}

enum tec_status tec_weight_category(const struct tec_weight_source *source,
                                    const struct tec_dense *d, struct tec_category c,
                                    struct tec_found *found, struct tec_error *err)
{
    struct tec_expected e = {
        .names = {d->weight}, .n_names = 1, .rank = 3, .shape = {c.categories, d->cols, d->rows}};
    TEC_TRY(tec_weight_find(source, &e, found, err));
    found->first = (int64_t)c.at * d->cols;
    found->rows = d->cols;
    found->cols = d->rows;
    return TEC_OK;
}

enum tec_status tec_weight_category_bias(const struct tec_weight_source *source,
                                         const struct tec_dense *d, struct tec_category c,
                                         float *out, struct tec_error *err)
{
    struct tec_expected e = {
        .names = {d->bias}, .n_names = 1, .rank = 2, .shape = {c.categories, d->rows}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(source, &e, &found, err));
    return tec_weight_rows(source, &found, c.at, 1, out, err);
}

enum tec_status tec_weight_same(const struct tec_weight_source *source, const struct tec_found *a,
                                const struct tec_found *b, bool *same, struct tec_error *err)
{
    enum { CHUNK = 16384 };
    unsigned char x[CHUNK], y[CHUNK];
    const struct tec_adapter *changes = source->checkpoint->adapter;
    *same = a->stored == b->stored;
    if (!*same && changes &&
        (tec_adapter_changes(changes, a->stored->name) ||
         tec_adapter_changes(changes, b->stored->name)))
        return TEC_OK;
    if (*same || a->stored->dtype != b->stored->dtype || a->stored->bytes != b->stored->bytes)
        return TEC_OK;
    const struct tec_tensors *t = source->checkpoint->tensors;
    for (uint64_t at = 0; at < a->stored->bytes; at += CHUNK) {
        size_t n = a->stored->bytes - at < CHUNK ? (size_t)(a->stored->bytes - at) : CHUNK;
        TEC_TRY(tec_tensors_read(t, a->stored, at, x, n, err));
        TEC_TRY(tec_tensors_read(t, b->stored, at, y, n, err));
        if (memcmp(x, y, n) != 0)
            return TEC_OK;
    }
    *same = true;
    return TEC_OK;
}

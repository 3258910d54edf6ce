/* processor.c - reads preprocessor_config.json. */
#include "base/store/processor.h"

#include "base/image/image.h"

#include <math.h>
#include <string.h>

enum { COLOURS = 3 };

static enum tec_status read_kind(struct tec_processor *p, const json_t *json, const char *where,
                                 struct tec_error *err)
{
    const char *const *words = tec_reshape_words();
    const char *word = json_string_value(json_object_get(json, "image_resize_strategy"));
    for (int i = 0; word && i < TEC_N_RESHAPES; i++)
        if (strcmp(words[i], word) == 0) {
            p->kind = (enum tec_reshape_kind)i;
            return TEC_OK;
        }
    return tec_fail(err, word ? TEC_UNSUPPORTED : TEC_MALFORMED,
                    "%s: image_resize_strategy is '%.40s'; known are %s, %s and %s", where,
                    word ? word : "missing", words[0], words[1], words[2]);
}

/* [3, height, width] of every tower. */
static enum tec_status read_sizes(struct tec_processor *p, const json_t *json, const char *where,
                                  struct tec_error *err)
{
    const json_t *sizes = json_object_get(json, "input_sizes");
    size_t n = json_array_size(sizes);
    if (n < 1 || n > TEC_PROCESSOR_TOWERS)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: input_sizes must list the [3, height, width] of 1 to %d towers", where,
                        (int)TEC_PROCESSOR_TOWERS);
    for (size_t t = 0; t < n; t++) {
        const json_t *size = json_array_get(sizes, t);
        json_int_t c = json_integer_value(json_array_get(size, 0));
        json_int_t h = json_integer_value(json_array_get(size, 1));
        json_int_t w = json_integer_value(json_array_get(size, 2));
        if (json_array_size(size) != 3 || c != COLOURS || h < 1 || w < 1 || h > TEC_IMAGE_SIDE ||
            w > TEC_IMAGE_SIDE)
            return tec_fail(err, TEC_MALFORMED,
                            "%s: input_sizes[%zu] is not [3, height, width] with sides of 1 to %d",
                            where, t, TEC_IMAGE_SIDE);
        if (t > 0 && (h != p->height || w != p->width))
            return tec_fail(err, TEC_UNSUPPORTED,
                            "%s: input_sizes differ (%d x %d, %d x %d); towers that see pictures "
                            "of different sizes are not supported",
                            where, p->width, p->height, (int)w, (int)h);
        p->height = (int)h;
        p->width = (int)w;
    }
    p->n_towers = (int)n;
    return TEC_OK;
}

static enum tec_status read_colours(double out[COLOURS], const json_t *list, bool positive,
                                    const char *what, size_t tower, const char *where,
                                    struct tec_error *err)
{
    bool good = json_array_size(list) == COLOURS;
    for (size_t c = 0; c < COLOURS; c++) {
        const json_t *value = json_array_get(list, c);
        out[c] = json_number_value(value);
        good = good && json_is_number(value) && isfinite(out[c]) && fabs(out[c]) < 1e6 &&
               (!positive || out[c] > 1e-6);
    }
    if (good)
        return TEC_OK;
    return tec_fail(err, TEC_MALFORMED, "%s: the %s of tower %zu is not a list of 3 numbers%s",
                    where, what, tower, positive ? " above 0" : "");
}

static enum tec_status read_towers(struct tec_processor *p, const json_t *json, const char *where,
                                   struct tec_error *err)
{
    const json_t *used = json_object_get(json, "tvf_normalize_params");
    const json_t *means = json_object_get(json, "means"), *stds = json_object_get(json, "stds");
    if (used && json_array_size(used) != (size_t)p->n_towers)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: tvf_normalize_params has %zu entries for %d towers", where,
                        json_array_size(used), p->n_towers);
    for (size_t t = 0; t < (size_t)p->n_towers; t++) {
        const json_t *one = json_array_get(used, t);
        const json_t *mean = used ? json_object_get(one, "mean") : json_array_get(means, t);
        const json_t *std = used ? json_object_get(one, "std") : json_array_get(stds, t);
        TEC_TRY(read_colours(p->mean[t], mean, false, "mean", t, where, err));
        TEC_TRY(read_colours(p->deviation[t], std, true, "std", t, where, err));
    }
    return TEC_OK;
}

static enum tec_status read_fill(struct tec_processor *p, const json_t *json, const char *where,
                                 struct tec_error *err)
{
    const json_t *fill = json_object_get(json, "tvf_letterbox_fill");
    const json_t *means = json_object_get(json, "means");
    double value[COLOURS] = {0};
    bool given = fill && !json_is_null(fill);
    if (given)
        TEC_TRY(read_colours(value, fill, false, "tvf_letterbox_fill", 0, where, err));
    else if (json_array_size(means) > 0)
        TEC_TRY(read_colours(value, json_array_get(means, json_array_size(means) - 1), false,
                             "means", json_array_size(means) - 1, where, err));
    else
        memcpy(value, p->mean[p->n_towers - 1], sizeof value);
    for (size_t c = 0; c < COLOURS; c++) {
        double x = given ? value[c] : trunc(value[c] * 255.0);
        if (!(x >= 0.0 && x <= 255.0) || trunc(x) != x)
            return tec_fail(err, TEC_MALFORMED, "%s: the colour %g of its letterbox is no byte",
                            where, x);
        p->fill[c] = (unsigned char)x;
    }
    return TEC_OK;
}

enum tec_status tec_processor_parse(struct tec_processor *out, const json_t *json,
                                    const char *where, struct tec_error *err)
{
    struct tec_processor made = {0};
    const json_t *filters = json_object_get(json, "interpolations");
    if (!json_is_object(json))
        return tec_fail(err, TEC_MALFORMED, "%s: is not an object", where);
    for (size_t t = 0; t < json_array_size(filters); t++) {
        const char *filter = json_string_value(json_array_get(filters, t));
        if (!filter || strcmp(filter, "bicubic") != 0)
            return tec_fail(err, TEC_UNSUPPORTED,
                            "%s: interpolations[%zu] is '%.40s'; only bicubic is supported", where,
                            t, filter ? filter : "no string");
    }
    TEC_TRY(read_kind(&made, json, where, err));
    TEC_TRY(read_sizes(&made, json, where, err));
    TEC_TRY(read_towers(&made, json, where, err));
    if (made.kind == TEC_RESHAPE_BOX)
        TEC_TRY(read_fill(&made, json, where, err));
    if (made.kind != TEC_RESHAPE_STRETCH && made.height != made.width)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: %s to %d x %d; it makes squares", where,
                        tec_reshape_words()[made.kind], made.width, made.height);
    *out = made;
    return TEC_OK;
}

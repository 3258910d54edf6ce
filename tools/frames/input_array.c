/* input_array.c - nested JSON arrays of numbers as the values that a robot takes. */
#include "tools/frames/input_value.h"

#include <math.h>

/* The state of a walk through the numbers. */
struct fill {
    struct tec_value *value;
    enum tec_input_want want;
    bool whole; /* every number so far is 0 to 255 and whole */
    size_t at, n;
    double *numbers; /* NULL: only count, so that memory is taken for numbers that exist */
};

static enum tec_status put_number(struct fill *f, const json_t *json, struct tec_error *err)
{
    if (!json_is_number(json))
        return tec_fail(err, TEC_MALFORMED, "entry %zu of the array is not a number", f->at + 1);
    double x = json_number_value(json);
    if (f->want == TEC_WANT_IDS && !(json_is_integer(json) && x >= 0 && x <= INT32_MAX))
        return tec_fail(err, TEC_MALFORMED, "entry %zu of the array is no token id", f->at + 1);
    f->whole = f->whole && json_is_integer(json) && x >= 0 && x <= 255;
    if (f->numbers)
        f->numbers[f->at] = x;
    f->at++;
    return TEC_OK;
}

/* Depth is bounded by the rank, which is at most 4. */
static enum tec_status put(struct fill *f, const json_t *json, int axis, struct tec_error *err)
{
    if (axis == f->value->rank)
        return put_number(f, json, err);
    size_t want = (size_t)f->value->shape[axis];
    if (!json_is_array(json) || json_array_size(json) != want)
        return tec_fail(err, TEC_MALFORMED,
                        "the array is ragged: axis %d has %zu entries, here it has %zu", axis + 1,
                        want, json_array_size(json));
    for (size_t i = 0; i < want; i++)
        TEC_TRY(put(f, json_array_get(json, i), axis + 1, err));
    return TEC_OK;
}

static void narrow(struct fill *f)
{
    struct tec_value *v = f->value;
    v->data = f->numbers;
    v->kind = TEC_VALUE_F64;
    v->bytes = f->n * sizeof(double);
    if (f->want == TEC_WANT_IDS) {
        int32_t *ids = (int32_t *)f->numbers; /* front to back: never reads what it wrote */
        for (size_t i = 0; i < f->n; i++)
            ids[i] = (int32_t)f->numbers[i];
        v->kind = TEC_VALUE_I32;
        v->bytes = f->n * sizeof *ids;
    } else if (f->want == TEC_WANT_PICTURE && f->whole) {
        uint8_t *pixels = (uint8_t *)f->numbers;
        for (size_t i = 0; i < f->n; i++)
            pixels[i] = (uint8_t)f->numbers[i];
        v->kind = TEC_VALUE_U8;
        v->bytes = f->n;
    }
}

enum tec_status tec_input_array(struct tec_value *out, enum tec_input_want want, const json_t *json,
                                struct tec_arena *arena, struct tec_error *err)
{
    struct fill f = {.value = out, .want = want, .whole = true, .n = 1};
    out->rank = 0;
    for (const json_t *at = json; json_is_array(at); at = json_array_get(at, 0)) {
        if (out->rank == 4)
            return tec_fail(err, TEC_MALFORMED, "an array of more than 4 axes");
        size_t n = json_array_size(at);
        if (n > 0 && f.n > (size_t)1 << 27)
            return tec_fail(err, TEC_MALFORMED, "an array of too many numbers");
        out->shape[out->rank++] = (int64_t)n;
        f.n *= n;
    }
    if (f.n > (size_t)1 << 27)
        return tec_fail(err, TEC_MALFORMED, "an array of too many numbers");
    TEC_TRY(put(&f, json, 0, err));
    f.numbers = TEC_NEW(arena, f.n + 1, double);
    if (!f.numbers)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu numbers", f.n);
    f.at = 0;
    TEC_TRY(put(&f, json, 0, err));
    narrow(&f);
    return TEC_OK;
}

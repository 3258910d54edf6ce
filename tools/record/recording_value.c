/* recording_value.c - inputs as messages: pictures as ROS 2 images, everything else as JSON whose
 * numbers are exact. */
#include "tools/record/recording_own.h"

#include "base/json_text.h"
#include "base/text/base64.h"
#include "graph/transform/picture.h"
#include "tools/record/cdr.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 256 /* numbers written one by one; more are base64 */ };

bool tec_recording_is_image(const struct tec_value *v)
{
    return v->kind == TEC_VALUE_U8 && v->rank == 3 && (v->shape[2] == 3 || v->shape[2] == 1) &&
           v->shape[0] > 3;
}

void tec_recording_image(struct tec_buffer *b, const struct tec_value *v, uint64_t time_ns)
{
    tec_cdr_begin(b);
    tec_cdr_header(b, time_ns, v->name);
    tec_cdr_u32(b, (uint32_t)v->shape[0]);
    tec_cdr_u32(b, (uint32_t)v->shape[1]);
    tec_cdr_text(b, v->shape[2] == 3 ? "rgb8" : "mono8");
    tec_cdr_u8(b, 0); /* little-endian */
    tec_cdr_u32(b, (uint32_t)(v->shape[1] * v->shape[2]));
    tec_cdr_u32(b, (uint32_t)v->bytes);
    tec_buffer_bytes(b, v->data, v->bytes);
}

static json_t *base64(const void *data, size_t n)
{
    size_t length = tec_base64_length(n);
    char *text = malloc(length + 1);
    if (text)
        tec_base64_write(text, data, n);
    json_t *json = text ? json_stringn_nocheck(text, length) : NULL;
    free(text);
    return json;
}

double tec_recording_number(const struct tec_value *v, size_t i)
{
    const uint8_t *at = (const uint8_t *)v->data + i * tec_value_size(v->kind);
    double d = *at;
    float f;
    int32_t whole;
    if (v->kind == TEC_VALUE_F64)
        memcpy(&d, at, sizeof d);
    if (v->kind == TEC_VALUE_F32) {
        memcpy(&f, at, sizeof f);
        d = (double)f;
    }
    if (v->kind == TEC_VALUE_I32) {
        memcpy(&whole, at, sizeof whole);
        d = whole;
    }
    return d;
}

static json_t *numbers(const struct tec_value *v, size_t n)
{
    json_t *list = json_array();
    bool real = v->kind == TEC_VALUE_F64 || v->kind == TEC_VALUE_F32;
    for (size_t i = 0; i < n; i++) {
        double d = tec_recording_number(v, i);
        json_array_append_new(list, real ? json_real(d) : json_integer((json_int_t)d));
    }
    return list;
}

json_t *tec_recording_value(const struct tec_value *v)
{
    json_t *shape = json_array();
    size_t n = v->kind == TEC_VALUE_TEXT ? 0 : v->bytes / tec_value_size(v->kind);
    for (int i = 0; i < v->rank; i++)
        json_array_append_new(shape, json_integer(v->shape[i]));
    json_t *one = json_pack("{s:s, s:o}", "type", tec_value_word(v->kind), "shape", shape);
    if (v->kind == TEC_VALUE_TEXT) {
        json_t *text = json_stringn(v->data, v->bytes);
        json_object_set_new(one, text ? "text" : "base64", text ? text : base64(v->data, v->bytes));
    } else if (n <= SHOWN) {
        json_object_set_new(one, "values", numbers(v, n));
    } else {
        json_object_set_new(one, "base64", base64(v->data, v->bytes));
    }
    return one;
}

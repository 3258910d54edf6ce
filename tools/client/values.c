/* values.c - packs arrays as msgpack-numpy does, and what is around them. */
#include "tools/client/values.h"

#include <msgpack/pack.h>
#include <string.h>

static msgpack_packer packer(struct tec_buffer *out)
{
    msgpack_packer p;
    msgpack_packer_init(&p, out, tec_buffer_write);
    return p;
}

static void put_text(msgpack_packer *p, const char *text, size_t n)
{
    msgpack_pack_str(p, n);
    msgpack_pack_str_body(p, text, n);
}

static void put_word(msgpack_packer *p, const char *text)
{
    put_text(p, text, strlen(text));
}

static void put_bytes(msgpack_packer *p, const void *data, size_t n)
{
    msgpack_pack_bin(p, n);
    msgpack_pack_bin_body(p, data, n);
}

static void put_value(msgpack_packer *p, const struct tec_client_value *v)
{
    if (v->kind == TEC_CLIENT_TEXT) {
        put_text(p, v->data, v->bytes);
        return;
    }
    if (v->kind == TEC_CLIENT_BYTES) {
        put_bytes(p, v->data, v->bytes);
        return;
    }
    msgpack_pack_map(p, 4);
    put_word(p, "__ndarray__");
    msgpack_pack_true(p);
    put_word(p, "data");
    put_bytes(p, v->data, v->bytes);
    put_word(p, "dtype");
    put_word(p, v->dtype);
    put_word(p, "shape");
    msgpack_pack_array(p, (size_t)v->rank);
    for (int i = 0; i < v->rank; i++)
        msgpack_pack_int64(p, v->shape[i]);
}

static bool in_map(const struct tec_client_value *v)
{
    return strncmp(v->name, "images/", 7) == 0;
}

void tec_client_put_map(struct tec_buffer *out, size_t pairs)
{
    msgpack_packer p = packer(out);
    msgpack_pack_map(&p, pairs);
}

void tec_client_put_text(struct tec_buffer *out, const char *text)
{
    msgpack_packer p = packer(out);
    put_word(&p, text);
}

void tec_client_put_int(struct tec_buffer *out, int64_t value)
{
    msgpack_packer p = packer(out);
    msgpack_pack_int64(&p, value);
}

void tec_client_put_count(struct tec_buffer *out, uint64_t value)
{
    msgpack_packer p = packer(out);
    msgpack_pack_uint64(&p, value);
}

void tec_client_put_number(struct tec_buffer *out, double value)
{
    msgpack_packer p = packer(out);
    msgpack_pack_double(&p, value);
}

void tec_client_put_true(struct tec_buffer *out)
{
    msgpack_packer p = packer(out);
    msgpack_pack_true(&p);
}

size_t tec_client_count_values(const struct tec_client_value *values, size_t n)
{
    size_t inside = 0;
    for (size_t i = 0; i < n; i++)
        inside += in_map(&values[i]);
    return n - inside + (inside > 0);
}

void tec_client_put_values(struct tec_buffer *out, const struct tec_client_value *values, size_t n)
{
    msgpack_packer p = packer(out);
    size_t inside = 0;
    for (size_t i = 0; i < n; i++) {
        inside += in_map(&values[i]);
        if (!in_map(&values[i])) {
            put_word(&p, values[i].name);
            put_value(&p, &values[i]);
        }
    }
    if (inside) {
        put_word(&p, "images");
        msgpack_pack_map(&p, inside);
    }
    for (size_t i = 0; i < n; i++)
        if (in_map(&values[i])) {
            put_word(&p, values[i].name + 7);
            put_value(&p, &values[i]);
        }
}

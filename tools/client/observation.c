/* observation.c - packs arrays as msgpack-numpy does, and the map around them. */
#include "tools/client/observation.h"

#include "tools/serve/reply.h"

#include <msgpack.h>
#include <string.h>

enum { ASKED = 4096 /* bytes of the map `tectum` */ };

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

struct tec_client_value tec_client_value(const struct tec_value *value)
{
    static const char *const types[] = {[TEC_VALUE_TEXT] = NULL,
                                        [TEC_VALUE_U8] = "|u1",
                                        [TEC_VALUE_F32] = "<f4",
                                        [TEC_VALUE_F64] = "<f8",
                                        [TEC_VALUE_I32] = "<i4"};
    struct tec_client_value v = {.name = value->name,
                                 .kind = value->kind == TEC_VALUE_TEXT ? TEC_CLIENT_TEXT
                                                                       : TEC_CLIENT_ARRAY,
                                 .dtype = types[value->kind],
                                 .rank = value->rank,
                                 .data = value->data,
                                 .bytes = value->bytes};
    memcpy(v.shape, value->shape, sizeof v.shape);
    return v;
}

static bool in_map(const struct tec_client_value *v)
{
    return strncmp(v->name, "images/", 7) == 0;
}

static bool put_asked(msgpack_packer *p, struct tec_buffer *out, const json_t *tectum)
{
    uint8_t bytes[ASKED];
    struct tec_reply_buffer map = {.data = bytes, .room = sizeof bytes};
    put_word(p, "tectum");
    tec_reply_pack_json(&map, tectum);
    tec_buffer_bytes(out, bytes, map.n);
    return !map.full;
}

bool tec_client_pack(struct tec_buffer *out, const struct tec_client_value *values, size_t n,
                     const json_t *tectum)
{
    msgpack_packer p;
    size_t inside = 0;
    for (size_t i = 0; i < n; i++)
        inside += in_map(&values[i]);
    msgpack_packer_init(&p, out, tec_buffer_write);
    msgpack_pack_map(&p, n - inside + (inside > 0) + (tectum != NULL));
    for (size_t i = 0; i < n; i++)
        if (!in_map(&values[i])) {
            put_word(&p, values[i].name);
            put_value(&p, &values[i]);
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
    return !tectum || put_asked(&p, out, tectum);
}

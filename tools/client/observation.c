/* observation.c - an engine's inputs as a request of openpi's clients. */
#include "tools/client/observation.h"

#include "tools/serve/reply.h"

#include <string.h>

enum { ASKED = 4096 /* bytes of the map `tectum` */ };

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

bool tec_client_pack(struct tec_buffer *out, const struct tec_client_value *values, size_t n,
                     const json_t *tectum)
{
    uint8_t bytes[ASKED];
    struct tec_reply_buffer map = {.data = bytes, .room = sizeof bytes};
    tec_client_put_map(out, tec_client_count_values(values, n) + (tectum != NULL));
    tec_client_put_values(out, values, n);
    if (!tectum)
        return true;
    tec_client_put_text(out, "tectum");
    tec_reply_pack_json(&map, tectum);
    tec_buffer_bytes(out, bytes, map.n);
    return !map.full;
}

/* proto.c - reads protobuf messages one field at a time, never beyond the end of the message. */
#include "base/text/proto.h"

static enum tec_status fail(const struct tec_proto *p, const char *what, struct tec_error *err)
{
    return tec_fail(err, TEC_MALFORMED, "protobuf: %s at byte %zu", what,
                    (size_t)(p->at - p->base));
}

static bool read_varint(struct tec_proto *p, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < 10 && p->at < p->end; i++) {
        unsigned char byte = *p->at++;
        if (i == 9 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(struct tec_proto *p, size_t n, uint64_t *value)
{
    *value = 0;
    if ((size_t)(p->end - p->at) < n)
        return false;
    for (size_t i = 0; i < n; i++)
        *value |= (uint64_t)p->at[i] << (8 * i);
    p->at += n;
    return true;
}

enum tec_status tec_proto_next(struct tec_proto *p, struct tec_proto_field *field, bool *more,
                               struct tec_error *err)
{
    uint64_t key, size;
    *more = p->at < p->end;
    if (!*more)
        return TEC_OK;
    if (!read_varint(p, &key) || key > UINT32_MAX || key >> 3 == 0)
        return fail(p, "broken field number", err);
    *field =
        (struct tec_proto_field){.number = (uint32_t)(key >> 3), .wire = (enum tec_wire)(key & 7)};
    switch (field->wire) {
    case TEC_WIRE_VARINT:
        return read_varint(p, &field->value) ? TEC_OK : fail(p, "broken number", err);
    case TEC_WIRE_64:
        return read_fixed(p, 8, &field->value) ? TEC_OK : fail(p, "cut number", err);
    case TEC_WIRE_32:
        return read_fixed(p, 4, &field->value) ? TEC_OK : fail(p, "cut number", err);
    case TEC_WIRE_BYTES:
        if (!read_varint(p, &size) || size > (uint64_t)(p->end - p->at))
            return fail(p, "field longer than what is left", err);
        field->bytes = p->at;
        field->n = (size_t)size;
        p->at += size;
        return TEC_OK;
    default:
        return fail(p, "unknown or obsolete wire type", err);
    }
}

struct tec_proto tec_proto_enter(const struct tec_proto *p, const struct tec_proto_field *field)
{
    return (struct tec_proto){p->base, field->bytes, field->bytes + field->n};
}

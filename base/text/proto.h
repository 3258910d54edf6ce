/* proto.h - reading the protobuf wire format, one field at a time. */
#ifndef TEC_BASE_TEXT_PROTO_H
#define TEC_BASE_TEXT_PROTO_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message being read; `base` is where the file starts, for positions in messages. */
struct tec_proto {
    const unsigned char *base, *at, *end;
};

enum tec_wire { TEC_WIRE_VARINT = 0, TEC_WIRE_64 = 1, TEC_WIRE_BYTES = 2, TEC_WIRE_32 = 5 };

struct tec_proto_field {
    uint32_t number;
    enum tec_wire wire;
    uint64_t value;             /* VARINT, 64, 32 */
    const unsigned char *bytes; /* BYTES, borrowed */
    size_t n;
};

/* The next field. *more is false at the end. Fails with TEC_MALFORMED, the byte named, on anything
 * that is not a field (obsolete groups included). */
enum tec_status tec_proto_next(struct tec_proto *p, struct tec_proto_field *field, bool *more,
                               struct tec_error *err);

/* A message inside a BYTES field. */
struct tec_proto tec_proto_enter(const struct tec_proto *p, const struct tec_proto_field *field);

#endif

/* buffer.h - bytes that grow at their end: numbers in little-endian order, texts, protobuf fields.
 */
#ifndef TEC_TOOLS_RECORD_BUFFER_H
#define TEC_TOOLS_RECORD_BUFFER_H

#include "base/alloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise and set heap. Once memory is missing `failed` stays set and nothing is added. */
struct tec_buffer {
    struct tec_heap *heap;
    uint8_t *data;
    size_t n, room;
    bool failed;
};

void tec_buffer_finish(struct tec_buffer *b);

/* Room for n bytes behind the end, which is moved behind them; NULL: there is none. */
uint8_t *tec_buffer_push(struct tec_buffer *b, size_t n);

void tec_buffer_bytes(struct tec_buffer *b, const void *data, size_t n);
/* The same as MessagePack's packer calls it: 0, or -1 where memory is missing. */
int tec_buffer_write(void *buffer, const char *bytes, size_t n);
void tec_buffer_u8(struct tec_buffer *b, uint8_t value);
void tec_buffer_u16(struct tec_buffer *b, uint16_t value);
void tec_buffer_u32(struct tec_buffer *b, uint32_t value);
void tec_buffer_u64(struct tec_buffer *b, uint64_t value);

/* Fields of a protobuf message (protobuf.dev, "Encoding"): a varint, 64 bits, bytes, a text. */
void tec_buffer_field(struct tec_buffer *b, int field, uint64_t value);
void tec_buffer_field_double(struct tec_buffer *b, int field, double value);
void tec_buffer_field_bytes(struct tec_buffer *b, int field, const void *data, size_t n);
void tec_buffer_field_text(struct tec_buffer *b, int field, const char *text);

#endif

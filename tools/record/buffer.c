/* buffer.c - bytes that grow at their end. */
#include "tools/record/buffer.h"

#include <string.h>

void tec_buffer_finish(struct tec_buffer *b)
{
    tec_heap_put(b->heap, b->data);
    *b = (struct tec_buffer){.heap = b->heap};
}

uint8_t *tec_buffer_push(struct tec_buffer *b, size_t n)
{
    if (b->failed)
        return NULL;
    if (n > b->room - b->n) {
        size_t room = 2 * b->room > b->n + n ? 2 * b->room : b->n + n + 256;
        uint8_t *more = n < SIZE_MAX / 4 ? tec_heap_get(b->heap, room) : NULL;
        b->failed = !more;
        if (!more)
            return NULL;
        if (b->n)
            memcpy(more, b->data, b->n);
        tec_heap_put(b->heap, b->data);
        b->data = more;
        b->room = room;
    }
    b->n += n;
    return b->data + b->n - n;
}

void tec_buffer_bytes(struct tec_buffer *b, const void *data, size_t n)
{
    uint8_t *to = n ? tec_buffer_push(b, n) : NULL;
    if (to)
        memcpy(to, data, n);
}

int tec_buffer_write(void *buffer, const char *bytes, size_t n)
{
    struct tec_buffer *b = buffer;
    tec_buffer_bytes(b, bytes, n);
    return b->failed ? -1 : 0;
}

static void put(struct tec_buffer *b, uint64_t value, size_t n)
{
    uint8_t *to = tec_buffer_push(b, n);
    for (size_t i = 0; to && i < n; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

void tec_buffer_u8(struct tec_buffer *b, uint8_t value)
{
    put(b, value, 1);
}

void tec_buffer_u16(struct tec_buffer *b, uint16_t value)
{
    put(b, value, 2);
}

void tec_buffer_u32(struct tec_buffer *b, uint32_t value)
{
    put(b, value, 4);
}

void tec_buffer_u64(struct tec_buffer *b, uint64_t value)
{
    put(b, value, 8);
}

/* --- protobuf --------------------------------------------------------------------------------- */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

static void varint(struct tec_buffer *b, uint64_t value)
{
    for (; value > 127; value >>= 7)
        tec_buffer_u8(b, (uint8_t)(value | 128U));
    tec_buffer_u8(b, (uint8_t)value);
}

static void tag(struct tec_buffer *b, int field, unsigned wire)
{
    varint(b, ((uint64_t)(unsigned)field << 3) | wire);
}

void tec_buffer_field(struct tec_buffer *b, int field, uint64_t value)
{
    tag(b, field, WIRE_VARINT);
    varint(b, value);
}

void tec_buffer_field_double(struct tec_buffer *b, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    tag(b, field, WIRE_64);
    tec_buffer_u64(b, bits);
}

void tec_buffer_field_bytes(struct tec_buffer *b, int field, const void *data, size_t n)
{
    tag(b, field, WIRE_BYTES);
    varint(b, n);
    tec_buffer_bytes(b, data, n);
}

void tec_buffer_field_text(struct tec_buffer *b, int field, const char *text)
{
    tec_buffer_field_bytes(b, field, text, strlen(text));
}

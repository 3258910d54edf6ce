/* cdr.c - writes ROS 2 messages in little-endian CDR. */
#include "tools/record/cdr.h"

#include <string.h>

enum { FRONT = 4 /* bytes of the encapsulation header, which alignment does not count */ };

void tec_cdr_begin(struct tec_buffer *b)
{
    static const uint8_t little_endian[FRONT] = {0, 1, 0, 0};
    b->n = 0;
    tec_buffer_bytes(b, little_endian, sizeof little_endian);
}

static void align(struct tec_buffer *b, size_t to)
{
    while ((b->n - FRONT) % to != 0 && !b->failed)
        tec_buffer_u8(b, 0);
}

void tec_cdr_u8(struct tec_buffer *b, uint8_t value)
{
    tec_buffer_u8(b, value);
}

void tec_cdr_u32(struct tec_buffer *b, uint32_t value)
{
    align(b, sizeof value);
    tec_buffer_u32(b, value);
}

void tec_cdr_f64(struct tec_buffer *b, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    align(b, sizeof bits);
    tec_buffer_u64(b, bits);
}

void tec_cdr_text_n(struct tec_buffer *b, const char *text, size_t n)
{
    tec_cdr_u32(b, (uint32_t)n + 1);
    tec_buffer_bytes(b, text, n);
    tec_buffer_u8(b, 0);
}

void tec_cdr_text(struct tec_buffer *b, const char *text)
{
    tec_cdr_text_n(b, text, strlen(text));
}

void tec_cdr_time(struct tec_buffer *b, uint64_t ns)
{
    tec_cdr_u32(b, (uint32_t)(ns / 1000000000));
    tec_cdr_u32(b, (uint32_t)(ns % 1000000000));
}

void tec_cdr_header(struct tec_buffer *b, uint64_t stamp_ns, const char *frame_id)
{
    tec_cdr_time(b, stamp_ns);
    tec_cdr_text(b, frame_id);
}

/* cdr.h - writes ROS 2 messages: CDR in little-endian order (OMG DDS-XTypes 7.4.3, "plain CDR").
 *
 * A message begins with tec_cdr_begin and is the buffer's whole content. Numbers are aligned to
 * their size, counted from behind the four bytes in front. A sequence is its count, by tec_cdr_u32,
 * and its elements. */
#ifndef TEC_TOOLS_RECORD_CDR_H
#define TEC_TOOLS_RECORD_CDR_H

#include "tools/record/buffer.h"

/* Empties the buffer. */
void tec_cdr_begin(struct tec_buffer *b);
void tec_cdr_u8(struct tec_buffer *b, uint8_t value);
void tec_cdr_u32(struct tec_buffer *b, uint32_t value);
void tec_cdr_f64(struct tec_buffer *b, double value);
void tec_cdr_text(struct tec_buffer *b, const char *text);
/* The first n bytes of a text, which has no NUL in them. */
void tec_cdr_text_n(struct tec_buffer *b, const char *text, size_t n);
/* builtin_interfaces/Time or Duration, nanoseconds from 0 on. */
void tec_cdr_time(struct tec_buffer *b, uint64_t ns);
/* std_msgs/Header. */
void tec_cdr_header(struct tec_buffer *b, uint64_t stamp_ns, const char *frame_id);

#endif

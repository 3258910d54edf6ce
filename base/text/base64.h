/* base64.h - bytes as the 64 printable characters of RFC 4648, section 4, with padding. */
#ifndef TEC_BASE_TEXT_BASE64_H
#define TEC_BASE_TEXT_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Characters that n bytes become. */
size_t tec_base64_length(size_t n);

/* Write tec_base64_length(n) characters, without a NUL behind them. */
void tec_base64_write(char *to, const void *data, size_t n);

/* Read n characters into at most `room` bytes; *bytes: how many they are. Padding at the end may be
 * left out. False for a character that is none of the 64, for a length that no bytes have, and
 * where they are more than `room`. */
bool tec_base64_read(void *to, size_t room, const char *text, size_t n, size_t *bytes);

#endif

/* utf8.c - UTF-8: scanning, decoding, encoding and validation. */
#include "base/text/utf8.h"

/* The number of bytes that must follow `first`, and the range of the first of them; 0 for a
 * one-byte character, -1 if no character starts with this byte (Unicode table 3-7). */
static int lead(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (first < 0x80)
        return 0;
    if (first < 0xC2 || first > 0xF4)
        return -1;
    if (first == 0xE0)
        *low = 0xA0;
    if (first == 0xF0)
        *low = 0x90;
    if (first == 0xED)
        *high = 0x9F;
    if (first == 0xF4)
        *high = 0x8F;
    return first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
}

size_t tec_utf8_scan(const char *s, size_t n, enum tec_utf8 *what)
{
    unsigned char low, high;
    int more = lead((unsigned char)s[0], &low, &high);
    *what = TEC_UTF8_BAD;
    if (more < 0)
        return 1;
    for (size_t i = 1; i <= (size_t)more; i++) {
        if (i == n) {
            *what = TEC_UTF8_CUT;
            return n;
        }
        unsigned char byte = (unsigned char)s[i];
        if (byte < low || byte > high)
            return i;
        low = 0x80;
        high = 0xBF;
    }
    *what = TEC_UTF8_GOOD;
    return (size_t)more + 1;
}

size_t tec_utf8_length(char first)
{
    unsigned char low, high;
    int more = lead((unsigned char)first, &low, &high);
    return more < 0 ? 1 : (size_t)more + 1;
}

uint32_t tec_utf8_get(const char *s, size_t *bytes)
{
    static const unsigned char mask[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    size_t n = tec_utf8_length(s[0]);
    uint32_t code = (unsigned char)s[0] & mask[n];
    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)s[i] & 0x3FU);
    *bytes = n;
    return code;
}

size_t tec_utf8_put(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)(first[n] | code);
    return n;
}

size_t tec_utf8_check(const char *s, size_t n)
{
    size_t at = 0;
    while (at < n) {
        enum tec_utf8 what;
        size_t bytes = tec_utf8_scan(s + at, n - at, &what);
        if (what != TEC_UTF8_GOOD)
            return at;
        at += bytes;
    }
    return n;
}

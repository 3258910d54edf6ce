/* base64.c - three bytes are four digits of six bits. */
#include "base/text/base64.h"

#include <stdint.h>

size_t tec_base64_length(size_t n)
{
    return (n + 2) / 3 * 4;
}

void tec_base64_write(char *to, const void *data, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *from = data;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t three = (uint32_t)from[i] << 16 | (i + 1 < n ? (uint32_t)from[i + 1] << 8 : 0) |
                         (i + 2 < n ? from[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            *to++ = (char)(i + k > n ? '=' : digits[(three >> (18 - 6 * k)) & 63]);
    }
}

/* The value of a digit and 1; 0: it is none. */
static const uint8_t values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

bool tec_base64_read(void *to, size_t room, const char *text, size_t n, size_t *bytes)
{
    uint8_t *out = to;
    size_t whole = n;
    while (whole > 0 && n - whole < 2 && text[whole - 1] == '=')
        whole--;
    size_t left = whole % 4;
    *bytes = whole / 4 * 3 + (left ? left - 1 : 0);
    if (left == 1 || (whole < n && n % 4 != 0) || *bytes > room)
        return false;
    uint32_t bits = 0;
    bool good = true;
    for (size_t i = 0; i < whole; i++) {
        uint8_t value = values[(uint8_t)text[i]];
        good = good && value;
        bits = bits << 6 | ((value - 1u) & 63);
        if (i % 4 == 3) {
            *out++ = (uint8_t)(bits >> 16);
            *out++ = (uint8_t)(bits >> 8);
            *out++ = (uint8_t)bits;
        }
    }
    if (left == 2)
        *out = (uint8_t)(bits >> 4);
    if (left == 3) {
        *out++ = (uint8_t)(bits >> 10);
        *out = (uint8_t)(bits >> 2);
    }
    return good;
}

/* lower.c - lower case as Python's str.lower makes it. */
#include "base/text/unicode.h"

#include "base/text/utf8.h"

#include <utf8proc.h>

enum { SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2, DOTTED_I = 0x130, DOT_ABOVE = 0x307 };

struct range {
    uint32_t first, last;
};

static bool is_in(const struct range *list, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (code >= list[i].first && code <= list[i].last)
            return true;
    return false;
}

/* Case_Ignorable (Unicode 3.13, D136): by category, and what breaks no word in its middle. */
static bool is_ignorable(uint32_t code)
{
    static const struct range middle[] = {
        {0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
        {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
        {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
        {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return is_in(middle, sizeof middle / sizeof middle[0], code);
    }
}

/* Cased (D135), of what is not ignorable: by category, and letters in rings and Roman numbers. */
static bool is_cased(uint32_t code)
{
    static const struct range others[] = {{0xAA, 0xAA},      {0xBA, 0xBA},       {0x2160, 0x217F},
                                          {0x24B6, 0x24E9},  {0x1F130, 0x1F149}, {0x1F150, 0x1F169},
                                          {0x1F170, 0x1F189}};
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
        return true;
    default:
        return is_in(others, sizeof others / sizeof others[0], code);
    }
}

/* The next character at s, n > 0, and its bytes; 0 where the text is not UTF-8. */
static uint32_t next(const char *s, size_t n, size_t *bytes)
{
    enum tec_utf8 what;
    *bytes = tec_utf8_scan(s, n, &what);
    return what == TEC_UTF8_GOOD ? tec_utf8_get(s, bytes) : 0;
}

/* Is there a cased letter after what may be passed over? A sigma ends such a look, so that all
 * looks of a text together are linear. */
static bool cased_follows(const char *s, size_t n)
{
    while (n) {
        size_t bytes;
        uint32_t code = next(s, n, &bytes);
        if (!is_ignorable(code))
            return is_cased(code);
        s += bytes;
        n -= bytes;
    }
    return false;
}

void tec_unicode_lower(struct tec_bytes *out, const char *text, size_t n)
{
    bool word = false; /* the last letter that is not passed over is cased */
    for (size_t i = 0, bytes; i < n; i += bytes) {
        char coded[4];
        uint32_t code = next(text + i, n - i, &bytes), lower;
        if (!code) {
            tec_bytes_add(out, text + i, bytes);
        } else if (code == DOTTED_I) {
            tec_bytes_add(out, "i", 1);
            tec_bytes_add(out, coded, tec_utf8_put(coded, DOT_ABOVE));
        } else {
            if (code == SIGMA)
                lower = word && !cased_follows(text + i + bytes, n - i - bytes) ? FINAL_SIGMA
                                                                                : SIGMA + 0x20;
            else
                lower = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
            tec_bytes_add(out, coded, tec_utf8_put(coded, lower));
        }
        if (!code || !is_ignorable(code))
            word = code && is_cased(code);
    }
}

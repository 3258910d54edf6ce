/* unicode.c - Unicode properties: character classes, letters without accents, graphemes. */
#include "base/text/unicode.h"

#include "base/text/utf8.h"

#include <string.h>
#include <utf8proc.h>

#include "base/text/tables/bare.inc"
#include "base/text/tables/classes.inc"

unsigned tec_unicode_class(uint32_t code)
{
    return code < 0x110000 ? class_block[class_index[code / 128]][code % 128] : 0;
}

/* Alphabetic although symbols: letters in circles and squares. */
static bool is_framed_letter(uint32_t code)
{
    return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
           (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

bool tec_unicode_word(uint32_t code)
{
    bool joins = code == 0x200C || code == 0x200D;
    if (joins || is_framed_letter(code))
        return true;
    if (tec_unicode_class(code) & (TEC_CLASS_LETTER | TEC_CLASS_NUMBER))
        return utf8proc_category((utf8proc_int32_t)code) != UTF8PROC_CATEGORY_NO;
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return false;
    }
}

const char *tec_unicode_bare(uint32_t code)
{
    size_t low = 0, high = sizeof bare / sizeof bare[0];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bare[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof bare / sizeof bare[0] && bare[low].code == code ? bare[low].text : NULL;
}

size_t tec_unicode_grapheme(const char *text, size_t n)
{
    size_t at;
    utf8proc_int32_t state = 0, last = (utf8proc_int32_t)tec_utf8_get(text, &at);
    while (at < n) {
        size_t bytes;
        utf8proc_int32_t code = (utf8proc_int32_t)tec_utf8_get(text + at, &bytes);
        if (utf8proc_grapheme_break_stateful(last, code, &state))
            break;
        last = code;
        at += bytes;
    }
    return at;
}

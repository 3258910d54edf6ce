/* unicode.c - Unicode properties: character classes, letters without accents, NFC, mark order,
 * graphemes.
 *
 * Combining marks are put in order here, not by utf8proc: long runs by a counting sort, so that
 * hostile text takes linear time. */
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

bool tec_unicode_word(uint32_t code)
{
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

static unsigned combining(int32_t code)
{
    return (unsigned)utf8proc_get_property(code)->combining_class & 0xFF;
}

/* Counting sort of one run of marks: it is stable and there are 256 combining classes. */
static void order_run(int32_t *codes, size_t n, int32_t *copy)
{
    size_t start[257] = {0};
    for (size_t i = 0; i < n; i++)
        start[combining(codes[i]) + 1]++;
    for (size_t c = 1; c < 257; c++)
        start[c] += start[c - 1];
    memcpy(copy, codes, n * sizeof *codes);
    for (size_t i = 0; i < n; i++)
        codes[start[combining(copy[i])]++] = copy[i];
}

static void insert_run(int32_t *codes, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int32_t code = codes[i];
        size_t at = i;
        for (; at > 0 && combining(codes[at - 1]) > combining(code); at--)
            codes[at] = codes[at - 1];
        codes[at] = code;
    }
}

bool tec_unicode_order(int32_t *codes, size_t n, struct tec_arena *scratch)
{
    for (size_t at = 0; at < n;) {
        if (combining(codes[at]) == 0) {
            at++;
            continue;
        }
        size_t end = at + 1;
        while (end < n && combining(codes[end]) != 0)
            end++;
        if (end - at <= 16) {
            insert_run(codes + at, end - at);
        } else {
            struct tec_arena_mark mark = tec_arena_mark(scratch);
            int32_t *copy = TEC_NEW(scratch, end - at, int32_t);
            if (!copy)
                return false;
            order_run(codes + at, end - at, copy);
            tec_arena_rewind(scratch, mark);
        }
        at = end;
    }
    return true;
}

/* True if all characters are below U+0300: each is then its own NFC form, and none combines. */
static bool is_plain(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= 0xCC)
            return false;
    return true;
}

#define DECOMPOSED_CODES 8 /* the longest canonical decomposition is 4 */

static size_t decompose(const char *text, size_t n, int32_t *codes)
{
    size_t count = 0;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        int32_t parts[DECOMPOSED_CODES];
        int boundary = 0;
        int32_t code = (int32_t)tec_utf8_get(text + at, &bytes);
        utf8proc_ssize_t got =
            utf8proc_decompose_char(code, parts, DECOMPOSED_CODES, UTF8PROC_DECOMPOSE, &boundary);
        if (got < 1 || got > DECOMPOSED_CODES) {
            parts[0] = code;
            got = 1;
        }
        if (codes)
            memcpy(codes + count, parts, (size_t)got * sizeof *codes);
        count += (size_t)got;
    }
    return count;
}

void tec_unicode_nfc(struct tec_bytes *out, const char *text, size_t n)
{
    if (is_plain(text, n)) {
        tec_bytes_add(out, text, n);
        return;
    }
    size_t count = decompose(text, n, NULL);
    int32_t *codes = TEC_NEW(out->arena, count, int32_t);
    if (!codes || !tec_unicode_order(codes, decompose(text, n, codes), out->arena)) {
        out->failed = true;
        return;
    }
    utf8proc_ssize_t left = utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)count,
                                                     UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    for (utf8proc_ssize_t i = 0; i < left; i++) {
        char one[4];
        tec_bytes_add(out, one, tec_utf8_put(one, (uint32_t)codes[i]));
    }
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

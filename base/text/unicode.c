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

bool tec_unicode_accent(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_MN;
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

/* Marks that came after Unicode 9, which the reference's NFC leaves where they are. */
static bool is_late_mark(int32_t code)
{
    static const int32_t ranges[][2] = {
        {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
        {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
        {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
        {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
        {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
        {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
        {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
        {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
        {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && ranges[i][0] <= code; i++)
        if (code <= ranges[i][1])
            return true;
    return false;
}

static unsigned combining(int32_t code)
{
    unsigned class = (unsigned)utf8proc_get_property(code)->combining_class & 0xFF;
    return class && is_late_mark(code) ? 0 : class;
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

static void compose(struct tec_bytes *out, int32_t *codes, size_t n)
{
    utf8proc_ssize_t left =
        utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    for (utf8proc_ssize_t i = 0; i < left; i++) {
        char one[4];
        tec_bytes_add(out, one, tec_utf8_put(one, (uint32_t)codes[i]));
    }
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
    for (size_t start = 0, end; start < count; start = end) { /* no late mark lets others pass */
        for (end = start + 1; end < count && !is_late_mark(codes[end]);)
            end++;
        compose(out, codes + start, end - start);
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

/* forms.c - the normal forms of Unicode, and small letters, as the normalizers of tokenizer.json
 * have them.
 *
 * Combining marks are put in order here, not by utf8proc: long runs by a counting sort, so that
 * hostile text takes linear time. The reference's tables are older than utf8proc's, but for small
 * letters, whose are newer: normal.inc has the differences. */
#include "base/text/unicode.h"

#include "base/text/utf8.h"

#include <string.h>
#include <utf8proc.h>

struct range {
    uint32_t first, last;
};

#include "base/text/tables/normal.inc"

static bool is_in(const struct range *list, size_t n, uint32_t code)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && list[low].first <= code;
}

#define IS_IN(list, code) is_in(list, sizeof(list) / sizeof(list)[0], (uint32_t)(code))

/* Marks that came after the reference's tables: it leaves them where they are. */
static bool is_late_mark(int32_t code)
{
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return !IS_IN(marks, code);
    default:
        return false;
    }
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

/* True if each character is its own form and none combines: below U+0300 where nothing is left
 * decomposed, else ASCII. */
static bool is_plain(const char *text, size_t n, unsigned form)
{
    unsigned char most = form == TEC_FORM_COMPOSED ? 0xCC : 0x80;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= most)
            return false;
    return true;
}

#define DECOMPOSED_CODES 24 /* the longest decomposition is 18 */

static size_t decompose(const char *text, size_t n, unsigned form, int32_t *codes)
{
    const utf8proc_option_t options =
        form & TEC_FORM_COMPATIBLE ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
    size_t count = 0;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        int32_t parts[DECOMPOSED_CODES];
        int boundary = 0;
        int32_t code = (int32_t)tec_utf8_get(text + at, &bytes);
        utf8proc_ssize_t got = 0;
        if (!IS_IN(whole, code))
            got = utf8proc_decompose_char(code, parts, DECOMPOSED_CODES, options, &boundary);
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

static void add_codes(struct tec_bytes *out, const int32_t *codes, utf8proc_ssize_t n)
{
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        char one[4];
        tec_bytes_add(out, one, tec_utf8_put(one, (uint32_t)codes[i]));
    }
}

void tec_unicode_form(struct tec_bytes *out, const char *text, size_t n, unsigned form)
{
    if (is_plain(text, n, form)) {
        tec_bytes_add(out, text, n);
        return;
    }
    size_t count = decompose(text, n, form, NULL);
    int32_t *codes = TEC_NEW(out->arena, count, int32_t);
    if (!codes || !tec_unicode_order(codes, decompose(text, n, form, codes), out->arena)) {
        out->failed = true;
        return;
    }
    for (size_t start = 0, end; start < count; start = end) { /* no late mark lets others pass */
        for (end = start + 1; end < count && !is_late_mark(codes[end]);)
            end++;
        utf8proc_ssize_t left = (utf8proc_ssize_t)(end - start);
        if (form & TEC_FORM_COMPOSED)
            left =
                utf8proc_normalize_utf32(codes + start, left, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        add_codes(out, codes + start, left);
    }
}

bool tec_unicode_mark(uint32_t code)
{
    return IS_IN(marks, code);
}

bool tec_unicode_bert_mark(uint32_t code)
{
    return IS_IN(bert_marks, code);
}

bool tec_unicode_nmt_dropped(uint32_t code)
{
    return IS_IN(nmt_dropped, code);
}

bool tec_unicode_nmt_space(uint32_t code)
{
    return IS_IN(nmt_spaces, code);
}

void tec_unicode_lower_each(struct tec_bytes *out, const char *text, size_t n)
{
    for (size_t at = 0, bytes; at < n; at += bytes) {
        uint32_t code = tec_utf8_get(text + at, &bytes);
        int32_t lower[2] = {utf8proc_tolower((utf8proc_int32_t)code), 0x307};
        for (size_t i = 0; i < sizeof late_lower / sizeof late_lower[0]; i++)
            if (late_lower[i].first == code)
                lower[0] = (int32_t)late_lower[i].last;
        lower[0] = code == 0x130 ? 'i' : lower[0]; /* the one that becomes two */
        add_codes(out, lower, code == 0x130 ? 2 : 1);
    }
}

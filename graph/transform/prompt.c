/* prompt.c - the formulas of prompts: cleaning or quoting a task text and binning a state.
 *
 * Pure functions; the session's thread calls them. Both give exactly what the published code gives,
 * since another space or another bin would be another prompt. */
#include "graph/transform/prompt.h"

#include "base/text/bytes.h"
#include "base/text/unicode.h"
#include "base/text/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* Bytes of the white-space character at s; 0 when it is none. */
static size_t space_at(const char *s, size_t n)
{
    enum tec_utf8 what;
    size_t bytes = tec_utf8_scan(s, n, &what);
    if (what != TEC_UTF8_GOOD)
        return 0;
    uint32_t code = tec_utf8_get(s, &bytes);
    bool space = (tec_unicode_class(code) & TEC_CLASS_SPACE) || (code >= 0x1C && code <= 0x1F);
    return space ? bytes : 0;
}

/* Bytes of the white-space character that ends at s + n, n > 0; 0 when it is none. */
static size_t space_before(const char *s, size_t n)
{
    size_t bytes = 1;
    while (bytes < 4 && bytes < n && ((unsigned char)s[n - bytes] & 0xC0) == 0x80)
        bytes++;
    return space_at(s + n - bytes, bytes) == bytes ? bytes : 0;
}

char *tec_prompt_clean(const char *text, size_t n, size_t *n_out, struct tec_arena *arena)
{
    size_t bytes;
    while (n && (bytes = space_at(text, n))) {
        text += bytes;
        n -= bytes;
    }
    while (n && (bytes = space_before(text, n)))
        n -= bytes;
    char *clean = tec_arena_strndup(arena, text, n);
    for (size_t i = 0; clean && i < n; i++)
        if (clean[i] == '_' || clean[i] == '\n')
            clean[i] = ' ';
    *n_out = n;
    return clean;
}

char *tec_prompt_words(const char *text, size_t n, size_t *n_out, struct tec_arena *arena)
{
    char *words = tec_arena_push(arena, n + 1, 1, 1), *to = words;
    for (size_t i = 0; words && i < n;) {
        enum tec_utf8 what;
        size_t bytes = tec_utf8_scan(text + i, n - i, &what);
        bool stays = what != TEC_UTF8_GOOD || text[i] == '_' || space_at(text + i, n - i);
        if (!stays)
            stays = tec_unicode_class(tec_utf8_get(text + i, &bytes)) &
                    (TEC_CLASS_LETTER | TEC_CLASS_NUMBER);
        if (stays)
            to = (char *)memcpy(to, text + i, bytes) + bytes;
        i += bytes;
    }
    *n_out = words ? (size_t)(to - words) : 0;
    return words;
}

/* str.isprintable of Python. */
static bool printable(uint32_t code)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    bool other = c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF ||
                 c == UTF8PROC_CATEGORY_CS || c == UTF8PROC_CATEGORY_CO ||
                 c == UTF8PROC_CATEGORY_CN;
    bool gap = c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP || c == UTF8PROC_CATEGORY_ZS;
    return code == ' ' || (!other && !gap);
}

/* One character as it stands between quotes, in `to`; how many bytes. */
static size_t quote(uint32_t code, char mark, char to[12])
{
    static const struct {
        char code;
        const char *as;
    } short_ones[] = {{'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}, {'\\', "\\\\"}};
    for (size_t i = 0; i < sizeof short_ones / sizeof short_ones[0]; i++)
        if (code == (uint32_t)short_ones[i].code)
            return (size_t)snprintf(to, 12, "%s", short_ones[i].as);
    if (code == (uint32_t)mark)
        return (size_t)snprintf(to, 12, "\\%c", mark);
    if (printable(code))
        return tec_utf8_put(to, code);
    return (size_t)snprintf(to, 12,
                            code < 0x100     ? "\\x%02x"
                            : code < 0x10000 ? "\\u%04x"
                                             : "\\U%08x",
                            code);
}

char *tec_prompt_listed(const char *text, size_t n, size_t *n_out, struct tec_arena *arena)
{
    struct tec_bytes out;
    char mark = memchr(text, '\'', n) && !memchr(text, '"', n) ? '"' : '\'', some[12];
    tec_bytes_init(&out, arena, 0);
    tec_bytes_add(&out, "[", 1);
    tec_bytes_add(&out, &mark, 1);
    for (size_t i = 0; i < n;) {
        enum tec_utf8 what;
        size_t bytes = tec_utf8_scan(text + i, n - i, &what);
        if (what == TEC_UTF8_GOOD)
            tec_bytes_add(&out, some, quote(tec_utf8_get(text + i, &bytes), mark, some));
        else
            tec_bytes_add(&out, text + i, bytes);
        i += bytes;
    }
    tec_bytes_add(&out, &mark, 1);
    tec_bytes_add(&out, "]", 1);
    *n_out = out.n;
    return out.failed ? NULL : out.at;
}

void tec_prompt_state_bins(const double *state, int n, int *bins)
{
    for (int i = 0; i < n; i++) {
        double bin = floor(state[i] * 128.0) + 128.0;
        bins[i] = !(bin < 255.0) ? 255 : bin > -1.0 ? (int)bin : -1;
    }
}

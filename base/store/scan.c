/* scan.c - the strict JSON scanner for safetensors headers: one token at a time, bounded in
 * depth. */
#include "base/store/scan.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

enum { MAX_DEPTH = 8 };

enum tec_status tec_scan_fail(struct tec_scan *s, size_t at, const char *format, ...)
{
    char text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (s->subject)
        return tec_fail(s->err, TEC_MALFORMED, "header byte %zu: tensor '%.80s': %s", at,
                        s->subject, text);
    return tec_fail(s->err, TEC_MALFORMED, "header byte %zu: %s", at, text);
}

enum tec_status tec_scan_utf8(struct tec_scan *s)
{
    for (size_t at = 0; at < s->n;) {
        utf8proc_int32_t code;
        utf8proc_ssize_t taken =
            s->s[at] < 0x80 ? 1 : utf8proc_iterate(s->s + at, (utf8proc_ssize_t)(s->n - at), &code);
        if (taken < 1)
            return tec_scan_fail(s, at, "invalid UTF-8");
        at += (size_t)taken;
    }
    return TEC_OK;
}

static bool is_one_of(unsigned char c, const char *set)
{
    return c && strchr(set, c);
}

/* Skip white space and return the next character without consuming it, or -1 at the end. */
static int peek(struct tec_scan *s)
{
    while (s->at < s->n && is_one_of(s->s[s->at], " \t\r\n"))
        s->at++;
    return s->at < s->n ? s->s[s->at] : -1;
}

bool tec_scan_accept(struct tec_scan *s, char c)
{
    if (peek(s) != c)
        return false;
    s->at++;
    return true;
}

static enum tec_status unexpected(struct tec_scan *s, const char *wanted)
{
    int c = peek(s);
    if (c < 0)
        return tec_scan_fail(s, s->at, "the header ends where %s is due", wanted);
    if (c < 0x20 || c > 0x7e)
        return tec_scan_fail(s, s->at, "byte 0x%02x where %s is due", (unsigned)c, wanted);
    return tec_scan_fail(s, s->at, "'%c' where %s is due", c, wanted);
}

enum tec_status tec_scan_expect(struct tec_scan *s, char c, const char *what)
{
    char wanted[80];
    if (tec_scan_accept(s, c))
        return TEC_OK;
    snprintf(wanted, sizeof wanted, "'%c' (%s)", c, what);
    return unexpected(s, wanted);
}

enum tec_status tec_scan_next(struct tec_scan *s, char close, bool *more)
{
    *more = tec_scan_accept(s, ',');
    if (*more)
        return TEC_OK;
    return tec_scan_expect(s, close, "or ','");
}

static int hex4(const unsigned char *p)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        if (!isxdigit(p[i]))
            return -1;
        int digit = p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10;
        value = value * 16 + digit;
    }
    return value;
}

/* The code point of the escape whose digits begin at s->at, after "\u". Both halves of a surrogate
 * pair are read together. -1 if it is malformed. */
static int32_t escape_code(struct tec_scan *s, size_t end)
{
    const unsigned char *p = s->s + s->at;
    int32_t high = end - s->at >= 4 ? hex4(p) : -1;
    if (high < 0 || (high >= 0xdc00 && high < 0xe000))
        return -1;
    s->at += 4;
    if (high < 0xd800 || high >= 0xe000)
        return high;
    int32_t low = end - s->at >= 6 && p[4] == '\\' && p[5] == 'u' ? hex4(p + 6) : -1;
    if (low < 0xdc00 || low >= 0xe000)
        return -1;
    s->at += 6;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* Decode the escape after the backslash at s->at - 1 into `out` as UTF-8 and return its length, 0
 * if it is malformed. */
static size_t escape(struct tec_scan *s, size_t end, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s->at == end)
        return 0;
    int c = s->s[s->at++];
    if (c == 'u') {
        int32_t code = escape_code(s, end);
        if (code < 0)
            return 0;
        return (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)out);
    }
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return 0;
    *out = to[found - from];
    return 1;
}

/* Find the closing quote of a string whose first byte is at s->at. */
static enum tec_status string_end(struct tec_scan *s, size_t *end)
{
    for (size_t i = s->at; i < s->n; i++) {
        if (s->s[i] == '"') {
            *end = i;
            return TEC_OK;
        }
        if (s->s[i] < 0x20)
            return tec_scan_fail(s, i, "a control character in a string");
        i += s->s[i] == '\\';
    }
    return tec_scan_fail(s, s->at, "a string without its end");
}

enum tec_status tec_scan_string(struct tec_scan *s, const char **out, size_t *bytes)
{
    size_t end = 0, n = 0;
    *out = "";
    *bytes = 0;
    if (!tec_scan_accept(s, '"'))
        return unexpected(s, "a string");
    TEC_TRY(string_end(s, &end));
    /* A decoded escape is never longer than its source. */
    char *text = tec_arena_push(s->arena, end - s->at + 1, 1, 1);
    if (!text)
        return tec_fail(s->err, TEC_NO_MEMORY, "no memory for a string of the header");
    while (s->at < end) {
        unsigned char c = s->s[s->at++];
        if (c != '\\') {
            text[n++] = (char)c;
            continue;
        }
        size_t start = s->at - 1, taken = escape(s, end, text + n);
        if (!taken)
            return tec_scan_fail(s, start, "a wrong escape in a string");
        n += taken;
    }
    s->at = end + 1;
    *out = text;
    *bytes = n;
    return TEC_OK;
}

enum tec_status tec_scan_key(struct tec_scan *s, const char **out, size_t *bytes)
{
    size_t at = (peek(s), s->at);
    TEC_TRY(tec_scan_string(s, out, bytes));
    if (strlen(*out) != *bytes)
        return tec_scan_fail(s, at, "a name with a NUL character");
    return tec_scan_expect(s, ':', "between name and value");
}

enum tec_status tec_scan_integer(struct tec_scan *s, uint64_t *out)
{
    uint64_t value = 0;
    if (!isdigit(peek(s)))
        return unexpected(s, "a non-negative integer");
    size_t start = s->at;
    for (; s->at < s->n && isdigit(s->s[s->at]); s->at++)
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s->s[s->at] - '0'), &value))
            return tec_scan_fail(s, start, "a number beyond 64 bits");
    if (s->s[start] == '0' && s->at - start > 1)
        return tec_scan_fail(s, start, "a number with leading zeros");
    if (s->at < s->n && is_one_of(s->s[s->at], ".eE"))
        return tec_scan_fail(s, start,
                             "a number with fraction or exponent where an integer is "
                             "due");
    *out = value;
    return TEC_OK;
}

static size_t digits(struct tec_scan *s)
{
    size_t start = s->at;
    while (s->at < s->n && isdigit(s->s[s->at]))
        s->at++;
    return s->at - start;
}

static bool take(struct tec_scan *s, const char *set)
{
    if (s->at == s->n || !is_one_of(s->s[s->at], set))
        return false;
    s->at++;
    return true;
}

static enum tec_status skip_number(struct tec_scan *s)
{
    take(s, "-");
    size_t start = s->at, n = digits(s);
    bool good = n == 1 || (n > 1 && s->s[start] != '0');
    if (good && take(s, "."))
        good = digits(s) > 0;
    if (good && take(s, "eE")) {
        take(s, "+-");
        good = digits(s) > 0;
    }
    return good ? TEC_OK : tec_scan_fail(s, start, "not a JSON value");
}

static enum tec_status skip_scalar(struct tec_scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    if (peek(s) == '"') {
        const char *text;
        size_t n;
        struct tec_arena_mark mark = tec_arena_mark(s->arena);
        TEC_TRY(tec_scan_string(s, &text, &n));
        tec_arena_rewind(s->arena, mark);
        return TEC_OK;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i]);
        if (s->n - s->at >= n && memcmp(s->s + s->at, words[i], n) == 0) {
            s->at += n;
            return TEC_OK;
        }
    }
    return skip_number(s);
}

/* Skip a value by a loop instead of recursion: `closes` is the stack of brackets that are still
 * open. */
enum tec_status tec_scan_skip(struct tec_scan *s)
{
    char closes[MAX_DEPTH];
    int depth = 0;
    do {
        const char *key;
        size_t n;
        if (depth && closes[depth - 1] == '}')
            TEC_TRY(tec_scan_key(s, &key, &n));
        bool object = peek(s) == '{', array = peek(s) == '[';
        if (object || array) {
            if (depth == MAX_DEPTH)
                return tec_scan_fail(s, s->at, "nested more than %d deep", MAX_DEPTH);
            s->at++;
            closes[depth++] = object ? '}' : ']';
            if (!tec_scan_accept(s, closes[depth - 1]))
                continue;
            depth--;
        } else {
            TEC_TRY(skip_scalar(s));
        }
        for (bool more = false; depth && !more; depth -= !more)
            TEC_TRY(tec_scan_next(s, closes[depth - 1], &more));
    } while (depth);
    return TEC_OK;
}

enum tec_status tec_scan_end(struct tec_scan *s)
{
    return peek(s) < 0 ? TEC_OK : tec_scan_fail(s, s->at, "text behind the JSON object");
}

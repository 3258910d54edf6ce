/* escape.c - text from outside, made fit for a terminal, a log and a JSON string. */
#include "base/escape.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

enum { UNIT = 8 }; /* bytes: "\u202e" and a NUL */

static bool is_unsafe(utf8proc_int32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* The next character of `text`, which is not empty, as it is shown: into `unit`, with a NUL.
 * Returns how many bytes of `text` it was. */
static size_t take(char unit[UNIT], const char *text)
{
    static const char named[] = "\n\r\t", letters[] = "nrt";
    utf8proc_int32_t code = 0;
    if (*text >= ' ' && *text < 0x7f) { /* nearly all of it */
        unit[0] = *text;
        unit[1] = '\0';
        return 1;
    }
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &code);
    const char *name = memchr(named, *text, sizeof named - 1);
    if (n < 1) {
        snprintf(unit, UNIT, "\\x%02x", (unsigned)(unsigned char)*text);
        return 1;
    }
    if (name)
        snprintf(unit, UNIT, "\\%c", letters[name - named]);
    else if (is_unsafe(code))
        snprintf(unit, UNIT, code < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)code);
    else
        snprintf(unit, UNIT, "%.*s", (int)n, text);
    return (size_t)n;
}

size_t tec_escape(char *to, size_t room, const char *text)
{
    char unit[UNIT];
    size_t used = 0;
    while (*text) {
        text += take(unit, text);
        size_t n = strlen(unit);
        if (used + n >= room)
            break;
        memcpy(to + used, unit, n);
        used += n;
    }
    to[used] = '\0';
    return used;
}

size_t tec_escape_plain(const char *text, size_t n)
{
    utf8proc_int32_t code = 0;
    utf8proc_ssize_t got =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &code);
    return got < 1 || is_unsafe(code) ? 0 : (size_t)got;
}

void tec_escape_print(FILE *out, const char *text)
{
    char unit[UNIT];
    while (*text) {
        text += take(unit, text);
        fputs(unit, out);
    }
}

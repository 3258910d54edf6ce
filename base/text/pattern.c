/* pattern.c - cuts text by the published regular expressions of byte-level vocabularies.
 *
 * Each expression is a row of properties in patterns.def, matched by code that tries its
 * alternatives in their order (contraction, letters, numbers, marks, spaces). So no expression from
 * a file is ever run, and the time is linear in the text. */
#include "base/text/pattern.h"

#include "base/text/unicode.h"
#include "base/text/utf8.h"

#include <string.h>

static const struct tec_pattern patterns[] = {
#define PATTERN(text, fold, lead, digits, newline) {text, fold, lead, digits, newline},
#include "base/text/patterns.def"
#undef PATTERN
};

const struct tec_pattern *tec_pattern_find(const char *text, size_t n)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (strlen(patterns[i].text) == n && memcmp(patterns[i].text, text, n) == 0)
            return &patterns[i];
    return NULL;
}

const struct tec_pattern *tec_pattern_plain(void)
{
    return &patterns[0];
}

const struct tec_pattern *tec_pattern_digits(void)
{
    return &patterns[1];
}

#define WORDLESS (TEC_CLASS_LETTER | TEC_CLASS_NUMBER | TEC_CLASS_SPACE)

/* The class bits of the character at s[at] and its length; both 0 at the end of the text. */
static unsigned class_at(const char *s, size_t n, size_t at, size_t *bytes)
{
    *bytes = 0;
    return at < n ? tec_unicode_class(tec_utf8_get(s + at, bytes)) : 0;
}

/* The end of the run of characters from `at` that have (wanted) or lack (!wanted) these bits. */
static size_t run(const char *s, size_t n, size_t at, unsigned bits, bool wanted)
{
    for (size_t bytes; at < n; at += bytes)
        if (((class_at(s, n, at, &bytes) & bits) != 0) != wanted)
            break;
    return at;
}

static bool is_newline(char c)
{
    return c == '\r' || c == '\n';
}

/* The length of a contraction after its apostrophe (s t re ve m ll d); U+017F folds to s. */
static size_t contraction(const char *s, size_t n, bool fold)
{
    char c[2] = {0, 0};
    for (size_t i = 0; i < 2 && i < n; i++)
        c[i] = (char)(fold && s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]);
    if (n == 0)
        return 0;
    if (c[0] == 's' || c[0] == 't' || c[0] == 'm' || c[0] == 'd')
        return 1;
    if (fold && n >= 2 && memcmp(s, "\xC5\xBF", 2) == 0)
        return 2;
    bool two = (c[0] == 'r' && c[1] == 'e') || (c[0] == 'v' && c[1] == 'e') ||
               (c[0] == 'l' && c[1] == 'l');
    return two ? 2 : 0;
}

static size_t letters(const struct tec_pattern *p, const char *s, size_t n)
{
    size_t bytes, lead = 0;
    unsigned class = class_at(s, n, 0, &bytes);
    if (p->lead ? !(class & (TEC_CLASS_LETTER | TEC_CLASS_NUMBER)) && !is_newline(s[0])
                : s[0] == ' ')
        lead = bytes;
    size_t end = run(s, n, lead, TEC_CLASS_LETTER, true);
    return end > lead ? end : 0;
}

static size_t numbers(const struct tec_pattern *p, const char *s, size_t n)
{
    size_t lead = p->digits == 0 && s[0] == ' ', end = lead, bytes;
    if (p->digits == 0) {
        end = run(s, n, lead, TEC_CLASS_NUMBER, true);
        return end > lead ? end : 0;
    }
    for (int i = 0; i < p->digits && (class_at(s, n, end, &bytes) & TEC_CLASS_NUMBER); i++)
        end += bytes;
    return end;
}

static size_t marks(const struct tec_pattern *p, const char *s, size_t n)
{
    size_t lead = s[0] == ' ', end = run(s, n, lead, WORDLESS, false);
    if (end == lead)
        return 0;
    while (p->newline && end < n && is_newline(s[end]))
        end++;
    return end;
}

/* The length of a run of white space. It ends behind its last CR or LF; without one it excludes its
 * last character, which goes with the word that follows, except at the end of the text. */
static size_t spaces(const struct tec_pattern *p, const char *s, size_t n)
{
    size_t end = run(s, n, 0, TEC_CLASS_SPACE, true), last = 0, newline = 0;
    for (size_t at = 0, bytes; at < end; at += bytes) {
        bytes = tec_utf8_length(s[at]);
        last = at;
        if (is_newline(s[at]))
            newline = at + 1;
    }
    if (p->newline && newline)
        return newline;
    return end == n || last == 0 ? end : last;
}

size_t tec_pattern_word(const struct tec_pattern *p, const char *s, size_t n)
{
    size_t end = s[0] == '\'' ? contraction(s + 1, n - 1, p->fold) : 0;
    if (end)
        return end + 1;
    if ((end = letters(p, s, n)) || (end = numbers(p, s, n)) || (end = marks(p, s, n)) ||
        (end = spaces(p, s, n)))
        return end;
    return tec_utf8_length(s[0]);
}

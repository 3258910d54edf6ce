/* prompt.c - the two formulas of prompts: cleaning a task text and binning a state.
 *
 * Pure functions; the session's thread calls them. Both give exactly what the published code gives,
 * since another space or another bin would be another prompt. */
#include "graph/transform/prompt.h"

#include "base/text/unicode.h"
#include "base/text/utf8.h"

#include <math.h>

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

void tec_prompt_state_bins(const double *state, int n, int *bins)
{
    for (int i = 0; i < n; i++) {
        double bin = floor(state[i] * 128.0) + 128.0;
        bins[i] = !(bin < 255.0) ? 255 : bin > -1.0 ? (int)bin : -1;
    }
}

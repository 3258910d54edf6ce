/* added.c - cuts added tokens (special and user-defined ones) out of text before the model sees
 * it. */
#include "base/text/added.h"

#include "base/text/unicode.h"
#include "base/text/utf8.h"

/* The position of the character that ends at `at`, which is > 0. */
static size_t before(const char *s, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)s[at] & 0xC0) == 0x80);
    return at;
}

static bool is_word(const char *s)
{
    size_t bytes;
    return tec_unicode_word(tec_utf8_get(s, &bytes));
}

static bool is_space(const char *s)
{
    size_t bytes;
    return tec_unicode_class(tec_utf8_get(s, &bytes)) & TEC_CLASS_SPACE;
}

static bool is_taken(const struct tec_cutter *c, const struct tec_added *a, size_t start,
                     size_t end)
{
    const char *s = c->text.at;
    if (a->special && c->literal)
        return false;
    if (!a->single_word)
        return true;
    return (start == 0 || !is_word(s + before(s, start))) &&
           (end == c->text.n || !is_word(s + end));
}

/* The end of the white space that begins at `at`. The last run is kept: tokens of white space may
 * ask for each of its ends. */
static size_t behind_spaces(struct tec_cutter *c, size_t at)
{
    if (at < c->run_start || at >= c->run_end) {
        c->run_start = c->run_end = at;
        while (c->run_end < c->text.n && is_space(c->text.at + c->run_end))
            c->run_end += tec_utf8_length(c->text.at[c->run_end]);
    }
    return c->run_end;
}

/* Extend the token over white space on either side (lstrip, rstrip), but not into text that was
 * already returned. */
static void widen(struct tec_cutter *c, const struct tec_added *a, size_t *start, size_t *end)
{
    const char *s = c->text.at;
    while (a->lstrip && *start > c->done && is_space(s + before(s, *start)))
        *start = before(s, *start);
    if (a->lstrip && *start < c->done)
        *start = c->done;
    if (a->rstrip)
        *end = behind_spaces(c, *end);
}

/* Find the next token; the outputs stay as they are when there is none. As in the reference, a
 * token that is not accepted is skipped as a whole, and one that the token before has taken in as
 * white space is a token all the same, unless it begins behind itself (lstrip). */
static bool find(struct tec_cutter *c, size_t *start, size_t *end, int *id)
{
    while (c->at < c->text.n) {
        const struct tec_prefix_key *key = tec_trie_longest(c->keys, tec_trie_start(c->keys),
                                                            c->text.at + c->at, c->text.n - c->at);
        if (!key) {
            c->at++;
            continue;
        }
        const struct tec_added *a = &c->added[key->value];
        size_t from = c->at, to = c->at + key->text.n;
        c->at = to;
        if (!is_taken(c, a, from, to))
            continue;
        widen(c, a, &from, &to);
        if (from >= to)
            continue;
        *start = from;
        *end = to;
        *id = a->id;
        return true;
    }
    return false;
}

bool tec_cutter_next(struct tec_cutter *c, struct tec_cut *cut)
{
    size_t start = c->text.n, end = c->text.n;
    int id = -1;
    if (c->holds) {
        c->holds = false;
        *cut = c->held;
        return true;
    }
    bool found = c->keys->n > 0 && find(c, &start, &end, &id);
    bool gap = start > c->done;
    if (!found && !gap)
        return false; /* also for an empty text, whose address may be NULL */
    struct tec_cut token = {{c->text.at + start, end - start}, id};
    struct tec_cut plain = {{c->text.at + c->done, start - c->done}, -1};
    c->done = end;
    *cut = gap ? plain : token;
    c->holds = gap && found;
    c->held = token;
    return true;
}

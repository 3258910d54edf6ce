/* pretokenise.c - cuts normalised text into words, step by step, before the model encodes each
 * word. */
#include "base/text/pretokenise.h"

#include "base/text/unicode.h"
#include "base/text/utf8.h"

#include <string.h>

/* The words that the current step makes. */
struct cut {
    struct tec_pretokens *words;
    struct tec_arena *arena;
    bool failed;
};

static bool grow(struct cut *c)
{
    struct tec_pretokens *w = c->words;
    size_t capacity = w->capacity ? 2 * w->capacity : 16;
    struct tec_pretoken *at = TEC_NEW(c->arena, capacity, struct tec_pretoken);
    if (!at)
        return false;
    if (w->n)
        memcpy(at, w->at, w->n * sizeof *at);
    w->at = at;
    w->capacity = capacity;
    return true;
}

static void add(struct cut *c, const char *at, size_t n, bool first)
{
    struct tec_pretokens *w = c->words;
    if (n == 0 || c->failed)
        return;
    if (w->n == w->capacity && !grow(c)) {
        c->failed = true;
        return;
    }
    w->at[w->n++] = (struct tec_pretoken){{at, n}, first};
}

static void by_pattern(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    for (size_t at = 0, n; at < word.text.n; at += n) {
        n = tec_pattern_word(step->pattern, word.text.at + at, word.text.n - at);
        add(c, word.text.at + at, n, word.first && at == 0);
    }
}

static void by_string(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    const char *s = word.text.at;
    size_t start = 0, from = 0;
    while (from < word.text.n) {
        const char *hit =
            memmem(s + from, word.text.n - from, step->delimiter.at, step->delimiter.n);
        if (!hit)
            break;
        size_t at = (size_t)(hit - s), end = at + step->delimiter.n;
        size_t stop = step->where == TEC_SPLIT_BEFORE ? end : at;
        add(c, s + start, stop - start, word.first && start == 0);
        if (step->where == TEC_SPLIT_ISOLATED)
            add(c, hit, step->delimiter.n, word.first && at == 0);
        start = step->where == TEC_SPLIT_AFTER ? at : end;
        from = end;
    }
    add(c, s + start, word.text.n - start, word.first && start == 0);
}

/* Remove the characters of class `dropped`; each character of class `single` is a word of its
 * own. */
static void by_class(unsigned dropped, unsigned single, struct tec_pretoken word, struct cut *c)
{
    const char *s = word.text.at;
    size_t start = 0;
    for (size_t at = 0, bytes; at < word.text.n; at += bytes) {
        unsigned class = tec_unicode_class(tec_utf8_get(s + at, &bytes));
        if (!(class & (dropped | single)))
            continue;
        add(c, s + start, at - start, word.first && start == 0);
        if (!(class & dropped))
            add(c, s + at, bytes, word.first && at == 0);
        start = at + bytes;
    }
    add(c, s + start, word.text.n - start, word.first && start == 0);
}

static void by_bert(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    (void)step;
    by_class(TEC_CLASS_SPACE, TEC_CLASS_BERT_PUNCTUATION, word, c);
}

static void by_whitespace(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    (void)step;
    by_class(TEC_CLASS_SPACE, 0, word, c);
}

/* White space is a kind of its own, and dropped. */
static void by_words(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    enum { SPACE, INSIDE, OTHER } before = SPACE, now;
    const char *s = word.text.at;
    size_t start = 0;
    (void)step;
    for (size_t at = 0, bytes; at < word.text.n; at += bytes, before = now) {
        uint32_t code = tec_utf8_get(s + at, &bytes);
        now = tec_unicode_class(code) & TEC_CLASS_SPACE ? SPACE
              : tec_unicode_word(code)                  ? INSIDE
                                                        : OTHER;
        if (now == before)
            continue;
        if (before != SPACE)
            add(c, s + start, at - start, word.first && start == 0);
        start = at;
    }
    if (before != SPACE)
        add(c, s + start, word.text.n - start, word.first && start == 0);
}

static void by_marks(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    bool removed = step->where == TEC_SPLIT_REMOVED;
    by_class(removed ? TEC_CLASS_BERT_PUNCTUATION : 0, TEC_CLASS_BERT_PUNCTUATION, word, c);
}

static void by_digits(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    const char *s = word.text.at;
    size_t start = 0;
    bool before = false;
    for (size_t at = 0, bytes; at < word.text.n; at += bytes) {
        bool number = tec_unicode_class(tec_utf8_get(s + at, &bytes)) & TEC_CLASS_NUMBER;
        if (at > 0 && (number != before || (number && step->cut))) {
            add(c, s + start, at - start, word.first && start == 0);
            start = at;
        }
        before = number;
    }
    add(c, s + start, word.text.n - start, word.first && start == 0);
}

static bool wants_prefix(const struct tec_split *step, struct tec_pretoken word,
                         struct tec_text_span prefix)
{
    bool there = word.text.n >= prefix.n && memcmp(word.text.at, prefix.at, prefix.n) == 0;
    return !there &&
           (step->prefix == TEC_PREFIX_ALWAYS || (step->prefix == TEC_PREFIX_FIRST && word.first));
}

static void by_metaspace(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    struct tec_bytes body, whole;
    tec_bytes_init(&body, c->arena, 0);
    for (size_t i = 0; i < word.text.n; i++) {
        bool space = word.text.at[i] == ' ';
        tec_bytes_add(&body, space ? step->delimiter.at : word.text.at + i,
                      space ? step->delimiter.n : 1);
    }
    tec_bytes_init(&whole, c->arena, 0);
    word.text = (struct tec_text_span){body.at, body.n};
    if (!body.failed && wants_prefix(step, word, step->delimiter)) {
        tec_bytes_add(&whole, step->delimiter.at, step->delimiter.n);
        tec_bytes_add(&whole, body.at, body.n);
        word.text = (struct tec_text_span){whole.at, whole.n};
    }
    c->failed |= body.failed || whole.failed;
    if (c->failed)
        return;
    if (step->cut)
        by_string(step, word, c);
    else
        add(c, word.text.at, word.text.n, word.first);
}

static void by_bytes(const struct tec_split *step, struct tec_pretoken word, struct cut *c)
{
    struct tec_bytes whole;
    tec_bytes_init(&whole, c->arena, 0);
    if (wants_prefix(step, word, (struct tec_text_span){" ", 1})) {
        tec_bytes_add(&whole, " ", 1);
        tec_bytes_add(&whole, word.text.at, word.text.n);
        word.text = (struct tec_text_span){whole.at, whole.n};
    }
    c->failed |= whole.failed;
    if (c->failed)
        return;
    if (step->pattern)
        by_pattern(step, word, c);
    else
        add(c, word.text.at, word.text.n, word.first);
}

enum tec_status tec_pretokenise(const struct tec_split *steps, int n_steps,
                                struct tec_pretoken text, struct tec_pretokens *words,
                                struct tec_arena *arena, struct tec_error *err)
{
    static void (*const run[])(const struct tec_split *, struct tec_pretoken, struct cut *) = {
        [TEC_SPLIT_PATTERN] = by_pattern,     [TEC_SPLIT_STRING] = by_string,
        [TEC_SPLIT_BERT] = by_bert,           [TEC_SPLIT_WHITESPACE] = by_whitespace,
        [TEC_SPLIT_WORDS] = by_words,         [TEC_SPLIT_MARKS] = by_marks,
        [TEC_SPLIT_METASPACE] = by_metaspace, [TEC_SPLIT_DIGITS] = by_digits,
        [TEC_SPLIT_BYTES] = by_bytes,
    };
    struct tec_pretokens before = {0}, after = {0};
    struct cut c = {.words = &before, .arena = arena};
    add(&c, text.text.at, text.text.n, text.first);
    for (int i = 0; i < n_steps; i++) {
        after = (struct tec_pretokens){0};
        c.words = &after;
        for (size_t w = 0; w < before.n && !c.failed; w++)
            run[steps[i].kind](&steps[i], before.at[w], &c);
        before = after;
    }
    if (c.failed)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to cut %zu bytes of text into words",
                        text.text.n);
    *words = before;
    return TEC_OK;
}

/* normalise.c - the steps that rewrite text before it is cut into words, in the order of the
 * tokenizer's file.
 *
 * The results must equal those of the libraries that made the files, so each step follows its
 * reference also where another order or rule would seem simpler. The output is bounded by a
 * multiple of the input, because replacement rules come from files that are not trusted. */
#include "base/text/normalise.h"

#include "base/text/unicode.h"
#include "base/text/utf8.h"

#include <string.h>

static const char mark[] = "\xE2\x96\x81"; /* U+2581, which stands for a space in these files */

static void form(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    tec_unicode_form(out, text.at, text.n, step->form);
}

static void lower(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    (void)step;
    tec_unicode_lower_each(out, text.at, text.n);
}

static void no_marks(const struct tec_normal *step, struct tec_text_span text,
                     struct tec_bytes *out)
{
    for (size_t at = 0, bytes; at < text.n; at += bytes) {
        uint32_t code = tec_utf8_get(text.at + at, &bytes);
        if (!(step->bert ? tec_unicode_bert_mark(code) : tec_unicode_mark(code)))
            tec_bytes_add(out, text.at + at, bytes);
    }
}

static void nmt(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    (void)step;
    for (size_t at = 0, bytes; at < text.n; at += bytes) {
        uint32_t code = tec_utf8_get(text.at + at, &bytes);
        if (tec_unicode_nmt_space(code))
            tec_bytes_add(out, " ", 1);
        else if (!tec_unicode_nmt_dropped(code))
            tec_bytes_add(out, text.at + at, bytes);
    }
}

/* Hangul syllables are decomposed by arithmetic (Unicode 3.12); the table leaves them out. */
static size_t bare_hangul(uint32_t code, char *out)
{
    uint32_t s = code - 0xAC00, last = s % 28;
    size_t n = tec_utf8_put(out, 0x1100 + s / 588);
    n += tec_utf8_put(out + n, 0x1161 + s % 588 / 28);
    return last ? n + tec_utf8_put(out + n, 0x11A7 + last) : n;
}

static void bert_one(uint32_t code, const char *text, size_t bytes, struct tec_bytes *out)
{
    unsigned class = tec_unicode_class(code);
    const char *bare = tec_unicode_bare(code);
    char hangul[16];
    if (class & TEC_CLASS_BERT_REMOVED)
        return;
    if (class & TEC_CLASS_BERT_SPACE) {
        tec_bytes_add(out, " ", 1);
    } else if (bare) {
        tec_bytes_add(out, bare, strlen(bare));
    } else if (code >= 0xAC00 && code <= 0xD7A3) {
        tec_bytes_add(out, hangul, bare_hangul(code, hangul));
    } else if (class & TEC_CLASS_BERT_CJK) {
        tec_bytes_add(out, " ", 1);
        tec_bytes_add(out, text, bytes);
        tec_bytes_add(out, " ", 1);
    } else {
        tec_bytes_add(out, text, bytes);
    }
}

/* Letters and their accents stay as they are: only what cleaning drops and ideographs are
 * changed. */
static void bert_cleaned(const struct tec_normal *step, uint32_t code, struct tec_text_span text,
                         struct tec_bytes *out)
{
    unsigned class = tec_unicode_class(code);
    /* compatibility ideographs have no class, as the tables of uncased models replace them */
    bool replaced = (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
    bool pad = step->pad && (replaced || class & TEC_CLASS_BERT_CJK);
    if (step->clean && class & TEC_CLASS_BERT_REMOVED && !tec_unicode_bert_mark(code))
        return;
    if (step->clean && class & TEC_CLASS_BERT_SPACE)
        text = (struct tec_text_span){" ", 1};
    if (pad)
        tec_bytes_add(out, " ", 1);
    tec_bytes_add(out, text.at, text.n);
    if (pad)
        tec_bytes_add(out, " ", 1);
}

static void bert(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    for (size_t at = 0, bytes; at < text.n; at += bytes) {
        uint32_t code = tec_utf8_get(text.at + at, &bytes);
        if (step->by_steps)
            bert_cleaned(step, code, (struct tec_text_span){text.at + at, bytes}, out);
        else
            bert_one(code, text.at + at, bytes, out);
    }
    /* The reference's tables are older and do not drop every mark; those that remain its
     * decomposition leaves in canonical order. */
    if (!step->by_steps && !out->failed && !out->full)
        out->failed = !tec_unicode_order(out->at, out->n, out->arena);
}

static void prepend(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    if (text.n)
        tec_bytes_add(out, step->to.at, step->to.n);
    tec_bytes_add(out, text.at, text.n);
}

static void replace(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    const char *end = text.at + text.n;
    while (text.at < end) {
        size_t left = (size_t)(end - text.at);
        const char *hit = memmem(text.at, left, step->from.at, step->from.n);
        tec_bytes_add(out, text.at, hit ? (size_t)(hit - text.at) : left);
        if (!hit)
            return;
        tec_bytes_add(out, step->to.at, step->to.n);
        text.at = hit + step->from.n;
    }
}

static void runs(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    for (size_t at = 0; at < text.n;) {
        size_t n = 0;
        while (at + n < text.n && text.at[at + n] == ' ')
            n++;
        if (n >= 2)
            tec_bytes_add(out, step->to.at, step->to.n);
        else
            tec_bytes_add(out, text.at + at, n = 1);
        at += n;
    }
}

static void strip(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    size_t start = 0, end = 0;
    bool seen = false;
    for (size_t at = 0, bytes; at < text.n; at += bytes) {
        uint32_t code = tec_utf8_get(text.at + at, &bytes);
        if (tec_unicode_class(code) & TEC_CLASS_SPACE)
            continue;
        start = seen ? start : at;
        end = at + bytes;
        seen = true;
    }
    if (!seen)
        start = end = 0;
    start = step->left || !seen ? start : 0;
    end = step->right ? end : text.n;
    if (!seen && (step->left || step->right))
        return;
    tec_bytes_add(out, text.at + start, end - start);
}

/* The reference first looks up a grapheme cluster of fewer than 6 bytes as a whole and, if a rule
 * matches its beginning, takes the shortest such rule for all of it. Only otherwise it goes
 * character by character. */
static void precompiled(const struct tec_normal *step, struct tec_text_span text,
                        struct tec_bytes *out)
{
    for (size_t at = 0; at < text.n;) {
        size_t cluster = tec_unicode_grapheme(text.at + at, text.n - at), end = at + cluster;
        struct tec_text_span to;
        if (cluster < 6 && tec_charsmap_shortest(&step->map, text.at + at, cluster, &to)) {
            tec_bytes_add(out, to.at, to.n);
            at = end;
            continue;
        }
        while (at < end) {
            size_t bytes = tec_utf8_length(text.at[at]);
            if (tec_charsmap_shortest(&step->map, text.at + at, bytes, &to))
                tec_bytes_add(out, to.at, to.n);
            else
                tec_bytes_add(out, text.at + at, bytes);
            at += bytes;
        }
    }
}

/* One step of SentencePiece's normaliser: gives the replacement and returns how many bytes it
 * consumes. */
static size_t model_unit(const struct tec_normal *step, const char *s, size_t n,
                         struct tec_text_span *to)
{
    if (step->kept) {
        const struct tec_prefix_key *key =
            tec_trie_longest(step->kept, tec_trie_start(step->kept), s, n);
        if (key) {
            *to = key->text;
            return key->text.n;
        }
    }
    size_t bytes = tec_charsmap_longest(&step->map, s, n, to);
    if (bytes)
        return bytes;
    bytes = tec_utf8_length(s[0]);
    *to = (struct tec_text_span){s, bytes};
    return bytes;
}

static void add_space(const struct tec_normal *step, struct tec_bytes *out)
{
    if (step->escaped)
        tec_bytes_add(out, mark, 3);
    else
        tec_bytes_add(out, " ", 1);
}

static void add_escaped(const struct tec_normal *step, struct tec_text_span s,
                        struct tec_bytes *out)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.at[i] == ' ')
            add_space(step, out);
        else
            tec_bytes_add(out, s.at + i, 1);
    }
}

static void drop_tail(const struct tec_normal *step, struct tec_bytes *out)
{
    struct tec_text_span space =
        step->escaped ? (struct tec_text_span){mark, 3} : (struct tec_text_span){" ", 1};
    while (out->n >= space.n && memcmp(out->at + out->n - space.n, space.at, space.n) == 0)
        out->n -= space.n;
}

/* Follows Normalizer::Normalize in SentencePiece's normalizer.cc. */
static void model(const struct tec_normal *step, struct tec_text_span text, struct tec_bytes *out)
{
    size_t at = 0;
    struct tec_text_span to;
    while (step->extra_removed && at < text.n) {
        size_t bytes = model_unit(step, text.at + at, text.n - at, &to);
        if (to.n != 1 || to.at[0] != ' ')
            break;
        at += bytes;
    }
    if (at == text.n)
        return;
    if (step->dummy && !step->tail)
        add_space(step, out);
    bool after_space = step->extra_removed;
    while (at < text.n) {
        at += model_unit(step, text.at + at, text.n - at, &to);
        while (after_space && to.n && to.at[0] == ' ')
            to = (struct tec_text_span){to.at + 1, to.n - 1};
        if (to.n) {
            add_escaped(step, to, out);
            after_space = to.at[to.n - 1] == ' ';
        }
        after_space = after_space && step->extra_removed;
    }
    if (step->extra_removed)
        drop_tail(step, out);
    if (step->dummy && step->tail)
        add_space(step, out);
}

enum tec_status tec_normalise(const struct tec_normal *steps, int n_steps,
                              struct tec_text_span text, struct tec_text_span *out,
                              struct tec_arena *arena, struct tec_error *err)
{
    static void (*const run[])(const struct tec_normal *, struct tec_text_span,
                               struct tec_bytes *) = {
        [TEC_NORMAL_FORM] = form,       [TEC_NORMAL_LOWER] = lower,
        [TEC_NORMAL_MARKS] = no_marks,  [TEC_NORMAL_NMT] = nmt,
        [TEC_NORMAL_BERT] = bert,       [TEC_NORMAL_PREPEND] = prepend,
        [TEC_NORMAL_REPLACE] = replace, [TEC_NORMAL_RUNS] = runs,
        [TEC_NORMAL_STRIP] = strip,     [TEC_NORMAL_PRECOMPILED] = precompiled,
        [TEC_NORMAL_MODEL] = model,
    };
    size_t limit = 64 * text.n + 4096;
    for (int i = 0; i < n_steps; i++) {
        struct tec_bytes bytes;
        tec_bytes_init(&bytes, arena, limit);
        run[steps[i].kind](&steps[i], text, &bytes);
        if (bytes.failed)
            return tec_fail(err, TEC_NO_MEMORY, "no memory to normalise %zu bytes of text", text.n);
        if (bytes.full)
            return tec_fail(err, TEC_MALFORMED,
                            "normalised text grows beyond %zu bytes: the tokenizer is broken",
                            limit);
        text = (struct tec_text_span){bytes.at, bytes.n};
    }
    *out = text;
    return TEC_OK;
}

/* json_normal.c - reads the section "normalizer" of tokenizer.json: the steps that rewrite text
 * before it is cut. */
#include "base/text/json.h"
#include "base/text/unicode.h"

#include <string.h>

static const char where[] = "normalizer";

/* The next step to fill in, or NULL when there are too many. */
static struct tec_normal *new_step(struct tec_json *j, enum tec_normal_kind kind)
{
    struct tec_tokenizer *t = j->t;
    if (t->n_normal == TEC_NORMAL_STEPS)
        return NULL;
    t->normal[t->n_normal].kind = kind;
    return &t->normal[t->n_normal++];
}

static enum tec_status too_many(struct tec_error *err)
{
    return tec_fail(err, TEC_UNSUPPORTED, "normalizer: more than %d steps", TEC_NORMAL_STEPS);
}

static enum tec_status read_text(struct tec_json *j, const json_t *object, const char *key,
                                 struct tec_text_span *out, struct tec_error *err)
{
    const char *text;
    TEC_TRY(tec_tokenizer_json_string(object, key, where, &text, err));
    if (!text || strlen(text) > TEC_PIECE_BYTES)
        return tec_fail(err, TEC_MALFORMED, "normalizer: \"%s\" is missing or too long", key);
    return tec_tokenizer_json_text(j, text, strlen(text), out, err);
}

static enum tec_status read_prepend(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    struct tec_normal *s = new_step(j, TEC_NORMAL_PREPEND);
    return s ? read_text(j, step, "prepend", &s->to, err) : too_many(err);
}

static enum tec_status read_replace(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    const json_t *pattern = json_object_get(step, "pattern");
    const char *regex;
    TEC_TRY(tec_tokenizer_json_string(pattern, "Regex", "normalizer pattern", &regex, err));
    if (regex && strcmp(regex, " {2,}") != 0)
        return tec_fail(err, TEC_UNSUPPORTED, "normalizer: pattern '%.80s' is not known", regex);
    struct tec_normal *s = new_step(j, regex ? TEC_NORMAL_RUNS : TEC_NORMAL_REPLACE);
    if (!s)
        return too_many(err);
    TEC_TRY(read_text(j, step, "content", &s->to, err));
    if (regex)
        return TEC_OK;
    TEC_TRY(read_text(j, pattern, "String", &s->from, err));
    if (s->from.n == 0)
        return tec_fail(err, TEC_MALFORMED, "normalizer: Replace of an empty text");
    return TEC_OK;
}

static enum tec_status read_strip(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    struct tec_normal *s = new_step(j, TEC_NORMAL_STRIP);
    if (!s)
        return too_many(err);
    TEC_TRY(tec_tokenizer_json_bool(step, "strip_left", where, true, &s->left, err));
    return tec_tokenizer_json_bool(step, "strip_right", where, true, &s->right, err);
}

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Decode base64 (RFC 4648) into *n_out bytes; false if the text is no base64. */
static bool decode_base64(const char *text, size_t n, unsigned char *out, size_t *n_out)
{
    uint32_t bits = 0;
    size_t n_bits = 0, end = n;
    *n_out = 0;
    while (end > 0 && n - end < 2 && text[end - 1] == '=')
        end--;
    for (size_t i = 0; i < end; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0)
            return false;
        bits = (bits << 6 | (uint32_t)digit) & 0xFFFFFF;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[(*n_out)++] = (unsigned char)(bits >> n_bits);
        }
    }
    return n % 4 == 0;
}

static enum tec_status read_precompiled(struct tec_json *j, const json_t *step,
                                        struct tec_error *err)
{
    const json_t *text = json_object_get(step, "precompiled_charsmap");
    size_t n = json_string_length(text), size;
    struct tec_normal *s = new_step(j, TEC_NORMAL_PRECOMPILED);
    if (!s)
        return too_many(err);
    if (!json_is_string(text))
        return tec_fail(err, TEC_MALFORMED, "normalizer: precompiled_charsmap is missing");
    unsigned char *blob = TEC_NEW(&j->t->arena, n, unsigned char);
    if (!blob)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a map of %zu bytes", n);
    if (!decode_base64(json_string_value(text), n, blob, &size))
        return tec_fail(err, TEC_MALFORMED, "normalizer: precompiled_charsmap is not base64");
    return tec_charsmap_open(&s->map, blob, size, err);
}

/* What the tables of uncased models are not for, in steps: cleaning and padding, then no accents,
 * then lower case. */
static enum tec_status read_bert_steps(struct tec_json *j, bool lower, bool bare,
                                       struct tec_error *err)
{
    struct tec_normal *s = bare ? new_step(j, TEC_NORMAL_FORM) : NULL; /* NFD */
    if (bare && (!s || !(s = new_step(j, TEC_NORMAL_MARKS))))
        return too_many(err);
    if (bare)
        s->bert = true;
    return !lower || new_step(j, TEC_NORMAL_LOWER) ? TEC_OK : too_many(err);
}

/* If strip_accents is null, it takes the value of lowercase. */
static enum tec_status read_bert(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    bool clean, pad, lower, bare;
    TEC_TRY(tec_tokenizer_json_bool(step, "clean_text", where, true, &clean, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "handle_chinese_chars", where, true, &pad, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "lowercase", where, true, &lower, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "strip_accents", where, lower, &bare, err));
    struct tec_normal *s = new_step(j, TEC_NORMAL_BERT);
    if (!s)
        return too_many(err);
    s->by_steps =
        !(lower && bare && clean && pad); /* else the tables of uncased models do all of it */
    s->clean = clean;
    s->pad = pad;
    return s->by_steps ? read_bert_steps(j, lower, bare, err) : TEC_OK;
}

static enum tec_status read_step(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    static const struct {
        const char *type;
        enum tec_status (*read)(struct tec_json *, const json_t *, struct tec_error *);
        enum tec_normal_kind kind; /* of those without fields */
        unsigned form;
    } kinds[] = {
        {"NFD", NULL, TEC_NORMAL_FORM, 0},
        {"NFC", NULL, TEC_NORMAL_FORM, TEC_FORM_COMPOSED},
        {"NFKD", NULL, TEC_NORMAL_FORM, TEC_FORM_COMPATIBLE},
        {"NFKC", NULL, TEC_NORMAL_FORM, TEC_FORM_COMPATIBLE | TEC_FORM_COMPOSED},
        {"Lowercase", NULL, TEC_NORMAL_LOWER, 0},
        {"StripAccents", NULL, TEC_NORMAL_MARKS, 0},
        {"Nmt", NULL, TEC_NORMAL_NMT, 0},
        {"Prepend", read_prepend, 0, 0},
        {"Replace", read_replace, 0, 0},
        {"Strip", read_strip, 0, 0},
        {"Precompiled", read_precompiled, 0, 0},
        {"BertNormalizer", read_bert, 0, 0},
    };
    const char *type;
    TEC_TRY(tec_tokenizer_json_string(step, "type", where, &type, err));
    for (size_t i = 0; type && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        if (kinds[i].read)
            return kinds[i].read(j, step, err);
        struct tec_normal *s = new_step(j, kinds[i].kind);
        if (!s)
            return too_many(err);
        s->form = kinds[i].form;
        return TEC_OK;
    }
    return tec_fail(err, TEC_UNSUPPORTED, "normalizer type %.40s is not known",
                    type ? type : "(missing)");
}

enum tec_status tec_tokenizer_json_normalizer(struct tec_json *j, struct tec_error *err)
{
    return tec_tokenizer_json_steps(j, where, "normalizers", read_step, err);
}

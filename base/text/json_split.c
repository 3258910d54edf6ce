/* json_split.c - reads the section "pre_tokenizer" of tokenizer.json: the steps that cut text into
 * words. */
#include "base/text/json.h"

#include <string.h>

static const char where[] = "pre_tokenizer";

static enum tec_status read_pattern(struct tec_split *s, const char *regex, const char *behavior,
                                    bool invert, struct tec_error *err)
{
    s->kind = TEC_SPLIT_PATTERN;
    s->pattern = tec_pattern_find(regex, strlen(regex));
    if (!s->pattern)
        return tec_fail(err, TEC_UNSUPPORTED, "pre_tokenizer: pattern '%.200s' is not known",
                        regex);
    /* The known patterns match every character, so removing what lies between matches removes
     * nothing. */
    if (strcmp(behavior, invert ? "Removed" : "Isolated") != 0)
        return tec_fail(err, TEC_UNSUPPORTED, "pre_tokenizer: Split by a pattern as %.40s",
                        behavior);
    return TEC_OK;
}

static enum tec_status read_delimiter(struct tec_json *j, struct tec_split *s, const char *text,
                                      const char *behavior, bool invert, struct tec_error *err)
{
    static const struct {
        const char *name;
        enum tec_split_where where;
    } kinds[] = {{"Removed", TEC_SPLIT_REMOVED},
                 {"Isolated", TEC_SPLIT_ISOLATED},
                 {"MergedWithPrevious", TEC_SPLIT_BEFORE},
                 {"MergedWithNext", TEC_SPLIT_AFTER}};
    s->kind = TEC_SPLIT_STRING;
    if (*text == '\0' || strlen(text) > TEC_PIECE_BYTES)
        return tec_fail(err, TEC_MALFORMED, "pre_tokenizer: Split at a text of %zu bytes",
                        strlen(text));
    TEC_TRY(tec_tokenizer_json_text(j, text, strlen(text), &s->delimiter, err));
    for (size_t i = 0; !invert && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, behavior) == 0) {
            s->where = kinds[i].where;
            return TEC_OK;
        }
    return tec_fail(err, TEC_UNSUPPORTED, "pre_tokenizer: Split as %.40s%s", behavior,
                    invert ? ", inverted" : "");
}

static enum tec_status read_split(struct tec_json *j, const json_t *step, struct tec_split *s,
                                  struct tec_error *err)
{
    const json_t *pattern = json_object_get(step, "pattern");
    const char *regex, *text, *behavior;
    bool invert;
    TEC_TRY(tec_tokenizer_json_string(pattern, "Regex", "pre_tokenizer pattern", &regex, err));
    TEC_TRY(tec_tokenizer_json_string(pattern, "String", "pre_tokenizer pattern", &text, err));
    TEC_TRY(tec_tokenizer_json_string(step, "behavior", where, &behavior, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "invert", where, false, &invert, err));
    if (!behavior || (!regex && !text))
        return tec_fail(err, TEC_MALFORMED, "pre_tokenizer: Split without pattern or behavior");
    return regex ? read_pattern(s, regex, behavior, invert, err)
                 : read_delimiter(j, s, text, behavior, invert, err);
}

static enum tec_status read_byte_level(struct tec_json *j, const json_t *step, struct tec_split *s,
                                       struct tec_error *err)
{
    bool prefix, regex;
    (void)j;
    TEC_TRY(tec_tokenizer_json_bool(step, "add_prefix_space", where, true, &prefix, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "use_regex", where, true, &regex, err));
    s->kind = TEC_SPLIT_BYTES;
    s->prefix = prefix ? TEC_PREFIX_ALWAYS : TEC_PREFIX_NEVER;
    s->pattern = regex ? tec_pattern_plain() : NULL;
    return TEC_OK;
}

static enum tec_status read_metaspace(struct tec_json *j, const json_t *step, struct tec_split *s,
                                      struct tec_error *err)
{
    static const char *const names[] = {
        [TEC_PREFIX_NEVER] = "never", [TEC_PREFIX_FIRST] = "first", [TEC_PREFIX_ALWAYS] = "always"};
    const char *replacement, *scheme;
    bool prefix;
    TEC_TRY(tec_tokenizer_json_string(step, "replacement", where, &replacement, err));
    TEC_TRY(tec_tokenizer_json_string(step, "prepend_scheme", where, &scheme, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "add_prefix_space", where, true, &prefix, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "split", where, true, &s->cut, err));
    if (!replacement || *replacement == '\0' || strlen(replacement) > 4)
        return tec_fail(err, TEC_MALFORMED, "pre_tokenizer: Metaspace needs one character");
    s->kind = TEC_SPLIT_METASPACE;
    s->where = TEC_SPLIT_AFTER;
    s->prefix = prefix ? TEC_PREFIX_ALWAYS : TEC_PREFIX_NEVER;
    TEC_TRY(tec_tokenizer_json_text(j, replacement, strlen(replacement), &s->delimiter, err));
    for (int i = 0; scheme && i < 3; i++)
        if (strcmp(names[i], scheme) == 0) {
            s->prefix = (enum tec_split_prefix)i;
            return TEC_OK;
        }
    return scheme ? tec_fail(err, TEC_MALFORMED, "pre_tokenizer: prepend_scheme %.40s", scheme)
                  : TEC_OK;
}

static enum tec_status read_punctuation(struct tec_json *j, const json_t *step, struct tec_split *s,
                                        struct tec_error *err)
{
    const char *behavior;
    (void)j;
    TEC_TRY(tec_tokenizer_json_string(step, "behavior", where, &behavior, err));
    s->kind = TEC_SPLIT_MARKS;
    s->where =
        behavior && strcmp(behavior, "Removed") == 0 ? TEC_SPLIT_REMOVED : TEC_SPLIT_ISOLATED;
    return s->where == TEC_SPLIT_REMOVED || !behavior || strcmp(behavior, "Isolated") == 0
               ? TEC_OK
               : tec_fail(err, TEC_UNSUPPORTED, "pre_tokenizer: Punctuation as %.40s", behavior);
}

static enum tec_status read_character(struct tec_json *j, const json_t *step, struct tec_split *s,
                                      struct tec_error *err)
{
    const char *text;
    TEC_TRY(tec_tokenizer_json_string(step, "delimiter", where, &text, err));
    return read_delimiter(j, s, text ? text : "", "Removed", false, err);
}

static enum tec_status read_digits(struct tec_json *j, const json_t *step, struct tec_split *s,
                                   struct tec_error *err)
{
    (void)j;
    s->kind = TEC_SPLIT_DIGITS;
    return tec_tokenizer_json_bool(step, "individual_digits", where, false, &s->cut, err);
}

static enum tec_status read_step(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    static const struct {
        const char *type;
        enum tec_status (*read)(struct tec_json *, const json_t *, struct tec_split *,
                                struct tec_error *);
        enum tec_split_kind kind; /* of one that has nothing to read */
    } kinds[] = {
        {"Split", read_split, 0},
        {"ByteLevel", read_byte_level, 0},
        {"Metaspace", read_metaspace, 0},
        {"BertPreTokenizer", NULL, TEC_SPLIT_BERT},
        {"WhitespaceSplit", NULL, TEC_SPLIT_WHITESPACE},
        {"Whitespace", NULL, TEC_SPLIT_WORDS},
        {"Punctuation", read_punctuation, 0},
        {"CharDelimiterSplit", read_character, 0},
        {"Digits", read_digits, 0},
    };
    struct tec_tokenizer *t = j->t;
    const char *type;
    TEC_TRY(tec_tokenizer_json_string(step, "type", where, &type, err));
    /* It would see the characters that stand for bytes, not the text. */
    if (t->n_split && t->split[t->n_split - 1].kind == TEC_SPLIT_BYTES)
        return tec_fail(err, TEC_UNSUPPORTED, "pre_tokenizer: %.40s after ByteLevel",
                        type ? type : "(missing)");
    for (size_t i = 0; type && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        if (t->n_split == TEC_SPLIT_STEPS)
            return tec_fail(err, TEC_UNSUPPORTED, "pre_tokenizer: more than %d steps",
                            TEC_SPLIT_STEPS);
        struct tec_split *split = &t->split[t->n_split++];
        split->kind = kinds[i].kind;
        return kinds[i].read ? kinds[i].read(j, step, split, err) : TEC_OK;
    }
    return tec_fail(err, TEC_UNSUPPORTED, "pre_tokenizer type %.40s is not known",
                    type ? type : "(missing)");
}

enum tec_status tec_tokenizer_json_pre_tokenizer(struct tec_json *j, struct tec_error *err)
{
    return tec_tokenizer_json_steps(j, where, "pretokenizers", read_step, err);
}

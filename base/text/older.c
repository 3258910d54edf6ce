/* older.c - the tokenizer layouts before tokenizer.json: vocab.json with merges.txt, or vocab.txt.
 *
 * They are lists of pieces whose settings lie in files beside them. They are put together into the
 * document that a tokenizer.json would be and read as such, so that there is one reader. */
#include "base/json_text.h"
#include "base/text/open.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Load a JSON file of `dir`; *out is NULL if it does not exist. Settings are read with numbers as
 * doubles (a flag), because they hold integers of 100 bits. */
static enum tec_status load_json(const char *dir, const char *name, struct tec_arena *scratch,
                                 size_t flags, json_t **out, struct tec_error *err)
{
    const char *path = tec_arena_printf(scratch, "%s/%s", dir, name);
    char *bytes;
    size_t n;
    json_error_t where;
    *out = NULL;
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    struct tec_error mine;
    enum tec_status status = tec_tokenizer_read_file(path, scratch->heap, &bytes, &n, &mine);
    if (status == TEC_NOT_FOUND)
        return TEC_OK;
    if (status != TEC_OK)
        return tec_fail(err, status, "%s", mine.message);
    *out = json_loadb(bytes, n, flags, &where);
    tec_heap_put(scratch->heap, bytes);
    if (!*out)
        return tec_fail(err, TEC_MALFORMED, "%s: line %d: %s", path, where.line, where.text);
    return TEC_OK;
}

/* The text of a member written "x_token": "text" or {"content": "text"}; NULL if it is neither. */
static const char *token_name(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    return text ? text : json_string_value(json_object_get(value, "content"));
}

static void take_name(const struct tec_tokenizer *t, const json_t *object, const char *key, int *id)
{
    const char *name = token_name(object, key);
    int found = name ? tec_tokenizer_id(t, name, strlen(name)) : -1;
    *id = found >= 0 ? found : *id;
}

enum tec_status tec_tokenizer_read_names(struct tec_tokenizer *t, const char *dir,
                                         struct tec_arena *scratch, struct tec_error *err)
{
    static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json"};
    for (size_t i = 0; i < 2; i++) {
        json_t *names;
        TEC_TRY(load_json(dir, files[i], scratch, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL,
                          &names, err));
        take_name(t, names, "bos_token", &t->bos);
        take_name(t, names, "eos_token", &t->eos);
        take_name(t, names, "pad_token", &t->pad);
        take_name(t, names, "unk_token", &t->unk);
        json_decref(names);
    }
    return TEC_OK;
}

/* The member "added_tokens_decoder": {"5": {...}} of tokenizer_config.json as a list of added
 * tokens. */
static json_t *added_tokens(const json_t *settings)
{
    json_t *list = json_array(), *token;
    const char *key;
    json_object_foreach(json_object_get(settings, "added_tokens_decoder"), key, token)
    {
        char *end;
        long id = strtol(key, &end, 10);
        json_t *copy = json_copy(token);
        if (end == key || *end != '\0' || json_object_set_new(copy, "id", json_integer(id)) != 0) {
            json_decref(copy);
            continue;
        }
        json_array_append_new(list, copy);
    }
    return list;
}

/* By what was put together, which has all of its files that matters. */
static enum tec_status identify(struct tec_tokenizer *t, const json_t *document,
                                struct tec_error *err)
{
    char *text = tec_json_whole(document, JSON_SORT_KEYS | JSON_COMPACT);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to name a tokenizer");
    t->identity = XXH3_64bits(text, strlen(text));
    free(text);
    return TEC_OK;
}

static enum tec_status read_document(struct tec_tokenizer **out, json_t *document,
                                     struct tec_heap *heap, struct tec_error *err)
{
    struct tec_tokenizer *t;
    if (!document)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to put a tokenizer together");
    TEC_TRY(tec_tokenizer_create(&t, heap, err));
    enum tec_status status = identify(t, document, err);
    if (status == TEC_OK)
        status = tec_tokenizer_read_root(t, document, json_object_size(document), err);
    if (status != TEC_OK) {
        tec_tokenizer_close(t);
        return status;
    }
    *out = t;
    return TEC_OK;
}

/* Take the next line of a text, without its end; false when there is none. */
static bool next_line(const char **at, const char *end, struct tec_text_span *line)
{
    if (*at == end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    stop = stop ? stop : end;
    *line = (struct tec_text_span){*at, (size_t)(stop - *at)};
    if (line->n && line->at[line->n - 1] == '\r')
        line->n--;
    *at = stop == end ? end : stop + 1;
    return true;
}

static enum tec_status read_lines(const char *dir, const char *name, struct tec_arena *scratch,
                                  char **bytes, size_t *n, struct tec_error *err)
{
    const char *path = tec_arena_printf(scratch, "%s/%s", dir, name);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    return tec_tokenizer_read_file(path, scratch->heap, bytes, n, err);
}

static enum tec_status read_merges(const char *dir, struct tec_arena *scratch, json_t *merges,
                                   struct tec_error *err)
{
    char *bytes = NULL;
    size_t n = 0;
    struct tec_text_span line;
    TEC_TRY(read_lines(dir, "merges.txt", scratch, &bytes, &n, err));
    const char *at = bytes, *end = bytes + n;
    enum tec_status status = TEC_OK;
    while (status == TEC_OK && next_line(&at, end, &line)) {
        if (line.n == 0 || (line.n >= 9 && memcmp(line.at, "#version:", 9) == 0))
            continue;
        json_t *text = json_stringn(line.at, line.n);
        if (!text || json_array_append_new(merges, text) != 0)
            status = tec_fail(err, TEC_MALFORMED, "merges.txt: merge %zu is not UTF-8",
                              json_array_size(merges));
    }
    tec_heap_put(scratch->heap, bytes);
    return status;
}

static bool has_two_digits(const char *piece)
{
    for (; *piece; piece++)
        if (piece[0] >= '0' && piece[0] <= '9' && piece[1] >= '0' && piece[1] <= '9')
            return true;
    return false;
}

static enum tec_status check_digits(json_t *vocab, struct tec_error *err)
{
    const char *key;
    json_t *id;
    json_object_foreach(vocab, key, id)
    {
        if (has_two_digits(key))
            return tec_fail(err, TEC_UNSUPPORTED,
                            "vocab.json and merges.txt do not say how text is cut (piece '%.40s' "
                            "has several digits): give a tokenizer.json",
                            key);
    }
    return TEC_OK;
}

static enum tec_status open_merges(struct tec_tokenizer **out, const char *dir, json_t *vocab,
                                   const json_t *settings, struct tec_arena *scratch,
                                   struct tec_error *err)
{
    json_t *merges = json_array();
    enum tec_status status = check_digits(vocab, err);
    if (status == TEC_OK)
        status = read_merges(dir, scratch, merges, err);
    if (status != TEC_OK) {
        json_decref(merges);
        return status;
    }
    json_t *document =
        json_pack("{s:s, s:o, s:{s:s}, s:{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s, s:b, s:b}]}, s:{s:s}, "
                  "s:{s:s, s:O, s:o}}",
                  "version", "1.0", "added_tokens", added_tokens(settings), "normalizer", "type",
                  "NFC", "pre_tokenizer", "type", "Sequence", "pretokenizers", "type", "Split",
                  "pattern", "Regex", tec_pattern_digits()->text, "behavior", "Isolated", "type",
                  "ByteLevel", "add_prefix_space", 0, "use_regex", 0, "decoder", "type",
                  "ByteLevel", "model", "type", "BPE", "vocab", vocab, "merges", merges);
    status = read_document(out, document, scratch->heap, err);
    json_decref(document);
    return status;
}

enum tec_status tec_tokenizer_open_merges(struct tec_tokenizer **out, const char *dir,
                                          struct tec_arena *scratch, struct tec_error *err)
{
    json_t *vocab = NULL, *settings;
    TEC_TRY(load_json(dir, "vocab.json", scratch, JSON_REJECT_DUPLICATES, &vocab, err));
    if (!vocab)
        return tec_fail(err, TEC_NOT_FOUND, "%s: vocab.json is missing", dir);
    enum tec_status status =
        load_json(dir, "tokenizer_config.json", scratch,
                  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &settings, err);
    if (status == TEC_OK)
        status = open_merges(out, dir, vocab, settings, scratch, err);
    json_decref(vocab);
    json_decref(settings);
    return tec_context(err, status, "%s", dir);
}

static enum tec_status read_words(const char *dir, struct tec_arena *scratch, json_t *vocab,
                                  struct tec_error *err)
{
    char *bytes = NULL;
    size_t n = 0;
    struct tec_text_span line;
    TEC_TRY(read_lines(dir, "vocab.txt", scratch, &bytes, &n, err));
    const char *at = bytes, *end = bytes + n;
    enum tec_status status = TEC_OK;
    for (json_int_t id = 0; status == TEC_OK && next_line(&at, end, &line); id++) {
        const char *key = tec_arena_strndup(scratch, line.at, line.n);
        if (key && json_object_get(vocab, key))
            status = tec_fail(err, TEC_MALFORMED, "vocab.txt: line %lld: piece '%.40s' is there",
                              (long long)id + 1, key);
        else if (!key || json_object_set_new(vocab, key, json_integer(id)) != 0)
            status = tec_fail(err, TEC_MALFORMED, "vocab.txt: line %lld is not UTF-8 text",
                              (long long)id + 1);
    }
    tec_heap_put(scratch->heap, bytes);
    return status;
}

/* The token that the settings name, else the first of two usual names that is a piece; "" if none
 * is. */
static const char *choose(const json_t *vocab, const json_t *settings, const char *key,
                          const char *usual, const char *other)
{
    const char *name = token_name(settings, key);
    if (name && json_object_get(vocab, name))
        return name;
    return json_object_get(vocab, usual) ? usual : json_object_get(vocab, other) ? other : "";
}

static json_t *usual_added(const json_t *vocab)
{
    static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *id = json_object_get(vocab, names[i]);
        if (id)
            json_array_append_new(list, json_pack("{s:s, s:O, s:b, s:b}", "content", names[i], "id",
                                                  id, "special", 1, "normalized", 0));
    }
    return list;
}

static enum tec_status open_words(struct tec_tokenizer **out, json_t *vocab, const json_t *settings,
                                  struct tec_heap *heap, struct tec_error *err)
{
    const char *cls = choose(vocab, settings, "cls_token", "<s>", "[CLS]");
    const char *sep = choose(vocab, settings, "sep_token", "</s>", "[SEP]");
    const char *unk = choose(vocab, settings, "unk_token", "[UNK]", "<unk>");
    json_t *added = added_tokens(settings);
    if (json_array_size(added) == 0) {
        json_decref(added);
        added = usual_added(vocab);
    }
    json_t *document = json_pack(
        "{s:s, s:o, s:{s:s}, s:{s:s}, s:{s:s, s:[s,O?], s:[s,O?]}, s:{s:s}, s:{s:s, s:s, s:O}}",
        "version", "1.0", "added_tokens", added, "normalizer", "type", "BertNormalizer",
        "pre_tokenizer", "type", "BertPreTokenizer", "post_processor", "type", "BertProcessing",
        "cls", cls, json_object_get(vocab, cls), "sep", sep, json_object_get(vocab, sep), "decoder",
        "type", "WordPiece", "model", "type", "WordPiece", "unk_token", unk, "vocab", vocab);
    enum tec_status status = read_document(out, document, heap, err);
    json_decref(document);
    return status;
}

/* Refuse settings that the tables of the uncased normaliser do not cover. */
static enum tec_status check_uncased(const json_t *settings, struct tec_error *err)
{
    if (json_is_false(json_object_get(settings, "do_lower_case")) ||
        json_is_false(json_object_get(settings, "strip_accents")) ||
        json_is_false(json_object_get(settings, "tokenize_chinese_chars")))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "tokenizer_config.json: only uncased WordPiece is supported");
    return TEC_OK;
}

enum tec_status tec_tokenizer_open_words(struct tec_tokenizer **out, const char *dir,
                                         struct tec_arena *scratch, struct tec_error *err)
{
    json_t *settings, *vocab = json_object();
    enum tec_status status =
        load_json(dir, "tokenizer_config.json", scratch,
                  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &settings, err);
    if (status == TEC_OK)
        status = check_uncased(settings, err);
    if (status == TEC_OK)
        status = read_words(dir, scratch, vocab, err);
    if (status == TEC_OK)
        status = open_words(out, vocab, settings, scratch->heap, err);
    json_decref(vocab);
    json_decref(settings);
    return tec_context(err, status, "%s", dir);
}

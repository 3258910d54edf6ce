/* json_vocab.c - reads the vocabulary ("model"."vocab") and "added_tokens" of tokenizer.json. */
#include "base/text/json.h"

#include <math.h>
#include <string.h>

static enum tec_status check_id(const json_t *id, const char *piece, struct tec_error *err)
{
    if (!json_is_integer(id))
        return tec_fail(err, TEC_MALFORMED, "piece '%.40s': its id is not an integer", piece);
    if (json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX - 1)
        return tec_fail(err, TEC_MALFORMED, "piece '%.40s': id %lld is out of range", piece,
                        (long long)json_integer_value(id));
    return TEC_OK;
}

static enum tec_status largest_in_object(json_t *vocab, int64_t *largest, struct tec_error *err)
{
    const char *key;
    json_t *id;
    json_object_foreach(vocab, key, id)
    {
        TEC_TRY(check_id(id, key, err));
        if (json_integer_value(id) > *largest)
            *largest = json_integer_value(id);
    }
    return TEC_OK;
}

static enum tec_status largest_added(const json_t *added, int64_t *largest, struct tec_error *err)
{
    size_t i;
    const json_t *token;
    json_array_foreach(added, i, token)
    {
        const char *content = json_string_value(json_object_get(token, "content"));
        const json_t *id = json_object_get(token, "id");
        if (!content || !id)
            return tec_fail(err, TEC_MALFORMED, "added_tokens[%zu] has no %s", i,
                            content ? "id" : "content");
        TEC_TRY(check_id(id, content, err));
        if (json_integer_value(id) > *largest)
            *largest = json_integer_value(id);
    }
    return TEC_OK;
}

static enum tec_status add_object(struct tec_json *j, json_t *vocab, struct tec_error *err)
{
    const char *key;
    json_t *id;
    json_object_foreach(vocab, key, id)
    {
        struct tec_vocab_entry e = {.id = (int)json_integer_value(id), .type = TEC_PIECE_NORMAL};
        TEC_TRY(tec_tokenizer_json_text(j, key, strlen(key), &e.text, err));
        TEC_TRY(tec_vocab_add(&j->t->vocab, e, err));
    }
    return TEC_OK;
}

/* Add the vocabulary of a Unigram model, [["piece", score], ...], whose ids are the places in the
 * list. */
static enum tec_status add_list(struct tec_json *j, const json_t *vocab, struct tec_error *err)
{
    size_t i;
    const json_t *pair;
    json_array_foreach(vocab, i, pair)
    {
        const json_t *text = json_array_get(pair, 0), *score = json_array_get(pair, 1);
        struct tec_vocab_entry e = {.id = (int)i, .type = TEC_PIECE_NORMAL};
        if (json_array_size(pair) != 2 || !json_is_string(text) || !json_is_number(score))
            return tec_fail(err, TEC_MALFORMED, "model.vocab[%zu] must be [piece, score]", i);
        e.score = json_number_value(score);
        if (!isfinite(e.score))
            return tec_fail(err, TEC_MALFORMED, "model.vocab[%zu]: its score is not finite", i);
        TEC_TRY(tec_tokenizer_json_text(j, json_string_value(text), json_string_length(text),
                                        &e.text, err));
        TEC_TRY(tec_vocab_add(&j->t->vocab, e, err));
    }
    return TEC_OK;
}

static enum tec_status read_added(const struct tec_json *j, const json_t *token,
                                  struct tec_added *a, struct tec_error *err)
{
    static const char where[] = "added_tokens";
    const json_t *content = json_object_get(token, "content");
    a->id = (int)json_integer_value(json_object_get(token, "id"));
    TEC_TRY(tec_tokenizer_json_bool(token, "single_word", where, false, &a->single_word, err));
    TEC_TRY(tec_tokenizer_json_bool(token, "lstrip", where, false, &a->lstrip, err));
    TEC_TRY(tec_tokenizer_json_bool(token, "rstrip", where, false, &a->rstrip, err));
    TEC_TRY(tec_tokenizer_json_bool(token, "special", where, false, &a->special, err));
    TEC_TRY(tec_tokenizer_json_bool(token, "normalized", where, !a->special, &a->normalized, err));
    return tec_tokenizer_json_text(j, json_string_value(content), json_string_length(content),
                                   &a->text, err);
}

/* Add the added tokens. A token without text is left out: it matches nowhere, as in the
 * reference. */
static enum tec_status add_added(struct tec_json *j, const json_t *added, struct tec_error *err)
{
    struct tec_tokenizer *t = j->t;
    size_t i, n = json_array_size(added);
    const json_t *token;
    t->added = TEC_NEW(&t->arena, n, struct tec_added);
    if (!t->added)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu added tokens", n);
    json_array_foreach(added, i, token)
    {
        struct tec_added *a = &t->added[t->n_added];
        TEC_TRY(read_added(j, token, a, err));
        if (a->text.n == 0)
            continue;
        struct tec_vocab_entry e = {
            .text = a->text, .id = a->id, .type = TEC_PIECE_NORMAL, .added = true};
        TEC_TRY(tec_vocab_add(&t->vocab, e, err));
        t->vocab.special[a->id] = a->special;
        t->n_added++;
    }
    return TEC_OK;
}

enum tec_status tec_tokenizer_json_vocab(struct tec_json *j, struct tec_error *err)
{
    json_t *model = json_object_get(j->root, "model"), *vocab = json_object_get(model, "vocab");
    const json_t *added = json_object_get(j->root, "added_tokens");
    const char *type;
    int64_t largest = -1;
    if (!json_is_object(model))
        return tec_fail(err, TEC_MALFORMED, "\"model\" is missing");
    TEC_TRY(tec_tokenizer_json_string(model, "type", "model", &type, err));
    bool list = type && strcmp(type, "Unigram") == 0;
    if (list ? !json_is_array(vocab) : !json_is_object(vocab))
        return tec_fail(err, TEC_MALFORMED, "model.vocab must be %s",
                        list ? "a list" : "an object");
    if (added && !json_is_null(added) && !json_is_array(added))
        return tec_fail(err, TEC_MALFORMED, "added_tokens must be a list");
    size_t n = list ? json_array_size(vocab) : json_object_size(vocab);
    if (list)
        largest = (int64_t)n - 1;
    else
        TEC_TRY(largest_in_object(vocab, &largest, err));
    TEC_TRY(largest_added(added, &largest, err));
    TEC_TRY(tec_vocab_init(&j->t->vocab, n + json_array_size(added), largest, j->seed, &j->t->arena,
                           err));
    TEC_TRY(list ? add_list(j, vocab, err) : add_object(j, vocab, err));
    return add_added(j, added, err);
}

static enum tec_status add_key(struct tec_tokenizer *t, int i, struct tec_prefix_key *keys, int *n,
                               struct tec_error *err)
{
    struct tec_text_span text = t->added[i].text;
    if (t->added[i].normalized)
        TEC_TRY(tec_normalise(t->normal, t->n_normal, text, &text, &t->arena, err));
    if (text.n)
        keys[(*n)++] = (struct tec_prefix_key){text, i};
    return TEC_OK;
}

enum tec_status tec_tokenizer_index_added(struct tec_tokenizer *t, struct tec_error *err)
{
    for (int normalized = 0; normalized < 2; normalized++) {
        struct tec_prefix_key *keys = TEC_NEW(&t->arena, (size_t)t->n_added, struct tec_prefix_key);
        int n = 0;
        for (int i = 0; keys && i < t->n_added; i++)
            if (t->added[i].normalized == normalized)
                TEC_TRY(add_key(t, i, keys, &n, err));
        if (!keys || !tec_trie_init(normalized ? &t->normalized : &t->raw, keys, n, &t->arena))
            return tec_fail(err, TEC_NO_MEMORY, "no memory to index %d added tokens", t->n_added);
    }
    return TEC_OK;
}

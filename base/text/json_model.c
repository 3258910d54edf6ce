/* json_model.c - reads the section "model" of tokenizer.json: BPE with its merges, Unigram or
 * WordPiece. */
#include "base/text/json.h"

#include "base/text/utf8.h"

#include <stdio.h>
#include <string.h>

/* Find the ids of the pieces "<0x00>" .. "<0xFF>", which stand for single bytes. */
static void find_bytes(const struct tec_vocab *v, int *byte_id)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte & 0xFF);
        byte_id[byte] = tec_vocab_model_id(v, name, 6);
    }
}

static enum tec_status find_unk(const struct tec_json *j, const json_t *model, int *unk,
                                struct tec_error *err)
{
    const char *name;
    *unk = -1;
    TEC_TRY(tec_tokenizer_json_string(model, "unk_token", "model", &name, err));
    if (!name)
        return TEC_OK;
    const struct tec_vocab_entry *e = tec_vocab_find(&j->t->vocab, name, strlen(name));
    if (!e)
        return tec_fail(err, TEC_MALFORMED, "unk_token '%.40s' is not in the vocabulary", name);
    *unk = e->id;
    return TEC_OK;
}

/* Split a merge, written "a b" or ["a", "b"], into its parts, which are borrowed from jansson. */
static bool merge_parts(const json_t *merge, struct tec_text_span part[2])
{
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge);
        size_t n = json_string_length(merge);
        const char *space = memchr(text, ' ', n);
        if (!space)
            return false;
        part[0] = (struct tec_text_span){text, (size_t)(space - text)};
        part[1] = (struct tec_text_span){space + 1, n - part[0].n - 1};
        return !memchr(part[1].at, ' ', part[1].n);
    }
    if (json_array_size(merge) != 2)
        return false;
    for (size_t i = 0; i < 2; i++) {
        const json_t *text = json_array_get(merge, i);
        if (!json_is_string(text))
            return false;
        part[i] = (struct tec_text_span){json_string_value(text), json_string_length(text)};
    }
    return true;
}

static enum tec_status add_merge(const struct tec_json *j, const json_t *merge, size_t rank,
                                 struct tec_error *err)
{
    const struct tec_vocab *v = &j->t->vocab;
    struct tec_text_span part[2];
    if (!merge_parts(merge, part))
        return tec_fail(err, TEC_MALFORMED, "model.merges[%zu] must be two pieces", rank);
    struct tec_arena_mark mark = tec_arena_mark(&j->t->arena);
    TEC_TRY(tec_tokenizer_json_text(j, part[0].at, part[0].n, &part[0], err));
    TEC_TRY(tec_tokenizer_json_text(j, part[1].at, part[1].n, &part[1], err));
    struct tec_merge m = {.rank = (uint32_t)rank};
    m.left = tec_vocab_model_id(v, part[0].at, part[0].n);
    m.right = tec_vocab_model_id(v, part[1].at, part[1].n);
    m.result = -1;
    char whole[2 * TEC_PIECE_BYTES];
    if (m.left >= 0 && m.right >= 0) {
        memcpy(whole, part[0].at, part[0].n);
        memcpy(whole + part[0].n, part[1].at, part[1].n);
        m.result = tec_vocab_model_id(v, whole, part[0].n + part[1].n);
    }
    enum tec_status status = TEC_OK;
    if (m.result < 0)
        status = tec_fail(
            err, TEC_MALFORMED, "model.merges[%zu] '%.40s' '%.40s': %s is not in the vocabulary",
            rank, part[0].at, part[1].at, m.left < 0 || m.right < 0 ? "a part" : "the result");
    else
        tec_bpe_add(&j->t->bpe, m);
    tec_arena_rewind(&j->t->arena, mark);
    return status;
}

static enum tec_status refuse_text(const json_t *model, const char *key, struct tec_error *err)
{
    const char *text;
    TEC_TRY(tec_tokenizer_json_string(model, key, "model", &text, err));
    if (text && *text)
        return tec_fail(err, TEC_UNSUPPORTED, "model: %s '%.40s' is not supported", key, text);
    return TEC_OK;
}

/* Published vocabularies lack pieces of bytes that no text of their training had. */
static void read_bytes(struct tec_tokenizer *t)
{
    for (int byte = 0; byte < 256; byte++) {
        char name[4];
        size_t n = tec_utf8_put(name, tec_tokenizer_printable(byte));
        t->bpe.byte_id[byte] = tec_vocab_model_id(&t->vocab, name, n);
    }
    t->bpe.bytes = true;
    t->kind = "byte-level bpe";
}

static bool is_byte_level(const struct tec_tokenizer *t)
{
    for (int i = 0; i < t->n_split; i++)
        if (t->split[i].kind == TEC_SPLIT_BYTES)
            return true;
    return false;
}

static enum tec_status read_bpe(struct tec_json *j, const json_t *model, struct tec_error *err)
{
    struct tec_tokenizer *t = j->t;
    struct tec_bpe *bpe = &t->bpe;
    const json_t *merges = json_object_get(model, "merges"), *merge;
    const json_t *dropout = json_object_get(model, "dropout");
    size_t i;
    t->model = TEC_MODEL_BPE;
    t->kind = "bpe";
    bpe->vocab = &t->vocab;
    find_bytes(&t->vocab, bpe->byte_id);
    TEC_TRY(refuse_text(model, "continuing_subword_prefix", err));
    TEC_TRY(refuse_text(model, "end_of_word_suffix", err));
    if (dropout && !json_is_null(dropout) && json_number_value(dropout) != 0.0)
        return tec_fail(err, TEC_UNSUPPORTED, "model: dropout makes encoding random");
    TEC_TRY(
        tec_tokenizer_json_bool(model, "byte_fallback", "model", false, &bpe->byte_fallback, err));
    TEC_TRY(tec_tokenizer_json_bool(model, "fuse_unk", "model", false, &bpe->fuse_unk, err));
    TEC_TRY(
        tec_tokenizer_json_bool(model, "ignore_merges", "model", false, &bpe->ignore_merges, err));
    TEC_TRY(find_unk(j, model, &bpe->unk, err));
    t->unk = bpe->unk;
    if (is_byte_level(t))
        read_bytes(t);
    if (!json_is_array(merges))
        return tec_fail(err, TEC_MALFORMED, "model.merges must be a list");
    TEC_TRY(tec_bpe_merges(bpe, json_array_size(merges), j->seed, &t->arena, err));
    json_array_foreach(merges, i, merge)
    {
        TEC_TRY(add_merge(j, merge, i, err));
    }
    return TEC_OK;
}

/* Index all pieces of the model by their text; the value is the entry (Unigram) or the id
 * (WordPiece). */
static enum tec_status index_all(struct tec_tokenizer *t, bool by_id, struct tec_prefix *out,
                                 struct tec_error *err)
{
    int n = 0;
    struct tec_prefix_key *keys = TEC_NEW(&t->arena, (size_t)t->vocab.n, struct tec_prefix_key);
    for (int i = 0; keys && i < t->vocab.n; i++)
        if (!t->vocab.entries[i].added)
            keys[n++] = (struct tec_prefix_key){t->vocab.entries[i].text,
                                                by_id ? t->vocab.entries[i].id : i};
    if (!keys || !tec_trie_init(out, keys, n, &t->arena))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an index of pieces");
    return TEC_OK;
}

static enum tec_status read_unigram(struct tec_json *j, const json_t *model, struct tec_error *err)
{
    struct tec_tokenizer *t = j->t;
    struct tec_unigram *u = &t->unigram;
    const json_t *unk = json_object_get(model, "unk_id");
    t->model = TEC_MODEL_UNIGRAM;
    t->kind = "unigram";
    *u = (struct tec_unigram){.vocab = &t->vocab, .unk = -1};
    TEC_TRY(
        tec_tokenizer_json_bool(model, "byte_fallback", "model", false, &u->byte_fallback, err));
    find_bytes(&t->vocab, u->byte_id);
    for (int byte = 0; u->byte_fallback && byte < 256; byte++)
        if (u->byte_id[byte] < 0)
            return tec_fail(err, TEC_UNSUPPORTED, "byte_fallback without piece <0x%02X>",
                            (unsigned)byte);
    if (unk && !json_is_null(unk)) {
        json_int_t id = json_is_integer(unk) ? json_integer_value(unk) : -1;
        if (id < 0 || id >= t->vocab.size || !tec_vocab_entry(&t->vocab, (int)id))
            return tec_fail(err, TEC_MALFORMED, "model.unk_id is not an id of the vocabulary");
        u->unk = t->unk = (int)id;
    }
    for (int i = 0; i < t->vocab.n; i++) {
        const struct tec_vocab_entry *e = &t->vocab.entries[i];
        if (!e->added && (i == 0 || e->score < u->lowest))
            u->lowest = e->score;
    }
    return index_all(t, false, &u->pieces, err);
}

static enum tec_status read_wordpiece(struct tec_json *j, const json_t *model,
                                      struct tec_error *err)
{
    struct tec_tokenizer *t = j->t;
    struct tec_wordpiece *w = &t->wordpiece;
    const char *inside;
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");
    t->model = TEC_MODEL_WORDPIECE;
    t->kind = "wordpiece";
    TEC_TRY(find_unk(j, model, &w->unk, err));
    if (w->unk < 0)
        return tec_fail(err, TEC_MALFORMED, "model: WordPiece needs an unk_token");
    t->unk = w->unk;
    TEC_TRY(tec_tokenizer_json_string(model, "continuing_subword_prefix", "model", &inside, err));
    inside = inside ? inside : "##";
    TEC_TRY(tec_tokenizer_json_text(j, inside, strlen(inside), &w->inside, err));
    w->longest = 100;
    if (longest && (!json_is_integer(longest) || json_integer_value(longest) < 1 ||
                    json_integer_value(longest) > 65536))
        return tec_fail(err, TEC_MALFORMED, "model.max_input_chars_per_word must be 1 .. 65536");
    if (longest)
        w->longest = (int)json_integer_value(longest);
    return index_all(t, true, &w->pieces, err);
}

enum tec_status tec_tokenizer_json_model(struct tec_json *j, struct tec_error *err)
{
    static const struct {
        const char *type;
        enum tec_status (*read)(struct tec_json *, const json_t *, struct tec_error *);
    } kinds[] = {{"BPE", read_bpe}, {"Unigram", read_unigram}, {"WordPiece", read_wordpiece}};
    const json_t *model = json_object_get(j->root, "model");
    const char *type;
    TEC_TRY(tec_tokenizer_json_string(model, "type", "model", &type, err));
    for (size_t i = 0; type && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        TEC_TRY(kinds[i].read(j, model, err));
        if (is_byte_level(j->t) && (j->t->model != TEC_MODEL_BPE || j->t->bpe.byte_fallback))
            return tec_fail(err, TEC_UNSUPPORTED, "pre_tokenizer: ByteLevel before %s",
                            j->t->model == TEC_MODEL_BPE ? "a BPE with byte_fallback" : type);
        return TEC_OK;
    }
    return tec_fail(err, TEC_UNSUPPORTED, "model.type %.40s is not BPE, Unigram or WordPiece",
                    type ? type : "(missing)");
}

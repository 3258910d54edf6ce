/* json.c - reads tokenizer.json: parses the document, then reads its sections into a tokenizer.
 *
 * Vocabularies may hold U+0000, which jansson does not keep in keys. Before parsing it is replaced
 * by a noncharacter that the file does not use, and put back when a text is copied. */
#include "base/text/json.h"

#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of the escape \uXXXX at s[0], or -1 if there is none. */
static int escape_at(const char *s, size_t n)
{
    int code = 0;
    if (n < 6 || s[0] != '\\' || s[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(s[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* Find which noncharacters U+FDD0 .. U+FDEF the text uses, as bits, and whether it has \u0000. */
static uint32_t find_used(const char *s, size_t n, bool *nul)
{
    uint32_t used = 0;
    *nul = false;
    for (size_t i = 0; i < n; i++) {
        if (i + 2 < n && memcmp(s + i, "\xEF\xB7", 2) == 0 && (unsigned char)s[i + 2] >= 0x90 &&
            (unsigned char)s[i + 2] <= 0xAF)
            used |= 1U << ((unsigned char)s[i + 2] - 0x90);
        if (s[i] != '\\')
            continue;
        int code = escape_at(s + i, n - i);
        if (code >= 0xFDD0 && code <= 0xFDEF)
            used |= 1U << (code - 0xFDD0);
        *nul |= code == 0;
        i++;
    }
    return used;
}

static void replace_nul(char *s, size_t n, uint32_t code)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '\\')
            continue;
        if (escape_at(s + i, n - i) == 0)
            for (int d = 0; d < 4; d++)
                s[i + 2 + (size_t)d] = digits[code >> (12 - 4 * d) & 15];
        i++;
    }
}

static enum tec_status load(struct tec_json *j, const char *bytes, size_t n, struct tec_error *err)
{
    bool nul;
    uint32_t used = find_used(bytes, n, &nul);
    json_error_t where;
    if (!nul) {
        j->root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &where);
    } else {
        char *copy = tec_heap_get(j->t->heap, n);
        if (!copy)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a copy of %zu bytes", n);
        for (j->nul = 0xFDD0; used & 1U << (j->nul - 0xFDD0) && j->nul < 0xFDEF; j->nul++)
            ;
        memcpy(copy, bytes, n);
        replace_nul(copy, n, j->nul);
        bool free_one = !(used & 1U << (j->nul - 0xFDD0));
        j->root = free_one ? json_loadb(copy, n, JSON_REJECT_DUPLICATES, &where) : NULL;
        tec_heap_put(j->t->heap, copy);
        if (!free_one)
            return tec_fail(err, TEC_UNSUPPORTED, "the file uses U+0000 and all of U+FDD0 - FDEF");
    }
    if (!j->root)
        return tec_fail(err, TEC_MALFORMED, "line %d, column %d: %s", where.line, where.column,
                        where.text);
    return TEC_OK;
}

/* The id of the first of the usual names that is a special token, or -1: used where no file beside
 * tokenizer.json names the token. */
static int usual(const struct tec_tokenizer *t, const char *const *names)
{
    for (; *names; names++) {
        const struct tec_vocab_entry *e = tec_vocab_find(&t->vocab, *names, strlen(*names));
        if (e && t->vocab.special[e->id])
            return e->id;
    }
    return -1;
}

static void find_special(struct tec_tokenizer *t)
{
    static const char *const bos[] = {"<bos>", "<s>", "<|begin_of_text|>", "[CLS]", NULL};
    static const char *const eos[] = {"<eos>",         "</s>",  "<|end_of_text|>",
                                      "<|endoftext|>", "[SEP]", NULL};
    static const char *const pad[] = {"<pad>", "<PAD>", "[PAD]", "<|endoftext|>", NULL};
    t->bos = usual(t, bos);
    t->eos = usual(t, eos);
    t->pad = usual(t, pad);
}

static enum tec_status read_sections(struct tec_json *j, struct tec_error *err)
{
    const char *version = NULL;
    if (!json_is_object(j->root))
        return tec_fail(err, TEC_MALFORMED, "the top level must be an object");
    TEC_TRY(tec_tokenizer_json_string(j->root, "version", "top level", &version, err));
    if (!version || strcmp(version, "1.0") != 0)
        return tec_fail(err, TEC_UNSUPPORTED, "version %s, known is 1.0",
                        version ? version : "is missing");
    TEC_TRY(tec_tokenizer_json_vocab(j, err));
    TEC_TRY(tec_tokenizer_json_normalizer(j, err));
    TEC_TRY(tec_tokenizer_json_pre_tokenizer(j, err));
    TEC_TRY(tec_tokenizer_json_model(j, err));
    TEC_TRY(tec_tokenizer_json_template(j, err));
    TEC_TRY(tec_tokenizer_json_decoder(j, err));
    find_special(j->t);
    return tec_tokenizer_index_added(j->t, err);
}

enum tec_status tec_tokenizer_read_root(struct tec_tokenizer *t, json_t *root, uint64_t seed,
                                        struct tec_error *err)
{
    struct tec_json j = {.t = t, .root = root, .seed = seed};
    return read_sections(&j, err);
}

enum tec_status tec_tokenizer_read_json(struct tec_tokenizer *t, const void *bytes, size_t n,
                                        uint64_t seed, struct tec_error *err)
{
    struct tec_json j = {.t = t, .seed = seed};
    enum tec_status status = load(&j, bytes, n, err);
    if (status == TEC_OK)
        status = read_sections(&j, err);
    json_decref(j.root);
    return status;
}

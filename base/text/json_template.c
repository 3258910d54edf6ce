/* json_template.c - reads the sections "post_processor" (the ids around the text) and "decoder" of
 * tokenizer.json. */
#include "base/text/json.h"

#include <string.h>

static enum tec_status add_id(struct tec_tokenizer *t, bool after, const json_t *id,
                              struct tec_error *err)
{
    int *n = after ? &t->n_after : &t->n_before;
    json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    if (value < 0 || value >= t->vocab.size || !tec_vocab_entry(&t->vocab, (int)value))
        return tec_fail(err, TEC_MALFORMED, "post_processor: an id is not in the vocabulary");
    if (*n == TEC_TEMPLATE_IDS)
        return tec_fail(err, TEC_UNSUPPORTED, "post_processor: more than %d ids", TEC_TEMPLATE_IDS);
    (after ? t->after : t->before)[(*n)++] = (int)value;
    return TEC_OK;
}

static enum tec_status add_special(struct tec_json *j, const json_t *whole, const json_t *special,
                                   bool after, struct tec_error *err)
{
    const char *name;
    size_t i;
    const json_t *id;
    TEC_TRY(tec_tokenizer_json_string(special, "id", "post_processor", &name, err));
    const json_t *known = json_object_get(whole, "special_tokens");
    const json_t *ids = json_object_get(json_object_get(known, name ? name : ""), "ids");
    if (json_array_size(ids) == 0)
        return tec_fail(err, TEC_MALFORMED, "post_processor: special token '%.40s' is not defined",
                        name ? name : "");
    json_array_foreach(ids, i, id)
    {
        TEC_TRY(add_id(j->t, after, id, err));
    }
    return TEC_OK;
}

static enum tec_status read_template(struct tec_json *j, const json_t *whole, struct tec_error *err)
{
    const json_t *parts = json_object_get(whole, "single"), *part;
    size_t i, n_texts = 0;
    if (!json_is_array(parts))
        return tec_fail(err, TEC_UNSUPPORTED, "post_processor: \"single\" must be a list");
    json_array_foreach(parts, i, part)
    {
        const json_t *special = json_object_get(part, "SpecialToken");
        const json_t *text = json_object_get(part, "Sequence");
        const char *name = json_string_value(json_object_get(text, "id"));
        if (special)
            TEC_TRY(add_special(j, whole, special, n_texts > 0, err));
        else if (name && strcmp(name, "A") == 0)
            n_texts++;
        else
            return tec_fail(err, TEC_MALFORMED, "post_processor.single[%zu] is not known", i);
    }
    if (n_texts != 1)
        return tec_fail(err, TEC_MALFORMED, "post_processor: the template has %zu texts", n_texts);
    return TEC_OK;
}

/* Add the id of "cls", written ["<s>", 0], before the text and that of "sep" after it. */
static enum tec_status read_pair(struct tec_json *j, const json_t *whole, struct tec_error *err)
{
    TEC_TRY(add_id(j->t, false, json_array_get(json_object_get(whole, "cls"), 1), err));
    return add_id(j->t, true, json_array_get(json_object_get(whole, "sep"), 1), err);
}

static enum tec_status read_post(struct tec_json *j, const json_t *whole, struct tec_error *err)
{
    const char *type;
    TEC_TRY(tec_tokenizer_json_string(whole, "type", "post_processor", &type, err));
    if (type && strcmp(type, "TemplateProcessing") == 0)
        return read_template(j, whole, err);
    if (type && (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0))
        return read_pair(j, whole, err);
    if (type && strcmp(type, "ByteLevel") == 0)
        return TEC_OK; /* it only changes offsets, not ids */
    return tec_fail(err, TEC_UNSUPPORTED, "post_processor type %.40s is not known",
                    type ? type : "(missing)");
}

enum tec_status tec_tokenizer_json_template(struct tec_json *j, struct tec_error *err)
{
    const json_t *whole = json_object_get(j->root, "post_processor"), *step;
    const char *type;
    size_t i;
    if (!whole || json_is_null(whole))
        return TEC_OK;
    TEC_TRY(tec_tokenizer_json_string(whole, "type", "post_processor", &type, err));
    if (!type || strcmp(type, "Sequence") != 0)
        return read_post(j, whole, err);
    bool any = false;
    json_array_foreach(json_object_get(whole, "processors"), i, step)
    {
        if (any && (j->t->n_before || j->t->n_after))
            return tec_fail(err, TEC_UNSUPPORTED, "post_processor: steps after a template");
        TEC_TRY(read_post(j, step, err));
        any = true;
    }
    return TEC_OK;
}

/* The steps of a decoder must come in this order, each at most once. */
enum { ORDER_REPLACE = 1, ORDER_BYTES, ORDER_FUSE, ORDER_STRIP, ORDER_ALONE };

static enum tec_status read_replace(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    struct tec_decode *d = &j->t->decode;
    const char *from, *to;
    TEC_TRY(tec_tokenizer_json_string(json_object_get(step, "pattern"), "String", "decoder", &from,
                                      err));
    TEC_TRY(tec_tokenizer_json_string(step, "content", "decoder", &to, err));
    if (!from || *from == '\0' || !to || strlen(to) > 3 * strlen(from))
        return tec_fail(err, TEC_UNSUPPORTED, "decoder: Replace of this pattern");
    TEC_TRY(tec_tokenizer_json_text(j, from, strlen(from), &d->from, err));
    return tec_tokenizer_json_text(j, to, strlen(to), &d->to, err);
}

static enum tec_status read_strip(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    const char *content;
    const json_t *start = json_object_get(step, "start"), *stop = json_object_get(step, "stop");
    TEC_TRY(tec_tokenizer_json_string(step, "content", "decoder", &content, err));
    if (!content || strcmp(content, " ") != 0 || json_integer_value(stop) != 0 ||
        json_integer_value(start) < 0 || json_integer_value(start) > 1)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "decoder: Strip of anything but one leading space is not supported");
    j->t->decode.strip = json_integer_value(start) == 1;
    return TEC_OK;
}

static enum tec_status read_wordpiece(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    struct tec_decode *d = &j->t->decode;
    const char *prefix;
    d->kind = TEC_DECODE_WORDPIECE;
    TEC_TRY(tec_tokenizer_json_string(step, "prefix", "decoder", &prefix, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "cleanup", "decoder", true, &d->cleanup, err));
    prefix = prefix ? prefix : "##";
    return tec_tokenizer_json_text(j, prefix, strlen(prefix), &d->from, err);
}

static enum tec_status read_metaspace(struct tec_json *j, const json_t *step, struct tec_error *err)
{
    struct tec_decode *d = &j->t->decode;
    const char *replacement, *scheme;
    bool prefix;
    d->kind = TEC_DECODE_METASPACE;
    TEC_TRY(tec_tokenizer_json_string(step, "replacement", "decoder", &replacement, err));
    TEC_TRY(tec_tokenizer_json_string(step, "prepend_scheme", "decoder", &scheme, err));
    TEC_TRY(tec_tokenizer_json_bool(step, "add_prefix_space", "decoder", true, &prefix, err));
    if (!replacement || *replacement == '\0')
        return tec_fail(err, TEC_MALFORMED, "decoder: Metaspace without replacement");
    d->strip = scheme ? strcmp(scheme, "never") != 0 : prefix;
    return tec_tokenizer_json_text(j, replacement, strlen(replacement), &d->from, err);
}

static enum tec_status read_decoder(struct tec_json *j, const json_t *step, int *order,
                                    struct tec_error *err)
{
    static const struct {
        const char *type;
        int order;
        enum tec_status (*read)(struct tec_json *, const json_t *, struct tec_error *);
    } kinds[] = {
        {"Replace", ORDER_REPLACE, read_replace},
        {"ByteFallback", ORDER_BYTES, NULL},
        {"Fuse", ORDER_FUSE, NULL},
        {"Strip", ORDER_STRIP, read_strip},
        {"ByteLevel", ORDER_ALONE, NULL},
        {"WordPiece", ORDER_ALONE, read_wordpiece},
        {"Metaspace", ORDER_ALONE, read_metaspace},
    };
    struct tec_decode *d = &j->t->decode;
    const char *type;
    TEC_TRY(tec_tokenizer_json_string(step, "type", "decoder", &type, err));
    for (size_t i = 0; type && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        bool after_fuse = kinds[i].order != ORDER_STRIP || *order == ORDER_FUSE;
        bool alone = kinds[i].order != ORDER_ALONE || *order == 0;
        if (kinds[i].order <= *order || !after_fuse || !alone)
            return tec_fail(err, TEC_UNSUPPORTED, "decoder: %s is not supported there", type);
        *order = kinds[i].order;
        d->kind = *order != ORDER_ALONE ? TEC_DECODE_JOIN : TEC_DECODE_BYTES;
        d->byte_fallback |= *order == ORDER_BYTES;
        return kinds[i].read ? kinds[i].read(j, step, err) : TEC_OK;
    }
    return tec_fail(err, TEC_UNSUPPORTED, "decoder type %.40s is not known",
                    type ? type : "(missing)");
}

enum tec_status tec_tokenizer_json_decoder(struct tec_json *j, struct tec_error *err)
{
    const json_t *whole = json_object_get(j->root, "decoder"), *step;
    const char *type;
    size_t i;
    int order = 0;
    j->t->decode.kind = TEC_DECODE_SPACED;
    if (!whole || json_is_null(whole))
        return TEC_OK;
    TEC_TRY(tec_tokenizer_json_string(whole, "type", "decoder", &type, err));
    if (!type || strcmp(type, "Sequence") != 0)
        return read_decoder(j, whole, &order, err);
    j->t->decode.kind = TEC_DECODE_JOIN;
    json_array_foreach(json_object_get(whole, "decoders"), i, step)
    {
        TEC_TRY(read_decoder(j, step, &order, err));
    }
    return TEC_OK;
}

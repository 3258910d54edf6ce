/* text_input.c - takes a text input of an observation, as a text or as token ids, and checks
 * both.
 *
 * Runs on the session's thread; the readers of own and secondary models' prompts share it. Ids are
 * checked against the vocabulary even when a tokenizer made them: a tokenizer of another model
 * would otherwise index past the embedding. */
#include "graph/run/launch/text_input.h"

#include <limits.h>
#include <string.h>

const struct tec_value *tec_text_find(const struct tec_value *values, size_t n, const char *name,
                                      const char *tail)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (strncmp(values[i].name, name, length) == 0 &&
            strcmp(values[i].name + length, tail) == 0)
            return &values[i];
    return NULL;
}

enum tec_status tec_text_long(const char *name, size_t count, int most, struct tec_error *err)
{
    return tec_fail(err, TEC_INVALID,
                    "%s: %zu tokens, the pipeline allows %d: raise max_tokens or shorten it", name,
                    count, most);
}

enum tec_status tec_text_count_ids(const struct tec_value *v, int *n, struct tec_error *err)
{
    if (v->kind != TEC_VALUE_I32 || v->rank != 1 || v->shape[0] < 0 || v->shape[0] > INT_MAX ||
        v->bytes != (size_t)v->shape[0] * sizeof(int))
        return tec_fail(err, TEC_SHAPE, "%s: token ids are i32 [n]", v->name);
    *n = (int)v->shape[0];
    return TEC_OK;
}

enum tec_status tec_text_of(const struct tec_decl_input *in, const struct tec_value *v,
                            const char *initial, size_t most, const char *what, const char **text,
                            size_t *bytes, struct tec_error *err)
{
    const char *given = v ? v->data : initial;
    if (v && v->kind != TEC_VALUE_TEXT)
        return tec_fail(err, TEC_SHAPE, "%s: must be a text", in->name);
    if (!given && !v)
        return tec_fail(err, TEC_NOT_FOUND, "%s: missing: %s", in->name, what);
    *text = given ? given : "";
    *bytes = v ? v->bytes : strlen(*text);
    if (*bytes > most)
        return tec_fail(err, TEC_INVALID, "%s: %zu bytes, at most %zu", in->name, *bytes, most);
    return TEC_OK;
}

enum tec_status tec_text_check(const char *name, const int *ids, int n, int vocab, const char *why,
                               struct tec_error *err)
{
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return tec_fail(err, TEC_INVALID, "%s: token %d is %d, the model's vocabulary has %d%s",
                            name, i + 1, ids[i], vocab, why);
    return TEC_OK;
}

void tec_text_make_ids(int n, int vocab, int *ids)
{
    for (int i = 0; i < n; i++)
        ids[i] = vocab > 8 ? 3 + i % (vocab - 3) : 0;
}

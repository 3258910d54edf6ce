/* json_values.c - values of a tokenizer.json that is being read, as its sections want them. */
#include "base/text/json.h"

#include "base/text/utf8.h"

#include <string.h>

enum tec_status tec_tokenizer_json_text(const struct tec_json *j, const char *text, size_t n,
                                        struct tec_text_span *out, struct tec_error *err)
{
    char *copy = TEC_NEW(&j->t->arena, n + 1, char), nul[4];
    if (!copy)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a text of %zu bytes", n);
    size_t n_nul = j->nul ? tec_utf8_put(nul, j->nul) : 0, to = 0;
    for (size_t at = 0; at < n; to++) {
        bool hit = n_nul && n - at >= n_nul && memcmp(text + at, nul, n_nul) == 0;
        copy[to] = text[at];
        if (hit)
            copy[to] = '\0';
        at += hit ? n_nul : 1;
    }
    *out = (struct tec_text_span){copy, to};
    return TEC_OK;
}

enum tec_status tec_tokenizer_json_string(const json_t *object, const char *key, const char *where,
                                          const char **out, struct tec_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_null(value) && !json_is_string(value))
        return tec_fail(err, TEC_MALFORMED, "%s: \"%s\" must be a string", where, key);
    *out = json_string_value(value);
    return TEC_OK;
}

enum tec_status tec_tokenizer_json_bool(const json_t *object, const char *key, const char *where,
                                        bool other, bool *out, struct tec_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_null(value) && !json_is_boolean(value))
        return tec_fail(err, TEC_MALFORMED, "%s: \"%s\" must be true or false", where, key);
    *out = json_is_boolean(value) ? json_is_true(value) : other;
    return TEC_OK;
}

enum tec_status tec_tokenizer_json_steps(struct tec_json *j, const char *section, const char *list,
                                         tec_json_step *read, struct tec_error *err)
{
    const json_t *whole = json_object_get(j->root, section), *step;
    const char *type = NULL;
    size_t i;
    if (!whole || json_is_null(whole))
        return TEC_OK;
    TEC_TRY(tec_tokenizer_json_string(whole, "type", section, &type, err));
    if (!type || strcmp(type, "Sequence") != 0)
        return read(j, whole, err);
    const json_t *steps = json_object_get(whole, list);
    if (!json_is_array(steps))
        return tec_fail(err, TEC_MALFORMED, "%s: Sequence without %s", section, list);
    json_array_foreach(steps, i, step)
    {
        TEC_TRY(read(j, step, err));
    }
    return TEC_OK;
}

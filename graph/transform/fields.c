/* fields.c - reads JSON objects strictly: every field known, of its type and in its range.
 *
 * Runs at load, in all parsers of this folder. The first failure stays in struct tec_fields and
 * every later read returns its default, so a parser is a plain list of reads with one check at the
 * end. An unknown name is reported with the nearest known one. */
#include "graph/transform/fields.h"

#include "base/nearest.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tec_fields_fail(struct tec_fields *f, enum tec_status status, const char *format, ...)
{
    if (f->status != TEC_OK)
        return;
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->status = tec_fail(f->err, status, "%s: %s", f->where, text);
}

static void fail_unknown(struct tec_fields *f, const char *what, const char *name,
                         const char *const *names, size_t n)
{
    const char *near = tec_nearest(name, names, (int)n);
    tec_fields_fail(f, TEC_MALFORMED, "unknown %s '%.60s'%s", what, name,
                    tec_meant(';', near).text);
}

struct tec_fields tec_fields_open(const json_t *object, const char *const *names, size_t n,
                                  const char *where, struct tec_arena *arena, struct tec_error *err)
{
    struct tec_fields f = {object, where, arena, TEC_OK, err};
    if (!object || (json_is_array(object) && json_array_size(object) == 0)) {
        f.object = NULL;
        return f;
    }
    if (!json_is_object(object)) {
        f.object = NULL;
        tec_fields_fail(&f, TEC_MALFORMED, "must be a table of named fields");
        return f;
    }
    json_t *all = tec_json_iterable(object);
    for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it)) {
        const char *key = json_object_iter_key(it);
        size_t i = 0;
        while (i < n && strcmp(names[i], key) != 0)
            i++;
        if (i == n)
            fail_unknown(&f, "field", key, names, n);
    }
    return f;
}

const json_t *tec_fields_get(const struct tec_fields *f, const char *name)
{
    return f->object ? json_object_get(f->object, name) : NULL;
}

static const json_t *get(struct tec_fields *f, const char *name)
{
    return f->status == TEC_OK ? tec_fields_get(f, name) : NULL;
}

void tec_fields_need(struct tec_fields *f, const char *name)
{
    if (!tec_fields_get(f, name))
        tec_fields_fail(f, TEC_MALFORMED, "field '%s' is missing", name);
}

static const char *copy(struct tec_fields *f, const char *name, const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || !*text || strlen(text) != json_string_length(value)) {
        tec_fields_fail(f, TEC_MALFORMED, "'%s' must be a text that is not empty", name);
        return NULL;
    }
    const char *mine = tec_arena_strdup(f->arena, text);
    if (!mine)
        tec_fields_fail(f, TEC_NO_MEMORY, "no memory for '%s'", name);
    return mine;
}

const char *tec_fields_string(struct tec_fields *f, const char *name, const char *otherwise)
{
    const json_t *value = get(f, name);
    return value ? copy(f, name, value) : otherwise;
}

int tec_fields_int(struct tec_fields *f, const char *name, int low, int high, int otherwise)
{
    const json_t *value = get(f, name);
    if (!value)
        return otherwise;
    double x = json_number_value(value);
    if (!json_is_number(value) || !(x >= low && x <= high) || floor(x) != x) {
        tec_fields_fail(f, TEC_MALFORMED, "'%s' must be a whole number from %d to %d", name, low,
                        high);
        return otherwise;
    }
    return (int)x;
}

double tec_fields_number(struct tec_fields *f, const char *name, double otherwise)
{
    const json_t *value = get(f, name);
    if (!value)
        return otherwise;
    if (!json_is_number(value) || !isfinite(json_number_value(value))) {
        tec_fields_fail(f, TEC_MALFORMED, "'%s' must be a finite number", name);
        return otherwise;
    }
    return json_number_value(value);
}

bool tec_fields_bool(struct tec_fields *f, const char *name, bool otherwise)
{
    const json_t *value = get(f, name);
    if (value && !json_is_boolean(value))
        tec_fields_fail(f, TEC_MALFORMED, "'%s' must be true or false", name);
    return value ? json_is_true(value) : otherwise;
}

int tec_fields_word(struct tec_fields *f, const char *name, const char *const *words, size_t n,
                    int otherwise)
{
    const json_t *value = get(f, name);
    if (!value)
        return otherwise;
    const char *text = json_string_value(value);
    for (size_t i = 0; text && i < n; i++)
        if (strcmp(words[i], text) == 0)
            return (int)i;
    char what[80];
    snprintf(what, sizeof what, "word for '%s':", name);
    fail_unknown(f, what, text ? text : "(not a text)", words, n);
    return otherwise;
}

const json_t *tec_fields_list(struct tec_fields *f, const char *name, int most)
{
    const json_t *value = get(f, name);
    if (!value)
        return NULL;
    if (json_is_array(value) && json_array_size(value) <= (size_t)most)
        return value;
    tec_fields_fail(f, TEC_MALFORMED, "'%s' must be a list of at most %d", name, most);
    return NULL;
}

const double *tec_fields_numbers(struct tec_fields *f, const char *name, int most, int *n)
{
    const json_t *list = tec_fields_list(f, name, most);
    *n = 0;
    if (!list)
        return NULL;
    double *values = TEC_NEW(f->arena, json_array_size(list) + 1, double);
    if (!values) {
        tec_fields_fail(f, TEC_NO_MEMORY, "no memory for '%s'", name);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        values[i] = json_number_value(value);
        if (!json_is_number(value) || !isfinite(values[i]))
            tec_fields_fail(f, TEC_MALFORMED, "'%s[%zu]' must be a finite number", name, i + 1);
    }
    *n = (int)json_array_size(list);
    return values;
}

const char **tec_fields_strings(struct tec_fields *f, const char *name, int most, int *n)
{
    const json_t *list = tec_fields_list(f, name, most);
    *n = 0;
    if (!list)
        return NULL;
    const char **texts = TEC_NEW(f->arena, json_array_size(list) + 1, const char *);
    if (!texts) {
        tec_fields_fail(f, TEC_NO_MEMORY, "no memory for '%s'", name);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(list) && f->status == TEC_OK; i++)
        texts[i] = copy(f, name, json_array_get(list, i));
    *n = (int)json_array_size(list);
    return texts;
}

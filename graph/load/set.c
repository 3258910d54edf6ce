/* set.c - one field of a struct from one value that is no struct: type, range, words. */
#include "graph/load/loader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *member(void *out, const struct tec_field *f)
{
    return (char *)out + f->offset;
}

static bool is_name(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > 100 || s[0] == '/' || strstr(s, ".."))
        return false;
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == n;
}

static void set_text(struct tec_loader *ld, const struct tec_field *f,
                     const struct tec_decl_entry *e, void *out)
{
    const struct tec_decl_value *v = e->value;
    if (v->kind != TEC_VALUE_STRING || (f->type == TEC_FIELD_NAME && !is_name(v->string)))
        tec_set_wrong(ld, f, e);
    else
        memcpy(member(out, f), &v->string, sizeof v->string);
}

static bool as_number(const struct tec_decl_value *v, double *number)
{
    if (v->kind == TEC_VALUE_INT)
        *number = (double)v->integer;
    else if (v->kind == TEC_VALUE_NUMBER)
        *number = v->number;
    return v->kind == TEC_VALUE_INT || v->kind == TEC_VALUE_NUMBER;
}

/* An integer, also one that was computed as 5.0. */
static bool as_integer(const struct tec_decl_value *v, double *number)
{
    return as_number(v, number) && *number == floor(*number) && fabs(*number) < 1e15;
}

static void set_number(struct tec_loader *ld, const struct tec_field *f,
                       const struct tec_decl_entry *e, void *out)
{
    double number = 0;
    bool whole = f->type != TEC_FIELD_NUMBER;
    bool good = whole ? as_integer(e->value, &number) : as_number(e->value, &number);
    if (!good || !(number >= f->min && number <= f->max)) {
        struct tec_diagnostic *d = tec_set_wrong(ld, f, e);
        if (f->owner == TEC_CON_pipeline && f->max <= 1 && good)
            tec_diagnostics_help(ld->d, d, "this version of tectum reads schema %d",
                                 TEC_PIPELINE_SCHEMA);
        return;
    }
    if (f->type == TEC_FIELD_INT)
        *(int *)member(out, f) = (int)number;
    else if (f->type == TEC_FIELD_INT64)
        *(int64_t *)member(out, f) = (int64_t)number;
    else
        *(double *)member(out, f) = number;
}

static bool parse_bytes(const char *text, double *bytes)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"B", 1},     {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824},
                 {"KB", 1e3},  {"MB", 1e6},   {"GB", 1e9},      {"TiB", 1099511627776.0},
                 {"TB", 1e12}, {"", 1}};
    char *end;
    if (text[0] < '0' || text[0] > '9' || strlen(text) > 40)
        return false;
    *bytes = strtod(text, &end);
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *bytes = floor(*bytes * units[i].factor);
            return true;
        }
    }
    return false;
}

static void set_bytes(struct tec_loader *ld, const struct tec_field *f,
                      const struct tec_decl_entry *e, void *out)
{
    double bytes = 0;
    bool good = e->value->kind == TEC_VALUE_STRING ? parse_bytes(e->value->string, &bytes)
                                                   : as_integer(e->value, &bytes);
    if (!good || !(bytes >= f->min && bytes <= f->max)) {
        struct tec_diagnostic *d = tec_set_wrong(ld, f, e);
        if (good)
            tec_diagnostics_help(ld->d, d, "the range is %.0f to %.0f bytes", f->min, f->max);
        return;
    }
    *(int64_t *)member(out, f) = (int64_t)bytes;
}

static void set_word(struct tec_loader *ld, const struct tec_field *f,
                     const struct tec_decl_entry *e, void *out)
{
    const struct tec_decl_value *v = e->value;
    int value = v->kind == TEC_VALUE_STRING ? tec_load_word_value(f->words, v->string) : -1;
    if (value >= 0) {
        *(int *)member(out, f) = value;
        return;
    }
    struct tec_diagnostic *d = tec_set_wrong(ld, f, e);
    const char *names[16];
    int n = 0;
    while (n < 16 && f->words[n].word) {
        names[n] = f->words[n].word;
        n++;
    }
    if (v->kind == TEC_VALUE_STRING)
        tec_diagnostics_meant(ld->d, d, v->string, names, n);
}

static bool is_call(const struct tec_decl_value *v, enum tec_constructor tag)
{
    return v->kind == TEC_VALUE_TABLE && v->tag == tag;
}

static bool set_ref(const struct tec_decl_entry *e, struct tec_ref *ref, bool may_be_prev)
{
    const struct tec_decl_value *v = e->value;
    *ref = (struct tec_ref){.index = -1};
    ref->prev = may_be_prev && is_call(v, TEC_CON_prev);
    const char *name = ref->prev                     ? tec_decl_value_string(v, "name")
                       : v->kind == TEC_VALUE_STRING ? v->string
                                                     : NULL;
    if (name && is_name(name))
        ref->name = name;
    return ref->name != NULL;
}

static void set_refs(struct tec_loader *ld, const struct tec_field *f,
                     const struct tec_decl_entry *e, void *out)
{
    const struct tec_decl_value *v = e->value;
    if (v->kind != TEC_VALUE_LIST || v->n < f->min || v->n > f->max) {
        tec_set_wrong(ld, f, e);
        return;
    }
    struct tec_ref *item = TEC_NEW(ld->arena, (size_t)v->n, struct tec_ref);
    struct tec_refs *refs = member(out, f);
    if (!tec_loader_has(ld, item))
        return;
    bool read = strcmp(f->name, "reads") == 0;
    for (int i = 0; i < v->n; i++)
        if (!set_ref(&v->entries[i], &item[i], read))
            tec_set_wrong(ld, f, &v->entries[i]);
    *refs = (struct tec_refs){v->n, item};
}

/* A list of numbers; a wrong item is reported at its place. */
static void set_list(struct tec_loader *ld, const struct tec_field *f,
                     const struct tec_decl_entry *e, void *out)
{
    const struct tec_decl_value *v = e->value;
    int most = f->type == TEC_FIELD_SHAPE ? TEC_MAX_RANK : TEC_MAX_POINTS;
    bool whole = f->type != TEC_FIELD_RATIOS, rises = f->type != TEC_FIELD_SHAPE;
    if (v->kind != TEC_VALUE_LIST || v->n > most || (v->n == 0 && !rises)) {
        struct tec_diagnostic *d = tec_set_wrong(ld, f, e);
        tec_diagnostics_help(ld->d, d, "write it as { 1, 2 }, with at most %d of them", most);
        return;
    }
    int *ints = TEC_NEW(ld->arena, (size_t)v->n + 1, int);
    double *numbers = TEC_NEW(ld->arena, (size_t)v->n + 1, double), before = -1, x = 0;
    if (!tec_loader_has(ld, ints && numbers))
        return;
    for (int i = 0; i < v->n; i++) {
        const struct tec_decl_entry *item = &v->entries[i];
        bool good = whole ? as_integer(item->value, &x) : as_number(item->value, &x);
        if (!good || !(x >= f->min && x <= f->max) || (rises && x <= before)) {
            tec_set_wrong(ld, f, item);
            return;
        }
        before = x;
        numbers[i] = x;
        ints[i] = whole ? (int)x : 0;
    }
    if (whole)
        *(struct tec_ints *)member(out, f) = (struct tec_ints){v->n, ints};
    else
        *(struct tec_numbers *)member(out, f) = (struct tec_numbers){v->n, numbers};
}

/* Texts without a byte have no tokens. */
static void set_texts(struct tec_loader *ld, const struct tec_field *f,
                      const struct tec_decl_entry *e, void *out)
{
    const struct tec_decl_value *v = e->value;
    const char *owner = tec_constructors[f->owner].word;
    if (v->kind != TEC_VALUE_LIST || v->n < (int)f->min || v->n > (int)f->max) {
        struct tec_diagnostic *d =
            v->kind != TEC_VALUE_LIST
                ? tec_set_wrong(ld, f, e)
                : tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, e),
                                      "field '%s' of %s has %d texts", f->name, owner, v->n);
        tec_diagnostics_help(ld->d, d, "write it as { \" one\", \" two\" }, %.0f to %.0f of them",
                             f->min, f->max);
        return;
    }
    const char **item = TEC_NEW(ld->arena, (size_t)v->n, const char *);
    if (!tec_loader_has(ld, item))
        return;
    for (int i = 0; i < v->n; i++) {
        const struct tec_decl_value *text = v->entries[i].value;
        if (text->kind != TEC_VALUE_STRING || !text->string[0]) {
            if (text->kind != TEC_VALUE_BAD)
                tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, &v->entries[i]),
                                    "entry %d of '%s' of %s must be a text in quotes, not empty; "
                                    "is %s",
                                    i + 1, f->name, owner, tec_decl_value_describe(ld, text));
            return;
        }
        item[i] = text->string;
    }
    *(struct tec_texts *)member(out, f) = (struct tec_texts){v->n, item};
}

/* One text may be empty: it stands for none. */
static void set_stops(struct tec_loader *ld, const struct tec_field *f,
                      const struct tec_decl_entry *e, void *out)
{
    if (e->value->kind != TEC_VALUE_STRING) {
        set_texts(ld, f, e, out);
        return;
    }
    const char **item = TEC_NEW(ld->arena, 1, const char *);
    if (!tec_loader_has(ld, item))
        return;
    item[0] = e->value->string;
    *(struct tec_texts *)member(out, f) = (struct tec_texts){1, item};
}

static void set_out(struct tec_loader *ld, const struct tec_field *f,
                    const struct tec_decl_entry *e, void *out)
{
    struct tec_decl_out *place = member(out, f);
    const struct tec_decl_value *v = e->value;
    place->stream = is_call(v, TEC_CON_stream);
    const char *name = place->stream                 ? tec_decl_value_string(v, "name")
                       : v->kind == TEC_VALUE_STRING ? v->string
                                                     : NULL;
    if (name && is_name(name))
        place->name = name;
    else
        tec_set_wrong(ld, f, e);
    if (place->stream)
        tec_set_stream(ld, e, place);
}

static void set_spawn(struct tec_loader *ld, const struct tec_field *f,
                      const struct tec_decl_entry *e, void *out)
{
    struct tec_decl_spawn *spawn = member(out, f);
    const struct tec_decl_entry *frames = tec_decl_value_find(e->value, "frames");
    double n = 0;
    if (is_call(e->value, TEC_CON_on_request)) {
        spawn->kind = TEC_SPAWN_ON_REQUEST;
    } else if (is_call(e->value, TEC_CON_on_change)) {
        const struct tec_decl_entry *value = tec_decl_value_find(e->value, "name");
        *spawn = (struct tec_decl_spawn){.kind = TEC_SPAWN_ON_CHANGE,
                                         .value = value ? tec_decl_value_string(e->value, "name")
                                                        : NULL};
        if (value && (!spawn->value || !is_name(spawn->value)))
            tec_set_wrong(ld, f, e);
    } else if (is_call(e->value, TEC_CON_every) && frames && as_integer(frames->value, &n) &&
               n >= 1 && n <= INT32_MAX) {
        *spawn = (struct tec_decl_spawn){TEC_SPAWN_EVERY, (int)n, NULL};
    } else {
        struct tec_diagnostic *d = tec_set_wrong(ld, f, e);
        tec_diagnostics_help(ld->d, d, "n counts frames, from 1 to %d", INT32_MAX);
    }
}

static void set_object(struct tec_loader *ld, const struct tec_field *f,
                       const struct tec_decl_entry *e, void *out)
{
    const struct tec_decl_value *v = e->value;
    bool empty = v->kind == TEC_VALUE_LIST && v->n == 0;
    if (v->kind != TEC_VALUE_TABLE && !empty) {
        tec_set_wrong(ld, f, e);
        return;
    }
    json_t *object = empty ? json_object() : tec_decl_value_to_json(v);
    ld->out_of_memory |= object == NULL;
    *(const json_t **)member(out, f) = object;
}

static void set_bool(struct tec_loader *ld, const struct tec_field *f,
                     const struct tec_decl_entry *e, void *out)
{
    if (e->value->kind == TEC_VALUE_BOOL)
        *(bool *)member(out, f) = e->value->flag;
    else
        tec_set_wrong(ld, f, e);
}

static void set_reference(struct tec_loader *ld, const struct tec_field *f,
                          const struct tec_decl_entry *e, void *out)
{
    if (!set_ref(e, member(out, f), strcmp(f->name, "kv") == 0))
        tec_set_wrong(ld, f, e);
}

static void set_when(struct tec_loader *ld, const struct tec_field *f,
                     const struct tec_decl_entry *e, void *out)
{
    *(bool *)member(out, f) = is_call(e->value, TEC_CON_when);
    if (!is_call(e->value, TEC_CON_when))
        tec_set_wrong(ld, f, e);
}

/* One setter a type, but for those of structs, which build.c fills. */
static void (*const setters[TEC_FIELD_THINGS])(struct tec_loader *ld, const struct tec_field *f,
                                               const struct tec_decl_entry *e, void *out) = {
    [TEC_FIELD_NAME] = set_text,         [TEC_FIELD_STRING] = set_text,
    [TEC_FIELD_INT] = set_number,        [TEC_FIELD_INT64] = set_number,
    [TEC_FIELD_NUMBER] = set_number,     [TEC_FIELD_BOOL] = set_bool,
    [TEC_FIELD_BYTES] = set_bytes,       [TEC_FIELD_WORD] = set_word,
    [TEC_FIELD_REF] = set_reference,     [TEC_FIELD_REFS] = set_refs,
    [TEC_FIELD_TEXTS] = set_texts,       [TEC_FIELD_STOPS] = set_stops,
    [TEC_FIELD_SHAPE] = set_list,        [TEC_FIELD_AXIS] = set_list,
    [TEC_FIELD_RATIOS] = set_list,       [TEC_FIELD_OUT] = set_out,
    [TEC_FIELD_SPAWN] = set_spawn,       [TEC_FIELD_WHEN] = set_when,
    [TEC_FIELD_OBJECT] = set_object,     [TEC_FIELD_ROBOT] = tec_set_robot,
    [TEC_FIELD_ROBOTS] = tec_set_robots,
};

void tec_set_field(struct tec_loader *ld, const struct tec_field *f, const struct tec_decl_entry *e,
                   void *out)
{
    setters[f->type](ld, f, e, out);
}

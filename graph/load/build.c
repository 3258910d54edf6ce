/* build.c - values to structs by the field tables: names, types, ranges, defaults. */
#include "base/nearest.h"
#include "graph/load/loader.h"
#include "graph/transform/robot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct tec_loader *ld, enum tec_constructor con, const struct tec_entry *thing,
                 void *out);

static void *member(void *out, const struct tec_field *f)
{
    return (char *)out + f->offset;
}

static void set_int(void *out, size_t offset, int value)
{
    memcpy((char *)out + offset, &value, sizeof value);
}

/* "an integer from 1 to 64", for messages. */
static const char *expected(struct tec_loader *ld, const struct tec_field *f)
{
    const char *text = NULL;
    switch (f->type) {
    case TEC_FIELD_NAME:
        return "a name (letters, digits and _ - . /)";
    case TEC_FIELD_STRING:
        return "a text in quotes";
    case TEC_FIELD_INT:
    case TEC_FIELD_INT64:
        text = tec_arena_printf(ld->scratch, "an integer from %.0f to %.0f", f->min, f->max);
        if (f->min >= f->max)
            text = tec_arena_printf(ld->scratch, "%.0f", f->min);
        break;
    case TEC_FIELD_NUMBER:
        text = tec_arena_printf(ld->scratch, "a number from %g to %.12g", f->min, f->max);
        break;
    case TEC_FIELD_BOOL:
        return "true or false";
    case TEC_FIELD_BYTES:
        return "a number of bytes, such as \"9GiB\" or \"512KiB\"";
    case TEC_FIELD_WORD:
    case TEC_FIELD_ONE:
    case TEC_FIELD_THINGS:
        break;
    case TEC_FIELD_REF:
        return "the name of a declared thing";
    case TEC_FIELD_REFS:
        return "a list of names";
    case TEC_FIELD_SHAPE:
        text = tec_arena_printf(ld->scratch, "a list of 1 to %d sizes from %.0f to %.0f",
                                TEC_MAX_RANK, f->min, f->max);
        break;
    case TEC_FIELD_AXIS:
        text = tec_arena_printf(ld->scratch, "an ascending list of integers from %.0f to %.0f",
                                f->min, f->max);
        break;
    case TEC_FIELD_RATIOS:
        text = tec_arena_printf(ld->scratch, "an ascending list of numbers from %g to %g", f->min,
                                f->max);
        break;
    case TEC_FIELD_OUT:
        return "the name of a buffer, or stream \"name\"";
    case TEC_FIELD_SPAWN:
        return "every(n) or on_request()";
    case TEC_FIELD_WHEN:
        return "policy()";
    case TEC_FIELD_OBJECT:
        return "a table";
    case TEC_FIELD_ROBOT:
        return "the path of a robot description, or a table";
    }
    char words[200] = "";
    for (const struct tec_word *w = f->words; f->words && w->word; w++) {
        size_t n = strlen(words);
        bool thing = f->type != TEC_FIELD_WORD;
        snprintf(words + n, sizeof words - n, "%s%s%s", n ? ", " : "", w->word,
                 thing ? " { }" : "");
    }
    if (words[0])
        text = tec_arena_printf(ld->scratch, "%s%s", f->words[1].word ? "one of " : "", words);
    return text ? text : "something else";
}

static struct tec_diagnostic *wrong(struct tec_loader *ld, const struct tec_field *f,
                                    const struct tec_entry *e)
{
    if (e->value->kind == TEC_VALUE_BAD)
        return NULL;
    return tec_diagnostics_add(
        ld->d, TEC_E011, tec_where_value(ld, e), "field '%s' of %s must be %s, is %s", f->name,
        tec_constructors[f->owner].word, expected(ld, f), tec_value_describe(ld, e->value));
}

static bool is_name(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > 100 || s[0] == '/' || strstr(s, ".."))
        return false;
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == n;
}

static void set_text(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                     void *out)
{
    const struct tec_value *v = e->value;
    if (v->kind != TEC_VALUE_STRING || (f->type == TEC_FIELD_NAME && !is_name(v->string)))
        wrong(ld, f, e);
    else
        memcpy(member(out, f), &v->string, sizeof v->string);
}

static bool as_number(const struct tec_value *v, double *number)
{
    if (v->kind == TEC_VALUE_INT)
        *number = (double)v->integer;
    else if (v->kind == TEC_VALUE_NUMBER)
        *number = v->number;
    return v->kind == TEC_VALUE_INT || v->kind == TEC_VALUE_NUMBER;
}

/* An integer, also one that was computed as 5.0. */
static bool as_integer(const struct tec_value *v, double *number)
{
    return as_number(v, number) && *number == floor(*number) && fabs(*number) < 1e15;
}

static void set_number(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                       void *out)
{
    double number = 0;
    bool whole = f->type != TEC_FIELD_NUMBER;
    bool good = whole ? as_integer(e->value, &number) : as_number(e->value, &number);
    if (!good || !(number >= f->min && number <= f->max)) {
        struct tec_diagnostic *d = wrong(ld, f, e);
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

static void set_bytes(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                      void *out)
{
    double bytes = 0;
    bool good = e->value->kind == TEC_VALUE_STRING ? parse_bytes(e->value->string, &bytes)
                                                   : as_integer(e->value, &bytes);
    if (!good || !(bytes >= f->min && bytes <= f->max)) {
        struct tec_diagnostic *d = wrong(ld, f, e);
        if (good)
            tec_diagnostics_help(ld->d, d, "the range is %.0f to %.0f bytes", f->min, f->max);
        return;
    }
    *(int64_t *)member(out, f) = (int64_t)bytes;
}

static const char *nearest_word(const struct tec_word *words, const char *word)
{
    const char *names[16];
    int n = 0;
    for (; words->word && n < 16; words++)
        names[n++] = words->word;
    return tec_nearest(word, names, n);
}

static void set_word(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                     void *out)
{
    const struct tec_value *v = e->value;
    int value = v->kind == TEC_VALUE_STRING ? tec_word_value(f->words, v->string) : -1;
    if (value >= 0) {
        *(int *)member(out, f) = value;
        return;
    }
    struct tec_diagnostic *d = wrong(ld, f, e);
    const char *near = v->kind == TEC_VALUE_STRING ? nearest_word(f->words, v->string) : NULL;
    if (near)
        tec_diagnostics_help(ld->d, d, "did you mean '%s'?", near);
}

static bool is_call(const struct tec_value *v, enum tec_constructor tag)
{
    return v->kind == TEC_VALUE_TABLE && v->tag == tag;
}

static bool set_ref(const struct tec_entry *e, struct tec_ref *ref, bool may_be_prev)
{
    const struct tec_value *v = e->value;
    *ref = (struct tec_ref){.index = -1};
    ref->prev = may_be_prev && is_call(v, TEC_CON_prev);
    const char *name = ref->prev                     ? tec_value_string(v, "name")
                       : v->kind == TEC_VALUE_STRING ? v->string
                                                     : NULL;
    if (name && is_name(name))
        ref->name = name;
    return ref->name != NULL;
}

static void set_refs(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                     void *out)
{
    const struct tec_value *v = e->value;
    if (v->kind != TEC_VALUE_LIST || v->n < f->min || v->n > f->max) {
        wrong(ld, f, e);
        return;
    }
    struct tec_ref *item = TEC_NEW(ld->arena, (size_t)v->n, struct tec_ref);
    struct tec_refs *refs = member(out, f);
    if (!item) {
        ld->out_of_memory = true;
        return;
    }
    for (int i = 0; i < v->n; i++)
        if (!set_ref(&v->entries[i], &item[i], false))
            wrong(ld, f, &v->entries[i]);
    *refs = (struct tec_refs){v->n, item};
}

/* A list of numbers; a wrong item is reported at its place. */
static void set_list(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                     void *out)
{
    const struct tec_value *v = e->value;
    int most = f->type == TEC_FIELD_SHAPE ? TEC_MAX_RANK : TEC_MAX_POINTS;
    bool whole = f->type != TEC_FIELD_RATIOS, rises = f->type != TEC_FIELD_SHAPE;
    if (v->kind != TEC_VALUE_LIST || v->n > most || (v->n == 0 && !rises)) {
        struct tec_diagnostic *d = wrong(ld, f, e);
        tec_diagnostics_help(ld->d, d, "write it as { 1, 2 }, with at most %d of them", most);
        return;
    }
    int *ints = TEC_NEW(ld->arena, (size_t)v->n + 1, int);
    double *numbers = TEC_NEW(ld->arena, (size_t)v->n + 1, double), before = -1, x = 0;
    if (!ints || !numbers) {
        ld->out_of_memory = true;
        return;
    }
    for (int i = 0; i < v->n; i++) {
        const struct tec_entry *item = &v->entries[i];
        bool good = whole ? as_integer(item->value, &x) : as_number(item->value, &x);
        if (!good || !(x >= f->min && x <= f->max) || (rises && x <= before)) {
            wrong(ld, f, item);
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

/* The constructor that a value went through, if it is among the words; a plain table counts where
 * there is one only. */
static enum tec_constructor choose(const struct tec_field *f, const struct tec_value *v)
{
    bool table = v->kind == TEC_VALUE_TABLE || (v->kind == TEC_VALUE_LIST && v->n == 0);
    if (!table)
        return TEC_CON_NONE;
    if (v->tag == TEC_CON_NONE && !f->words[1].word)
        return (enum tec_constructor)f->words[0].value;
    for (const struct tec_word *w = f->words; w->word; w++)
        if (w->value == (int)v->tag)
            return v->tag;
    return TEC_CON_NONE;
}

static void set_one(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                    void *out)
{
    enum tec_constructor con = choose(f, e->value);
    if (con == TEC_CON_NONE)
        wrong(ld, f, e);
    else
        fill(ld, con, e, member(out, f));
}

static void set_out(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                    void *out)
{
    struct tec_decl_out *place = member(out, f);
    const struct tec_value *v = e->value;
    place->stream = is_call(v, TEC_CON_stream);
    const char *name = place->stream                 ? tec_value_string(v, "name")
                       : v->kind == TEC_VALUE_STRING ? v->string
                                                     : NULL;
    if (name && is_name(name))
        place->name = name;
    else
        wrong(ld, f, e);
}

static void set_spawn(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                      void *out)
{
    struct tec_decl_spawn *spawn = member(out, f);
    const struct tec_entry *frames = tec_value_find(e->value, "frames");
    double n = 0;
    if (is_call(e->value, TEC_CON_on_request)) {
        spawn->kind = TEC_SPAWN_ON_REQUEST;
    } else if (is_call(e->value, TEC_CON_every) && frames && as_integer(frames->value, &n) &&
               n >= 1 && n <= 1e6) {
        *spawn = (struct tec_decl_spawn){TEC_SPAWN_EVERY, (int)n};
    } else {
        struct tec_diagnostic *d = wrong(ld, f, e);
        tec_diagnostics_help(ld->d, d, "n counts frames, from 1 to 1000000");
    }
}

static void set_object(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                       void *out)
{
    const struct tec_value *v = e->value;
    bool empty = v->kind == TEC_VALUE_LIST && v->n == 0;
    if (v->kind != TEC_VALUE_TABLE && !empty) {
        wrong(ld, f, e);
        return;
    }
    json_t *object = empty ? json_object() : tec_value_to_json(v);
    ld->out_of_memory |= object == NULL;
    memcpy(member(out, f), &object, sizeof object);
}

/* The description's own checks say what is wrong with it. */
static void check_robot(struct tec_loader *ld, const struct tec_entry *e)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_entry *variant = tec_value_find(ld->root, "variant");
    const char *name =
        variant && variant->value->kind == TEC_VALUE_STRING ? variant->value->string : NULL;
    const char *where = p->robot_path ? p->robot_path : "robot";
    struct tec_error why = {TEC_OK, ""};
    struct tec_robot *robot;
    enum tec_status status = tec_robot_parse(&robot, p->robot, name, where, ld->scratch, &why);
    ld->out_of_memory |= status == TEC_NO_MEMORY;
    if (status == TEC_NOT_FOUND && name)
        tec_diagnostics_add(ld->d, TEC_E021, tec_where_value(ld, variant), "%s", why.message);
    else if (status != TEC_OK)
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, e), "%s", why.message);
}

static void set_robot(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                      struct tec_pipeline *p)
{
    struct tec_error why = {TEC_OK, ""};
    if (e->value->kind != TEC_VALUE_STRING) {
        set_object(ld, f, e, p);
    } else if (tec_loader_robot(ld, e->value->string, &why) != TEC_OK) {
        ld->out_of_memory |= why.status == TEC_NO_MEMORY;
        tec_diagnostics_add(ld->d, why.status == TEC_NOT_FOUND ? TEC_E021 : TEC_E001,
                            tec_where_value(ld, e), "%s", why.message);
    }
    if (p->robot)
        check_robot(ld, e);
}

/* References that are not given have the index -1, in every kind of the struct. */
static void clear_refs(const struct tec_word *words, void *out)
{
    for (const struct tec_word *w = words; w->word; w++) {
        enum tec_constructor con = (enum tec_constructor)w->value;
        for (const struct tec_field *f = tec_fields_of(con); tec_field_more(f, con); f++) {
            if (f->type == TEC_FIELD_REF)
                ((struct tec_ref *)member(out, f))->index = -1;
            if (f->type == TEC_FIELD_OUT)
                ((struct tec_decl_out *)member(out, f))->buffer = -1;
        }
    }
}

/* Which list a field fills: enum of loader.h. */
static int scope_of(const char *name)
{
    static const char *const names[TEC_SCOPES] = {"models", "inputs", "resources", "nodes",
                                                  "partitions"};
    int scope = 0;
    while (scope < TEC_SCOPES - 1 && strcmp(names[scope], name) != 0)
        scope++;
    return scope;
}

static const struct tec_entry **things_of(struct tec_loader *ld, int scope)
{
    const struct tec_entry **lists[TEC_SCOPES] = {&ld->models, &ld->inputs, &ld->resources,
                                                  &ld->nodes, &ld->partitions};
    return lists[scope];
}

/* One item of a list of things. False when it is not one; that was reported. */
static bool set_thing(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                      void *out)
{
    enum tec_constructor con = choose(f, e->value);
    clear_refs(f->words, out);
    if (con != TEC_CON_NONE) {
        fill(ld, con, e, out);
        return true;
    }
    if (e->value->kind == TEC_VALUE_BAD)
        return false;
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E011, tec_where_value(ld, e), "item %d of '%s' must be %s, is %s", e->item + 1,
        f->name, expected(ld, f), tec_value_describe(ld, e->value));
    if (e->value->tag == TEC_CON_without)
        tec_diagnostics_help(ld->d, d, "without works in the lists of extend(...)");
    return false;
}

/* The list keeps the items that are things; the values behind them are kept beside. */
static void set_things(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                       void *out)
{
    const struct tec_value *v = e->value;
    size_t size = tec_constructors[f->words[0].value].size;
    int scope = scope_of(f->name);
    ld->torn[scope] = true;
    if (v->kind != TEC_VALUE_LIST) {
        wrong(ld, f, e);
        return;
    }
    if (v->n > (int)f->max) {
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, e),
                            "'%s' has %d items, the most is %.0f", f->name, v->n, f->max);
        return;
    }
    char *list = tec_arena_push(ld->arena, (size_t)v->n + 1, size, 16);
    struct tec_entry *kept = TEC_NEW(ld->scratch, (size_t)v->n + 1, struct tec_entry);
    if (!list || !kept) {
        ld->out_of_memory = true;
        return;
    }
    int n = 0;
    for (int i = 0; i < v->n; i++) {
        kept[n] = v->entries[i];
        n += set_thing(ld, f, &v->entries[i], list + (size_t)n * size);
    }
    memcpy(member(out, f), &list, sizeof list);
    set_int(out, f->count_offset, n);
    *things_of(ld, scope) = kept;
    ld->torn[scope] = n < v->n;
}

static void set_field(struct tec_loader *ld, const struct tec_field *f, const struct tec_entry *e,
                      void *out)
{
    switch (f->type) {
    case TEC_FIELD_NAME:
    case TEC_FIELD_STRING:
        set_text(ld, f, e, out);
        break;
    case TEC_FIELD_INT:
    case TEC_FIELD_INT64:
    case TEC_FIELD_NUMBER:
        set_number(ld, f, e, out);
        break;
    case TEC_FIELD_BOOL:
        if (e->value->kind == TEC_VALUE_BOOL)
            *(bool *)member(out, f) = e->value->flag;
        else
            wrong(ld, f, e);
        break;
    case TEC_FIELD_BYTES:
        set_bytes(ld, f, e, out);
        break;
    case TEC_FIELD_WORD:
        set_word(ld, f, e, out);
        break;
    case TEC_FIELD_REF:
        if (!set_ref(e, member(out, f), strcmp(f->name, "kv") == 0))
            wrong(ld, f, e);
        break;
    case TEC_FIELD_REFS:
        set_refs(ld, f, e, out);
        break;
    case TEC_FIELD_SHAPE:
    case TEC_FIELD_AXIS:
    case TEC_FIELD_RATIOS:
        set_list(ld, f, e, out);
        break;
    case TEC_FIELD_ONE:
        set_one(ld, f, e, out);
        break;
    case TEC_FIELD_OUT:
        set_out(ld, f, e, out);
        break;
    case TEC_FIELD_SPAWN:
        set_spawn(ld, f, e, out);
        break;
    case TEC_FIELD_WHEN:
        *(bool *)member(out, f) = is_call(e->value, TEC_CON_when);
        if (!is_call(e->value, TEC_CON_when))
            wrong(ld, f, e);
        break;
    case TEC_FIELD_OBJECT:
        set_object(ld, f, e, out);
        break;
    case TEC_FIELD_ROBOT:
        set_robot(ld, f, e, out);
        break;
    case TEC_FIELD_THINGS:
        set_things(ld, f, e, out);
        break;
    }
}

/* A default goes the same way as a value of the file. */
static void set_standard(struct tec_loader *ld, const struct tec_field *f,
                         const struct tec_entry *thing, void *out)
{
    struct tec_value v = {.kind = TEC_VALUE_STRING, .open = -1, .string = f->standard};
    struct tec_entry e = *thing;
    e.value = &v;
    char *end;
    double number = strtod(f->standard, &end);
    if (*end == '\0') {
        v.kind = TEC_VALUE_NUMBER;
        v.number = number;
    } else if (f->type == TEC_FIELD_BOOL) {
        v.kind = TEC_VALUE_BOOL;
        v.flag = strcmp(f->standard, "true") == 0;
    } else if (f->type == TEC_FIELD_ONE) {
        v.kind = TEC_VALUE_LIST; /* "{}" */
    }
    set_field(ld, f, &e, out);
}

static void unknown_field(struct tec_loader *ld, enum tec_constructor con,
                          const struct tec_entry *e)
{
    const char *names[32];
    int n = 0;
    for (const struct tec_field *f = tec_fields_of(con); tec_field_more(f, con) && n < 32; f++)
        names[n++] = f->name;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E010, tec_where_key(ld, e), "unknown field '%.80s' in %s",
                            e->key, tec_constructors[con].word);
    const char *near = tec_nearest(e->key, names, n);
    if (!near)
        return;
    tec_diagnostics_help(ld->d, d, "did you mean '%s'?", near);
    if (ld->n_misspelt < (int)(sizeof ld->misspelt / sizeof ld->misspelt[0]))
        ld->misspelt[ld->n_misspelt++] = tec_field_find(con, near);
}

bool tec_build_misspelt(const struct tec_loader *ld, enum tec_constructor con, const char *field)
{
    const struct tec_field *f = tec_field_find(con, field);
    for (int i = 0; i < ld->n_misspelt; i++)
        if (ld->misspelt[i] == f)
            return true;
    return false;
}

static void missing_field(struct tec_loader *ld, const struct tec_field *f,
                          const struct tec_entry *thing, int first_misspelt)
{
    for (int i = first_misspelt; i < ld->n_misspelt; i++)
        if (ld->misspelt[i] == f)
            return;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E012, tec_where_thing(ld, thing), "missing field '%s' in %s",
                            f->name, tec_constructors[f->owner].word);
    tec_diagnostics_help(ld->d, d, "%s: %s", f->name, f->doc);
}

static void fill(struct tec_loader *ld, enum tec_constructor con, const struct tec_entry *thing,
                 void *out)
{
    int misspelt = ld->n_misspelt;
    const struct tec_constructor_info *info = &tec_constructors[con];
    const struct tec_value *v = thing->value;
    struct tec_where *where = (void *)((char *)out + info->where);
    *where = v->at.file ? v->at : tec_where_thing(ld, thing);
    if (info->kind >= 0)
        set_int(out, info->kind_offset, info->kind);
    for (int i = 0; v->kind == TEC_VALUE_TABLE && i < v->n; i++)
        if (!tec_field_find(con, v->entries[i].key))
            unknown_field(ld, con, &v->entries[i]);
    for (const struct tec_field *f = tec_fields_of(con); tec_field_more(f, con); f++) {
        const struct tec_entry *e = tec_value_find(v, f->name);
        if (e) {
            set_field(ld, f, e, out);
        } else if (!f->standard) {
            missing_field(ld, f, thing, misspelt);
        } else if (f->standard[0]) {
            set_standard(ld, f, thing, out);
        }
    }
}

/* `model = model { }` is `models = { model { } }`. */
static struct tec_value *name_models(struct tec_loader *ld, struct tec_value *root)
{
    const struct tec_entry *one = tec_value_find(root, "model");
    if (!one)
        return root;
    struct tec_value *copy = tec_value_copy(ld, root, root->n);
    struct tec_value *list = tec_value_new(ld, TEC_VALUE_LIST);
    struct tec_entry *item = TEC_NEW(ld->scratch, 1, struct tec_entry);
    if (!copy || !list || !item)
        return root;
    if (tec_value_find(root, "models"))
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_key(ld, one),
                            "both 'model' and 'models' are given: list all in 'models'");
    *item = *one;
    list->n = 1;
    list->entries = item;
    list->source = one->source;
    list->open = one->open;
    struct tec_entry *e = &copy->entries[one - root->entries];
    e->key = "models";
    e->value = list;
    return copy;
}

void tec_build(struct tec_loader *ld, struct tec_value *root)
{
    struct tec_entry top = {.value = name_models(ld, root), .source = -1, .open = -1, .item = -1};
    bool tagged =
        root->tag == TEC_CON_pipeline || ld->sources[root->source < 0 ? 0 : root->source].json;
    if (root->kind == TEC_VALUE_BAD)
        return;
    if (root->kind != TEC_VALUE_TABLE || (root->tag != TEC_CON_NONE && !tagged)) {
        struct tec_diagnostic *d = tec_diagnostics_add(ld->d, TEC_E011, tec_where_thing(ld, &top),
                                                       "the file must give a pipeline, gives %s",
                                                       tec_value_describe(ld, root));
        tec_diagnostics_help(ld->d, d, "end it with `return pipeline { ... }`");
        return;
    }
    ld->root = top.value;
    fill(ld, TEC_CON_pipeline, &top, ld->pipeline);
    if (ld->pipeline->n_models == 0 && !tec_value_find(ld->root, "models"))
        tec_diagnostics_add(ld->d, TEC_E012, tec_where_thing(ld, &top),
                            "missing field 'model' in pipeline");
}

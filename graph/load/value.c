/* value.c - values as a file gives them, and where they stand in it. */
#include "graph/load/loader.h"

#include <stdio.h>
#include <string.h>

struct tec_decl_value *tec_decl_value_new(struct tec_loader *ld, enum tec_decl_value_kind kind)
{
    struct tec_decl_value *v = TEC_NEW(ld->scratch, 1, struct tec_decl_value);
    if (!tec_loader_has(ld, v))
        return NULL;
    v->kind = kind;
    v->source = v->open = -1;
    v->weight = 1;
    ld->n_values++;
    return v;
}

struct tec_decl_value *tec_decl_value_from_scalar(struct tec_loader *ld, const json_t *json)
{
    struct tec_decl_value *v = tec_decl_value_new(ld, TEC_VALUE_BAD);
    if (!v)
        return NULL;
    if (json_is_boolean(json)) {
        v->kind = TEC_VALUE_BOOL;
        v->flag = json_is_true(json);
    } else if (json_is_integer(json)) {
        v->kind = TEC_VALUE_INT;
        v->integer = json_integer_value(json);
    } else if (json_is_real(json)) {
        v->kind = TEC_VALUE_NUMBER;
        v->number = json_real_value(json);
    } else if (json_is_string(json)) {
        v->kind = TEC_VALUE_STRING;
        v->string = tec_arena_strdup(ld->arena, json_string_value(json));
    }
    return v->kind != TEC_VALUE_STRING || v->string ? v : NULL;
}

struct tec_decl_value *tec_decl_value_copy(struct tec_loader *ld, const struct tec_decl_value *v,
                                           int n)
{
    struct tec_decl_value *copy = tec_decl_value_new(ld, v->kind);
    struct tec_decl_entry *entries = TEC_NEW(ld->scratch, (size_t)n + 1, struct tec_decl_entry);
    if (!tec_loader_has(ld, copy && entries))
        return NULL;
    *copy = *v;
    if (v->n > 0)
        memcpy(entries, v->entries, (size_t)(v->n < n ? v->n : n) * sizeof *entries);
    copy->entries = entries;
    copy->n = v->n < n ? v->n : n;
    return copy;
}

const struct tec_decl_entry *tec_decl_value_find(const struct tec_decl_value *table,
                                                 const char *key)
{
    if (table && table->kind == TEC_VALUE_TABLE)
        for (int i = 0; i < table->n; i++)
            if (strcmp(table->entries[i].key, key) == 0)
                return &table->entries[i];
    return NULL;
}

const char *tec_decl_value_string(const struct tec_decl_value *table, const char *key)
{
    const struct tec_decl_entry *e = tec_decl_value_find(table, key);
    return e && e->value->kind == TEC_VALUE_STRING ? e->value->string : NULL;
}

static json_t *table_to_json(const struct tec_decl_value *v)
{
    json_t *out = v->kind == TEC_VALUE_LIST ? json_array() : json_object();
    for (int i = 0; out && i < v->n; i++) {
        json_t *item = tec_decl_value_to_json(v->entries[i].value);
        int rc = v->kind == TEC_VALUE_LIST ? json_array_append_new(out, item)
                                           : json_object_set_new(out, v->entries[i].key, item);
        if (rc != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

/* Depth is bounded by TEC_MAX_DEPTH where values are made. */
json_t *tec_decl_value_to_json(const struct tec_decl_value *v)
{
    switch (v->kind) {
    case TEC_VALUE_BAD:
        return json_null();
    case TEC_VALUE_BOOL:
        return json_boolean(v->flag);
    case TEC_VALUE_INT:
        return json_integer(v->integer);
    case TEC_VALUE_NUMBER:
        return json_real(v->number);
    case TEC_VALUE_STRING:
        return json_string(v->string);
    case TEC_VALUE_LIST:
    case TEC_VALUE_TABLE:
        break;
    }
    return table_to_json(v);
}

/* A call with what it was given, "every(0)", stream "a b"; without that as it is written. */
static const char *describe_call(struct tec_loader *ld, const struct tec_decl_value *v)
{
    const char *usage = tec_constructors[v->tag].usage;
    const struct tec_decl_entry *e = tec_decl_value_find(v, "frames");
    const char *name = tec_decl_value_string(v, "name");
    if (name && !e)
        return tec_arena_printf(ld->scratch, "%s \"%.60s\"", tec_constructors[v->tag].word, name);
    return e ? tec_arena_printf(ld->scratch, "%.*s(%s)", (int)strcspn(usage, "("), usage,
                                tec_decl_value_describe(ld, e->value))
             : usage;
}

const char *tec_decl_value_describe(struct tec_loader *ld, const struct tec_decl_value *v)
{
    const char *text = NULL;
    switch (v->kind) {
    case TEC_VALUE_BAD:
        return v->flag ? "a function" : "nothing";
    case TEC_VALUE_BOOL:
        return v->flag ? "true" : "false";
    case TEC_VALUE_INT:
        text = tec_arena_printf(ld->scratch, "%lld", (long long)v->integer);
        break;
    case TEC_VALUE_NUMBER:
        text = tec_arena_printf(ld->scratch, "%g", v->number);
        break;
    case TEC_VALUE_STRING:
        text = tec_arena_printf(ld->scratch, "'%.60s'", v->string);
        break;
    case TEC_VALUE_LIST:
        return v->tag ? tec_constructors[v->tag].word : "a list";
    case TEC_VALUE_TABLE:
        if (v->tag && tec_constructors[v->tag].size)
            text = tec_arena_printf(ld->scratch, "%s { }", tec_constructors[v->tag].word);
        else if (v->tag)
            text = describe_call(ld, v);
        else
            return "a table";
        break;
    }
    return text ? text : "?";
}

static struct tec_where unknown(const struct tec_loader *ld, int source)
{
    return (struct tec_where){.file = ld->sources[source >= 0 ? source : 0].file};
}

/* Nobody reads a place beyond the last diagnostic, and looking for it takes time. */
static bool find_span(const struct tec_loader *ld, const struct tec_decl_entry *e,
                      struct tec_source_span *span)
{
    return ld->d->n < TEC_MAX_DIAGNOSTICS && e && e->source >= 0 && e->open >= 0 &&
           tec_source_find_key(&ld->sources[e->source], e->open, e->key, e->item, span);
}

static struct tec_where where_table(const struct tec_loader *ld, int source, int open)
{
    if (source < 0 || open < 0 || open >= ld->sources[source].n_tokens)
        return unknown(ld, source);
    return tec_source_where_table(&ld->sources[source], open);
}

struct tec_where tec_where_value(const struct tec_loader *ld, const struct tec_decl_entry *e)
{
    struct tec_source_span span;
    if (!e)
        return unknown(ld, -1);
    if (e->set.file)
        return e->set;
    if (find_span(ld, e, &span)) {
        const struct tec_source *s = &ld->sources[e->source];
        const struct tec_decl_value *v = e->value;
        bool table = v && v->open >= span.first && v->open <= span.last && v->source == e->source;
        /* A constructor is shown by its word: all of it may be many lines. */
        if (table && v->tag && !s->json)
            return tec_source_where_table(s, v->open);
        return tec_source_where(s, span.first, span.last);
    }
    if (e->value && e->value->open >= 0)
        return where_table(ld, e->value->source, e->value->open);
    return where_table(ld, e->source, e->open);
}

/* Does `set` mark the key, as of a table that --set made on its way? Else it marks the value. */
static bool marks_key(const struct tec_decl_entry *e)
{
    return e->value && e->value->kind == TEC_VALUE_TABLE && e->value->tag == TEC_CON_NONE;
}

struct tec_where tec_where_key(const struct tec_loader *ld, const struct tec_decl_entry *e)
{
    struct tec_source_span span;
    if (e && e->set.file && e->key && !marks_key(e) && e->set.col > (int)strlen(e->key) + 1) {
        struct tec_where key = e->set; /* "key=value" */
        key.end = key.col - 1;
        key.col = key.end - (int)strlen(e->key);
        return key;
    }
    if (e && !e->set.file && find_span(ld, e, &span) && span.key_first >= 0)
        return tec_source_where(&ld->sources[e->source], span.key_first, span.key_last);
    return tec_where_value(ld, e);
}

struct tec_where tec_where_thing(const struct tec_loader *ld, const struct tec_decl_entry *e)
{
    if (e && !e->set.file && e->value && e->value->open >= 0)
        return where_table(ld, e->value->source, e->value->open);
    return tec_where_value(ld, e);
}

struct tec_where tec_where_field(const struct tec_loader *ld, const struct tec_decl_entry *thing,
                                 const char *field)
{
    const struct tec_decl_entry *e = thing ? tec_decl_value_find(thing->value, field) : NULL;
    return e ? tec_where_value(ld, e) : tec_where_thing(ld, thing);
}

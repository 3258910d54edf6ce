/* json.c - the JSON form as values: jansson says what is in it, the tokens say where. */
#include "graph/load/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct tec_loader *ld;
    const struct tec_source *source;
    int index, depth;
    bool raw; /* inside params or a robot: `kind` and `at` mean nothing */
};

static struct tec_decl_value *read_json(struct reader *r, const json_t *json, int token);

static char *decode_key(struct reader *r, const struct tec_source_span *span)
{
    const struct tec_token *t = &r->source->tokens[span->key_first];
    json_t *key =
        json_loadb(r->source->text + t->begin, (size_t)(t->end - t->begin), JSON_DECODE_ANY, NULL);
    char *copy = key ? tec_arena_strdup(r->ld->arena, json_string_value(key)) : NULL;
    r->ld->out_of_memory |= copy == NULL;
    json_decref(key);
    return copy;
}

/* "pipelines/x.lua:12:3" */
static struct tec_where parse_place(struct tec_loader *ld, const char *text)
{
    struct tec_where where = {NULL, 0, 0, 0};
    const char *col = strrchr(text, ':'), *line = col;
    while (line && line > text && *--line != ':')
        ;
    if (!col || line == text || *line != ':')
        return where;
    where.line = atoi(line + 1);
    where.col = atoi(col + 1);
    if (where.line < 1 || where.col < 0)
        return where;
    where.file = tec_arena_strndup(ld->arena, text, (size_t)(line - text));
    return where;
}

static void unknown_kind(struct tec_loader *ld, const struct tec_decl_entry *e, const char *kind)
{
    const char *names[TEC_CONSTRUCTORS];
    for (int i = 0; i < TEC_CONSTRUCTORS; i++)
        names[i] = tec_constructors[i].word;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E002, tec_where_value(ld, e), "unknown kind '%.80s'", kind);
    tec_diagnostics_meant(ld->d, d, kind, names, TEC_CONSTRUCTORS);
}

/* `kind` and `at` describe the table they stand in. */
static bool read_mark(struct reader *r, struct tec_decl_value *table,
                      const struct tec_decl_entry *e, const json_t *json)
{
    if (r->raw || !json_is_string(json))
        return false;
    if (strcmp(e->key, "at") == 0) {
        table->at = parse_place(r->ld, json_string_value(json));
        return true;
    }
    if (strcmp(e->key, "kind") != 0)
        return false;
    table->tag = tec_constructor_find(json_string_value(json));
    table->flag = table->tag == TEC_CON_NONE;
    if (table->flag)
        unknown_kind(r->ld, e, json_string_value(json));
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct tec_decl_entry *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static bool read_member(struct reader *r, struct tec_decl_value *table, const json_t *json,
                        const struct tec_source_span *span, int item)
{
    struct tec_decl_entry *e = &table->entries[table->n];
    bool object = json_is_object(json), raw = r->raw;
    if (object && span->key_first < 0)
        return true;
    *e = (struct tec_decl_entry){
        .source = r->index, .open = table->open, .item = object ? -1 : item};
    if (object && !(e->key = decode_key(r, span)))
        return false;
    const json_t *child =
        object ? json_object_get(json, e->key) : json_array_get(json, (size_t)item);
    if (object && read_mark(r, table, e, child))
        return true;
    r->raw |= object && (strcmp(e->key, "params") == 0 || strcmp(e->key, "robot") == 0 ||
                         strcmp(e->key, "robots") == 0);
    e->value = read_json(r, child, span->first);
    r->raw = raw;
    table->n++;
    return e->value != NULL;
}

static struct tec_decl_value *read_table(struct reader *r, const json_t *json, int token)
{
    bool object = json_is_object(json);
    size_t n = object ? json_object_size(json) : json_array_size(json);
    struct tec_decl_value *table =
        tec_decl_value_new(r->ld, object ? TEC_VALUE_TABLE : TEC_VALUE_LIST);
    if (!table)
        return NULL;
    table->source = r->index;
    table->open = token;
    table->entries = TEC_NEW(r->ld->scratch, n + 1, struct tec_decl_entry);
    if (!table->entries)
        return NULL;
    if (r->depth > TEC_MAX_DEPTH || r->ld->n_values > TEC_MAX_VALUES) {
        struct tec_decl_entry e = {.value = table, .source = -1, .open = -1};
        tec_diagnostics_add(r->ld->d, TEC_E011, tec_where_value(r->ld, &e),
                            "more than %d values, or nested more than %d deep", TEC_MAX_VALUES,
                            TEC_MAX_DEPTH);
        table->kind = TEC_VALUE_BAD;
        return table;
    }
    struct tec_source_span span;
    int at = token + 1, item = 0;
    while ((size_t)table->n < n && tec_source_next(r->source, token, &at, &span))
        if (!read_member(r, table, json, &span, item++))
            return NULL;
    if (object && table->n > 1)
        qsort(table->entries, (size_t)table->n, sizeof *table->entries, compare);
    if (table->flag) { /* an unknown kind; reported */
        table->kind = TEC_VALUE_BAD;
        table->flag = false;
    }
    if (object && table->kind == TEC_VALUE_TABLE && table->n == 0 && table->tag == TEC_CON_NONE)
        table->kind = TEC_VALUE_LIST; /* {} and [] are the same, as in Lua */
    return table;
}

static struct tec_decl_value *read_json(struct reader *r, const json_t *json, int token)
{
    struct tec_decl_value *v = NULL;
    if (json_is_object(json) || json_is_array(json)) {
        r->depth++;
        v = read_table(r, json, token);
        r->depth--;
        return v;
    }
    v = tec_decl_value_from_scalar(r->ld, json);
    if (v && json_is_null(json)) {
        v->kind = TEC_VALUE_STRING;
        v->string = "null";
    }
    return v;
}

struct tec_decl_value *tec_load_json(struct tec_loader *ld, int source)
{
    const struct tec_source *s = &ld->sources[source];
    json_error_t error;
    json_t *json = json_loadb(s->text, s->n, JSON_REJECT_DUPLICATES, &error);
    if (!json && ld->d->n_errors > 0 && json_error_code(&error) == json_error_duplicate_key)
        return NULL; /* reported with both places */
    if (!json || s->n_tokens == 0) {
        struct tec_where where = {s->file, json ? 0 : error.line, json ? 0 : error.column, 0};
        tec_diagnostics_add(ld->d, TEC_E001, where, "not valid JSON: %s",
                            json ? "its brackets do not match" : error.text);
        json_decref(json);
        return NULL;
    }
    struct reader r = {.ld = ld, .source = s, .index = source};
    struct tec_decl_value *v = read_json(&r, json, 0);
    json_decref(json);
    ld->out_of_memory |= v == NULL;
    return v;
}

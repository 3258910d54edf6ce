/* build.c - tables to structs: constructors, their missing and unknown fields, lists of things. */
#include "graph/load/loader.h"

#include <stdlib.h>
#include <string.h>

static void *member(void *out, const struct tec_field *f)
{
    return (char *)out + f->offset;
}

static void set_int(void *out, size_t offset, int value)
{
    memcpy((char *)out + offset, &value, sizeof value);
}

/* References that are not given have the index -1, in every kind of the struct. */
static void clear_refs(const struct tec_word *words, void *out)
{
    for (const struct tec_word *w = words; w->word; w++) {
        enum tec_constructor con = (enum tec_constructor)w->value;
        for (const struct tec_field *f = tec_load_fields_of(con); tec_field_more(f, con); f++) {
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

static const struct tec_decl_entry **things_of(struct tec_loader *ld, int scope)
{
    const struct tec_decl_entry **lists[TEC_SCOPES] = {&ld->models, &ld->inputs, &ld->resources,
                                                       &ld->nodes, &ld->partitions};
    return lists[scope];
}

/* The constructor that a value went through, if it is among the words; a plain table counts where
 * there is one only. */
static enum tec_constructor choose(const struct tec_field *f, const struct tec_decl_value *v)
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

static void fill(struct tec_loader *ld, enum tec_constructor con,
                 const struct tec_decl_entry *thing, void *out);

/* One item of a list of things. False when it is not one; that was reported. */
static bool set_thing(struct tec_loader *ld, const struct tec_field *f,
                      const struct tec_decl_entry *e, void *out)
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
        f->name, tec_set_expected(ld, f), tec_decl_value_describe(ld, e->value));
    if (e->value->tag == TEC_CON_without)
        tec_diagnostics_help(ld->d, d, "without works in the lists of extend(...)");
    return false;
}

/* The list keeps the items that are things; the values behind them are kept beside. */
static void set_things(struct tec_loader *ld, const struct tec_field *f,
                       const struct tec_decl_entry *e, void *out)
{
    const struct tec_decl_value *v = e->value;
    size_t size = tec_constructors[f->words[0].value].size;
    int scope = scope_of(f->name);
    ld->torn[scope] = true;
    if (v->kind != TEC_VALUE_LIST) {
        tec_set_wrong(ld, f, e);
        return;
    }
    if (v->n > (int)f->max) {
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, e),
                            "'%s' has %d items, the most is %.0f", f->name, v->n, f->max);
        return;
    }
    char *list = tec_arena_push(ld->arena, (size_t)v->n + 1, size, 16);
    struct tec_decl_entry *kept = TEC_NEW(ld->scratch, (size_t)v->n + 1, struct tec_decl_entry);
    if (!tec_loader_has(ld, list && kept))
        return;
    int n = 0;
    for (int i = 0; i < v->n; i++) {
        kept[n] = v->entries[i];
        n += set_thing(ld, f, &v->entries[i], list + (size_t)n * size);
    }
    memcpy(member(out, f), &list, sizeof list);
    ld->lists[scope] = list;
    set_int(out, f->count_offset, n);
    *things_of(ld, scope) = kept;
    ld->torn[scope] = n < v->n;
}

static void set_one(struct tec_loader *ld, const struct tec_field *f,
                    const struct tec_decl_entry *e, void *out)
{
    enum tec_constructor con = choose(f, e->value);
    if (con == TEC_CON_NONE)
        tec_set_wrong(ld, f, e);
    else
        fill(ld, con, e, member(out, f));
}

static void set_field(struct tec_loader *ld, const struct tec_field *f,
                      const struct tec_decl_entry *e, void *out)
{
    if (f->type == TEC_FIELD_THINGS)
        set_things(ld, f, e, out);
    else if (f->type == TEC_FIELD_ONE)
        set_one(ld, f, e, out);
    else
        tec_set_field(ld, f, e, out);
}

/* A default goes the same way as a value of the file. */
static void set_standard(struct tec_loader *ld, const struct tec_field *f,
                         const struct tec_decl_entry *thing, void *out)
{
    struct tec_decl_value v = {.kind = TEC_VALUE_STRING, .open = -1, .string = f->standard};
    struct tec_decl_entry e = *thing;
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
    if (f->type == TEC_FIELD_ONE) /* it stands nowhere: say where it would */
        memcpy((char *)member(out, f) + tec_constructors[f->words[0].value].where,
               (char *)out + tec_constructors[f->owner].where, sizeof(struct tec_where));
}

/* What there is, where nothing of it looks like what was written. */
static void list_fields(struct tec_loader *ld, struct tec_diagnostic *d, const char *const *names,
                        int n)
{
    char all[400] = "";
    size_t at = 0;
    for (int i = 0; i < n && at < sizeof all; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", names[i]);
    if (n > 0 && at < sizeof all)
        tec_diagnostics_help(ld->d, d, "its fields are %s", all);
}

static void unknown_field(struct tec_loader *ld, enum tec_constructor con,
                          const struct tec_decl_entry *e)
{
    const char *names[32];
    int n = 0;
    for (const struct tec_field *f = tec_load_fields_of(con); tec_field_more(f, con) && n < 32; f++)
        names[n++] = f->name;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E010, tec_where_key(ld, e), "unknown field '%.80s' in %s",
                            e->key, tec_constructors[con].word);
    const char *near = tec_diagnostics_meant(ld->d, d, e->key, names, n);
    if (!near) {
        list_fields(ld, d, names, n);
        return;
    }
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
                          const struct tec_decl_entry *thing, int first_misspelt)
{
    for (int i = first_misspelt; i < ld->n_misspelt; i++)
        if (ld->misspelt[i] == f)
            return;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E012, tec_where_thing(ld, thing), "missing field '%s' in %s",
                            f->name, tec_constructors[f->owner].word);
    tec_diagnostics_help(ld->d, d, "%s: %s", f->name, f->doc);
}

static void fill(struct tec_loader *ld, enum tec_constructor con,
                 const struct tec_decl_entry *thing, void *out)
{
    int misspelt = ld->n_misspelt;
    const struct tec_constructor_info *info = &tec_constructors[con];
    const struct tec_decl_value *v = thing->value;
    struct tec_where *where = (void *)((char *)out + info->where);
    *where = v->at.file ? v->at : tec_where_thing(ld, thing);
    if (info->kind >= 0)
        set_int(out, info->kind_offset, info->kind);
    for (int i = 0; v->kind == TEC_VALUE_TABLE && i < v->n; i++)
        if (!tec_field_find(con, v->entries[i].key))
            unknown_field(ld, con, &v->entries[i]);
    for (const struct tec_field *f = tec_load_fields_of(con); tec_field_more(f, con); f++) {
        const struct tec_decl_entry *e = tec_decl_value_find(v, f->name);
        if (e) {
            set_field(ld, f, e, out);
        } else if (!f->standard) {
            missing_field(ld, f, thing, misspelt);
        } else if (f->standard[0]) {
            set_standard(ld, f, thing, out);
        }
    }
}

/* A model under a key is called like it. */
static struct tec_decl_value *named_model(struct tec_loader *ld, const struct tec_decl_entry *e)
{
    const struct tec_decl_entry *given = tec_decl_value_find(e->value, "name");
    if (e->value->kind != TEC_VALUE_TABLE)
        return e->value;
    if (given) {
        if (given->value->kind != TEC_VALUE_STRING || strcmp(given->value->string, e->key) != 0)
            tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, given),
                                "this model stands under '%.80s': leave its name out, or make it "
                                "the same",
                                e->key);
        return e->value;
    }
    struct tec_decl_value *copy = tec_decl_value_copy(ld, e->value, e->value->n + 1);
    struct tec_decl_value *name = tec_decl_value_new(ld, TEC_VALUE_STRING);
    if (!copy || !name)
        return e->value;
    name->string = e->key;
    copy->entries[copy->n] = *e; /* it is written where the key is */
    copy->entries[copy->n].key = "name";
    copy->entries[copy->n++].value = name;
    return copy;
}

/* `models = { arm = model { } }` is `models = { model { name = "arm" } }`. */
static struct tec_decl_value *list_models(struct tec_loader *ld, struct tec_decl_value *root)
{
    const struct tec_decl_entry *keyed = tec_decl_value_find(root, "models");
    const struct tec_decl_value *v = keyed ? keyed->value : NULL;
    if (!v || v->kind != TEC_VALUE_TABLE || v->tag != TEC_CON_NONE || v->n == 0)
        return root;
    struct tec_decl_value *copy = tec_decl_value_copy(ld, root, root->n);
    struct tec_decl_value *list = tec_decl_value_copy(ld, v, v->n);
    if (!copy || !list)
        return root;
    list->kind = TEC_VALUE_LIST;
    for (int i = 0; i < list->n; i++) {
        list->entries[i].value = named_model(ld, &v->entries[i]);
        list->entries[i].item = i;
    }
    copy->entries[keyed - root->entries].value = list;
    return copy;
}

/* `model = model { }` is `models = { model { } }`. */
static struct tec_decl_value *name_models(struct tec_loader *ld, struct tec_decl_value *root)
{
    const struct tec_decl_entry *one = tec_decl_value_find(root, "model");
    if (!one)
        return list_models(ld, root);
    struct tec_decl_value *copy = tec_decl_value_copy(ld, root, root->n);
    struct tec_decl_value *list = tec_decl_value_new(ld, TEC_VALUE_LIST);
    struct tec_decl_entry *item = TEC_NEW(ld->scratch, 1, struct tec_decl_entry);
    if (!copy || !list || !item)
        return root;
    if (tec_decl_value_find(root, "models"))
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_key(ld, one),
                            "both 'model' and 'models' are given: list all in 'models'");
    *item = *one;
    list->n = 1;
    list->entries = item;
    list->source = one->source;
    list->open = one->open;
    struct tec_decl_entry *e = &copy->entries[one - root->entries];
    e->key = "models";
    e->value = list;
    return copy;
}

void tec_build(struct tec_loader *ld, struct tec_decl_value *root)
{
    struct tec_decl_entry top = {
        .value = name_models(ld, root), .source = -1, .open = -1, .item = -1};
    bool tagged =
        root->tag == TEC_CON_pipeline || ld->sources[root->source < 0 ? 0 : root->source].json;
    if (root->kind == TEC_VALUE_BAD && !root->flag)
        return;
    if (root->kind != TEC_VALUE_TABLE || (root->tag != TEC_CON_NONE && !tagged)) {
        struct tec_diagnostic *d = tec_diagnostics_add(ld->d, TEC_E011, tec_where_thing(ld, &top),
                                                       "the file must give a pipeline, gives %s",
                                                       tec_decl_value_describe(ld, root));
        tec_diagnostics_help(ld->d, d, "end it with `return pipeline { ... }`");
        return;
    }
    ld->root = top.value;
    fill(ld, TEC_CON_pipeline, &top, ld->pipeline);
    if (ld->pipeline->n_models == 0 && !tec_decl_value_find(ld->root, "models"))
        tec_diagnostics_add(ld->d, TEC_E012, tec_where_thing(ld, &top),
                            "missing field 'model' in pipeline");
}

/* expand.c - a pipeline back to its canonical JSON, by the field tables. */
#include "graph/load/fields.h"
#include "graph/load/pipeline.h"

#include <stdio.h>
#include <string.h>

static json_t *constructed(enum tec_constructor con, const void *in, bool with_kind);

static const void *member(const void *in, const struct tec_field *f)
{
    return (const char *)in + f->offset;
}

static int get_int(const void *in, size_t offset)
{
    int value;
    memcpy(&value, (const char *)in + offset, sizeof value);
    return value;
}

static json_t *call(enum tec_constructor con, const char *key, json_t *value)
{
    json_t *out = json_object();
    json_object_set_new(out, "kind", json_string(tec_constructors[con].word));
    if (key)
        json_object_set_new(out, key, value);
    return out;
}

static json_t *from_ref(const struct tec_ref *ref)
{
    json_t *name = ref->name ? json_string(ref->name) : NULL;
    return name && ref->prev ? call(TEC_CON_prev, "name", name) : name;
}

static json_t *from_refs(const struct tec_refs *refs)
{
    json_t *out = json_array();
    for (int i = 0; i < refs->n; i++)
        json_array_append_new(out, from_ref(&refs->item[i]));
    return out;
}

/* Numbers that are whole are written so: 50, not 50.0. */
static json_t *from_number(double x)
{
    bool whole = x == (double)(json_int_t)x;
    return whole ? json_integer((json_int_t)x) : json_real(x);
}

static json_t *from_list(const struct tec_field *f, const void *in)
{
    const struct tec_ints *ints = member(in, f);
    const struct tec_numbers *numbers = member(in, f);
    bool whole = f->type != TEC_FIELD_RATIOS;
    int n = whole ? ints->n : numbers->n;
    if (n == 0)
        return NULL;
    json_t *out = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(out,
                              whole ? json_integer(ints->item[i]) : from_number(numbers->item[i]));
    return out;
}

static json_t *from_texts(const struct tec_texts *texts)
{
    json_t *out = texts->n ? json_array() : NULL;
    for (int i = 0; i < texts->n; i++)
        json_array_append_new(out, json_string(texts->item[i]));
    return out;
}

/* One is written without a list. */
static json_t *from_stops(const struct tec_texts *texts)
{
    return texts->n == 1 ? json_string(texts->item[0]) : from_texts(texts);
}

static json_t *from_things(const struct tec_field *f, const void *in)
{
    int n = get_int(in, f->count_offset);
    const char *list;
    memcpy(&list, member(in, f), sizeof list);
    size_t size = tec_constructors[f->words[0].value].size;
    if (n == 0)
        return NULL;
    json_t *out = json_array();
    for (int i = 0; i < n; i++) {
        const void *thing = list + (size_t)i * size;
        enum tec_constructor con = (enum tec_constructor)f->words[0].value;
        for (const struct tec_word *w = f->words; f->words[1].word && w->word; w++) {
            const struct tec_constructor_info *info = &tec_constructors[w->value];
            if (get_int(thing, info->kind_offset) == info->kind)
                con = (enum tec_constructor)w->value;
        }
        json_array_append_new(out, constructed(con, thing, f->words[1].word != NULL));
    }
    return out;
}

/* Changes by users of the form must not reach the pipeline. */
static json_t *from_object(const void *at)
{
    const json_t *object = *(const json_t *const *)at;
    return object ? json_deep_copy(object) : NULL;
}

/* A description that was not read yet stays a path. */
static json_t *from_description(const struct tec_decl_robot *robot)
{
    if (robot->description)
        return from_object(&robot->description);
    return robot->file ? json_string(robot->file) : NULL;
}

static json_t *from_robot(const struct tec_pipeline *p)
{
    return p->n_robots && !p->robots[0].name ? from_description(&p->robots[0]) : NULL;
}

static json_t *from_robots(const struct tec_pipeline *p)
{
    json_t *out = p->n_robots && p->robots[0].name ? json_object() : NULL;
    for (int i = 0; out && i < p->n_robots; i++)
        json_object_set_new(out, p->robots[i].name, from_description(&p->robots[i]));
    return out;
}

/* A struct that one of several constructors fills, or none: its kind is 0 then. */
static json_t *from_one(const struct tec_field *f, const void *in)
{
    const void *thing = member(in, f);
    const struct tec_constructor_info *first = &tec_constructors[f->words[0].value];
    const struct tec_where *where = (const void *)((const char *)thing + first->where);
    bool optional = f->standard && !f->standard[0];
    if (!f->words[1].word && optional && !where->file)
        return NULL;
    if (!f->words[1].word)
        return constructed((enum tec_constructor)f->words[0].value, thing, false);
    for (const struct tec_word *w = f->words; w->word; w++) {
        const struct tec_constructor_info *info = &tec_constructors[w->value];
        if (get_int(thing, info->kind_offset) == info->kind)
            return constructed((enum tec_constructor)w->value, thing, true);
    }
    return NULL;
}

static json_t *from_spawn(const struct tec_decl_spawn *spawn)
{
    if (spawn->kind == TEC_SPAWN_EVERY)
        return call(TEC_CON_every, "frames", json_integer(spawn->frames));
    if (spawn->kind == TEC_SPAWN_ON_CHANGE)
        return call(TEC_CON_on_change, spawn->value ? "name" : NULL,
                    spawn->value ? json_string(spawn->value) : NULL);
    return spawn->kind == TEC_SPAWN_ON_REQUEST ? call(TEC_CON_on_request, NULL, NULL) : NULL;
}

static json_t *from_out(const struct tec_decl_out *out)
{
    json_t *name = out->name ? json_string(out->name) : NULL;
    if (!name || !out->stream)
        return name;
    json_t *stream = call(TEC_CON_stream, "name", name);
    if (out->initial)
        json_object_set_new(stream, "default", json_string(out->initial));
    return stream;
}

static json_t *from_text(const void *at)
{
    const char *text;
    memcpy(&text, at, sizeof text);
    return text ? json_string(text) : NULL;
}

/* Fields without a default are left out at 0. */
static json_t *from_integer(const struct tec_field *f, json_int_t value)
{
    bool absent = f->standard && !f->standard[0] && value == 0;
    return absent ? NULL : json_integer(value);
}

/* NULL: the field is not given and has no default. */
static json_t *from_field(const struct tec_field *f, const void *in)
{
    const void *at = member(in, f);
    switch (f->type) {
    case TEC_FIELD_NAME:
    case TEC_FIELD_STRING:
        return from_text(at);
    case TEC_FIELD_INT:
        return from_integer(f, get_int(in, f->offset));
    case TEC_FIELD_INT64:
    case TEC_FIELD_BYTES:
        return from_integer(f, *(const int64_t *)at);
    case TEC_FIELD_NUMBER:
        return from_number(*(const double *)at);
    case TEC_FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case TEC_FIELD_WORD:
        return json_string(tec_load_word_of(f->words, get_int(in, f->offset)));
    case TEC_FIELD_REF:
        return from_ref(at);
    case TEC_FIELD_REFS:
        return from_refs(at);
    case TEC_FIELD_TEXTS:
        return from_texts(at);
    case TEC_FIELD_STOPS:
        return from_stops(at);
    case TEC_FIELD_SHAPE:
    case TEC_FIELD_AXIS:
    case TEC_FIELD_RATIOS:
        return from_list(f, in);
    case TEC_FIELD_ONE:
        return from_one(f, in);
    case TEC_FIELD_OUT:
        return from_out(at);
    case TEC_FIELD_SPAWN:
        return from_spawn(at);
    case TEC_FIELD_WHEN:
        return *(const bool *)at ? call(TEC_CON_when, NULL, NULL) : NULL;
    case TEC_FIELD_OBJECT:
        return from_object(at);
    case TEC_FIELD_ROBOT:
        return from_robot(in);
    case TEC_FIELD_ROBOTS:
        return from_robots(in);
    case TEC_FIELD_THINGS:
        return from_things(f, in);
    }
    return NULL;
}

static json_t *from_where(const struct tec_where *w)
{
    return w->file && w->line > 0 ? json_sprintf("%s:%d:%d", w->file, w->line, w->col) : NULL;
}

/* Members stand in the order of the table: kind, fields, at. The nesting is that of the tables. */
static json_t *constructed(enum tec_constructor con, const void *in, bool with_kind)
{
    const struct tec_constructor_info *info = &tec_constructors[con];
    json_t *out = json_object();
    if (with_kind)
        json_object_set_new(out, "kind", json_string(info->word));
    for (const struct tec_field *f = tec_load_fields_of(con); tec_field_more(f, con); f++) {
        json_t *value = from_field(f, in);
        if (value)
            json_object_set_new(out, f->name, value);
    }
    json_t *at = from_where((const void *)((const char *)in + info->where));
    if (at)
        json_object_set_new(out, "at", at);
    return out;
}

/* A text's deadline does not say what a robot is given in place of late actions: the file may not
 * write it, and its defaults are no part of the form. */
static void drop_missed(const struct tec_pipeline *p, json_t *nodes)
{
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        json_t *deadline = json_object_get(json_array_get(nodes, (size_t)i), "deadline");
        if (!tec_decl_makes_text(n) || tec_pipeline_rings(p, n) ||
            n->deadline.kind != TEC_DEADLINE_HARD)
            continue;
        json_object_del(deadline, "on_miss");
        json_object_del(deadline, "limit");
    }
}

enum tec_status tec_pipeline_expand(json_t **out, const struct tec_pipeline *pipeline,
                                    struct tec_error *err)
{
    json_t *form = constructed(TEC_CON_pipeline, pipeline, false);
    if (!form)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its JSON form", pipeline->file);
    drop_missed(pipeline, json_object_get(form, "nodes"));
    for (int i = 0; i < pipeline->n_drafts; i++) { /* what the file does not say */
        json_t *nodes = json_object_get(form, "nodes"),
               *resources = json_object_get(form, "resources");
        json_array_remove(nodes, json_array_size(nodes) - 1);
        json_array_remove(resources, json_array_size(resources) - 1);
    }
    *out = form;
    return TEC_OK;
}

/* costs_settings.c - words of a pipeline that launches cost by, and those that a file of costs was
 * measured with. */
#include "tools/measure/costs_settings.h"

#include "base/nearest.h"
#include "graph/load/fields.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

enum { MOST = 8 * 4 + 64 * 2, NAME = 160 }; /* fields.def has the most of models and resources */

/* One of them: "model.round", "bf16". */
struct setting {
    char name[NAME];
    const char *word;
    struct tec_where where; /* of it, or of what has it */
};

struct settings {
    int n;
    struct setting item[MOST];
};

static void add(struct settings *s, const char *of, enum tec_constructor owner, const char *field,
                int value, const struct tec_decl_places *places, struct tec_where whole)
{
    const struct tec_field *f = tec_field_find(owner, field);
    if (!f || s->n == MOST)
        return;
    struct setting *to = &s->item[s->n++];
    snprintf(to->name, sizeof to->name, "%.140s.%s", of, field);
    to->word = tec_load_word_of(f->words, value);
    to->where = tec_decl_place(places, field, whole);
}

/* Whether a node makes tokens with it; else its head is never computed. */
static bool has_head(const struct tec_pipeline *p, int model)
{
    bool any = false;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        bool tokens = !n->culled && (n->kind == TEC_DECL_DECODE || n->kind == TEC_DECL_SCORE);
        int draft = tokens ? tec_pipeline_draft(p, n) : -1;
        any |= (tokens && n->chain >= 0 && p->chains[n->chain].model == model) ||
               (draft >= 0 && p->chains[draft].model == model);
    }
    return any;
}

/* Of products with float32 weights nothing is rounded, whatever the file says; those with 8-bit
 * weights read what it says. */
static void add_model(struct settings *s, const struct tec_pipeline *p, int model,
                      const char *dtype)
{
    const struct tec_decl_model *m = &p->models[model];
    char of[NAME] = "model";
    bool bf16 = dtype ? strcmp(dtype, "bf16") == 0 : m->dtype == TEC_DECL_BF16;
    if (p->n_models > 1)
        snprintf(of, sizeof of, "models.%.120s", m->name);
    add(s, of, TEC_CON_model, "dtype", bf16 ? TEC_DECL_BF16 : TEC_DECL_F32, &m->places, m->where);
    add(s, of, TEC_CON_model, "quantize", m->quantize, &m->places, m->where);
    if (has_head(p, model))
        add(s, of, TEC_CON_model, "quantize_head", m->quantize_head, &m->places, m->where);
    add(s, of, TEC_CON_model, "round",
        bf16 || m->round == TEC_ROUND_INT8 ? m->round : TEC_ROUND_NONE, &m->places, m->where);
}

static void find(struct settings *s, const struct tec_pipeline *p, const char *dtype)
{
    s->n = 0;
    for (int i = 0; i < p->n_models; i++)
        add_model(s, p, i, dtype);
    for (int i = 0; i < p->n_resources; i++) {
        const struct tec_decl_resource *r = &p->resources[i];
        char of[NAME];
        if (r->kind != TEC_RESOURCE_RING)
            continue;
        snprintf(of, sizeof of, "resources.%.120s", r->name);
        add(s, of, TEC_CON_kv_ring, "shift", (int)r->shift, &r->places, r->where);
        add(s, of, TEC_CON_kv_ring, "pack", (int)r->pack, &r->places, r->where);
    }
}

json_t *tec_profile_costs_settings(const struct tec_pipeline *pipeline, const char *dtype)
{
    struct settings s;
    find(&s, pipeline, dtype);
    json_t *json = json_object();
    bool ok = json != NULL;
    for (int i = 0; i < s.n && ok; i++)
        ok = json_object_set_new(json, s.item[i].name, json_string(s.item[i].word)) == 0;
    if (ok)
        return json;
    json_decref(json);
    return NULL;
}

const char *tec_profile_settings_text(const struct tec_pipeline *pipeline, const char *dtype,
                                      struct tec_arena *arena)
{
    struct settings s;
    const char *text = "";
    find(&s, pipeline, dtype);
    for (int i = 0; i < s.n && text; i++)
        text = tec_arena_printf(arena, "%s%s%s=%s", text, i ? " " : "", s.item[i].name,
                                s.item[i].word);
    return text ? text : "";
}

/* The word that a table has in another's place; NULL: the same, or none. */
static const char *other(const struct tec_cost_table *t, const struct setting *here)
{
    for (int i = 0; i < t->n_settings; i++)
        if (strcmp(t->settings[i].name, here->name) == 0)
            return strcmp(t->settings[i].word, here->word) == 0 ? NULL : t->settings[i].word;
    return NULL;
}

/* The name that was meant by one of this pipeline's table that nothing here has; NULL: it is known,
 * or none is near. */
static const char *meant(const struct settings *s, const struct tec_cost_table *t,
                         const struct tec_pipeline *p, const char *name)
{
    const char *absent[MOST];
    int n = 0;
    if (t->pipeline && strcmp(t->pipeline, p->name) != 0)
        return NULL; /* its names are of another one, which was said */
    for (int i = 0; i < s->n; i++) {
        bool there = false;
        for (int k = 0; k < t->n_settings; k++)
            there |= strcmp(t->settings[k].name, s->item[i].name) == 0;
        if (strcmp(s->item[i].name, name) == 0)
            return NULL;
        if (!there)
            absent[n++] = s->item[i].name;
    }
    return tec_nearest(name, absent, n);
}

void tec_profile_costs_settings_say(const struct tec_invocation *call,
                                    const struct tec_cost_table *table,
                                    const struct tec_pipeline *pipeline, const char *dtype,
                                    const char *path)
{
    struct settings s;
    find(&s, pipeline, dtype);
    for (int i = 0; i < s.n; i++) {
        const char *was = other(table, &s.item[i]);
        if (was)
            tec_say(call,
                    "%s: measured with %s = \"%.40s\", which is \"%s\" here: measure it again",
                    path, s.item[i].name, was, s.item[i].word);
    }
    for (int i = 0; i < table->n_settings; i++) {
        const char *name = table->settings[i].name, *near = meant(&s, table, pipeline, name);
        if (near)
            tec_say(call, "%s: settings: nothing is called '%.80s'; did you mean '%s'?", path, name,
                    near);
    }
}

void tec_profile_costs_settings_check(struct tec_diagnostics *d, const struct tec_cost_table *table,
                                      const struct tec_pipeline *pipeline, const char *path)
{
    struct settings s;
    find(&s, pipeline, NULL);
    for (int i = 0; i < s.n; i++) {
        const char *was = other(table, &s.item[i]);
        if (!was)
            continue;
        struct tec_diagnostic *entry = tec_diagnostics_add(
            d, TEC_W119, s.item[i].where,
            "costs were measured with %s = \"%.40s\", which is \"%s\" here: deadlines are judged "
            "by the time of \"%.40s\"",
            s.item[i].name, was, s.item[i].word, was);
        tec_diagnostics_help(d, entry, "measure it again, %.200s is of others", path);
    }
    for (int i = 0; i < table->n_settings; i++) {
        const char *name = table->settings[i].name, *near = meant(&s, table, pipeline, name);
        struct tec_diagnostic *entry =
            near ? tec_diagnostics_add(d, TEC_W119, (struct tec_where){.file = path},
                                       "settings of these costs: nothing is called '%.80s'", name)
                 : NULL;
        tec_diagnostics_help(d, entry, "did you mean '%s'?", near ? near : "");
    }
}

/* spawns.c - triggers of nodes: which value a node starts on, and how often that has a new version.
 *
 * A decode node over a kv.frame has one text at a time: it starts when its prefix is new and ends
 * the older one.
 *
 * A prefill of a model besides the frames' runs for the requests that wait for it, so a decode that
 * starts when its prefix is new is born with the run of that prefill, at the prefill's rate. One
 * with another trigger stands on the newest run, which is then held until the next. */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

int tec_pipeline_prefix(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    if (n->kv.index < 0)
        return -1;
    const struct tec_decl_resource *kv = &p->resources[n->kv.index];
    return kv->kind == TEC_RESOURCE_REQUESTS ? kv->share_prefix.index : n->kv.index;
}

bool tec_pipeline_gives(const struct tec_pipeline *p, int input)
{
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->prefix.index == input || n->guide.previous.index == input ||
            n->guide.delays.index == input)
            return true;
    }
    return false;
}

const struct tec_decl_node *tec_pipeline_writer(const struct tec_pipeline *p, int resource)
{
    for (int i = 0; resource >= 0 && i < p->n_nodes; i++)
        if (p->nodes[i].kind == TEC_DECL_PREFILL && p->nodes[i].writes.index == resource)
            return &p->nodes[i];
    return NULL;
}

/* The value of a name that a prefill's prompt is made of; NULL = none, or segments, which are those
 * of a memory. */
static const struct tec_decl_input *value_read(const struct tec_pipeline *p,
                                               const struct tec_decl_node *n, const char *name)
{
    for (int i = 0; n && name && i < n->reads.n; i++) {
        int at = n->reads.item[i].index;
        if (at >= 0 && p->inputs[at].kind != TEC_INPUT_SEGMENTS && same(p->inputs[at].name, name))
            return &p->inputs[at];
    }
    return NULL;
}

struct tec_decl_spawn tec_pipeline_begins(const struct tec_pipeline *p,
                                          const struct tec_decl_node *writer,
                                          struct tec_decl_spawn spawn)
{
    const struct tec_decl_input *in = value_read(p, writer, spawn.value);
    if (spawn.kind != TEC_SPAWN_ON_CHANGE || !in || in->kind == TEC_INPUT_TEXT)
        return spawn;
    return (struct tec_decl_spawn){.kind = TEC_SPAWN_EVERY, .frames = 1};
}

/* A chain's prefill; of a draft's the one whose prompt it proposes to. NULL = none. */
static const struct tec_decl_node *prefill_of(const struct tec_pipeline *p, int chain)
{
    int at = chain >= 0 && chain < p->n_chains ? p->chains[chain].prefill : -1;
    int text = at < 0 ? 0 : p->nodes[at].proposes;
    if (text)
        return tec_pipeline_writer(p, tec_pipeline_prefix(p, &p->nodes[text - 1]));
    return at < 0 ? NULL : &p->nodes[at];
}

struct tec_decl_spawn tec_pipeline_trigger(const struct tec_pipeline *p, int chain)
{
    const struct tec_decl_node *prefill = prefill_of(p, chain);
    return prefill ? tec_pipeline_begins(p, prefill, prefill->spawn)
                   : (struct tec_decl_spawn){.kind = TEC_SPAWN_NONE};
}

int tec_pipeline_every(const struct tec_pipeline *p, int chain)
{
    const struct tec_decl_spawn s = tec_pipeline_trigger(p, chain);
    return s.kind == TEC_SPAWN_EVERY ? s.frames : s.kind == TEC_SPAWN_NONE;
}

/* Is it born with each run of its prefill, whatever begins that? */
static bool with_prefill(const struct tec_pipeline *p, const struct tec_decl_node *text)
{
    int prefix = tec_pipeline_prefix(p, text);
    return text->spawn.kind == TEC_SPAWN_NONE ||
           (text->spawn.kind == TEC_SPAWN_ON_CHANGE && prefix >= 0 &&
            same(text->spawn.value, p->resources[prefix].name));
}

bool tec_pipeline_holds(const struct tec_pipeline *p, int chain)
{
    const struct tec_decl_node *prefill = prefill_of(p, chain);
    bool other = false;
    for (int i = 0; prefill && i < p->n_nodes; i++)
        other |= tec_decl_makes_text(&p->nodes[i]) && !p->nodes[i].culled &&
                 p->nodes[i].chain == prefill->chain && !with_prefill(p, &p->nodes[i]);
    return other && !p->chains[prefill->chain].in_frames && prefill->spawn.kind != TEC_SPAWN_NONE;
}

struct tec_decl_spawn tec_pipeline_spawn(const struct tec_pipeline *p,
                                         const struct tec_decl_node *n)
{
    const struct tec_decl_spawn own = n->spawn, change = {.kind = TEC_SPAWN_ON_CHANGE};
    int prefix = tec_pipeline_prefix(p, n);
    if (own.kind != TEC_SPAWN_ON_CHANGE || !own.value || prefix < 0)
        return own;
    const struct tec_decl_node *writer = tec_pipeline_writer(p, prefix);
    if (!same(own.value, p->resources[prefix].name))
        return tec_pipeline_begins(p, writer, own);
    const struct tec_decl_spawn its = tec_pipeline_trigger(p, n->chain);
    if (writer && tec_pipeline_in_frames(p, writer) && its.kind == TEC_SPAWN_NONE)
        return (struct tec_decl_spawn){.kind = TEC_SPAWN_EVERY, .frames = 1};
    return writer && its.kind != TEC_SPAWN_NONE ? its : change;
}

/* Behind a prefill of frames that texts begin, actions go on with what it saw, however long ago
 * that is. */
static void check_age(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    const char *seen = NULL;
    bool text = false;
    for (int k = 0; k < n->reads.n; k++) {
        const struct tec_decl_input *in =
            n->reads.item[k].index < 0 ? NULL : &p->inputs[n->reads.item[k].index];
        text |= in && in->kind == TEC_INPUT_TEXT;
        if (in && in->kind != TEC_INPUT_TEXT && in->kind != TEC_INPUT_SEGMENTS && !seen)
            seen = in->name;
    }
    if (!seen || !text || p->n_chains == 0 || n->culled || n->chain < 0 ||
        !tec_pipeline_in_frames(p, n) ||
        tec_pipeline_begins(p, n, n->spawn).kind != TEC_SPAWN_ON_CHANGE)
        return;
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_W117, tec_where_field(ld, &ld->nodes[i], "spawn"),
        "'%s' runs where a text is new: until the next one actions are of '%s' as it was then",
        n->name ? n->name : "prefill", seen);
    tec_diagnostics_help(ld->d, d, "every(n) renews it");
}

/* Help for a trigger whose value is not what it could be: the name that was probably meant, of the
 * node's prefix (NULL: a prefill has none) and what its prefill reads, else what that is. */
static void help_value(struct tec_loader *ld, struct tec_diagnostic *d, const char *value,
                       const char *prefix, const struct tec_decl_node *writer)
{
    const char *names[64] = {NULL}, *all = "";
    int n = 0;
    if (prefix)
        names[n++] = prefix;
    for (int i = 0; writer && i < writer->reads.n && n < 64; i++)
        if (writer->reads.item[i].name &&
            value_read(ld->pipeline, writer, writer->reads.item[i].name))
            names[n++] = writer->reads.item[i].name;
    for (int i = prefix ? 1 : 0; i < n && all; i++)
        all = tec_arena_printf(ld->scratch, "%s%s'%.60s'", all, *all ? ", " : "", names[i]);
    if (tec_diagnostics_meant(ld->d, d, value, names, n))
        return;
    if (prefix)
        tec_diagnostics_help(ld->d, d,
                             "on_change takes its prefix, '%s', or what its prefill reads%s%s",
                             prefix, all && *all ? ": " : "", all ? all : "");
    else
        tec_diagnostics_help(ld->d, d, "it reads %s", all && *all ? all : "nothing");
}

/* A prefill's own trigger: its rate, or that what it reads changes. */
static void check_prefill(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    const struct tec_decl_spawn *s = &n->spawn;
    struct tec_where where = tec_where_field(ld, &ld->nodes[i], "spawn");
    if (s->kind == TEC_SPAWN_NONE)
        return;
    if (s->kind == TEC_SPAWN_ON_REQUEST)
        tec_diagnostics_add(ld->d, TEC_E011, where,
                            "a prefill runs every(n) frames or on_change(): requests from outside "
                            "are a decode node's");
    else if (s->value && !value_read(p, n, s->value))
        help_value(ld,
                   tec_diagnostics_add(ld->d, TEC_E024, where, "'%s' does not read '%s'",
                                       n->name ? n->name : "prefill", s->value),
                   s->value, NULL, n);
    else
        check_age(ld, i);
}

int tec_pipeline_acts_every(const struct tec_pipeline *p, const struct tec_decl_node *action)
{
    if (action->kind != TEC_DECL_ACTION || action->spawn.kind == TEC_SPAWN_NONE)
        return 1;
    return action->spawn.kind == TEC_SPAWN_EVERY ? action->spawn.frames
                                                 : tec_pipeline_every(p, action->chain);
}

/* An action node's own trigger: its rate, or that the prefix of its frame is new. */
static void check_action(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    const struct tec_decl_resource *kv = n->kv.index < 0 ? NULL : &p->resources[n->kv.index];
    bool fresh = kv && kv->kind == TEC_RESOURCE_FRAME && !n->kv.prev;
    if (n->spawn.kind == TEC_SPAWN_NONE || n->spawn.kind == TEC_SPAWN_EVERY ||
        (n->spawn.kind == TEC_SPAWN_ON_CHANGE && fresh && same(n->spawn.value, kv->name)))
        return;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E024, tec_where_field(ld, &ld->nodes[i], "spawn"),
                            "'%s' runs every(n) frames, or where the prefix of its frame is new",
                            n->name ? n->name : "action");
    if (fresh)
        tec_diagnostics_help(ld->d, d, "spawn = on_change(\"%s\")", kv->name);
}

/* Segments are recalled in the launch of the prefill that reads them, so at its rate. */
static void check_recall(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    const struct tec_decl_node *reader = tec_pipeline_writer(p, n->into.index);
    const struct tec_decl_spawn *own = &n->spawn, *its = reader ? &reader->spawn : own;
    bool equal = own->kind == its->kind && own->frames == its->frames &&
                 (own->value == its->value || same(own->value, its->value));
    if (own->kind == TEC_SPAWN_NONE || equal)
        return;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E024, tec_where_field(ld, &ld->nodes[i], "spawn"),
                            "'%s' recalls at another rate than '%s', which reads what it brings",
                            n->name, reader->name ? reader->name : "prefill");
    tec_diagnostics_also(ld->d, d, reader->where, "the prefill");
    tec_diagnostics_help(ld->d, d, "give both one spawn, or leave that of '%s' out", n->name);
}

/* The value of on_change("value") is what the node's prefix is, or what that is made of. */
static void check_value(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    int prefix = tec_pipeline_prefix(p, n);
    const char *value = n->spawn.value, *kv = prefix < 0 ? NULL : p->resources[prefix].name;
    if (!value || prefix < 0 || same(value, kv) ||
        value_read(p, tec_pipeline_writer(p, prefix), value))
        return;
    bool known = false;
    for (int k = 0; k < p->n_resources; k++)
        known |= same(p->resources[k].name, value);
    for (int k = 0; k < p->n_inputs + p->n_streams; k++)
        known |= same(p->inputs[k].name, value);
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, known ? TEC_E024 : TEC_E021, tec_where_field(ld, &ld->nodes[i], "spawn"),
        known ? "'%s' does not begin behind '%s'" : "'%s' starts on '%s', which is not declared",
        n->name ? n->name : "decode", value);
    help_value(ld, d, value, kv, tec_pipeline_writer(p, prefix));
}

/* Fill in what a decode node over a kv.frame does without saying so. */
static void complete(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    struct tec_decl_node *n = (struct tec_decl_node *)ld->lists[TEC_NODES] + i;
    const struct tec_decl_resource *kv = n->kv.index < 0 ? NULL : &p->resources[n->kv.index];
    if (n->kind != TEC_DECL_DECODE || !kv || kv->kind != TEC_RESOURCE_FRAME)
        return;
    const struct tec_decl_value *given = ld->nodes[i].value;
    const struct tec_decl_entry *spawn = tec_decl_value_find(given, "spawn");
    const struct tec_decl_entry *supersede = tec_decl_value_find(given, "supersede");
    if (supersede && supersede->value->kind == TEC_VALUE_BOOL && !n->supersede && n->name) {
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E024, tec_where_field(ld, &ld->nodes[i], "supersede"),
            "'%s' has one text at a time, '%s' is a kv.frame: a new one ends the older one",
            n->name, n->kv.name);
        tec_diagnostics_help(ld->d, d,
                             "leave supersede out, or decode in a kv.requests that "
                             "shares '%s' and has several slots",
                             n->kv.name);
    }
    n->supersede = true;
    if (!spawn && n->spawn.kind == TEC_SPAWN_NONE)
        n->spawn = (struct tec_decl_spawn){.kind = TEC_SPAWN_ON_CHANGE, .value = kv->name};
}

void tec_check_spawns(struct tec_loader *ld)
{
    for (int i = 0; i < ld->pipeline->n_nodes; i++) {
        const struct tec_decl_node *n = &ld->pipeline->nodes[i];
        complete(ld, i);
        if (n->kind == TEC_DECL_PREFILL)
            check_prefill(ld, i);
        if (n->kind == TEC_DECL_ACTION)
            check_action(ld, i);
        if (n->kind == TEC_DECL_MEMORY_LOAD)
            check_recall(ld, i);
        if (tec_decl_makes_text(n))
            check_value(ld, i);
    }
}

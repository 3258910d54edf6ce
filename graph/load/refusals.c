/* refusals.c - graphs that are well defined, but that this release does not run (E070).
 *
 * Each function below looks at one node of a pipeline without errors and reports one case. Whoever
 * builds a case deletes its function and the name in `cases`; then its lines in
 * tests/pipelines/bad/expected.txt and refused*.lua, and what doc/values.md and doc/pipelines.md
 * say of it. What depends on a model's description is not known here: the compiler and the engine
 * refuse that with TEC_UNSUPPORTED and a place. */
#include "graph/load/refusals.h"

#include <string.h>

struct tec_where tec_refusing_field(const struct tec_refusing *r, const char *name)
{
    return tec_where_field(r->ld, &r->ld->nodes[r->at], name);
}

int tec_refusing_reads(const struct tec_refusing *r, enum tec_input_kind kind,
                       struct tec_where *last)
{
    const struct tec_decl_entry *list = tec_decl_value_find(r->ld->nodes[r->at].value, "reads");
    int count = 0;
    for (int i = 0; i < r->n->reads.n; i++) {
        if (r->p->inputs[r->n->reads.item[i].index].kind != kind)
            continue;
        count++;
        *last = list && i < list->value->n ? tec_where_value(r->ld, &list->value->entries[i])
                                           : tec_refusing_field(r, "reads");
    }
    return count;
}

bool tec_refusing_remembers(const struct tec_refusing *r)
{
    for (int i = 0; i < r->p->n_nodes; i++)
        if (r->p->nodes[i].kind == TEC_DECL_MEMORY_LOAD && !r->p->nodes[i].culled &&
            r->p->nodes[i].chain == r->n->chain)
            return true;
    return false;
}

#define REFUSE(where, ...) \
    tec_diagnostics_add(r->ld->d, TEC_E070, where, "not in this release: " __VA_ARGS__)

static struct tec_where field(const struct tec_refusing *r, const char *name)
{
    return tec_refusing_field(r, name);
}

static const char *name_of(const struct tec_decl_node *n)
{
    return tec_refusing_name(n);
}

static void rate_of_frames(struct tec_refusing *r)
{
    const struct tec_decl_spawn *s = &r->n->spawn;
    if (r->n->kind == TEC_DECL_PREFILL && tec_pipeline_in_frames(r->p, r->n) &&
        !tec_refusing_fills(r) && s->kind != TEC_SPAWN_NONE && s->kind != TEC_SPAWN_EVERY)
        REFUSE(field(r, "spawn"),
               "'%s' is the frames' prefill: it runs in every frame, or every(n)", name_of(r->n));
}

static void segments_beside(struct tec_refusing *r)
{
    struct tec_where last = {0};
    if (r->n->kind == TEC_DECL_PREFILL && r->n->chain > 0 &&
        tec_refusing_reads(r, TEC_INPUT_SEGMENTS, &last) > 0)
        REFUSE(last,
               "'%s' reads segments: a prefill that requests wait for reads pictures, the "
               "state and texts",
               name_of(r->n));
}

/* A prefill with a trigger of its own starts its readers: another trigger would run it, too. */
static void second_trigger(struct tec_refusing *r)
{
    if (!tec_decl_makes_text(r->n))
        return;
    int prefix = tec_pipeline_prefix(r->p, r->n);
    const struct tec_decl_node *writer = tec_pipeline_writer(r->p, prefix);
    const char *value = r->n->spawn.value;
    if (!writer || writer->spawn.kind == TEC_SPAWN_NONE || r->n->spawn.kind == TEC_SPAWN_NONE ||
        tec_pipeline_in_frames(r->p, writer))
        return;
    const char *name = r->p->resources[prefix].name;
    if (r->n->spawn.kind == TEC_SPAWN_ON_CHANGE && value && name && strcmp(value, name) == 0)
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "spawn"),
               "'%s' has a trigger of its own, and a request of '%s' would run it besides",
               name_of(writer), name_of(r->n));
    tec_diagnostics_also(r->ld->d, d, writer->where, "the prefill");
    tec_diagnostics_help(r->ld->d, d, "spawn = on_change(\"%s\")", name);
}

/* Requests may stand on the newest sequence of a ring that reads its keys where they are, and a
 * memory in front of its prompts. */
static void beside_ring(struct tec_refusing *r)
{
    const struct tec_decl_node *ring = tec_pipeline_ring_of(r->p, r->n->chain);
    if (!ring || ring == r->n || r->at == r->p->chains[r->n->chain].prefill ||
        r->n->kind == TEC_DECL_MEMORY_LOAD || r->n->kind == TEC_DECL_REMEMBER)
        return;
    if (tec_decl_makes_text(r->n) && tec_refusing_on(r, r->n, TEC_RESOURCE_REQUESTS) &&
        r->p->resources[ring->kv.index].pack != TEC_PACK_GATHER)
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "kv"), "'%s' stands on the keys of ring '%s', beside its decode node '%s'",
               name_of(r->n), ring->kv.name, name_of(ring));
    tec_diagnostics_also(r->ld->d, d, ring->where, "the ring's decode node");
}

/* Without actions a hard deadline of a text is that of its request. */
static void hard_on_ring(struct tec_refusing *r)
{
    if (tec_decl_makes_text(r->n) && !tec_refusing_rings(r, r->n) &&
        r->n->deadline.kind == TEC_DEADLINE_HARD && tec_pipeline_actor(r->p) &&
        tec_pipeline_ring_of(r->p, r->n->chain))
        REFUSE(field(r, "deadline"),
               "'%s' makes texts with a hard deadline beside actions, but stands on a ring",
               name_of(r->n));
}

/* A store has one prompt's segments on their way at a time. */
static void shared_memory(struct tec_refusing *r)
{
    const struct tec_decl_node *other = NULL;
    for (int i = r->at - 1; r->n->kind == TEC_DECL_MEMORY_LOAD && i >= 0; i--) {
        const struct tec_decl_node *o = &r->p->nodes[i];
        if (o->kind == TEC_DECL_MEMORY_LOAD && !o->culled && o->from.index == r->n->from.index)
            other = o;
    }
    if (!other)
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "from"), "'%s' loads from '%s' as '%s' does: one node loads from it",
               name_of(r->n), r->n->from.name, name_of(other));
    tec_diagnostics_also(r->ld->d, d, other->where, "the other one");
}

/* A small model reads the prompt of the request, which a memory is in. */
static void draft_of_memory(struct tec_refusing *r)
{
    if (r->n->draft.model.index >= 0 && tec_refusing_remembers(r))
        REFUSE(field(r, "draft"), "'%s' has a draft, and a memory in its prompt", name_of(r->n));
}

static void (*const cases[])(struct tec_refusing *r) = {
    rate_of_frames, segments_beside, second_trigger,  beside_ring,
    hard_on_ring,   shared_memory,   draft_of_memory,
};

void tec_refuse(struct tec_loader *ld)
{
    struct tec_refusing r = {.ld = ld, .p = ld->pipeline};
    for (r.at = 0; r.at < r.p->n_nodes; r.at++) {
        r.n = &r.p->nodes[r.at];
        if (r.n->culled || r.n->chain < 0)
            continue;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            cases[i](&r);
        tec_refuse_meaningless(&r);
        tec_refuse_more(&r);
    }
}

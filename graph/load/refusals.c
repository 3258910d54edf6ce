/* refusals.c - graphs that are well defined, but that this release does not run (E070).
 *
 * Each function below looks at one node of a pipeline without errors and reports one case, or two
 * that are near each other. All are reported at once. Whoever builds a case deletes its REFUSE,
 * with the last one of a function the function and its name in `cases`; then its lines in
 * tests/pipelines/bad/expected.txt and refused*.lua, and what README.md (limits) and
 * doc/pipelines.md say of it. What depends on a model's description is not known here: the compiler
 * and the engine refuse that with TEC_UNSUPPORTED and a place. */
#include "graph/kv/stages.h"
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

struct refusing {
    struct tec_loader *ld;
    const struct tec_pipeline *p;
    int at;                        /* the node that is looked at */
    const struct tec_decl_node *n; /* the same */
};

/* The place of a field of the node; of the node where it does not have the field. */
static struct tec_where field(const struct refusing *r, const char *name)
{
    return tec_where_field(r->ld, &r->ld->nodes[r->at], name);
}

#define REFUSE(where, ...) \
    tec_diagnostics_add(r->ld->d, TEC_E070, where, "not in this release: " __VA_ARGS__)

static const char *name_of(const struct tec_decl_node *n)
{
    return n->name ? n->name : tec_decl_node_word(n->kind);
}

static const struct tec_decl_resource *keys_of(const struct refusing *r,
                                               const struct tec_decl_node *n)
{
    return n->kv.index < 0 ? NULL : &r->p->resources[n->kv.index];
}

static bool stands_on(const struct refusing *r, const struct tec_decl_node *n,
                      enum tec_resource_kind kind)
{
    const struct tec_decl_resource *keys = keys_of(r, n);
    return keys && keys->kind == kind;
}

static bool writes_text(const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_DECODE || n->kind == TEC_DECL_SCORE;
}

static bool decodes_ring(const struct refusing *r, const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_DECODE && stands_on(r, n, TEC_RESOURCE_RING);
}

/* The first decode node over a ring in the chain of the node; -1 = none. */
static int ring_of(const struct refusing *r)
{
    for (int i = 0; i < r->p->n_nodes; i++)
        if (r->p->nodes[i].chain == r->n->chain && decodes_ring(r, &r->p->nodes[i]))
            return i;
    return -1;
}

/* The first node of a kind in the pipeline, or in one chain (-1: in any). */
static int first_of(const struct refusing *r, enum tec_decl_node_kind kind, int chain)
{
    for (int i = 0; i < r->p->n_nodes; i++)
        if (r->p->nodes[i].kind == kind && !r->p->nodes[i].culled &&
            (chain < 0 || r->p->nodes[i].chain == chain))
            return i;
    return -1;
}

/* Is the node's prefill one that requests wait for, not one of every frame? */
static bool waits(const struct refusing *r, const struct tec_decl_node *n)
{
    return !tec_pipeline_in_frames(r->p, n);
}

/* Inputs of a kind that the node reads; *last is the place of the last one in its list. */
static int reads_of(const struct refusing *r, enum tec_input_kind kind, struct tec_where *last)
{
    const struct tec_decl_entry *list = tec_decl_value_find(r->ld->nodes[r->at].value, "reads");
    int count = 0;
    for (int i = 0; i < r->n->reads.n; i++) {
        if (r->p->inputs[r->n->reads.item[i].index].kind != kind)
            continue;
        count++;
        *last = list && i < list->value->n ? tec_where_value(r->ld, &list->value->entries[i])
                                           : field(r, "reads");
    }
    return count;
}

static bool stands_in_ring(const struct refusing *r)
{
    return r->n->writes.index >= 0 && r->p->resources[r->n->writes.index].kind == TEC_RESOURCE_RING;
}

/* --- prefills -------------------------------------------------------------------------------- */

static void rate_of_frames(struct refusing *r)
{
    const struct tec_decl_spawn *s = &r->n->spawn;
    if (r->n->kind != TEC_DECL_PREFILL || waits(r, r->n) || s->kind == TEC_SPAWN_NONE ||
        (s->kind == TEC_SPAWN_EVERY && s->frames == 1))
        return;
    bool ring = stands_in_ring(r);
    if (s->kind != TEC_SPAWN_EVERY)
        REFUSE(field(r, "spawn"),
               "'%s' is the frames' prefill: it runs in every frame, or every(n)", name_of(r->n));
    else if (ring)
        REFUSE(field(r, "spawn"), "'%s' is the frames' prefill: with a ring it runs in every frame",
               name_of(r->n));
}

static void many_reads(struct refusing *r)
{
    struct tec_where last = {0};
    int texts = reads_of(r, TEC_INPUT_TEXT, &last);
    if (r->n->kind == TEC_DECL_PREFILL && texts > TEC_MAX_TEXTS)
        REFUSE(last, "'%s' reads %d texts: a prompt is made of %d", name_of(r->n), texts,
               TEC_MAX_TEXTS);
}

static void segments_beside(struct refusing *r)
{
    struct tec_where last = {0};
    if (r->n->kind == TEC_DECL_PREFILL && r->n->chain > 0 &&
        reads_of(r, TEC_INPUT_SEGMENTS, &last) > 0)
        REFUSE(last,
               "'%s' reads segments: a prefill that requests wait for reads pictures, the "
               "state and texts",
               name_of(r->n));
}

static void shared_frame(struct refusing *r)
{
    int first = first_of(r, TEC_DECL_PREFILL, r->n->chain);
    if (r->n->kind != TEC_DECL_PREFILL || first == r->at || first < 0 ||
        tec_pipeline_same_prefill(&r->p->nodes[first], r->n))
        return;
    struct tec_diagnostic *d = REFUSE(
        field(r, "writes"), "'%s' writes '%s' with other inputs or another template than '%s'",
        name_of(r->n), r->n->writes.name ? r->n->writes.name : "?", name_of(&r->p->nodes[first]));
    tec_diagnostics_also(r->ld->d, d, r->p->nodes[first].where, "the other prefill");
}

static void prefill_target(struct refusing *r)
{
    if (r->n->kind != TEC_DECL_PREFILL || r->n->writes.index < 0)
        return;
    enum tec_resource_kind kind = r->p->resources[r->n->writes.index].kind;
    if (kind == TEC_RESOURCE_RING && ring_of(r) < 0)
        REFUSE(field(r, "writes"), "'%s' fills ring '%s', but no decode node reads its stages",
               name_of(r->n), r->n->writes.name);
    else if (kind == TEC_RESOURCE_REQUESTS)
        REFUSE(field(r, "writes"),
               "'%s' writes '%s', a kv.requests: a prefill writes a kv.frame "
               "or a kv.ring",
               name_of(r->n), r->n->writes.name);
}

/* A chain that was made for nodes without a prefill. */
static void no_prefill(struct refusing *r)
{
    if (r->n->kind != TEC_DECL_REMEMBER && r->p->chains[r->n->chain].prefill < 0)
        REFUSE(field(r, "kv"), "'%s' stands on keys that no prefill of model '%s' writes",
               name_of(r->n), r->p->models[r->p->chains[r->n->chain].model].name);
}

/* --- decode and score ------------------------------------------------------------------------ */

static void no_prefix(struct refusing *r)
{
    if (writes_text(r->n) && stands_on(r, r->n, TEC_RESOURCE_REQUESTS) &&
        keys_of(r, r->n)->share_prefix.index < 0)
        REFUSE(field(r, "kv"), "'%s' stands on '%s', a kv.requests without share_prefix",
               name_of(r->n), r->n->kv.name);
}

/* A prefill with a trigger of its own starts its readers: another trigger would run it, too. */
static void second_trigger(struct refusing *r)
{
    if (!writes_text(r->n))
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

/* --- rings ----------------------------------------------------------------------------------- */

/* Requests may stand on the newest sequence of a ring that reads its keys where they are. */
static void beside_ring(struct refusing *r)
{
    int ring = ring_of(r);
    if (ring < 0 || ring == r->at || r->at == r->p->chains[r->n->chain].prefill)
        return;
    const struct tec_decl_resource *keys = keys_of(r, &r->p->nodes[ring]);
    if (writes_text(r->n) && stands_on(r, r->n, TEC_RESOURCE_REQUESTS) &&
        keys->pack != TEC_PACK_GATHER)
        return;
    if (r->n->kind == TEC_DECL_MEMORY_LOAD)
        return; /* memory_in_ring says it */
    struct tec_diagnostic *d =
        REFUSE(field(r, "kv"), "'%s' stands on the keys of ring '%s', beside its decode node '%s'",
               name_of(r->n), r->p->nodes[ring].kv.name, name_of(&r->p->nodes[ring]));
    tec_diagnostics_also(r->ld->d, d, r->p->nodes[ring].where, "the ring's decode node");
}

/* --- actions, deadlines, memory --------------------------------------------------------------- */

/* Actions wait for a text of a node on the keys of the same prefill, the frames' prefills for one
 * that they read: it is made on the frame thread, where no memory is asked. */
static void after_text(struct refusing *r)
{
    int early = r->n->after.index;
    const struct tec_decl_node *text = early < 0 ? NULL : &r->p->nodes[early];
    if (!text || !writes_text(text))
        return;
    if (r->n->kind == TEC_DECL_PREFILL && tec_pipeline_waits_for(r->p, r->n)) {
        const char *why = waits(r, r->n)      ? "requests wait for it"
                          : stands_in_ring(r) ? "it fills a ring"
                                              : NULL;
        if (why)
            REFUSE(field(r, "after"), "'%s' waits for the text of '%s', but %s", name_of(r->n),
                   name_of(text), why);
        return;
    }
    if (r->n->kind != TEC_DECL_ACTION || decodes_ring(r, text))
        REFUSE(field(r, "after"),
               "'%s' waits for the text of '%s': actions do, and prefills that read it",
               name_of(r->n), name_of(text));
    else if (text->chain != r->n->chain)
        REFUSE(field(r, "after"),
               "'%s' waits for the text of '%s', which stands on the keys of another prefill",
               name_of(r->n), name_of(text));
}

/* A text that a frame waits for, or whose deadline is hard, is made between the hard nodes. */
static void awaited_text(struct refusing *r)
{
    if (!writes_text(r->n) || !tec_pipeline_awaited(r->p, r->n))
        return;
    if (r->n->draft.tokens > 0)
        REFUSE(field(r, "draft"), "'%s' has a draft, and its text is made within the frame",
               name_of(r->n));
    if (r->n->partition.index >= 0)
        REFUSE(field(r, "partition"),
               "'%s' is on a partition, and its text is made within the frame", name_of(r->n));
}

static void frame_before(struct refusing *r)
{
    bool acts = r->n->kind == TEC_DECL_ACTION && stands_on(r, r->n, TEC_RESOURCE_FRAME);
    if (r->n->kv.prev && !acts && !stands_on(r, r->n, TEC_RESOURCE_RING))
        REFUSE(
            field(r, "kv"),
            "'%s' reads '%s' of the frame before: prev takes a kv.ring, or a kv.frame for actions",
            name_of(r->n), r->n->kv.name);
}

/* Is this a text with a hard deadline beside actions, that no frame makes? Without actions it is
 * that of a request. */
static bool late_text(const struct refusing *r)
{
    return writes_text(r->n) && !decodes_ring(r, r->n) &&
           r->n->deadline.kind == TEC_DEADLINE_HARD && tec_pipeline_actor(r->p) &&
           !tec_pipeline_awaited(r->p, r->n);
}

/* A deadline of the other kind, which nothing would follow. */
static void other_deadline(struct refusing *r)
{
    bool acts = r->n->kind == TEC_DECL_ACTION || decodes_ring(r, r->n);
    if (acts && r->n->deadline.kind == TEC_DEADLINE_SOFT)
        REFUSE(field(r, "deadline"), "'%s' makes actions with a soft deadline", name_of(r->n));
    else if (late_text(r))
        REFUSE(field(r, "deadline"), "'%s' makes texts with a hard deadline beside actions, but %s",
               name_of(r->n),
               ring_of(r) >= 0 ? "stands on a ring" : "its prefill is one that requests wait for");
}

/* What a robot is given where actions are late, which a late text does not change. */
static void missed_text(struct refusing *r)
{
    const struct tec_decl_deadline *d = &r->n->deadline;
    if (writes_text(r->n) && tec_pipeline_awaited(r->p, r->n) && d->kind == TEC_DEADLINE_HARD &&
        (d->on_miss != TEC_MISS_HOLD || d->limit > 0))
        REFUSE(field(r, "deadline"),
               "'%s' makes texts, and 'on_miss' and 'limit' of its deadline are for actions",
               name_of(r->n));
}

/* A decision leaves out actions and what waits for its turn, nothing that others stand on. */
static void always_runs(struct refusing *r)
{
    bool prefill = r->n->kind == TEC_DECL_PREFILL;
    const char *why =
        !r->n->when_policy                                        ? NULL
        : decodes_ring(r, r->n) || (prefill && stands_in_ring(r)) ? "a ring goes on in every frame"
        : prefill && !waits(r, r->n)                              ? "it is the frames' prefill"
        : writes_text(r->n) && r->n->deadline.kind == TEC_DEADLINE_HARD ? "its deadline is hard"
        : tec_pipeline_awaited(r->p, r->n)                              ? "a hard node waits for it"
                                                                        : NULL;
    if (why)
        REFUSE(field(r, "when"), "'%s' may be left out of a frame by a policy, but %s",
               name_of(r->n), why);
}

static void tokens_out(struct refusing *r)
{
    if (writes_text(r->n) && !decodes_ring(r, r->n) && r->n->out.buffer >= 0)
        REFUSE(field(r, "out"), "'%s' writes tokens to a buffer: they leave as a stream",
               name_of(r->n));
}

static void typed_buffer(struct refusing *r)
{
    int buffer = r->n->out.buffer;
    if (r->n->kind == TEC_DECL_ACTION && buffer >= 0 &&
        r->p->resources[buffer].dtype != TEC_DECL_F32)
        REFUSE(tec_where_field(r->ld, &r->ld->resources[buffer], "dtype"),
               "buffer '%s' is of another type than f32", r->p->resources[buffer].name);
}

/* A store has one prompt's segments on their way at a time. */
static void shared_memory(struct refusing *r)
{
    int first = r->at, before = 0;
    for (int i = r->at - 1; r->n->kind == TEC_DECL_MEMORY_LOAD && i >= 0; i--) {
        const struct tec_decl_node *o = &r->p->nodes[i];
        if (o->kind != TEC_DECL_MEMORY_LOAD || o->culled)
            continue;
        before++;
        first = o->from.index == r->n->from.index ? i : first;
    }
    if (before >= TEC_MAX_MEMORIES)
        REFUSE(field(r, "into"), "'%s' is one more memory_load node than the %d", name_of(r->n),
               TEC_MAX_MEMORIES);
    if (first == r->at)
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "from"), "'%s' loads from '%s' as '%s' does: one node loads from it",
               name_of(r->n), r->n->from.name, name_of(&r->p->nodes[first]));
    tec_diagnostics_also(r->ld->d, d, r->p->nodes[first].where, "the other one");
}

static void memory_in_ring(struct refusing *r)
{
    if (r->n->kind == TEC_DECL_MEMORY_LOAD && ring_of(r) >= 0)
        REFUSE(field(r, "into"), "'%s' loads memory beside ring '%s': a ring's prompts have none",
               name_of(r->n), r->p->nodes[ring_of(r)].kv.name);
}

/* A small model reads the prompt of the request, which a memory is in. */
static void draft_of_memory(struct refusing *r)
{
    if (r->n->draft.model.index >= 0 && first_of(r, TEC_DECL_MEMORY_LOAD, r->n->chain) >= 0)
        REFUSE(field(r, "draft"), "'%s' has a draft, and a memory in its prompt", name_of(r->n));
}

static void several_segments(struct refusing *r)
{
    if (r->n->kind == TEC_DECL_MEMORY_LOAD && r->n->reads.n != 1)
        REFUSE(field(r, "reads"), "'%s' reads %d inputs of segments: it reads one", name_of(r->n),
               r->n->reads.n);
}

/* --- how many -------------------------------------------------------------------------------- */

static void many_chains(struct refusing *r)
{
    if (r->n->chain >= TEC_MAX_CHAINS && r->p->chains[r->n->chain].prefill == r->at)
        REFUSE(field(r, "reads"), "'%s' is one more prefill than the %d of different prompts",
               name_of(r->n), TEC_MAX_CHAINS);
}

static void many_models(struct refusing *r)
{
    int before = 0;
    bool known = false;
    for (int m = 0; m < r->p->n_models; m++) {
        int at = -1;
        for (int i = 0; i < r->at && at < 0; i++)
            if (!r->p->nodes[i].culled && r->p->nodes[i].model.index == m)
                at = i;
        before += at >= 0;
        known |= at >= 0 && m == r->n->model.index;
    }
    if (r->n->model.index >= 0 && !known && before >= TEC_MAX_MODELS)
        REFUSE(r->p->models[r->n->model.index].where, "'%s' is one more model than the %d",
               r->p->models[r->n->model.index].name, TEC_MAX_MODELS);
}

/* The rings of all sessions are rows of one forward. */
static void many_stages(struct refusing *r)
{
    int sessions = r->p->frame.sessions;
    if (r->n->kind != TEC_DECL_PREFILL || !stands_in_ring(r))
        return;
    int stages = r->p->resources[r->n->writes.index].stages;
    if (sessions > 1 && sessions * stages > TEC_MAX_STAGES)
        REFUSE(field(r, "writes"),
               "'%s' fills a ring of %d stages for each of %d sessions: %d of them are in one "
               "forward at most",
               name_of(r->n), stages, sessions, TEC_MAX_STAGES);
}

static void many_texts(struct refusing *r)
{
    int before = 0;
    for (int i = 0; i < r->at; i++)
        before += !r->p->nodes[i].culled && writes_text(&r->p->nodes[i]);
    if (writes_text(r->n) && !decodes_ring(r, r->n) && before >= TEC_MAX_DECODERS)
        REFUSE(field(r, "kv"), "'%s' is one more node that makes texts than the %d", name_of(r->n),
               TEC_MAX_DECODERS);
}

static void many_prompts(struct refusing *r)
{
    if (r->n->prompt.index >= 0 && tec_pipeline_prompt_of(r->p, r->n) >= TEC_MAX_PROMPTS)
        REFUSE(field(r, "prompt"), "'%s' is one more prompt of decode nodes than the %d",
               r->n->prompt.name, TEC_MAX_PROMPTS);
}

static void (*const cases[])(struct refusing *r) = {
    rate_of_frames,   segments_beside, shared_frame, prefill_target, no_prefill,    no_prefix,
    second_trigger,   beside_ring,     after_text,   awaited_text,   frame_before,  other_deadline,
    missed_text,      always_runs,     tokens_out,   typed_buffer,   shared_memory, memory_in_ring,
    several_segments, many_chains,     many_models,  many_texts,     many_reads,    many_prompts,
    draft_of_memory,  many_stages,
};

void tec_refuse(struct tec_loader *ld)
{
    struct refusing r = {.ld = ld, .p = ld->pipeline};
    for (r.at = 0; r.at < r.p->n_nodes; r.at++) {
        r.n = &r.p->nodes[r.at];
        for (size_t i = 0; !r.n->culled && r.n->chain >= 0 && i < sizeof cases / sizeof *cases; i++)
            cases[i](&r);
    }
}

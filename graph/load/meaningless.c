/* meaningless.c - graphs whose words are all right, but where what a node is told to do means
 * nothing, or has no use beside something simpler (E071). The message says why, and where there is
 * another way to say what was probably meant, the help does. */
#include "graph/load/refusing.h"

#include <string.h>

#define REFUSE(where, ...) tec_diagnostics_add(r->ld->d, TEC_E071, where, __VA_ARGS__)

static struct tec_where field(const struct tec_refusing *r, const char *name)
{
    return tec_refusing_field(r, name);
}

static const char *name_of(const struct tec_decl_node *n)
{
    return tec_refusing_name(n);
}

/* --- keys ------------------------------------------------------------------------------------ */

static void shared_frame(struct tec_refusing *r)
{
    int prefill = r->p->chains[r->n->chain].prefill;
    if (r->n->kind != TEC_DECL_PREFILL || prefill == r->at || prefill < 0 ||
        tec_pipeline_same_prefill(r->p, &r->p->nodes[prefill], r->n))
        return;
    struct tec_diagnostic *d = REFUSE(
        field(r, "writes"), "'%s' writes '%s' with other inputs or another template than '%s'",
        name_of(r->n), r->n->writes.name ? r->n->writes.name : "?", name_of(&r->p->nodes[prefill]));
    tec_diagnostics_also(r->ld->d, d, r->p->nodes[prefill].where, "the other prefill");
    tec_diagnostics_help(r->ld->d, d, "a kv.frame of its own");
}

static void prefill_target(struct tec_refusing *r)
{
    if (r->n->kind != TEC_DECL_PREFILL || r->n->writes.index < 0)
        return;
    if (tec_refusing_fills(r) && !tec_pipeline_ring_of(r->p, r->n->chain))
        REFUSE(field(r, "writes"), "'%s' fills ring '%s', but no decode node reads its stages",
               name_of(r->n), r->n->writes.name);
    else if (r->p->resources[r->n->writes.index].kind == TEC_RESOURCE_REQUESTS)
        REFUSE(field(r, "writes"),
               "'%s' writes '%s', a kv.requests: a prefill writes a kv.frame "
               "or a kv.ring",
               name_of(r->n), r->n->writes.name);
}

/* A chain that was made for nodes without a prefill. */
static void no_prefill(struct tec_refusing *r)
{
    bool loads = r->n->kind == TEC_DECL_MEMORY_LOAD;
    if (loads && !tec_pipeline_writer(r->p, r->n->into.index))
        REFUSE(field(r, "into"), "'%s' brings segments into '%s', which no prefill writes",
               name_of(r->n), r->n->into.name);
    else if (!loads && r->n->kind != TEC_DECL_REMEMBER && r->p->chains[r->n->chain].prefill < 0)
        REFUSE(field(r, "kv"), "'%s' stands on keys that no prefill of model '%s' writes",
               name_of(r->n), r->p->models[r->p->chains[r->n->chain].model].name);
}

static void no_prefix(struct tec_refusing *r)
{
    if (tec_decl_makes_text(r->n) && tec_refusing_on(r, r->n, TEC_RESOURCE_REQUESTS) &&
        r->p->resources[r->n->kv.index].share_prefix.index < 0)
        REFUSE(field(r, "kv"), "'%s' stands on '%s', a kv.requests without share_prefix",
               name_of(r->n), r->n->kv.name);
}

static void frame_before(struct tec_refusing *r)
{
    bool acts = r->n->kind == TEC_DECL_ACTION && tec_refusing_on(r, r->n, TEC_RESOURCE_FRAME);
    if (r->n->kv.prev && !acts && !tec_refusing_on(r, r->n, TEC_RESOURCE_RING))
        REFUSE(field(r, "kv"),
               "'%s' reads '%s' of the frame before, but a text stands on what its request saw: "
               "prev takes a kv.ring, or a kv.frame for actions",
               name_of(r->n), r->n->kv.name);
}

static void several_segments(struct tec_refusing *r)
{
    if (r->n->kind != TEC_DECL_MEMORY_LOAD || r->n->reads.n == 1)
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "reads"), "'%s' reads %d inputs of segments: it reads one", name_of(r->n),
               r->n->reads.n);
    tec_diagnostics_help(r->ld->d, d, "a memory_load for each, in the order of their `after`");
}

/* Segments are found for a prompt and brought into it; by themselves they are no part of one. */
static void segments_alone(struct tec_refusing *r)
{
    struct tec_where last = {0};
    if (r->n->kind != TEC_DECL_PREFILL || tec_refusing_reads(r, TEC_INPUT_SEGMENTS, &last) == 0)
        return;
    struct tec_diagnostic *d = REFUSE(
        last, "'%s' reads segments, but a memory_load brings them into its prompt", name_of(r->n));
    tec_diagnostics_help(r->ld->d, d,
                         "leave them out here: a memory_load reads them, into = \"%s\"",
                         r->n->writes.name);
}

/* Each node that loads from a memory has keys of its segments; what they are is one input's, and
 * what was said. */
static void shared_memory(struct tec_refusing *r)
{
    const struct tec_decl_node *n = r->n, *other = NULL;
    for (int i = 0; n->kind == TEC_DECL_MEMORY_LOAD && i < r->at && !other; i++) {
        const struct tec_decl_node *o = &r->p->nodes[i];
        if (o->kind == TEC_DECL_MEMORY_LOAD && !o->culled && o->from.index == n->from.index)
            other = o;
    }
    bool twice = other && other->chain == n->chain;
    bool apart = other && n->reads.n && other->reads.n &&
                 other->reads.item[0].index != n->reads.item[0].index;
    if (!twice && !apart)
        return;
    struct tec_diagnostic *d =
        twice ? REFUSE(field(r, "into"), "'%s' brings the segments of '%s' into '%s' once more",
                       name_of(n), n->from.name, n->into.name)
              : REFUSE(field(r, "reads"),
                       "'%s' reads '%s', but what is in '%s' is said by '%s': one input has its "
                       "segments",
                       name_of(n), n->reads.item[0].name, n->from.name, other->reads.item[0].name);
    tec_diagnostics_also(r->ld->d, d, other->where, "the other memory_load");
}

/* What of a prompt is computed anew is known when its segments are there: a launch of its own. */
static void packed_memory(struct tec_refusing *r)
{
    if (!tec_refusing_rings(r, r->n) || r->n->pack_with.index < 0 ||
        !tec_pipeline_remembers(r->p, r->n->chain))
        return;
    struct tec_diagnostic *d = REFUSE(
        field(r, "pack_with"),
        "'%s' shares its launches with '%s', but a prompt with a memory is a launch of its own",
        name_of(r->n), r->n->pack_with.name);
    tec_diagnostics_help(r->ld->d, d, "leave pack_with out");
}

/* Requests stand on the newest sequence of a ring, where its keys are. */
static void copied_ring(struct tec_refusing *r)
{
    const struct tec_decl_node *ring = tec_pipeline_ring_of(r->p, r->n->chain);
    if (!ring || !tec_decl_makes_text(r->n) || !tec_refusing_on(r, r->n, TEC_RESOURCE_REQUESTS) ||
        r->p->resources[ring->kv.index].pack != TEC_PACK_GATHER)
        return;
    struct tec_diagnostic *d = REFUSE(
        field(r, "kv"),
        "'%s' stands on ring '%s', which copies what is visible for each launch of one token: "
        "a text's launch makes several",
        name_of(r->n), ring->kv.name);
    tec_diagnostics_also(r->ld->d, d, ring->where, "the ring's decode node");
    tec_diagnostics_help(r->ld->d, d, "pack = \"packed\" on '%s' reads keys where they are",
                         ring->kv.name);
}

/* A ring's sequences are the actions of its decode node, on their way. */
static void beside_ring(struct tec_refusing *r)
{
    const struct tec_decl_node *n = r->n, *ring = tec_pipeline_ring_of(r->p, n->chain);
    if (!ring || ring == n || (n->kind != TEC_DECL_ACTION && !tec_refusing_rings(r, n)))
        return;
    bool other = n->kind != TEC_DECL_ACTION && n->kv.index != ring->kv.index;
    struct tec_diagnostic *d =
        other ? REFUSE(field(r, "kv"), "'%s' decodes ring '%s', whose prompt is that of ring '%s'",
                       name_of(n), n->kv.name, ring->kv.name)
              : REFUSE(field(r, "kv"),
                       "'%s' stands on the sequences of ring '%s', but these are the actions that "
                       "'%s' makes",
                       name_of(n), ring->kv.name, name_of(ring));
    tec_diagnostics_also(r->ld->d, d, ring->where, "the ring's decode node");
}

/* A ring takes an observation in in every frame: with fewer its stages would run empty. */
static void rate_of_ring(struct tec_refusing *r)
{
    const struct tec_decl_spawn *s = &r->n->spawn;
    bool every = s->kind == TEC_SPAWN_NONE || (s->kind == TEC_SPAWN_EVERY && s->frames == 1);
    if (r->n->kind == TEC_DECL_PREFILL && tec_refusing_fills(r) && !every)
        REFUSE(field(r, "spawn"),
               "'%s' fills ring '%s' at a rate, but a ring takes an observation in in every frame",
               name_of(r->n), r->n->writes.name);
}

/* on_change() compares texts. */
static void nothing_changes(struct tec_refusing *r)
{
    struct tec_where last = {0};
    const struct tec_decl_spawn *s = &r->n->spawn;
    if (r->n->kind != TEC_DECL_PREFILL || s->kind != TEC_SPAWN_ON_CHANGE || s->value ||
        tec_refusing_reads(r, TEC_INPUT_TEXT, &last) > 0)
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "spawn"), "'%s' runs where a text that it reads is new, but it reads none",
               name_of(r->n));
    tec_diagnostics_help(r->ld->d, d,
                         "every(n); a picture and the state are new with each observation");
}

/* Where its prefill begins with a new text there may be none for longer than a chunk lasts. */
static void acts_with_text(struct tec_refusing *r)
{
    if (r->n->kind != TEC_DECL_ACTION || tec_pipeline_acts_every(r->p, r->n) > 0)
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "spawn"),
               "'%s' runs where '%s' is new, and that is made where a text is, which may be long "
               "after the chunk of '%s' is used up",
               name_of(r->n), r->n->kv.name, name_of(r->n));
    tec_diagnostics_help(r->ld->d, d, "leave spawn out: it acts on the newest one in every frame");
}

/* --- order ----------------------------------------------------------------------------------- */

/* Of a prefill that reads the text. One that requests wait for begins behind the text by itself,
 * where the text starts it. */
static void waiting_prefill(struct tec_refusing *r, const struct tec_decl_node *text)
{
    if (tec_pipeline_in_frames(r->p, r->n))
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "after"),
               "'%s' waits for the text of '%s' within a frame, but no frame waits for it: "
               "requests do",
               name_of(r->n), name_of(text));
    tec_diagnostics_help(r->ld->d, d, "spawn = on_change(\"%s\") begins it with each new text",
                         text->out.name ? text->out.name : "NAME");
}

/* Actions wait for a text on the keys of the same prefill, prefills for one that they read. */
static void after_text(struct tec_refusing *r)
{
    int early = r->n->after.index;
    const struct tec_decl_node *text = early < 0 ? NULL : &r->p->nodes[early];
    if (!text || !tec_decl_makes_text(text))
        return;
    if (r->n->kind == TEC_DECL_PREFILL && tec_pipeline_waits_for(r->p, r->n))
        waiting_prefill(r, text);
    else if (r->n->kind != TEC_DECL_ACTION || tec_refusing_rings(r, text))
        REFUSE(field(r, "after"),
               "'%s' waits for the text of '%s', but reads nothing of it: actions wait for texts, "
               "and prefills that read them",
               name_of(r->n), name_of(text));
    else if (text->chain != r->n->chain)
        REFUSE(field(r, "after"),
               "'%s' waits for the text of '%s', but reads nothing of it: that stands on the keys "
               "of another prefill",
               name_of(r->n), name_of(text));
}

/* A partition is for what runs beside hard nodes. */
static void awaited_partition(struct tec_refusing *r)
{
    if (tec_decl_makes_text(r->n) && tec_pipeline_awaited(r->p, r->n) && r->n->partition.index >= 0)
        REFUSE(field(r, "partition"),
               "'%s' is on a partition, but its text is made between hard nodes, when nothing runs "
               "beside it",
               name_of(r->n));
}

/* --- deadlines ------------------------------------------------------------------------------- */

/* Is this a text with a hard deadline beside actions, on a prefill that no frame runs? */
static bool late_text(const struct tec_refusing *r)
{
    return tec_decl_makes_text(r->n) && !tec_refusing_rings(r, r->n) &&
           r->n->deadline.kind == TEC_DEADLINE_HARD && tec_pipeline_actor(r->p) &&
           !tec_pipeline_in_frames(r->p, r->n);
}

/* A deadline of the other kind, which nothing would follow. */
static void other_deadline(struct tec_refusing *r)
{
    bool acts = r->n->kind == TEC_DECL_ACTION || tec_refusing_rings(r, r->n);
    if (acts && r->n->deadline.kind == TEC_DEADLINE_SOFT)
        REFUSE(field(r, "deadline"),
               "'%s' makes actions with a soft deadline, but a robot waits for actions",
               name_of(r->n));
    else if (late_text(r))
        REFUSE(field(r, "deadline"),
               "'%s' makes texts with a hard deadline beside actions, but its prefill is one that "
               "requests wait for: it has the time that hard nodes leave",
               name_of(r->n));
}

/* What a robot is given where actions are late, which a late text does not change. */
static void missed_text(struct tec_refusing *r)
{
    const struct tec_decl_entry *hard = tec_decl_value_find(r->ld->nodes[r->at].value, "deadline");
    if (!tec_decl_makes_text(r->n) || tec_refusing_rings(r, r->n) ||
        r->n->deadline.kind != TEC_DEADLINE_HARD || !hard)
        return;
    for (int i = 0; i < hard->value->n; i++) {
        const struct tec_decl_entry *e = &hard->value->entries[i];
        if (e->key && strcmp(e->key, "ms") != 0)
            REFUSE(tec_where_key(r->ld, e),
                   "'%s' makes texts: '%.20s' says what a robot is given in place of late actions, "
                   "and nothing is given in place of a text",
                   name_of(r->n), e->key);
    }
}

/* A decision leaves out actions and what waits for its turn, nothing that others stand on. */
static void always_runs(struct tec_refusing *r)
{
    bool prefill = r->n->kind == TEC_DECL_PREFILL;
    const char *why = !r->n->when_policy ? NULL
                      : tec_refusing_rings(r, r->n) || (prefill && tec_refusing_fills(r))
                          ? "a ring goes on in every frame"
                      : prefill && tec_pipeline_in_frames(r->p, r->n) ? "it is the frames' prefill"
                      : tec_decl_makes_text(r->n) && r->n->deadline.kind == TEC_DEADLINE_HARD
                          ? "its deadline is hard"
                      : tec_pipeline_awaited(r->p, r->n) ? "a hard node waits for it"
                                                         : NULL;
    if (why)
        REFUSE(field(r, "when"), "'%s' may be left out of a frame by a policy, but %s",
               name_of(r->n), why);
}

/* --- what leaves ----------------------------------------------------------------------------- */

static void tokens_out(struct tec_refusing *r)
{
    if (tec_decl_makes_text(r->n) && !tec_refusing_rings(r, r->n) && r->n->out.buffer >= 0)
        REFUSE(field(r, "out"), "'%s' writes tokens to a buffer: they leave as a stream",
               name_of(r->n));
}

static void typed_buffer(struct tec_refusing *r)
{
    int buffer = r->n->out.buffer;
    if (r->n->kind == TEC_DECL_ACTION && buffer >= 0 &&
        r->p->resources[buffer].dtype != TEC_DECL_F32)
        REFUSE(tec_where_field(r->ld, &r->ld->resources[buffer], "dtype"),
               "buffer '%s' takes actions, which are f32", r->p->resources[buffer].name);
}

void tec_refuse_meaningless(struct tec_refusing *r)
{
    static void (*const cases[])(struct tec_refusing * r) = {
        shared_frame,    prefill_target, no_prefill,     no_prefix,     frame_before,
        rate_of_ring,    after_text,     tokens_out,     typed_buffer,  awaited_partition,
        nothing_changes, acts_with_text, segments_alone, shared_memory, copied_ring,
        beside_ring,     other_deadline, missed_text,    always_runs,   several_segments,
        packed_memory,
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cases[i](r);
}

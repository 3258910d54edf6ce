/* check.c - what the nodes read and write: kinds, writers, order, reach. */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

struct checker {
    struct tec_loader *ld;
    struct tec_pipeline *p;
    struct tec_decl_node *nodes;
    struct tec_decl_resource *resources;
};

static uint32_t bit(int kind)
{
    return 1u << kind;
}

/* E024 unless `ref` is one of `kinds`; *use tells whether it may be looked at further. */
static bool check_kind(struct checker *c, int node, const struct tec_ref *ref, const char *field,
                       uint32_t kinds, const char *allowed)
{
    if (ref->index < 0)
        return false;
    const struct tec_decl_resource *res = &c->p->resources[ref->index];
    if (bit((int)res->kind) & kinds)
        return true;
    struct tec_diagnostic *d = tec_diagnostics_add(
        c->ld->d, TEC_E024, tec_where_field(c->ld, &c->ld->nodes[node], field),
        "'%s' is a %s: %s of %s takes %s", ref->name, tec_resource_word(res->kind), field,
        tec_decl_node_word(c->p->nodes[node].kind), allowed);
    tec_diagnostics_also(c->ld->d, d, res->where, "'%s' is declared here", ref->name);
    return false;
}

static void check_prev(struct checker *c, int i)
{
    const struct tec_ref *kv = &c->p->nodes[i].kv;
    if (kv->index < 0 || !kv->prev)
        return;
    struct tec_decl_resource *res = &c->resources[kv->index];
    res->read_prev = true;
    if (res->kind == TEC_RESOURCE_RING || res->kind == TEC_RESOURCE_FRAME)
        return;
    tec_diagnostics_add(c->ld->d, TEC_E024, tec_where_field(c->ld, &c->ld->nodes[i], "kv"),
                        "prev is for kv.ring and kv.frame, '%s' is a %s: it lives on by itself",
                        kv->name, tec_resource_word(res->kind));
}

static void check_pack(struct checker *c, int i)
{
    const struct tec_decl_node *n = &c->p->nodes[i];
    if (n->pack_with.index < 0 || n->kv.index < 0)
        return;
    const struct tec_decl_node *with = &c->p->nodes[n->pack_with.index];
    if (with->kind == TEC_DECL_PREFILL && with->writes.index == n->kv.index &&
        c->p->resources[n->kv.index].kind == TEC_RESOURCE_RING)
        return;
    tec_diagnostics_add(c->ld->d, TEC_E024, tec_where_field(c->ld, &c->ld->nodes[i], "pack_with"),
                        "'%s' cannot share a launch with '%s': pack_with names the prefill that "
                        "writes the same kv.ring",
                        n->name ? n->name : "?", n->pack_with.name);
}

static void check_spawn(struct checker *c, int i)
{
    const struct tec_decl_node *n = &c->p->nodes[i];
    bool scores = n->kind == TEC_DECL_SCORE;
    if ((n->kind != TEC_DECL_DECODE && !scores) || n->kv.index < 0)
        return;
    const struct tec_decl_resource *res = &c->p->resources[n->kv.index];
    bool requests = res->kind == TEC_RESOURCE_REQUESTS || scores;
    const struct tec_decl_entry *thing = &c->ld->nodes[i];
    if (requests && n->spawn.kind == TEC_SPAWN_NONE &&
        !tec_decl_value_find(thing->value, "spawn")) {
        struct tec_diagnostic *d = tec_diagnostics_add(
            c->ld->d, TEC_E025, tec_where_thing(c->ld, thing), "nothing spawns requests for '%s'",
            n->name ? n->name : tec_decl_node_word(n->kind));
        tec_diagnostics_help(c->ld->d, d,
                             "add spawn = every(1), spawn = on_change(), or spawn = on_request()");
    } else if (!requests && res->kind == TEC_RESOURCE_RING &&
               (n->spawn.kind != TEC_SPAWN_NONE || n->supersede || n->prompt.index >= 0)) {
        const char *field = n->spawn.kind != TEC_SPAWN_NONE ? "spawn"
                            : n->supersede                  ? "supersede"
                                                            : "prompt";
        tec_diagnostics_add(c->ld->d, TEC_E024, tec_where_field(c->ld, thing, field),
                            "%s needs a kv.requests or kv.frame, '%s' is a %s", field, n->kv.name,
                            tec_resource_word(res->kind));
    }
}

/* A score node ranks texts, so its output must be a stream. */
static void check_stream(struct checker *c, int i)
{
    const struct tec_decl_node *n = &c->p->nodes[i];
    if (n->kind == TEC_DECL_SCORE && n->out.name && !n->out.stream)
        tec_diagnostics_add(c->ld->d, TEC_E024, tec_where_field(c->ld, &c->ld->nodes[i], "out"),
                            "out of score is a stream, as in out = stream \"%s\"", n->out.name);
}

static void check_node(struct checker *c, int i)
{
    const struct tec_decl_node *n = &c->p->nodes[i];
    uint32_t frame = bit(TEC_RESOURCE_FRAME), requests = bit(TEC_RESOURCE_REQUESTS);
    uint32_t ring = bit(TEC_RESOURCE_RING);
    struct tec_ref out = {n->out.name, n->out.buffer, false};
    check_kind(c, i, &n->writes, "writes", frame | requests | ring,
               "a kv.frame, kv.requests or kv.ring");
    if (n->kind == TEC_DECL_ACTION || n->kind == TEC_DECL_SCORE)
        check_kind(c, i, &n->kv, "kv", frame | requests, "a kv.frame or kv.requests");
    else
        check_kind(c, i, &n->kv, "kv", frame | requests | ring,
                   "a kv.frame, kv.requests or kv.ring");
    check_kind(c, i, &n->or_kv, "or_kv", frame, "a kv.frame");
    check_kind(c, i, &n->from, "from", bit(TEC_RESOURCE_SEGMENTS), "a kv.segments");
    check_kind(c, i, &n->into, "into", frame | ring, "a kv.frame or kv.ring");
    check_kind(c, i, &n->memory, "into", bit(TEC_RESOURCE_SEGMENTS), "a kv.segments");
    check_kind(c, i, &out, "out", bit(TEC_RESOURCE_BUFFER), "a buffer");
    check_prev(c, i);
    check_pack(c, i);
    check_spawn(c, i);
    check_stream(c, i);
    if (n->prompt.index >= 0 && c->p->inputs[n->prompt.index].kind != TEC_INPUT_TEXT)
        tec_diagnostics_add(c->ld->d, TEC_E024, tec_where_field(c->ld, &c->ld->nodes[i], "prompt"),
                            "prompt of decode takes a text input, '%s' is not one", n->prompt.name);
    if (n->kind == TEC_DECL_MEMORY_LOAD)
        for (int k = 0; k < n->reads.n; k++)
            if (n->reads.item[k].index >= 0 &&
                c->p->inputs[n->reads.item[k].index].kind != TEC_INPUT_SEGMENTS)
                tec_diagnostics_add(
                    c->ld->d, TEC_E024, tec_where_field(c->ld, &c->ld->nodes[i], "reads"),
                    "memory_load reads a segments input, '%s' is not one", n->reads.item[k].name);
}

/* Tokens of the longest answer kept in a resource, with a prompt of its own; at least one. */
static int longest_answer(const struct tec_pipeline *p, int resource)
{
    int most = 1;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->kv.index != resource)
            continue;
        int own = n->prompt.index < 0 ? 0 : p->inputs[n->prompt.index].max_tokens;
        most = own + n->max_tokens > most ? own + n->max_tokens : most;
    }
    return most;
}

static void check_prefix(struct checker *c, int i)
{
    const struct tec_decl_resource *res = &c->p->resources[i];
    int from = res->share_prefix.index;
    if (from < 0)
        return;
    const struct tec_decl_resource *prefix = &c->p->resources[from];
    struct tec_where where = tec_where_field(c->ld, &c->ld->resources[i], "share_prefix");
    if (prefix->kind != TEC_RESOURCE_FRAME && prefix->kind != TEC_RESOURCE_RING)
        tec_diagnostics_add(c->ld->d, TEC_E024, where,
                            "'%s' is a %s: only a kv.frame can be forked", prefix->name,
                            tec_resource_word(prefix->kind));
    else if (prefix->tokens > 0 && res->tokens > 0 && res->tokens <= prefix->tokens)
        tec_diagnostics_help(
            c->ld->d,
            tec_diagnostics_add(
                c->ld->d, TEC_E011, tec_where_field(c->ld, &c->ld->resources[i], "tokens"),
                "'%s' holds %d tokens, its prefix '%s' alone has up to %d",
                res->name ? res->name : "?", res->tokens, prefix->name, prefix->tokens),
            "give it the prefix and the longest answer: %d or more",
            prefix->tokens + longest_answer(c->p, i));
}

/* All resources that node i fills: at most three. */
static int written(const struct tec_decl_node *n, int out[3])
{
    int count = 0;
    if (n->writes.index >= 0)
        out[count++] = n->writes.index;
    if (n->into.index >= 0)
        out[count++] = n->into.index;
    if (n->out.buffer >= 0)
        out[count++] = n->out.buffer;
    return count;
}

static bool writes(const struct tec_decl_node *n, int resource)
{
    int list[3], count = written(n, list);
    for (int i = 0; i < count; i++)
        if (list[i] == resource)
            return true;
    return false;
}

static bool runs_after(const struct tec_pipeline *p, int late, int early)
{
    for (int i = 0, at = late; i <= p->n_nodes && at >= 0; i++) {
        at = p->nodes[at].after.index;
        if (at == early)
            return true;
    }
    return tec_pipeline_loads_first(p, &p->nodes[late], &p->nodes[early]);
}

static void check_writers(struct checker *c)
{
    for (int i = 1; i < c->p->n_nodes; i++) {
        int list[3], count = written(&c->p->nodes[i], list);
        for (int k = 0; k < count; k++) {
            for (int j = 0; j < i; j++) {
                bool out = list[k] == c->p->nodes[i].out.buffer;
                if (out && c->p->resources[list[k]].kind != TEC_RESOURCE_BUFFER)
                    continue;
                if (!writes(&c->p->nodes[j], list[k]) || runs_after(c->p, i, j) ||
                    runs_after(c->p, j, i))
                    continue;
                const struct tec_decl_node *n = &c->p->nodes[i];
                const char *field = n->writes.index == list[k] ? "writes"
                                    : n->into.index == list[k] ? "into"
                                                               : "out";
                struct tec_diagnostic *d = tec_diagnostics_add(
                    c->ld->d, TEC_E022, tec_where_field(c->ld, &c->ld->nodes[i], field),
                    "'%s' and '%s' both write '%s'",
                    c->p->nodes[j].name ? c->p->nodes[j].name : "?", n->name ? n->name : "?",
                    c->p->resources[list[k]].name);
                tec_diagnostics_also(c->ld->d, d, c->p->nodes[j].where, "the other writer");
                bool actions = n->kind == TEC_DECL_ACTION && c->p->nodes[j].kind == TEC_DECL_ACTION;
                tec_diagnostics_help(c->ld->d, d,
                                     actions ? "give each action node a buffer of its own"
                                             : "give each its own resource, or order them with "
                                               "`after`");
                j = i;
            }
        }
    }
}

static bool is_written(const struct checker *c, int resource)
{
    for (int i = 0; i < c->p->n_nodes; i++)
        if (writes(&c->p->nodes[i], resource))
            return true;
    return false;
}

/* A node that is not there, or a name that does not resolve, may be the writer. */
static bool knows_writers(const struct checker *c)
{
    for (int i = 0; i < c->p->n_nodes; i++) {
        const struct tec_decl_node *n = &c->p->nodes[i];
        bool fills = n->kind == TEC_DECL_PREFILL || n->kind == TEC_DECL_MEMORY_LOAD;
        if (fills && n->writes.index < 0 && n->into.index < 0)
            return false;
    }
    return !c->ld->torn[TEC_NODES];
}

static void check_readers(struct checker *c)
{
    for (int i = 0; i < c->p->n_nodes; i++) {
        const struct tec_ref *kv = &c->p->nodes[i].kv;
        if (kv->index < 0)
            continue;
        const struct tec_decl_resource *res = &c->p->resources[kv->index];
        const struct tec_ref *prefix = &res->share_prefix;
        bool forked = res->kind == TEC_RESOURCE_REQUESTS && prefix->name;
        bool written_here = is_written(c, kv->index) || res->kind == TEC_RESOURCE_BUFFER;
        if (written_here || (forked && (prefix->index < 0 || is_written(c, prefix->index))))
            continue;
        struct tec_diagnostic *d =
            tec_diagnostics_add(c->ld->d, TEC_E023, tec_where_field(c->ld, &c->ld->nodes[i], "kv"),
                                "'%s' reads '%s', but nothing writes '%s'",
                                c->p->nodes[i].name ? c->p->nodes[i].name : "?", kv->name,
                                forked ? prefix->name : kv->name);
        tec_diagnostics_help(
            c->ld->d, d, "add a prefill { writes = \"%s\" }%s", forked ? prefix->name : kv->name,
            res->kind == TEC_RESOURCE_REQUESTS && !forked ? ", or share_prefix to the kv.requests"
                                                          : "");
    }
}

/* Must node `early` be done before `late` starts, in one frame? */
static bool edge(const struct checker *c, int early, int late)
{
    const struct tec_decl_node *a = &c->p->nodes[early], *b = &c->p->nodes[late];
    if (early == late)
        return false;
    if (b->after.index == early)
        return true;
    if (b->kv.index < 0 || b->kv.prev)
        return false;
    const struct tec_decl_resource *res = &c->p->resources[b->kv.index];
    if (res->kind == TEC_RESOURCE_RING)
        return false; /* reported by itself */
    return writes(a, b->kv.index) ||
           (res->share_prefix.index >= 0 && writes(a, res->share_prefix.index));
}

static void check_ring(struct checker *c, int i)
{
    const struct tec_decl_node *n = &c->p->nodes[i];
    if (n->kind != TEC_DECL_DECODE || n->kv.index < 0 || n->kv.prev ||
        c->p->resources[n->kv.index].kind != TEC_RESOURCE_RING)
        return;
    struct tec_diagnostic *d =
        tec_diagnostics_add(c->ld->d, TEC_E026, tec_where_field(c->ld, &c->ld->nodes[i], "kv"),
                            "'%s' reads ring '%s' in the frame that fills it: this is a cycle",
                            n->name ? n->name : "decode", n->kv.name);
    tec_diagnostics_help(c->ld->d, d, "a cross-frame edge must be explicit: kv = prev \"%s\"",
                         n->kv.name);
}

static void check_after(struct checker *c, int i)
{
    const struct tec_decl_node *n = &c->p->nodes[i];
    if (n->after.index == i)
        tec_diagnostics_add(c->ld->d, TEC_E026, tec_where_field(c->ld, &c->ld->nodes[i], "after"),
                            "'%s' waits for itself", n->name);
}

/* Nodes in declared order as far as edges allow; what is left over waits in a circle. */
static void order(struct checker *c)
{
    int n = c->p->n_nodes, done = 0;
    int *list = TEC_NEW(c->ld->arena, (size_t)n + 1, int);
    bool placed[64] = {false}, moved = true;
    if (!tec_loader_has(c->ld, list))
        return;
    while (moved) {
        moved = false;
        for (int i = 0; i < n && !moved; i++) {
            bool ready = !placed[i];
            for (int j = 0; j < n && ready; j++)
                ready = placed[j] || !edge(c, j, i);
            if (!ready)
                continue;
            placed[i] = moved = true;
            list[done++] = i;
        }
    }
    c->p->order = list;
    for (int i = 0; i < n && done < n; i++) {
        if (placed[i])
            continue;
        /* Walk backwards until a node repeats: it is on the circle. */
        int at = i, before = i;
        for (int step = 0; step <= n; step++) {
            for (int j = 0; j < n; j++)
                if (!placed[j] && edge(c, j, at)) {
                    before = j;
                    break;
                }
            at = before;
        }
        const struct tec_decl_node *a = &c->p->nodes[at];
        const char *field = a->after.index >= 0 && !placed[a->after.index] ? "after" : "kv";
        tec_diagnostics_add(c->ld->d, TEC_E026, tec_where_field(c->ld, &c->ld->nodes[at], field),
                            "'%s' waits for itself: its %s leads around a circle of nodes",
                            a->name ? a->name : "?", field);
        return;
    }
}

static const char *name_of(const struct tec_decl_node *n)
{
    return n->name ? n->name : tec_decl_node_word(n->kind);
}

/* A node that a hard one waits for within a frame is as hard, so none of them may have a soft
 * deadline. */
static void check_awaited(struct checker *c)
{
    int n = c->p->n_nodes, waiter[64];
    for (int i = 0; i < n; i++)
        waiter[i] = c->nodes[i].deadline.kind == TEC_DEADLINE_HARD ? i : -1;
    for (bool changed = true; changed;) {
        changed = false;
        for (int late = 0; late < n; late++)
            for (int early = 0; early < n && waiter[late] >= 0; early++)
                if (waiter[early] < 0 && edge(c, early, late)) {
                    waiter[early] = late;
                    changed = true;
                }
    }
    for (int i = 0; i < n; i++) {
        const struct tec_decl_node *node = &c->nodes[i];
        if (waiter[i] < 0 || node->deadline.kind != TEC_DEADLINE_SOFT)
            continue;
        const struct tec_decl_node *late = &c->nodes[waiter[i]];
        struct tec_diagnostic *d = tec_diagnostics_add(
            c->ld->d, TEC_E028, tec_where_field(c->ld, &c->ld->nodes[i], "deadline"),
            "'%s' has a soft deadline, but '%s' waits for it within the frame", name_of(node),
            name_of(late));
        tec_diagnostics_also(c->ld->d, d, late->where, "the node that waits");
        tec_diagnostics_help(c->ld->d, d,
                             "leave the deadline of '%s' out, or let '%s' not wait for it",
                             name_of(node), name_of(late));
    }
}

static void reach(struct checker *c)
{
    int n = c->p->n_nodes;
    for (int i = 0; i < n; i++) {
        struct tec_decl_node *node = &c->nodes[i];
        node->root = node->deadline.kind != TEC_DEADLINE_NONE || node->out.name != NULL ||
                     node->kind == TEC_DECL_REMEMBER;
        node->culled = !node->root;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n && c->nodes[i].culled; j++) {
                const struct tec_decl_node *to = &c->nodes[j];
                bool used =
                    !to->culled && (edge(c, i, j) || to->pack_with.index == i ||
                                    tec_pipeline_acts_on(c->p, to, &c->nodes[i]) ||
                                    (to->kv.index >= 0 && writes(&c->nodes[i], to->kv.index)));
                /* what an ordered second writer adds to is needed with it */
                used |= !to->culled && to->writes.index >= 0 &&
                        writes(&c->nodes[i], to->writes.index) && runs_after(c->p, j, i);
                changed |= used;
                c->nodes[i].culled = !used;
            }
        }
    }
    bool left = n == 0;
    for (int i = 0; i < n; i++)
        left |= !c->nodes[i].culled;
    if (!left && !c->ld->broken)
        tec_diagnostics_add(c->ld->d, TEC_E029, c->p->where,
                            "no node is left: nothing that any of them does reaches an output or a "
                            "deadline");
    for (int i = 0; i < n && !c->ld->broken; i++)
        if (c->nodes[i].culled)
            tec_diagnostics_help(
                c->ld->d,
                tec_diagnostics_add(c->ld->d, TEC_W103, tec_where_thing(c->ld, &c->ld->nodes[i]),
                                    "'%s' is left out: nothing it does reaches an output or a "
                                    "deadline",
                                    c->nodes[i].name ? c->nodes[i].name : "?"),
                "give it an out or a deadline, or remove it");
}

/* A resource gets its model from the nodes that use it; a memory is texts, of which each node that
 * loads them has keys. */
static void check_models(struct checker *c)
{
    for (int i = 0; i < c->p->n_nodes; i++) {
        const struct tec_decl_node *n = &c->p->nodes[i];
        const struct tec_ref *uses[] = {&n->writes, &n->kv, &n->from, &n->into, &n->memory};
        static const char *const fields[] = {"writes", "kv", "from", "into", "into"};
        for (int k = 0; k < 5; k++) {
            if (uses[k]->index < 0 || n->model.index < 0)
                continue;
            struct tec_decl_resource *res = &c->resources[uses[k]->index];
            if (res->kind == TEC_RESOURCE_SEGMENTS)
                continue;
            if (res->model < 0)
                res->model = n->model.index;
            if (res->model == n->model.index)
                continue;
            tec_diagnostics_add(
                c->ld->d, TEC_E024, tec_where_field(c->ld, &c->ld->nodes[i], fields[k]),
                "'%s' runs model '%s', but '%s' holds keys of model '%s'", n->name ? n->name : "?",
                n->model.name, res->name, c->p->models[res->model].name);
        }
    }
    for (int i = 0; i < c->p->n_resources; i++) {
        int prefix = c->resources[i].share_prefix.index;
        if (prefix < 0 || c->resources[i].model < 0 || c->resources[prefix].model < 0 ||
            c->resources[i].model == c->resources[prefix].model)
            continue;
        tec_diagnostics_add(c->ld->d, TEC_E024,
                            tec_where_field(c->ld, &c->ld->resources[i], "share_prefix"),
                            "'%s' and '%s' belong to different models", c->resources[i].name,
                            c->resources[prefix].name);
    }
}

void tec_check_graph(struct tec_loader *ld)
{
    struct checker c = {.ld = ld, .p = ld->pipeline};
    c.nodes = ld->lists[TEC_NODES];
    c.resources = ld->lists[TEC_RESOURCES];
    for (int i = 0; i < c.p->n_resources; i++)
        check_prefix(&c, i);
    for (int i = 0; i < c.p->n_nodes; i++) {
        check_node(&c, i);
        check_ring(&c, i);
        check_after(&c, i);
        tec_check_remember(ld, i);
    }
    check_models(&c);
    check_writers(&c);
    if (knows_writers(&c))
        check_readers(&c);
    order(&c);
    check_awaited(&c);
    reach(&c);
}

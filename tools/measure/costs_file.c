/* costs_file.c - reads the file of --costs and compares it with the pipeline that it is given
 * to. */
#include "tools/measure/costs_file.h"

#include "graph/load/pipeline_texts.h"
#include "graph/nodes/node.h"
#include "tools/cli/expect.h"

#include <string.h>

/* Names, each listed once, joined for a sentence as far as they fit. */
struct names {
    int n;
    char text[160];
};

static void add_name(struct names *names, const char *name)
{
    size_t used = strlen(names->text);
    if (names->n++ < 6 && used + 48 < sizeof names->text)
        snprintf(names->text + used, sizeof names->text - used, "%s'%.40s'", used ? ", " : "",
                 name);
    else if (used + 5 < sizeof names->text && names->text[used - 1] != '.')
        memcpy(names->text + used, ", ...", 6);
}

static bool is_timed(const struct tec_decl_node *n)
{
    return !n->culled && tec_node_timed(tec_decl_node_word(n->kind));
}

/* A ring's launches have names of their own, because each belongs to two nodes at once. Those of
 * another model's ring end with its name. */
static const char *const ring_names[] = {"packed", "decode"};

static bool is_launch(const struct tec_pipeline *p, const char *name)
{
    const struct tec_decl_node *n;
    bool any = false;
    for (int w = 0; w < 2; w++) {
        size_t length = strlen(ring_names[w]);
        if (strncmp(name, ring_names[w], length) != 0)
            continue;
        for (int i = 0; (n = tec_pipeline_ring(p, i)); i++)
            any |= name[length] == '\0' ||
                   (name[length] == '.' &&
                    strcmp(name + length + 1, p->resources[n->kv.index].name) == 0);
    }
    return any;
}

/* Does a node make texts of a chain? */
static bool has_texts(const struct tec_pipeline *p, int chain)
{
    bool any = false;
    for (int i = 0; i < p->n_nodes; i++)
        any |= !p->nodes[i].culled && p->nodes[i].chain == chain &&
               (p->nodes[i].kind == TEC_DECL_SCORE ||
                (p->nodes[i].kind == TEC_DECL_DECODE && !tec_pipeline_rings(p, &p->nodes[i])));
    return any;
}

/* Do its launches go by the node's own name? Not where they are a ring's, but for the prefill of a
 * request that shares nothing. */
static bool has_launches(const struct tec_pipeline *p, const struct tec_decl_node *node)
{
    const struct tec_decl_node *n;
    for (int i = 0; (n = tec_pipeline_ring(p, i)); i++)
        if (n == node || (n->pack_with.index >= 0 && &p->nodes[n->pack_with.index] == node))
            return n != node && has_texts(p, node->chain);
    return is_timed(node);
}

/* Are these rows of a memory, which has others than its prefill's: of its prompts, or of what is
 * kept? */
static bool is_of_memory(const struct tec_pipeline *p, const struct tec_decl_node *load,
                         const char *name, struct tec_arena *arena)
{
    if (load->kind != TEC_DECL_MEMORY_LOAD || load->culled)
        return false;
    bool any = strcmp(load->name, name) == 0;
    for (int i = 0; i < p->n_nodes && !any; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->kind != TEC_DECL_REMEMBER || n->culled || n->memory.index != load->from.index)
            continue;
        const char *kept = tec_pipeline_memory_of(p, load, n->name, arena);
        any = kept && strcmp(kept, name) == 0;
    }
    return any;
}

static bool is_known(const struct tec_pipeline *p, const char *name, struct tec_arena *arena)
{
    if (is_launch(p, name))
        return true;
    for (int i = 0; i < p->n_nodes; i++)
        if ((has_launches(p, &p->nodes[i]) && strcmp(p->nodes[i].name, name) == 0) ||
            is_of_memory(p, &p->nodes[i], name, arena))
            return true;
    return false;
}

/* Find the nodes that take time but have no row in the table. */
static void find_without(struct names *without, const struct tec_cost_table *t,
                         const struct tec_pipeline *p)
{
    const struct tec_decl_node *ring = tec_pipeline_ring(p, 0);
    bool apart = ring && ring->pack_with.index < 0;
    int launches = ring ? 1 + (apart || p->resources[ring->kv.index].stages > 1) : 0;
    for (int i = apart; i < launches; i++)
        if (!tec_costs_table_row(t, ring_names[i], 0))
            add_name(without, ring_names[i]);
    for (int i = 0; i < p->n_nodes; i++)
        if (has_launches(p, &p->nodes[i]) && !tec_costs_table_row(t, p->nodes[i].name, 0))
            add_name(without, p->nodes[i].name);
}

void tec_profile_costs_steps(const struct tec_invocation *call, const struct tec_cost_table *t,
                             const struct tec_pipeline *p, const char *path)
{
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        const struct tec_cost_row *row = tec_costs_table_row(t, n->name, 0);
        if (n->kind == TEC_DECL_ACTION && row && row->steps && n->steps && row->steps != n->steps)
            tec_say(call, "%s: '%s' was measured with %d steps and has %d here: measure it again",
                    path, n->name, row->steps, n->steps);
    }
}

static enum tec_status compare(struct tec_invocation *call, const struct tec_cost_table *t,
                               const struct tec_pipeline *p, struct tec_error *err)
{
    struct names unknown = {.n = 0}, without = {.n = 0};
    const char *path = call->shared.costs;
    int known = 0;
    for (int i = 0; i < t->n_rows; i++) {
        bool first = i == 0 || strcmp(t->rows[i].node, t->rows[i - 1].node) != 0;
        bool found = is_known(p, t->rows[i].node, call->arena);
        known += found && first;
        if (first && !found)
            add_name(&unknown, t->rows[i].node);
    }
    find_without(&without, t, p);
    if (!known)
        return tec_fail(err, TEC_MALFORMED,
                        "%.120s: its nodes are %s, none is in pipeline '%.40s'; measure it with "
                        "tectum profile -o FILE",
                        path, unknown.text, p->name);
    if (t->pipeline && strcmp(t->pipeline, p->name) != 0)
        tec_say(call, "%s: measured on pipeline '%.80s', used for '%s'", path, t->pipeline,
                p->name);
    if (unknown.n)
        tec_say(call, "%s: no node of '%s' is called %s; these rows are not used", path, p->name,
                unknown.text);
    if (without.n)
        tec_say(call, "%s: no row of %s; the warm-up says what these cost", path, without.text);
    return TEC_OK;
}

/* Say where the options name another device than the costs are of. Only what is given is compared:
 * a number of threads and a tier with those of costs of a CPU. */
static enum tec_status compare_device(const struct tec_invocation *call,
                                      const struct tec_cost_table *t, const char *path,
                                      struct tec_error *err)
{
    const struct tec_shared *s = &call->shared;
    struct tec_device_options named;
    TEC_TRY(tec_cli_device_named(call, &named, err));
    bool cpu = !(t->device && strcmp(t->device, "cpu") != 0) &&
               !(named.kind && strcmp(named.kind, "cpu") != 0);
    if (t->device && named.kind && strcmp(t->device, named.kind) != 0)
        tec_say(call, "%s: measured on device %.20s, used for %s", path, t->device, named.kind);
    else if (cpu && s->tier && t->tier && strcmp(t->tier, tec_tier_name(named.tier)) != 0)
        tec_say(call, "%s: measured with tier %.20s, used for %s", path, t->tier, s->tier);
    else if (cpu && s->threads && t->threads && t->threads != s->threads)
        tec_say(call, "%s: measured with %d thread%s, used for %d", path, t->threads,
                t->threads == 1 ? "" : "s", s->threads);
    return TEC_OK;
}

enum tec_status tec_profile_costs_read(struct tec_cost_table *out,
                                       const struct tec_invocation *call, const char *path,
                                       struct tec_error *err)
{
    TEC_TRY(tec_costs_table_read(out, path, call->arena, err));
    return compare_device(call, out, path, err);
}

enum tec_status tec_profile_costs_open(const struct tec_cost_table **out,
                                       struct tec_invocation *call,
                                       const struct tec_pipeline *pipeline, struct tec_error *err)
{
    *out = NULL;
    if (!call->shared.costs)
        return TEC_OK;
    struct tec_cost_table *table = TEC_NEW(call->arena, 1, struct tec_cost_table);
    if (!table)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for costs");
    enum tec_path_kind kind = tec_path_kind(call->shared.costs);
    if (kind != TEC_PATH_UNKNOWN)
        return tec_expect(call->shared.costs, "a file of costs", err);
    TEC_TRY(tec_profile_costs_read(table, call, call->shared.costs, err));
    TEC_TRY(compare(call, table, pipeline, err));
    *out = table;
    return TEC_OK;
}

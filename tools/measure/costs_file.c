/* costs_file.c - reads the file of --costs and compares it with the pipeline that it is given
 * to. */
#include "tools/measure/costs_file.h"

#include "graph/kv/stages.h"
#include "graph/nodes/node.h"
#include "tools/cli/expect.h"

#include <math.h>
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

/* Is it of a memory, which has rows besides its prefill's? */
static bool remembers(const struct tec_decl_node *n)
{
    return !n->culled && (n->kind == TEC_DECL_MEMORY_LOAD || n->kind == TEC_DECL_REMEMBER);
}

static bool is_known(const struct tec_pipeline *p, const char *name)
{
    if (is_launch(p, name))
        return true;
    for (int i = 0; i < p->n_nodes; i++)
        if ((has_launches(p, &p->nodes[i]) || remembers(&p->nodes[i])) &&
            strcmp(p->nodes[i].name, name) == 0)
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

static enum tec_status compare(struct tec_invocation *call, const struct tec_cost_table *t,
                               const struct tec_pipeline *p, struct tec_error *err)
{
    struct names unknown = {.n = 0}, without = {.n = 0};
    const char *path = call->shared.costs;
    int known = 0;
    for (int i = 0; i < t->n_rows; i++) {
        bool first = i == 0 || strcmp(t->rows[i].node, t->rows[i - 1].node) != 0;
        bool found = is_known(p, t->rows[i].node);
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
    TEC_TRY(tec_costs_table_read(table, call->shared.costs, call->arena, err));
    TEC_TRY(compare(call, table, pipeline, err));
    *out = table;
    return TEC_OK;
}

static double p99_ms(const struct tec_cost_table *t, const char *node, int rows)
{
    const struct tec_cost_row *row = tec_costs_table_row(t, node, rows);
    return row ? tec_costs_row_us(row, 0.99) / 1000.0 : 0.0;
}

/* What a prefill's launch is called in the table: a prompt of a memory goes by the memory's name,
 * where there is a row of it. */
static const char *prompt_name(const struct tec_cost_table *t, const struct tec_pipeline *p,
                               const struct tec_decl_node *n)
{
    for (int i = 0; n->kind == TEC_DECL_PREFILL && i < p->n_nodes; i++)
        if (p->nodes[i].kind == TEC_DECL_MEMORY_LOAD && !p->nodes[i].culled &&
            p->nodes[i].chain == n->chain && tec_costs_table_row(t, p->nodes[i].name, 0))
            return p->nodes[i].name;
    return n->name;
}

/* The longest text that a frame waits for, of all sessions: a launch each of a ranking; of a decode
 * the steps of its tokens, and one that reads the last token where its key is an action's. */
static double text_ms(const struct tec_cost_table *t, const struct tec_pipeline *p,
                      const struct tec_decl_node *n)
{
    const struct tec_ints *batch = &p->capture.batch;
    int sessions = p->frame.sessions, most = batch->n ? batch->item[batch->n - 1] : sessions;
    if (n->kind == TEC_DECL_SCORE)
        return sessions * p99_ms(t, n->name, 0);
    double ms = 0.0;
    for (int at = 0; at < sessions; at += most)
        ms += p99_ms(t, n->name, sessions - at < most ? sessions - at : most);
    return (n->max_tokens + tec_pipeline_keeps_keys(p, n)) * ms;
}

/* A hard node's launches in a frame: of a prefill and the action with it as many as the
 * observations of all sessions take, of another action one a session. */
static double hard_ms(const struct tec_cost_table *t, const struct tec_pipeline *p,
                      const struct tec_decl_node *n)
{
    const struct tec_ints *together = &p->capture.sessions;
    int sessions = p->frame.sessions,
        most = together->n ? together->item[together->n - 1] : sessions;
    if (n->kind == TEC_DECL_DECODE || n->kind == TEC_DECL_SCORE)
        return text_ms(t, p, n);
    bool alone = n->kind == TEC_DECL_ACTION && !tec_pipeline_with_prefill(p, n);
    if (sessions < 2 || alone)
        return sessions * p99_ms(t, prompt_name(t, p, n), 0);
    int launches = (sessions + most - 1) / most;
    return launches * p99_ms(t, n->name, most);
}

/* The earliest deadline of a chain's actions, which hard chains run in the order of. */
static double due_of(const struct tec_pipeline *p, int chain)
{
    double due = (double)INFINITY;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (!n->culled && n->kind == TEC_DECL_ACTION && n->chain == chain && n->deadline.ms > 0.0 &&
            n->deadline.ms < due)
            due = n->deadline.ms;
    }
    return due;
}

/* Is there an action up to this one of its chain that waits for texts? All of the chain's are made
 * before the first that does. */
static bool waits(const struct tec_pipeline *p, const struct tec_decl_node *action)
{
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->chain == action->chain && tec_pipeline_waits_for(p, n) &&
            (n == action || tec_pipeline_acts_before(n, action)))
            return true;
    }
    return false;
}

/* Does a hard node run before an action node: those of earlier chains, its prefill, an action of
 * the same chain with an earlier deadline, texts that it or such an action waits for? */
static bool is_before(const struct tec_pipeline *p, const struct tec_decl_node *n,
                      const struct tec_decl_node *action)
{
    bool text = tec_pipeline_awaited(p, n);
    bool hard = n->kind == TEC_DECL_PREFILL || n->kind == TEC_DECL_ACTION || text;
    if (n->chain == action->chain && text)
        return waits(p, action);
    if (n->chain == action->chain)
        return n->kind == TEC_DECL_PREFILL ||
               (n->kind == TEC_DECL_ACTION && n != action && tec_pipeline_acts_before(n, action));
    double x = due_of(p, n->chain), y = due_of(p, action->chain);
    return hard && tec_pipeline_in_frames(p, n) && (x < y || (x == y && n->chain < action->chain));
}

/* The time that a frame spends before an action node; the first session waits for the others. */
static double before_ms(const struct tec_cost_table *t, const struct tec_pipeline *p,
                        const struct tec_decl_node *action, char *text, size_t room)
{
    double sum = p->frame.sessions > 1 ? p->frame.gather_ms : 0.0;
    text[0] = '\0';
    if (sum > 0.0)
        snprintf(text, room, "gather_ms %.3g", sum);
    for (int i = 0; i < p->n_nodes; i++) {
        if (!is_timed(&p->nodes[i]) || !is_before(p, &p->nodes[i], action))
            continue;
        double ms = hard_ms(t, p, &p->nodes[i]);
        size_t used = strlen(text);
        if (used + 64 < room)
            snprintf(text + used, room - used, "%s%.40s %.3g", used ? " + " : "",
                     prompt_name(t, p, &p->nodes[i]), ms);
        sum += ms;
    }
    return sum;
}

/* Check a frame of a ring at its deepest captured depth, which needs the fewest forwards. */
static void check_ring(struct tec_diagnostics *d, const struct tec_cost_table *t,
                       const struct tec_pipeline *p, const char *path)
{
    const struct tec_decl_node *n = tec_pipeline_ring(p, 0);
    int stages = p->resources[n->kv.index].stages, depths = p->capture.depth.n;
    int depth = depths ? p->capture.depth.item[depths - 1] : stages;
    int forwards = tec_stages_forwards(stages, depth);
    bool apart = n->pack_with.index < 0; /* the prefill, and a row of all in flight */
    double ms = apart ? p99_ms(t, p->nodes[p->chains[n->chain].prefill].name, 0) : 0.0;
    for (int i = 0; i < forwards; i++)
        ms += p99_ms(t, ring_names[apart || i > 0],
                     tec_stages_rows(stages, depth, i) + (apart && i == 0));
    if (n->deadline.kind != TEC_DEADLINE_HARD || ms <= n->deadline.ms)
        return;
    struct tec_diagnostic *entry = tec_diagnostics_add(
        d, TEC_E031, n->deadline.where_ms,
        "hard deadline %g ms is shorter than the measured critical path %.4g ms (p99: %d forward%s "
        "of a ring %d deep)",
        n->deadline.ms, ms, forwards, forwards == 1 ? "" : "s", depth);
    tec_diagnostics_help(d, entry,
                         "a deadline of at least %g ms, fewer stages or cameras, or a faster "
                         "device; measured in %.200s",
                         ceil(ms), path);
}

void tec_profile_costs_check(struct tec_diagnostics *d, const struct tec_cost_table *table,
                             const struct tec_pipeline *pipeline, const char *path)
{
    char before[200];
    if (tec_pipeline_ring(pipeline, 0)) {
        check_ring(d, table, pipeline, path);
        return;
    }
    for (int i = 0; i < pipeline->n_nodes; i++) {
        const struct tec_decl_node *n = &pipeline->nodes[i];
        if (!is_timed(n) || n->deadline.kind != TEC_DEADLINE_HARD || n->kind != TEC_DECL_ACTION)
            continue;
        double own = hard_ms(table, pipeline, n);
        double prefill = before_ms(table, pipeline, n, before, sizeof before);
        if (prefill + own <= n->deadline.ms)
            continue;
        struct tec_diagnostic *entry = tec_diagnostics_add(
            d, TEC_E031, n->deadline.where_ms,
            "hard deadline %g ms is shorter than the measured critical path %.4g ms (p99: %s + "
            "%.40s %.3g)",
            n->deadline.ms, prefill + own, before, n->name, own);
        tec_diagnostics_help(d, entry,
                             "a deadline of at least %g ms, fewer steps or cameras, or a faster "
                             "device; measured in %.200s",
                             ceil(prefill + own), path);
    }
}

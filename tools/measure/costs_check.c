/* costs_check.c - holds a pipeline's hard deadlines to the costs of a file: of each, what a frame
 * runs before its node, and the node itself. */
#include "graph/kv/stages.h"
#include "graph/load/pipeline_texts.h"
#include "graph/nodes/node.h"
#include "tools/measure/costs_file.h"

#include <math.h>
#include <string.h>

static bool is_timed(const struct tec_decl_node *n)
{
    return !n->culled && tec_node_timed(tec_decl_node_word(n->kind));
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

/* Does a node take request slots from a range, and keep one of them for its texts alone? */
static bool keeps_slot(const struct tec_pipeline *p, const struct tec_decl_node *n,
                       const struct tec_decl_slots *of, int chain)
{
    bool text = n->kind == TEC_DECL_DECODE || n->kind == TEC_DECL_SCORE;
    bool own = text && !n->culled && n->chain == chain && !tec_pipeline_rings(p, n) &&
               tec_pipeline_slots(p, chain, n).first == of->first;
    return own && (tec_pipeline_awaited(p, n) ||
                   (n->kv.index >= 0 && p->resources[n->kv.index].kind == TEC_RESOURCE_FRAME));
}

/* Texts of a hard node that a frame may have of one session. Its trigger begins one. Where others
 * do, and with `all` of those who may ask for one besides, there are as many as slots that no other
 * node keeps. A new one of a node that supersedes ends the one before. */
static int texts_of(const struct tec_pipeline *p, const struct tec_decl_node *n, bool all)
{
    const struct tec_decl_slots slots = tec_pipeline_slots(p, n->chain, n);
    int most = slots.n;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *o = &p->nodes[i];
        if (!o->culled && o->chain == n->chain && tec_pipeline_keeps_keys(p, o) &&
            tec_pipeline_slots(p, n->chain, o).first == slots.first)
            most--; /* its last finished text */
        most -= o != n && keeps_slot(p, o, &slots, n->chain);
    }
    bool asked = all || n->spawn.kind == TEC_SPAWN_ON_REQUEST;
    bool one = !asked || n->supersede ||
               (n->kv.index >= 0 && p->resources[n->kv.index].kind == TEC_RESOURCE_FRAME);
    return one || most < 1 ? 1 : most;
}

/* The longest texts that a frame waits for, of all sessions: a launch each of a ranking; of a
 * decode the steps of its tokens, and one that reads the last token where its key is an action's.
 */
static double text_ms(const struct tec_cost_table *t, const struct tec_pipeline *p,
                      const struct tec_decl_node *n, bool all)
{
    const struct tec_ints *batch = &p->capture.batch;
    int texts = p->frame.sessions * texts_of(p, n, all),
        most = batch->n ? batch->item[batch->n - 1] : 1;
    if (n->kind == TEC_DECL_SCORE)
        return texts * p99_ms(t, n->name, 0);
    double ms = 0.0;
    for (int at = 0; at < texts; at += most)
        ms += p99_ms(t, n->name, texts - at < most ? texts - at : most);
    return (n->max_tokens + tec_pipeline_keeps_keys(p, n)) * ms;
}

/* Observations of a launch: as many as were measured together. A model whose launches have one has
 * no row of several. */
static int together_of(const struct tec_cost_table *t, const struct tec_decl_node *n, int most)
{
    const struct tec_cost_row *row = tec_costs_table_row(t, n->name, most);
    int measured = row && row->point > 1 ? row->point : 1;
    return measured < most ? measured : most;
}

/* A hard node's launches in a frame: of a prefill and the action with it as many as the
 * observations of all sessions take, of another action one a session. */
static double hard_ms(const struct tec_cost_table *t, const struct tec_pipeline *p,
                      const struct tec_decl_node *n, bool all)
{
    const struct tec_ints *together = &p->capture.sessions;
    int sessions = p->frame.sessions,
        most = together->n ? together->item[together->n - 1] : sessions;
    if (n->kind == TEC_DECL_DECODE || n->kind == TEC_DECL_SCORE)
        return text_ms(t, p, n, all);
    const char *name = prompt_name(t, p, n);
    bool alone = n->proposes || (n->kind == TEC_DECL_ACTION && !tec_pipeline_with_prefill(p, n));
    if (sessions < 2 || alone || name != n->name) /* so is a recall a launch of one session */
        return sessions * p99_ms(t, name, 0);
    int each = together_of(t, n, most), launches = (sessions + each - 1) / each;
    return launches * p99_ms(t, n->name, each);
}

/* Does a chain run before another in a frame? */
static bool runs_before(const struct tec_pipeline *p, int a, int b)
{
    double x = tec_pipeline_due(p, a), y = tec_pipeline_due(p, b);
    int i = tec_pipeline_depth(p, a), j = tec_pipeline_depth(p, b);
    return x < y || (x == y && (i < j || (i == j && a < b)));
}

/* Is there an action up to this one of its chain that waits for texts? All of the chain's are made
 * before the first that does. */
static bool waits(const struct tec_pipeline *p, const struct tec_decl_node *action)
{
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->chain == action->chain && n->kind == TEC_DECL_ACTION &&
            tec_pipeline_waits_for(p, n) && (n == action || tec_pipeline_acts_before(n, action)))
            return true;
    }
    return false;
}

static bool is_hard(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_PREFILL || n->kind == TEC_DECL_ACTION || tec_pipeline_awaited(p, n);
}

/* Does a node run before an action node of the same chain, or before a text that one waits for: its
 * prefill, an action with an earlier deadline, texts that it or such an action waits for? Before a
 * text that comes behind all others do. */
static bool is_before(const struct tec_pipeline *p, const struct tec_decl_node *n,
                      const struct tec_decl_node *hard)
{
    bool acts = n->kind == TEC_DECL_ACTION;
    if (n == hard)
        return false;
    if (tec_pipeline_behind(p, hard))
        return is_hard(p, n);
    if (n->kind == TEC_DECL_PREFILL || tec_pipeline_behind(p, n))
        return n->kind == TEC_DECL_PREFILL;
    if (hard->kind != TEC_DECL_ACTION)
        return acts ? !waits(p, n) : tec_pipeline_awaited(p, n);
    return acts ? tec_pipeline_acts_before(n, hard) : tec_pipeline_awaited(p, n) && waits(p, hard);
}

/* Does a frame run a chain before a node of another one (NULL: before all that other does)? A text
 * that comes behind waits for all that is due until then. */
static bool chain_is_before(const struct tec_pipeline *p, int chain, int other,
                            const struct tec_decl_node *hard)
{
    return runs_before(p, chain, other) ||
           (hard && tec_pipeline_behind(p, hard) &&
            tec_pipeline_due(p, chain) <= tec_pipeline_behind_due(p, other));
}

/* Is it a hard node that runs before one of another chain? What rings run is no node's. A text that
 * comes behind its chain runs before what is due later. */
static bool is_earlier(const struct tec_pipeline *p, const struct tec_decl_node *n, int chain,
                       const struct tec_decl_node *hard)
{
    bool other = is_hard(p, n) && n->chain != chain && tec_pipeline_in_frames(p, n) &&
                 !tec_pipeline_ring_of(p, n->chain);
    double due = hard && tec_pipeline_behind(p, hard) ? tec_pipeline_behind_due(p, chain)
                                                      : tec_pipeline_due(p, chain);
    if (!other || !tec_pipeline_behind(p, n))
        return other && chain_is_before(p, n->chain, chain, hard);
    double own = tec_pipeline_behind_due(p, n->chain);
    bool equal = hard && tec_pipeline_behind(p, hard) && own <= due;
    return (own < due || equal) && chain_is_before(p, n->chain, chain, hard);
}

/* --- rings ----------------------------------------------------------------------------------- */

/* A launch of the rings that share the forwards of ring i; those of the first are called packed and
 * decode, those of others have the ring's name behind that. */
static const struct tec_cost_row *ring_row(const struct tec_cost_table *t,
                                           const struct tec_pipeline *p, int i, bool packed,
                                           int point)
{
    char name[128];
    const char *ring = p->resources[tec_pipeline_ring(p, i)->kv.index].name;
    snprintf(name, sizeof name, "%s%s%.64s", packed ? "packed" : "decode", i ? "." : "",
             i ? ring : "");
    return tec_costs_table_row(t, name, point);
}

/* The ring whose forwards ring i shares: its own where the table has such launches. */
static int host_of(const struct tec_cost_table *t, const struct tec_pipeline *p, int i)
{
    bool own = i == 0 || ring_row(t, p, i, true, 0) || ring_row(t, p, i, false, 0);
    return own ? i : 0;
}

/* Rings that share forwards, of all sessions, at their deepest captured depth, which needs the
 * fewest. */
struct forwards {
    int host, rings, stages, depth, n;
    bool apart; /* a prefill of each, then a row of all in flight */
    double ms;
};

static double forward_ms(const struct tec_cost_table *t, const struct tec_pipeline *p,
                         const struct forwards *f, int at)
{
    bool enters = at == 0, packed = enters && !f->apart;
    int others = f->rings * (tec_stages_rows(f->stages, f->depth, at) + (enters && f->apart));
    int behind = packed ? (f->rings - 1) * (f->rings * (f->stages - 1) + 1) : 0;
    const struct tec_cost_row *row = ring_row(t, p, f->host, packed, behind + others);
    return row ? tec_costs_row_us(row, 0.99) / 1000.0 : 0.0;
}

static struct forwards forwards_of(const struct tec_cost_table *t, const struct tec_pipeline *p,
                                   int host)
{
    const struct tec_decl_node *n;
    int depths = p->capture.depth.n, deepest = depths ? p->capture.depth.item[depths - 1] : 0;
    struct forwards f = {.host = host};
    for (int i = host; (n = tec_pipeline_ring(p, i)); i++) {
        if (host_of(t, p, i) != host)
            continue;
        f.apart = n->pack_with.index < 0;
        f.stages = p->resources[n->kv.index].stages;
        f.ms += f.apart
                    ? p->frame.sessions *
                          p99_ms(t, prompt_name(t, p, &p->nodes[p->chains[n->chain].prefill]), 0)
                    : 0.0;
        f.rings += p->frame.sessions;
    }
    f.depth = deepest > 0 && deepest < f.stages ? deepest : f.stages;
    f.n = tec_stages_forwards(f.stages, f.depth);
    for (int i = 0; i < f.n; i++)
        f.ms += forward_ms(t, p, &f, i);
    return f;
}

/* Of those that share forwards, the chain whose turn all of them run in. */
static int turn_of(const struct tec_cost_table *t, const struct tec_pipeline *p, int host)
{
    const struct tec_decl_node *n;
    int first = tec_pipeline_ring(p, host)->chain;
    for (int i = host + 1; (n = tec_pipeline_ring(p, i)); i++)
        if (host_of(t, p, i) == host && runs_before(p, n->chain, first))
            first = n->chain;
    return first;
}

/* --- critical paths -------------------------------------------------------------------------- */

/* What a frame runs before a node, in words, and how long that takes. */
struct before {
    double ms;
    unsigned nodes; /* bit set of those that are in it */
    char text[TEC_CHAIN_TEXT];
};

static void add_before(struct before *b, const char *name, double ms)
{
    size_t used = strlen(b->text);
    b->ms += ms;
    if (used + 64 < sizeof b->text)
        snprintf(b->text + used, sizeof b->text - used, "%.40s %.4g + ", name, ms);
}

/* The hard text that a draft's prefill runs before; of any other node the node. */
static const struct tec_decl_node *proposed_to(const struct tec_pipeline *p,
                                               const struct tec_decl_node *n)
{
    for (int i = 0; n->proposes && i < p->n_nodes; i++)
        if (tec_pipeline_draft(p, &p->nodes[i]) == n->chain &&
            tec_pipeline_awaited(p, &p->nodes[i]))
            return &p->nodes[i];
    return n;
}

/* What runs before a chain, and of its own nodes before `hard` (NULL: the chain is a ring's). The
 * first session waits for the others. */
static struct before before_of(const struct tec_cost_table *t, const struct tec_pipeline *p,
                               int chain, const struct tec_decl_node *hard, bool all)
{
    const struct tec_decl_node *ring;
    struct before b = {.ms = 0.0};
    if (p->frame.sessions > 1 && p->frame.gather_ms > 0.0)
        add_before(&b, "gather_ms", p->frame.gather_ms);
    for (int i = 0; (ring = tec_pipeline_ring(p, i)); i++)
        if (host_of(t, p, i) == i && chain_is_before(p, turn_of(t, p, i), chain, hard))
            add_before(&b, p->resources[ring->kv.index].name, forwards_of(t, p, i).ms);
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i], *of = proposed_to(p, n);
        bool own =
            hard && of->chain == chain && (is_before(p, of, hard) || (of != n && of == hard));
        if (is_timed(n) && (own || is_earlier(p, of, chain, hard))) {
            add_before(&b, prompt_name(t, p, n), hard_ms(t, p, n, all));
            b.nodes |= 1U << i;
        }
    }
    return b;
}

/* --- steps ----------------------------------------------------------------------------------- */

/* The row of an action that was measured with another number of steps than it has; NULL: it was
 * not, or the row does not say. */
static const struct tec_cost_row *other_steps(const struct tec_cost_table *t,
                                              const struct tec_decl_node *n, int steps)
{
    bool acts = n->kind == TEC_DECL_ACTION && !n->culled;
    const struct tec_cost_row *row = acts ? tec_costs_table_row(t, n->name, 0) : NULL;
    return row && row->steps && row->steps != steps ? row : NULL;
}

/* "; act with 10 steps, it has 300", of those of the bit set; 0: that is not known. */
static const char *steps_text(char text[200], const struct tec_cost_table *t,
                              const struct tec_pipeline *p, const int *steps, unsigned nodes)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < p->n_nodes && n < 200; i++) {
        const struct tec_cost_row *row = other_steps(t, &p->nodes[i], steps[i]);
        const char *name = p->nodes[i].name;
        if (row && nodes >> i & 1U && steps[i])
            n += (size_t)snprintf(text + n, 200 - n, "; %.40s with %d steps, it has %d", name,
                                  row->steps, steps[i]);
        else if (row && nodes >> i & 1U)
            n += (size_t)snprintf(text + n, 200 - n, "; %.40s with %d steps", name, row->steps);
    }
    return text;
}

static void check_steps(struct tec_diagnostics *d, const struct tec_cost_table *t,
                        const struct tec_decl_node *n, int steps, const char *path)
{
    const struct tec_cost_row *row = other_steps(t, n, steps);
    if (!row)
        return;
    struct tec_diagnostic *entry =
        steps
            ? tec_diagnostics_add(d, TEC_W119, n->where_steps,
                                  "'%s' was measured with %d steps and has %d here: deadlines are "
                                  "judged by the time of %d",
                                  n->name, row->steps, steps, row->steps)
            : tec_diagnostics_add(d, TEC_W119, n->where_steps,
                                  "'%s' was measured with %d steps; its model's description, "
                                  "which says how many it has here, cannot be read",
                                  n->name, row->steps);
    tec_diagnostics_help(d, entry, "measure it again, %.200s is of others", path);
}

static void check_ring(struct tec_diagnostics *d, const struct tec_cost_table *t,
                       const struct tec_pipeline *p, int ring, const char *path)
{
    const struct tec_decl_node *n = tec_pipeline_ring(p, ring);
    int host = host_of(t, p, ring);
    const struct forwards f = forwards_of(t, p, host);
    const struct before b = before_of(t, p, turn_of(t, p, host), NULL, false);
    if (n->deadline.kind != TEC_DEADLINE_HARD || b.ms + f.ms <= n->deadline.ms)
        return;
    struct tec_diagnostic *entry = tec_diagnostics_add(
        d, TEC_E031, n->deadline.where_ms,
        "hard deadline %g ms is shorter than the measured critical path %.4g ms (p99: %s%d "
        "forward%s of %s %d deep)",
        n->deadline.ms, b.ms + f.ms, b.text, f.n, f.n == 1 ? "" : "s",
        f.rings > 1 ? "rings" : "a ring", f.depth);
    tec_diagnostics_help(d, entry,
                         "a deadline of at least %g ms, fewer stages or cameras, or a faster "
                         "device; measured in %.200s",
                         ceil(b.ms + f.ms), path);
}

/* In time by itself: with as many texts as may be asked for, too? */
static void check_asked(struct tec_diagnostics *d, const struct tec_cost_table *t,
                        const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    struct before b = before_of(t, p, n->chain, n, true);
    add_before(&b, n->name, hard_ms(t, p, n, true));
    if (b.ms <= n->deadline.ms)
        return;
    struct tec_diagnostic *entry = tec_diagnostics_add(
        d, TEC_W115, n->deadline.where_ms,
        "hard deadline %g ms holds for the texts that triggers begin, not for as many as may be "
        "asked for in one frame: %.4g ms (p99: %.*s)",
        n->deadline.ms, b.ms, (int)strlen(b.text) - 3, b.text);
    tec_diagnostics_help(d, entry,
                         "supersede = true or fewer slots of the texts, if anybody asks for them");
}

/* Of an action, or of a hard text. */
static void check_action(struct tec_diagnostics *d, const struct tec_cost_table *t,
                         const struct tec_pipeline *p, int node, const int *steps, const char *path)
{
    const struct tec_decl_node *n = &p->nodes[node];
    char others[200];
    const struct before b = before_of(t, p, n->chain, n, false);
    double own = hard_ms(t, p, n, false);
    if (b.ms + own <= n->deadline.ms) {
        check_asked(d, t, p, n);
        return;
    }
    struct tec_diagnostic *entry = tec_diagnostics_add(
        d, TEC_E031, n->deadline.where_ms,
        "hard deadline %g ms is shorter than the measured critical path %.4g ms (p99: %s%.40s "
        "%.4g%s)",
        n->deadline.ms, b.ms + own, b.text, n->name, own,
        steps_text(others, t, p, steps, b.nodes | 1U << node));
    tec_diagnostics_help(d, entry,
                         "a deadline of at least %g ms, fewer steps or cameras, or a faster "
                         "device; measured in %.200s",
                         ceil(b.ms + own), path);
}

static bool is_due(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    bool hard = n->kind == TEC_DECL_ACTION || tec_pipeline_awaited(p, n);
    return is_timed(n) && n->deadline.kind == TEC_DEADLINE_HARD && hard;
}

bool tec_profile_costs_longest(const struct tec_cost_table *table, const struct tec_pipeline *p,
                               struct tec_costs_chain *out)
{
    double least = (double)INFINITY;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (!is_due(p, n))
            continue;
        struct before b = before_of(table, p, n->chain, n, true);
        add_before(&b, n->name, hard_ms(table, p, n, true));
        if (n->deadline.ms - b.ms >= least)
            continue;
        least = n->deadline.ms - b.ms;
        out->ms = b.ms;
        out->due_ms = n->deadline.ms;
        snprintf(out->text, sizeof out->text, "%.*s", (int)strlen(b.text) - 3, b.text);
    }
    return least < (double)INFINITY;
}

static double p50_ms(const struct tec_cost_table *t, const char *node, int rows)
{
    const struct tec_cost_row *row = tec_costs_table_row(t, node, rows);
    return row ? tec_costs_row_us(row, 0.5) / 1000.0 : 0.0;
}

/* At the median, what the hard nodes of an observation take at least: those that run in each. */
static double least_hard_ms(const struct tec_cost_table *t, const struct tec_pipeline *p)
{
    double ms = 0.0;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        bool each = n->spawn.kind == TEC_SPAWN_NONE && !n->when_policy && !n->proposes;
        if (is_timed(n) && each && tec_pipeline_in_frames(p, n) && !tec_decl_makes_text(n))
            ms += p50_ms(t, prompt_name(t, p, n), 0);
    }
    return ms;
}

/* A text that is begun anew: has the time until then room for its tokens, at the median? Told in
 * place of what the captured k leave room for, where the time leaves less. */
static void check_superseded(struct tec_diagnostics *d, const struct tec_cost_table *t,
                             const struct tec_pipeline *p, const struct tec_decl_node *n,
                             const char *path)
{
    int frames = tec_pipeline_superseded(p, n);
    double step = p50_ms(t, n->name, 1), hard = least_hard_ms(t, p), period = p->frame.period_ms;
    double room = frames * (period > hard ? period - hard : 0.0);
    double most = (double)tec_pipeline_superseded_tokens(p, n); /* already told, if too few */
    if (!frames || step <= 0.0 || period <= 0.0 || floor(room / step) >= most)
        return;
    tec_diagnostics_take_back(d, TEC_W118, n->where_tokens);
    struct tec_diagnostic *entry = tec_diagnostics_add(
        d, TEC_W118, n->where_tokens,
        "'%s' is begun anew every %g ms, of which hard nodes take %.4g: at %.4g ms a token (p50) "
        "it has %d of its %d tokens by then, and a longer text never ends",
        n->name, frames * period, frames * hard, step, (int)(room / step), n->max_tokens);
    tec_diagnostics_help(d, entry, "begin it less often, or fewer max_tokens; measured in %.200s",
                         path);
}

void tec_profile_costs_check(struct tec_diagnostics *d, const struct tec_cost_table *table,
                             const struct tec_pipeline *pipeline, const int *steps,
                             const char *path)
{
    for (int i = 0; i < pipeline->n_nodes; i++)
        check_steps(d, table, &pipeline->nodes[i], steps[i], path);
    for (int i = 0; tec_pipeline_ring(pipeline, i); i++)
        check_ring(d, table, pipeline, i, path);
    for (int i = 0; i < pipeline->n_nodes; i++)
        if (is_due(pipeline, &pipeline->nodes[i]))
            check_action(d, table, pipeline, i, steps, path);
        else
            check_superseded(d, table, pipeline, &pipeline->nodes[i], path);
}

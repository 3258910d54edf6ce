/* text_keys.c - hard nodes that need texts: action nodes on keys that language has extended, whose
 * texts they act on, and what there is before the first; which texts a frame waits for.
 *
 * An action on a kv.requests takes the keys of its newest finished text. With `after` that text is
 * made first, in the same frame, which makes its node as hard as the action. */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

#include <math.h>

bool tec_pipeline_on_text(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_ACTION && n->kv.index >= 0 &&
           p->resources[n->kv.index].kind == TEC_RESOURCE_REQUESTS;
}

const struct tec_decl_node *tec_pipeline_waits_for(const struct tec_pipeline *p,
                                                   const struct tec_decl_node *n)
{
    const struct tec_decl_node *early = n->after.index >= 0 ? &p->nodes[n->after.index] : NULL;
    bool needs = early && (n->kind == TEC_DECL_ACTION || tec_pipeline_reads_text(p, n, early));
    bool waits = needs && !n->culled && tec_decl_makes_text(early) && !tec_pipeline_rings(p, early);
    return waits ? early : NULL;
}

const struct tec_decl_node *tec_pipeline_prompt_waits(const struct tec_pipeline *p, int chain)
{
    int prefill = p->chains[chain].prefill;
    return prefill < 0 ? NULL : tec_pipeline_waits_for(p, &p->nodes[prefill]);
}

int tec_pipeline_heard(const struct tec_pipeline *p, int chain)
{
    const struct tec_decl_node *said = tec_pipeline_prompt_waits(p, chain);
    int at[TEC_MAX_TEXTS], i = said ? tec_pipeline_texts(p, chain, at) - 1 : -1;
    while (i >= 0 && p->inputs[at[i]].writer != 1 + (int)(said - p->nodes))
        i--;
    return i;
}

bool tec_pipeline_loads_first(const struct tec_pipeline *p, const struct tec_decl_node *prefill,
                              const struct tec_decl_node *load)
{
    return load->kind == TEC_DECL_MEMORY_LOAD && prefill->kind == TEC_DECL_PREFILL &&
           tec_pipeline_waits_for(p, prefill);
}

/* A text with a hard deadline beside actions is one of the frame that it is born in. */
static bool is_hard(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    return !n->culled && tec_decl_makes_text(n) && n->deadline.kind == TEC_DEADLINE_HARD &&
           tec_pipeline_actor(p) && tec_pipeline_in_frames(p, n) &&
           n != tec_pipeline_ring_of(p, n->chain);
}

double tec_pipeline_due(const struct tec_pipeline *p, int chain)
{
    double due = (double)INFINITY;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i], *early = tec_pipeline_waits_for(p, n);
        bool acts =
            n->kind == TEC_DECL_ACTION || n == tec_pipeline_ring_of(p, chain) || is_hard(p, n);
        bool own = !n->culled && acts && n->chain == chain && n->deadline.ms > 0.0;
        bool other = early && early->chain == chain && n->chain != chain;
        double ms = own ? n->deadline.ms : other ? tec_pipeline_due(p, n->chain) : due;
        due = ms < due ? ms : due;
    }
    return due;
}

int tec_pipeline_depth(const struct tec_pipeline *p, int chain)
{
    const struct tec_decl_node *early = tec_pipeline_prompt_waits(p, chain);
    return early ? 1 + tec_pipeline_depth(p, early->chain) : 0;
}

bool tec_pipeline_acts_on(const struct tec_pipeline *p, const struct tec_decl_node *action,
                          const struct tec_decl_node *text)
{
    const struct tec_decl_node *early = tec_pipeline_waits_for(p, action);
    bool same = text->kind == TEC_DECL_DECODE && text->kv.index == action->kv.index;
    bool one = early && early->kind == TEC_DECL_DECODE && early->kv.index == action->kv.index;
    return tec_pipeline_on_text(p, action) && !action->culled && same && (!one || early == text);
}

/* Does a hard node wait for it? */
static bool is_first(const struct tec_pipeline *p, const struct tec_decl_node *text)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (tec_pipeline_waits_for(p, &p->nodes[i]) == text)
            return true;
    return false;
}

bool tec_pipeline_awaited(const struct tec_pipeline *p, const struct tec_decl_node *text)
{
    return is_first(p, text) || is_hard(p, text);
}

bool tec_pipeline_behind(const struct tec_pipeline *p, const struct tec_decl_node *text)
{
    return is_hard(p, text) && !is_first(p, text);
}

double tec_pipeline_behind_due(const struct tec_pipeline *p, int chain)
{
    double due = (double)INFINITY;
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].chain == chain && tec_pipeline_behind(p, &p->nodes[i]) &&
            p->nodes[i].deadline.ms < due)
            due = p->nodes[i].deadline.ms;
    return due;
}

bool tec_pipeline_keeps_keys(const struct tec_pipeline *p, const struct tec_decl_node *text)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (tec_pipeline_acts_on(p, &p->nodes[i], text))
            return true;
    return false;
}

/* Has every frame that computes the action a text that is finished by then? */
static bool always_has_text(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    const struct tec_decl_node *early = tec_pipeline_waits_for(p, n);
    return early && tec_pipeline_acts_on(p, n, early) &&
           (early->spawn.kind == TEC_SPAWN_EVERY || early->spawn.kind == TEC_SPAWN_ON_CHANGE);
}

static void check_first(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    const struct tec_decl_node *writer = NULL;
    for (int k = 0; k < p->n_nodes && !writer; k++)
        if (tec_pipeline_acts_on(p, n, &p->nodes[k]))
            writer = &p->nodes[k];
    const char *name = n->name ? n->name : "action";
    const char *prefix = p->resources[n->kv.index].share_prefix.name;
    struct tec_where where = tec_where_field(ld, &ld->nodes[i], "kv");
    if (!writer && !ld->torn[TEC_NODES]) {
        tec_diagnostics_add(ld->d, TEC_E023, where,
                            "'%s' acts on the keys of texts in '%s', but no decode node makes any",
                            name, n->kv.name);
        return;
    }
    if (!writer || n->or_kv.name || always_has_text(p, n))
        return;
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E027, where,
        "'%s' runs in every frame, but '%s' has no keys of a text before '%s' has finished one",
        name, n->kv.name, writer->name ? writer->name : "its node");
    tec_diagnostics_also(ld->d, d, writer->where, "the node that makes them");
    tec_diagnostics_help(ld->d, d, "or_kv = \"%s\", the prefix, until there is one",
                         prefix ? prefix : "NAME");
}

/* What or_kv names is the prefix that the texts stand behind. */
static void check_or(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    struct tec_where where = tec_where_field(ld, &ld->nodes[i], "or_kv");
    if (n->or_kv.index < 0 || n->kv.index < 0)
        return;
    if (!tec_pipeline_on_text(p, n)) {
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E024, where,
            "or_kv is for keys that texts have extended, kv of '%s' is '%s', a %s",
            n->name ? n->name : "action", n->kv.name,
            tec_resource_word(p->resources[n->kv.index].kind));
        tec_diagnostics_help(ld->d, d, "leave or_kv out: '%s' acts on '%s'",
                             n->name ? n->name : "action", n->kv.name);
        return;
    }
    const struct tec_ref *prefix = &p->resources[n->kv.index].share_prefix;
    if (prefix->index < 0 || prefix->index == n->or_kv.index)
        return;
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E024, where, "'%s' is not what the texts of '%s' stand behind", n->or_kv.name,
        n->kv.name);
    tec_diagnostics_help(ld->d, d, "or_kv = \"%s\"", prefix->name);
}

void tec_check_text_keys(struct tec_loader *ld)
{
    for (int i = 0; i < ld->pipeline->n_nodes && !ld->broken; i++) {
        if (ld->pipeline->nodes[i].kind != TEC_DECL_ACTION)
            continue;
        check_or(ld, i);
        if (tec_pipeline_on_text(ld->pipeline, &ld->pipeline->nodes[i]))
            check_first(ld, i);
    }
}

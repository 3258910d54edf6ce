/* counts.c - graphs that are well defined, and larger than there is room for (E072): of each thing
 * that is counted, the one that is too many, and the most. */
#include "graph/kv/stages.h"
#include "graph/load/refusing.h"
#include "graph/model/model.h"

#include <string.h>

#define MORE(where, ...) tec_diagnostics_add(r->ld->d, TEC_E072, where, __VA_ARGS__)

static void many_reads(struct tec_refusing *r)
{
    struct tec_where last = {0}, seen = {0};
    int texts = tec_refusing_reads(r, TEC_INPUT_TEXT, &last);
    int pictures = tec_refusing_reads(r, TEC_INPUT_IMAGE, &seen);
    if (r->n->kind == TEC_DECL_PREFILL && pictures > TEC_MAX_CAMERAS)
        MORE(seen, "'%s' reads %d pictures: a prompt has %d", tec_refusing_name(r->n), pictures,
             TEC_MAX_CAMERAS);
    if (r->n->kind == TEC_DECL_PREFILL && texts > TEC_MAX_TEXTS)
        MORE(last, "'%s' reads %d texts: a prompt is made of %d", tec_refusing_name(r->n), texts,
             TEC_MAX_TEXTS);
}

static void many_chains(struct tec_refusing *r)
{
    if (r->n->chain >= TEC_MAX_CHAINS && r->p->chains[r->n->chain].prefill == r->at)
        MORE(tec_refusing_field(r, "reads"),
             "'%s' is one more prefill than the %d of different prompts", tec_refusing_name(r->n),
             TEC_MAX_CHAINS);
}

static void many_models(struct tec_refusing *r)
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
        MORE(r->p->models[r->n->model.index].where, "'%s' is one more model than the %d",
             r->p->models[r->n->model.index].name, TEC_MAX_MODELS);
}

/* The rings of all sessions are rows of one forward. */
static void many_stages(struct tec_refusing *r)
{
    int sessions = r->p->frame.sessions;
    if (r->n->kind != TEC_DECL_PREFILL || !tec_refusing_fills(r))
        return;
    int stages = r->p->resources[r->n->writes.index].stages;
    if (sessions > 1 && sessions * stages > TEC_MAX_STAGES)
        MORE(tec_refusing_field(r, "writes"),
             "'%s' fills a ring of %d stages for each of %d sessions: %d of them are in one "
             "forward at most",
             tec_refusing_name(r->n), stages, sessions, TEC_MAX_STAGES);
}

static void many_texts(struct tec_refusing *r)
{
    int before = 0;
    for (int i = 0; i < r->at; i++)
        before += !r->p->nodes[i].culled && tec_decl_makes_text(&r->p->nodes[i]);
    if (tec_decl_makes_text(r->n) && !tec_refusing_rings(r, r->n) && before >= TEC_MAX_DECODERS)
        MORE(tec_refusing_field(r, "kv"), "'%s' is one more node that makes texts than the %d",
             tec_refusing_name(r->n), TEC_MAX_DECODERS);
}

/* Of the chain with which there are too many, its first node that makes texts is named. */
static void many_slots(struct tec_refusing *r)
{
    int chain = r->n->chain, before = 0;
    for (int i = 0; i < r->at; i++)
        if (tec_decl_makes_text(&r->p->nodes[i]) && r->p->nodes[i].chain == chain)
            return;
    for (int i = 0; i < chain; i++)
        before += tec_pipeline_slots(r->p, i, NULL).n * r->p->frame.sessions;
    int all = before + tec_pipeline_slots(r->p, chain, NULL).n * r->p->frame.sessions;
    if (!tec_decl_makes_text(r->n) || all <= TEC_MAX_ROWS || before > TEC_MAX_ROWS)
        return;
    struct tec_diagnostic *d =
        MORE(tec_refusing_field(r, "kv"), "with '%s' there are %d request slots: %d at most",
             tec_refusing_name(r->n), all, TEC_MAX_ROWS);
    tec_diagnostics_help(r->ld->d, d, "fewer slots of a kv.requests, or fewer sessions");
}

/* Prefills that may wait in a chain: of each request one, a draft's like that of the text which it
 * proposes to, and one that is held for the next. */
static int pending_of(const struct tec_pipeline *p, int chain)
{
    int prefill = p->chains[chain].prefill, text = prefill < 0 ? 0 : p->nodes[prefill].proposes;
    int of = text ? p->nodes[text - 1].chain : chain;
    return (tec_pipeline_slots(p, of, NULL).n + tec_pipeline_holds(p, chain)) * p->frame.sessions;
}

/* A node that makes texts, of those whose keys have the most slots; NULL = none. */
static const struct tec_decl_node *widest(const struct tec_pipeline *p)
{
    const struct tec_decl_node *most = NULL;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (!n->culled && tec_decl_makes_text(n) && n->kv.index >= 0 &&
            (!most || p->resources[n->kv.index].slots > p->resources[most->kv.index].slots))
            most = n;
    }
    return most;
}

/* Said of the requests that take the most room, unless there are too many of them as it is. */
static void many_pending(struct tec_refusing *r)
{
    int all = 0, requests = 0;
    for (int i = 0; i < r->p->n_chains; i++) {
        all += pending_of(r->p, i);
        requests += tec_pipeline_slots(r->p, i, NULL).n * r->p->frame.sessions;
    }
    if (all <= TEC_MAX_PENDING || requests > TEC_MAX_ROWS || r->n != widest(r->p))
        return;
    bool slots = tec_refusing_on(r, r->n, TEC_RESOURCE_REQUESTS);
    struct tec_where where =
        slots ? tec_where_field(r->ld, &r->ld->resources[r->n->kv.index], "slots")
              : tec_refusing_field(r, "kv");
    struct tec_diagnostic *d =
        MORE(where,
             "%d prefills may wait at a time, %d at most: one for each slot, one for each "
             "slot's draft, and those that are held",
             all, TEC_MAX_PENDING);
    tec_diagnostics_help(r->ld->d, d, "fewer slots of a kv.requests, or fewer sessions");
}

static void many_prompts(struct tec_refusing *r)
{
    if (r->n->prompt.index >= 0 && tec_pipeline_prompt_of(r->p, r->n) >= TEC_MAX_PROMPTS)
        MORE(tec_refusing_field(r, "prompt"), "'%s' is one more prompt of decode nodes than the %d",
             r->n->prompt.name, TEC_MAX_PROMPTS);
}

static void many_memories(struct tec_refusing *r)
{
    int before = 0;
    for (int i = 0; i < r->at; i++)
        before += !r->p->nodes[i].culled && r->p->nodes[i].kind == TEC_DECL_MEMORY_LOAD;
    if (r->n->kind == TEC_DECL_MEMORY_LOAD && before >= TEC_MAX_MEMORIES)
        MORE(tec_refusing_field(r, "into"), "'%s' is one more memory_load node than the %d",
             tec_refusing_name(r->n), TEC_MAX_MEMORIES);
}

void tec_refuse_more(struct tec_refusing *r)
{
    many_reads(r);
    many_chains(r);
    many_models(r);
    many_stages(r);
    many_texts(r);
    many_prompts(r);
    many_slots(r);
    many_pending(r);
    many_memories(r);
}

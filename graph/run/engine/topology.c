/* topology.c - the decision lattice and the names that policies see. */
#include "graph/load/pipeline_texts.h"
#include "graph/run/engine/engine.h"

#include <math.h>
#include <string.h>

static void copy_points(int *n, int *points, const struct tec_ints *from)
{
    for (*n = 0; *n < from->n && *n < TEC_MAX_AXIS; ++*n)
        points[*n] = from->item[*n];
}

static void add_node(struct tec_topology *t, const struct tec_pipeline *p,
                     const struct tec_decl_node *n)
{
    int i = t->n_nodes++;
    t->nodes[i].name = n->name;
    t->nodes[i].kind = tec_decl_node_word(n->kind);
    t->nodes[i].partition = n->partition.index >= 0 ? p->partitions[n->partition.index].name : "";
    t->nodes[i].deadline_us = llround(n->deadline.ms * 1000.0);
    t->nodes[i].hard = n->deadline.kind == TEC_DEADLINE_HARD || tec_pipeline_awaited(p, n);
    t->nodes[i].optional = n->when_policy;
    if (tec_pipeline_awaited(p, n))
        t->nodes[i].steps =
            n->kind == TEC_DECL_SCORE ? 1 : n->max_tokens + tec_pipeline_keeps_keys(p, n);
}

void tec_engine_topology_rings(struct tec_topology *t, const struct tec_pipeline *p)
{
    const struct tec_decl_node *n;
    for (; t->n_rings < TEC_MAX_RINGS && (n = tec_pipeline_ring(p, t->n_rings)); t->n_rings++) {
        const struct tec_decl_resource *r = &p->resources[n->kv.index];
        const char *with = n->pack_with.index >= 0 ? p->nodes[n->pack_with.index].name : NULL;
        t->rings[t->n_rings].name = r->name;
        t->rings[t->n_rings].stages = r->stages;
        for (int i = 0; i < t->n_nodes; i++)
            if (strcmp(t->nodes[i].name, n->name) == 0 ||
                (with && strcmp(t->nodes[i].name, with) == 0))
                t->nodes[i].ring = 1 + t->n_rings;
    }
}

/* `names` has room for all inputs, resources and partitions, in this order. */
void tec_engine_topology(struct tec_topology *t, const struct tec_pipeline *p,
                         const struct tec_plan_spec *spec, const struct tec_model *m,
                         const char **names)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < p->n_nodes && t->n_nodes < TEC_MAX_NODES; i++)
        if (!p->nodes[i].culled)
            add_node(t, p, &p->nodes[i]);
    copy_points(&t->n_batch, t->batch, &p->capture.batch);
    copy_points(&t->n_k, t->k, &p->capture.k);
    if (t->n_k == 0 && spec->trees.rows) /* a ranking is one step */
        t->k[t->n_k++] = 1;
    copy_points(&t->n_depth, t->depth, &p->capture.depth);
    for (t->n_ratio = 0; t->n_ratio < p->capture.ratio.n && t->n_ratio < TEC_MAX_AXIS; t->n_ratio++)
        t->ratio[t->n_ratio] = p->capture.ratio.item[t->n_ratio];
    t->inputs = names;
    for (int i = 0; i < p->n_inputs; i++)
        *names++ = p->inputs[t->n_inputs++].name;
    t->kv = names;
    static const enum tec_resource_kind kinds[] = {TEC_RESOURCE_FRAME, TEC_RESOURCE_RING,
                                                   TEC_RESOURCE_REQUESTS};
    for (int kind = 0; kind < 3; kind++) /* frames before requests, as the views are */
        for (int i = 0; i < p->n_resources; i++)
            if (p->resources[i].kind == kinds[kind]) {
                *names++ = p->resources[i].name;
                t->n_kv++;
            }
    tec_engine_topology_rings(t, p);
    t->partitions = names;
    for (int i = 0; i < p->n_partitions; i++)
        *names++ = p->partitions[t->n_partitions++].name;
    t->slots = spec->request_slots;
    t->horizon = m->flow.horizon;
    t->layers = tec_model_kept(m)->layers;
    t->period_us = llround(p->frame.period_ms * 1000.0);
    t->seed = (uint64_t)p->seed;
}

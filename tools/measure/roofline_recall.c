/* roofline_recall.c - the segments that a roofline's recalled prompt has: as many as its memories
 * and the prompt have room for, and of them what the pipeline's file says is computed anew. */
#include "graph/run/recall/memory.h"
#include "tools/measure/roofline.h"

#include <math.h>

/* What all memories together ask of a layer. */
struct asked_layers {
    int *anew;           /* [layers] */
    unsigned char *sums; /* [layers] enum tec_work_sums */
};

/* The segments of one memory. */
struct asked {
    const struct tec_decl_node *node;
    int n, each, layers;
    const int *counts; /* [layers] of KEEP: segments */
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int all_of(const struct asked *a, int layer)
{
    (void)layer;
    return a->n * a->each;
}

static int none_of(const struct asked *a, int layer)
{
    (void)a, (void)layer;
    return 0;
}

static int kept_of(const struct asked *a, int layer)
{
    return a->counts[layer] * a->each;
}

static int blended_of(const struct asked *a, int layer)
{
    int tokens = all_of(a, layer);
    return layer <= a->node->check_layer ? tokens : (int)floor(a->node->share * tokens + 1e-9);
}

static int first_of(const struct asked *a, int layer)
{
    (void)layer;
    return a->n * least(a->node->first_tokens, a->each);
}

/* Tokens that a layer computes. Nothing is known of a prompt before: `prefix` finds none of it. */
static int (*const tokens_of[TEC_SELECTIONS])(const struct asked *a, int layer) = {
    [TEC_SELECTION_keep] = kept_of,          [TEC_SELECTION_full] = all_of,
    [TEC_SELECTION_prefix] = all_of,         [TEC_SELECTION_reuse] = none_of,
    [TEC_SELECTION_cacheblend] = blended_of, [TEC_SELECTION_epic] = first_of,
};

/* A memory that scores does so where it computes fewer segments in the next layer, but some: what
 * another one of the prompt computes there says nothing. */
static void add_sums(const struct asked *a, unsigned char *sums)
{
    unsigned char rows = TEC_SUMS_OF_QUERY;
    if (a->node->select != TEC_SELECTION_keep)
        return; /* no other one scores */
    if (tec_scoring_hops((enum tec_scoring)a->node->scoring))
        rows = TEC_SUMS_OF_ALL;
    for (int i = 0; i + 1 < a->layers; i++)
        if (a->counts[i + 1] > 0 && a->counts[i + 1] < a->counts[i] && sums[i] < rows)
            sums[i] = rows;
}

static enum tec_status add_memory(struct tec_roofline *r, const struct tec_decl_node *node,
                                  struct asked_layers *all, struct tec_arena *arena,
                                  struct tec_error *err)
{
    const struct tec_pipeline *p = r->pipeline;
    const struct tec_decl_input *in = &p->inputs[node->reads.item[0].index];
    struct tec_work_segments *s = &r->size.segments;
    struct asked a = {
        .node = node, .each = in->tokens_each, .layers = r->plan->model->text.stack.layers};
    int room = least(p->resources[node->from.index].tokens,
                     r->size.text - 1 - tec_lead_rows(r->plan->model) - s->tokens);
    a.n = room > 0 ? least(in->max_segments, room / a.each) : 0;
    double *ratios = TEC_NEW(arena, (size_t)a.layers, double);
    int *counts = TEC_NEW(arena, (size_t)a.layers, int);
    if (!ratios || !counts)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a roofline");
    tec_memory_ratios(node, a.layers, ratios);
    tec_recompute_counts(ratios, a.layers, a.n, counts);
    a.counts = counts;
    for (int i = 0; i < a.layers; i++)
        all->anew[i] += tokens_of[node->select](&a, i);
    s->n += a.n;
    s->tokens += a.n * a.each;
    add_sums(&a, all->sums);
    return TEC_OK;
}

enum tec_status tec_roofline_segments(struct tec_roofline *r, struct tec_arena *arena,
                                      struct tec_error *err)
{
    int nodes[TEC_MAX_MEMORIES], n = tec_memory_nodes(r->pipeline, 0, nodes);
    if (n == 0)
        return TEC_OK;
    size_t layers = (size_t)r->plan->model->text.stack.layers;
    struct asked_layers all = {TEC_NEW(arena, layers, int), TEC_NEW(arena, layers, unsigned char)};
    if (!all.anew || !all.sums)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a roofline");
    r->size.segments = (struct tec_work_segments){.anew = all.anew, .sums = all.sums};
    for (int i = 0; i < n; i++)
        TEC_TRY(add_memory(r, &r->pipeline->nodes[nodes[i]], &all, arena, err));
    return TEC_OK;
}

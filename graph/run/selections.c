/* selections.c - the selections: which rows of a recalled prompt each layer computes anew.
 *
 * Called by recall.c between the pieces of a layer, on the same thread; selections.def lists them.
 * A selection marks the first rows and then chooses among the rows that are left, and sets only
 * shrink: once a segment is no longer computed its KV is needed in every later layer, so loading it
 * ahead is never in vain. */
#include "graph/run/selections.h"

#include "kernels/bf16.h"

#include <math.h>
#include <string.h>

const struct tec_selection_kind *const tec_selection_kinds[TEC_SELECTIONS] = {
#define SELECTION(name, text, what) &tec_selection_##name,
#include "graph/memory/selections.def"
#undef SELECTION
};

struct tec_segment_range tec_recall_place(const struct tec_recall *r, int u)
{
    if (u < r->in.n_segments)
        return r->in.segments[u];
    return (struct tec_segment_range){0, r->in.n_segments ? r->in.segments[0].begin : r->in.query};
}

static void mark(bool *tokens, struct tec_segment_range p)
{
    for (int t = p.begin; t < p.end; t++)
        tokens[t] = true;
}

/* Compute every token, the fixed beginning included. */
static enum tec_status start_full(struct tec_recall *r, struct tec_error *err)
{
    (void)err;
    mark(r->live, (struct tec_segment_range){0, r->in.n});
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_full = {.start = start_full};

static enum tec_status start_prefix(struct tec_recall *r, struct tec_error *err)
{
    if (r->rule.reused < 0 || r->rule.reused > r->in.query)
        return tec_fail(err, TEC_INVALID, "%d tokens of a prompt whose query begins at %d",
                        r->rule.reused, r->in.query);
    mark(r->resident, (struct tec_segment_range){0, r->rule.reused});
    mark(r->live, (struct tec_segment_range){r->rule.reused, r->in.n});
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_prefix = {.start = start_prefix};

static enum tec_status start_reuse(struct tec_recall *r, struct tec_error *err)
{
    (void)r, (void)err;
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_reuse = {.start = start_reuse};

static enum tec_status start_epic(struct tec_recall *r, struct tec_error *err)
{
    if (r->rule.first < 0)
        return tec_fail(err, TEC_INVALID, "%d first tokens of each segment", r->rule.first);
    for (int u = 0; u < r->in.n_segments; u++) {
        struct tec_segment_range p = r->in.segments[u];
        int end = p.end - p.begin < r->rule.first ? p.end : p.begin + r->rule.first;
        mark(r->live, (struct tec_segment_range){p.begin, end});
    }
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_epic = {.start = start_epic};

/* CacheBlend: compute all tokens up to the layer that checks, then only those whose values differ
 * most from the kept ones. */
static bool blend_compares(const struct tec_recall *r, int layer)
{
    return layer == r->rule.check;
}

static float value_of(const void *v, size_t i, bool bf16)
{
    return bf16 ? tec_bf16_float(((const uint16_t *)v)[i]) : ((const float *)v)[i];
}

/* For each token of a segment, the squared distance between its fresh and its kept values. */
static enum tec_status compare_segment(struct tec_recall *r, int u, struct tec_error *err)
{
    struct tec_segment_range p = tec_recall_place(r, u);
    struct tec_plan *plan = r->plan;
    const struct tec_kv_shape *s = &plan->space.shape;
    size_t row = (size_t)s->kv_heads * (size_t)s->head_dim, size = row * (s->bf16 ? 2 : 4);
    const void *k = NULL, *v = NULL;
    for (int t = p.begin; t < p.end; t++)
        r->worst[t] = 0.0;
    if (p.begin == p.end || (r->in.fresh && r->in.fresh[u]))
        return TEC_OK;
    if (!r->source.find(r->source.self, r->rule.check, u, &k, &v))
        return tec_fail(err, TEC_NOT_FOUND, "segment %d has no kept values at layer %d", u,
                        r->rule.check);
    int slot = plan->prefixes.first[r->in.region];
    for (int t = p.begin; t < p.end; t++) {
        const unsigned char *from = plan->space.v[r->rule.check];
        double sum = 0.0;
        tec_device_download(plan->device, r->part->stream, r->line,
                            from + (size_t)(slot + t) * size, size);
        for (size_t i = 0; i < row; i++) {
            double d = (double)value_of(r->line, i, s->bf16) -
                       (double)value_of(v, (size_t)(t - p.begin) * row + i, s->bf16);
            sum += d * d;
        }
        r->worst[t] = sum;
    }
    return TEC_OK;
}

static enum tec_status choose_blend(struct tec_recall *r, int layer, struct tec_error *err)
{
    if (layer != r->rule.check) {
        memcpy(r->go_on, r->live, (size_t)r->in.n * sizeof *r->live);
        return TEC_OK;
    }
    for (int u = 0; u <= r->in.n_segments; u++)
        TEC_TRY(compare_segment(r, u, err));
    int n = (int)floor(r->rule.share * r->in.query + 1e-9);
    memset(r->go_on, 0, (size_t)r->in.n * sizeof *r->go_on);
    mark(r->go_on, (struct tec_segment_range){r->in.query, r->in.n});
    for (int k = 0; k < n; k++) {
        int at = -1;
        for (int t = 0; t < r->in.query; t++)
            if (!r->go_on[t] && (at < 0 || r->worst[t] > r->worst[at]))
                at = t;
        if (at >= 0)
            r->go_on[at] = true;
    }
    return TEC_OK;
}

static enum tec_status start_blend(struct tec_recall *r, struct tec_error *err)
{
    if (r->rule.check < 0 || r->rule.check >= r->layers - 1 || !(r->rule.share >= 0.0) ||
        r->rule.share > 1.0)
        return tec_fail(err, TEC_INVALID,
                        "a share of %g of the tokens chosen at layer %d of %d is out of range",
                        r->rule.share, r->rule.check, r->layers);
    return start_full(r, err);
}
const struct tec_selection_kind tec_selection_cacheblend = {
    .start = start_blend, .choose = choose_blend, .compares = blend_compares};

/* KEEP: compute all segments in the first layer, then in each layer the most important ones. */
static enum tec_status start_keep(struct tec_recall *r, struct tec_error *err)
{
    for (int i = 0; i < r->layers; i++)
        if (!(r->rule.ratios[i] >= 0.0) || r->rule.ratios[i] > 1.0)
            return tec_fail(err, TEC_INVALID, "the share of layer %d is %g, not 0 to 1", i,
                            r->rule.ratios[i]);
    tec_recompute_counts(r->rule.ratios, r->layers, r->in.n_segments, r->counts);
    if (r->rule.bare && !r->rule.forced)
        return tec_fail(err, TEC_INVALID, "rows alone can be computed for given sets only");
    if (r->rule.bare)
        mark(r->resident, (struct tec_segment_range){0, r->in.query});
    for (int u = 0; u < r->in.n_segments; u++) {
        r->alive[u] = r->counts[0] > 0 && !(r->in.fresh && r->in.fresh[u]);
        if (r->alive[u])
            mark(r->live, r->in.segments[u]);
    }
    return TEC_OK;
}

static bool keep_sums(const struct tec_recall *r, int layer)
{
    return !r->rule.bare && layer + 1 < r->layers && r->counts[layer + 1] < r->counts[layer] &&
           r->counts[layer + 1] > 0;
}

static enum tec_status choose_keep(struct tec_recall *r, int layer, struct tec_error *err)
{
    (void)err;
    int n = r->in.n_segments;
    if (layer + 1 < r->layers && r->counts[layer + 1] < r->counts[layer]) {
        const struct tec_recall_table *t = &r->part->recall;
        const struct tec_attention_sums seen = {.segments = r->in.segments,
                                                .n_segments = n,
                                                .heads = r->plan->model->text.stack.heads,
                                                .query = {r->in.query, r->in.n},
                                                .live = r->alive,
                                                .token = r->token[layer % 2],
                                                .rows = *t->n_summed,
                                                .ld = t->ld_mass,
                                                .mass = r->mass};
        if (r->counts[layer + 1] > 0 && !r->rule.bare) {
            const bool *set =
                tec_importance_select(&r->importance, &seen, r->rule.scoring, r->counts[layer + 1]);
            if (r->watch)
                r->watch(r->user, r, layer, true);
            memcpy(r->alive, set, (size_t)n * sizeof *set);
        } else
            memset(r->alive, 0, (size_t)n * sizeof *r->alive);
        for (int u = 0; r->rule.forced && u < n; u++)
            r->alive[u] = r->rule.forced[(size_t)(layer + 1) * (size_t)n + (size_t)u];
    }
    memset(r->go_on, 0, (size_t)r->in.n * sizeof *r->go_on);
    mark(r->go_on, (struct tec_segment_range){r->in.query, r->in.n});
    for (int u = 0; u < n; u++)
        if (r->alive[u])
            mark(r->go_on, r->in.segments[u]);
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_keep = {
    .start = start_keep, .sums = keep_sums, .choose = choose_keep};

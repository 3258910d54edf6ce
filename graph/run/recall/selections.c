/* selections.c - the selections: which rows of a recalled prompt each layer computes anew.
 *
 * Called by recall.c between the pieces of a layer, on the same thread; selections.def lists them.
 * A selection marks the first rows and then chooses among the rows that are left, and sets only
 * shrink: once a segment is no longer computed its KV is needed in every later layer, so loading it
 * ahead is never in vain. */
#include "graph/run/recall/selections.h"

#include "kernels/bf16.h"

#include <math.h>
#include <stddef.h>
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

int tec_recall_group(const struct tec_recall *r, int u)
{
    int g = 0;
    while (u < r->in.n_segments && g < r->n_groups - 1 && u >= r->ends[g])
        g++;
    return g;
}

static int first_of(const struct tec_recall *r, int group)
{
    return group ? r->ends[group - 1] : 0;
}

struct tec_segment_range tec_recall_tokens(const struct tec_recall *r, int group)
{
    int first = first_of(r, group), end = r->ends[group];
    struct tec_segment_range p = tec_recall_place(r, r->in.n_segments);
    if (first < end)
        p = (struct tec_segment_range){group ? r->in.segments[first].begin : 0,
                                       r->in.segments[end - 1].end};
    else if (group)
        p.begin = p.end;
    return p;
}

static void mark(bool *tokens, struct tec_segment_range p)
{
    for (int t = p.begin; t < p.end; t++)
        tokens[t] = true;
}

/* Compute every token, the fixed beginning included. */
static enum tec_status start_full(struct tec_recall *r, int group, struct tec_error *err)
{
    (void)err;
    mark(r->live, tec_recall_tokens(r, group));
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_full = {.start = start_full};

static enum tec_status start_prefix(struct tec_recall *r, int group, struct tec_error *err)
{
    struct tec_segment_range p = tec_recall_tokens(r, group);
    int reused = r->rules[group].reused;
    if (reused < 0 || reused > r->in.query)
        return tec_fail(err, TEC_INVALID, "%d tokens of a prompt whose query begins at %d", reused,
                        r->in.query);
    for (int t = p.begin; t < p.end; t++) {
        r->resident[t] = t < reused;
        r->live[t] = t >= reused;
    }
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_prefix = {.start = start_prefix};

static enum tec_status start_reuse(struct tec_recall *r, int group, struct tec_error *err)
{
    (void)r, (void)group, (void)err;
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_reuse = {.start = start_reuse};

static enum tec_status start_epic(struct tec_recall *r, int group, struct tec_error *err)
{
    int first = r->rules[group].first;
    if (first < 0)
        return tec_fail(err, TEC_INVALID, "%d first tokens of each segment", first);
    for (int u = first_of(r, group); u < r->ends[group]; u++) {
        struct tec_segment_range p = r->in.segments[u];
        int end = p.end - p.begin < first ? p.end : p.begin + first;
        mark(r->live, (struct tec_segment_range){p.begin, end});
    }
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_epic = {.start = start_epic};

/* CacheBlend: compute all tokens up to the layer that checks, then only those whose values differ
 * most from the kept ones. */
static bool blend_compares(const struct tec_recall *r, int group, int layer)
{
    return layer == r->rules[group].check;
}

static float value_of(const void *v, size_t i, bool bf16)
{
    return bf16 ? tec_bf16_float(((const uint16_t *)v)[i]) : ((const float *)v)[i];
}

/* For each token of a segment, the squared distance between its fresh and its kept values. */
static enum tec_status compare_segment(struct tec_recall *r, int check, int u,
                                       struct tec_error *err)
{
    struct tec_segment_range p = tec_recall_place(r, u);
    struct tec_plan *plan = r->plan;
    const struct tec_kv_shape *s = &plan->space.shape;
    size_t row = (size_t)s->kv_heads * (size_t)s->head_dim, size = tec_kv_row_bytes(s);
    const void *k = NULL, *v = NULL;
    for (int t = p.begin; t < p.end; t++)
        r->worst[t] = 0.0;
    if (p.begin == p.end || (r->in.fresh && r->in.fresh[u]))
        return TEC_OK;
    if (!r->source.find(r->source.self, check, u, &k, &v))
        return tec_fail(err, TEC_NOT_FOUND, "segment %d has no kept values at layer %d", u, check);
    int slot = plan->prefixes.first[r->in.region];
    for (int t = p.begin; t < p.end; t++) {
        const unsigned char *from = plan->space.v[check];
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

static enum tec_status choose_blend(struct tec_recall *r, int group, int layer,
                                    struct tec_error *err)
{
    const struct tec_recall_rule *rule = &r->rules[group];
    struct tec_segment_range p = tec_recall_tokens(r, group);
    if (layer != rule->check) {
        memcpy(r->go_on + p.begin, r->live + p.begin, (size_t)(p.end - p.begin));
        return TEC_OK;
    }
    for (int u = first_of(r, group); u < r->ends[group]; u++)
        TEC_TRY(compare_segment(r, rule->check, u, err));
    if (group == 0)
        TEC_TRY(compare_segment(r, rule->check, r->in.n_segments, err));
    int n = (int)floor(rule->share * (p.end - p.begin) + 1e-9);
    for (int k = 0; k < n; k++) {
        int at = -1;
        for (int t = p.begin; t < p.end; t++)
            if (!r->go_on[t] && (at < 0 || r->worst[t] > r->worst[at]))
                at = t;
        if (at >= 0)
            r->go_on[at] = true;
    }
    return TEC_OK;
}

static enum tec_status start_blend(struct tec_recall *r, int group, struct tec_error *err)
{
    const struct tec_recall_rule *rule = &r->rules[group];
    if (rule->check < 0 || rule->check >= r->layers - 1 || !(rule->share >= 0.0) ||
        rule->share > 1.0)
        return tec_fail(err, TEC_INVALID,
                        "a share of %g of the tokens chosen at layer %d of %d is out of range",
                        rule->share, rule->check, r->layers);
    return start_full(r, group, err);
}
const struct tec_selection_kind tec_selection_cacheblend = {
    .start = start_blend, .choose = choose_blend, .compares = blend_compares};

/* KEEP: compute all segments in the first layer, then in each layer the most important ones. */
static const int *counts_of(const struct tec_recall *r, int group)
{
    return r->counts + (ptrdiff_t)group * r->layers;
}

static enum tec_status start_keep(struct tec_recall *r, int group, struct tec_error *err)
{
    const struct tec_recall_rule *rule = &r->rules[group];
    int first = first_of(r, group);
    for (int i = 0; i < r->layers; i++)
        if (!(rule->ratios[i] >= 0.0) || rule->ratios[i] > 1.0)
            return tec_fail(err, TEC_INVALID, "the share of layer %d is %g, not 0 to 1", i,
                            rule->ratios[i]);
    tec_recompute_counts(rule->ratios, r->layers, r->ends[group] - first,
                         r->counts + (ptrdiff_t)group * r->layers);
    if (rule->bare && !rule->forced)
        return tec_fail(err, TEC_INVALID, "rows alone can be computed for given sets only");
    if (rule->bare)
        mark(r->resident, tec_recall_tokens(r, group));
    for (int u = first; u < r->ends[group]; u++) {
        r->alive[u] = counts_of(r, group)[0] > 0 && !(r->in.fresh && r->in.fresh[u]);
        if (r->alive[u])
            mark(r->live, r->in.segments[u]);
    }
    return TEC_OK;
}

static bool keep_sums(const struct tec_recall *r, int group, int layer)
{
    const int *counts = counts_of(r, group);
    return !r->rules[group].bare && layer + 1 < r->layers && counts[layer + 1] < counts[layer] &&
           counts[layer + 1] > 0;
}

/* The group's most important segments go on; the scores of the choice stay. */
static void select_alive(struct tec_recall *r, int group, int layer)
{
    const struct tec_recall_table *t = &r->part->recall;
    int first = first_of(r, group), n = r->ends[group] - first;
    const struct tec_attention_sums seen = {.segments = r->in.segments + first,
                                            .n_segments = n,
                                            .heads = r->plan->model->text.stack.heads,
                                            .query = {r->in.query, r->in.n},
                                            .live = r->alive + first,
                                            .token = r->token[layer % 2],
                                            .rows = *t->n_summed,
                                            .ld = t->ld_mass,
                                            .mass =
                                                r->mass + (ptrdiff_t)TEC_SEGMENT_RANGES * first};
    struct tec_importance *im = &r->importance;
    const bool *set =
        tec_importance_select(im, &seen, r->rules[group].scoring, counts_of(r, group)[layer + 1]);
    if (r->watch)
        r->watch(r->user, r, layer, true);
    memcpy(r->alive + first, set, (size_t)n * sizeof *set);
    for (int u = 0; im->n_hops && u < n; u++) {
        r->scores[first + u] = im->scores[(im->n_hops - 1) * n + u];
        r->scored[first + u] = true;
    }
}

static enum tec_status choose_keep(struct tec_recall *r, int group, int layer,
                                   struct tec_error *err)
{
    const struct tec_recall_rule *rule = &r->rules[group];
    const int *counts = counts_of(r, group);
    int first = first_of(r, group), end = r->ends[group];
    (void)err;
    if (layer + 1 < r->layers && counts[layer + 1] < counts[layer]) {
        if (counts[layer + 1] > 0 && !rule->bare)
            select_alive(r, group, layer);
        else
            memset(r->alive + first, 0, (size_t)(end - first) * sizeof *r->alive);
        for (int u = first; rule->forced && u < end; u++)
            r->alive[u] = rule->forced[(size_t)(layer + 1) * (size_t)r->in.n_segments + (size_t)u];
    }
    for (int u = first; u < end; u++)
        if (r->alive[u])
            mark(r->go_on, r->in.segments[u]);
    return TEC_OK;
}
const struct tec_selection_kind tec_selection_keep = {
    .start = start_keep, .sums = keep_sums, .choose = choose_keep};

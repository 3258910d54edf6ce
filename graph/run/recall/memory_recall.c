/* memory_recall.c - a prompt of remembered segments on the frame thread: kept keys and values are
 * asked for, and brought to the layers of a recall as they come.
 *
 * Each memory of the chain has a prefetch of its own for its segments; the beginning is the
 * chain's. A prompt may run in slices of layers with other launches between them: one is begun at a
 * time. */
#include "graph/run/recall/memory_own.h"

#include <math.h>
#include <string.h>

/* Memory m of the session whose prompt runs. */
static struct tec_memory *in(const struct tec_chain_memory *c, int m)
{
    return tec_memory_in(c, c->prompt, m);
}

/* Whose segment u of the running prompt is, and which of its: *u. */
static int owner(const struct tec_chain_memory *c, int *u)
{
    int m = 0;
    while (m < c->n - 1 && *u >= c->prompt->ends[m])
        m++;
    *u -= tec_memory_first(c->prompt, m);
    return m;
}

static int segments_of(const struct tec_chain_memory *c, int m)
{
    return c->prompt->ends[m] - tec_memory_first(c->prompt, m);
}

static bool find(void *self, int layer, int segment, const void **k, const void **v)
{
    struct tec_chain_memory *c = self;
    if (segment == c->prompt->n_segments) {
        size_t bytes = (size_t)c->n_beginning * c->row;
        *k = c->begin ? c->begin + 2 * (size_t)layer * bytes : NULL;
        *v = c->begin ? c->begin + (2 * (size_t)layer + 1) * bytes : NULL;
        return c->begin != NULL;
    }
    const struct tec_kv *kv = c->fresh[segment] ? NULL : c->prompt->kv[segment];
    int u = segment, m = owner(c, &u);
    size_t at = (size_t)layer * (size_t)segments_of(c, m) + (size_t)u;
    const unsigned char *piece = kv ? in(c, m)->frame.pieces[at] : NULL;
    *k = piece;
    *v = piece ? piece + (size_t)tec_store_kv_tokens(kv) * c->row : NULL;
    return piece != NULL;
}

static bool wait(void *self, int layer)
{
    const struct tec_chain_memory *c = self;
    bool all = true;
    for (int m = 0; m < c->n; m++)
        all &= !c->fed[m] || tec_prefetch_wait(in(c, m)->frame.prefetch, layer);
    return all;
}

static bool came(void *self, int layer, int segment)
{
    const struct tec_chain_memory *c = self;
    int u = segment, m = 0;
    if (segment == c->prompt->n_segments)
        return true;
    m = owner(c, &u);
    return c->fed[m] && tec_prefetch_there(in(c, m)->frame.prefetch, layer, u);
}

/* --- what stays on the device ---------------------------------------------------------------- */

static struct tec_memory_tier_key key_of(const struct tec_memory *m, const struct tec_kv *kv)
{
    return (struct tec_memory_tier_key){m->session, tec_store_kv_serial(kv)};
}

/* Whose a segment is that may stay; NULL: the beginning, or one without KV. *u is its number. */
static struct tec_memory *keeper(const struct tec_chain_memory *c, int *u)
{
    if (*u == c->prompt->n_segments || c->fresh[*u])
        return NULL;
    struct tec_memory *m = in(c, owner(c, u));
    return m->shared->tier.n ? m : NULL;
}

static void *stays(void *self, int layer, int segment, bool *there)
{
    struct tec_chain_memory *c = self;
    int u = segment;
    struct tec_memory *m = keeper(c, &u);
    if (!m)
        return NULL;
    struct tec_memory_tier *t = &m->shared->tier;
    const struct tec_kv *kv = c->prompt->kv[segment];
    if (m->frame.stays[u] < 0)
        m->frame.stays[u] = tec_memory_tier_take(t, key_of(m, kv));
    int place = m->frame.stays[u];
    if (place < 0)
        return NULL;
    *there = tec_memory_tier_has(t, place, layer);
    if (*there)
        tec_memory_count(m, TEC_COUNT_HELD, 2 * (int64_t)tec_store_kv_tokens(kv) * (int64_t)c->row);
    return tec_memory_tier_at(t, place, layer);
}

static void placed(void *self, int layer, int segment)
{
    const struct tec_chain_memory *c = self;
    int u = segment;
    struct tec_memory *m = keeper(c, &u);
    if (m && m->frame.stays[u] >= 0)
        tec_memory_tier_keep(&m->shared->tier, m->frame.stays[u], layer);
}

/* What of a prompt is on the device. Where values are compared they are, on the host. */
static const unsigned char *find_held(struct tec_memory *m, const struct tec_recall_rule *rule,
                                      struct tec_kv *const *kv, const bool *fresh, int n)
{
    struct tec_memory_tier *t = &m->shared->tier;
    if (!t->n)
        return NULL;
    tec_memory_tier_begin(t);
    memset(m->frame.held, 0, (size_t)m->layers * (size_t)n);
    for (int u = 0; u < n; u++) {
        int place = fresh[u] ? -1 : tec_memory_tier_find(t, key_of(m, kv[u]));
        m->frame.stays[u] = place;
        for (int l = 0; place >= 0 && l < m->layers; l++)
            m->frame.held[(ptrdiff_t)l * n + u] = tec_memory_tier_has(t, place, l);
    }
    if (rule->selection == TEC_SELECTION_cacheblend)
        memset(m->frame.held + (ptrdiff_t)rule->check * n, 0, (size_t)n);
    return m->frame.held;
}

/* --- what the recall asks and tells ---------------------------------------------------------- */

bool tec_memory_ready(const struct tec_chain_memory *c, int layer)
{
    bool all = true;
    for (int m = 0; m < c->n && c->runs; m++)
        all &= !c->fed[m] || tec_prefetch_ready(in(c, m)->frame.prefetch, layer);
    return all;
}

/* A set only shrinks, from what the first layer was said to compute. */
static void known(void *self, int layer, const unsigned char *set)
{
    struct tec_chain_memory *c = self;
    for (int i = 0; i < c->n; i++) {
        struct tec_memory *m = in(c, i);
        int first = tec_memory_first(c->prompt, i);
        for (int u = 0; u < segments_of(c, i); u++)
            m->frame.set[u] = set[first + u] && m->frame.first[u];
        if (layer > 0 && c->fed[i])
            tec_prefetch_known(m->frame.prefetch, layer, m->frame.set);
    }
}

/* Told to the prefetch of each memory that brings kept pieces. */
static void tell(const struct tec_chain_memory *c, int layer,
                 void (*what)(struct tec_prefetch *prefetch, int layer))
{
    for (int m = 0; m < c->n; m++)
        if (c->fed[m])
            what(in(c, m)->frame.prefetch, layer);
}

static void started(void *self, int layer)
{
    tell(self, layer, tec_prefetch_started);
}

static void ended(void *self, int layer)
{
    tell(self, layer, tec_prefetch_ended);
}

void tec_memory_ratios(const struct tec_decl_node *node, int layers, double *ratios)
{
    const struct tec_decl_recompute *r = &node->recompute;
    double ratio = r->first;
    for (int i = 0; i < layers; i++, ratio *= r->decay)
        ratios[i] = ratio > r->floor ? ratio : r->floor;
}

struct tec_recall_rule tec_memory_rule(const struct tec_decl_node *node, const double *ratios)
{
    return (struct tec_recall_rule){.selection = (enum tec_selection)node->select,
                                    .scoring = (enum tec_scoring)node->scoring,
                                    .ratios = ratios,
                                    .local = node->positions == TEC_POSITIONS_LOCAL0,
                                    .share = node->share,
                                    .check = node->check_layer,
                                    .first = node->first_tokens};
}

static struct tec_recall_rule rule_of(struct tec_memory *m, bool whole)
{
    if (whole)
        return (struct tec_recall_rule){.selection = TEC_SELECTION_full};
    if (!m->frame.decided)
        tec_memory_ratios(m->node, m->layers, m->frame.ratios);
    m->frame.decided = false;
    return tec_memory_rule(m->node, m->frame.ratios);
}

static bool feeds(const struct tec_recall_rule *rule)
{
    return rule->selection != TEC_SELECTION_full && rule->selection != TEC_SELECTION_prefix;
}

/* Rows of the first layer: KEEP computes all segments, unless nothing at all is computed anew. */
static bool computes_all(const struct tec_recall_rule *rule)
{
    return !feeds(rule) || (rule->selection == TEC_SELECTION_cacheblend && rule->check > 0) ||
           (rule->selection == TEC_SELECTION_keep && rule->ratios[0] > 0.0);
}

/* Segments by score, the higher first; equal ones as they stand in the prompt. */
static void order_segments(struct tec_memory *m, int n)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && m->frame.score[m->frame.order[at - 1]] < m->frame.score[i]; at--)
            m->frame.order[at] = m->frame.order[at - 1];
        m->frame.order[at] = i;
    }
}

/* The pieces of a layer lie side by side, so that those of neighbours come to a device in one copy.
 */
static void place_pieces(struct tec_memory *m, struct tec_kv *const *kv, int n)
{
    struct tec_memory_shared *s = m->shared;
    for (int l = 0; l < m->layers; l++) {
        unsigned char *at = s->stage + (size_t)l * s->stage_layer;
        for (int u = 0; u < n; u++) {
            s->staging[(ptrdiff_t)l * n + u] = at;
            at += kv[u] ? tec_store_kv_piece_bytes(kv[u]) : 0;
        }
    }
}

/* On failure the prefetch is not running, so no kept KV may be read. */
static enum tec_status begin_memory(struct tec_chain_memory *c, int at, struct tec_error *err)
{
    struct tec_memory *m = in(c, at);
    const struct tec_recall_rule *rule = &c->rules[at];
    int first = tec_memory_first(c->prompt, at), n = segments_of(c, at);
    c->fed[at] = false;
    for (int u = 0; u < n; u++) {
        c->fresh[first + u] = !c->prompt->kv[first + u] || m->frame.skipped[u];
        m->frame.first[u] = computes_all(rule) || c->fresh[first + u];
    }
    if (m->frame.by_score)
        order_segments(m, n);
    if (!feeds(rule))
        return TEC_OK;
    place_pieces(m, c->prompt->kv + first, n);
    const struct tec_prefetch_forward f = {
        .layers = m->layers,
        .segments = n,
        .overlap = (enum tec_overlap)m->node->overlap,
        .kv = c->prompt->kv + first,
        .staging = m->shared->staging,
        .first = m->frame.first,
        .held = find_held(m, rule, c->prompt->kv + first, c->fresh + first, n),
        .order = m->frame.by_score ? m->frame.order : NULL};
    c->fed[at] = tec_prefetch_begin(m->frame.prefetch, &f, err) == TEC_OK;
    return c->fed[at] ? TEC_OK : TEC_NOT_FOUND;
}

/* Tokens at the beginning whose keys and values the region has from a prompt computed whole: none
 * where they have seen what stands behind them, or pictures, which may be others by now. */
static int held(const struct tec_chain_memory *c, int region, const struct tec_prefix_input *o)
{
    int n = 0;
    if (c->pictures > 0 || c->plan->model->text.mask == TEC_MASK_BIDIR)
        return 0;
    while (n < c->n_held[region] && n < c->prompt->query && c->held[region][n] == o->ids[n])
        n++;
    return n;
}

/* What was computed of all rows may be held on to by the next prompt. */
static bool holds(const struct tec_chain_memory *c)
{
    bool all = c->pictures == 0;
    for (int m = 0; m < c->n; m++)
        all &= !feeds(&c->rules[m]);
    return all;
}

static bool only_prefixes(const struct tec_chain_memory *c)
{
    bool all = true;
    for (int m = 0; m < c->n; m++)
        all &= c->rules[m].selection == TEC_SELECTION_prefix;
    return all;
}

static enum tec_status start(struct tec_chain_memory *c, int region,
                             const struct tec_prefix_input *o, struct tec_error *err)
{
    const struct tec_memory_prompt *p = c->prompt;
    const struct tec_recall_source source = {.self = c,
                                             .find = find,
                                             .wait = wait,
                                             .came = came,
                                             .behind = TEC_LOG_PIECE_END,
                                             .stays = stays,
                                             .placed = placed,
                                             .known = known,
                                             .started = started,
                                             .ended = ended};
    for (int u = 0; u < p->n_segments; u++)
        c->places[u] = (struct tec_segment_range){p->segments[u].begin + c->pictures,
                                                  p->segments[u].end + c->pictures};
    const struct tec_recall_input in = {.ids = o->ids,
                                        .n = o->n_text + c->pictures,
                                        .n_pictures = o->n_pictures,
                                        .picture = o->picture,
                                        .segments = c->places,
                                        .n_segments = p->n_segments,
                                        .local = p->local,
                                        .ends = p->ends,
                                        .n_groups = c->n,
                                        .fresh = c->fresh,
                                        .query = p->query + c->pictures,
                                        .region = region};
    return tec_recall_start(&c->recall, &in, c->rules, &source, err);
}

enum tec_status tec_memory_begin(struct tec_chain_memory *c, int region,
                                 const struct tec_chain_input *input, struct tec_error *err)
{
    const struct tec_prefix_input *o = &input->prefix;
    enum tec_status status = TEC_OK;
    c->prompt = input->memory;
    c->pictures = o->n_pictures * c->plan->model->vision.tokens;
    c->runs = true;
    for (int m = 0; m < c->n; m++)
        c->rules[m] = rule_of(in(c, m), c->whole);
    int reused = only_prefixes(c) ? held(c, region, o) : 0;
    c->n_held[region] = 0;
    c->fresh[c->prompt->n_segments] = !c->begin || c->pictures > 0;
    for (int m = 0; m < c->n; m++) {
        c->rules[m].reused = reused;
        c->fed[m] = false;
    }
    for (int m = 0; m < c->n && status == TEC_OK; m++)
        status = begin_memory(c, m, err);
    return status == TEC_OK ? start(c, region, o, err) : status;
}

enum tec_status tec_memory_layer(struct tec_chain_memory *c, int layer, struct tec_error *err)
{
    TEC_TRY(tec_recall_layer(&c->recall, layer, err));
    return tec_device_failure(c->plan->device, err);
}

/* If a prefetch failed, report its error and blame the first segment that could not be loaded. */
static enum tec_status end_memory(struct tec_chain_memory *c, int at, enum tec_status status,
                                  struct tec_error *err)
{
    struct tec_memory *m = in(c, at);
    struct tec_prefetch_result result;
    struct tec_error why = {TEC_OK, ""};
    int segment = -1;
    if (tec_prefetch_finish(m->frame.prefetch, &result, &why) == TEC_OK ||
        (status != TEC_OK && status != TEC_NOT_FOUND))
        return status;
    for (int u = segments_of(c, at) - 1; u >= 0; u--)
        segment = result.failed[u] ? tec_memory_first(c->prompt, at) + u : segment;
    why.status = TEC_NOT_FOUND;
    tec_memory_hear(m, c->prompt, &why, segment);
    return tec_fail(err, TEC_NOT_FOUND, "%s", why.message);
}

enum tec_status tec_memory_end(struct tec_chain_memory *c, enum tec_status status,
                               struct tec_error *err)
{
    struct tec_error why = err ? *err : (struct tec_error){TEC_OK, ""};
    bool fed = false;
    enum tec_status before = status;
    for (int m = 0; c->runs && m < c->n; m++) {
        if (c->fed[m])
            status = end_memory(c, m, status, err);
        fed |= c->fed[m] && status == TEC_NOT_FOUND;
    }
    if (before != TEC_OK && !fed) /* no memory has said it */
        tec_memory_hear(in(c, 0), c->prompt, &why, -1);
    c->runs = false;
    return status;
}

void tec_memory_hold(struct tec_chain_memory *c, int region, const struct tec_prefix_input *o)
{
    c->n_held[region] = holds(c) ? o->n_text : 0;
    memcpy(c->held[region], o->ids, (size_t)c->n_held[region] * sizeof *o->ids);
}

static void count_segments(struct tec_chain_memory *c, int at)
{
    struct tec_memory *m = in(c, at);
    const struct tec_memory_prompt *p = c->prompt;
    tec_memory_count(m, TEC_COUNT_SEGMENTS, segments_of(c, at));
    for (int u = tec_memory_first(p, at); u < p->ends[at]; u++) {
        tec_memory_count(m, TEC_COUNT_MISSING, !p->kv[u]);
        if (c->recall.scored[u])
            atomic_store_explicit(&m->importance[p->handles[u]], (float)c->recall.scores[u],
                                  memory_order_relaxed);
    }
}

void tec_memory_count_prompt(struct tec_chain_memory *c, int rows)
{
    struct tec_memory *m = in(c, 0);
    const struct tec_recall *r = &c->recall;
    tec_memory_count(m, TEC_COUNT_PROMPTS, 1);
    for (int l = 0; l < r->layers; l++)
        tec_memory_count(m, TEC_COUNT_ROWS, r->rows[l]);
    tec_memory_count(m, TEC_COUNT_ROWS_FULL, (int64_t)rows * r->layers);
    tec_memory_count(m, TEC_COUNT_WAITED, r->times.waited);
    tec_memory_count(m, TEC_COUNT_CHOOSE, r->times.choose);
    tec_memory_count(m, TEC_COUNT_SENT, r->moves.bytes);
    tec_memory_count(m, TEC_COUNT_FED, r->moves.layers);
    tec_memory_count(m, TEC_COUNT_AHEAD, r->moves.ahead);
    for (int i = 0; i < c->n; i++)
        count_segments(c, i);
}

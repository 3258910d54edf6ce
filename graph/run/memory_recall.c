/* memory_recall.c - the frame's side: a recall in place of a prefill, and KV to be kept computed
 * when the frame is over. */
#include "graph/run/memory_own.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

static const struct tec_clock real = {NULL};

/* The prefetch is told of a forward's segments; the beginning is this file's own. */
static bool find(void *self, int layer, int segment, const void **k, const void **v)
{
    struct tec_memory *m = self;
    int n = m->prompt->n_segments;
    if (segment == n) {
        size_t layer_bytes = (size_t)m->n_beginning * m->row;
        *k = m->begin_k ? m->begin_k + (size_t)layer * layer_bytes : NULL;
        *v = m->begin_k ? m->begin_v + (size_t)layer * layer_bytes : NULL;
        return m->begin_k != NULL;
    }
    const struct tec_kv *kv = m->fresh[segment] ? NULL : m->prompt->kv[segment];
    const unsigned char *piece = kv ? m->pieces[(size_t)layer * (size_t)n + (size_t)segment] : NULL;
    *k = piece;
    *v = piece ? piece + (size_t)tec_kv_tokens(kv) * m->row : NULL;
    return piece != NULL;
}

static bool wait(void *self, int layer)
{
    const struct tec_memory *m = self;
    return tec_prefetch_wait(m->prefetch, layer);
}

static void known(void *self, int layer, const unsigned char *set)
{
    struct tec_memory *m = self;
    /* A set only shrinks, from what the first layer was said to compute. */
    for (int u = 0; u < m->prompt->n_segments; u++)
        m->set[u] = set[u] && m->first[u];
    if (layer > 0)
        tec_prefetch_known(m->prefetch, layer, m->set);
}

static void started(void *self, int layer)
{
    tec_prefetch_started(((struct tec_memory *)self)->prefetch, layer);
}

static void ended(void *self, int layer)
{
    tec_prefetch_ended(((struct tec_memory *)self)->prefetch, layer);
}

static struct tec_recall_rule rule_of(struct tec_memory *m)
{
    const struct tec_decl_node *n = m->node;
    return (struct tec_recall_rule){.selection = (enum tec_selection)n->select,
                                    .scoring = (enum tec_scoring)n->scoring,
                                    .ratios = m->ratios,
                                    .local = n->positions == TEC_POSITIONS_LOCAL0,
                                    .share = n->share,
                                    .check = n->check_layer,
                                    .first = n->first_tokens};
}

static void declared_ratios(struct tec_memory *m)
{
    const struct tec_decl_recompute *r = &m->node->recompute;
    double ratio = r->first;
    for (int i = 0; i < m->layers; i++, ratio *= r->decay)
        m->ratios[i] = ratio > r->floor ? ratio : r->floor;
    m->decided = false;
}

/* Tokens at the beginning whose keys and values the region has from a prompt computed whole: none
 * where they have seen what stands behind them, or pictures, which may be others by now. */
static int held(const struct tec_memory *m, int region, const struct tec_prefix_input *o, int query)
{
    int n = 0;
    if (m->pictures > 0 || m->plan->model->text.mask == TEC_MASK_BIDIR)
        return 0;
    while (n < m->n_held[region] && n < query && m->held[region][n] == o->ids[n])
        n++;
    return n;
}

static void hold(struct tec_memory *m, int region, const struct tec_prefix_input *o, bool whole)
{
    m->n_held[region] = whole ? o->n_text : 0;
    if (whole)
        memcpy(m->held[region], o->ids, (size_t)o->n_text * sizeof *o->ids);
}

/* On failure the prefetch is not running, so no kept KV may be read. */
static enum tec_status begin(struct tec_memory *m, const struct tec_recall_rule *rule,
                             struct tec_error *err)
{
    const struct tec_memory_prompt *p = m->prompt;
    /* Rows of the first layer: KEEP computes all segments, unless nothing at all is computed anew.
     */
    bool all = rule->selection == TEC_SELECTION_full || rule->selection == TEC_SELECTION_prefix ||
               (rule->selection == TEC_SELECTION_cacheblend && rule->check > 0) ||
               (rule->selection == TEC_SELECTION_keep && rule->ratios[0] > 0.0);
    bool none = rule->selection == TEC_SELECTION_full || rule->selection == TEC_SELECTION_prefix;
    for (int u = 0; u < p->n_segments; u++) {
        m->fresh[u] = !p->kv[u] || m->skipped[u];
        m->first[u] = all || m->fresh[u];
    }
    m->fresh[p->n_segments] = !m->begin_k || m->pictures > 0;
    if (none)
        return TEC_OK;
    const struct tec_prefetch_forward f = {.layers = m->layers,
                                           .segments = p->n_segments,
                                           .overlap = (enum tec_overlap)m->node->overlap,
                                           .kv = p->kv,
                                           .staging = m->staging,
                                           .first = m->first,
                                           .order = m->by_score ? m->order : NULL};
    return tec_prefetch_begin(m->prefetch, &f, err) == TEC_OK ? TEC_OK : TEC_NOT_FOUND;
}

/* If the prefetch failed, report its error and blame the first segment that could not be loaded. */
static enum tec_status finish(struct tec_memory *m, enum tec_status status, int *segment,
                              struct tec_error *err)
{
    struct tec_prefetch_result result;
    struct tec_error why = {TEC_OK, ""};
    if (tec_prefetch_finish(m->prefetch, &result, &why) == TEC_OK ||
        (status != TEC_OK && status != TEC_NOT_FOUND))
        return status;
    for (int u = m->prompt->n_segments - 1; u >= 0; u--)
        *segment = result.failed[u] ? u : *segment;
    return tec_fail(err, TEC_NOT_FOUND, "%s", why.message);
}

/* *segment: to blame for TEC_NOT_FOUND; unchanged where none is. */
static enum tec_status run(struct tec_memory *m, const struct tec_recall_rule *rule, int region,
                           const struct tec_prefix_input *o, int *segment, struct tec_error *err)
{
    const struct tec_memory_prompt *p = m->prompt;
    bool fed = rule->selection != TEC_SELECTION_full && rule->selection != TEC_SELECTION_prefix;
    const struct tec_recall_source source = {.self = m,
                                             .find = find,
                                             .wait = fed ? wait : NULL,
                                             .known = fed ? known : NULL,
                                             .started = fed ? started : NULL,
                                             .ended = fed ? ended : NULL};
    for (int u = 0; u < p->n_segments; u++)
        m->places[u] = (struct tec_segment_range){p->segments[u].begin + m->pictures,
                                                  p->segments[u].end + m->pictures};
    const struct tec_recall_input in = {.ids = o->ids,
                                        .n = o->n_text + m->pictures,
                                        .n_pictures = o->n_pictures,
                                        .picture = o->picture,
                                        .segments = m->places,
                                        .n_segments = p->n_segments,
                                        .local = p->local,
                                        .fresh = m->fresh,
                                        .query = p->query + m->pictures,
                                        .region = region};
    TEC_TRY(begin(m, rule, err));
    enum tec_status status = tec_recall_run(&m->recall, &in, rule, &source, err);
    return fed ? finish(m, status, segment, err) : status;
}

static void count(struct tec_memory *m, const struct tec_memory_prompt *p, int n)
{
    const struct tec_recall *r = &m->recall;
    tec_memory_count(m, TEC_COUNT_PROMPTS, 1);
    tec_memory_count(m, TEC_COUNT_SEGMENTS, p->n_segments);
    for (int u = 0; u < p->n_segments; u++)
        tec_memory_count(m, TEC_COUNT_MISSING, !p->kv[u]);
    for (int l = 0; l < r->layers; l++)
        tec_memory_count(m, TEC_COUNT_ROWS, r->rows[l]);
    tec_memory_count(m, TEC_COUNT_ROWS_FULL, (int64_t)n * r->layers);
    tec_memory_count(m, TEC_COUNT_WAITED, r->times.waited);
    tec_memory_count(m, TEC_COUNT_CHOOSE, r->times.choose);
    for (int u = 0; u < p->n_segments; u++)
        if (r->scored[u])
            atomic_store_explicit(&m->importance[p->handles[u]], (float)r->scores[u],
                                  memory_order_relaxed);
}

/* Segments by score, the higher first; equal ones as they stand in the prompt. */
static void order_segments(struct tec_memory *m, int n)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && m->score[m->order[at - 1]] < m->score[i]; at--)
            m->order[at] = m->order[at - 1];
        m->order[at] = i;
    }
}

/* The next token behind the prompt in a region. Its keys go where segments are computed, which
 * nobody reads while a prompt is recalled; requests may be decoding on a partition beside. */
static int next_token(struct tec_memory *m, int region, const struct tec_prefix_input *o)
{
    int n = tec_prefix_rows(m->plan, o);
    struct tec_row_state row = {.token = o->ids[o->n_text - 1],
                                .pos = n - 1,
                                .slot = m->plan->segment_slot,
                                .visible = n,
                                .region = region,
                                .prefix = n,
                                .tail = m->plan->tails[0],
                                .left = 1,
                                .eos = -1,
                                .place = -1};
    struct tec_row_state *rows[] = {&row};
    struct tec_replay replay = {0};
    int token = -1, made = 0;
    m->inner.decode(m->inner.self, rows, 1, 1, &token, &made, &replay);
    return made ? token : -1;
}

/* Recompute the whole prompt without kept KV and count whether the next token is the same. */
static enum tec_status audit(struct tec_memory *m, int region, const struct tec_prefix_input *o,
                             struct tec_recall_rule *rule)
{
    int first = next_token(m, region, o);
    *rule = (struct tec_recall_rule){.selection = TEC_SELECTION_full};
    int segment = -1;
    enum tec_status status = run(m, rule, region, o, &segment, NULL);
    m->audits++;
    m->agreed += status == TEC_OK && first >= 0 && next_token(m, region, o) == first;
    return status;
}

static void report(void *self, struct tec_frame_view *view)
{
    const struct tec_memory *m = self;
    view->n_audits = m->audits;
    view->n_agreed = m->agreed;
}

static void recall(void *self, enum tec_part_kind kind, int region,
                   const struct tec_chain_input *input, struct tec_replay *replay)
{
    struct tec_memory *m = self;
    m->prompt = input->memory;
    if (m->prompt && m->by_score)
        order_segments(m, m->prompt->n_segments);
    if (!m->prompt) {
        m->inner.prefix(m->inner.self, kind, region, input, replay);
        return;
    }
    const struct tec_prefix_input *o = &input->prefix;
    m->pictures = o->n_pictures * m->plan->model->vision.tokens;
    struct tec_recall_rule rule = rule_of(m);
    if (!m->decided)
        declared_ratios(m);
    m->decided = false;
    rule.reused = held(m, region, o, m->prompt->query);
    replay->start_ns = tec_clock_now(&real);
    int segment = -1;
    struct tec_error err = {TEC_OK, ""};
    enum tec_status status = run(m, &rule, region, o, &segment, &err);
    if (status != TEC_OK)
        tec_memory_hear(m, &err, segment);
    if (status == TEC_NOT_FOUND) { /* what was kept is gone: nothing of it is needed */
        rule = (struct tec_recall_rule){.selection = TEC_SELECTION_full};
        tec_memory_count(m, TEC_COUNT_WHOLE, 1);
        status = run(m, &rule, region, o, &segment, NULL);
    }
    if (status == TEC_OK && m->audit && m->plan->spec.request_slots)
        status = audit(m, region, o, &rule);
    hold(m, region, o,
         status == TEC_OK && m->pictures == 0 &&
             (rule.selection == TEC_SELECTION_full || rule.selection == TEC_SELECTION_prefix));
    count(m, m->prompt, tec_prefix_rows(m->plan, o));
    replay->status = status;
    replay->end_ns = tec_clock_now(&real);
    for (int i = 0; i < TEC_MAX_MARKS; i++)
        replay->mark_ns[i] = replay->end_ns;
    replay->mark_ns[TEC_MARK_PREFILL] = replay->end_ns;
}

static void action(void *self, const struct tec_action_launch *launch, struct tec_replay *replay)
{
    struct tec_memory *m = self;
    m->inner.action(m->inner.self, launch, replay);
}

static void actions(void *self, int at, float *chunk)
{
    struct tec_memory *m = self;
    m->inner.actions(m->inner.self, at, chunk);
}

static void decode(void *self, struct tec_row_state *const *rows, int n, int k, int *tokens,
                   int *made, struct tec_replay *replay)
{
    struct tec_memory *m = self;
    m->inner.decode(m->inner.self, rows, n, k, tokens, made, replay);
}

static void score(void *self, const struct tec_token_tree *tree, const struct tec_row_state *row,
                  float *likely, struct tec_replay *replay)
{
    struct tec_memory *m = self;
    m->inner.score(m->inner.self, tree, row, likely, replay);
}

static void recompute(void *self, const struct tec_decision *d)
{
    struct tec_memory *m = self;
    int segments = m->input->max_segments, n = d->n_ratios;
    m->decided = n > 0;
    for (int i = 0; i < m->layers && n > 0; i++)
        m->ratios[i] = d->ratios[i < n ? i : n - 1];
    for (int u = 0; u < segments; u++) {
        m->skipped[u] = u < d->n_seg && d->seg[u].skip;
        m->score[u] = u < d->n_seg ? d->seg[u].score : 0.0;
    }
    m->by_score = d->n_seg > 0;
    m->audit = d->audit;
}

/* One launch, if it is believed to end before the next frame. */
static void idle(void *self, int64_t until_ns)
{
    struct tec_memory *m = self;
    if (atomic_load_explicit(&m->job.state, memory_order_acquire) != TEC_JOB_READY)
        return;
    int64_t takes = m->token_ns * m->job.n_tokens * 3 / 2;
    if (until_ns != INT64_MAX && (!m->token_ns || tec_clock_now(&real) + takes > until_ns))
        return;
    tec_memory_run_job(m);
    atomic_store_explicit(&m->job.state, TEC_JOB_DONE, memory_order_release);
}

struct tec_executor tec_memory_executor(struct tec_memory *m, const struct tec_executor *inner)
{
    struct tec_executor e = *inner;
    m->inner = *inner;
    e.self = m;
    e.prefix = recall;
    e.action = action;
    e.actions = actions;
    e.decode = decode;
    e.recompute = recompute;
    e.idle = idle;
    e.score = score;
    e.slice = NULL; /* of other models' executors */
    e.report = report;
    e.packed = NULL;
    e.shift = NULL;
    e.beside = NULL;
    e.join = NULL;
    return e;
}

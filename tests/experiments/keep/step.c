/* step.c - one step of the trace by one method: what it lacks is computed, the prompt is recalled
 * and answered. */
#include "tests/experiments/keep/setup.h"

#include <string.h>

/* Where a row's kept pieces are, and what its layers took. */
struct source {
    struct tec_keeping_setup *w;
    struct tec_keeping_row *row;
    enum tec_keeping_kept kept;
    enum tec_overlap overlap;
    bool counted;
    int n_segments;
    struct tec_segment_range places[TEC_KEEPING_SEGMENTS];
    struct tec_keeping_slot *slots[TEC_KEEPING_SEGMENTS];
    struct tec_kv *kv[TEC_KEEPING_SEGMENTS];
    unsigned char *staging[TEC_KEEPING_LAYERS * TEC_KEEPING_SEGMENTS];
    int64_t began[TEC_KEEPING_LAYERS], waited_ns;
    int64_t joined_ns;    /* of groups that became static in this step */
    double spared_ns;     /* of the refresh: what tokens before a block's first changed one took */
    struct tec_error err; /* of the prefetch */
};

struct timing {
    int64_t prefill, cpu;
    struct tec_keeping_answer answer;
};

static int64_t now(void)
{
    const struct tec_clock clock = {NULL};
    return tec_clock_now(&clock);
}

static void push(struct tec_samples *s, int64_t ns)
{
    if (s->n < s->room)
        s->ns[s->n++] = ns;
}

/* --- kept pieces ----------------------------------------------------------------------------- */

static bool find(void *self, int layer, int segment, const void **k, const void **v)
{
    const struct source *s = self;
    const struct tec_keeping_setup *w = s->w;
    bool apart = segment == s->n_segments || s->kept == TEC_KEEPING_BLOCKS;
    if (s->kept == TEC_KEEPING_NONE)
        return false;
    if (apart) {
        const struct tec_keeping_slot *slot =
            segment == s->n_segments ? &w->beginning : s->slots[segment];
        size_t size = (size_t)slot->tokens * w->row;
        *k = slot->kv + 2 * (size_t)layer * size;
        *v = slot->kv + 2 * (size_t)layer * size + size;
        return true;
    }
    const unsigned char *piece =
        s->kept == TEC_KEEPING_FEED
            ? tec_prefetch_pieces(
                  w->prefetch)[(size_t)layer * (size_t)s->n_segments + (size_t)segment]
            : tec_store_kv_piece(s->kv[segment], (uint32_t)layer);
    *k = piece;
    *v = piece + tec_log_piece_value(&w->key, tec_store_kv_tokens(s->kv[segment]));
    return piece != NULL;
}

static bool wait(void *self, int layer)
{
    struct source *s = self;
    int64_t begin = now();
    bool there = s->kept != TEC_KEEPING_FEED ||
                 (s->err.status == TEC_OK && tec_prefetch_wait(s->w->prefetch, layer));
    if (s->counted)
        s->row->layer_wait[layer] += (double)(now() - begin);
    return there;
}

static bool came(void *self, int layer, int segment)
{
    const struct source *s = self;
    return s->kept != TEC_KEEPING_FEED || segment == s->n_segments ||
           (s->err.status == TEC_OK && tec_prefetch_there(s->w->prefetch, layer, segment));
}

static void known(void *self, int layer, const unsigned char *set)
{
    struct source *s = self;
    struct tec_keeping_setup *w = s->w;
    int64_t bytes = 0;
    for (int u = 0; u < s->n_segments; u++)
        if (!set[u])
            bytes += 2 * (int64_t)w->row * (s->places[u].end - s->places[u].begin);
    if (s->counted) {
        s->row->loaded += bytes;
        s->row->layer_bytes[layer] += (double)bytes;
    }
    if (s->kept != TEC_KEEPING_FEED)
        return;
    if (layer > 0) {
        tec_prefetch_known(w->prefetch, layer, set);
        return;
    }
    const struct tec_prefetch_forward forward = {.layers = w->layers,
                                                 .segments = s->n_segments,
                                                 .overlap = s->overlap,
                                                 .kv = s->kv,
                                                 .staging = s->staging,
                                                 .first = set};
    tec_prefetch_begin(w->prefetch, &forward, &s->err);
}

static void started(void *self, int layer)
{
    struct source *s = self;
    s->began[layer] = now();
    if (s->kept == TEC_KEEPING_FEED)
        tec_prefetch_started(s->w->prefetch, layer);
}

static void ended(void *self, int layer)
{
    struct source *s = self;
    if (s->counted)
        s->row->layer_ns[layer] += (double)(now() - s->began[layer]);
    if (s->kept == TEC_KEEPING_FEED)
        tec_prefetch_ended(s->w->prefetch, layer);
}

/* --- before and after ------------------------------------------------------------------------ */

static enum tec_status pin(struct source *s, struct tec_error *err)
{
    struct tec_keeping_setup *w = s->w;
    unsigned char *at = w->staging;
    for (int u = 0; u < s->n_segments; u++)
        TEC_TRY(tec_store_pin(w->store, w->prompt.segment[u], &s->kv[u], err));
    for (int l = 0; s->kept == TEC_KEEPING_FEED && l < w->layers; l++)
        for (int u = 0; u < s->n_segments; u++) {
            s->staging[l * s->n_segments + u] = at;
            at += (tec_store_kv_piece_bytes(s->kv[u]) + 63) / 64 * 64;
        }
    return (size_t)(at - w->staging) <= w->staging_room
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "kept pieces do not fit");
}

/* What it lacks, and where it is. */
static enum tec_status prepare(struct source *s, const struct tec_keeping_method *m,
                               struct tec_error *err)
{
    struct tec_keeping_setup *w = s->w;
    struct tec_keeping_cost changed = {0}, joined = {0};
    int64_t pinned = 0;
    s->n_segments = w->prompt.n_segments;
    memcpy(s->places, w->prompt.segments, sizeof s->places);
    if (m->kept == TEC_KEEPING_BLOCKS) {
        TEC_TRY(tec_keeping_refresh_blocks(w, m->block, &changed, err));
        s->n_segments = tec_keeping_blocks(w, m->block, s->places, s->slots);
    } else if (m->kept != TEC_KEEPING_NONE) {
        TEC_TRY(tec_keeping_refresh_store(w, &changed, &joined, err));
        int64_t begin = now();
        TEC_TRY(pin(s, err));
        pinned = now() - begin;
    }
    if (!s->counted)
        return TEC_OK;
    s->row->refreshed += changed.tokens;
    s->row->needed += changed.needed;
    double needed = changed.tokens ? (double)changed.needed / (double)changed.tokens : 0.0;
    s->joined_ns = joined.ns;
    s->spared_ns = (double)changed.ns * (1.0 - needed);
    s->row->kept_cpu += (double)(changed.cpu + joined.cpu);
    s->row->least_cpu += (double)changed.cpu * needed + (double)joined.cpu;
    s->row->behind += joined.tokens;
    s->row->behind_ns += joined.ns;
    push(&s->row->refresh, changed.ns + pinned);
    return TEC_OK;
}

static void give_back(struct source *s)
{
    for (int u = 0; u < s->n_segments; u++)
        if (s->kv[u])
            tec_store_drop(s->w->store, s->kv[u]);
}

static struct tec_recall_rule rule_of(struct tec_keeping_setup *w,
                                      const struct tec_keeping_method *m)
{
    struct tec_recall_rule rule = {.selection = m->selection,
                                   .scoring = m->scoring,
                                   .ratios = w->ratios,
                                   .local = m->local,
                                   .share = m->share,
                                   .check = 1,
                                   .code_mask = m->code_mask,
                                   .first = m->first,
                                   .bare = m->bare,
                                   .forced = m->bare ? w->sets : NULL};
    if (m->selection == TEC_SELECTION_prefix) {
        const struct tec_keeping_prompt *p = &w->prompt;
        while (rule.reused < w->n_old && rule.reused < p->query &&
               p->ids[rule.reused] == w->old_ids[rule.reused])
            rule.reused++;
    } else if (m->selection == TEC_SELECTION_keep && !m->bare)
        tec_keeping_curve(m->share, w->layers, w->ratios); /* bare: its neighbour's */
    return rule;
}

static enum tec_status recall(struct source *s, const struct tec_keeping_method *m,
                              struct tec_error *err)
{
    struct tec_keeping_setup *w = s->w;
    const struct tec_keeping_prompt *p = &w->prompt;
    bool own = m->selection == TEC_SELECTION_prefix;
    const struct tec_recall_rule rule = rule_of(w, m);
    const struct tec_recall_input in = {.ids = p->ids,
                                        .n = p->n,
                                        .segments = s->places,
                                        .n_segments = s->n_segments,
                                        .query = p->query,
                                        .region = own ? w->own : w->region};
    const struct tec_recall_source source = {.self = s,
                                             .find = find,
                                             .wait = wait,
                                             .came = came,
                                             .known = known,
                                             .started = started,
                                             .ended = ended};
    enum tec_status status = tec_recall_run(&w->recall, &in, &rule, &source, err);
    if (own) {
        memcpy(w->old_ids, p->ids, (size_t)p->n * sizeof *p->ids);
        w->n_old = p->n;
    }
    for (int l = 0; m->selection == TEC_SELECTION_keep && l < w->layers; l++)
        memcpy(w->sets + (size_t)l * (size_t)s->n_segments,
               w->recall.sets + (size_t)l * ((size_t)w->recall.max_segments + 1),
               (size_t)s->n_segments);
    if (s->kept == TEC_KEEPING_FEED) {
        struct tec_prefetch_result result;
        struct tec_error why;
        if (tec_prefetch_finish(w->prefetch, &result, &why) != TEC_OK && status != TEC_OK)
            return tec_fail(err, why.status, "%s", why.message);
    }
    return status;
}

/* --- all of it ------------------------------------------------------------------------------- */

static void count(struct source *s, const struct timing *t, int64_t retrieve)
{
    struct tec_keeping_setup *w = s->w;
    struct tec_keeping_row *row = s->row;
    const struct tec_recall *r = &w->recall;
    for (int l = 0; l < w->layers; l++) {
        row->rows += l + 1 < w->layers ? r->rows[l] : 0;
        row->layer_rows[l] += r->rows[l];
    }
    row->all_rows += (int64_t)(w->layers - 1) * w->prompt.n;
    push(&row->prefill, t->prefill);
    if (tec_device_lanes(w->device) == 1 && tec_device_reads_host(w->device))
        push(&row->cpu, t->cpu);
    push(&row->waited, r->times.waited);
    push(&row->choose, r->times.choose);
    push(&row->score, t->answer.ns);
    int64_t served = retrieve + t->prefill + t->answer.ns;
    int64_t ttft = served + row->refresh.ns[row->refresh.n - 1];
    push(&row->served, served);
    push(&row->ttft, ttft);
    push(&row->charged, ttft + s->joined_ns);
    row->least_ns += (double)(ttft + s->joined_ns) - s->spared_ns;
    if (w->logits >= 0)
        tec_keeping_compare(w, &t->answer, row);
    row->right += t->answer.right;
    row->steps++;
}

static enum tec_status run(struct source *s, const struct tec_keeping_method *m,
                           int64_t retrieve_ns, struct tec_error *err)
{
    struct tec_keeping_setup *w = s->w;
    struct timing t;
    size_t vocab = (size_t)w->model->text.vocab;
    TEC_TRY(prepare(s, m, err));
    if (!s->counted && w->suite->full && m->selection != TEC_SELECTION_prefix)
        return m->selection == TEC_SELECTION_full ? tec_keeping_reply(w, m, &t.answer, err)
                                                  : TEC_OK;
    int64_t begin = now(), cpu = tec_clock_thread();
    TEC_TRY(recall(s, m, err));
    t.prefill = now() - begin;
    t.cpu = tec_clock_thread() - cpu;
    if (m->bare)
        memcpy(w->near, w->made, vocab * sizeof *w->made);
    TEC_TRY(tec_keeping_reply(w, m, &t.answer, err));
    if (m->selection == TEC_SELECTION_full) {
        memcpy(w->full, w->made, vocab * sizeof *w->made);
        w->best = t.answer.skill;
    }
    if (m->bare)
        s->row->same = s->row->same && memcmp(w->near, w->made, vocab * sizeof *w->made) == 0;
    if (s->counted)
        count(s, &t, retrieve_ns);
    return TEC_OK;
}

enum tec_status tec_keeping_step(struct tec_keeping_setup *w, struct tec_keeping_cell *cell,
                                 int row, int64_t retrieve_ns, bool counted, struct tec_error *err)
{
    struct tec_arena_mark mark = tec_arena_mark(&w->arena);
    struct source *s = TEC_NEW(&w->arena, 1, struct source);
    const struct tec_keeping_method *m = &cell->rows[row].method;
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a step");
    *s = (struct source){.w = w,
                         .row = &cell->rows[row],
                         .kept = m->kept,
                         .overlap = m->overlap,
                         .counted = counted};
    enum tec_status status = run(s, m, retrieve_ns, err);
    if (status == TEC_OK && s->err.status != TEC_OK)
        status = tec_fail(err, s->err.status, "%s", s->err.message);
    give_back(s);
    tec_arena_rewind(&w->arena, mark);
    return tec_context(err, status, "%s, %d segments", m->name, cell->segments);
}

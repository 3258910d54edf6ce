/* memory.c - the store of a cell: what the trace changes, what a prompt retrieves, what is computed
 * to be kept. */
#include "tests/experiments/keep/setup.h"
#include "tests/experiments/keep/trace_words.h"

#include <string.h>

enum { TEXTS = TEC_TRACE_SEGMENTS };
#define SETTLE_NS INT64_C(5000000000)

static int64_t now(void)
{
    const struct tec_clock clock = {NULL};
    return tec_clock_now(&clock);
}

/* Since then, of the clock and of the processor: the thread computes, where one lane is all. */
static void take_time(struct tec_keeping_cost *cost, int64_t begin, int64_t cpu)
{
    cost->ns += now() - begin;
    cost->cpu += tec_clock_thread() - cpu;
}

static const struct tec_trace *trace_of(const struct tec_keeping_setup *w)
{
    return &w->suite->trace;
}

enum tec_status tec_keeping_tell(struct tec_keeping_setup *w, const struct tec_trace *t,
                                 struct tec_keeping_cell *cell, struct tec_error *err)
{
    struct tec_groups_change change;
    int n = t->step ? t->n_changes : t->n;
    float v[TEC_TRACE_DIM];
    TEC_TRY(tec_store_step(w->store, t->step, &change, err));
    cell->promotions += change.n_promoted;
    for (int i = 0; i < n; i++) {
        const struct tec_trace_segment *s = &t->segments[t->step ? t->changes[i] : i];
        uint32_t segment, want = (uint32_t)(s - t->segments);
        int tokens = tec_trace_tokens(s->text, w->model->text.vocab, NULL, 0);
        tec_trace_embed(s->text, v);
        TEC_TRY(tec_store_put(w->store, s->id, s->text, strlen(s->text), (uint32_t)tokens, v,
                              &segment, &change, err));
        cell->demotions += change.demoted != TEC_NO_GROUP;
        if (segment != want)
            return tec_fail(err, TEC_INVALID, "segment %u has the handle %u", want, segment);
    }
    cell->changes += t->step ? n : 0;
    return TEC_OK;
}

static bool add_text(struct tec_keeping_setup *w, const char *text)
{
    struct tec_keeping_prompt *p = &w->prompt;
    p->n += tec_trace_tokens(text, w->model->text.vocab, p->ids + p->n, w->most - p->n);
    return p->n <= w->most;
}

/* Objects as they were found, then examples: the order of the published prompt. */
static void sort(struct tec_keeping_prompt *p, const struct tec_trace *t)
{
    uint32_t examples[TEC_KEEPING_SEGMENTS];
    int n = 0, objects = 0;
    for (int u = 0; u < p->n_segments; u++)
        if (t->segments[p->segment[u]].kind == TEC_TRACE_EXAMPLE)
            examples[n++] = p->segment[u];
        else
            p->segment[objects++] = p->segment[u];
    memcpy(p->segment + objects, examples, (size_t)n * sizeof *examples);
}

enum tec_status tec_keeping_retrieve(struct tec_keeping_setup *w, const struct tec_trace *t,
                                     struct tec_keeping_cell *cell, int64_t *took_ns,
                                     struct tec_error *err)
{
    struct tec_keeping_prompt *p = &w->prompt;
    float v[TEC_TRACE_DIM];
    uint32_t n = 0;
    int64_t begin = now();
    tec_trace_embed(t->query, v);
    TEC_TRY(tec_store_query(w->store, v, (uint32_t)cell->segments, p->segment, &n, err));
    p->n = 0;
    p->n_segments = (int)n;
    sort(p, t);
    bool whole = add_text(w, tec_trace_beginning());
    for (int u = 0; whole && u < p->n_segments; u++) {
        p->segments[u].begin = p->n;
        whole = add_text(w, t->segments[p->segment[u]].text);
        p->segments[u].end = p->n;
    }
    p->query = p->n;
    whole = whole && add_text(w, t->query);
    *took_ns = now() - begin;
    return whole ? TEC_OK : tec_fail(err, TEC_INVALID, "a prompt of more than %d tokens", w->most);
}

enum tec_status tec_keeping_ask(struct tec_keeping_setup *w, const struct tec_keeping_question *q,
                                struct tec_error *err)
{
    struct tec_keeping_prompt *p = &w->prompt;
    int begin = q->segments[0].begin;
    uint64_t hash =
        tec_trace_hash((const char *)(const void *)q->ids, begin * (int)sizeof *q->ids) | 1;
    memcpy(p->ids, q->ids, (size_t)q->n * sizeof *q->ids);
    memcpy(p->segments, q->segments, (size_t)q->n_segments * sizeof *q->segments);
    p->n = q->n;
    p->query = q->query;
    p->n_segments = q->n_segments;
    for (int u = 0; u < p->n_segments; u++)
        p->segment[u] = (uint32_t)u;
    w->question = q;
    if (begin && w->beginning.hash != hash)
        TEC_TRY(tec_keeping_fill(w, &w->beginning, q->ids, begin, err));
    w->beginning.hash = hash;
    return TEC_OK;
}

/* --- computing what is kept ------------------------------------------------------------------ */

static enum tec_status make_room(struct tec_keeping_setup *w, struct tec_keeping_slot *slot, int n,
                                 struct tec_error *err)
{
    if (slot->room >= n)
        return TEC_OK;
    tec_heap_put(w->heap, slot->kv);
    slot->kv = tec_heap_get(w->heap, 2 * (size_t)w->layers * (size_t)n * w->row);
    slot->room = slot->kv ? n : 0;
    return slot->kv ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory to keep %d tokens", n);
}

/* Tokens from `first` on of what was just computed. */
static enum tec_status read_slot(struct tec_keeping_setup *w, struct tec_keeping_slot *slot,
                                 int first, int n, struct tec_error *err)
{
    TEC_TRY(make_room(w, slot, n, err));
    size_t size = (size_t)n * w->row;
    slot->tokens = n;
    for (int l = 0; l < w->layers; l++) {
        unsigned char *k = slot->kv + 2 * (size_t)l * size;
        tec_remember_read(w->plan, first, n, l, k, k + size);
    }
    return TEC_OK;
}

enum tec_status tec_keeping_fill(struct tec_keeping_setup *w, struct tec_keeping_slot *slot,
                                 const int *ids, int n, struct tec_error *err)
{
    TEC_TRY(tec_remember_run(w->plan, &(struct tec_remember_text){ids, n}, 1, err));
    return read_slot(w, slot, 0, n, err);
}

/* Several texts, as many together as the plan takes; their pieces, one behind the other, then go to
 * slots: a text is a piece, or those of its segments. */
struct pack {
    int n, n_pieces;
    struct tec_remember_text texts[TEXTS];
    struct tec_keeping_slot *slots[TEXTS];
    int tokens[TEXTS]; /* of a piece */
};

static void add_piece(struct pack *p, struct tec_keeping_slot *slot, int tokens)
{
    p->slots[p->n_pieces] = slot;
    p->tokens[p->n_pieces++] = tokens;
}

static enum tec_status run_pack(struct tec_keeping_setup *w, const struct pack *p,
                                struct tec_keeping_cost *cost, struct tec_error *err)
{
    int piece = 0;
    for (int from = 0, to; from < p->n; from = to) {
        int tokens = 0, at = 0;
        for (to = from; to < p->n && tokens + p->texts[to].n <= w->plan->spec.segment_tokens; to++)
            tokens += p->texts[to].n;
        if (to == from)
            return tec_fail(err, TEC_INVALID, "a text of %d tokens", p->texts[from].n);
        TEC_TRY(tec_remember_run(w->plan, p->texts + from, to - from, err));
        for (; at < tokens; at += p->tokens[piece++])
            TEC_TRY(read_slot(w, p->slots[piece], at, p->tokens[piece], err));
        cost->tokens += tokens;
    }
    return TEC_OK;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static struct tec_keeping_shelf *shelf_of(struct tec_keeping_setup *w, int block)
{
    for (int i = 0; i < w->n_shelves; i++)
        if (w->shelves[i].block == block)
            return &w->shelves[i];
    return NULL;
}

int tec_keeping_blocks(struct tec_keeping_setup *w, int block, struct tec_segment_range *places,
                       struct tec_keeping_slot **slots)
{
    const struct tec_keeping_prompt *p = &w->prompt;
    struct tec_keeping_shelf *shelf = shelf_of(w, block);
    int n = 0;
    for (int u = 0; block <= 0 && u < p->n_segments; u++) {
        places[u] = p->segments[u];
        slots[u] = &shelf->slots[p->segment[u]];
    }
    if (block <= 0)
        return p->n_segments;
    for (int at = p->n_segments ? p->segments[0].begin : p->query; at < p->query; at += block) {
        slots[n] = &shelf->slots[n];
        places[n++] = (struct tec_segment_range){at, at + block < p->query ? at + block : p->query};
    }
    return n;
}

/* Tokens at the beginning of a block that are what they were; it has the new ones from now on. */
static int unchanged(struct tec_keeping_slot *slot, const int *ids, int n)
{
    int most = n < TEC_KEEPING_MOST_BLOCK ? n : TEC_KEEPING_MOST_BLOCK, same = 0;
    while (same < most && same < slot->n_ids && slot->ids[same] == ids[same])
        same++;
    memcpy(slot->ids, ids, (size_t)most * sizeof *ids);
    slot->n_ids = most;
    return same;
}

/* Whether the prompt has any of the segments from .. to of the memory. */
static bool asked(const struct tec_keeping_setup *w, int from, int to)
{
    for (int u = 0; u < w->prompt.n_segments; u++)
        if ((int)w->prompt.segment[u] >= from && (int)w->prompt.segment[u] < to)
            return true;
    return false;
}

/* One block of the memory: segments from .. to, one text. What the prompt has nothing of is not
 * computed. */
static void add_stored(struct tec_keeping_setup *w, struct tec_keeping_shelf *shelf, int from,
                       int to, int *ids, int n, struct pack *pack, struct tec_keeping_cost *changed)
{
    uint64_t hash = tec_trace_hash((const char *)(const void *)ids, n * (int)sizeof *ids) | 1;
    struct tec_keeping_slot *first = &shelf->slots[from];
    if (!asked(w, from, to) || first->hash == hash)
        return;
    first->hash = hash;
    changed->needed += n - unchanged(first, ids, n);
    pack->texts[pack->n++] = (struct tec_remember_text){ids, n};
    for (int i = from; i < to; i++)
        add_piece(pack, &shelf->slots[i],
                  tec_trace_tokens(trace_of(w)->segments[i].text, w->model->text.vocab, NULL, 0));
}

/* Blocks are of the memory, in its own order, whatever the prompt has of them: whole segments, as
 * many as fit. */
static enum tec_status refresh_stored(struct tec_keeping_setup *w, struct tec_keeping_shelf *shelf,
                                      struct tec_keeping_cost *changed, struct tec_error *err)
{
    const struct tec_trace *t = trace_of(w);
    struct pack pack = {.n = 0};
    int most = -shelf->block, vocab = w->model->text.vocab;
    for (int from = 0, to; from < t->n; from = to) {
        int *ids = TEC_NEW(&w->arena, (size_t)most, int), n = 0, more = 0;
        if (!ids)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a block");
        for (to = from; to < t->n; to++, n += more) {
            more = tec_trace_tokens(t->segments[to].text, vocab, ids + n, most - n);
            if (n + more > most)
                break;
        }
        if (to == from)
            return tec_fail(err, TEC_INVALID, "a segment of %d tokens", more);
        add_stored(w, shelf, from, to, ids, n, &pack, changed);
    }
    return run_pack(w, &pack, changed, err);
}

enum tec_status tec_keeping_refresh_blocks(struct tec_keeping_setup *w, int block,
                                           struct tec_keeping_cost *changed, struct tec_error *err)
{
    struct tec_segment_range places[TEC_KEEPING_SEGMENTS];
    struct tec_keeping_slot *slots[TEC_KEEPING_SEGMENTS];
    struct pack pack = {.n = 0};
    struct tec_keeping_shelf *shelf = shelf_of(w, block);
    int64_t begin = now(), cpu = tec_clock_thread();
    *changed = shelf->cost;
    if (shelf->step == w->at)
        return TEC_OK;
    *changed = (struct tec_keeping_cost){0};
    if (block < 0) {
        struct tec_arena_mark mark = tec_arena_mark(&w->arena);
        enum tec_status status = refresh_stored(w, shelf, changed, err);
        tec_arena_rewind(&w->arena, mark);
        take_time(changed, begin, cpu);
        shelf->step = w->at;
        shelf->cost = *changed;
        return status;
    }
    int n = tec_keeping_blocks(w, block, places, slots);
    for (int i = 0; i < n; i++) {
        const int *ids = w->prompt.ids + places[i].begin;
        int tokens = places[i].end - places[i].begin;
        uint64_t hash =
            tec_trace_hash((const char *)(const void *)ids, tokens * (int)sizeof *ids) | 1;
        if (slots[i]->hash == hash)
            continue;
        changed->needed += tokens - (block ? unchanged(slots[i], ids, tokens) : 0);
        slots[i]->hash = hash;
        pack.texts[pack.n++] = (struct tec_remember_text){ids, tokens};
        add_piece(&pack, slots[i], tokens);
    }
    TEC_TRY(run_pack(w, &pack, changed, err));
    take_time(changed, begin, cpu);
    shelf->step = w->at;
    shelf->cost = *changed;
    return TEC_OK;
}

/* --- the store ------------------------------------------------------------------------------- */

static int place_of(const struct tec_keeping_setup *w, uint32_t segment)
{
    for (int u = 0; u < w->prompt.n_segments; u++)
        if (w->prompt.segment[u] == segment)
            return u;
    return -1;
}

static enum tec_status give(struct tec_keeping_setup *w, uint32_t segment,
                            const struct tec_store_segment_view *view,
                            const struct tec_keeping_slot *from, int first, struct tec_error *err)
{
    const void *pieces[TEC_KEEPING_LAYERS];
    size_t size = (size_t)view->tokens * w->row, all = (size_t)from->tokens * w->row;
    unsigned char *copy = tec_heap_get(w->heap, 2 * size * (size_t)w->layers);
    if (!copy)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to keep %u tokens", view->tokens);
    for (int l = 0; l < w->layers; l++) {
        const unsigned char *k = from->kv + 2 * (size_t)l * all + (size_t)first * w->row;
        unsigned char *to = copy + 2 * size * (size_t)l;
        memcpy(to, k, size);
        memcpy(to + size, k + all, size);
        pieces[l] = to;
    }
    enum tec_status status =
        tec_store_put_kv(w->store, segment, view->version, view->epoch, pieces, err);
    tec_heap_put(w->heap, copy);
    /* Where nothing is kept here, the server has it. */
    return w->remote && status == TEC_NO_MEMORY ? TEC_OK : status;
}

/* Segments of the prompt without KV that follow segments[from] in the same text: `from` alone, or
 * its static group. */
static int run_of(struct tec_keeping_setup *w, const uint32_t *segments, int from, int n)
{
    struct tec_store_segment_view first, view;
    tec_store_view(w->store, segments[from], &first);
    int to = from + 1;
    while (first.epoch && to < n && tec_store_view(w->store, segments[to], &view) &&
           view.epoch == first.epoch)
        to++;
    return to;
}

static enum tec_status keep_run(struct tec_keeping_setup *w, const uint32_t *segments, int n,
                                struct tec_keeping_cost *cost, struct tec_error *err)
{
    struct tec_keeping_slot slot = {0};
    struct tec_store_segment_view view;
    int tokens = 0, at = 0, *ids = TEC_NEW(&w->arena, (size_t)w->most, int);
    int64_t begin = now(), cpu = tec_clock_thread();
    enum tec_status status = ids ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a group");
    for (int i = 0; status == TEC_OK && i < n; i++)
        tokens += tec_trace_tokens(trace_of(w)->segments[segments[i]].text, w->model->text.vocab,
                                   ids + tokens, w->most - tokens);
    if (status == TEC_OK)
        status = tec_keeping_fill(w, &slot, ids, tokens, err);
    for (int i = 0; status == TEC_OK && i < n; at += (int)view.tokens, i++) {
        tec_store_view(w->store, segments[i], &view);
        status = give(w, segments[i], &view, &slot, at, err);
    }
    tec_heap_put(w->heap, slot.kv);
    cost->tokens += tokens;
    cost->needed += tokens;
    take_time(cost, begin, cpu);
    return status;
}

/* What was sent is there before it is asked for: it takes no time of a step. */
static enum tec_status settle(struct tec_keeping_setup *w, const uint32_t *segments, uint32_t n,
                              struct tec_error *err)
{
    const struct tec_clock clock = {NULL};
    uint32_t found = 0, all = 0;
    int64_t until = now() + SETTLE_NS;
    while (n && all < n && now() < until) {
        TEC_TRY(tec_store_look(w->store, segments, n, SETTLE_NS, &found, err));
        all += found;
        if (all < n)
            tec_clock_wait(&clock, now() + SETTLE_NS / 1000);
    }
    return all < n ? tec_fail(err, TEC_IO, "%s has %u of %u segments", w->suite->remote, all, n)
                   : TEC_OK;
}

static enum tec_status make_whole(struct tec_keeping_setup *w, struct tec_error *err)
{
    uint32_t missing[TEXTS], n_missing = tec_store_missing(w->store, missing, TEXTS);
    int n = 0;
    for (uint32_t i = 0; i < n_missing; i++)
        if (place_of(w, missing[i]) >= 0)
            missing[n++] = missing[i];
    for (int from = 0, to; from < n; from = to) {
        to = run_of(w, missing, from, n);
        struct tec_arena_mark mark = tec_arena_mark(&w->arena);
        enum tec_status status =
            keep_run(w, missing + from, to - from, to - from > 1 ? &w->joined : &w->changed, err);
        tec_arena_rewind(&w->arena, mark);
        TEC_TRY(status);
    }
    return w->remote ? settle(w, missing, (uint32_t)n, err) : TEC_OK;
}

enum tec_status tec_keeping_refresh_store(struct tec_keeping_setup *w,
                                          struct tec_keeping_cost *changed,
                                          struct tec_keeping_cost *joined, struct tec_error *err)
{
    if (w->step != w->at) {
        w->changed = w->joined = (struct tec_keeping_cost){0};
        TEC_TRY(make_whole(w, err));
        w->step = w->at;
    }
    *changed = w->changed;
    *joined = w->joined;
    return TEC_OK;
}

/* memory_prompt.c - the consumer's side: from a query to beginning, segments, query, and what is
 * pinned for them. */
#include "base/text/bytes.h"
#include "graph/run/launch/text_input.h"
#include "graph/run/recall/memory_own.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Calls `from` to before `to` of the template as ids; *n may be more than room. */
static enum tec_status encode_calls(struct tec_chain_memory *c, int from, int to,
                                    const struct tec_template_values *values, int *ids, size_t room,
                                    size_t *n, struct tec_arena *scratch, struct tec_error *err)
{
    const struct tec_template *t = c->template;
    struct tec_memory *m = c->of[0];
    if (m->options.tokenizer)
        return tec_template_encode_calls(t, from, to, m->options.tokenizer, values, ids, room, n,
                                         scratch, err);
    *n = 0;
    for (int i = from; i < to; i++) {
        const char *text;
        size_t bytes, more = 0;
        TEC_TRY(tec_template_render(&text, &bytes, t, i, values, scratch, err));
        TEC_TRY(tec_memory_encode(m, text, bytes, *n < room ? ids + *n : NULL,
                                  *n < room ? room - *n : 0, &more, err));
        *n += more;
    }
    return TEC_OK;
}

enum tec_status tec_memory_chain_use(struct tec_chain_memory *c, const struct tec_template *t,
                                     struct tec_error *err)
{
    const struct tec_template_values none = {.n_texts = 0};
    struct tec_memory *m = c->of[0];
    const struct tec_decl_resource *frame = &m->options.pipeline->resources[m->node->into.index];
    size_t room = (size_t)frame->tokens, n = 0;
    if (c->template)
        return TEC_OK;
    c->template = t;
    c->beginning = TEC_NEW(&c->arena, room, int);
    if (!c->beginning)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt");
    struct tec_arena_mark mark = tec_arena_mark(&m->scratch);
    enum tec_status status = encode_calls(c, 0, t->memory ? t->memory - 1 : 0, &none, c->beginning,
                                          room, &n, &m->scratch, err);
    tec_arena_rewind(&m->scratch, mark);
    TEC_TRY(status);
    if (n >= room)
        return tec_where_fail(err, TEC_INVALID, &frame->where,
                              "the fixed beginning of prompt '%s' has %zu tokens, '%s' holds %zu",
                              t->name, n, frame->name, room);
    c->n_beginning = (int)n;
    struct tec_bytes words;
    tec_bytes_init(&words, &c->arena, 0);
    for (int i = t->memory; i < t->n_calls; i++)
        tec_bytes_add(&words, t->calls[i].text, strlen(t->calls[i].text));
    c->words = (struct tec_template_text){.text = words.at ? words.at : "", .n = words.n};
    if (words.failed)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt");
    if (n < 1 && tec_lead_rows(m->options.model))
        return tec_fail(err, TEC_INVALID,
                        "prompt '%s' begins with segments, but the first token of model '%s' "
                        "stands before its pictures: let a fixed beginning stand before {memory}",
                        t->name, m->options.model->name);
    return TEC_OK;
}

/* The memory that segment u is of. */
static struct tec_memory *owner(const struct tec_chain_memory *c, const struct tec_memory_prompt *p,
                                int u)
{
    int m = 0;
    while (m < c->n - 1 && u >= p->ends[m])
        m++;
    return tec_memory_in(c, p, m);
}

void tec_memory_drop(struct tec_chain_memory *c, struct tec_memory_prompt *prompt)
{
    for (int u = 0; u < prompt->n_segments; u++)
        if (prompt->kv[u])
            tec_store_drop(owner(c, prompt, u)->store, prompt->kv[u]);
    prompt->n_segments = 0;
}

static struct tec_segment_view view_of(const struct tec_memory *m,
                                       const struct tec_memory_prompt *p, int u,
                                       const struct tec_store_segment_view *segment)
{
    return (struct tec_segment_view){
        .id = (int64_t)segment->segment,
        .node = m->at,
        .tokens = (int)segment->tokens,
        .importance =
            (double)atomic_load_explicit(&m->importance[p->handles[u]], memory_order_relaxed),
        .tier = p->kv[u] ? (int)tec_store_kv_tier(p->kv[u]) : TEC_KEPT_PLACES,
        .dirty = !p->kv[u],
        .fixed = segment->epoch != 0,
        .last_used = m->step};
}

/* Tokens before a segment in its static group: where its keys were computed. */
static int before(struct tec_memory *m, uint32_t handle, uint64_t epoch)
{
    uint32_t members[TEC_MAX_SEGMENTS], n = 0;
    struct tec_store_segment_view segment;
    int tokens = 0;
    if (epoch == 0 || m->node->positions != TEC_POSITIONS_LOCAL0)
        return 0;
    n = tec_store_members(m->store, handle, members, TEC_MAX_SEGMENTS);
    for (uint32_t i = 0; n <= TEC_MAX_SEGMENTS && i < n && members[i] != handle; i++)
        tokens += tec_store_view(m->store, members[i], &segment) ? (int)segment.tokens : 0;
    return tokens;
}

/* Segment u of the prompt behind `at` tokens; false: it does not fit any more, and is left out. */
static bool add_segment(struct tec_memory *m, struct tec_memory_prompt *p, uint32_t handle,
                        int *ids, int most, int *at)
{
    struct tec_store_segment_view segment;
    struct tec_error ignored;
    size_t n = 0;
    int u = p->n_segments;
    if (!tec_store_view(m->store, handle, &segment) ||
        tec_memory_encode(m, segment.text, segment.text_bytes, ids + *at, (size_t)(most - *at), &n,
                          &ignored) != TEC_OK ||
        n > (size_t)(most - *at) || n != segment.tokens)
        return false;
    p->segments[u] = (struct tec_segment_range){*at, *at + (int)n};
    p->handles[u] = handle;
    p->local[u] = before(m, handle, segment.epoch);
    /* A file may hold longer segments than this pipeline has room for: those are computed. */
    if (segment.tokens > (uint32_t)m->input->tokens_each ||
        tec_store_pin(m->store, handle, &p->kv[u], NULL) != TEC_OK)
        p->kv[u] = NULL;
    if (p->kv[u] && tec_store_kv_tier(p->kv[u]) != TEC_KEPT_RAM && m->n_cold < COLD)
        m->cold[m->n_cold++] = handle;
    p->views[u] = view_of(m, p, u, &segment);
    *at += (int)n;
    p->n_segments++;
    return true;
}

/* Tokens of the texts that the prefill reads, after the template; without a text all there is. */
static size_t query_room(const struct tec_chain_memory *c)
{
    const struct tec_pipeline *p = c->of[0]->options.pipeline;
    size_t room = 0;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->kind != TEC_DECL_PREFILL || n->culled ||
            n->writes.index != c->of[0]->node->into.index)
            continue;
        for (int k = 0; k < n->reads.n; k++)
            room += (size_t)p->inputs[n->reads.item[k].index].max_tokens;
    }
    return room ? room : (size_t)p->resources[c->of[0]->node->into.index].tokens;
}

/* Encodes the tokens behind the segments; *n may be more than room. */
static enum tec_status query_ids(struct tec_chain_memory *c, const struct tec_memory_query *q,
                                 int *ids, size_t room, size_t *n, struct tec_arena *scratch,
                                 struct tec_error *err)
{
    const struct tec_template *t = c->template;
    if (!q->ids)
        return encode_calls(c, t->memory, t->n_calls, &q->values, ids, room, n, scratch, err);
    *n = (size_t)q->n;
    memmove(ids, q->ids, (*n < room ? *n : room) * sizeof *ids);
    return TEC_OK;
}

/* What stands behind the segments, or behind `at` tokens, within what the pipeline allows. Its end
 * is cut where the query may be. */
static enum tec_status read_query(struct tec_chain_memory *c, const struct tec_memory_query *q,
                                  int at, int *ids, int room, size_t *n, struct tec_arena *scratch,
                                  struct tec_error *err)
{
    struct tec_memory_query shorter = *q;
    size_t most = query_room(c), left = (size_t)(room - at);
    bool tight = left < most;
    most = tight ? left : most;
    TEC_TRY(query_ids(c, &shorter, ids, (size_t)room, n, scratch, err));
    while (*n > most && !q->ids && tec_template_cut(&shorter.values, *n, most))
        TEC_TRY(query_ids(c, &shorter, ids, (size_t)room, n, scratch, err));
    *n = *n > most && q->cut && q->ids ? most : *n;
    if (*n < 1 && most >= 1 && q->always) {
        ids[0] = 0;
        *n = 1;
    }
    if (*n >= 1 && *n <= most)
        return TEC_OK;
    return tight ? tec_fail(err, TEC_INVALID,
                            "the query has %zu tokens and the beginning %d; the frame holds %d", *n,
                            at, room)
                 : tec_fail(err, TEC_INVALID,
                            "the prompt behind the segments has %zu tokens, the pipeline allows "
                            "%zu: raise max_tokens or shorten it",
                            *n, most);
}

/* Computes the query vector that segments are compared with, in m->embedding. */
static enum tec_status query_vector(struct tec_memory *m, const struct tec_memory_query *q,
                                    struct tec_arena *scratch, struct tec_error *err)
{
    size_t n = 0;
    const char *text = tec_template_join(&q->values, &n, scratch);
    char *said = NULL;
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a query");
    if (q->ids && n == 0 && m->options.tokenizer) {
        TEC_TRY(tec_tokenizer_decode(m->options.tokenizer, q->ids, (size_t)q->n, true, scratch,
                                     &said, &n, err));
        text = said;
    }
    return tec_memory_embed(m, text, n, err);
}

/* Keeps the segments found, best first, that fit into `room` tokens, and sorts them as they were
 * first put: a segment keeps its serial number through all its changes. */
static enum tec_status put_in_order(struct tec_memory *m, uint32_t *found, uint32_t *n_found,
                                    int room, struct tec_arena *scratch, struct tec_error *err)
{
    uint64_t *serials = TEC_NEW(scratch, (size_t)*n_found + 1, uint64_t);
    struct tec_store_segment_view segment;
    uint32_t n = 0;
    if (!serials)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt");
    for (uint32_t i = 0; i < *n_found; i++) {
        uint32_t at = n, handle = found[i];
        if (!tec_store_view(m->store, handle, &segment) || (int64_t)segment.tokens > room)
            continue;
        room -= (int)segment.tokens;
        for (; at > 0 && serials[at - 1] > segment.segment; at--) {
            serials[at] = serials[at - 1];
            found[at] = found[at - 1];
        }
        serials[at] = segment.segment;
        found[at] = handle;
        n++;
    }
    *n_found = n;
    return TEC_OK;
}

/* Segments of one memory behind `*at` tokens, up to `most`: those that are most alike. */
static enum tec_status find_segments(struct tec_memory *m, struct tec_memory_prompt *p,
                                     const struct tec_memory_query *q, int *ids, int most, int *at,
                                     struct tec_arena *scratch, struct tec_error *err)
{
    uint32_t *found = TEC_NEW(scratch, (size_t)m->input->max_segments, uint32_t), n_found = 0;
    if (!found)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt");
    TEC_TRY(query_vector(m, q, scratch, err));
    TEC_TRY(tec_store_query(m->store, m->embedding, (uint32_t)m->input->max_segments, found,
                            &n_found, err));
    if (m->node->order == TEC_ORDER_AS_PUT)
        TEC_TRY(put_in_order(m, found, &n_found, most - *at, scratch, err));
    for (uint32_t i = 0; i < n_found; i++)
        add_segment(m, p, found[i], ids, most, at);
    return TEC_OK;
}

/* Tokens that the memories behind the first m of a prompt have a claim on: each on those of all its
 * segments, at most. */
static int claimed(const struct tec_chain_memory *c, int m)
{
    int64_t sum = 0;
    for (int i = m; i < c->n; i++) {
        const struct tec_decl_input *in = c->of[i]->input;
        int64_t all = (int64_t)in->max_segments * in->tokens_each;
        sum += all < c->of[i]->resource->tokens ? all : c->of[i]->resource->tokens;
    }
    return sum < INT_MAX ? (int)sum : INT_MAX;
}

static enum tec_status assemble(struct tec_chain_memory *c, struct tec_memory_prompt *p,
                                const struct tec_memory_query *q, int *ids, int room,
                                struct tec_arena *scratch, struct tec_error *err)
{
    size_t n = 0;
    int *query = TEC_NEW(scratch, (size_t)room, int);
    if (!query)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt");
    TEC_TRY(read_query(c, q, c->n_beginning, query, room, &n, scratch, err));
    int at = c->n_beginning, most = room - (int)n;
    most = q->waits < most - at ? most - q->waits : at;
    memcpy(ids, c->beginning, (size_t)at * sizeof *ids);
    for (int m = 0; m < c->n; m++) {
        int others = claimed(c, m + 1), own = others < most - at ? most - others : at;
        p->ends[m] = INT_MAX; /* all that are added now are its */
        TEC_TRY(find_segments(tec_memory_in(c, p, m), p, q, ids, own, &at, scratch, err));
        p->ends[m] = p->n_segments;
    }
    memcpy(ids + at, query, n * sizeof *ids);
    p->query = at;
    p->n = at + (int)n;
    return TEC_OK;
}

enum tec_status tec_memory_prompt(struct tec_chain_memory *c, struct tec_memory_prompt *prompt,
                                  const struct tec_memory_query *query, int *ids, int room,
                                  struct tec_arena *scratch, struct tec_error *err)
{
    struct tec_memory_query asked = *query;
    if (asked.values.n_texts == 0)
        asked.values.texts[asked.values.n_texts++] = c->words;
    tec_memory_drop(c, prompt);
    prompt->session = query->session;
    for (int m = 0; m < c->n; m++)
        pthread_mutex_lock(&tec_memory_in(c, prompt, m)->lock);
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    enum tec_status status = assemble(c, prompt, &asked, ids, room, scratch, err);
    tec_arena_rewind(scratch, mark);
    for (int m = c->n - 1; m >= 0; m--)
        pthread_mutex_unlock(&tec_memory_in(c, prompt, m)->lock);
    if (status != TEC_OK)
        tec_memory_drop(c, prompt);
    return status;
}

enum tec_status tec_memory_prompt_end(struct tec_chain_memory *c, const struct tec_memory_prompt *p,
                                      const struct tec_memory_query *query, int *ids, int room,
                                      int *n, struct tec_arena *scratch, struct tec_error *err)
{
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    size_t count = 0;
    enum tec_status status = read_query(c, query, p->query, ids, room, &count, scratch, err);
    tec_arena_rewind(scratch, mark);
    *n = (int)count;
    return status;
}

enum tec_status tec_memory_chain_apply(struct tec_chain_memory *c, int session,
                                       const struct tec_value *values, size_t n,
                                       struct tec_error *err)
{
    for (int m = 0; m < c->n; m++) {
        const struct tec_value *changes = tec_text_find(values, n, c->of[m]->input->name, "");
        if (changes && changes->kind != TEC_VALUE_TEXT)
            return tec_fail(err, TEC_SHAPE, "%s: must be a text, of JSON", changes->name);
        TEC_TRY(tec_memory_apply(tec_memory_of(c->of[m], session), changes ? changes->data : NULL,
                                 changes ? changes->bytes : 0, err));
    }
    return TEC_OK;
}

/* memory.c - opens and closes a pipeline's memory.
 *
 * Opening runs at load. The store's key is made of hashes of weights, tokenizer and dtype, so a
 * file of another model is refused; of one of other weights, or of another encoder, keys and values
 * or vectors are made anew (memory_vectors.c). */
#include "graph/run/recall/memory_own.h"

#include "graph/load/pipeline_texts.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_SEGMENTS = 1 << 17, SCRATCH = 1 << 20 };

static void hash_text(uint64_t out[2], const char *text)
{
    XXH128_hash_t h = XXH3_128bits(text, strlen(text));
    out[0] = h.low64;
    out[1] = h.high64;
}

/* A model's name: which one it is, and what its weights and its description are. */
static void name_model(const struct tec_memory *m, uint64_t model[2])
{
    XXH128_hash_t h = XXH3_128bits(m->options.weights, strlen(m->options.weights));
    model[0] = h.low64;
    model[1] = XXH3_64bits_withSeed(m->options.content, strlen(m->options.content),
                                    m->options.model->identity);
}

/* The identity of this memory's KV: a file of another model or vocabulary, or of rows of other
 * sizes, is refused; of one that is rounded otherwise KV is computed again; of a tokenizer that
 * makes other tokens of a text they are counted anew. */
static enum tec_status key_of(struct tec_memory *m, struct tec_log_key *key, struct tec_error *err)
{
    const struct tec_stack *s = &m->options.model->text.stack;
    const struct tec_tokenizer *t = m->options.tokenizer;
    XXH3_state_t *hash = XXH3_createState();
    if (!hash)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to name a tokenizer");
    XXH3_128bits_reset(hash);
    size_t longest = 0;
    for (int i = 0; t && i < tec_tokenizer_size(t); i++) {
        size_t n = 0;
        const char *piece = tec_tokenizer_piece(t, i, &n);
        if (piece)
            XXH3_128bits_update(hash, piece, n + 1);
        longest = piece && n > longest ? n : longest;
    }
    XXH128_hash_t vocabulary = XXH3_128bits_digest(hash);
    uint64_t rules = t ? tec_tokenizer_identity(t) : 0;
    XXH3_freeState(hash);
    m->segment_bytes = (size_t)m->input->tokens_each * longest + TEC_MEMORY_SLACK;
    if (!t || m->segment_bytes > TEC_MEMORY_SEGMENT)
        m->segment_bytes = TEC_MEMORY_SEGMENT;
    rules = XXH3_64bits_withSeed(&rules, sizeof rules, vocabulary.high64);
    *key = (struct tec_log_key){.tokenizer = {vocabulary.low64, rules},
                                .layers = (uint32_t)s->layers,
                                .row_bytes = (uint32_t)(s->kv_heads * s->head_dim) *
                                             (m->options.bf16 ? 2U : 4U),
                                .dim = (uint32_t)m->dim};
    name_model(m, key->model);
    static const char *const rounds[] = {[TEC_ROUND_BF16X2] = ", activations in two bf16 terms",
                                         [TEC_ROUND_MIXED] = ", activations in one or two",
                                         [TEC_ROUND_BF16] = ", activations in bf16",
                                         [TEC_ROUND_INT8] = ", activations in 8 bits"};
    static const char *const bits[] = {
        [TEC_QUANTIZE_INT8] = ", int8 weights", [TEC_QUANTIZE_INT4] = ", int4 weights"};
    bool rounds_any = m->options.bf16 || m->options.round == TEC_ROUND_INT8;
    const char *round = rounds_any ? rounds[m->options.round] : NULL;
    char dtype[100];
    const char *weights = bits[m->options.quantize];
    snprintf(dtype, sizeof dtype, "%s, k before rotation%s%s", m->options.bf16 ? "bf16" : "f32",
             weights ? weights : "", round ? round : "");
    hash_text(key->dtype, dtype);
    return TEC_OK;
}

static void remote_event(void *user, const struct tec_remote_event *event)
{
    struct tec_memory *m = user;
    if (event->here)
        tec_memory_well(m);
    else
        tec_memory_say(m, "%s", event->message);
    atomic_fetch_add_explicit(&m->changes, 1, memory_order_release); /* of what is missing */
}

/* No trouble, but told as such a line is: a store that is not where it was begins empty. */
static void folder_made(void *user, const char *folder)
{
    const struct tec_memory *m = user;
    char line[TEC_MEMORY_TEXT];
    snprintf(line, sizeof line, "memory '%.64s': made the folder %.200s", m->name, folder);
    if (m->options.trouble)
        m->options.trouble(m->options.user, line);
}

/* The same: texts that somebody expects are not there. */
static void begins_empty(void *user, int64_t bytes)
{
    const struct tec_memory *m = user;
    char line[TEC_MEMORY_TEXT], why[160] = "is empty";
    if (bytes == TEC_LOG_HEADER)
        snprintf(why, sizeof why,
                 "ends behind its first page: it was cut there, or no text was "
                 "ever written to it");
    else if (bytes > 0)
        snprintf(why, sizeof why,
                 "ends within its first page, after %lld bytes of %d: it was cut, "
                 "or its making was",
                 (long long)bytes, TEC_LOG_HEADER);
    snprintf(line, sizeof line, "memory '%.64s': %.200s %s; it begins without texts", m->name,
             tec_memory_shown(m), why);
    if (m->options.trouble)
        m->options.trouble(m->options.user, line);
}

/* The first session's file of the first chain's node is that of a pipeline of one of each. */
static enum tec_status name_file(struct tec_memory *m, struct tec_error *err)
{
    const struct tec_pipeline *p = m->options.pipeline;
    const char *store = m->resource->store, *path = NULL;
    m->name = tec_pipeline_memory_of(p, m->node, m->resource->name, &m->arena);
    path = store ? tec_pipeline_memory_of(p, m->node, store, &m->arena) : NULL;
    if (path && m->session > 0)
        path = tec_arena_printf(&m->arena, "%s.%d", path, m->session);
    if (!m->name || (store && !path))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a name");
    m->path = m->options.forgets ? NULL : path;
    for (int i = 0; m->options.forgets && i < m->options.n_starts; i++) {
        const struct tec_memory_start *s = &m->options.starts[i];
        if (s->session == m->session && strcmp(s->memory, m->name) == 0)
            m->start = s;
    }
    m->begins = !m->start ? NULL : m->start->path ? m->start->path : path;
    return TEC_OK;
}

/* Whether it holds what the start says. */
static enum tec_status check_start(struct tec_memory *m, enum tec_status status,
                                   struct tec_error *err)
{
    const struct tec_memory_start *s = m->start;
    if (!s)
        return status;
    const char *help = s->help ? s->help : "";
    if (!m->begins)
        status = tec_fail(err, TEC_NOT_FOUND, "there is no file of what it began with");
    if (status != TEC_OK)
        return tec_context(err, status, "%s", help);
    struct tec_store_state is = tec_store_began(m->store);
    if (memcmp(is.hash, s->hash, sizeof is.hash) == 0)
        return TEC_OK;
    return tec_fail(err, TEC_INVALID, "%s: %.200s holds %u texts, state %016llx%016llx", help,
                    tec_memory_shown(m), is.segments, (unsigned long long)is.hash[0],
                    (unsigned long long)is.hash[1]);
}

static enum tec_status open_store(struct tec_memory *m, struct tec_error *err)
{
    const struct tec_decl_resource *r = m->resource;
    const struct tec_pipeline *p = m->options.pipeline;
    int sessions = m->shared->n, shares = sessions * tec_memory_shares(p, m->node);
    struct tec_store_options o = {.path = m->path,
                                  .max_segments = MAX_SEGMENTS,
                                  .threshold = r->threshold,
                                  .stable_steps = r->stable_steps,
                                  .log = {.max_bytes = r->tiers.disk / shares},
                                  .user = m,
                                  .damage = tec_memory_damaged,
                                  .made = folder_made,
                                  .empty = begins_empty,
                                  .embed = tec_memory_renew,
                                  .vectors = tec_memory_renewed,
                                  .weights = tec_memory_retrained,
                                  .count = tec_memory_count_tokens,
                                  .counted = tec_memory_counted,
                                  .begins = m->begins,
                                  .remote = {.address = m->options.forgets ? NULL : r->remote,
                                             .user = m,
                                             .event = remote_event}};
    TEC_TRY(key_of(m, &o.key, err));
    o.key.encoder = m->shared->own;
    o.ram_bytes = tec_memory_kept(p, m->node, o.key.row_bytes, (int)o.key.layers) / sessions;
    /* An index of so many segments is large where vectors are; most memories are small. */
    int64_t most = (int64_t)(256LL << 20) / (12LL * m->dim + 200) / sessions;
    o.max_segments = most < MAX_SEGMENTS ? (uint32_t)most : MAX_SEGMENTS;
    m->row = o.key.row_bytes;
    m->layers = (int)o.key.layers;
    m->importance = TEC_NEW(&m->arena, o.max_segments, _Atomic float);
    if (!m->importance)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %u segments", o.max_segments);
    struct tec_store *store = NULL;
    TEC_TRY(tec_store_open(&store, &o, m->heap, err));
    pthread_mutex_lock(&m->words); /* the store's own threads read `store` under it */
    m->store = store;
    pthread_mutex_unlock(&m->words);
    m->step = tec_store_counts(m->store).step;
    return TEC_OK;
}

static enum tec_status fill(struct tec_memory *m, struct tec_error *err)
{
    m->dim = m->shared->encoder ? tec_encoder_width(m->shared->encoder) : TEC_WORDS_DIM;
    TEC_TRY(name_file(m, err));
    m->embedding = TEC_NEW(&m->arena, (size_t)m->dim, float);
    m->ids = TEC_NEW(&m->arena, (size_t)m->input->tokens_each + 1, int);
    if (!m->embedding || !m->ids || !tec_arena_push(&m->scratch, SCRATCH, 1, 64))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a memory");
    tec_arena_rewind(&m->scratch, (struct tec_arena_mark){m->scratch.block, 0});
    TEC_TRY(tec_memory_make_said(m, err));
    enum tec_status status = check_start(m, open_store(m, err), err);
    bool several = tec_memory_shares(m->options.pipeline, m->node) > 1;
    return several ? tec_context(err, status, "keys of '%s'", m->node->name) : status;
}

/* What was said last is durable, too. */
static void end_store(struct tec_memory *m)
{
    struct tec_error err, why = {TEC_OK, ""};
    if (!m->store)
        return;
    tec_memory_take_said(m, &why);
    if (why.status != TEC_OK)
        tec_memory_say(m, "%s", why.message);
    if (tec_store_end(m->store, &err) != TEC_OK)
        tec_memory_say(m, "changes are not durable: %s", err.message);
    tec_memory_tell_damage(m);
}

static void init(struct tec_memory *m, struct tec_memory_shared *shared, int session,
                 const struct tec_memory_options *options)
{
    const struct tec_pipeline *p = options->pipeline;
    m->shared = shared;
    m->session = session;
    m->options = *options;
    m->node = &p->nodes[options->node];
    m->resource = &p->resources[m->node->from.index];
    m->input = &p->inputs[m->node->reads.item[0].index];
    for (int i = 0; i < options->node; i++)
        m->at += !p->nodes[i].culled;
    m->heap = shared->heap;
    m->worker.seen = -1;
    tec_arena_init(&m->arena, m->heap);
    tec_arena_init(&m->scratch, m->heap);
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->words, NULL);
}

static void finish(struct tec_memory *m)
{
    tec_prefetch_destroy(m->frame.prefetch);
    end_store(m);
    tec_store_close(m->store); /* ends the server's thread, which may still report trouble */
    tec_memory_tell_rest(m);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->words);
    tec_arena_finish(&m->scratch);
    tec_arena_finish(&m->arena);
}

/* *named: what went wrong was not the encoder. */
static enum tec_status open_all(struct tec_memory_shared *s, bool *named, struct tec_error *err)
{
    const struct tec_memory_options *o = &s->of->options;
    TEC_TRY(tec_memory_open_encoder(&s->encoder, s->of->resource, o->root, o->device->tier, s->heap,
                                    err));
    TEC_TRY(tec_memory_name_encoder(s, err));
    *named = true;
    for (int i = 0; i < s->n; i++)
        TEC_TRY(fill(&s->of[i], err));
    return TEC_OK;
}

enum tec_status tec_memory_open(struct tec_memory **out, const struct tec_memory_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    int n = options->sessions;
    struct tec_memory_shared *s = tec_heap_get(heap, sizeof *s);
    struct tec_memory *of = tec_heap_get(heap, (size_t)n * sizeof *of);
    if (!s || !of) {
        tec_heap_put(heap, s);
        tec_heap_put(heap, of);
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a memory");
    }
    s->n = n;
    s->of = of;
    s->heap = heap;
    tec_arena_init(&s->arena, heap);
    pthread_mutex_init(&s->encodes, NULL);
    for (int i = 0; i < n; i++)
        init(&of[i], s, i, options);
    bool named = false;
    enum tec_status status = open_all(s, &named, err);
    if (status != TEC_OK) {
        const struct tec_decl_resource *r = of->resource;
        bool encoders = r->encoder && !named && r->where_encoder.file, stores = r->where_store.file;
        tec_memory_close(of);
        return tec_where_context(err, status,
                                 encoders ? &r->where_encoder
                                 : stores ? &r->where_store
                                          : &r->where,
                                 "memory '%s'", r->name);
    }
    *out = of;
    return TEC_OK;
}

void tec_memory_close(struct tec_memory *m)
{
    if (!m)
        return;
    struct tec_memory_shared *s = m->shared;
    tec_memory_stop_worker(s);
    for (int i = 0; i < s->n; i++)
        finish(&s->of[i]);
    tec_memory_tier_finish(&s->tier);
    if (s->stage)
        tec_device_unpin(s->device, s->stage);
    tec_encoder_close(s->encoder);
    pthread_mutex_destroy(&s->encodes);
    tec_arena_finish(&s->arena);
    tec_heap_put(s->heap, s->of);
    tec_heap_put(s->heap, s);
}

struct tec_memory *tec_memory_of(struct tec_memory *m, int session)
{
    return &m->shared->of[session];
}

struct tec_memory_counts tec_memory_counts(struct tec_memory *m)
{
    int64_t n[TEC_COUNTS];
    for (int i = 0; i < TEC_COUNTS; i++)
        n[i] = atomic_load_explicit(&m->counts[i], memory_order_relaxed);
    return (struct tec_memory_counts){.prompts = n[TEC_COUNT_PROMPTS],
                                      .segments = n[TEC_COUNT_SEGMENTS],
                                      .missing = n[TEC_COUNT_MISSING],
                                      .whole = n[TEC_COUNT_WHOLE],
                                      .rows = n[TEC_COUNT_ROWS],
                                      .rows_full = n[TEC_COUNT_ROWS_FULL],
                                      .waited_ns = n[TEC_COUNT_WAITED],
                                      .choose_ns = n[TEC_COUNT_CHOOSE],
                                      .remembered_tokens = n[TEC_COUNT_REMEMBERED],
                                      .remember_ns = n[TEC_COUNT_REMEMBER_NS],
                                      .failed = n[TEC_COUNT_FAILED],
                                      .shared = n[TEC_COUNT_SHARED],
                                      .sent_bytes = n[TEC_COUNT_SENT],
                                      .held_bytes = n[TEC_COUNT_HELD],
                                      .fed = n[TEC_COUNT_FED],
                                      .ahead = n[TEC_COUNT_AHEAD],
                                      .prefetch = m->frame.prefetch
                                                      ? tec_prefetch_counts(m->frame.prefetch)
                                                      : (struct tec_prefetch_counts){0},
                                      .store = tec_store_counts(m->store)};
}

struct tec_store_state tec_memory_state(struct tec_memory *m)
{
    return tec_store_state(m->store);
}

enum tec_status tec_memory_save(struct tec_memory *m, const char *path, struct tec_error *err)
{
    return tec_store_save(m->store, path, err);
}

const char *tec_memory_name(const struct tec_memory *m)
{
    return m->name;
}

const struct tec_decl_node *tec_memory_node(const struct tec_memory *m)
{
    return m->node;
}

const char *tec_memory_file(const struct tec_memory *m)
{
    return m->path;
}

bool tec_memory_fails(struct tec_memory *m)
{
    return tec_store_fails(m->store);
}

uint32_t tec_memory_stored(struct tec_memory *m)
{
    return tec_store_counts(m->store).segments;
}

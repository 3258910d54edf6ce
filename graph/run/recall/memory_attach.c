/* memory_attach.c - a memory gets its plan: everything that frames use of it is taken here. */
#include "graph/run/recall/memory_own.h"

#include "base/byte_text.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

#define START_NS INT64_C(10000000000)

int tec_memory_nodes(const struct tec_pipeline *p, int chain, int nodes[TEC_MAX_MEMORIES])
{
    int n = 0;
    for (int i = 0; i < p->n_nodes && n < TEC_MAX_MEMORIES; i++) {
        const struct tec_decl_node *node = &p->nodes[p->order[i]];
        if (node->kind == TEC_DECL_MEMORY_LOAD && !node->culled &&
            (chain < 0 || node->chain == chain))
            nodes[n++] = p->order[i];
    }
    return n;
}

int tec_memory_shares(const struct tec_pipeline *p, const struct tec_decl_node *node)
{
    int n = 1;
    for (int i = 0; i < p->n_nodes; i++)
        n += p->nodes[i].kind == TEC_DECL_MEMORY_LOAD && !p->nodes[i].culled &&
             &p->nodes[i] != node && p->nodes[i].from.index == node->from.index;
    return n;
}

int64_t tec_memory_kept(const struct tec_pipeline *p, const struct tec_decl_node *node, size_t row,
                        int layers)
{
    const struct tec_decl_resource *r = &p->resources[node->from.index];
    /* Nothing is said: as much as the segments of a prompt twice over. */
    int64_t each = 4LL * r->tokens * (int64_t)row * layers;
    return r->tiers.host ? r->tiers.host / tec_memory_shares(p, node) : each * p->frame.sessions;
}

static size_t piece_most(const struct tec_decl_input *in, size_t row)
{
    const struct tec_log_key key = {.row_bytes = (uint32_t)row};
    return tec_log_piece_bytes(&key, (uint32_t)in->tokens_each);
}

/* Segments that the node's part of tiers.gpu has room for. */
static int places_of(const struct tec_pipeline *p, const struct tec_decl_node *node,
                     const struct tec_plan *plan)
{
    enum { MOST = 1 << 20 };
    const struct tec_kv_shape *s = &plan->space.shape;
    const struct tec_decl_input *in = &p->inputs[node->reads.item[0].index];
    int64_t bytes = p->resources[node->from.index].tiers.gpu / tec_memory_shares(p, node);
    int64_t n =
        bytes / (int64_t)tec_memory_tier_bytes(s->layers, piece_most(in, tec_kv_row_bytes(s)));
    if (tec_device_reads_host(plan->device))
        return 0;
    return n < MOST ? (int)n : MOST;
}

/* What a file has at least with one text, and with its keys and values. */
static int64_t file_least(const struct tec_decl_resource *r, const struct tec_decl_input *in,
                          const struct tec_kv_shape *s, bool keeps)
{
    const struct tec_log_key key = {.layers = (uint32_t)s->layers,
                                    .row_bytes = (uint32_t)tec_kv_row_bytes(s),
                                    .dim = r->encoder ? 0 : TEC_WORDS_DIM};
    const struct tec_log_record text = {.type = TEC_LOG_PUT},
                                kv = {.type = TEC_LOG_KV, .tokens = (uint32_t)in->tokens_each};
    int64_t least = TEC_LOG_HEADER + tec_log_record_bytes(&key, &text);
    return keeps ? least + tec_log_record_bytes(&key, &kv) : least;
}

/* Bytes of a field of tiers, in equal parts, and what one segment takes there at least. */
struct tier_bytes {
    const char *field;
    int64_t bytes, least;
    int parts;
};

static bool is_small(struct tec_memory_unused *out, const struct tec_decl_resource *r,
                     const struct tier_bytes *of)
{
    char needed[24], has[24];
    int64_t part = of->bytes / of->parts;
    out->field = of->field;
    out->where = tec_decl_place(&r->tiers.places, of->field, r->tiers.where);
    snprintf(out->why, sizeof out->why, "a segment of tokens_each takes %s; %s %s",
             tec_byte_text(needed, of->least), of->parts > 1 ? "each part has" : "it has",
             tec_byte_text(has, part));
    return of->bytes > 0 && part < of->least;
}

bool tec_memory_unused(struct tec_memory_unused *out, const struct tec_pipeline *p,
                       const struct tec_decl_node *node, const struct tec_plan *plan, int place)
{
    const struct tec_decl_resource *r = &p->resources[node->from.index];
    const struct tec_decl_input *in = &p->inputs[node->reads.item[0].index];
    const struct tec_kv_shape *s = &plan->space.shape;
    int64_t piece = (int64_t)tec_memory_tier_bytes(s->layers, piece_most(in, tec_kv_row_bytes(s)));
    int shares = tec_memory_shares(p, node), all = shares * p->frame.sessions;
    const struct tier_bytes tiers[TEC_MEMORY_PLACES] = {
        {"gpu", r->tiers.gpu, piece, shares},
        {"host", r->tiers.host, piece, all},
        {"disk", r->store ? r->tiers.disk : 0, file_least(r, in, s, true), all}};
    const struct tier_bytes *of = &tiers[place];
    bool small = is_small(out, r, of);
    int64_t text = file_least(r, in, s, false);
    char least[24], has[24];
    out->refuses = place == 2 && small && of->bytes / of->parts < text;
    if (out->refuses)
        snprintf(out->why, sizeof out->why, "a file with one takes %s at least; it has %s",
                 tec_byte_text(least, text), tec_byte_text(has, of->bytes / of->parts));
    if (place > 0 || !of->bytes || !tec_device_reads_host(plan->device))
        return small;
    snprintf(out->why, sizeof out->why, "%s",
             "this device reads keys and values in host memory as they lie");
    return true;
}

/* K, or V, of all segments that a launch computes, where the host cannot read the device's. */
static size_t copy_bytes(const struct tec_plan *plan, size_t row, int layers)
{
    bool reads = tec_device_reads_host(plan->device);
    return reads ? 0 : (size_t)layers * (size_t)plan->spec.segment_tokens * row;
}

struct tec_memory_bytes tec_memory_measure(const struct tec_pipeline *p, int chain,
                                           const struct tec_plan *plan)
{
    const struct tec_kv_shape *s = &plan->space.shape;
    size_t row = tec_kv_row_bytes(s);
    struct tec_memory_bytes sum = {0};
    int nodes[TEC_MAX_MEMORIES], n = tec_memory_nodes(p, chain, nodes);
    for (int i = 0; i < n; i++) {
        const struct tec_decl_node *node = &p->nodes[nodes[i]];
        const struct tec_decl_input *in = &p->inputs[node->reads.item[0].index];
        size_t pieces = (size_t)s->layers * (size_t)in->max_segments * piece_most(in, row);
        sum.staging += (int64_t)(pieces + 2 * copy_bytes(plan, row, s->layers));
        sum.kept += tec_memory_kept(p, node, row, s->layers);
        sum.device += (int64_t)tec_memory_tier_bytes(s->layers, piece_most(in, row)) *
                      places_of(p, node, plan);
    }
    return sum;
}

static enum tec_status take_job(struct tec_memory_shared *s, const struct tec_plan *plan,
                                struct tec_error *err)
{
    struct tec_remember_job *j = &s->job;
    size_t segments = (size_t)plan->spec.segments, tokens = (size_t)plan->spec.segment_tokens;
    s->looked = TEC_NEW(&s->arena, segments, uint32_t);
    j->texts = TEC_NEW(&s->arena, segments, struct tec_remember_text);
    j->handles = TEC_NEW(&s->arena, segments, uint32_t);
    j->versions = TEC_NEW(&s->arena, segments, uint64_t);
    j->epochs = TEC_NEW(&s->arena, segments, uint64_t);
    j->first = TEC_NEW(&s->arena, segments, int);
    j->tokens = TEC_NEW(&s->arena, segments, int);
    j->ids = TEC_NEW(&s->arena, tokens, int);
    bool whole = s->looked && j->texts && j->handles && j->versions && j->epochs && j->first &&
                 j->tokens && j->ids;
    size_t copies = copy_bytes(plan, s->of->row, s->of->layers);
    if (copies) {
        j->k = TEC_NEW(&s->arena, copies, unsigned char);
        j->v = TEC_NEW(&s->arena, copies, unsigned char);
        whole = whole && j->k && j->v;
    }
    return whole ? TEC_OK
                 : tec_fail(err, TEC_NO_MEMORY, "no memory to remember %zu tokens", tokens);
}

/* Room for all pieces of the longest prompt: of those that are not in RAM, and of all where the
 * device does not read the host's memory. */
static enum tec_status take_staging(struct tec_memory_shared *s, struct tec_error *err)
{
    const struct tec_memory *m = s->of;
    size_t segments = (size_t)m->input->max_segments, layers = (size_t)m->layers;
    s->stage_layer = segments * piece_most(m->input, m->row);
    s->staging = TEC_NEW(&s->arena, layers * segments, unsigned char *);
    s->stage = tec_device_pin(s->device, layers * s->stage_layer);
    if (s->staging && s->stage)
        return TEC_OK;
    TEC_TRY(tec_device_failure(s->device, err));
    return tec_fail(err, TEC_NO_MEMORY, "no memory for KV of %zu segments on its way", segments);
}

/* What a frame decides of the segments of a prompt, and what the prefetch is told of them. */
static enum tec_status take_prompt(struct tec_memory *m, struct tec_error *err)
{
    size_t segments = (size_t)m->input->max_segments, layers = (size_t)m->layers;
    m->frame.first = TEC_NEW(&m->arena, segments, unsigned char);
    m->frame.skipped = TEC_NEW(&m->arena, segments, bool);
    m->frame.set = TEC_NEW(&m->arena, segments, unsigned char);
    m->frame.order = TEC_NEW(&m->arena, segments, int);
    m->frame.score = TEC_NEW(&m->arena, segments, double);
    m->frame.ratios = TEC_NEW(&m->arena, layers, double);
    m->frame.stays = TEC_NEW(&m->arena, segments, int);
    m->frame.held = TEC_NEW(&m->arena, layers * segments, unsigned char);
    return m->frame.first && m->frame.skipped && m->frame.set && m->frame.order && m->frame.score &&
                   m->frame.ratios && m->frame.stays && m->frame.held
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for %zu segments of a prompt", segments);
}

static bool fill_job(struct tec_memory *m)
{
    tec_memory_share(m);
    return tec_memory_fill_job(m);
}

static void fill_store(struct tec_memory *m, bool patient, int64_t until)
{
    tec_memory_tell_missing(m, patient ? " before the first frame"
                                       : ": for 10 s at first, the rest between frames");
    const struct tec_clock real = {NULL};
    int64_t failed = 0, left = tec_store_counts(m->store).segments;
    while (!failed && left > 0 && tec_clock_now(&real) < until && fill_job(m)) {
        left -= m->shared->job.n_segments;
        tec_memory_run_job(m->shared);
        tec_memory_keep_job(m->shared);
        failed = atomic_load_explicit(&m->counts[TEC_COUNT_FAILED], memory_order_relaxed);
    }
    m->worker.cursor = (struct tec_store_cursor){.inside = false};
}

/* The rest is computed between frames. */
void tec_memory_fill_stores(struct tec_memory_shared *s, bool patient)
{
    const struct tec_clock real = {NULL};
    int64_t until = tec_clock_now(&real) + START_NS;
    for (int i = 0; i < s->n; i++)
        fill_store(&s->of[i], patient, until);
}

static enum tec_status check_layers(const struct tec_memory *m, struct tec_error *err)
{
    const struct tec_decl_node *n = m->node;
    if (n->select != TEC_SELECTION_cacheblend || n->check_layer < m->layers - 1)
        return TEC_OK;
    return tec_where_fail(err, TEC_INVALID, &n->where,
                          "'%s' compares at layer %d; the model has %d layers", n->name,
                          n->check_layer, m->layers);
}

static enum tec_status take(struct tec_memory *m, struct tec_plan *plan, struct tec_error *err)
{
    m->plan = plan;
    TEC_TRY(take_prompt(m, err));
    const struct tec_prefetch_options o = {.layers = m->layers,
                                           .segments = m->input->max_segments,
                                           .grain_bytes = 64 << 10,
                                           .remote_ns = (int64_t)(m->resource->remote_ms * 1e6),
                                           .direct = tec_device_reads_host(plan->device)};
    TEC_TRY(tec_prefetch_create(&m->frame.prefetch, m->store, &o, m->heap, err));
    m->frame.pieces = tec_prefetch_pieces(m->frame.prefetch);
    return TEC_OK;
}

/* No trouble, but told as such a line is, a line for each field of tiers. */
static void tell_unused(const struct tec_memory *m, const struct tec_plan *plan)
{
    struct tec_memory_unused u;
    char line[TEC_MEMORY_TEXT];
    for (int i = 0; i < TEC_MEMORY_PLACES && m->options.trouble; i++) {
        bool file = i == TEC_MEMORY_PLACES - 1;
        if ((file && m->options.forgets) ||
            !tec_memory_unused(&u, m->options.pipeline, m->node, plan, i))
            continue;
        snprintf(line, sizeof line, "memory '%.64s': tiers.%s keeps nothing: %s", m->name, u.field,
                 u.why);
        m->options.trouble(m->options.user, line);
    }
}

enum tec_status tec_memory_take(struct tec_memory_shared *s, struct tec_plan *plan,
                                struct tec_error *err)
{
    TEC_TRY(check_layers(s->of, err));
    s->device = plan->device;
    TEC_TRY(take_job(s, plan, err));
    TEC_TRY(take_staging(s, err));
    tell_unused(s->of, plan);
    TEC_TRY(tec_memory_tier_create(
        &s->tier, s->device, places_of(s->of->options.pipeline, s->of->node, plan), s->of->layers,
        piece_most(s->of->input, s->of->row), &s->arena, err));
    for (int i = 0; i < s->n; i++)
        TEC_TRY(take(&s->of[i], plan, err));
    return TEC_OK;
}

/* profile_memory.c - the launches of chains with memories: a prompt of as many segments as fit,
 * recalled as declared and with each captured share of them computed anew, and segments computed to
 * be kept.
 *
 * What is kept of the prompt lies in plain memory, so that no store, file or server is in the
 * times. Its beginning and its segments are as long as the pipeline lets them be; the query has
 * what is left of the prompt. */
#include "graph/load/pipeline_texts.h"
#include "tools/measure/profile.h"

#include <math.h>
#include <string.h>

struct tec_profile_memory {
    int n, nodes[TEC_MAX_MEMORIES], ends[TEC_MAX_MEMORIES];
    struct tec_recall recall;
    struct tec_recall_input in;
    struct tec_recall_rule rules[TEC_MAX_MEMORIES];
    double *ratios, *even; /* [n, layers] as declared; [layers] */
    struct tec_segment_range *places;
    bool *fresh;
    int *ids, kept; /* kept: tokens of the beginning, where it is kept, and of the segments */
    int first;      /* the first of them */
    struct tec_remember_text *texts;
    unsigned char *k, *v; /* [layers, kept, row] */
    size_t row;
};

static struct tec_plan *plan_of(const struct tec_profile *p, int model)
{
    return p->opened.engine->chains[model].plan;
}

static const struct tec_decl_node *node_at(const struct tec_profile *p, int node)
{
    return &p->opened.pipeline->nodes[node];
}

static bool find(void *self, int layer, int segment, const void **k, const void **v)
{
    const struct tec_profile_memory *m = self;
    int begin = segment < m->in.n_segments ? m->places[segment].begin : m->first;
    size_t at = ((size_t)layer * (size_t)m->kept + (size_t)(begin - m->first)) * m->row;
    *k = m->k + at;
    *v = m->v + at;
    return true;
}

/* --- the prompt ------------------------------------------------------------------------------ */

/* Segments of one memory behind token `at`: as many as its kv.segments and the prompt have room
 * for. */
static int place_segments(struct tec_profile_memory *m, const struct tec_profile *p,
                          const struct tec_decl_node *n, int at, int most)
{
    const struct tec_decl_input *in = &p->opened.pipeline->inputs[n->reads.item[0].index];
    int room = p->opened.pipeline->resources[n->from.index].tokens;
    for (int i = 0; i < in->max_segments && room >= in->tokens_each; i++) {
        if (at + in->tokens_each >= most)
            break;
        m->places[m->in.n_segments++] = (struct tec_segment_range){at, at + in->tokens_each};
        at += in->tokens_each;
        room -= in->tokens_each;
    }
    return at;
}

static void place_all(struct tec_profile_memory *m, const struct tec_profile *p, int model,
                      int beginning)
{
    const struct tec_plan *plan = plan_of(p, model);
    const struct tec_prefix_input *o = model ? &p->prompts[model] : &p->input.prefix;
    int pictures = o->n_pictures > 0 ? o->n_pictures * plan->model->vision.tokens : 0;
    int lead = tec_lead_rows(plan->model), layers = m->recall.layers;
    int at = pictures + (beginning > lead ? beginning : lead), most = o->n_text + pictures;
    m->first = beginning ? pictures : at;
    m->in = (struct tec_recall_input){.ids = m->ids,
                                      .n = most,
                                      .n_pictures = o->n_pictures > 0 ? o->n_pictures : 0,
                                      .picture = o->picture,
                                      .segments = m->places,
                                      .ends = m->ends,
                                      .n_groups = m->n,
                                      .fresh = m->fresh};
    for (int i = 0; i < m->n; i++) {
        const struct tec_decl_node *n = node_at(p, m->nodes[i]);
        double *ratios = m->ratios + (ptrdiff_t)i * layers;
        at = place_segments(m, p, n, at, most);
        m->ends[i] = m->in.n_segments;
        tec_memory_ratios(n, layers, ratios);
        m->rules[i] = tec_memory_rule(n, ratios);
    }
    m->in.query = at;
    m->kept = at - m->first;
    m->fresh[m->in.n_segments] = beginning == 0;
    for (int i = 0; i < o->n_text; i++)
        m->ids[i] = o->ids[i];
}

/* --- what is kept of it ---------------------------------------------------------------------- */

static struct tec_segment_range part_of(const struct tec_profile_memory *m, int i, bool begins)
{
    const struct tec_segment_range beginning = {m->first, m->in.n_segments ? m->places[0].begin
                                                                           : m->in.query};
    return begins && i == 0 ? beginning : m->places[i - begins];
}

/* Compute parts of the prompt, as many in a launch as it has room for. */
static enum tec_status keep_parts(struct tec_profile_memory *m, struct tec_plan *plan,
                                  struct tec_error *err)
{
    bool begins = !m->fresh[m->in.n_segments];
    int n = m->in.n_segments + begins, text = m->in.n_pictures * plan->model->vision.tokens;
    for (int i = 0, to; i < n; i = to) {
        int from = part_of(m, i, begins).begin, end = from;
        for (to = i; to < n && part_of(m, to, begins).end - from <= plan->spec.segment_tokens;
             to++) {
            struct tec_segment_range one = part_of(m, to, begins);
            m->texts[to - i] =
                (struct tec_remember_text){m->ids + one.begin - text, one.end - one.begin};
            end = one.end;
        }
        if (to == i)
            return tec_fail(err, TEC_INVALID, "no room to compute %d tokens of a segment",
                            part_of(m, i, begins).end - from);
        TEC_TRY(tec_remember_run(plan, m->texts, to - i, err));
        for (int l = 0; l < m->recall.layers; l++) {
            size_t at = ((size_t)l * (size_t)m->kept + (size_t)(from - m->first)) * m->row;
            tec_remember_read(plan, 0, end - from, l, m->k + at, m->v + at);
        }
    }
    return TEC_OK;
}

static enum tec_status take(struct tec_profile_memory *m, struct tec_plan *plan,
                            struct tec_arena *arena, struct tec_error *err)
{
    size_t most = (size_t)plan->spec.segments + 1, layers;
    TEC_TRY(tec_recall_create(&m->recall, plan, arena, err));
    layers = (size_t)m->recall.layers;
    m->row = tec_kv_row_bytes(&plan->space.shape);
    m->places = TEC_NEW(arena, most, struct tec_segment_range);
    m->fresh = TEC_NEW(arena, most, bool);
    m->texts = TEC_NEW(arena, most, struct tec_remember_text);
    m->ids = TEC_NEW(arena, (size_t)plan->spec.text_tokens + 1, int);
    m->ratios = TEC_NEW(arena, layers * (size_t)m->n, double);
    m->even = TEC_NEW(arena, layers, double);
    return m->places && m->fresh && m->texts && m->ids && m->ratios && m->even
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt of segments");
}

static enum tec_status take_kept(struct tec_profile_memory *m, struct tec_device *device,
                                 struct tec_error *err)
{
    size_t bytes = (size_t)m->recall.layers * (size_t)m->kept * m->row;
    m->k = tec_device_pin(device, bytes + 1);
    m->v = tec_device_pin(device, bytes + 1);
    TEC_TRY(tec_device_failure(device, err));
    return m->k && m->v ? TEC_OK
                        : tec_fail(err, TEC_NO_MEMORY, "no memory to keep %d tokens", m->kept);
}

/* --- variants -------------------------------------------------------------------------------- */

static bool add(struct tec_profile *p, int model, const char *node, int percent, int tokens,
                int each)
{
    struct tec_plan *plan = plan_of(p, model);
    struct tec_profile_variant *v = &p->variants[p->n_variants];
    int frames = p->frames;
    int slices = plan->spec.secondary && !tokens
                     ? tec_part_slices(tec_plan_part(plan, TEC_PART_PREFIX, 0))
                     : 1;
    p->frames *= slices; /* samples */
    bool ok = tec_profile_add(p, TEC_COST_KINDS, node, false, 0);
    p->frames = frames;
    v->memory = true;
    v->model = model;
    v->percent = percent;
    v->tokens = tokens;
    v->each = each;
    v->slices = slices > 1 ? slices : 0;
    return ok;
}

static bool list_recalls(struct tec_profile *p, int model)
{
    const struct tec_profile_memory *m = p->memories[model];
    const struct tec_numbers *shares = &p->opened.pipeline->capture.ratio;
    const char *node = node_at(p, m->nodes[0])->name;
    bool ok = add(p, model, node, 0, 0, 0), chooses = false;
    for (int i = 0; i < m->n; i++)
        chooses |= m->rules[i].selection == TEC_SELECTION_keep;
    for (int i = 0, last = 0; chooses && i < shares->n; i++) {
        int percent = (int)lround(shares->item[i] * 100.0);
        if (percent > last)
            ok = ok && add(p, model, node, percent, 0, 0);
        last = percent > last ? percent : last;
    }
    return ok;
}

/* Of each remember node and memory one segment, and as many as a launch has room for. */
static bool list_remembers(struct tec_profile *p, int model)
{
    const struct tec_profile_memory *m = p->memories[model];
    const struct tec_pipeline *f = p->opened.pipeline;
    const struct tec_plan_spec *s = &plan_of(p, model)->spec;
    int room = s->segment_tokens;
    bool ok = true;
    for (int i = 0; i < f->n_nodes; i++)
        for (int k = 0; k < m->n; k++) {
            const struct tec_decl_node *n = &f->nodes[i], *load = node_at(p, m->nodes[k]);
            int each = f->inputs[load->reads.item[0].index].tokens_each;
            int many = room / each < s->segments ? room / each : s->segments;
            if (n->kind != TEC_DECL_REMEMBER || n->culled || n->memory.index != load->from.index)
                continue;
            const char *name = tec_pipeline_memory_of(f, load, n->name, p->call->arena);
            ok = ok && name && add(p, model, name, 0, each < room ? each : room, each);
            if (many > 1)
                ok = ok && add(p, model, name, 0, many * each, each);
        }
    return ok;
}

/* --- turns ----------------------------------------------------------------------------------- */

static void keep(struct tec_profile *p, struct tec_profile_variant *v, int64_t ns)
{
    tec_profile_keep(p, v, ns, 1);
    if (!p->counting)
        return;
    p->inside_ns += ns;
    p->busy_ns += ns;
}

static enum tec_status recall(struct tec_profile *p, struct tec_profile_variant *v,
                              struct tec_error *err)
{
    const struct tec_clock clock = {NULL};
    struct tec_profile_memory *m = p->memories[v->model];
    const struct tec_recall_source source = {.self = m, .find = find};
    int layers = m->recall.layers, slices = v->slices ? v->slices : 1;
    for (int l = 0; l < layers; l++)
        m->even[l] = v->percent / 100.0;
    for (int i = 0; i < m->n; i++)
        m->rules[i].ratios = v->percent ? m->even : m->ratios + (ptrdiff_t)i * layers;
    m->in.region = v->model ? p->regions[v->model] : p->region;
    for (int i = 0; i < slices; i++) {
        int to = (int)((int64_t)(i + 1) * layers / slices);
        int64_t begin = tec_clock_now(&clock);
        if (i == 0)
            TEC_TRY(tec_recall_start(&m->recall, &m->in, m->rules, &source, err));
        for (int l = (int)((int64_t)i * layers / slices); l < to; l++)
            TEC_TRY(tec_recall_layer(&m->recall, l, err));
        keep(p, v, tec_clock_now(&clock) - begin);
    }
    return tec_device_failure(m->recall.plan->device, err);
}

/* Segments as long as they may be: ids of the prompt's. */
static enum tec_status remember(struct tec_profile *p, struct tec_profile_variant *v,
                                struct tec_error *err)
{
    const struct tec_clock clock = {NULL};
    struct tec_profile_memory *m = p->memories[v->model];
    struct tec_plan *plan = plan_of(p, v->model);
    int each = v->each, n = 0;
    for (int at = 0; at < v->tokens; at += m->texts[n++].n)
        m->texts[n] =
            (struct tec_remember_text){m->ids, v->tokens - at < each ? v->tokens - at : each};
    int64_t begin = tec_clock_now(&clock);
    TEC_TRY(tec_remember_run(plan, m->texts, n, err));
    keep(p, v, tec_clock_now(&clock) - begin);
    return TEC_OK;
}

static enum tec_status run(struct tec_profile *p, struct tec_profile_variant *v,
                           struct tec_error *err)
{
    return v->tokens ? remember(p, v, err) : recall(p, v, err);
}

/* A launch that ran once does not fail for what it is given. */
void tec_profile_run_memories(struct tec_profile *p)
{
    for (int i = 0; i < p->n_variants; i++)
        if (p->variants[i].memory)
            (void)run(p, &p->variants[i], NULL);
}

/* Each launch once, where an error can still be said. */
static enum tec_status try_all(struct tec_profile *p, int first, int model, struct tec_error *err)
{
    struct tec_plan *plan = plan_of(p, model);
    int region = tec_kv_pool_take(&plan->prefixes);
    enum tec_status status = TEC_OK;
    *(model ? &p->regions[model] : &p->region) = region;
    for (int i = first; i < p->n_variants && status == TEC_OK; i++)
        status = run(p, &p->variants[i], err);
    tec_kv_pool_drop(&plan->prefixes, region);
    return status;
}

static enum tec_status list(struct tec_profile *p, int model, struct tec_error *err)
{
    struct tec_arena *arena = p->call->arena;
    struct tec_profile_memory *m = TEC_NEW(arena, 1, struct tec_profile_memory);
    int first = p->n_variants;
    if (!m)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a chain's memories");
    p->memories[model] = m;
    m->n = tec_memory_nodes(p->opened.pipeline, model, m->nodes);
    TEC_TRY(take(m, plan_of(p, model), arena, err));
    place_all(m, p, model, tec_memory_chain_kept(p->opened.engine->chains[model].memory));
    TEC_TRY(take_kept(m, plan_of(p, model)->device, err));
    TEC_TRY(keep_parts(m, plan_of(p, model), err));
    if (!list_recalls(p, model) || !list_remembers(p, model))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d samples of each variant", p->frames);
    return try_all(p, first, model, err);
}

enum tec_status tec_profile_list_memories(struct tec_profile *p, struct tec_error *err)
{
    for (int m = 0; m < p->opened.engine->n_chains; m++)
        if (p->opened.engine->chains[m].memory)
            TEC_TRY(list(p, m, err));
    return TEC_OK;
}

void tec_profile_finish_memories(struct tec_profile *p)
{
    for (int i = 0; i < TEC_MAX_CHAINS; i++) {
        struct tec_profile_memory *m = p->memories[i];
        if (!m || !m->recall.plan)
            continue;
        tec_device_unpin(m->recall.plan->device, m->k);
        tec_device_unpin(m->recall.plan->device, m->v);
        tec_recall_finish(&m->recall);
    }
}

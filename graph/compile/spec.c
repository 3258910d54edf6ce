/* spec.c - derives the sizes of one chain's plan from the nodes of a pipeline.
 *
 * Runs at load, once for each chain. The node passes of passes.def first sort out the chain's
 * nodes; what remains fills struct tec_plan_spec: rows of a frame, request slots, batches, slices,
 * memory segments. Graphs that this release does not run are refused when the file is loaded
 * (graph/load/refusals.c); what depends on the model is refused here, with the file and line of the
 * declaration, before any memory is taken. */
#include "graph/compile/spec.h"
#include "graph/load/pipeline_texts.h"
#include "graph/memory/importance.h"

#include "graph/nodes/tables.h"
#include "kernels/attention.h"

static const struct {
    const char *name;
    enum tec_status (*run)(struct tec_node_set *set, struct tec_error *err);
} passes[] = {
#define NODE_PASS(name, text) {#name, tec_node_pass_##name},
#define PASS(name, text)
#include "graph/compile/passes.def"
#undef PASS
#undef NODE_PASS
};

static enum tec_status refuse(const struct tec_where *w, enum tec_status status,
                              struct tec_error *err, const char *what, const char *name)
{
    return tec_where_fail(err, status, w, "%s '%s'", what, name);
}

/* A batch of a ring's rows may be there already. */
static void add_batch(struct tec_plan_spec *s, int batch)
{
    int at = s->n_batches;
    while (at > 0 && s->batches[at - 1] > batch)
        at--;
    if ((at > 0 && s->batches[at - 1] == batch) || s->n_batches == TEC_MAX_BATCHES)
        return;
    for (int i = s->n_batches++; i > at; i--)
        s->batches[i] = s->batches[i - 1];
    s->batches[at] = batch;
}

static void fill_lattice(struct tec_plan_spec *s, const struct tec_pipeline *p)
{
    const struct tec_decl_capture *c = &p->capture;
    for (int i = 0; i < c->batch.n; i++)
        add_batch(s, c->batch.item[i]);
    if (!c->batch.n)
        add_batch(s, s->request_slots);
    s->max_k = c->k.n ? c->k.item[c->k.n - 1] : s->new_tokens;
}

/* Tokens of a decode node's own prompt. It needs a causal mask: where text sees what follows it,
 * each prompt behind the frame's prefix would change the prefix itself. */
static enum tec_status fill_own(const struct tec_node_set *set, const struct tec_decl_node *n,
                                int *tokens, struct tec_error *err)
{
    *tokens = 0;
    if (n->prompt.index < 0)
        return TEC_OK;
    if (!set->model->text.causal)
        return tec_where_fail(
            err, TEC_MALFORMED, &n->where,
            "'%s' has a prompt of its own, but in model '%s' text sees all of "
            "its prompt (mask \"bidir\"): nothing can be read behind a prefix that is "
            "done; leave prompt out, or use a model with causal text",
            n->name, set->model->name);
    *tokens = set->pipeline->inputs[n->prompt.index].max_tokens;
    if (*tokens > set->spec->prompt_tokens)
        set->spec->prompt_tokens = *tokens;
    return TEC_OK;
}

static enum tec_status check_score(const struct tec_node_set *set, const struct tec_decl_node *n,
                                   struct tec_error *err)
{
    if (!set->model->text.causal)
        return tec_where_fail(
            err, TEC_MALFORMED, &n->where,
            "'%s' ranks texts behind a prefix, but in model '%s' text sees all "
            "of its prompt (mask \"bidir\"): nothing can be read behind a prefix that "
            "is done; leave it out, or use a model with causal text",
            n->name, set->model->name);
    return TEC_OK;
}

/* What a decode node asks for, or a score node over a kv.requests. */
static enum tec_status fill_decode(const struct tec_node_set *set, const struct tec_decl_node *n,
                                   struct tec_error *err)
{
    const struct tec_decl_resource *r = &set->pipeline->resources[n->kv.index];
    struct tec_plan_spec *s = set->spec;
    int own;
    TEC_TRY(fill_own(set, n, &own, err));
    int longest = own + n->max_tokens;
    int64_t all = (int64_t)s->frame_tokens + longest;
    if (r->kind == TEC_RESOURCE_REQUESTS && r->tokens < all)
        return tec_where_fail(err, TEC_INVALID, &r->where_size,
                              "'%s' holds %d tokens; a frame of %d and %d new ones need %lld",
                              r->name, r->tokens, s->frame_tokens, longest, (long long)all);
    s->draws |= n->temperature > 0.0;
    if (n->draft.tokens > s->draft_tokens)
        s->draft_tokens = n->draft.tokens;
    if (n->max_tokens > s->new_tokens)
        s->new_tokens = n->max_tokens;
    return TEC_OK;
}

static enum tec_status fill_language(const struct tec_node_set *set, struct tec_error *err)
{
    const struct tec_pipeline *p = set->pipeline;
    struct tec_plan_spec *s = set->spec;
    bool decodes = false;
    for (int i = 0; i < set->n; i++) {
        const struct tec_decl_node *n = set->nodes[i];
        bool ranks = n->kind == TEC_DECL_SCORE;
        if ((n->kind != TEC_DECL_DECODE && !ranks) || n->kv.index < 0 || n == set->ring)
            continue;
        decodes |= !ranks;
        if (ranks)
            TEC_TRY(check_score(set, n, err));
        if (!ranks || p->resources[n->kv.index].kind != TEC_RESOURCE_FRAME)
            TEC_TRY(fill_decode(set, n, err));
    }
    if (set->n)
        s->request_slots = tec_pipeline_slots(p, set->nodes[0]->chain, NULL).n * p->frame.sessions;
    s->isolated = s->request_slots > 0;
    s->penalty = set->ring && !s->request_slots ? 0.0F : set->model->text.penalty;
    if (set->ring && s->penalty > 0.0F && s->penalty != 1.0F)
        return refuse(&set->ring->where, TEC_UNSUPPORTED, err,
                      "its model makes repeated tokens less likely, which an action's "
                      "tokens are not: no text beside ring node",
                      set->ring->name);
    if (decodes)
        fill_lattice(s, p);
    return TEC_OK;
}

/* The buffer that takes the chunk must have the model's shape. */
static enum tec_status check_chunk(const struct tec_decl_node *action, const struct tec_pipeline *p,
                                   const struct tec_model *m, struct tec_error *err)
{
    if (action->out.buffer < 0)
        return TEC_OK;
    const struct tec_decl_resource *b = &p->resources[action->out.buffer];
    if (b->shape.n == 2 && b->shape.item[0] == m->flow.horizon && b->shape.item[1] == m->flow.dim)
        return TEC_OK;
    return tec_where_fail(err, TEC_SHAPE, &b->where_size,
                          "buffer '%s' must be {%d, %d} for this model's chunk", b->name,
                          m->flow.horizon, m->flow.dim);
}

/* Rows of given actions are at the time of actions while the others are not. Each row then needs
 * the norms of its own time, so the model must be conditioned by its norms alone and have no row
 * before the actions. */
static enum tec_status fill_fixed(const struct tec_node_set *set, int action, struct tec_error *err)
{
    const struct tec_decl_node *n = set->actions[action];
    const struct tec_flow *f = &set->model->flow;
    if (n->prefix.index < 0)
        return TEC_OK;
    const struct tec_decl_input *in = &set->pipeline->inputs[n->prefix.index];
    if (!tec_model_fixes(set->model))
        return tec_where_fail(err, TEC_MALFORMED, &n->where,
                              "'%s' has a prefix of actions, but model '%s' cannot take one: its "
                              "action expert has no adaptive norms; leave prefix out",
                              n->name, set->model->name);
    if (in->shape.item[0] >= f->horizon)
        return tec_where_fail(err, TEC_SHAPE, &in->where,
                              "'%s' gives up to %d actions, this model's chunk has %d: at most %d",
                              in->name, in->shape.item[0], f->horizon, f->horizon - 1);
    set->spec->actions[action].fixed = in->shape.item[0];
    return TEC_OK;
}

/* What a chunk is pulled to. The largest pull is a number of the program, the rest is data. */
static enum tec_status fill_guide(const struct tec_node_set *set, int action, struct tec_error *err)
{
    const struct tec_decl_node *n = set->actions[action];
    const struct tec_flow *f = &set->model->flow;
    if (n->guide.previous.index < 0)
        return TEC_OK;
    const struct tec_decl_input *in = &set->pipeline->inputs[n->guide.previous.index];
    if (!tec_model_flows(set->model) || !set->model->program->flow.falls)
        return tec_where_fail(err, TEC_MALFORMED, &n->where,
                              "'%s' has a guide, but model '%s' does not denoise its actions; "
                              "leave guide out",
                              n->name, set->model->name);
    if (in->shape.item[0] > f->horizon)
        return tec_where_fail(err, TEC_SHAPE, &in->where,
                              "'%s' has up to %d actions, this model's chunk has %d", in->name,
                              in->shape.item[0], f->horizon);
    set->spec->actions[action].guidance = (float)n->guide.weight;
    return TEC_OK;
}

/* A ring stage holds the prefix and the generated tokens, so the prefix may use tokens - stages
 * slots. The key of the last token needs no slot: a complete sequence leaves the ring. */
static enum tec_status fill_ring(const struct tec_node_set *set, struct tec_error *err)
{
    const struct tec_decl_resource *r = &set->pipeline->resources[set->ring->kv.index];
    struct tec_plan_spec *s = set->spec;
    if (r->tokens <= r->stages)
        return tec_where_fail(err, TEC_MALFORMED, &r->where,
                              "ring '%s' holds %d tokens a stage; %d tokens of an action leave no "
                              "room for an observation",
                              r->name, r->tokens, r->stages);
    if (set->model->tokens.vocab && set->model->flow.dim != r->stages)
        return tec_where_fail(err, TEC_INVALID, &r->where,
                              "ring '%s' has %d stages, an action of this model is %d tokens: one "
                              "stage for each",
                              r->name, r->stages, set->model->flow.dim);
    s->stages = r->stages;
    s->rings = set->pipeline->frame.sessions;
    s->ring_tokens = r->tokens;
    s->frame_tokens = r->tokens - r->stages;
    s->shifts = r->shift == TEC_SHIFT_DEVICE_COPY;
    s->gathers = r->pack == TEC_PACK_GATHER;
    s->new_tokens = r->stages;
    s->max_k = 1;
    s->apart = set->ring->pack_with.index < 0;
    if (s->apart || r->stages > 1)
        s->batches[s->n_batches++] = s->rings * (r->stages - !s->apart);
    return TEC_OK;
}

/* Pictures of a prompt that the model has slots for. */
static int pictures_of(const struct tec_node_set *set)
{
    int pictures = tec_pipeline_reads(set->pipeline, set->prefill, TEC_INPUT_IMAGE);
    return pictures < set->model->n_slots ? pictures : set->model->n_slots;
}

/* A memory's segments are placed in the prefill's keys, in front of the prefill's query. */
static enum tec_status check_memory(const struct tec_node_set *set, const struct tec_decl_node *n,
                                    struct tec_error *err)
{
    if (n->into.index != set->prefill->writes.index)
        return refuse(&n->where, TEC_MALFORMED, err,
                      "segments are brought into the keys that the prefill writes; not so by",
                      n->name);
    if (n->partition.index >= 0 && n->partition.index != set->prefill->partition.index)
        return refuse(&n->where, TEC_MALFORMED, err,
                      "segments are recalled in the launch of the prefill that reads them: "
                      "give both one partition, or leave out that of",
                      n->name);
    const struct tec_vision *v = &set->model->vision;
    if (tec_head_rows(set->model) || v->n_before + v->n_behind > 0 || set->model->text.keys_f32)
        return refuse(&n->where, TEC_UNSUPPORTED, err,
                      "memory in the prompt of a model that adds rows of its own to it, or "
                      "keeps float32 keys, is not in this release:",
                      n->name);
    return TEC_OK;
}

/* That a prompt has room for the segments of its memories up to node n, and for its beginning: as
 * many as attention can be summed up for. */
static enum tec_status check_segments(const struct tec_node_set *set, const struct tec_decl_node *n,
                                      struct tec_error *err)
{
    const struct tec_decl_input *in = &set->pipeline->inputs[n->reads.item[0].index];
    int most = tec_mass_ranges(set->model->text.stack.head_dim) / TEC_SEGMENT_RANGES;
    most = most < TEC_PLAN_SEGMENTS ? most : TEC_PLAN_SEGMENTS;
    if (set->spec->segments <= most)
        return TEC_OK;
    const struct tec_where where = tec_decl_place(&in->places, "max_segments", in->where);
    return tec_where_fail(err, TEC_MALFORMED, &where,
                          "max_segments: %d segments in a prompt, of this model it has at most %d",
                          set->spec->segments - 1, most - 1);
}

/* Sizes of a chain's memories: together they have the room that pictures leave. */
static enum tec_status fill_memories(const struct tec_node_set *set, struct tec_error *err)
{
    const struct tec_pipeline *p = set->pipeline;
    struct tec_plan_spec *s = set->spec;
    const struct tec_decl_resource *frame = &p->resources[set->prefill->writes.index];
    s->segments = 1;
    for (int i = 0; i < set->n_memories; i++) {
        const struct tec_decl_node *n = set->memories[i];
        int tokens = p->resources[n->from.index].tokens;
        TEC_TRY(check_memory(set, n, err));
        s->segments += p->inputs[n->reads.item[0].index].max_segments;
        TEC_TRY(check_segments(set, n, err));
        s->compares |= n->select == TEC_SELECTION_cacheblend;
        s->segment_tokens = tokens > s->segment_tokens ? tokens : s->segment_tokens;
    }
    s->text_tokens = s->frame_tokens - pictures_of(set) * set->model->vision.tokens;
    if (set->model->n_slots && !pictures_of(set))
        s->pictures = TEC_NO_PICTURES;
    return s->text_tokens > 0 ? TEC_OK
                              : refuse(&frame->where_size, TEC_INVALID, err,
                                       "no room for segments beside the pictures in", frame->name);
}

/* Tokens of the texts that the prefill reads. Streams, and a prompt without a text or with segments
 * before it, have what its kv.frame leaves beside its pictures and other texts; below 0: that is
 * nothing. */
static int count_text(const struct tec_node_set *set)
{
    const struct tec_decl_node *n = set->prefill;
    int64_t given = 0, said = 0;
    int texts = 0, room = set->spec->frame_tokens - tec_head_rows(set->model);
    room -= pictures_of(set) * tec_vision_rows(&set->model->vision);
    for (int i = 0; i < n->reads.n; i++) {
        const struct tec_decl_input *in = &set->pipeline->inputs[n->reads.item[i].index];
        if (in->kind != TEC_INPUT_TEXT)
            continue;
        texts++;
        *(in->writer ? &said : &given) += in->max_tokens;
    }
    bool all = texts == 0 || tec_pipeline_follows(set->pipeline, n->chain) >= 0;
    if (all && tec_model_reads(set->model))
        return room > 0 ? room : -1;
    if (said && given > 0 && given >= room)
        return -1;
    return said && given + said > room ? room : (int)(given + said);
}

/* A model without a text reads pictures and the robot's state alone, in every frame. */
static enum tec_status check_textless(const struct tec_node_set *set,
                                      const struct tec_decl_resource *frame, struct tec_error *err)
{
    const struct tec_decl_node *n = set->prefill;
    int rows = tec_model_encoded(set->model);
    if (set->spec->text_tokens)
        return refuse(&n->where, TEC_MALFORMED, err,
                      "the model has no text; leave out the one that is read by", n->name);
    if (set->ring || set->n_memories || set->secondary)
        return refuse(&n->where, TEC_MALFORMED, err,
                      "the model has no text: it is in frames, and neither in a ring nor "
                      "with a memory, unlike",
                      n->name);
    if (frame->tokens < rows)
        return tec_where_fail(err, TEC_INVALID, &frame->where_size,
                              "'%s' holds %d tokens, model '%s' has %d rows, those of its pictures "
                              "among them",
                              frame->name, frame->tokens, set->model->name, rows);
    for (int i = 0; i < set->n; i++)
        if (tec_decl_makes_text(set->nodes[i]))
            return refuse(&set->nodes[i]->where, TEC_MALFORMED, err,
                          "the model has no text, which is asked for by", set->nodes[i]->name);
    return TEC_OK;
}

static enum tec_status fill_prefill(const struct tec_node_set *set, struct tec_error *err)
{
    const struct tec_pipeline *p = set->pipeline;
    const struct tec_decl_node *n = set->prefill;
    const struct tec_decl_resource *frame = &p->resources[n->writes.index];
    int pictures = tec_pipeline_reads(p, n, TEC_INPUT_IMAGE);
    if (set->ring)
        TEC_TRY(fill_ring(set, err));
    else
        set->spec->frame_tokens = frame->tokens;
    set->spec->text_tokens = count_text(set);
    if (set->secondary) /* the frames' prefill reads what cameras the robot has */
        set->spec->pictures = pictures ? pictures : TEC_NO_PICTURES;
    if (!tec_model_reads(set->model))
        return check_textless(set, frame, err);
    if (set->spec->text_tokens < 0)
        return refuse(&frame->where_size, TEC_INVALID, err,
                      "no room for a text beside the pictures in", frame->name);
    if (set->secondary && (int64_t)pictures * tec_vision_rows(&set->model->vision) +
                                  set->spec->text_tokens + tec_head_rows(set->model) >
                              set->spec->frame_tokens)
        return refuse(&frame->where_size, TEC_INVALID, err,
                      pictures ? "no room for all the pictures beside the text in"
                               : "no room for the text in",
                      frame->name);
    return TEC_OK;
}

/* If the pipeline has hard nodes, cut a secondary chain's prefill into slices of layers, so that it
 * fits into the time that they leave. That of a hard text's draft runs before it, in one. */
static void fill_secondary(const struct tec_node_set *set)
{
    const struct tec_pipeline *p = set->pipeline;
    int layers = set->model->text.stack.layers, most = p->capture.slices;
    bool hard = false;
    for (int i = 0; i < p->n_nodes; i++)
        hard |= !p->nodes[i].culled && p->nodes[i].deadline.kind == TEC_DEADLINE_HARD;
    set->spec->secondary = true;
    set->spec->slices = !hard || tec_pipeline_proposes_first(p, set->prefill->chain) ? 1
                        : most && most < layers                                      ? most
                                                                                     : layers;
}

/* A head makes the chunk of the prefill's last rows: there is nothing of it to compute later. */
static enum tec_status fill_action(const struct tec_node_set *set, int at, struct tec_error *err)
{
    const struct tec_decl_node *n = set->actions[at];
    const struct tec_model *m = set->model;
    if (!tec_model_acts(m))
        return tec_where_fail(err, TEC_MALFORMED, &n->where,
                              "'%s' is an action node, but model '%s' makes its actions as "
                              "tokens; use a decode node",
                              n->name, m->name);
    if (tec_model_heads(m) && (n->kv.prev || tec_pipeline_every(set->pipeline, n->chain) != 1))
        return tec_where_fail(err, TEC_MALFORMED, &n->where,
                              "'%s' acts on an earlier frame's keys, but model '%s' makes its "
                              "actions in the prefill: in its frame",
                              n->name, m->name);
    if (tec_model_heads(m) && tec_pipeline_acts_every(set->pipeline, n) > 1)
        return tec_where_fail(err, TEC_MALFORMED, &n->where,
                              "'%s' runs every %d frames, but model '%s' makes its actions in the "
                              "prefill: in every frame",
                              n->name, tec_pipeline_acts_every(set->pipeline, n), m->name);
    if (tec_model_heads(m) && at > 0)
        return tec_where_fail(err, TEC_MALFORMED, &n->where,
                              "'%s' is a second action node, but model '%s' makes its actions in "
                              "the prefill: one chunk of each",
                              n->name, m->name);
    set->spec->actions[at].steps = n->steps ? n->steps : m->flow.steps;
    set->spec->n_actions = at + 1;
    TEC_TRY(check_chunk(n, set->pipeline, m, err));
    TEC_TRY(fill_guide(set, at, err));
    return fill_fixed(set, at, err);
}

/* Observations of several sessions in one launch. The rows that a head or queries read are those
 * of one prompt, as a recall's are: such a chain takes one after the other, beside others. The
 * forward of a ring takes any number. */
static enum tec_status fill_sessions(const struct tec_node_set *set, struct tec_error *err)
{
    const struct tec_pipeline *p = set->pipeline;
    const struct tec_ints *together = &p->capture.sessions;
    struct tec_plan_spec *s = set->spec;
    s->sessions = p->frame.sessions;
    if (s->sessions < 2 || set->secondary || set->ring)
        return TEC_OK;
    bool alone = set->n_memories ? p->n_chains == 1 : p->n_models == 1;
    bool acts = tec_model_acts(set->model);
    bool batches = (!acts || tec_model_batches(set->model)) && !set->n_memories;
    if (!batches && alone && together->n && together->item[together->n - 1] > 1)
        return refuse(&p->frame.where, TEC_MALFORMED, err,
                      "capture.sessions asks for several observations in a launch: there "
                      "is one in each with a memory, and of model",
                      set->model->name);
    for (int i = 0; i < together->n && batches; i++)
        if (together->item[i] > 1)
            s->together[s->n_together++] = together->item[i];
    if (!together->n && batches)
        s->together[s->n_together++] = s->sessions;
    return TEC_OK;
}

/* The action node that goes with the prefill, in one launch; -1 = none does. */
static int first_due(const struct tec_node_set *set)
{
    for (int i = 0; i < set->n_actions; i++)
        if (tec_pipeline_with_prefill(set->pipeline, set->actions[i]))
            return i;
    return -1;
}

static enum tec_status fill(const struct tec_node_set *set, struct tec_error *err)
{
    TEC_TRY(fill_prefill(set, err));
    for (int i = 0; i < set->n_actions; i++)
        TEC_TRY(fill_action(set, i, err));
    int with = set->n_actions ? first_due(set) : 0;
    set->spec->frame_action = with;
    if (set->n_memories)
        TEC_TRY(fill_memories(set, err));
    TEC_TRY(fill_language(set, err));
    set->spec->isolated |= set->n_actions && with >= 0 &&
                           tec_pipeline_leaves_prefill(set->pipeline, set->actions[with]);
    if (set->secondary)
        fill_secondary(set);
    return fill_sessions(set, err);
}

enum tec_status tec_spec_from_pipeline(struct tec_plan_spec *spec, const struct tec_pipeline *p,
                                       int chain, const struct tec_model *m, struct tec_heap *heap,
                                       struct tec_error *err)
{
    *spec = (struct tec_plan_spec){.text_tokens = 0};
    struct tec_node_set set = {.pipeline = p,
                               .model = m,
                               .index = p->chains[chain].model,
                               .secondary = !p->chains[chain].in_frames,
                               .spec = spec};
    set.nodes = tec_heap_get(heap, ((size_t)p->n_nodes + 1) * sizeof(void *));
    if (!set.nodes)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d nodes", p->n_nodes);
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].chain == chain)
            set.nodes[set.n++] = &p->nodes[i];
    enum tec_status status = TEC_OK;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && status == TEC_OK; i++)
        status = passes[i].run(&set, err);
    if (status == TEC_OK)
        status = fill(&set, err);
    tec_heap_put(heap, set.nodes);
    return status;
}

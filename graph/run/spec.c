/* spec.c - from a declaration to what the compiler needs: the passes over nodes (validate, merge,
 * cull) and the lattice that policies see. */
#include "graph/run/engine.h"

#include <string.h>

enum { DEFAULT_TOKENS = 64 };

static enum tec_status refuse(const struct tec_where *w, enum tec_status status,
                              struct tec_error *err, const char *what, const char *name)
{
    return tec_fail(err, status, "%s:%d: %s '%s'", w->file ? w->file : "?", w->line, what, name);
}

/* Two prefills are one when everything that their keys and values depend on is equal. */
static bool same_prefill(const struct tec_decl_node *a, const struct tec_decl_node *b)
{
    bool same = a->model.index == b->model.index && a->reads.n == b->reads.n &&
                (a->template == b->template ||
                 (a->template && b->template && strcmp(a->template, b->template) == 0));
    for (int i = 0; same && i < a->reads.n; i++)
        same = a->reads.item[i].index == b->reads.item[i].index;
    return same;
}

struct found {
    const struct tec_decl_node *prefill, *action;
    int decoders;
};

static enum tec_status visit(struct found *f, const struct tec_decl_node *n, struct tec_error *err)
{
    if (n->culled)
        return TEC_OK;
    if (n->kind == TEC_DECL_MEMORY_LOAD)
        return refuse(&n->where, TEC_UNSUPPORTED, err,
                      "this release reads and checks memory_load nodes but cannot run", n->name);
    if (n->pack_with.name || n->kv.prev)
        return refuse(&n->where, TEC_UNSUPPORTED, err,
                      "this release reads and checks ring pipelines but cannot run", n->name);
    if (n->kind == TEC_DECL_PREFILL && f->prefill && !same_prefill(f->prefill, n))
        return refuse(&n->where, TEC_UNSUPPORTED, err,
                      "this release runs one prefill a pipeline; another with other inputs is",
                      n->name);
    if (n->kind == TEC_DECL_ACTION && f->action)
        return refuse(&n->where, TEC_UNSUPPORTED, err,
                      "this release runs one action node a pipeline; a second is", n->name);
    if (n->kind == TEC_DECL_PREFILL && !f->prefill)
        f->prefill = n;
    if (n->kind == TEC_DECL_ACTION)
        f->action = n;
    f->decoders += n->kind == TEC_DECL_DECODE;
    return TEC_OK;
}

static enum tec_status find_nodes(struct found *f, const struct tec_pipeline *p,
                                  struct tec_error *err)
{
    *f = (struct found){NULL, NULL, 0};
    if (p->n_models > 1)
        return refuse(&p->models[1].where, TEC_UNSUPPORTED, err,
                      "this release runs one model a pipeline; a second is", p->models[1].name);
    for (int i = 0; i < p->n_nodes; i++)
        TEC_TRY(visit(f, &p->nodes[i], err));
    if (!f->prefill)
        return refuse(&p->where, TEC_UNSUPPORTED, err, "nothing to prefill in pipeline", p->name);
    if (f->decoders > TEC_MAX_DECODERS)
        return refuse(&p->where, TEC_UNSUPPORTED, err, "too many decode nodes in pipeline",
                      p->name);
    return TEC_OK;
}

static void fill_lattice(struct tec_plan_spec *s, const struct tec_pipeline *p)
{
    const struct tec_decl_capture *c = &p->capture;
    for (int i = 0; i < c->batch.n && i < TEC_MAX_BATCHES; i++)
        s->batches[s->n_batches++] = c->batch.item[i];
    if (!s->n_batches)
        s->batches[s->n_batches++] = s->seats;
    s->max_k = c->k.n ? c->k.item[c->k.n - 1] : s->new_tokens;
}

static enum tec_status fill_language(struct tec_plan_spec *s, const struct tec_pipeline *p,
                                     struct tec_error *err)
{
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->kind != TEC_DECL_DECODE || n->culled || n->kv.index < 0)
            continue;
        const struct tec_decl_resource *r = &p->resources[n->kv.index];
        if (r->kind != TEC_RESOURCE_REQUESTS || !r->share_prefix.name)
            return refuse(&n->where, TEC_UNSUPPORTED, err,
                          "decode needs kv.requests with share_prefix; not so", n->name);
        if (n->max_tokens > s->new_tokens)
            s->new_tokens = n->max_tokens;
        if (r->tokens < s->frame_tokens + n->max_tokens)
            return tec_fail(err, TEC_INVALID,
                            "%s:%d: '%s' holds %d tokens; a frame of %d and %d new ones need %d",
                            r->where.file, r->where.line, r->name, r->tokens, s->frame_tokens,
                            n->max_tokens, s->frame_tokens + n->max_tokens);
        s->seats = r->slots;
    }
    s->isolated = s->seats > 0;
    if (s->seats)
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
    return tec_fail(err, TEC_SHAPE, "%s:%d: buffer '%s' must be {%d, %d} for this model's chunk",
                    b->where.file, b->where.line, b->name, m->flow.horizon, m->flow.dim);
}

enum tec_status tec_spec_from_pipeline(struct tec_plan_spec *spec, const struct tec_pipeline *p,
                                       const struct tec_model *m, struct tec_error *err)
{
    struct found f;
    TEC_TRY(find_nodes(&f, p, err));
    *spec = (struct tec_plan_spec){.text_tokens = 0};
    const struct tec_decl_resource *frame = &p->resources[f.prefill->writes.index];
    if (frame->kind != TEC_RESOURCE_FRAME)
        return refuse(&f.prefill->where, TEC_UNSUPPORTED, err,
                      "this release prefills into kv.frame only; not so", f.prefill->name);
    spec->frame_tokens = frame->tokens;
    for (int i = 0; i < f.prefill->reads.n; i++) {
        const struct tec_decl_input *in = &p->inputs[f.prefill->reads.item[i].index];
        if (in->kind == TEC_INPUT_TEXT)
            spec->text_tokens += in->max_tokens;
    }
    if (!spec->text_tokens)
        return refuse(&f.prefill->where, TEC_INVALID, err, "no text input is read by prefill",
                      f.prefill->name);
    if (f.action) {
        spec->steps = f.action->steps ? f.action->steps : m->flow.steps;
        TEC_TRY(check_chunk(f.action, p, m, err));
    }
    return fill_language(spec, p, err);
}

static void copy_points(int *n, int *points, const struct tec_ints *from)
{
    for (*n = 0; *n < from->n && *n < TEC_MAX_AXIS; ++*n)
        points[*n] = from->item[*n];
}

static void add_node(struct tec_topology *t, const struct tec_pipeline *p,
                     const struct tec_decl_node *n)
{
    int i = t->n_nodes++;
    t->nodes[i].name = n->name;
    t->nodes[i].kind = tec_decl_node_word(n->kind);
    t->nodes[i].partition = n->partition.index >= 0 ? p->partitions[n->partition.index].name : "";
    t->nodes[i].deadline_us = (int64_t)(n->deadline.ms * 1000.0);
    t->nodes[i].hard = n->deadline.kind == TEC_DEADLINE_HARD;
    t->nodes[i].optional = n->when_policy;
}

/* `names` has room for all inputs, resources and partitions, in this order. */
void tec_topology_from_pipeline(struct tec_topology *t, const struct tec_pipeline *p,
                                const struct tec_plan_spec *spec, const struct tec_model *m,
                                const char **names)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < p->n_nodes && t->n_nodes < TEC_MAX_NODES; i++)
        if (!p->nodes[i].culled)
            add_node(t, p, &p->nodes[i]);
    copy_points(&t->n_batch, t->batch, &p->capture.batch);
    copy_points(&t->n_k, t->k, &p->capture.k);
    copy_points(&t->n_depth, t->depth, &p->capture.depth);
    for (t->n_ratio = 0; t->n_ratio < p->capture.ratio.n && t->n_ratio < TEC_MAX_AXIS; t->n_ratio++)
        t->ratio[t->n_ratio] = p->capture.ratio.item[t->n_ratio];
    t->inputs = names;
    for (int i = 0; i < p->n_inputs; i++)
        *names++ = p->inputs[t->n_inputs++].name;
    t->kv = names;
    for (int kind = 0; kind < 2; kind++) /* frames before requests, as the views are */
        for (int i = 0; i < p->n_resources; i++)
            if (p->resources[i].kind == (kind ? TEC_RESOURCE_REQUESTS : TEC_RESOURCE_FRAME)) {
                *names++ = p->resources[i].name;
                t->n_kv++;
            }
    t->partitions = names;
    for (int i = 0; i < p->n_partitions; i++)
        *names++ = p->partitions[t->n_partitions++].name;
    t->slots = spec->seats;
    t->horizon = m->flow.horizon;
    t->layers = m->text.stack.layers;
    t->period_us = (int64_t)(p->frame.period_ms * 1000.0);
    t->seed = (uint64_t)p->seed;
}

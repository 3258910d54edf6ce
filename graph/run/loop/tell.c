/* tell.c - what a frame does, told to the sink of events: launches, and what is done to caches.
 *
 * Frame thread; the sink neither allocates nor locks. */
#include "graph/run/loop/tell.h"

#include <string.h>

void tec_loop_tell(const struct tec_loop *l, struct tec_event event)
{
    if (!l->o.events.emit)
        return;
    event.lane = l->lane;
    event.tick = l->tick;
    l->o.events.emit(l->o.events.self, &event);
}

void tec_loop_tell_cache(const struct tec_loop *l, const char *what, int kv, int from,
                         int64_t request, int tokens, int64_t at_ns)
{
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_KV,
                                        .what = what,
                                        .kv = l->kv[kv].name,
                                        .from = from < 0 ? NULL : l->kv[from].name,
                                        .node = -1,
                                        .request = request,
                                        .tokens = tokens,
                                        .t_ns = at_ns});
}

void tec_loop_tell_kv(const struct tec_loop *l, const char *what, const struct tec_request *r,
                      int tokens, int64_t at_ns)
{
    const struct tec_chain *c = tec_chain_of(l, r);
    int from = strcmp(what, "fork") == 0 ? c->kv_frame : -1;
    tec_loop_tell_cache(l, what, tec_loop_texts(l, r->decoder), from, r->id, tokens, at_ns);
}

void tec_loop_tell_prefix(const struct tec_loop *l, const char *what, const struct tec_chain *c,
                          int tokens, int64_t at_ns)
{
    tec_loop_tell_cache(l, what, c->kv_frame, -1, -1, tokens, at_ns);
}

const char *tec_loop_node_name(const struct tec_loop *l, int node)
{
    return node >= 0 ? l->o.topology->nodes[node].name : "";
}

struct tec_launch_record *tec_loop_note(struct tec_loop *l, const char *node, int64_t start_ns,
                                        int64_t end_ns)
{
    struct tec_frame_record *r = &l->record;
    if (r->n_launches == TEC_MAX_LAUNCHES)
        return &r->launches[TEC_MAX_LAUNCHES - 1];
    struct tec_launch_record *launch = &r->launches[r->n_launches++];
    *launch = (struct tec_launch_record){.node = node,
                                         .rows = 1,
                                         .batch = 1,
                                         .k = 1,
                                         .request = -1,
                                         .start_ns = start_ns,
                                         .end_ns = end_ns};
    return launch;
}

void tec_loop_tell_run(const struct tec_loop *l, struct tec_event of, int64_t start_ns,
                       int64_t end_ns)
{
    const struct tec_ring_event ring = {.slot = -1, .base = -1};
    const struct tec_event end = {.kind = TEC_EVENT_END,
                                  .what = of.what,
                                  .node = of.node,
                                  .request = of.request,
                                  .drafted = of.drafted,
                                  .kept = of.kept,
                                  .ring = of.ring ? &ring : NULL,
                                  .t_ns = end_ns,
                                  .since_ns = start_ns};
    of.kind = TEC_EVENT_START;
    of.t_ns = start_ns;
    of.drafted = of.kept = 0;
    tec_loop_tell(l, of);
    tec_loop_tell(l, end);
}

static int one_or(int n)
{
    return n > 0 ? n : 1;
}

void tec_loop_tell_launch(struct tec_loop *l, struct tec_event of, int batch, int64_t start_ns,
                          int64_t end_ns)
{
    tec_loop_tell_run(l, of, start_ns, end_ns);
    struct tec_launch_record *note =
        tec_loop_note(l, tec_loop_node_name(l, of.node), start_ns, end_ns);
    note->rows = one_or(of.rows > 0 ? of.rows : of.observations);
    note->batch = one_or(batch);
    note->k = one_or(of.k > 0 ? of.k : of.slices);
    note->request = of.request;
}

/* The cache that a request's text is in; of one that is over that of its node. */
static int cache_of(const struct tec_loop *l, int64_t request, int node)
{
    for (int i = 0; i < l->n_live; i++)
        if (l->requests[i].id == request)
            return tec_loop_texts(l, l->requests[i].decoder);
    for (int d = 0; d < l->o.n_decoders; d++)
        if (l->o.decoders[d].node == node)
            return tec_loop_texts(l, d);
    return 0;
}

/* What is done with the keys of a launch's requests: told of each cache that they are in. */
static void tell_rows(const struct tec_loop *l, const char *what, int node, const int64_t *ids,
                      int n, int64_t at_ns)
{
    int64_t some[TEC_MAX_ROWS];
    bool told[TEC_MAX_ROWS] = {false};
    for (int i = 0; i < n && l->o.events.emit; i++) {
        int cache = cache_of(l, ids[i], node), count = 0;
        for (int k = i; k < n && !told[i]; k++)
            if (cache_of(l, ids[k], node) == cache) {
                some[count++] = ids[k];
                told[k] |= k > i;
            }
        if (count > 0)
            tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_KV,
                                                .what = what,
                                                .kv = l->kv[cache].name,
                                                .node = -1,
                                                .request = -1,
                                                .requests = some,
                                                .n = count,
                                                .t_ns = at_ns});
    }
}

void tec_loop_tell_batch(struct tec_loop *l, struct tec_event of, const struct tec_replay *p,
                         const struct tec_chain *c)
{
    tell_rows(l, "retrieve", of.node, of.requests, of.n, p->start_ns);
    tell_rows(l, "batch", of.node, of.requests, of.n, p->start_ns);
    of.request = -1;
    of.rows = of.n;
    of.padded =
        of.padded ? of.padded : tec_snap_up(c->plan->spec.batches, c->plan->spec.n_batches, of.n);
    tec_loop_tell_launch(l, of, of.padded, p->start_ns, p->end_ns);
}

void tec_loop_tell_unbatch(const struct tec_loop *l, int node, const int64_t *ids, int n,
                           int64_t at_ns)
{
    tell_rows(l, "unbatch", node, ids, n, at_ns);
}

void tec_loop_tell_rows(struct tec_loop *l, const struct tec_replay *replay, const int64_t *ids,
                        int n, int node)
{
    const struct tec_chain *c = &l->chains[l->o.topology->nodes[node].model];
    tec_loop_tell_batch(l, (struct tec_event){.node = node, .requests = ids, .n = n, .k = 1},
                        replay, c);
    tec_loop_tell_unbatch(l, node, ids, n, replay->end_ns);
}

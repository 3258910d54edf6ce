/* soft.c - language: new requests are stored, launches run, what they made is told and kept.
 *
 * Work becomes jobs first. Jobs of nodes on a partition of their own run beside the frame's hard
 * nodes and are settled after them; the others run and are settled one by one. */
#include "graph/run/state.h"

#include <string.h>

static int partition_of(const struct tec_loop *l, int node)
{
    const struct tec_topology *t = l->o.topology;
    if (node < 0 || l->decision.nodes[node].partition >= 0)
        return node < 0 ? -1 : l->decision.nodes[node].partition;
    for (int i = 0; i < t->n_partitions; i++)
        if (t->nodes[node].partition && strcmp(t->nodes[node].partition, t->partitions[i]) == 0)
            return i;
    return -1;
}

static bool is_concurrent(const struct tec_loop *l, int row)
{
    const struct tec_chain *c = tec_chain_of(l, &l->requests[row]);
    int own = partition_of(l, l->o.decoders[l->requests[row].decoder].node);
    int hard = c->action >= 0 ? tec_chain_actor(l, c) : c->prefill_node;
    return c->parted && !l->requests[row].whole && own >= 0 && own != partition_of(l, hard) &&
           !tec_loop_awaits(l, &l->requests[row]) && !tec_loop_drafts(l, l->requests[row].decoder);
}

/* A prefill of its own is of this frame's observation: not in place of an earlier frame's prefix.
 */
static bool unshared(const struct tec_loop *l, int row)
{
    const struct tec_chain *c = tec_chain_of(l, &l->requests[row]);
    return l->decision.rows[row].unshare && c->in_frames && c->plan->spec.isolated &&
           !tec_loop_awaits(l, &l->requests[row]) && c->prefix.frame == l->tick->frame;
}

/* --- jobs ------------------------------------------------------------------------------------ */

static struct tec_launch *add_job(struct tec_loop *l, enum tec_launch_kind kind, int row, int first,
                                  int n)
{
    struct tec_launch *job = &l->jobs[l->n_jobs];
    l->notes[l->n_jobs++] = (struct tec_loop_job){
        .beside = is_concurrent(l, n ? l->order[first] : row), .row = row, .first = first, .n = n};
    memset(job, 0, sizeof *job);
    job->kind = kind;
    return job;
}

/* A private prefill for each new request that does not share, in order of id. */
static void add_prefill(struct tec_loop *l, int row)
{
    const struct tec_chain *c = tec_chain_of(l, &l->requests[row]);
    struct tec_launch *job = add_job(l, TEC_LAUNCH_prefix, row, 0, 0);
    struct tec_observed *of = &l->notes[l->n_jobs - 1].of;
    *of = (struct tec_observed){tec_kv_pool_take(&c->plan->prefixes),
                                tec_chain_input(l, c, l->input)};
    job->prefix = (struct tec_prefix_launch){.each = of, .n = 1};
}

static void add_concurrent_prefills(struct tec_loop *l, const struct tec_chain *c)
{
    for (int i = 0; i < l->n_live; i++)
        if (!l->requests[i].stored && unshared(l, i) && is_concurrent(l, i) &&
            tec_chain_of(l, &l->requests[i]) == c)
            add_prefill(l, i);
}

static void add_decode(struct tec_loop *l, int first, int n, int k)
{
    struct tec_request *of = &l->requests[l->order[first]];
    const struct tec_token_tree *tree = l->o.decoders[of->decoder].tree;
    int max_k = tec_chain_of(l, of)->plan->spec.max_k;
    struct tec_launch *job = add_job(l, tree ? TEC_LAUNCH_score : TEC_LAUNCH_decode, -1, first, n);
    if (tree)
        job->score = (struct tec_tree_launch){
            .tree = tree, .row = &of->row, .likely = l->likely + (ptrdiff_t)first * l->entries};
    else
        job->decode = (struct tec_decode_launch){.rows = &l->states[first],
                                                 .n = n,
                                                 .k = k < max_k ? k : max_k,
                                                 .tokens = l->tokens + (ptrdiff_t)first * l->max_k,
                                                 .made = l->made + first};
    for (int i = first; i < first + n; i++) {
        const struct tec_request *r = &l->requests[l->order[i]];
        l->states[i] = &l->requests[l->order[i]].row;
        job->after_prefill |= !r->stored && !unshared(l, l->order[i]);
    }
}

static bool ranks(const struct tec_loop *l, int at)
{
    return l->o.decoders[l->requests[l->order[at]].decoder].tree != NULL;
}

/* The decoder whose draft proposes the row's tokens; -1 = nobody does. */
static int draft_of(const struct tec_loop *l, int at)
{
    int decoder = l->requests[l->order[at]].decoder;
    return tec_loop_drafts(l, decoder) ? decoder : -1;
}

static bool same_launch(const struct tec_loop *l, int a, int b)
{
    const struct tec_row_decision *x = &l->decision.rows[l->order[a]],
                                  *y = &l->decision.rows[l->order[b]];
    if (ranks(l, a) || ranks(l, b))
        return false; /* a tree is a launch of its own */
    if (draft_of(l, a) != draft_of(l, b))
        return false;
    return x->k == y->k && x->group == y->group &&
           tec_chain_at(l, &l->requests[l->order[a]]) ==
               tec_chain_at(l, &l->requests[l->order[b]]) &&
           is_concurrent(l, l->order[a]) == is_concurrent(l, l->order[b]);
}

/* Those beside the hard nodes first, each side in its order: rows of a launch stay together. */
static void part_order(struct tec_loop *l)
{
    int others[TEC_MAX_ROWS], n = 0, kept = 0;
    for (int i = 0; i < l->n_order; i++) {
        if (is_concurrent(l, l->order[i]))
            l->order[kept++] = l->order[i];
        else
            others[n++] = l->order[i];
    }
    for (int i = 0; i < n; i++)
        l->order[kept + i] = others[i];
}

/* More rows than the largest captured batch are split, full launches first. `beside`: those of a
 * chain beside its hard nodes; NULL: those that are beside none. */
static void add_decodes(struct tec_loop *l, const struct tec_chain *beside)
{
    for (int i = 0, n; i < l->n_order; i += n) {
        const struct tec_chain *c = tec_chain_of(l, &l->requests[l->order[i]]);
        const struct tec_plan_spec *s = &c->plan->spec;
        int largest = s->n_batches ? s->batches[s->n_batches - 1] : 1;
        for (n = 1; i + n < l->n_order && n < largest && same_launch(l, i, i + n); n++)
            ;
        if (is_concurrent(l, l->order[i]) ? c == beside : !beside)
            add_decode(l, i, n, l->decision.rows[l->order[i]].k);
    }
}

/* --- settling -------------------------------------------------------------------------------- */

/* On the prefix of its session. */
static void store(struct tec_loop *l, int row, int region, int64_t at_ns)
{
    struct tec_request *r = &l->requests[row];
    struct tec_chain *c = tec_chain_of(l, r);
    tec_loop_turn_of(l, r);
    r->shared = !unshared(l, row);
    if (r->shared) {
        tec_kv_pool_pin(&c->plan->prefixes, region);
        tec_loop_tell_kv(l, "fork", r, c->prefix.rows, at_ns);
    }
    tec_text_keys_see(l, r);
    tec_requests_store(l, r, region, at_ns);
}

static void settle_prefill(struct tec_loop *l, int at)
{
    const struct tec_replay *p = &l->jobs[at].replay;
    struct tec_request *r = &l->requests[l->notes[at].row];
    const struct tec_chain *c = tec_chain_of(l, r);
    int64_t end = p->mark_ns[TEC_MARK_PREFILL];
    tec_loop_tell_kv(l, "alloc", r, c->prefix.rows, p->start_ns);
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_START,
                                        .node = c->prefill_node,
                                        .request = r->id,
                                        .t_ns = p->start_ns});
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_END,
                                        .node = c->prefill_node,
                                        .request = r->id,
                                        .t_ns = end,
                                        .since_ns = p->start_ns});
    tec_loop_note(l, tec_loop_node_name(l, c->prefill_node), p->start_ns, end)->request = r->id;
    tec_loop_measure_prefix(l, tec_chain_index(l, c), p, false, 1);
    store(l, l->notes[at].row, l->notes[at].of.region, end);
}

static void tell_rows(const struct tec_loop *l, const char *what, const struct tec_chain *s,
                      const int64_t *ids, int n, int64_t at_ns)
{
    int kv = s->kv_requests < 0 ? s->kv_frame : s->kv_requests;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_KV,
                                        .what = what,
                                        .kv = l->kv[kv].name,
                                        .node = -1,
                                        .request = -1,
                                        .requests = ids,
                                        .n = n,
                                        .t_ns = at_ns});
}

static void tell_launch(struct tec_loop *l, const struct tec_decode_launch *d,
                        const struct tec_replay *p, const struct tec_chain *s, const int64_t *ids,
                        int node, int padded)
{
    tell_rows(l, "retrieve", s, ids, d->n, p->start_ns);
    tell_rows(l, "batch", s, ids, d->n, p->start_ns);
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_START,
                                        .node = node,
                                        .request = -1,
                                        .requests = ids,
                                        .n = d->n,
                                        .rows = d->n,
                                        .padded = padded,
                                        .k = d->k,
                                        .t_ns = p->start_ns});
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_END,
                                        .node = node,
                                        .request = -1,
                                        .drafted = d->drafted,
                                        .kept = d->kept,
                                        .t_ns = p->end_ns,
                                        .since_ns = p->start_ns});
}

static void settle_score(struct tec_loop *l, int at)
{
    const struct tec_launch *job = &l->jobs[at];
    const struct tec_decode_launch one = {.n = 1, .k = 1};
    struct tec_request *r = &l->requests[l->order[l->notes[at].first]];
    const struct tec_chain *s = tec_chain_of(l, r);
    int node = l->o.decoders[r->decoder].node;
    tell_launch(l, &one, &job->replay, s, &r->id, node, 1);
    tell_rows(l, "unbatch", s, &r->id, 1, job->replay.end_ns);
    tec_requests_rank(l, r, job->score.likely, job->replay.end_ns);
    struct tec_launch_record *launch =
        tec_loop_note(l, tec_loop_node_name(l, node), job->replay.start_ns, job->replay.end_ns);
    launch->rows = launch->batch = launch->k = 1;
    l->record.rows++;
    tec_loop_measure_score(l, tec_chain_at(l, r), &job->replay);
}

static void settle_decode(struct tec_loop *l, int at)
{
    const struct tec_decode_launch *job = &l->jobs[at].decode;
    const struct tec_replay *p = &l->jobs[at].replay;
    const int *rows = l->order + l->notes[at].first;
    int64_t ids[TEC_MAX_ROWS], end = p->end_ns;
    int steps = 0, node = l->o.decoders[l->requests[rows[0]].decoder].node;
    int chain = tec_chain_at(l, &l->requests[rows[0]]);
    const struct tec_chain *s = &l->chains[chain];
    int padded = tec_snap_up(s->plan->spec.batches, s->plan->spec.n_batches, job->n);
    for (int i = 0; i < job->n; i++)
        ids[i] = l->requests[rows[i]].id;
    tell_launch(l, job, p, s, ids, node, padded);
    for (int i = 0; i < job->n; i++) {
        tec_loop_turn_of(l, &l->requests[rows[i]]);
        tec_loop_tell_kv(l, "append", &l->requests[rows[i]], job->made[i], end);
        steps = job->rows[i]->steps > steps ? job->rows[i]->steps : steps;
    }
    tec_loop_turn(l, 0);
    tell_rows(l, "unbatch", s, ids, job->n, end);
    for (int i = 0; i < job->n; i++) {
        tec_loop_turn_of(l, &l->requests[rows[i]]);
        tec_requests_update(l, &l->requests[rows[i]], job->tokens + (ptrdiff_t)i * job->k,
                            job->made[i], end);
    }
    tec_loop_turn(l, 0);
    struct tec_launch_record *launch =
        tec_loop_note(l, tec_loop_node_name(l, node), p->start_ns, end);
    launch->rows = job->n;
    launch->batch = padded;
    launch->k = job->k;
    l->record.rows += job->n;
    l->record.drafted += job->drafted;
    l->record.kept += job->kept;
    tec_loop_measure_decode(l, chain, p, job->n, job->k, steps);
}

static bool is_prefill(const struct tec_loop *l, int at)
{
    return l->jobs[at].kind == TEC_LAUNCH_prefix;
}

/* A launch that failed made nothing: of its requests nothing is told or kept. */
static void settle(struct tec_loop *l, int at)
{
    static void (*const settles[TEC_LAUNCH_COUNT])(struct tec_loop *,
                                                   int) = {[TEC_LAUNCH_prefix] = settle_prefill,
                                                           [TEC_LAUNCH_score] = settle_score,
                                                           [TEC_LAUNCH_decode] = settle_decode};
    const struct tec_replay *p = &l->jobs[at].replay;
    if (p->status != TEC_OK) {
        l->record.failed = true;
        if (is_prefill(l, at))
            tec_kv_pool_drop(&tec_chain_of(l, &l->requests[l->notes[at].row])->plan->prefixes,
                             l->notes[at].of.region);
        tec_loop_replayed(l, p->start_ns, p->end_ns);
        return;
    }
    settles[l->jobs[at].kind](l, at);
}

/* --- running --------------------------------------------------------------------------------- */

static void run_job(struct tec_loop *l, int at)
{
    struct tec_launch *job = &l->jobs[at];
    int row = is_prefill(l, at) ? l->notes[at].row : l->order[l->notes[at].first];
    const struct tec_request *r = &l->requests[row];
    if (job->kind == TEC_LAUNCH_decode && tec_loop_drafts(l, r->decoder))
        tec_drafts_run(l, job, l->order + l->notes[at].first);
    else
        tec_executor_launch(tec_chain_of(l, r)->executor, job);
    settle(l, at);
}

void tec_loop_store(struct tec_loop *l, int row)
{
    tec_loop_turn_of(l, &l->requests[row]);
    store(l, row, tec_chain_of(l, &l->requests[row])->prefix.region, tec_loop_now(l));
}

/* The job is settled, so its place is the next one's. */
void tec_loop_advance(struct tec_loop *l, int first, int n, int k)
{
    add_decode(l, first, n, k);
    run_job(l, l->n_jobs - 1);
    l->n_jobs--;
}

void tec_loop_tell_rows(struct tec_loop *l, const struct tec_replay *replay, const int64_t *ids,
                        int n, int node)
{
    const struct tec_chain *c = &l->chains[l->o.topology->nodes[node].model];
    const struct tec_plan_spec *s = &c->plan->spec;
    const struct tec_decode_launch one = {.n = n, .k = 1};
    int padded = tec_snap_up(s->batches, s->n_batches, n);
    tell_launch(l, &one, replay, c, ids, node, padded);
    tell_rows(l, "unbatch", c, ids, n, replay->end_ns);
    struct tec_launch_record *launch =
        tec_loop_note(l, tec_loop_node_name(l, node), replay->start_ns, replay->end_ns);
    launch->rows = n;
    launch->batch = padded;
}

/* New requests in order of id: by reference, or after a prefill of their own. */
static void store_new(struct tec_loop *l, bool beside)
{
    for (int i = 0; i < l->n_live; i++) {
        tec_loop_turn_of(l, &l->requests[i]);
        if (l->requests[i].stored || is_concurrent(l, i) != beside || l->requests[i].pending >= 0)
            continue;
        if (!unshared(l, i)) {
            store(l, i, tec_chain_of(l, &l->requests[i])->prefix.region, tec_loop_now(l));
            continue;
        }
        add_prefill(l, i);
        run_job(l, l->n_jobs - 1);
    }
}

/* A row that starts on the frame's prefix before that is known to be there: its launch waits. */
static void start_rows(struct tec_loop *l)
{
    for (int i = 0; i < l->n_live; i++) {
        struct tec_request *r = &l->requests[i];
        if (r->stored || !is_concurrent(l, i))
            continue;
        int region = tec_chain_of(l, r)->prefix.region;
        for (int j = 0; j < l->n_jobs; j++)
            if (is_prefill(l, j) && l->notes[j].row == i)
                region = l->notes[j].of.region;
        tec_requests_start(l, r, region);
    }
}

/* A prompt of remembered segments has one owner, who recalls the frame's prompt meanwhile. */
static void keep_recalls(struct tec_loop *l)
{
    for (int i = 0; i < l->n_live; i++)
        l->requests[i].whole = tec_chain_of(l, &l->requests[i])->plan->spec.segments > 0 &&
                               !l->requests[i].stored && unshared(l, i);
}

void tec_loop_start_concurrent(struct tec_loop *l, struct tec_chain *c)
{
    const struct tec_executor *e = c->executor;
    keep_recalls(l);
    part_order(l);
    add_concurrent_prefills(l, c);
    add_decodes(l, c);
    if (l->n_jobs == 0)
        return;
    start_rows(l);
    e->start(e->self, l->jobs, l->n_jobs);
}

/* Settles the jobs that ran beside the hard nodes, in the order of their times. */
static void settle_concurrent(struct tec_loop *l, const struct tec_executor *e)
{
    int n = l->n_jobs;
    int64_t waited = tec_loop_now(l);
    e->wait(e->self);
    tec_loop_replayed(l, waited, tec_loop_now(l));
    l->lane = 1;
    for (int at = 0; at < n; at++) {
        if (!is_prefill(l, at))
            for (int i = 0; i < l->n_live; i++)
                if (!l->requests[i].stored && is_concurrent(l, i) && !unshared(l, i))
                    store(l, i, tec_chain_of(l, &l->requests[i])->prefix.region,
                          l->jobs[at].replay.start_ns);
        settle(l, at);
    }
    store_new(l, true); /* those that only wait */
    l->lane = 2;
}

/* Rows whose prefill was to end in this frame, but had to wait for what is kept. */
static void drop_waiting(struct tec_loop *l)
{
    int kept = 0;
    for (int i = 0; i < l->n_order; i++) {
        const struct tec_request *r = &l->requests[l->order[i]];
        if (r->pending < 0 && r->draft.pending < 0)
            l->order[kept++] = l->order[i];
    }
    l->n_order = kept;
}

/* The chain that jobs run beside in this frame; NULL = none. */
static const struct tec_chain *parted(const struct tec_loop *l)
{
    for (int i = 0; i < l->o.n_chains; i++)
        if (l->chains[i].parted)
            return &l->chains[i];
    return NULL;
}

void tec_loop_run_soft(struct tec_loop *l)
{
    int first = l->n_jobs;
    bool input = tec_loop_observed(l);
    const struct tec_chain *beside = parted(l);
    if (beside && first)
        settle_concurrent(l, beside->executor);
    if (tec_loop_failed(l)) /* there may be no prefix to store a request on */
        return;
    if (input)
        store_new(l, false);
    if (input && beside && !first)
        store_new(l, true);
    tec_loop_turn(l, 0);
    if (tec_loop_failed(l)) /* rows whose prefix was not made are no rows */
        return;
    tec_pending_prefill_run(l);
    if (l->record.failed)
        return;
    drop_waiting(l);
    first = l->n_jobs;
    add_decodes(l, NULL);
    for (int at = first; at < l->n_jobs; at++)
        run_job(l, at);
    if (!l->record.failed)
        tec_text_keys_complete(l);
}

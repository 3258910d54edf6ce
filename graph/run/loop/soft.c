/* soft.c - language: new requests are stored, launches run, what they made is told and kept.
 *
 * Items of nodes on a partition of their own run beside the frame's hard nodes, from fork to join;
 * the others run and are settled one by one. */
#include "graph/run/loop/soft.h"
#include "graph/run/loop/drafts.h"
#include "graph/run/loop/measure.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/pictures.h"
#include "graph/run/loop/requests.h"
#include "graph/run/loop/tell.h"
#include "graph/run/loop/text_keys.h"

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

/* --- launches -------------------------------------------------------------------------------- */

/* A private prefill of a new request that does not share. */
static void fill_prefill(struct tec_loop *l, struct tec_scheduled *it, int row)
{
    it->chain = tec_chain_of(l, &l->requests[row]);
    it->first = row;
    it->observed =
        tec_pictures_observed(l, it->chain, tec_kv_pool_take(&it->chain->plan->prefixes));
    it->observed.known &= it->state != TEC_ITEM_BESIDE;
    *it->launch =
        (struct tec_launch){.kind = TEC_LAUNCH_prefix, .prefix = {.each = &it->observed, .n = 1}};
}

void tec_loop_fill_rows(struct tec_loop *l, struct tec_scheduled *it, int first, int n, int k)
{
    const struct tec_request *of = &l->requests[l->order[first]];
    const struct tec_token_tree *tree = l->o.decoders[of->decoder].tree;
    it->chain = tec_chain_of(l, of);
    it->first = first;
    it->n = n;
    int max_k = it->chain->plan->spec.max_k, turn = l->turn;
    struct tec_launch *launch = it->launch;
    *launch = (struct tec_launch){.kind = tree ? TEC_LAUNCH_score : TEC_LAUNCH_decode};
    if (tree)
        launch->score = (struct tec_score_launch){
            .tree = tree, .row = &of->row, .likely = l->likely + (ptrdiff_t)first * l->entries};
    else
        launch->decode =
            (struct tec_decode_launch){.rows = &l->states[first],
                                       .n = n,
                                       .k = k < max_k ? k : max_k,
                                       .tokens = l->tokens + (ptrdiff_t)first * l->max_k,
                                       .made = l->made + first};
    for (int i = first; i < first + n; i++) {
        struct tec_request *r = &l->requests[l->order[i]];
        l->states[i] = &r->row;
        if (r->stored)
            continue;
        tec_loop_turn_of(l, r);
        launch->after_prefill |= !unshared(l, l->order[i]);
    }
    tec_loop_turn(l, turn);
}

void tec_loop_launch_rows(struct tec_loop *l, struct tec_scheduled *it)
{
    const int *rows = l->order + it->first;
    if (it->launch->kind == TEC_LAUNCH_decode && tec_loop_drafts(l, l->requests[*rows].decoder))
        tec_drafts_run(l, it->launch, rows);
    else
        tec_executor_launch(it->chain->executor, it->launch);
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

/* How many rows from there on are one launch: more than the largest captured batch are split, full
 * launches first. */
static int rows_from(const struct tec_loop *l, int at)
{
    int n = 1, largest = tec_plan_batch(tec_chain_of(l, &l->requests[l->order[at]])->plan);
    while (at + n < l->n_order && n < largest && same_launch(l, at, at + n))
        n++;
    return n;
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
    tec_loop_text_keys_see(l, r);
    tec_requests_store(l, r, region, at_ns);
}

static void settle_prefill(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_replay *p = &it->launch->replay;
    const struct tec_request *r = &l->requests[it->first];
    int64_t end = p->mark_ns[TEC_MARK_PREFILL];
    tec_loop_tell_kv(l, "alloc", r, it->chain->prefix.rows, p->start_ns);
    tec_loop_tell_launch(l, (struct tec_event){.node = it->chain->prefill_node, .request = r->id},
                         1, p->start_ns, end);
    tec_loop_measure_prefix(l, it->chain, p, false, 1);
    tec_loop_turn_of(l, r);
    if (it->state != TEC_ITEM_BESIDE)
        tec_pictures_keep(it->chain, tec_pictures_of(l, &it->observed.input->prefix));
    store(l, it->first, it->observed.region, end);
}

static void fail_prefill(struct tec_loop *l, struct tec_scheduled *it)
{
    (void)l;
    tec_kv_pool_drop(&it->chain->plan->prefixes, it->observed.region);
}

/* The tokens of each row; returns the steps that the launch made. */
static int tell_tokens(struct tec_loop *l, const struct tec_decode_launch *d, const int *rows,
                       int64_t at_ns)
{
    int steps = 0;
    for (int i = 0; i < d->n; i++) {
        tec_loop_turn_of(l, &l->requests[rows[i]]);
        tec_loop_tell_kv(l, "append", &l->requests[rows[i]], d->made[i], at_ns);
        steps = d->rows[i]->steps > steps ? d->rows[i]->steps : steps;
    }
    tec_loop_turn(l, 0);
    return steps;
}

/* A ranking is one row of one step, of which no token is told. */
void tec_loop_settle_rows(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_decode_launch one = {.n = 1, .k = 1};
    const struct tec_replay *p = &it->launch->replay;
    bool ranks = it->launch->kind == TEC_LAUNCH_score;
    const struct tec_decode_launch *d = ranks ? &one : &it->launch->decode;
    const int *rows = l->order + it->first;
    int64_t ids[TEC_MAX_ROWS];
    for (int i = 0; i < d->n; i++)
        ids[i] = l->requests[rows[i]].id;
    tec_loop_tell_batch(l,
                        (struct tec_event){.node = l->o.decoders[l->requests[rows[0]].decoder].node,
                                           .requests = ids,
                                           .n = d->n,
                                           .padded = ranks,
                                           .k = d->k,
                                           .drafted = d->drafted,
                                           .kept = d->kept},
                        p, it->chain);
    int steps = ranks ? 1 : tell_tokens(l, d, rows, p->end_ns);
    tec_loop_tell_unbatch(l, l->o.decoders[l->requests[rows[0]].decoder].node, ids, d->n,
                          p->end_ns);
    for (int i = 0; i < d->n; i++) {
        struct tec_request *r = &l->requests[rows[i]];
        tec_loop_turn_of(l, r);
        if (ranks)
            tec_requests_rank(l, r, it->launch->score.likely, p->end_ns);
        else
            tec_requests_update(l, r, d->tokens + (ptrdiff_t)i * d->k, d->made[i], p->end_ns);
    }
    tec_loop_turn(l, 0);
    l->record.rows += d->n;
    l->record.drafted += d->drafted;
    l->record.kept += d->kept;
    tec_loop_measure(l, it->chain, ranks ? TEC_COST_SCORE : TEC_COST_DECODE, ranks ? 0 : d->n, d->k,
                     steps, p->end_ns - p->start_ns);
}

/* --- new requests ---------------------------------------------------------------------------- */

void tec_loop_store(struct tec_loop *l, int row)
{
    tec_loop_turn_of(l, &l->requests[row]);
    store(l, row, tec_chain_of(l, &l->requests[row])->prefix.region, tec_loop_now(l));
}

static bool is_new(const struct tec_loop *l, int row, bool beside)
{
    const struct tec_request *r = &l->requests[row];
    return !r->stored && is_concurrent(l, row) == beside && r->pending < 0;
}

/* In order of id: by reference, or after a prefill of their own. `of`: those of jobs beside. */
static bool next_store(struct tec_loop *l, struct tec_scheduled *it)
{
    if (it->at == 0 && tec_loop_failed(l)) /* there may be no prefix to store a request on */
        return false;
    for (; it->n < l->n_live; it->n++) {
        tec_loop_turn_of(l, &l->requests[it->n]);
        if (!is_new(l, it->n, it->of))
            continue;
        if (unshared(l, it->n)) {
            fill_prefill(l, it, it->n++);
            return true;
        }
        if (tec_chain_of(l, &l->requests[it->n])->prefix.region < 0)
            continue; /* its chain has failed */
        tec_loop_store(l, it->n);
    }
    return false;
}

const struct tec_scheduled_kind tec_scheduled_store = {
    .next = next_store, .settle = settle_prefill, .fail = fail_prefill, .always = true};

/* --- beside the hard nodes ------------------------------------------------------------------- */

static struct tec_scheduled *add_beside(struct tec_loop *l, const struct tec_scheduled_kind *kind,
                                        int row)
{
    struct tec_scheduled *it = tec_schedule_add(l, kind, NULL, l->turn, row);
    it->state = TEC_ITEM_BESIDE;
    it->launch = &l->jobs[l->n_jobs++];
    return it;
}

static bool is_prefill(const struct tec_scheduled *it)
{
    return it->state == TEC_ITEM_BESIDE && it->kind == &tec_scheduled_store;
}

/* The next request from i on that is not stored, with its session's turn; n_live = there is none.
 */
static int next_new(struct tec_loop *l, int i)
{
    while (i < l->n_live && l->requests[i].stored)
        i++;
    if (i < l->n_live)
        tec_loop_turn_of(l, &l->requests[i]);
    return i;
}

/* A row that starts on the frame's prefix before that is known to be there: its launch waits. */
static void start_rows(struct tec_loop *l)
{
    for (int i = next_new(l, 0); i < l->n_live; i = next_new(l, i + 1)) {
        struct tec_request *r = &l->requests[i];
        if (!is_concurrent(l, i))
            continue;
        int region = tec_chain_of(l, r)->prefix.region;
        for (int j = 0; j < l->n_items; j++)
            if (is_prefill(&l->items[j]) && l->items[j].of == i)
                region = l->items[j].observed.region;
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

/* Launches that start together stand one after the other in `jobs`. */
static bool next_fork(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_executor *e = it->chain->executor;
    keep_recalls(l);
    part_order(l);
    for (int i = next_new(l, 0); i < l->n_live; i = next_new(l, i + 1))
        if (unshared(l, i) && is_concurrent(l, i) && tec_chain_of(l, &l->requests[i]) == it->chain)
            fill_prefill(l, add_beside(l, &tec_scheduled_store, i), i);
    for (int i = 0, n; i < l->n_order; i += n) {
        n = rows_from(l, i);
        if (is_concurrent(l, l->order[i]) &&
            tec_chain_of(l, &l->requests[l->order[i]]) == it->chain)
            tec_loop_fill_rows(l, add_beside(l, &tec_scheduled_rows, -1), i, n,
                               l->decision.rows[l->order[i]].k);
    }
    if (l->n_jobs > 0) {
        start_rows(l);
        e->start(e->self, l->jobs, l->n_jobs);
    }
    return false;
}

const struct tec_scheduled_kind tec_scheduled_fork = {.next = next_fork};

/* New requests whose rows ran beside, or only wait. */
static void store_beside(struct tec_loop *l, int64_t at_ns)
{
    for (int i = next_new(l, 0); i < l->n_live; i = next_new(l, i + 1))
        if (is_concurrent(l, i) && !unshared(l, i))
            store(l, i, tec_chain_of(l, &l->requests[i])->prefix.region, at_ns);
}

/* Settled in the order of their times. */
static bool next_join(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_executor *e = it->chain->executor;
    int64_t waited = tec_loop_now(l);
    e->wait(e->self);
    tec_loop_replayed(l, waited, tec_loop_now(l));
    l->lane = 1;
    for (int i = 0; i < l->n_items; i++) {
        struct tec_scheduled *beside = &l->items[i];
        if (beside->state != TEC_ITEM_BESIDE)
            continue;
        if (!is_prefill(beside))
            store_beside(l, beside->launch->replay.start_ns);
        tec_loop_turn(l, is_prefill(beside) ? beside->who : 0);
        tec_schedule_settle(l, beside);
        beside->state = TEC_ITEM_OVER;
    }
    store_beside(l, tec_loop_now(l));
    l->lane = 2;
    return false;
}

const struct tec_scheduled_kind tec_scheduled_join = {.next = next_join, .always = true};

/* --- the frame's text ------------------------------------------------------------------------ */

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

/* Launch by launch; rows that ran beside hard nodes have had theirs. */
static bool next_rows(struct tec_loop *l, struct tec_scheduled *it)
{
    if (it->at == 0)
        drop_waiting(l);
    int at = it->first + it->n;
    while (at < l->n_order && is_concurrent(l, l->order[at]))
        at++;
    if (at < l->n_order && it->at > 0 && tec_loop_yields(l)) {
        l->record.cut = true;
        return false;
    }
    if (at < l->n_order)
        tec_loop_fill_rows(l, it, at, rows_from(l, at), l->decision.rows[l->order[at]].k);
    return at < l->n_order;
}

const struct tec_scheduled_kind tec_scheduled_rows = {
    .next = next_rows, .launch = tec_loop_launch_rows, .settle = tec_loop_settle_rows};

/* The chain that jobs run beside in this frame; NULL = none. */
static struct tec_chain *parted(const struct tec_loop *l)
{
    for (int i = 0; i < l->o.n_chains; i++)
        if (l->chains[i].parted)
            return &l->chains[i];
    return NULL;
}

void tec_loop_add_soft(struct tec_loop *l, bool observed)
{
    struct tec_chain *beside = parted(l);
    if (beside && l->n_jobs > 0)
        tec_schedule_add(l, &tec_scheduled_join, beside, 0, 0);
    for (int side = 0; observed && side < 1 + (beside && l->n_jobs == 0); side++)
        tec_schedule_add(l, &tec_scheduled_store, NULL, 0, side);
    for (int i = 0; i < l->n_planned; i++)
        tec_schedule_add(l, &tec_scheduled_slice, l->pending[l->turns[i]].chain, 0, i);
    tec_schedule_add(l, &tec_scheduled_rows, NULL, 0, 0);
    if (l->text_keys)
        tec_schedule_add(l, &tec_scheduled_keys, NULL, 0, 0);
}

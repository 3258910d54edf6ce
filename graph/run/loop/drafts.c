/* drafts.c - speculation: a small model proposes tokens of a request, the request's own looks at
 * them in one forward and keeps the longest beginning that it would have said.
 *
 * Frame thread; nothing allocates. A job of k steps is rounds, at most k of them: in each the small
 * model decodes for all rows that are not through, then one forward of the large one makes at least
 * a token of every row. What a job makes is exactly what k steps of decode would have made: a round
 * proposes no more than the job, or the request, has left. So a round is what a step costs here.
 *
 * The small model's row stands before what it has not read. That is one token, or two where all
 * that it proposed was kept, as it never reads its last one. Rejected tokens leave keys behind in
 * both caches; the next rows begin in front of them and write there. */
#include "graph/run/loop/drafts.h"
#include "graph/run/loop/measure.h"
#include "graph/run/loop/tell.h"

#include <string.h>

/* A row of a round: the request's, its draft, and what it may still make in this job. */
struct racing {
    struct tec_row_state *row;
    struct tec_draft *draft;
    int steps;                        /* that the job has left for it */
    int *tokens, made, drafted, kept; /* of the job */
    int n, drafts[TEC_MAX_DRAFT];
};

/* The models of a job, and how many tokens the small one proposes. */
struct race {
    const struct tec_chain *main, *small;
    int tokens, n;
    struct racing *rows; /* [n] */
};

/* The chain that proposes. */
static const struct tec_chain *small_of(const struct tec_loop *l, const struct tec_decoder *d)
{
    return &l->chains[d->draft - 1];
}

/* --- lives ----------------------------------------------------------------------------------- */

static void tell_prefix(const struct tec_loop *l, const struct tec_request *r, const char *what,
                        int tokens, int64_t at_ns)
{
    int kv = small_of(l, &l->o.decoders[r->decoder])->kv_frame;
    tec_loop_tell_cache(l, what, kv, kv, r->id, tokens, at_ns);
}

/* A row of a small model, without an end: where it stops is where its request does. */
static void start_row(struct tec_draft *d, const struct tec_plan *plan, int region, int prefix,
                      int last_token, int request_slot)
{
    tec_row_start(&d->row, plan, region, prefix, last_token, request_slot, 1,
                  plan->model->text.eos);
    d->row.request = -1;
    d->n_unread = 1;
    d->unread[0] = last_token;
}

void tec_draft_start(struct tec_loop *l, struct tec_request *r, const struct tec_pending_prefill *a,
                     int64_t at_ns)
{
    struct tec_plan *plan = a->chain->plan;
    struct tec_draft *d = &r->draft;
    tec_kv_pool_pin(&plan->prefixes, a->region);
    start_row(d, plan, a->region, a->rows, a->ids[a->n - 1], r->request_slot);
    if (r->prompt_tokens) { /* it begins where the request does */
        const int *prompt = tec_request_prompt(l, r);
        tec_row_prompt(&d->row, prompt, 1);
        d->unread[0] = prompt[0];
    }
    tell_prefix(l, r, "fork", a->rows, at_ns);
}

void tec_draft_end(struct tec_loop *l, struct tec_request *r, int64_t at_ns)
{
    if (r->draft.row.region < 0)
        return;
    const struct tec_chain *s = small_of(l, &l->o.decoders[r->decoder]);
    tec_kv_pool_drop(&s->plan->prefixes, r->draft.row.region);
    r->draft.row.region = -1;
    tell_prefix(l, r, "remove", r->draft.row.visible, at_ns);
}

/* --- a round --------------------------------------------------------------------------------- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* How much is proposed to a row: nothing while it reads a prompt of its own. */
static int wanted(const struct race *race, const struct racing *x)
{
    int left = least(x->row->left, x->steps) - 1;
    return x->row->waiting > 0 || left < 1 ? 0 : least(left, race->tokens);
}

/* Set the small model's row before its unread tokens; returns the steps that it needs. */
static int prepare(const struct race *race, struct racing *x)
{
    struct tec_draft *d = x->draft;
    struct tec_row_state *row = &d->row;
    int words = race->small->plan->used_words;
    x->n = wanted(race, x);
    row->token = d->unread[0];
    row->prompt = d->unread + 1;
    row->waiting = d->n_unread - 1;
    row->left = x->n > 0 ? x->n : 1;
    row->done = 0;
    row->sampling = x->row->sampling; /* one seed: where the models agree they draw alike */
    if (row->used && x->row->used && words == race->main->plan->used_words)
        memcpy(row->used, x->row->used, (size_t)words * sizeof *row->used);
    return d->n_unread - 1 + x->n;
}

/* Let the small model propose to the rows that take part; false: the device has failed. */
static bool propose(struct tec_loop *l, const struct race *race, struct racing *const *rows, int n,
                    struct tec_replay *replay)
{
    struct tec_row_state *states[TEC_MAX_ROWS];
    struct tec_row_state before[TEC_MAX_ROWS];
    int tokens[TEC_MAX_ROWS * (TEC_MAX_DRAFT + 1)], made[TEC_MAX_ROWS] = {0}, k = 0;
    for (int i = 0; i < n; i++) {
        int steps = prepare(race, rows[i]);
        k = steps > k ? steps : k;
        states[i] = &rows[i]->draft->row;
        before[i] = *states[i];
    }
    if (k == 0)
        return true;
    struct tec_launch launch = {
        .kind = TEC_LAUNCH_decode,
        .decode = {.rows = states, .n = n, .k = k, .tokens = tokens, .made = made}};
    tec_loop_launch(l, race->small, &launch);
    *replay = launch.replay;
    for (int i = 0; i < n; i++) {
        struct racing *x = rows[i];
        x->n = least(x->n, made[i]);
        memcpy(x->drafts, tokens + (ptrdiff_t)i * k, (size_t)x->n * sizeof *tokens);
        *states[i] = before[i]; /* where it stands next is known when its tokens are looked at */
    }
    return replay->status == TEC_OK;
}

/* The small model's row moves on by what it has read of the text as it is now. `said`: the tokens
 * that have become part of it in this round, n of them. */
static void follow(struct racing *x, const int *said, int n, int kept)
{
    struct tec_draft *d = x->draft;
    struct tec_row_state *row = &d->row;
    int all[2 + TEC_MAX_DRAFT + 1], count = d->n_unread + n;
    int read = x->n > 0 ? least(d->n_unread - 1 + x->n, d->n_unread + kept) : d->n_unread - 1;
    memcpy(all, d->unread, (size_t)d->n_unread * sizeof *all);
    memcpy(all + d->n_unread, said, (size_t)n * sizeof *all);
    row->pos += read;
    row->visible += read;
    if (read > 0)
        row->slot = row->tail + row->visible - 1 - row->prefix;
    d->n_unread = count - read;
    memcpy(d->unread, all + read, (size_t)d->n_unread * sizeof *all);
}

/* Keep what is right of a row's proposals. */
static void keep(const struct race *race, struct racing *x, const struct tec_verify_row *v)
{
    int said[TEC_MAX_DRAFT + 1], kept = 0;
    bool reads = x->row->waiting > 0;
    int made = tec_verify_keep(race->main->plan, x->row, v, said);
    while (kept < v->n && kept < made && said[kept] == v->drafts[kept])
        kept++;
    memcpy(x->tokens + x->made, said, (size_t)made * sizeof *said);
    x->made += made;
    x->steps -= reads ? 1 : made;
    x->row->produced += made;
    x->row->steps++;
    x->drafted += x->n;
    x->kept += kept;
    x->draft->drafted += x->n;
    x->draft->kept += kept;
    if (!x->row->done)
        follow(x, reads ? &x->row->token : said, reads ? 1 : made, kept);
}

/* The rows that are not through, each by one token at least; returns how many there were. */
static int run_round(struct tec_loop *l, const struct race *race, struct tec_replay *replay)
{
    struct racing *rows[TEC_MAX_ROWS];
    struct tec_verify_row seen[TEC_MAX_ROWS];
    struct tec_replay small = {0};
    int n = 0;
    for (int i = 0; i < race->n; i++)
        if (race->rows[i].steps > 0 && !race->rows[i].row->done)
            rows[n++] = &race->rows[i];
    if (n == 0 || !propose(l, race, rows, n, &small)) {
        *replay = small;
        return n;
    }
    for (int i = 0; i < n; i++)
        seen[i] = (struct tec_verify_row){
            .row = rows[i]->row, .n = rows[i]->n, .drafts = rows[i]->drafts};
    struct tec_launch launch = {.kind = TEC_LAUNCH_verify, .verify = {.rows = seen, .n = n}};
    tec_loop_launch(l, race->main, &launch);
    *replay = launch.replay;
    replay->start_ns = small.end_ns > 0 ? small.start_ns : replay->start_ns;
    for (int i = 0; i < n && replay->status == TEC_OK; i++)
        keep(race, rows[i], &seen[i]);
    return n;
}

/* --- jobs ------------------------------------------------------------------------------------ */

void tec_drafts_run(struct tec_loop *l, struct tec_launch *launch, const int *order)
{
    struct tec_decode_launch *job = &launch->decode;
    struct tec_replay *replay = &launch->replay;
    struct racing rows[TEC_MAX_ROWS];
    const struct tec_decoder *d = &l->o.decoders[l->requests[order[0]].decoder];
    const struct race race = {.main = &l->chains[d->chain],
                              .small = small_of(l, d),
                              .tokens = d->draft_tokens,
                              .n = job->n,
                              .rows = rows};
    struct tec_replay one = {0};
    for (int i = 0; i < job->n; i++) {
        struct tec_request *r = &l->requests[order[i]];
        rows[i] = (struct racing){.row = &r->row,
                                  .draft = &r->draft,
                                  .steps = job->k,
                                  .tokens = job->tokens + (ptrdiff_t)i * job->k};
        r->row.steps = 0;
    }
    for (int round = 0; run_round(l, &race, &one) > 0 && one.status == TEC_OK; round++) {
        replay->start_ns = round ? replay->start_ns : one.start_ns;
        replay->end_ns = one.end_ns;
        one = (struct tec_replay){0};
    }
    replay->status = one.status;
    replay->mark_ns[TEC_MARK_DECODE] = replay->end_ns;
    for (int i = 0; i < job->n; i++) {
        job->made[i] = rows[i].made;
        job->drafted += rows[i].drafted;
        job->kept += rows[i].kept;
    }
}

/* Every batch once, of rows that have all steps of a round left. */
static void warm_batch(struct tec_loop *l, const struct tec_decoder *d, int batch, int region,
                       int small_region)
{
    struct racing rows[TEC_MAX_ROWS];
    struct tec_row_state states[TEC_MAX_ROWS];
    struct tec_draft drafts[TEC_MAX_ROWS];
    int tokens[TEC_MAX_DRAFT + 1];
    struct race race = {.main = &l->chains[d->chain],
                        .small = small_of(l, d),
                        .tokens = d->draft_tokens,
                        .rows = rows};
    const struct tec_plan *plan = race.main->plan, *small = race.small->plan;
    struct tec_replay replay = {0};
    race.n = least(batch, plan->spec.request_slots);
    for (int i = 0; i < race.n; i++) {
        drafts[i] = (struct tec_draft){.pending = -1};
        tec_row_start(&states[i], plan, region, plan->spec.frame_tokens, 0, i,
                      plan->spec.new_tokens, -1);
        start_row(&drafts[i], small, small_region, small->spec.frame_tokens, 0, i);
        drafts[i].row.eos = -1; /* all of it is proposed */
        rows[i] = (struct racing){
            .row = &states[i], .draft = &drafts[i], .steps = d->draft_tokens + 1, .tokens = tokens};
    }
    run_round(l, &race, &replay);
    tec_loop_measure(l, race.main, TEC_COST_DECODE, batch, 1, 1, replay.end_ns - replay.start_ns);
}

void tec_drafts_warm(struct tec_loop *l)
{
    for (int i = 0; i < l->o.n_decoders; i++) {
        const struct tec_decoder *d = &l->o.decoders[i];
        if (!tec_loop_drafts(l, i))
            continue;
        struct tec_plan *plan = l->chains[d->chain].plan, *small = small_of(l, d)->plan;
        int region = tec_kv_pool_take(&plan->prefixes), other = tec_kv_pool_take(&small->prefixes);
        for (int b = 0; b < plan->spec.n_batches; b++)
            warm_batch(l, d, plan->spec.batches[b], region, other);
        tec_kv_pool_drop(&small->prefixes, other);
        tec_kv_pool_drop(&plan->prefixes, region);
    }
}

/* warm.c - every launch of a loop before its first frame, so that costs are known and memory is
 * mapped. Runs on the thread that opens the engine.
 *
 * A large launch on a CPU takes seconds: of it a command of each kind is run (tec_replay_samples),
 * or nothing where a table says what it takes. Memory is mapped all the same, since a device hands
 * out zeroed memory and weights were written or checked. */
#include "graph/run/loop/drafts.h"
#include "graph/run/loop/loop.h"
#include "graph/run/loop/measure.h"
#include "graph/run/loop/ring_warm.h"

#include <string.h>

/* The replay of a launch whose cost is that of a variant. */
static struct tec_replay replay_of(const struct tec_loop *l, const struct tec_chain *c,
                                   enum tec_cost_kind kind, int rows)
{
    if (l->samples)
        l->samples->known = tec_costs_filed(c->costs, kind, rows);
    return (struct tec_replay){.samples = l->samples};
}

/* The same of a prefix of n observations, and of the action behind it. */
static struct tec_replay replay_of_prefix(const struct tec_loop *l, const struct tec_chain *c,
                                          bool action, int n)
{
    struct tec_replay replay = replay_of(l, c, TEC_COST_PREFILL, n > 1 ? n : 0);
    int at = tec_costs_action(c->costs, c->plan->spec.frame_action, n);
    if (l->samples && action)
        l->samples->known &= tec_costs_filed(c->costs, TEC_COST_ACTION, at);
    return replay;
}

/* Run a launch and note its cost as that of a variant. */
static void run(struct tec_loop *l, const struct tec_chain *c, struct tec_launch launch,
                enum tec_cost_kind kind, int rows)
{
    launch.replay = replay_of(l, c, kind, rows);
    tec_executor_launch(c->executor, &launch);
    tec_loop_measure(l, c, kind, rows, 1, 1, launch.replay.end_ns - launch.replay.start_ns);
}

static struct tec_launch prefix_of(const struct tec_observed *each, int n, bool acts)
{
    return (struct tec_launch){.kind = TEC_LAUNCH_prefix,
                               .prefix = {.each = each, .n = n, .acts = acts}};
}

/* The same of n prefixes, and of the action behind them where the plan has one. */
static void run_prefix(struct tec_loop *l, const struct tec_chain *c,
                       const struct tec_observed *each, int n, bool acts)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    bool action = acts && s->n_actions && s->frame_action >= 0;
    struct tec_launch launch = prefix_of(each, n, acts);
    launch.replay = replay_of_prefix(l, c, action, n);
    tec_executor_launch(c->executor, &launch);
    tec_loop_measure_prefix(l, c, &launch.replay, action, n);
}

static void start_rows(const struct tec_chain *c, int region, int token, struct tec_row_state *rows,
                       struct tec_row_state **list)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    for (int r = 0; r < s->request_slots; r++) {
        tec_row_start(&rows[r], c->plan, region, c->prefix.rows, token, r, s->new_tokens, -1);
        list[r] = &rows[r];
    }
}

static struct tec_launch decode_of(struct tec_loop *l, struct tec_row_state *const *rows, int n)
{
    return (struct tec_launch){
        .kind = TEC_LAUNCH_decode,
        .decode = {.rows = rows, .n = n, .k = 1, .tokens = l->tokens, .made = l->made}};
}

static struct tec_launch score_of(struct tec_loop *l, int decoder, const struct tec_row_state *row)
{
    return (struct tec_launch){
        .kind = TEC_LAUNCH_score,
        .score = {.tree = l->o.decoders[decoder].tree, .row = row, .likely = l->likely}};
}

static void warm_decodes(struct tec_loop *l, const struct tec_chain *c, int region, int token)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    struct tec_row_state rows[TEC_MAX_ROWS], *list[TEC_MAX_ROWS];
    for (int b = 0; s->request_slots && b < s->n_batches; b++) {
        int n = s->batches[b] < s->request_slots ? s->batches[b] : s->request_slots;
        start_rows(c, region, token, rows, list);
        run(l, c, decode_of(l, list, n), TEC_COST_DECODE, s->batches[b]);
    }
}

static void warm_scores(struct tec_loop *l, const struct tec_chain *c, int region, int token)
{
    struct tec_row_state row;
    for (int d = 0; d < l->o.n_decoders; d++) {
        if (!l->o.decoders[d].tree || &l->chains[l->o.decoders[d].chain] != c)
            continue;
        tec_row_start(&row, c->plan, region, c->prefix.rows, token, 0, c->plan->spec.new_tokens,
                      -1);
        run(l, c, score_of(l, d, &row), TEC_COST_SCORE, 0);
    }
}

/* Warm up every part of the second set, beside a frame. Costs are taken from launches that have the
 * device to themselves. */
static void warm_concurrent(struct tec_loop *l, struct tec_chain *c,
                            const struct tec_chain_input *input, int region)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    const struct tec_executor *e = c->executor;
    struct tec_row_state rows[TEC_MAX_ROWS], *list[TEC_MAX_ROWS] = {NULL};
    const struct tec_observed frame = {.region = region, .input = input};
    const struct tec_observed own = {.region = tec_kv_pool_take(&c->plan->prefixes),
                                     .input = input};
    int n = 0;
    start_rows(c, own.region, tec_prefix_first(&input->prefix), rows, list);
    if (s->isolated)
        l->jobs[n++] = prefix_of(&own, 1, false);
    for (int b = 0; b < s->n_batches; b++)
        l->jobs[n++] =
            decode_of(l, list, s->batches[b] < s->request_slots ? s->batches[b] : s->request_slots);
    for (int d = 0; d < l->o.n_decoders && n < TEC_MAX_LAUNCHES; d++)
        if (l->o.decoders[d].tree && &l->chains[l->o.decoders[d].chain] == c)
            l->jobs[n++] = score_of(l, d, list[0]);
    struct tec_launch launch = prefix_of(&frame, 1, true);
    e->start(e->self, l->jobs, n);
    tec_executor_launch(e, &launch);
    e->wait(e->self);
    tec_kv_pool_drop(&c->plan->prefixes, own.region);
}

static void warm_actions(struct tec_loop *l, const struct tec_chain *c,
                         const struct tec_chain_input *input, int region)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    for (int i = 0; i < s->n_actions; i++) {
        const struct tec_action_launch action = {.at = i,
                                                 .region = region,
                                                 .rows = c->prefix.rows,
                                                 .input = input,
                                                 .state = input->state};
        if (i != s->frame_action)
            run(l, c, (struct tec_launch){.kind = TEC_LAUNCH_action, .action = action},
                TEC_COST_ACTION, tec_costs_action(c->costs, i, 1));
    }
}

/* The launches of several sessions' observations, as many as each takes, all of them this one. */
static void warm_together(struct tec_loop *l, const struct tec_chain *c,
                          const struct tec_chain_input *input, int region)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    struct tec_observed each[TEC_MAX_SESSIONS] = {{.region = region, .input = input}};
    for (int g = 0; g < s->n_together && c->executor->together; g++) {
        for (int i = 1; i < s->together[g]; i++)
            each[i] = (struct tec_observed){.region = tec_kv_pool_take(&c->plan->prefixes),
                                            .input = input};
        run_prefix(l, c, each, s->together[g], true);
        for (int i = 1; i < s->together[g]; i++)
            tec_kv_pool_drop(&c->plan->prefixes, each[i].region);
    }
}

/* The launches of a chain's hard nodes; and its prefill alone. */
static void warm_prefixes(struct tec_loop *l, const struct tec_chain *c,
                          const struct tec_chain_input *input, int region)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    const struct tec_observed of = {.region = region, .input = input};
    run_prefix(l, c, &of, 1, true);
    warm_together(l, c, input, region);
    warm_actions(l, c, input, region);
    if (s->isolated)
        run_prefix(l, c, &of, 1, false);
}

static void warm_frames(struct tec_loop *l, struct tec_chain *c,
                        const struct tec_chain_input *input, int times)
{
    int region = tec_kv_pool_take(&c->plan->prefixes);
    c->prefix.rows = tec_prefix_rows(c->plan, &input->prefix);
    for (int i = 0; i < times; i++) {
        warm_prefixes(l, c, input, region);
        warm_decodes(l, c, region, tec_prefix_first(&input->prefix));
        warm_scores(l, c, region, tec_prefix_first(&input->prefix));
    }
    bool whole = !l->samples || l->samples->replays == 0;
    if (c->plan->spec.beside && c->executor->start && whole)
        warm_concurrent(l, c, input, region);
    tec_kv_pool_drop(&c->plan->prefixes, region);
}

static void warm_slices(struct tec_loop *l, const struct tec_chain *c, int region,
                        const struct tec_chain_input *input)
{
    for (int i = 0; i < c->slices; i++) {
        const struct tec_slice_launch slice = {.of = {.region = region, .input = input}, .at = i};
        run(l, c, (struct tec_launch){.kind = TEC_LAUNCH_slice, .slice = slice}, TEC_COST_PREFILL,
            0);
    }
}

/* A chain that is not in frames; what its pictures show takes no time. */
static void warm_waiting(struct tec_loop *l, struct tec_chain *c, int times)
{
    int region = tec_kv_pool_take(&c->plan->prefixes), *ids = l->pending[0].ids;
    struct tec_chain_input input = {.prefix = {.n_pictures = c->plan->spec.pictures,
                                               .n_text = c->plan->spec.text_tokens,
                                               .ids = ids}};
    memset(ids, 0, (size_t)input.prefix.n_text * sizeof *ids);
    tec_prefix_mark(c->plan->model, ids, input.prefix.n_text, input.prefix.n_pictures);
    for (int i = 0; i < input.prefix.n_pictures; i++)
        input.prefix.picture[i] = l->pending[0].pixels;
    c->prefix.rows = tec_prefix_rows(c->plan, &input.prefix);
    for (int i = 0; i < times; i++) {
        warm_slices(l, c, region, &input);
        warm_decodes(l, c, region, 0);
        warm_scores(l, c, region, 0);
    }
    tec_kv_pool_drop(&c->plan->prefixes, region);
}

/* Rings that share a plan at once, and what requests of one launch. */
static void warm_ring(struct tec_loop *l, struct tec_chain *c, const struct tec_frame_input *input,
                      int times)
{
    const struct tec_chain_input *in = tec_chain_input(l, c, input);
    for (int i = 0; i < times && c->host == c; i++)
        tec_rings_warm(l, c, input);
    int region = c->ring->first; /* nothing is in flight */
    c->prefix.rows = tec_prefix_rows(c->plan, &in->prefix);
    for (int i = 0; i < times; i++) {
        const struct tec_observed of = {.region = region, .input = in};
        if (tec_plan_part(c->plan, TEC_PART_PREFIX, 0))
            run_prefix(l, c, &of, 1, false);
        warm_decodes(l, c, region, tec_prefix_first(&in->prefix));
        warm_scores(l, c, region, tec_prefix_first(&in->prefix));
    }
}

void tec_loop_warm(struct tec_loop *l, const struct tec_frame_input *input, int times,
                   struct tec_replay_samples *samples)
{
    l->warming = true;
    l->samples = samples;
    for (int i = 0; i < l->o.n_chains; i++) {
        struct tec_chain *c = &l->chains[i];
        if (c->ring)
            warm_ring(l, c, input, times);
        else if (c->in_frames)
            warm_frames(l, c, tec_chain_input(l, c, input), times);
        else
            warm_waiting(l, c, times);
    }
    for (int i = 0; i < times; i++)
        tec_drafts_warm(l);
    l->samples = NULL;
    l->warming = false;
}

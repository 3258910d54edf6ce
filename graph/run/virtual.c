/* virtual.c - an executor that computes nothing and advances a virtual clock by the cost of each
 * launch.
 *
 * Simulations and tests use it in place of a device; it runs on the caller's thread and nobody
 * waits. Two partitions that work at once are followed from one end of a launch to the next: while
 * both have work, each advances by 1 / contention, and alone by 1. Between two ends the speed is
 * constant, so the result is exact and needs no time step. */
#include "graph/run/executor.h"

#include <math.h>
#include <string.h>

static int64_t took(const struct tec_virtual *v, int mark, int rows, int k)
{
    if (v->took)
        return v->took(v->user, v->chain, mark, rows, k);
    return mark == TEC_MARK_PREFILL || mark == TEC_MARK_PACKED ? v->prefill_ns
           : mark == TEC_MARK_ACTION                           ? v->action_ns
           : mark == TEC_MARK_SHIFT                            ? 0
           : mark == TEC_MARK_SCORE                            ? v->step_ns
                                                               : v->step_ns * k;
}

static void mark(const struct tec_virtual *v, struct tec_replay *replay, int which, int64_t at_ns)
{
    *v->clock_ns = at_ns;
    replay->mark_ns[which] = replay->end_ns = at_ns;
    if (replay->marked)
        replay->marked(replay->user, which, at_ns);
}

/* --- two partitions ------------------------------------------------------------------------- */

/* A chain of launches; `left` is what the present one still needs, alone on the device. */
struct chain {
    int at, n;
    double left, start;
};

struct both {
    struct tec_virtual *v;
    struct tec_replay *hard;
    struct chain a, b; /* the frame's hard nodes; the jobs */
    double now;
    bool seen; /* the frame's prefill has ended */
};

static bool ready(const struct both *w)
{
    return w->b.at < w->b.n && (w->seen || !w->v->jobs[w->b.at].after_prefill);
}

static void begin_hard(struct both *w)
{
    if (w->a.at < w->a.n)
        w->a.left = (double)(w->a.at ? took(w->v, TEC_MARK_ACTION, w->v->plan->spec.frame_action, 1)
                                     : took(w->v, TEC_MARK_PREFILL, 1, 1));
}

static int mark_of(const struct tec_soft_job *job)
{
    return job->prefill ? TEC_MARK_PREFILL : job->tree ? TEC_MARK_SCORE : TEC_MARK_DECODE;
}

static void begin_job(struct both *w)
{
    const struct tec_soft_job *j = &w->v->jobs[w->b.at];
    w->b.start = w->now;
    w->b.left = (double)took(w->v, mark_of(j), j->prefill ? 1 : j->n, j->prefill ? 1 : j->k);
}

static void end_hard(struct both *w)
{
    mark(w->v, w->hard, w->a.at ? TEC_MARK_ACTION : TEC_MARK_PREFILL, llround(w->now));
    w->seen = true;
    w->a.at++;
    begin_hard(w);
}

static void end_job(struct both *w)
{
    struct tec_replay *r = &w->v->jobs[w->b.at].replay;
    r->start_ns = llround(w->b.start);
    r->mark_ns[mark_of(&w->v->jobs[w->b.at])] = llround(w->now);
    r->end_ns = llround(w->now);
    w->b.at++;
    w->b.left = -1.0;
}

/* Run both chains to their ends. */
static void run_both(struct both *w)
{
    const double slow = w->v->contention > 1.0 ? w->v->contention : 1.0;
    begin_hard(w);
    w->b.left = -1.0;
    while (w->a.at < w->a.n || w->b.at < w->b.n) {
        bool hard = w->a.at < w->a.n, soft = ready(w);
        double pace = hard && soft ? slow : 1.0;
        if (soft && w->b.left < 0.0)
            begin_job(w);
        double step = hard && soft ? fmin(w->a.left, w->b.left) : hard ? w->a.left : w->b.left;
        w->now += step * pace;
        w->a.left -= hard ? step : 0.0;
        w->b.left -= soft ? step : 0.0;
        if (hard && w->a.left <= 1e-6)
            end_hard(w);
        if (soft && w->b.left <= 1e-6)
            end_job(w);
    }
    w->v->joined_ns = llround(w->now);
}

/* --- the executor --------------------------------------------------------------------------- */

static void make_tokens(const struct tec_virtual *v, struct tec_row_state *const *rows, int n,
                        int k, int *tokens, int *made)
{
    for (int i = 0; i < n; i++) {
        struct tec_row_state *r = rows[i];
        int end = v->end ? v->end(v->user, r->request) : 0;
        int read = r->waiting < k ? r->waiting : k;
        r->waiting -= read;
        r->prompt_tokens = read ? r->prompt_tokens + read : r->prompt_tokens;
        for (made[i] = 0; made[i] < k - read && !r->done; made[i]++) {
            r->produced++;
            r->left--;
            bool last = end > 0 && r->produced == end;
            tokens[(ptrdiff_t)i * k + made[i]] = last ? r->eos : 3 + made[i];
            r->done = last || r->left == 0;
        }
        r->steps = read + made[i];
    }
}

/* Every token is as likely as the others: a shorter text is likelier. */
static void make_scores(const struct tec_token_tree *tree, float *likely)
{
    for (int i = 0; i < tree->n_entries; i++)
        likely[i] = -1.0F;
}

static void virtual_score(void *self, const struct tec_token_tree *tree,
                          const struct tec_row_state *row, float *likely, struct tec_replay *replay)
{
    struct tec_virtual *v = self;
    (void)row;
    replay->start_ns = *v->clock_ns;
    make_scores(tree, likely);
    mark(v, replay, TEC_MARK_SCORE, *v->clock_ns + took(v, TEC_MARK_SCORE, 1, 1));
}

static void virtual_prefix(void *self, enum tec_part_kind kind, int region,
                           const struct tec_chain_input *input, struct tec_replay *replay)
{
    struct tec_virtual *v = self;
    const struct tec_plan_spec *s = &v->plan->spec;
    bool action = kind == TEC_PART_FRAME && s->n_actions && s->frame_action >= 0;
    (void)region, (void)input;
    replay->start_ns = *v->clock_ns;
    if (v->jobs) {
        struct both w = {.v = v, .hard = replay, .now = (double)*v->clock_ns};
        w.a.n = action ? 2 : 1;
        w.b.n = v->n_jobs;
        run_both(&w);
        return;
    }
    mark(v, replay, TEC_MARK_PREFILL, *v->clock_ns + took(v, TEC_MARK_PREFILL, 1, 1));
    if (action)
        mark(v, replay, TEC_MARK_ACTION,
             *v->clock_ns + took(v, TEC_MARK_ACTION, s->frame_action, 1));
}

static void virtual_together(void *self, const struct tec_observed *each, int n,
                             struct tec_replay *replay)
{
    struct tec_virtual *v = self;
    const struct tec_plan_spec *s = &v->plan->spec;
    (void)each;
    replay->start_ns = *v->clock_ns;
    mark(v, replay, TEC_MARK_PREFILL, *v->clock_ns + took(v, TEC_MARK_PREFILL, n, 1));
    if (s->n_actions && s->frame_action >= 0)
        mark(v, replay, TEC_MARK_ACTION,
             *v->clock_ns + took(v, TEC_MARK_ACTION, s->frame_action, n));
}

static void virtual_action(void *self, const struct tec_action_launch *launch,
                           struct tec_replay *replay)
{
    struct tec_virtual *v = self;
    replay->start_ns = *v->clock_ns;
    mark(v, replay, TEC_MARK_ACTION, *v->clock_ns + took(v, TEC_MARK_ACTION, launch->at, 1));
}

static void virtual_slice(void *self, int at, int region, const struct tec_chain_input *input,
                          struct tec_replay *replay, enum tec_slice *state)
{
    struct tec_virtual *v = self;
    (void)at, (void)region, (void)input;
    *state = TEC_SLICE_DONE;
    replay->start_ns = *v->clock_ns;
    mark(v, replay, TEC_MARK_PREFILL, *v->clock_ns + took(v, TEC_MARK_PREFILL, 1, 1));
}

static void virtual_actions(void *self, int at, float *chunk)
{
    (void)at;
    const struct tec_virtual *v = self;
    const struct tec_flow *f = &v->plan->model->flow;
    memset(chunk, 0, (size_t)f->horizon * (size_t)f->dim * sizeof *chunk);
}

static void virtual_actions_of(void *self, int i, int n, float *chunk)
{
    (void)i, (void)n;
    virtual_actions(self, 0, chunk);
}

/* Spend the time of gathering, in a ring that reads a copy of all that its rows see. */
static void gather(struct tec_virtual *v, struct tec_row_state *const *rows, int n,
                   struct tec_replay *replay)
{
    int tokens = 0;
    if (!v->plan->spec.gathers)
        return;
    for (int i = 0; i < n; i++)
        tokens += rows[i]->visible;
    replay->mark_ns[TEC_MARK_SHIFT] = *v->clock_ns;
    *v->clock_ns += took(v, TEC_MARK_SHIFT, tokens, 1);
}

static void virtual_decode(void *self, struct tec_row_state *const *rows, int n, int k, int *tokens,
                           int *made, struct tec_replay *replay)
{
    struct tec_virtual *v = self;
    replay->start_ns = *v->clock_ns;
    make_tokens(v, rows, n, k, tokens, made);
    mark(v, replay, TEC_MARK_DECODE, *v->clock_ns + took(v, TEC_MARK_DECODE, n, k));
}

/* The draft is right in everything. */
static void virtual_verify(void *self, struct tec_verify_row *rows, int n,
                           struct tec_replay *replay)
{
    struct tec_virtual *v = self;
    replay->start_ns = *v->clock_ns;
    for (int i = 0; i < n; i++) {
        const struct tec_row_state *r = rows[i].row;
        int end = v->end ? v->end(v->user, r->request) : 0;
        for (int j = 0; j <= rows[i].n; j++)
            rows[i].said[j] = r->produced + j + 1 == end ? r->eos
                              : j < rows[i].n            ? rows[i].drafts[j]
                                                         : 3;
    }
    mark(v, replay, TEC_MARK_DECODE, *v->clock_ns + took(v, TEC_MARK_DECODE, n, 1));
}

/* A gather before the forward is known by the mark of a shift. */
static void virtual_packed(void *self, struct tec_ring_launch *launch)
{
    struct tec_virtual *v = self;
    const struct tec_ring_rows *in = &launch->in;
    int made[TEC_MAX_STAGES], n = in->entering + in->n;
    gather(v, in->rows, n, &launch->replay);
    launch->replay.start_ns = *v->clock_ns;
    make_tokens(v, in->rows, n, 1, launch->tokens, made);
    mark(v, &launch->replay, TEC_MARK_PACKED,
         *v->clock_ns +
             took(v, TEC_MARK_PACKED, tec_ring_point(&v->plan->spec, in->entering, in->n), 1));
}

static void virtual_shift(void *self, const struct tec_ring_move *moves, int n,
                          struct tec_replay *replay)
{
    struct tec_virtual *v = self;
    int tokens = 0;
    for (int i = 0; i < n; i++)
        tokens += moves[i].tokens;
    replay->start_ns = *v->clock_ns;
    mark(v, replay, TEC_MARK_SHIFT, *v->clock_ns + took(v, TEC_MARK_SHIFT, tokens, 1));
}

static void virtual_await(void *self, int64_t until_ns)
{
    struct tec_virtual *v = self;
    if (*v->clock_ns < until_ns)
        *v->clock_ns = until_ns;
}

static void virtual_concurrent(void *self, struct tec_soft_job *jobs, int n,
                               const struct tec_chain_input *input)
{
    struct tec_virtual *v = self;
    (void)input;
    v->jobs = jobs;
    v->n_jobs = n;
    for (int i = 0; i < n; i++)
        if (jobs[i].tree)
            make_scores(jobs[i].tree, jobs[i].likely);
        else if (!jobs[i].prefill)
            make_tokens(v, jobs[i].rows, jobs[i].n, jobs[i].k, jobs[i].tokens, jobs[i].made);
}

static void virtual_join(void *self)
{
    struct tec_virtual *v = self;
    v->jobs = NULL;
    if (*v->clock_ns < v->joined_ns)
        *v->clock_ns = v->joined_ns;
}

struct tec_executor tec_executor_virtual(struct tec_virtual *device)
{
    return (struct tec_executor){.self = device,
                                 .clock = {device->clock_ns},
                                 .prefix = virtual_prefix,
                                 .together = virtual_together,
                                 .actions_of = virtual_actions_of,
                                 .action = virtual_action,
                                 .actions = virtual_actions,
                                 .decode = virtual_decode,
                                 .verify = virtual_verify,
                                 .slice = virtual_slice,
                                 .score = virtual_score,
                                 .packed = virtual_packed,
                                 .shift = virtual_shift,
                                 .await = virtual_await,
                                 .beside = virtual_concurrent,
                                 .join = virtual_join};
}

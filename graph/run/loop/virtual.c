/* virtual.c - an executor that computes nothing and advances a virtual clock by the cost of each
 * launch.
 *
 * Simulations and tests use it in place of a device; it runs on the caller's thread and nobody
 * waits. Two partitions that work at once are followed from one end of a launch to the next: while
 * both have work, each advances by 1 / contention, and alone by 1. Between two ends the speed is
 * constant, so the result is exact and needs no time step. */
#include "graph/run/launch/executor.h"

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
    struct tec_launch *hard;
    struct chain a, b; /* the frame's hard nodes; what was started beside them */
    double now;
    bool seen; /* the frame's prefill has ended */
};

static bool ready(const struct both *w)
{
    return w->b.at < w->b.n && (w->seen || !w->v->started[w->b.at].after_prefill);
}

static void begin_hard(struct both *w)
{
    int n = w->hard->prefix.n;
    if (w->a.at < w->a.n)
        w->a.left = (double)(w->a.at ? took(w->v, TEC_MARK_ACTION, w->v->plan->spec.frame_action, n)
                                     : took(w->v, TEC_MARK_PREFILL, n, 1));
}

static int mark_of(const struct tec_launch *l)
{
    return l->kind == TEC_LAUNCH_prefix  ? TEC_MARK_PREFILL
           : l->kind == TEC_LAUNCH_score ? TEC_MARK_SCORE
                                         : TEC_MARK_DECODE;
}

static void begin_started(struct both *w)
{
    const struct tec_launch *l = &w->v->started[w->b.at];
    bool decodes = l->kind == TEC_LAUNCH_decode;
    w->b.start = w->now;
    w->b.left =
        (double)took(w->v, mark_of(l), decodes ? l->decode.n : 1, decodes ? l->decode.k : 1);
}

static void end_hard(struct both *w)
{
    mark(w->v, &w->hard->replay, w->a.at ? TEC_MARK_ACTION : TEC_MARK_PREFILL, llround(w->now));
    w->seen = true;
    w->a.at++;
    begin_hard(w);
}

static void end_started(struct both *w)
{
    struct tec_replay *r = &w->v->started[w->b.at].replay;
    r->start_ns = llround(w->b.start);
    r->mark_ns[mark_of(&w->v->started[w->b.at])] = llround(w->now);
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
            begin_started(w);
        double step = hard && soft ? fmin(w->a.left, w->b.left) : hard ? w->a.left : w->b.left;
        w->now += step * pace;
        w->a.left -= hard ? step : 0.0;
        w->b.left -= soft ? step : 0.0;
        if (hard && w->a.left <= 1e-6)
            end_hard(w);
        if (soft && w->b.left <= 1e-6)
            end_started(w);
    }
    w->v->joined_ns = llround(w->now);
}

/* --- what launches make ---------------------------------------------------------------------- */

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

/* The draft is right in everything. */
static void make_verified(const struct tec_virtual *v, struct tec_verify_row *row)
{
    const struct tec_row_state *r = row->row;
    int end = v->end ? v->end(v->user, r->request) : 0;
    for (int j = 0; j <= row->n; j++)
        row->said[j] = r->produced + j + 1 == end ? r->eos : j < row->n ? row->drafts[j] : 3;
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

/* --- launches -------------------------------------------------------------------------------- */

/* Spend the time of a launch that has one mark. */
static void spend(const struct tec_virtual *v, struct tec_replay *replay, int which, int rows,
                  int k)
{
    mark(v, replay, which, *v->clock_ns + took(v, which, rows, k));
}

static void run_prefix(struct tec_virtual *v, struct tec_launch *l)
{
    const struct tec_plan_spec *s = &v->plan->spec;
    bool action = l->prefix.acts && s->n_actions && s->frame_action >= 0;
    if (v->started && !l->prefix.more) {
        struct both w = {.v = v, .hard = l, .now = (double)*v->clock_ns};
        w.a.n = action ? 2 : 1;
        w.b.n = v->n_started;
        run_both(&w);
        return;
    }
    spend(v, &l->replay, TEC_MARK_PREFILL, l->prefix.n, 1);
    if (action)
        spend(v, &l->replay, TEC_MARK_ACTION, s->frame_action, l->prefix.n);
}

static void run_slice(struct tec_virtual *v, struct tec_launch *l)
{
    l->slice.state = TEC_SLICE_DONE;
    spend(v, &l->replay, TEC_MARK_PREFILL, 1, 1);
}

static void run_action(struct tec_virtual *v, struct tec_launch *l)
{
    spend(v, &l->replay, TEC_MARK_ACTION, l->action.at, 1);
}

static void run_decode(struct tec_virtual *v, struct tec_launch *l)
{
    const struct tec_decode_launch *d = &l->decode;
    make_tokens(v, d->rows, d->n, d->k, d->tokens, d->made);
    spend(v, &l->replay, TEC_MARK_DECODE, d->n, d->k);
}

static void run_verify(struct tec_virtual *v, struct tec_launch *l)
{
    for (int i = 0; i < l->verify.n; i++)
        make_verified(v, &l->verify.rows[i]);
    spend(v, &l->replay, TEC_MARK_DECODE, l->verify.n, 1);
}

static void run_score(struct tec_virtual *v, struct tec_launch *l)
{
    make_scores(l->score.tree, l->score.likely);
    spend(v, &l->replay, TEC_MARK_SCORE, 1, 1);
}

/* A gather before the forward is known by the mark of a shift. */
static void run_packed(struct tec_virtual *v, struct tec_launch *l)
{
    const struct tec_ring_rows *in = &l->packed.in;
    int made[TEC_MAX_STAGES], n = in->entering + in->n;
    gather(v, in->rows, n, &l->replay);
    l->replay.start_ns = *v->clock_ns;
    make_tokens(v, in->rows, n, 1, l->packed.tokens, made);
    spend(v, &l->replay, TEC_MARK_PACKED,
          tec_launch_ring_point(&v->plan->spec, in->entering, in->n), 1);
}

static void run_shift(struct tec_virtual *v, struct tec_launch *l)
{
    int tokens = 0;
    for (int i = 0; i < l->shift.n; i++)
        tokens += l->shift.moves[i].tokens;
    spend(v, &l->replay, TEC_MARK_SHIFT, tokens, 1);
}

/* --- the executor --------------------------------------------------------------------------- */

static void virtual_launch(void *self, struct tec_launch *launch)
{
    static void (*const run[TEC_LAUNCH_COUNT])(struct tec_virtual *, struct tec_launch *) = {
#define LAUNCH(name) [TEC_LAUNCH_##name] = run_##name,
#include "graph/run/launch/launches.def"
#undef LAUNCH
    };
    struct tec_virtual *v = self;
    launch->replay.start_ns = *v->clock_ns;
    run[launch->kind](v, launch);
}

static void virtual_chunk(void *self, const struct tec_launch *launch, int i, float *chunk)
{
    (void)launch, (void)i;
    const struct tec_virtual *v = self;
    const struct tec_flow *f = &v->plan->model->flow;
    memset(chunk, 0, (size_t)f->horizon * (size_t)f->dim * sizeof *chunk);
}

static void virtual_await(void *self, int64_t until_ns)
{
    struct tec_virtual *v = self;
    if (*v->clock_ns < until_ns)
        *v->clock_ns = until_ns;
}

static void virtual_start(void *self, struct tec_launch *launches, int n)
{
    struct tec_virtual *v = self;
    v->started = launches;
    v->n_started = n;
    for (int i = 0; i < n; i++) {
        const struct tec_decode_launch *d = &launches[i].decode;
        if (launches[i].kind == TEC_LAUNCH_score)
            make_scores(launches[i].score.tree, launches[i].score.likely);
        else if (launches[i].kind == TEC_LAUNCH_decode)
            make_tokens(v, d->rows, d->n, d->k, d->tokens, d->made);
    }
}

static void virtual_wait(void *self)
{
    struct tec_virtual *v = self;
    v->started = NULL;
    if (*v->clock_ns < v->joined_ns)
        *v->clock_ns = v->joined_ns;
}

struct tec_executor tec_executor_virtual(struct tec_virtual *device)
{
    return (struct tec_executor){.self = device,
                                 .clock = {device->clock_ns},
                                 .together = true,
                                 .verifies = true,
                                 .launch = virtual_launch,
                                 .chunk = virtual_chunk,
                                 .start = virtual_start,
                                 .wait = virtual_wait,
                                 .await = virtual_await};
}

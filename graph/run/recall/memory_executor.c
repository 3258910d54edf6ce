/* memory_executor.c - the executor of a chain with memories: a recall in place of a prefill, whole
 * or in slices of layers, and KV to be kept computed when a frame is over. All else is done by the
 * executor that it stands before.
 *
 * A slice waits for nothing: where what its layers need is not there yet, it leaves the time to
 * others and is tried again in the next frame. */
#include "graph/run/recall/memory_own.h"

#include "base/clock.h"

#include <string.h>

static const struct tec_clock real = {NULL};

/* --- a prompt -------------------------------------------------------------------------------- */

/* The next token behind the prompt in a region. Its keys go where segments are computed, which
 * nobody reads while a prompt is recalled; requests may be decoding on a partition beside. */
static int next_token(struct tec_chain_memory *c, int region, const struct tec_prefix_input *o)
{
    int n = tec_prefix_rows(c->plan, o);
    struct tec_row_state row = {.token = o->ids[o->n_text - 1],
                                .pos = n - 1,
                                .slot = c->plan->segment_slot,
                                .visible = n,
                                .region = region,
                                .prefix = n,
                                .tail = c->plan->tails[0],
                                .left = 1,
                                .eos = -1,
                                .place = -1};
    struct tec_row_state *rows[] = {&row};
    int token = -1, made = 0;
    struct tec_launch launch = {
        .kind = TEC_LAUNCH_decode,
        .decode = {.rows = rows, .n = 1, .k = 1, .tokens = &token, .made = &made}};
    tec_executor_launch(&c->inner, &launch);
    return made ? token : -1;
}

/* A whole prompt in one go. */
static enum tec_status run(struct tec_chain_memory *c, int region,
                           const struct tec_chain_input *input)
{
    struct tec_error err = {TEC_OK, ""};
    enum tec_status status = tec_memory_begin(c, region, input, &err);
    for (int layer = 0; status == TEC_OK && layer < c->recall.layers; layer++)
        status = tec_memory_layer(c, layer, &err);
    return tec_memory_end(c, status, &err);
}

static enum tec_status run_whole(struct tec_chain_memory *c, int region,
                                 const struct tec_chain_input *input)
{
    c->whole = true;
    enum tec_status status = run(c, region, input);
    c->whole = false;
    return status;
}

/* Recompute the whole prompt without kept KV and count whether the next token is the same. */
static enum tec_status audit(struct tec_chain_memory *c, int region,
                             const struct tec_chain_input *input)
{
    int first = next_token(c, region, &input->prefix);
    enum tec_status status = run_whole(c, region, input);
    c->audits++;
    c->agreed += status == TEC_OK && first >= 0 && next_token(c, region, &input->prefix) == first;
    return status;
}

/* The prompt is there: what of it may be held on to, and what it took. Texts alone are audited. */
static enum tec_status settle(struct tec_chain_memory *c, int region,
                              const struct tec_chain_input *input)
{
    enum tec_status status = TEC_OK;
    if (c->audit && c->plan->spec.request_slots)
        status = audit(c, region, input);
    if (status == TEC_OK)
        tec_memory_hold(c, region, &input->prefix);
    tec_memory_count_prompt(c, tec_prefix_rows(c->plan, &input->prefix));
    return status;
}

static void end_at(struct tec_replay *replay, enum tec_status status)
{
    replay->status = status;
    replay->end_ns = tec_clock_now(&real);
    for (int i = 0; i < TEC_MAX_MARKS; i++)
        replay->mark_ns[i] = replay->end_ns;
}

static void recall(struct tec_chain_memory *c, const struct tec_observed *of,
                   struct tec_replay *replay)
{
    const struct tec_chain_input *input = of->input;
    int region = of->region;
    replay->start_ns = tec_clock_now(&real);
    enum tec_status status = run(c, region, input);
    replay->waited_ns = c->recall.times.waited;
    if (status == TEC_NOT_FOUND) { /* what was kept is gone: nothing of it is needed */
        tec_memory_count(tec_memory_in(c, c->prompt, 0), TEC_COUNT_WHOLE, 1);
        status = run_whole(c, region, input);
    }
    if (status == TEC_OK)
        status = settle(c, region, input);
    end_at(replay, status);
}

/* --- in slices ------------------------------------------------------------------------------- */

/* Kept KV is gone: the prompt begins again, and is computed whole. */
static void begin_again(struct tec_chain_memory *c, enum tec_slice *state)
{
    tec_memory_count(tec_memory_in(c, c->prompt, 0), TEC_COUNT_WHOLE, 1);
    c->whole = true;
    *state = TEC_SLICE_AGAIN;
}

static void slice(struct tec_chain_memory *c, struct tec_slice_launch *launch,
                  struct tec_replay *replay)
{
    const struct tec_chain_input *input = launch->of.input;
    enum tec_slice *state = &launch->state;
    int at = launch->at, region = launch->of.region;
    struct tec_error err = {TEC_OK, ""};
    enum tec_status status = TEC_OK;
    int n = tec_part_slices(tec_plan_part(c->plan, TEC_PART_PREFIX, 0)), layers = c->recall.layers;
    int to = (int)((int64_t)(at + 1) * layers / n);
    bool waits = n == 1 || c->patient;
    replay->start_ns = tec_clock_now(&real);
    int64_t waited_ns = at == 0 && !c->runs ? 0 : c->recall.times.waited;
    *state = TEC_SLICE_DONE;
    if (at == 0 && !c->runs) {
        status = tec_memory_begin(c, region, input, &err);
        c->layer = 0;
    }
    for (; status == TEC_OK && c->layer < to && (waits || tec_memory_ready(c, c->layer));
         c->layer++)
        status = tec_memory_layer(c, c->layer, &err);
    if (status == TEC_OK && c->layer < to) {
        *state = TEC_SLICE_LATER;
        end_at(replay, TEC_OK);
        return;
    }
    replay->waited_ns = c->recall.times.waited - waited_ns;
    if (status != TEC_OK || at == n - 1)
        status = tec_memory_end(c, status, &err);
    if (status == TEC_NOT_FOUND && !c->whole) {
        begin_again(c, state);
        end_at(replay, TEC_OK);
        return;
    }
    if (status == TEC_OK && at == n - 1)
        status = settle(c, region, input);
    c->whole &= status == TEC_OK && at < n - 1;
    end_at(replay, status);
}

static void give_up(void *self)
{
    struct tec_chain_memory *c = self;
    if (c->runs)
        (void)tec_memory_end(c, TEC_OK, NULL);
    c->whole = false;
}

/* --- what a decision says, and what it sees -------------------------------------------------- */

static void decide_segments(struct tec_memory *m, const struct tec_decision *d, int first)
{
    for (int u = 0; u < m->input->max_segments; u++) {
        int at = first + u;
        bool decided = first >= 0 && at < d->n_seg;
        m->frame.skipped[u] = decided && d->seg[at].skip;
        m->frame.score[u] = decided ? d->seg[at].score : 0.0;
    }
    m->frame.by_score = first >= 0 && d->n_seg > 0;
}

static void decide_ratios(struct tec_chain_memory *c, struct tec_memory *m,
                          const struct tec_decision *d)
{
    m->frame.decided = false;
    for (int k = 0; k < d->n_recompute; k++) {
        const struct tec_recompute_decision *r = &d->recompute[k];
        if (r->node != m->at)
            continue;
        c->audit |= r->audit;
        m->frame.decided |= r->n > 0;
        for (int i = 0; i < m->layers && r->n > 0; i++)
            m->frame.ratios[i] = r->ratios[i < r->n ? i : r->n - 1];
    }
}

static void recompute(void *self, const struct tec_decision *d,
                      const struct tec_memory_prompt *prompt, int first)
{
    struct tec_chain_memory *c = self;
    c->audit = false;
    for (int m = 0; prompt && m < c->n; m++) {
        decide_ratios(c, tec_memory_in(c, prompt, m), d);
        decide_segments(tec_memory_in(c, prompt, m), d,
                        first >= 0 ? first + tec_memory_first(prompt, m) : -1);
    }
}

static void report(void *self, struct tec_frame_view *view)
{
    const struct tec_chain_memory *c = self;
    view->n_audits += c->audits;
    view->n_agreed += c->agreed;
}

static void idle(void *self, int64_t until_ns)
{
    tec_memory_chain_idle(self, until_ns);
}

/* --- the executor ---------------------------------------------------------------------------- */

/* What has no prompt of segments is done as without a memory. */
static void launch(void *self, struct tec_launch *launch)
{
    struct tec_chain_memory *c = self;
    if (launch->kind == TEC_LAUNCH_prefix && launch->prefix.each->input->memory)
        recall(c, launch->prefix.each, &launch->replay);
    else if (launch->kind == TEC_LAUNCH_slice && launch->slice.of.input->memory)
        slice(c, &launch->slice, &launch->replay);
    else
        tec_executor_launch(&c->inner, launch);
}

static void chunk(void *self, const struct tec_launch *launch, int i, float *chunk)
{
    const struct tec_chain_memory *c = self;
    c->inner.chunk(c->inner.self, launch, i, chunk);
}

struct tec_executor tec_memory_chain_executor(struct tec_chain_memory *c,
                                              const struct tec_executor *inner)
{
    struct tec_executor e = c->inner = *inner;
    e.self = e.memory = c;
    e.together = false;
    e.launch = launch;
    e.chunk = chunk;
    e.idle = idle;
    e.give_up = give_up;
    e.recompute = recompute;
    e.report = report;
    return e;
}

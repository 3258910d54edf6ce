/* bench_turns.c - how rows are measured: their inputs, their turns, and what is kept of each frame.
 */
#include "tools/measure/bench.h"

#include "tools/api/topology.h"
#include "tools/frames/random_input.h"

#include <string.h>
#include <xxhash.h>

/* --- inputs ---------------------------------------------------------------------------------- */

enum tec_status tec_bench_random(struct tec_bench *b, uint64_t seed, struct tec_error *err)
{
    const struct tec_pipeline *p = b->opened.pipeline;
    const struct tec_engine *e = b->opened.engine;
    uint64_t state = seed * 2 + 1;
    struct tec_value values[TEC_MAX_INPUTS];
    for (int i = 0; i < TEC_BENCH_INPUTS; i++) {
        size_t n;
        const struct tec_random_sizes sizes = {tec_session_picture_side(e->session),
                                               b->prompt_tokens, e->model->text.vocab};
        TEC_TRY(tec_random_inputs(values, TEC_MAX_INPUTS, &n, p, e->session, sizes, &state,
                                  b->call->arena, err));
        TEC_TRY(tec_session_observe(b->opened.engine->session, values, n, NULL, i, 0, &b->random[i],
                                    NULL, err));
    }
    return TEC_OK;
}

/* --- turns ----------------------------------------------------------------------------------- */

static void keep(struct tec_samples *s, int64_t ns)
{
    if (s->n < s->room)
        s->ns[s->n++] = ns;
}

static bool is_kind(const struct tec_topology *t, const char *node, const char *kind)
{
    for (int n = 0; n < t->n_nodes; n++)
        if (strcmp(t->nodes[n].name, node) == 0)
            return strcmp(t->nodes[n].kind, kind) == 0;
    return false;
}

/* Estimate the time of a decode step; it is exact if every row ran all k steps, or if rows ran
 * alone. */
static void keep_steps(const struct tec_topology *t, struct tec_bench_row *r,
                       const struct tec_frame_record *f)
{
    int64_t alone_ns = 0, full = 0;
    int decodes = 0, alone = 0;
    const struct tec_launch_record *last = NULL;
    for (int i = f->n_launches; i-- > 0;) {
        const struct tec_launch_record *l = &f->launches[i];
        if (!is_kind(t, l->node, "decode"))
            continue;
        decodes++;
        full += (int64_t)l->rows * l->k;
        alone += l->rows == 1;
        alone_ns += l->end_ns - l->start_ns;
        r->launches++;
        r->launched_rows += l->rows;
        last = l;
    }
    if (decodes && alone == decodes && f->tokens > 0)
        keep(&r->step1, alone_ns / f->tokens);
    if (decodes != 1 || f->tokens != full || last->rows < r->steady_rows)
        return;
    if (last->rows > r->steady_rows)
        r->step.n = 0; /* fuller than before: only the fullest counts */
    r->steady_rows = last->rows;
    r->k = last->k;
    keep(&r->step, (last->end_ns - last->start_ns) / last->k);
}

/* The actions of one session, and what its frame missed. */
static void keep_actions(const struct tec_bench *b, struct tec_bench_row *r,
                         const struct tec_frame_record *f)
{
    if (f->actions[0].release_ns >= 0)
        keep(&r->action, f->actions[0].release_ns - f->tick_ns);
    for (int i = 0; i < tec_bench_actions(b); i++)
        if (f->actions[i].release_ns >= 0)
            keep(&r->released[i], f->actions[i].release_ns - f->tick_ns);
    r->missed += f->missed;
}

/* The launches of a frame, of all sessions that have it together. */
static void keep_launches(struct tec_bench *b, struct tec_bench_row *r,
                          const struct tec_frame_record *f)
{
    const struct tec_topology *t = &b->opened.engine->topology;
    for (int i = 0; i < b->n_left; i++) {
        r->actions++;
        keep(&r->age, b->left[i].age_us * 1000);
        keep(&r->lives, b->left[i].lives);
    }
    for (int i = 0; i < f->n_launches; i++) {
        const struct tec_launch_record *l = &f->launches[i];
        int64_t ns = l->end_ns - l->start_ns;
        for (int n = 0; n < b->n_nodes; n++)
            if (strcmp(b->nodes[n], l->node) == 0)
                tec_histogram_add(&r->nodes[n], ns);
        if (is_kind(t, l->node, "prefill"))
            keep(&r->prefill, ns);
        if (is_kind(t, l->node, "action"))
            keep(&r->act, ns);
    }
    if (t->n_rings) { /* a row a sequence in flight, the one that enters too */
        r->launches += f->n_launches;
        r->launched_rows += f->rows;
    } else {
        keep_steps(t, r, f);
    }
    r->captures += f->n_launches;
    r->tokens += f->tokens;
    r->refused += f->refused;
    r->shed += f->shed;
}

static enum tec_status take_input(struct tec_bench *b, int session, int64_t frame, int64_t now,
                                  struct tec_frame_input *input, struct tec_error *err)
{
    struct tec_inputs_frame values;
    struct tec_inputs *inputs = b->inputs[session];
    if (inputs) {
        TEC_TRY(tec_inputs_next(inputs, &values, err));
        if (values.ended || values.none)
            return tec_fail(err, TEC_INVALID, "%s: the inputs end before the frames do",
                            tec_inputs_place(inputs));
        TEC_TRY(tec_session_observe(b->opened.engine->sessions[session], values.values, values.n,
                                    NULL, frame, now, input, NULL, err));
    } else {
        *input = b->random[frame % TEC_BENCH_INPUTS];
        input->captured_ns = now;
        if (b->opened.engine->topology.n_rings) /* another one would empty it */
            memcpy(input->chains[0].keys, b->random[0].chains[0].keys,
                   sizeof input->chains[0].keys);
    }
    b->pictures = input->chains[0].prefix.n_pictures;
    b->text = input->chains[0].prefix.n_text;
    return TEC_OK;
}

/* Paced: the next multiple of the period, those that have passed are skipped. */
static int64_t wait_tick(const struct tec_bench *b, int64_t last)
{
    const struct tec_clock clock = {NULL};
    int64_t now = tec_clock_now(&clock), period = b->opened.engine->topology.period_us * 1000;
    if (!b->paced || !last || period <= 0)
        return now;
    int64_t late = now - (last + period), tick = last + period;
    if (late > 0)
        tick += (late + period - 1) / period * period;
    tec_clock_wait(&clock, tick);
    return tick;
}

void tec_bench_released(void *user, int action, const float *chunk,
                        const struct tec_frame_record *record)
{
    struct tec_bench *b = user;
    if (!chunk) /* the frame leaves the action out */
        return;
    const struct tec_flow *flow = &b->opened.engine->model->flow;
    const struct tec_action_record *a = &record->actions[action];
    if (action == 0 && b->n_left < TEC_MAX_STAGES)
        b->left[b->n_left++] = (struct tec_bench_left){a->age_us, record->frame - a->seen};
    b->chunk_hashes[action] = XXH3_64bits_withSeed(
        chunk, (size_t)flow->horizon * (size_t)flow->dim * sizeof *chunk, b->chunk_hashes[action]);
}

/* A turn begins with a reset, so its frames have the same inputs and noise as those of another. */
static void keep_hash(struct tec_bench_row *r, uint64_t hash, int turn)
{
    r->repeated = turn == 0 || (r->repeated && hash == r->actions_hash);
    if (turn == 0)
        r->actions_hash = hash;
}

/* A frame of every session: what each sees, and its tick. */
struct tec_bench_turn {
    int64_t number, tick_ns;
    bool counts; /* it is no warm-up */
    struct tec_frame_input inputs[TEC_MAX_SESSIONS];
    struct tec_tick ticks[TEC_MAX_SESSIONS];
    int64_t began_ns, ended_ns, host_ns; /* out: of all launches */
    int launches;
    struct tec_frame_record first; /* out: of its first frame */
};

static enum tec_status take_inputs(struct tec_bench *b, struct tec_bench_turn *t,
                                   struct tec_error *err)
{
    const struct tec_loop *loop = b->opened.engine->loop;
    const struct tec_clock clock = {NULL};
    for (int i = 0; i < b->n_sessions; i++)
        TEC_TRY(take_input(b, i, t->number, t->tick_ns, &t->inputs[i], err));
    if (!b->paced) /* preparing an input is not the frame's time */
        t->tick_ns = tec_clock_now(&clock);
    for (int i = 0; i < b->n_sessions; i++) {
        t->inputs[i].captured_ns = t->tick_ns;
        t->ticks[i] = tec_loop_tick(loop, t->tick_ns, 0);
        t->ticks[i].frame = t->number;
        t->ticks[i].counted = t->number;
        t->ticks[i].spawn = tec_loop_spawns(loop, t->number);
        t->ticks[i].session = i;
    }
    return TEC_OK;
}

/* One frame of the sessions from `at` on, n of them. */
static enum tec_status run_frame(struct tec_bench *b, struct tec_bench_row *r,
                                 struct tec_bench_turn *t, int at, int n, struct tec_error *err)
{
    struct tec_loop *loop = b->opened.engine->loop;
    const struct tec_frame_input *inputs[TEC_MAX_SESSIONS];
    for (int i = 0; i < n; i++)
        inputs[i] = &t->inputs[at + i];
    b->n_left = 0;
    int before = tec_loop_requests(loop);
    tec_loop_run_sessions(loop, inputs, t->ticks + at, n);
    TEC_TRY(tec_engine_failure(b->opened.engine, err));
    const struct tec_frame_record *record = tec_loop_record(loop, 0);
    if (at == 0)
        t->first = *record;
    t->began_ns = at ? t->began_ns : record->start_ns;
    t->ended_ns = record->end_ns;
    t->host_ns += record->host_ns;
    t->launches += record->n_launches;
    if (!b->first_ns)
        b->first_ns = record->end_ns;
    if (!t->counts)
        r->warm_tokens += record->tokens;
    if (!t->counts || record->filling)
        return TEC_OK;
    r->text_frames += before || tec_loop_requests(loop) || record->tokens || record->shed;
    for (int i = 0; i < n; i++)
        keep_actions(b, r, tec_loop_record(loop, i));
    keep_launches(b, r, record);
    return TEC_OK;
}

static void keep_turn(const struct tec_bench *b, struct tec_bench_row *r,
                      const struct tec_bench_turn *t)
{
    int64_t took = t->ended_ns - t->began_ns;
    if (t->first.filling) {
        r->filling++;
        return;
    }
    if (!r->frames || took > r->worst.end_ns - r->worst.start_ns) {
        r->worst = t->first;
        r->worst.end_ns = t->ended_ns;
        r->worst_at = r->frames;
    }
    r->frames++;
    r->most_captures = t->launches > r->most_captures ? t->launches : r->most_captures;
    r->depths += t->first.depth;
    keep(&r->frame, took);
    keep(&r->host, t->host_ns);
    if (!b->paced)
        r->busy_ns += took;
}

static enum tec_status run_turn(struct tec_bench *b, struct tec_bench_row *r,
                                struct tec_bench_turn *t, struct tec_error *err)
{
    int together = r->apart ? 1 : b->n_sessions;
    int64_t calls = atomic_load(&b->call->heap->calls);
    memset(b->chunk_hashes, 0, sizeof b->chunk_hashes);
    t->host_ns = t->launches = 0;
    for (int at = 0; at < b->n_sessions; at += together)
        TEC_TRY(run_frame(b, r, t, at, together, err));
    if (!t->counts)
        return TEC_OK;
    keep_turn(b, r, t);
    r->allocations += atomic_load(&b->call->heap->calls) - calls;
    return TEC_OK;
}

/* Reset, warm-up, measured frames. */
static enum tec_status run_block(struct tec_bench *b, struct tec_bench_row *r, int frames, int turn,
                                 struct tec_error *err)
{
    struct tec_loop *loop = b->opened.engine->loop;
    const struct tec_clock clock = {NULL};
    struct tec_bench_turn *t = b->turn;
    int64_t begin = 0;
    uint64_t hash = 0;
    int actions = tec_bench_actions(b);
    size_t hashed = (size_t)(actions ? actions : 1) * sizeof b->chunk_hashes[0];
    r->hashed = b->frames / b->rounds;
    tec_loop_restart(loop);
    tec_loop_set_planner(loop, &r->planner);
    t->tick_ns = 0;
    for (int f = 0; f < b->warmup + frames; f++) {
        t->number = f;
        t->counts = f >= b->warmup;
        if (f == b->warmup)
            tec_energy_begin(&b->energy, &r->energy); /* between frames, no clock runs */
        t->tick_ns = wait_tick(b, t->tick_ns);
        if (f == b->warmup)
            begin = t->tick_ns;
        TEC_TRY(take_inputs(b, t, err));
        TEC_TRY(run_turn(b, r, t, err));
        if (t->counts && f < b->warmup + r->hashed)
            hash = XXH3_64bits_withSeed(b->chunk_hashes, hashed, hash);
    }
    if (b->paced)
        r->busy_ns += tec_clock_now(&clock) - begin;
    tec_energy_end(&b->energy, &r->energy);
    keep_hash(r, hash, turn);
    return TEC_OK;
}

enum tec_status tec_bench_run(struct tec_bench *b, struct tec_error *err)
{
    b->turn = TEC_NEW(b->call->arena, 1, struct tec_bench_turn);
    if (!b->turn)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for frames");
    tec_energy_open_device(&b->energy, &b->card, b->opened.engine->device);
    for (int round = 0; round < b->rounds; round++)
        for (int i = 0; i < b->n_rows; i++) {
            int done = b->frames * round / b->rounds;
            if (b->call->progress)
                fprintf(stderr, "\r\033[Kbench: round %d of %d, %s %s", round + 1, b->rounds,
                        b->rows[i].policy, b->rows[i].params);
            TEC_TRY(
                run_block(b, &b->rows[i], b->frames * (round + 1) / b->rounds - done, round, err));
        }
    if (b->call->progress)
        fputs("\r\033[K", stderr);
    tec_loop_restart(b->opened.engine->loop);
    return TEC_OK;
}

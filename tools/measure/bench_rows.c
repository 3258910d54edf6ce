/* bench_rows.c - rows, inputs and turns: what is run, in which order, and what is kept of it. */
#include "tools/measure/bench.h"

#include "tools/api/topology.h"
#include "tools/frames/random_input.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* --- rows ------------------------------------------------------------------------------------ */

static bool has_param(const struct tec_policy *policy, const char *word, size_t n)
{
    const struct tec_param *p;
    for (int i = 0; (p = tec_policy_param(policy, i)); i++)
        if (strlen(p->name) == n && strncmp(p->name, word, n) == 0)
            return true;
    return false;
}

static enum tec_status set_param(struct tec_policy *policy, const char *word, size_t n,
                                 const char *value, struct tec_error *err)
{
    char name[64], *end;
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || n >= sizeof name)
        return tec_fail(err, TEC_INVALID, "'%s': '%s' is not a number", word, value);
    memcpy(name, word, n);
    name[n] = '\0';
    return tec_policy_set_param(policy, name, number, err);
}

int tec_bench_actions(const struct tec_bench *b)
{
    int n = tec_loop_settings(b->opened.engine->loop)->n_actions;
    return n > 1 ? n : 0;
}

/* Samples for every frame of a row; launches may be several a frame, then the rest is left out. */
static bool give_samples(struct tec_bench *b, struct tec_bench_row *r)
{
    size_t room = (size_t)b->frames * (size_t)b->n_sessions;
    struct tec_samples *all[] = {&r->frame, &r->action, &r->host, &r->age,  &r->prefill,
                                 &r->act,   &r->step1,  &r->step, &r->lives};
    bool ok = true;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i]->room = (int)room;
        all[i]->ns = TEC_NEW(b->call->arena, room, int64_t);
        ok = ok && all[i]->ns;
    }
    for (int i = 0; ok && i < tec_bench_actions(b); i++) {
        r->released[i].room = (int)room;
        r->released[i].ns = TEC_NEW(b->call->arena, room, int64_t);
        ok = r->released[i].ns != NULL;
    }
    r->nodes = TEC_NEW(b->call->arena, (size_t)b->n_nodes + 1, struct tec_histogram);
    return ok && r->nodes;
}

static enum tec_status add_row(struct tec_bench *b, const char *name, const char *sweep,
                               const char *value, bool apart, bool *used, struct tec_error *err)
{
    struct tec_bench_row *r = &b->rows[b->n_rows];
    const struct tec_words *words = &b->call->shared.param;
    if (b->n_rows == TEC_BENCH_ROWS)
        return tec_fail(err, TEC_INVALID, "more than %d rows: fewer policies or values",
                        TEC_BENCH_ROWS);
    TEC_TRY(tec_opened_status(tec_open_policy(&r->owner, b->opened.pipeline, name, b->call->root,
                                              &b->opened.engine->topology, NULL, 0, b->call->heap,
                                              err)));
    b->n_rows++; /* closed with the others from here on */
    r->planner = tec_policy_planner(r->owner);
    r->policy = tec_policy_name(r->owner);
    r->apart = apart;
    for (int i = 0; i < words->n; i++) {
        const char *equals = strchr(words->item[i], '=');
        size_t n = equals ? (size_t)(equals - words->item[i]) : 0;
        if (!equals || !has_param(r->owner, words->item[i], n))
            continue;
        used[i] = true;
        TEC_TRY(set_param(r->owner, words->item[i], n, equals + 1, err));
    }
    if (value)
        TEC_TRY(set_param(r->owner, sweep, strcspn(sweep, "="), value, err));
    char *params = tec_arena_strdup(b->call->arena, !b->apart ? "" : apart ? "apart" : "together");
    const struct tec_param *p;
    for (int i = 0; params && (p = tec_policy_param(r->owner, i)); i++)
        params = tec_arena_printf(b->call->arena, "%s%s%s=%g", params, *params ? "," : "", p->name,
                                  p->value);
    r->params = params;
    return params && give_samples(b, r) ? TEC_OK
                                        : tec_fail(err, TEC_NO_MEMORY, "no memory for samples");
}

/* The next word of a list with commas; NULL past the last one. */
static const char *next_word(struct tec_arena *arena, const char **list)
{
    if (!*list || !**list)
        return NULL;
    size_t n = strcspn(*list, ",");
    const char *word = tec_arena_strndup(arena, *list, n);
    *list += n + ((*list)[n] == ',');
    return word;
}

/* A row, and behind it that of the sessions' frames apart. */
static enum tec_status add_both(struct tec_bench *b, const char *name, const char *sweep,
                                const char *value, bool *used, struct tec_error *err)
{
    TEC_TRY(add_row(b, name, sweep, value, false, used, err));
    return b->apart ? add_row(b, name, sweep, value, true, used, err) : TEC_OK;
}

static enum tec_status add_rows(struct tec_bench *b, const char *name, const char *sweep,
                                bool *used, bool *swept, struct tec_error *err)
{
    int first = b->n_rows;
    TEC_TRY(add_both(b, name, NULL, NULL, used, err));
    size_t n = sweep ? strcspn(sweep, "=") : 0;
    if (!sweep || !has_param(b->rows[first].owner, sweep, n))
        return TEC_OK;
    *swept = true;
    while (b->n_rows > first) {
        struct tec_bench_row *last = &b->rows[--b->n_rows];
        tec_policy_close(last->owner);
        memset(last, 0, sizeof *last);
    }
    const char *values = sweep + n + 1, *value;
    while ((value = next_word(b->call->arena, &values)))
        TEC_TRY(add_both(b, name, sweep, value, used, err));
    return TEC_OK;
}

/* List the names under which times are kept. A ring's launch runs two nodes at once, so it has a
 * name of its own. */
static void name_nodes(struct tec_bench *b)
{
    const struct tec_topology *t = &b->opened.engine->topology;
    for (int i = 0; i < t->n_nodes; i++)
        b->nodes[i] = t->nodes[i].name;
    b->n_nodes = t->n_nodes;
    if (!t->n_rings)
        return;
    b->nodes[0] = "packed";
    b->nodes[1] = "decode";
    b->n_nodes = 2;
    for (int i = 0; i < t->n_nodes; i++)
        if (!t->nodes[i].ring)
            b->nodes[b->n_nodes++] = t->nodes[i].name;
}

enum tec_status tec_bench_make_rows(struct tec_bench *b, const char *policies, const char *sweep,
                                    struct tec_error *err)
{
    name_nodes(b);
    const struct tec_words *words = &b->call->shared.param;
    bool *used = TEC_NEW(b->call->arena, (size_t)words->n + 1, bool), swept = false;
    const char *name;
    if (!used)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for rows");
    if (sweep && (!strchr(sweep, '=') || !strchr(sweep, '=')[1]))
        return tec_fail(err, TEC_INVALID, "--sweep is NAME=v1,v2, is '%s'", sweep);
    if (!policies)
        TEC_TRY(add_rows(b, NULL, sweep, used, &swept, err));
    while ((name = next_word(b->call->arena, &policies)))
        TEC_TRY(add_rows(b, name, sweep, used, &swept, err));
    for (int i = 0; i < words->n; i++)
        if (!used[i])
            return tec_fail(err, TEC_INVALID, "--param %s: no policy here has it", words->item[i]);
    if (sweep && !swept)
        return tec_fail(err, TEC_INVALID,
                        "--sweep %s: no policy here has it; a field of the pipeline is set with "
                        "--set, one run each",
                        sweep);
    return TEC_OK;
}

void tec_bench_close_rows(struct tec_bench *b)
{
    for (int i = 0; i < b->n_rows; i++)
        tec_policy_close(b->rows[i].owner);
    b->n_rows = 0;
}

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
            input->chains[0].key = b->random[0].chains[0].key;
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
    if (!t->counts || record->filling)
        return TEC_OK;
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
    tec_loop_reset(loop);
    tec_loop_set_planner(loop, &r->planner);
    t->tick_ns = 0;
    for (int f = 0; f < b->warmup + frames; f++) {
        t->number = f;
        t->counts = f >= b->warmup;
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
    keep_hash(r, hash, turn);
    return TEC_OK;
}

enum tec_status tec_bench_run(struct tec_bench *b, struct tec_error *err)
{
    b->turn = TEC_NEW(b->call->arena, 1, struct tec_bench_turn);
    if (!b->turn)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for frames");
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
    tec_loop_reset(b->opened.engine->loop);
    return TEC_OK;
}

/* profile_run.c - variants, the observation they run on, and turns. */
#include "tools/measure/profile.h"

#include <string.h>

enum { WARM_TURNS = 2, SHOW_NS = 100000000 };

/* --- what is measured ------------------------------------------------------------------------ */

static const char *node_of(const struct tec_profile *p, int model, const char *kind)
{
    const struct tec_topology *t = &p->opened.engine->topology;
    for (int i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].model == model && strcmp(t->nodes[i].kind, kind) == 0 &&
            (strcmp(kind, "decode") != 0 || !t->nodes[i].ring))
            return t->nodes[i].name;
    return kind;
}

/* List the nodes of a chain that rank texts. */
static bool list_scores(struct tec_profile *p, int model)
{
    const struct tec_choices *lists = &p->opened.engine->chains[model].choices;
    bool ok = true;
    for (int i = 0; i < lists->n; i++)
        if (lists->items[i].node->kind == TEC_DECL_SCORE)
            ok = ok && tec_profile_add(p, TEC_COST_SCORE, lists->items[i].node->name, false, 0);
    return ok;
}

/* List the variants of a further chain: its hard nodes or a slice of its prefill, what it ranks,
 * and its decodes. */
static bool list_secondary(struct tec_profile *p, int model)
{
    struct tec_plan *plan = p->opened.engine->chains[model].plan;
    const struct tec_plan_spec *s = &plan->spec;
    int first = p->n_variants, frames = p->frames;
    bool hard = tec_profile_hard(p, model), ok;
    if (p->opened.engine->chains[model].joins)
        return true;
    if (s->stages) {
        ok = tec_profile_list_ring(p, model);
        if (s->request_slots || s->apart) /* of a request that shares nothing, or of the ring */
            ok = ok && tec_profile_add(p, TEC_COST_PREFILL, node_of(p, model, "prefill"), false, 0);
    } else if (hard) {
        ok = tec_profile_list_hard(p, model, node_of(p, model, "prefill"));
    } else {
        int slices = tec_part_slices(tec_plan_part(plan, TEC_PART_PREFIX, 0));
        p->frames *= slices; /* samples */
        ok = tec_profile_add(p, TEC_COST_PREFILL, node_of(p, model, "prefill"), false, 0);
        p->frames = frames;
        p->variants[first].slices = slices > 1 ? slices : 0;
    }
    ok = ok && list_scores(p, model);
    for (int b = 0; s->request_slots && b < s->n_batches; b++)
        ok = ok &&
             tec_profile_add(p, TEC_COST_DECODE, node_of(p, model, "decode"), false, s->batches[b]);
    for (int i = first; i < p->n_variants; i++)
        p->variants[i].model = model;
    int *ids = TEC_NEW(p->call->arena, (size_t)s->text_tokens, int);
    uint8_t *picture = TEC_NEW(p->call->arena, tec_model_picture_bytes(plan->model) + 1, uint8_t);
    for (int i = 0; ids && i < s->text_tokens; i++)
        ids[i] = 3 + i % 200;
    if (ids)
        tec_prefix_mark(plan->model, ids, s->text_tokens, s->pictures);
    p->prompts[model] =
        (struct tec_prefix_input){.n_pictures = s->pictures, .n_text = s->text_tokens, .ids = ids};
    for (int i = 0; i < s->pictures; i++)
        p->prompts[model].picture[i] = picture;
    return ok && ids && picture;
}

/* The observations of n sessions in one launch, and the action behind it. */
static bool list_together(struct tec_profile *p, const char *see, int n)
{
    const struct tec_plan_spec *s = &p->opened.engine->plan->spec;
    int first = p->n_variants;
    bool ok = tec_profile_add(p, TEC_COST_PREFILL, see, false, 0);
    if (s->n_actions && s->frame_action >= 0)
        ok = ok && tec_profile_add(p, TEC_COST_ACTION, tec_profile_action(p, 0, s->frame_action),
                                   false, 0);
    for (int i = first; i < p->n_variants; i++)
        p->variants[i].observations = n;
    return ok;
}

static bool list_variants(struct tec_profile *p)
{
    const struct tec_plan_spec *s = &p->opened.engine->plan->spec;
    const char *see = node_of(p, 0, "prefill");
    bool ok = s->stages ? tec_profile_list_ring(p, 0)
                        : tec_profile_add(p, TEC_COST_PREFILL, see, false, 0);
    if (s->n_actions && s->frame_action >= 0) /* behind its prefill */
        ok = ok && tec_profile_add(p, TEC_COST_ACTION, tec_profile_action(p, 0, s->frame_action),
                                   false, 0);
    for (int g = 0; g < s->n_together; g++)
        ok = ok && list_together(p, see, s->together[g]);
    if ((s->request_slots && s->isolated) || s->apart)
        ok = ok && tec_profile_add(p, TEC_COST_PREFILL, see, !s->stages, 0);
    for (int i = 0; i < s->n_actions; i++)
        if (i != s->frame_action)
            ok = ok && tec_profile_add(p, TEC_COST_ACTION, tec_profile_action(p, 0, i), false, 0);
    ok = ok && list_scores(p, 0);
    for (int b = 0; s->request_slots && b < s->n_batches; b++)
        ok = ok &&
             tec_profile_add(p, TEC_COST_DECODE, node_of(p, 0, "decode"), false, s->batches[b]);
    for (int m = 1; m < p->opened.engine->n_chains; m++)
        ok = ok && list_secondary(p, m);
    return ok;
}

static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* The time of a launch depends on counts and hardly on values. */
static bool make_input(struct tec_profile *p, uint64_t seed)
{
    const struct tec_engine *e = p->opened.engine;
    const struct tec_plan_spec *s = &e->plan->spec;
    struct tec_arena *arena = p->call->arena;
    size_t pixels = tec_model_picture_bytes(e->model);
    size_t chunk = (size_t)e->model->flow.horizon * (size_t)e->model->flow.dim;
    int vocab = e->model->text.vocab, n = s->text_tokens;
    uint64_t state = 2 * seed + 1;
    if (p->prompt_tokens && p->prompt_tokens < n)
        n = p->prompt_tokens;
    uint8_t *picture = TEC_NEW(arena, pixels + 1, uint8_t);
    int *ids = TEC_NEW(arena, (size_t)n + 1, int);
    float *noise = TEC_NEW(arena, chunk + 1, float);
    if (!picture || !ids || !noise)
        return false;
    for (size_t i = 0; i < pixels; i++)
        picture[i] = (uint8_t)draw(&state);
    for (int i = 0; i < n; i++)
        ids[i] = vocab > 3 ? 3 + (int)(draw(&state) % (uint32_t)(vocab - 3)) : 0;
    tec_prefix_mark(e->model, ids, n, s->pictures);
    for (size_t i = 0; i < chunk; i++)
        noise[i] = (float)(draw(&state) % 4001) / 1000.0F - 2.0F;
    p->prompt_tokens = n;
    p->input = (struct tec_chain_input){
        .prefix = {.n_pictures = s->pictures, .n_text = n, .ids = ids}, .noise = {noise}};
    for (int i = 1; i < TEC_MAX_ACTIONS; i++)
        p->input.noise[i] = noise;
    for (int i = 0; i < s->pictures; i++)
        p->input.prefix.picture[i] = picture;
    return true;
}

enum tec_status tec_profile_prepare(struct tec_profile *p, uint64_t seed, struct tec_error *err)
{
    size_t rows = 1, k = 1, entries = 0;
    for (int m = 0; m < p->opened.engine->n_chains; m++) {
        const struct tec_plan_spec *s = &p->opened.engine->chains[m].plan->spec;
        rows = (size_t)s->request_slots + 1 > rows ? (size_t)s->request_slots + 1 : rows;
        k = (size_t)s->max_k + 1 > k ? (size_t)s->max_k + 1 : k;
        entries = (size_t)s->trees.entries > entries ? (size_t)s->trees.entries : entries;
    }
    size_t variants = TEC_PROFILE_VARIANTS + (size_t)tec_profile_ring_variants(p);
    p->variants = TEC_NEW(p->call->arena, variants, struct tec_profile_variant);
    p->tokens = TEC_NEW(p->call->arena, rows * k, int);
    p->likely = TEC_NEW(p->call->arena, entries + 1, float);
    p->made = TEC_NEW(p->call->arena, rows, int);
    for (int r = 0; r < TEC_MAX_ROWS; r++)
        p->list[r] = &p->rows[r];
    bool room = p->variants && p->tokens && p->made && p->likely;
    if (!room || !list_variants(p) || !make_input(p, seed))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d samples of each variant", p->frames);
    return tec_profile_list_memories(p, err);
}

/* --- turns ----------------------------------------------------------------------------------- */

/* One launch, and the time that the engine took around it. */
static void timed(struct tec_profile *p, const struct tec_executor *x, struct tec_launch *launch)
{
    const struct tec_clock clock = {NULL};
    int64_t begin = tec_clock_now(&clock);
    tec_executor_launch(x, launch);
    if (!p->counting)
        return;
    p->inside_ns += tec_clock_now(&clock) - begin;
    p->busy_ns += launch->replay.end_ns - launch->replay.start_ns;
}

/* A prefill, with `acts` and the action that goes with it; of n observations. */
static struct tec_replay timed_prefix(struct tec_profile *p, const struct tec_executor *x,
                                      bool acts, int n)
{
    struct tec_observed each[TEC_MAX_SESSIONS];
    for (int i = 0; i < n; i++)
        each[i] = (struct tec_observed){.region = i ? p->others[i] : p->region, .input = &p->input};
    struct tec_launch launch = {.kind = TEC_LAUNCH_prefix,
                                .prefix = {.each = each, .n = n, .acts = acts}};
    timed(p, x, &launch);
    return launch.replay;
}

static void run_decode(struct tec_profile *p, const struct tec_executor *x,
                       struct tec_profile_variant *v, int turn)
{
    struct tec_plan *plan = p->opened.engine->chains[v->model].plan;
    const struct tec_topology *t = &p->opened.engine->topology;
    const struct tec_plan_spec *s = &plan->spec;
    const struct tec_prefix_input *o = v->model ? &p->prompts[v->model] : &p->input.prefix;
    const struct tec_executor own = tec_executor_real(plan);
    int prefix = tec_prefix_rows(plan, o), region = v->model ? p->regions[v->model] : p->region;
    int n = v->batch < s->request_slots ? v->batch : s->request_slots,
        k = t->n_k ? t->k[turn % t->n_k] : 1;
    k = k < s->max_k ? k : s->max_k;
    k = k < s->new_tokens ? k : s->new_tokens;
    for (int r = 0; r < n; r++)
        tec_row_start(&p->rows[r], plan, region, prefix, o->ids[0], r, s->new_tokens, -1);
    struct tec_launch launch = {
        .kind = TEC_LAUNCH_decode,
        .decode = {.rows = p->list, .n = n, .k = k, .tokens = p->tokens, .made = p->made}};
    timed(p, v->model ? &own : x, &launch);
    tec_profile_keep(p, v, launch.replay.end_ns - launch.replay.start_ns, k > 0 ? k : 1);
}

/* Run all slices in order, because a decode after them reads their keys and values. */
static void run_slices(struct tec_profile *p, struct tec_profile_variant *v)
{
    struct tec_plan *plan = p->opened.engine->chains[v->model].plan;
    const struct tec_executor x = tec_executor_real(plan);
    const struct tec_chain_input in = {.prefix = v->model ? p->prompts[v->model] : p->input.prefix};
    int region = v->model ? p->regions[v->model] : p->region;
    for (int i = 0; i < (v->slices ? v->slices : 1); i++) {
        struct tec_launch launch = {.kind = TEC_LAUNCH_slice,
                                    .slice = {.of = {.region = region, .input = &in}, .at = i}};
        timed(p, &x, &launch);
        tec_profile_keep(p, v, launch.replay.end_ns - launch.replay.start_ns, 1);
    }
}

/* Score the texts of a node after the prefix of its chain's last prefill. */
static void run_score(struct tec_profile *p, struct tec_profile_variant *v)
{
    struct tec_plan *plan = p->opened.engine->chains[v->model].plan;
    const struct tec_executor x = tec_executor_real(plan);
    const struct tec_prefix_input *o = v->model ? &p->prompts[v->model] : &p->input.prefix;
    const struct tec_choices *lists = &p->opened.engine->chains[v->model].choices;
    const struct tec_token_tree *tree = NULL;
    for (int i = 0; i < lists->n; i++)
        if (strcmp(lists->items[i].node->name, v->node) == 0)
            tree = &lists->items[i].tree;
    tec_row_start(&p->rows[0], plan, v->model ? p->regions[v->model] : p->region,
                  tec_prefix_rows(plan, o), o->ids[0], 0, 1, -1);
    struct tec_launch launch = {.kind = TEC_LAUNCH_score,
                                .score = {.tree = tree, .row = &p->rows[0], .likely = p->likely}};
    timed(p, &x, &launch);
    tec_profile_keep(p, v, launch.replay.end_ns - launch.replay.start_ns, 1);
}

/* Run the variants of further chains, each one's prefill first, and those of requests on a ring of
 * the first. */
static void run_secondary(struct tec_profile *p, const struct tec_executor *x, int turn)
{
    for (int i = 0; i < p->n_variants; i++) {
        struct tec_profile_variant *v = &p->variants[i];
        bool stages = p->opened.engine->chains[v->model].plan->spec.stages > 0;
        if (v->memory || (!v->model && (v->ring || !stages)))
            continue;
        if (v->ring)
            tec_profile_run_ring(p, v);
        else if (v->kind == TEC_COST_PREFILL && !stages && tec_profile_hard(p, v->model))
            tec_profile_run_hard(p, v);
        else if (v->kind == TEC_COST_PREFILL)
            run_slices(p, v);
        else if (v->kind == TEC_COST_DECODE)
            run_decode(p, x, v, turn);
        else if (v->kind == TEC_COST_SCORE)
            run_score(p, v);
    }
}

static bool acts_in_frame(const struct tec_profile *p)
{
    const struct tec_plan_spec *s = &p->opened.engine->plan->spec;
    return s->n_actions > 0 && s->frame_action >= 0;
}

/* An action node alone; one that goes with the prefill is measured there. */
static void run_action(struct tec_profile *p, const struct tec_executor *x,
                       struct tec_profile_variant *v)
{
    const struct tec_plan_spec *s = &p->opened.engine->plan->spec;
    int at = 0;
    while (at < s->n_actions && strcmp(tec_profile_action(p, 0, at), v->node) != 0)
        at++;
    if (at == s->frame_action || at == s->n_actions)
        return;
    struct tec_launch launch = {
        .kind = TEC_LAUNCH_action,
        .action = {.at = at,
                   .region = p->region,
                   .rows = tec_prefix_rows(p->opened.engine->plan, &p->input.prefix),
                   .input = &p->input,
                   .state = p->input.state}};
    tec_executor_launch(x, &launch);
    tec_profile_keep(p, v, launch.replay.end_ns - launch.replay.start_ns, 1);
}

static void run_turn(struct tec_profile *p, const struct tec_executor *x, int turn)
{
    int first = 0;
    if (p->opened.engine->plan->spec.stages) {
        tec_profile_run_rings(p, turn);
        run_secondary(p, x, turn);
        tec_profile_run_memories(p);
        return;
    }
    for (int i = 0; i < p->n_variants; i++) {
        struct tec_profile_variant *v = &p->variants[i];
        if (v->kind == TEC_COST_DECODE || v->model || v->memory)
            break;
        first = i + 1;
        if (v->kind == TEC_COST_ACTION) {
            run_action(p, x, v);
            continue;
        }
        if (v->kind == TEC_COST_SCORE) {
            run_score(p, v);
            continue;
        }
        const struct tec_replay replay =
            timed_prefix(p, x, !v->lone, v->lone || v->observations < 1 ? 1 : v->observations);
        tec_profile_keep(p, v, replay.mark_ns[TEC_MARK_PREFILL] - replay.start_ns, 1);
        if (!v->lone && v[1].kind == TEC_COST_ACTION && acts_in_frame(p))
            tec_profile_keep(p, v + 1,
                             replay.mark_ns[TEC_MARK_ACTION] - replay.mark_ns[TEC_MARK_PREFILL], 1);
    }
    int decodes = 0;
    while (first + decodes < p->n_variants && !p->variants[first + decodes].model &&
           !p->variants[first + decodes].memory)
        decodes++;
    run_secondary(p, x, turn);
    for (int i = 0; i < decodes; i++)
        run_decode(p, x, &p->variants[first + (i + turn) % decodes], turn);
    tec_profile_run_memories(p);
}

static void show(const struct tec_profile *p, int64_t now, int64_t *shown, int turn)
{
    if (!p->call->progress || now - *shown < SHOW_NS)
        return;
    *shown = now;
    fprintf(stderr, "\r\033[Kprofile: %3d %%  %d of %d turns", turn * 100 / p->frames, turn,
            p->frames);
    fflush(stderr);
}

static int64_t slice_p50(const struct tec_samples *s, int round, int rounds)
{
    int from = (int)((int64_t)s->n * round / rounds),
        to = (int)((int64_t)s->n * (round + 1) / rounds);
    struct tec_samples slice = {.n = to - from, .room = to - from, .ns = s->ns + from};
    tec_samples_sort(&slice);
    return tec_samples_at(&slice, 0.5);
}

/* Find the largest difference between rounds; samples must still be in their order. */
static void compare_rounds(struct tec_profile *p)
{
    for (int i = 0; i < p->n_variants; i++) {
        int64_t low = INT64_MAX, high = 0;
        for (int round = 0; round < p->rounds; round++) {
            int64_t at = slice_p50(&p->variants[i].samples, round, p->rounds);
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        double spread = low > 0 ? (double)(high - low) / (double)low : 0.0;
        if (spread > p->spread) {
            p->spread = spread;
            p->spread_of = &p->variants[i];
        }
        tec_samples_sort(&p->variants[i].samples);
    }
}

void tec_profile_take_regions(struct tec_profile *p)
{
    struct tec_plan *plan = p->opened.engine->plan;
    p->region = plan->spec.stages ? 0 : tec_kv_pool_take(&plan->prefixes);
    for (int i = 1; i < plan->spec.sessions; i++)
        p->others[i] = tec_kv_pool_take(&plan->prefixes);
    for (int m = 1; m < p->opened.engine->n_chains; m++)
        p->regions[m] = tec_kv_pool_take(&p->opened.engine->chains[m].plan->prefixes);
}

void tec_profile_drop_regions(struct tec_profile *p)
{
    struct tec_plan *plan = p->opened.engine->plan;
    if (!plan->spec.stages)
        tec_kv_pool_drop(&plan->prefixes, p->region);
    for (int i = 1; i < plan->spec.sessions; i++)
        tec_kv_pool_drop(&plan->prefixes, p->others[i]);
    for (int m = 1; m < p->opened.engine->n_chains; m++)
        tec_kv_pool_drop(&p->opened.engine->chains[m].plan->prefixes, p->regions[m]);
}

void tec_profile_run(struct tec_profile *p)
{
    const struct tec_clock clock = {NULL};
    struct tec_plan *plan = p->opened.engine->plan;
    const struct tec_executor x = tec_executor_real(plan);
    int64_t shown = 0;
    tec_profile_take_regions(p);
    tec_energy_open_device(&p->energy, &p->card, p->opened.engine->device);
    for (int round = 0, turn = 0; round < p->rounds; round++) {
        p->counting = false;
        for (int i = 0; i < WARM_TURNS; i++)
            run_turn(p, &x, i);
        p->counting = true;
        tec_energy_begin(&p->energy, &p->energy_sum);
        int64_t begin = tec_clock_now(&clock);
        int until = (int)((int64_t)p->frames * (round + 1) / p->rounds);
        for (; turn < until; turn++) {
            run_turn(p, &x, turn);
            show(p, p->call->progress ? tec_clock_now(&clock) : 0, &shown, turn);
        }
        p->wall_ns += tec_clock_now(&clock) - begin;
        tec_energy_end(&p->energy, &p->energy_sum);
    }
    tec_profile_drop_regions(p);
    if (p->call->progress)
        fputs("\r\033[K", stderr);
    compare_rounds(p);
}

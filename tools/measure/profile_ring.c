/* profile_ring.c - the launches of a ring, each number of rows by itself, with its copies. */
#include "tools/measure/profile.h"

/* The rate of copies that are part of a launch, in bytes a microsecond: faster than any memory, so
 * that they take no time. */
static const double at_once = 1e9;

static const struct tec_plan *plan_of(const struct tec_profile *p, int model)
{
    return p->opened.engine->chains[model].plan;
}

static bool add(struct tec_profile *p, int model, enum tec_cost_kind kind, int enter, int batch)
{
    const struct tec_loop_chain *c = &tec_loop_settings(p->opened.engine->loop)->chains[model];
    const char *name = kind == TEC_COST_PACKED ? c->packed : c->alone;
    struct tec_profile_variant *v = &p->variants[p->n_variants];
    bool ok = tec_profile_add(p, kind, name, false, batch);
    v->model = model;
    v->ring = true;
    v->enter = enter;
    return ok;
}

int tec_profile_ring_variants(const struct tec_profile *p)
{
    int n = 0;
    for (int i = 0; i < p->opened.engine->n_chains; i++) {
        const struct tec_plan_spec *s = &plan_of(p, i)->spec;
        if (!p->opened.engine->chains[i].joins) /* packed, and alone */
            n += s->rings * (s->rings * s->stages + 1) + s->rings * s->stages;
    }
    return n;
}

bool tec_profile_list_ring(struct tec_profile *p, int model)
{
    const struct tec_plan_spec *s = &plan_of(p, model)->spec;
    int others = s->rings * (s->stages - !s->apart);
    bool ok = true;
    for (int enter = 1; enter <= s->rings && !s->apart; enter++)
        for (int r = 0; r <= others; r++)
            ok = ok && add(p, model, TEC_COST_PACKED, enter, r);
    for (int r = 1; r <= others; r++)
        ok = ok && add(p, model, TEC_COST_DECODE, 0, r);
    return ok;
}

static const struct tec_prefix_input *prompt_of(const struct tec_profile *p, int model)
{
    return model ? &p->prompts[model] : &p->input.prefix;
}

double tec_profile_copy_rate(const struct tec_profile *p)
{
    bool copies = false;
    for (int i = 0; i < p->opened.engine->n_chains; i++)
        copies |= plan_of(p, i)->spec.gathers || plan_of(p, i)->spec.shifts;
    return copies ? at_once : 0.0;
}

void tec_profile_launch_ring(struct tec_profile *p, const struct tec_executor *x,
                             const struct tec_profile_variant *v, struct tec_replay *replay)
{
    const struct tec_plan *plan = plan_of(p, v->model);
    const struct tec_prefix_input *prefixes[TEC_MAX_STAGES];
    struct tec_ring_move moves[TEC_MAX_STAGES];
    int prefix = tec_prefix_rows(plan, prompt_of(p, v->model)), tokens[TEC_MAX_STAGES];
    struct tec_launch launch = {
        .kind = TEC_LAUNCH_packed,
        .packed = {
            .in = {.prefixes = prefixes, .rows = p->list, .entering = v->enter, .n = v->batch},
            .tokens = tokens}};
    for (int i = 0; i < v->enter; i++)
        prefixes[i] = prompt_of(p, v->model);
    tec_launch_ring_full(plan, prefix, v->enter, v->batch, p->rows, p->list);
    if (x->shifts) {
        launch.packed.in.moves = moves;
        launch.packed.in.n_moves = tec_launch_ring_moves(plan, p->list, v->enter + v->batch, moves);
    }
    launch.replay = *replay;
    tec_executor_launch(x, &launch);
    *replay = launch.replay;
}

void tec_profile_run_ring(struct tec_profile *p, struct tec_profile_variant *v)
{
    const struct tec_clock clock = {NULL};
    const struct tec_executor x = tec_executor_real(p->opened.engine->chains[v->model].plan);
    struct tec_replay replay = {.start_ns = 0};
    int64_t begin = tec_clock_now(&clock);
    tec_profile_launch_ring(p, &x, v, &replay);
    tec_profile_keep(p, v, replay.end_ns - replay.start_ns, 1);
    if (!p->counting)
        return;
    p->inside_ns += tec_clock_now(&clock) - begin;
    p->busy_ns += replay.end_ns - replay.start_ns;
}

void tec_profile_run_rings(struct tec_profile *p, int turn)
{
    int n = 0;
    while (n < p->n_variants && p->variants[n].ring && !p->variants[n].model)
        n++;
    for (int i = 0; i < n; i++)
        tec_profile_run_ring(p, &p->variants[(i + turn) % n]);
}

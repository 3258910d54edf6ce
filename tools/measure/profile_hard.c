/* profile_hard.c - the variants of further chains with hard nodes: their prefill, the action that
 * goes with it, and actions that are launches of their own. */
#include "tools/measure/profile.h"

#include <string.h>

bool tec_profile_hard(const struct tec_profile *p, int model)
{
    return model > 0 && !p->opened.engine->chains[model].plan->spec.secondary;
}

const char *tec_profile_action(const struct tec_profile *p, int model, int at)
{
    const struct tec_loop_options *o = tec_loop_settings(p->opened.engine->loop);
    for (int i = 0; i < o->n_actions; i++)
        if (o->actions[i].chain == model && o->actions[i].at == at)
            return o->actions[i].name;
    return "";
}

bool tec_profile_list_hard(struct tec_profile *p, int model, const char *prefill)
{
    const struct tec_plan_spec *s = &p->opened.engine->chains[model].plan->spec;
    int first = p->n_variants;
    bool ok = tec_profile_add(p, TEC_COST_PREFILL, prefill, false, 0);
    for (int i = 0; i < s->n_actions; i++)
        ok = ok && tec_profile_add(p, TEC_COST_ACTION, tec_profile_action(p, model, i), false, 0);
    for (int i = first; i < p->n_variants; i++)
        p->variants[i].model = model;
    p->starts[model] = TEC_NEW(p->call->arena, tec_engine_room(p->opened.engine).chunk + 1, float);
    return ok && p->starts[model];
}

static void keep(struct tec_profile *p, int model, int at, int64_t ns)
{
    const char *name = tec_profile_action(p, model, at);
    for (int i = 0; i < p->n_variants; i++)
        if (p->variants[i].model == model && p->variants[i].kind == TEC_COST_ACTION &&
            strcmp(p->variants[i].node, name) == 0)
            tec_profile_keep(p, &p->variants[i], ns, 1);
}

/* A chain's prefill is launched with the action that goes with it, then its other actions are. */
void tec_profile_run_hard(struct tec_profile *p, struct tec_profile_variant *v)
{
    const struct tec_clock clock = {NULL};
    struct tec_plan *plan = p->opened.engine->chains[v->model].plan;
    const struct tec_plan_spec *s = &plan->spec;
    const struct tec_executor x = tec_executor_real(plan);
    struct tec_chain_input in = {.prefix = p->prompts[v->model]};
    const struct tec_observed of = {.region = p->regions[v->model], .input = &in};
    struct tec_launch frame = {.kind = TEC_LAUNCH_prefix,
                               .prefix = {.each = &of, .n = 1, .acts = true}};
    const struct tec_replay *r = &frame.replay;
    int64_t begin = tec_clock_now(&clock);
    for (int i = 0; i < TEC_MAX_ACTIONS; i++)
        in.noise[i] = p->starts[v->model];
    tec_executor_launch(&x, &frame);
    int64_t seen = r->mark_ns[TEC_MARK_PREFILL], busy = r->end_ns - r->start_ns;
    tec_profile_keep(p, v, seen - r->start_ns, 1);
    if (s->n_actions && s->frame_action >= 0)
        keep(p, v->model, s->frame_action, r->mark_ns[TEC_MARK_ACTION] - seen);
    for (int at = 0; at < s->n_actions; at++) {
        if (at == s->frame_action)
            continue;
        struct tec_launch launch = {.kind = TEC_LAUNCH_action,
                                    .action = {.at = at,
                                               .region = of.region,
                                               .rows = tec_prefix_rows(plan, &in.prefix),
                                               .input = &in}};
        tec_executor_launch(&x, &launch);
        keep(p, v->model, at, launch.replay.end_ns - launch.replay.start_ns);
        busy += launch.replay.end_ns - launch.replay.start_ns;
    }
    if (!p->counting)
        return;
    p->inside_ns += tec_clock_now(&clock) - begin;
    p->busy_ns += busy;
}

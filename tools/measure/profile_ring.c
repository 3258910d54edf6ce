/* profile_ring.c - the launches of a ring, each number of rows by itself, and its copies. */
#include "tools/measure/profile.h"

#include "graph/kv/stages.h"

/* The rate of copies that are part of a launch, in bytes a microsecond: faster than any memory, so
 * that they take no time. */
static const double at_once = 1e9;

bool tec_profile_list_ring(struct tec_profile *p)
{
    const struct tec_plan_spec *s = &p->opened.engine->plan->spec;
    bool ok = true;
    for (int r = 0; r < s->stages; r++)
        ok = ok && tec_profile_add(p, TEC_COST_PACKED, "packed", false, r);
    for (int r = 1; r < s->stages; r++)
        ok = ok && tec_profile_add(p, TEC_COST_DECODE, "decode", false, r);
    if (s->shifts && s->stages > 1)
        ok = ok && tec_profile_add(p, TEC_COST_KINDS, "shift", false, 0);
    return ok;
}

static int64_t shifted_bytes(const struct tec_profile *p)
{
    const struct tec_plan *plan = p->opened.engine->plan;
    const struct tec_kv_shape *kv = &plan->space.shape;
    int64_t token = tec_kv_token_bytes(kv);
    return token * tec_stages_shifted(plan->spec.stages, tec_prefix_rows(plan, &p->input.prefix));
}

double tec_profile_copy_rate(const struct tec_profile *p)
{
    const struct tec_plan_spec *s = &p->opened.engine->plan->spec;
    for (int i = 0; i < p->n_variants; i++)
        if (p->variants[i].kind == TEC_COST_KINDS) {
            double us = (double)tec_samples_at(&p->variants[i].samples, 0.5) / 1000.0;
            double rate = us > 0.0 ? 2.0 * (double)shifted_bytes(p) / us : at_once;
            return rate < at_once ? rate : at_once;
        }
    return s->gathers ? at_once : 0.0;
}

static void shift(struct tec_profile *p, const struct tec_executor *x, struct tec_replay *replay)
{
    const struct tec_plan *plan = p->opened.engine->plan;
    struct tec_ring_move moves[TEC_MAX_STAGES];
    int n = plan->spec.stages - 1;
    tec_ring_moves_full(tec_prefix_rows(plan, &p->input.prefix), n, moves);
    x->shift(x->self, moves, n, replay);
}

static void launch(struct tec_profile *p, const struct tec_executor *x,
                   const struct tec_profile_variant *v, struct tec_replay *replay)
{
    const struct tec_plan *plan = p->opened.engine->plan;
    int prefix = tec_prefix_rows(plan, &p->input.prefix);
    struct tec_row_state entering = tec_ring_entering(plan, prefix);
    int tokens[TEC_MAX_STAGES], made[TEC_MAX_STAGES];
    struct tec_ring_launch packed = {.input = &p->input,
                                     .entering = &entering,
                                     .rows = p->list,
                                     .n = v->batch,
                                     .tokens = tokens};
    tec_ring_full(plan, prefix, v->batch, p->rows, p->list);
    if (v->kind == TEC_COST_KINDS) {
        shift(p, x, replay);
    } else if (v->kind == TEC_COST_DECODE) {
        x->decode(x->self, p->list, v->batch, 1, tokens, made, replay);
    } else {
        x->packed(x->self, &packed);
        *replay = packed.replay;
    }
}

void tec_profile_run_ring(struct tec_profile *p, const struct tec_executor *x, int turn)
{
    const struct tec_clock clock = {NULL};
    int n = 0;
    while (n < p->n_variants && !p->variants[n].model)
        n++;
    for (int i = 0; i < n; i++) {
        struct tec_profile_variant *v = &p->variants[(i + turn) % n];
        struct tec_replay replay = {.start_ns = 0};
        int64_t begin = tec_clock_now(&clock);
        launch(p, x, v, &replay);
        tec_profile_keep(p, v, replay.end_ns - replay.start_ns, 1);
        if (!p->counting)
            continue;
        p->inside_ns += tec_clock_now(&clock) - begin;
        p->busy_ns += replay.end_ns - replay.start_ns;
    }
}

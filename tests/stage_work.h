/* stage_work.h - the sums of what a launch computes and moves, stage by stage. */
#ifndef TEC_TESTS_STAGE_WORK_H
#define TEC_TESTS_STAGE_WORK_H

#include "graph/compile/work.h"

struct stage_work {
    int64_t calls; /* kernels, where each call is one */
    struct tec_cost cost;
};

static inline void stage_work_add(void *user, const struct tec_call_work *work)
{
    struct stage_work *sum = (struct stage_work *)user + work->stage;
    sum->calls++;
    tec_cost_add(&sum->cost, &work->cost);
}

static inline void stage_work_sum(const struct tec_plan *plan, const struct tec_plan_part *part,
                                  const struct tec_work_size *size,
                                  struct stage_work sums[TEC_STAGE_COUNT])
{
    for (int i = 0; i < TEC_STAGE_COUNT; i++)
        sums[i] = (struct stage_work){.calls = 0};
    tec_work_visit(plan, part, size, stage_work_add, sums);
}

#endif

/* stage_times.h - how long the launches of a case took, by stage: what a certificate keeps. */
#ifndef TEC_TESTS_JUDGE_STAGE_TIMES_H
#define TEC_TESTS_JUDGE_STAGE_TIMES_H

#include "graph/compile/plan.h"
#include "tests/judge/verify.h"

/* Stages, and the same of plans that keep tensors for the judge, which are slower. */
enum { TEC_STAGE_KINDS = 5, TEC_STAGE_TIMES = 2 * TEC_STAGE_KINDS };

/* Zero-initialise. */
struct tec_stage_times {
    struct {
        size_t n, room;
        int64_t *ns;
    } stages[TEC_STAGE_TIMES];
};

/* A launch of the plan has ended; v->times NULL: nothing is kept. What finds no memory is left out.
 */
void tec_verify_replayed(struct tec_verify *v, const struct tec_plan *plan,
                         const struct tec_replay *replay);

/* [{case, stage, n, p50_us, p99_us, max_us}] added to `rows`, by nearest rank; the times are empty
 * then. */
void tec_verify_put_times(json_t *rows, const char *name, struct tec_stage_times *times);

#endif

/* work.h - what a launch of a part computes and moves: the costs of its calls at given sizes.
 *
 * A prefix row sees every prefix row, or in a causal text pictures and what came before; an action
 * row sees the prefix and the chunk; a request's row sees the prefix and the tokens it has made. Of
 * a ring, row i of `rows` (from 1) sees the prefix and i tokens more, as where each sequence in
 * flight is one further than the one that came after it. Of a recalled prompt the rows of a layer
 * are the query's, with all that is not in segments, and those of segments that the layer computes,
 * which see as much as segments do on average. Exact integers (ops/cost.h); nothing is read from a
 * device, so a plan on a measuring one does. */
#ifndef TEC_GRAPH_COMPILE_WORK_H
#define TEC_GRAPH_COMPILE_WORK_H

#include "graph/compile/plan.h"

/* The segments of a recalled prompt, which stand behind its pictures; of REMEMBER those of a
 * launch.
 */
struct tec_work_segments {
    int n, tokens;   /* segments, and tokens of all of them together */
    const int *anew; /* [layers] tokens of them that each layer computes, never more than the layer
                      * before; what is left is placed. NULL: all are computed */
    const unsigned char *sums; /* [layers] whose attention a layer sums up; NULL: none anywhere */
};

/* Rows whose attention is summed up behind a layer, to choose what the next one computes: the
 * query's and what is in no segment, or all that the layer has. */
enum tec_work_sums { TEC_SUMS_NONE, TEC_SUMS_OF_QUERY, TEC_SUMS_OF_ALL };

/* The sizes of a launch that are data. */
struct tec_work_size {
    int pictures, text; /* valid cameras; tokens of the prompt: the prefix of every part */
    bool known;         /* the pictures' rows are there; of a part that shares them */
    int rows;           /* DECODE, VERIFY: requests, at most the part's batch. PACKED: sequences
                         * besides the one that enters; SHIFT: sequences that move; both below the
                         * stages */
    int k;              /* DECODE: steps */
    int made; /* DECODE, VERIFY: tokens that each request has made before the first step */
    struct tec_work_segments segments; /* RECALL: of the prompt's tokens; REMEMBER */
};

/* What a call works on: the rows of pictures and of the prefix belong to the prefill node, those of
 * a recalled prompt to the node of the memory; segments that are kept count as a prefix. In a
 * packed part the prefix's calls have the row of each other sequence, too; those of decode go on
 * with the last row of each. */
enum tec_stage {
    TEC_STAGE_PICTURES,
    TEC_STAGE_PREFIX,
    TEC_STAGE_ACTION,
    TEC_STAGE_DECODE,
    TEC_STAGE_SHIFT,
    TEC_STAGE_COUNT
};
extern const char *const tec_stage_names[TEC_STAGE_COUNT];

/* One call of one turn of its loop. */
struct tec_call_work {
    const struct tec_call *call;
    int step; /* of the program: the command of the part's capture, too */
    enum tec_stage stage;
    int turn;
    bool branch, joins;              /* of the branch; behind its end (struct tec_step) */
    const struct tec_counts *counts; /* what live counts are; for the time of the visit */
    struct tec_cost cost;
};

/* TEC_INVALID, in words, for sizes that the part has no room for. */
enum tec_status tec_work_check(const struct tec_plan *plan, const struct tec_plan_part *part,
                               const struct tec_work_size *size, struct tec_error *err);

/* Visit every call of a launch in order, those of a loop in each turn. The sizes are checked. */
void tec_work_visit(const struct tec_plan *plan, const struct tec_plan_part *part,
                    const struct tec_work_size *size,
                    void (*visit)(void *user, const struct tec_call_work *work), void *user);

#endif

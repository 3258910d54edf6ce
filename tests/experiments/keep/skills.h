/* skills.h - what a planner may do next: 214 texts, as many as ALFRED's planners rank, as one tree.
 */
#ifndef TEC_TESTS_EXPERIMENTS_KEEP_SKILLS_H
#define TEC_TESTS_EXPERIMENTS_KEEP_SKILLS_H

#include "graph/nodes/tree.h"

enum { TEC_KEEPING_SKILLS = 214 };

struct tec_keeping_skills {
    struct tec_token_tree tree; /* no texts: there are none */
    float *likely;              /* [entries] room for a launch */
    double *sums, *scratch;     /* [texts], [places] */
};

/* The skills of the trace's household, in tokens of a vocabulary of that size; in the arena. */
enum tec_status tec_keeping_skills_make(struct tec_keeping_skills *skills, int vocab,
                                        struct tec_arena *arena, struct tec_error *err);

#endif

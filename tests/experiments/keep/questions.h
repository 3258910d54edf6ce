/* questions.h - questions about a memory, and their answers, for a model that was trained to answer
 * them: questions.jsonl beside its checkpoint (doc/planner.md). */
#ifndef TEC_TESTS_EXPERIMENTS_KEEP_QUESTIONS_H
#define TEC_TESTS_EXPERIMENTS_KEEP_QUESTIONS_H

#include "base/text/tokenizer.h"
#include "graph/memory/importance.h"

struct tec_keeping_question {
    int n, query, n_segments; /* tokens; the query's first; segments */
    const int *ids;
    const struct tec_segment_range *segments;
    int n_answer; /* its tokens and the one that ends it */
    const int *answer;
};

struct tec_keeping_questions {
    int n, most; /* tokens of the longest, answer and all */
    struct tec_keeping_question *items;
};

/* Read DIR/questions.jsonl, the first `limit` lines (0: all); everything into the arena.
 * TEC_MALFORMED names the line. */
enum tec_status tec_keeping_read(struct tec_keeping_questions *out, const char *dir,
                                 const struct tec_tokenizer *tokenizer, int eos, int limit,
                                 struct tec_arena *arena, struct tec_error *err);

#endif

/* trace_words.h - between the files of the trace: the words it is made of. */
#ifndef TEC_TESTS_EXPERIMENTS_KEEP_TRACE_WORDS_H
#define TEC_TESTS_EXPERIMENTS_KEEP_TRACE_WORDS_H

#include "tests/experiments/keep/trace.h"

enum { TEC_TRACE_NOUNS = 40, TEC_TRACE_STATES = 10, TEC_TRACE_PLACES = 20, TEC_TRACE_GOALS = 6 };

struct tec_trace_noun {
    const char *word;
    enum tec_trace_class kind;
};
extern const struct tec_trace_noun tec_trace_nouns[TEC_TRACE_NOUNS];
extern const char *const tec_trace_states[TEC_TRACE_STATES];
extern const char *const tec_trace_places[TEC_TRACE_PLACES];
extern const char *const tec_trace_goals[TEC_TRACE_GOALS];

/* 64 bits of n bytes; the same as a generator's next number. */
uint64_t tec_trace_hash(const char *bytes, int n);
uint64_t tec_trace_random(uint64_t *state);

#endif

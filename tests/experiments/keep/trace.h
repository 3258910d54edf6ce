/* trace.h - the memory of a household robot as it changes, task after task: texts made from a seed.
 *
 * What a planner reads is a fixed beginning, segments of memory, and a query. A segment is the
 * state of one object (about 22 tokens) or an example of how a task was done (about 57); an object
 * is of a class, and classes change at different rates: furniture hardly ever, tableware all the
 * time. A task has TEC_TRACE_STEPS steps; each names what was done so far in the query and changes
 * one or two segments, those of the task's own object more often. The same seed gives the same
 * bytes, on any machine.
 *
 * Everything is inside the struct: nothing is allocated. One owner. */
#ifndef TEC_TESTS_EXPERIMENTS_KEEP_TRACE_H
#define TEC_TESTS_EXPERIMENTS_KEEP_TRACE_H

#include <stdint.h>

enum tec_trace_class {
    TEC_TRACE_FURNITURE,
    TEC_TRACE_APPLIANCE,
    TEC_TRACE_TOOL,
    TEC_TRACE_FOOD,
    TEC_TRACE_TABLEWARE,
    TEC_TRACE_EXAMPLE,
    TEC_TRACE_CLASSES
};
extern const char *const tec_trace_classes[TEC_TRACE_CLASSES];

enum {
    TEC_TRACE_STEPS = 25,
    TEC_TRACE_OBJECTS = 80,
    TEC_TRACE_EXAMPLES = 16,
    TEC_TRACE_SEGMENTS = TEC_TRACE_OBJECTS + TEC_TRACE_EXAMPLES,
    TEC_TRACE_TEXT = 512,
    TEC_TRACE_QUERY = 2048,
    TEC_TRACE_CHANGES = 2,
    TEC_TRACE_DIM = 64
};

struct tec_trace_segment {
    char id[24]; /* "object7", "example3" */
    char text[TEC_TRACE_TEXT];
    enum tec_trace_class kind;
    int noun, state, place; /* of an object */
};

struct tec_trace {
    uint64_t random;
    int64_t step; /* 0 at the beginning */
    int n_objects, n;
    struct tec_trace_segment segments[TEC_TRACE_SEGMENTS]; /* objects, then examples */
    int target, place, goal; /* of the task: an object, where it goes, what is done to it */
    char instruction[128], query[TEC_TRACE_QUERY];
    int n_changes, changes[TEC_TRACE_CHANGES]; /* segments that this step changed */
    int64_t changed[TEC_TRACE_CLASSES];        /* changes since the beginning, by class */
    int members[TEC_TRACE_CLASSES];
};

/* Step 0. Numbers are cut to what there is room for. */
void tec_trace_begin(struct tec_trace *trace, uint64_t seed, int objects, int examples);

/* The next step: a line more in the query, or another task; changes. */
void tec_trace_next(struct tec_trace *trace);

/* The text before all segments. */
const char *tec_trace_beginning(void);

/* Where no sentence encoder is at hand: words as directions, what a word is a kind of as another.
 */
void tec_trace_embed(const char *text, float v[TEC_TRACE_DIM]);

/* Where no tokenizer is: a text cut as byte-level BPE cuts before it merges, an id for each piece,
 * equal for equal pieces. How many there are; ids beyond `room` are not written. */
int tec_trace_tokens(const char *text, int vocab, int *ids, int room);

#endif

/* accuracy.h - how far a pipeline's actions and texts are from those of float32: the same frames
 * twice, as the file says and with weights, keys and values in float32. */
#ifndef TEC_TOOLS_MEASURE_ACCURACY_H
#define TEC_TOOLS_MEASURE_ACCURACY_H

#include "base/arena.h"
#include "graph/load/pipeline.h"
#include "tools/cli/command.h"

/* One element of a robot's action over all rows of all chunks, in the robot's units. */
struct tec_accuracy_element {
    double largest, p99, rms; /* of the differences' magnitudes */
    double low, high;         /* what float32 gave */
};

struct tec_accuracy_action {
    const char *node;
    int64_t chunks, rows; /* that both runs have */
    int n_elements;
    struct tec_accuracy_element *elements; /* [n_elements] */
};

struct tec_accuracy {
    int64_t frames, observed;
    int n_actions;
    struct tec_accuracy_action actions[TEC_MAX_ACTIONS];
    int64_t alone;                /* chunks and texts of one of the two runs alone */
    int64_t texts, texts_equal;   /* that both runs have */
    int64_t tokens, tokens_equal; /* place by place, of texts that both have */
};

struct tec_accuracy_options {
    const char *pipeline, *inputs; /* inputs: FILE.jsonl, FILE.mcap; NULL: drawn from `seed` */
    int frames;                    /* at most; 0: all of a file, 8 that are drawn */
    uint64_t seed;
};

/* Run the frames twice, one engine after the other, with the call's shared options. Everything that
 * `out` points to is in `arena`. The errors of opening and running a pipeline; TEC_UNSUPPORTED for
 * a recording of several sessions. */
enum tec_status tec_accuracy_run(struct tec_accuracy *out, struct tec_invocation *call,
                                 const struct tec_accuracy_options *options,
                                 struct tec_arena *arena, struct tec_error *err);

/* Print it as the call's format says. `within`: the largest difference that was asked for, in the
 * robot's units, 0 = none was. Then it is said whether it holds: as JSON in "bound", as text in a
 * line, or if so, in lines of the pipeline for what --set tried of the model. */
enum tec_status tec_accuracy_print(const struct tec_accuracy *a, struct tec_invocation *call,
                                   double within, struct tec_error *err);

/* The largest difference of an action's element; and whether there was anything to compare: rows of
 * every action, or texts where there are no actions. */
double tec_accuracy_largest(const struct tec_accuracy *a);
bool tec_accuracy_whole(const struct tec_accuracy *a);
/* Something was compared, and no difference is larger; without actions all texts are equal. */
bool tec_accuracy_holds(const struct tec_accuracy *a, double within);

#endif

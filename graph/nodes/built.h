/* built.h - between the files that lower a model's program (graph/model/program.h): prefill and
 * action of a description that has functions. */
#ifndef TEC_GRAPH_NODES_BUILT_H
#define TEC_GRAPH_NODES_BUILT_H

#include "graph/model/program.h"
#include "graph/nodes/node.h"

/* A program on its way to commands. */
struct tec_built {
    struct tec_lower *l;
    const struct tec_model_program *p;
    int *tensor;   /* by call: the tensor that holds its value; -1 = none yet */
    bool *settled; /* by call: its value stands where it is joined with others */
};

/* The part's calls, one after the other; after those of the prefill, what the action asks goes to
 * the frame's slots as the keys and values of each of its layers. */
void tec_lower_built(struct tec_lower *l, enum tec_model_part part);

/* Whether nobody reads a value behind call `at`, so that this may write over it. */
bool tec_built_last(const struct tec_built *b, int value, int at);

/* The live rows of a call's value: a count of the frame's table. */
const int *tec_built_live(const struct tec_built *b, int call);

/* The words of pictures: the tensor of the value. A convolution whose value nobody but a sum reads
 * is computed there: `sum` is the tensor that it is added to; -1 = a tensor of its own. */
int tec_built_picture(struct tec_built *b, int call);
int tec_built_pool(struct tec_built *b, int call);
int tec_built_conv(struct tec_built *b, int call, int sum);

#endif

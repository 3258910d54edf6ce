/* built.h - between the files that lower a model's programs (graph/model/program.h): prefill and
 * action of a description that has functions, and the layers of its text. */
#ifndef TEC_GRAPH_NODES_BUILT_H
#define TEC_GRAPH_NODES_BUILT_H

#include "graph/model/program.h"
#include "graph/nodes/node.h"

enum { TEC_STEM_BYTES = 256 };

/* A program on its way to commands. */
struct tec_built {
    struct tec_lower *l;
    const struct tec_model_program *p;
    const struct tec_call_weights *w; /* by call */
    int *tensor;                      /* by call: the tensor that holds its value; -1 = none yet */
    bool *settled;                    /* by call: its value stands where it is joined with others */
    int step;                         /* of a flow; -1 = before the first one */
    int behind, row; /* the prompt's rows, and the one that a value of prefill becomes; -1 = none */
    const struct tec_reading *text; /* of a text; NULL = prefill or action */
    const struct tec_rows *rows;    /* of a text: those that go on */
    int layer;                      /* of a text; -1 = none */
    bool rounds;                    /* of a text: what leaves it enters a GEMM */
    int x, x_row; /* of what projects, or makes a row of the state: the prompt's rows, and the first
                   * one that it makes */
};

/* The lowering of each word: the tensor of the value, -1 = it needs none. */
#define WORD(word, operands, text) int tec_built_##word(struct tec_built *b, int call);
#define VALUE(word, operands, text)
#define GIVEN(word, name, text)
#define FIELD(word, key, kind, member, needed, text)
#include "graph/model/words.def"
#undef WORD
#undef VALUE
#undef GIVEN
#undef FIELD

/* A program on its way, without a value yet; false without memory. */
bool tec_built_begin(struct tec_built *b, struct tec_lower *l, const struct tec_model_program *p,
                     const struct tec_call_weights *weights);

/* A call lowered by its word: the tensor of its value. And what is done where the value is made,
 * however it was: a copy for its tap, and rows to their places. */
int tec_built_word(struct tec_built *b, int call);
void tec_built_made(struct tec_built *b, int call, int tensor);

/* The calls from..to - 1, one after the other: those that are made once (`moves` false), or in a
 * step. */
void tec_built_calls(struct tec_built *b, int from, int to, bool moves);

/* y = the product of a call without what its rows are multiplied by. */
void tec_built_multiply(struct tec_built *b, int call, int y);

/* Whether nobody reads a value behind call `at`, so that this may write over it. */
bool tec_built_last(const struct tec_built *b, int value, int at);

/* The live rows of a call's value: a count of the frame's table. */
const int *tec_built_live(const struct tec_built *b, int call);

/* The rows that a call's value has room for: of a tower and of what projects those of every
 * picture, of the largest size; and the rows of all observations. */
int tec_built_max_rows(const struct tec_built *b, int call);
int tec_built_rows(const struct tec_built *b, int call);

/* The value that a value becomes rows of, where nobody else reads it, and the first of those rows;
 * -1 = there is none such. The tensor of joined rows, made for the first of them. Puts a value to
 * its place among others, behind those before it that are there already. */
int tec_built_joined_in(const struct tec_built *b, int call, int *row);
int tec_built_joined(struct tec_built *b, int call);
void tec_built_settle(struct tec_built *b, int call);

/* Whether a value is the row behind the prompt, and nothing else. */
bool tec_built_is_behind(const struct tec_built *b, int call);

/* A new tensor for the rows and columns of a call. */
int tec_built_new(struct tec_built *b, int call, const char *label);

/* The tensor of a value; memory that is only read for a constant. */
int tec_built_value(struct tec_built *b, int call);

/* The chunk in the frame's table. */
int tec_built_chunk(struct tec_built *b);

/* y[row ..] = the rows of a value. */
void tec_built_copy(struct tec_built *b, int call, int y, int row);

/* The name of a call, or something else: of what is made in each step the part behind the last dot,
 * which is the same in every layer. */
const char *tec_built_label(const struct tec_built *b, int call, const char *otherwise);

/* Whether a value is rounded where it is made: a product with a rounded matrix alone reads it. */
bool tec_built_rounds(const struct tec_built *b, int call);

/* Whether a tower or a projector, where activations are rounded, keeps what no activation wrote. */
bool tec_built_spares(const struct tec_built *b);

/* A convolution; `sum` is the tensor that it is added to; -1 = one of its own. */
int tec_built_convolve(struct tec_built *b, int call, int sum);

/* Of a tower's front: its convolution; after how many patches positions begin anew, those of one
 * picture or of all sizes; rows in front of patches. */
int tec_built_patch_conv(struct tec_built *b, int call);
int tec_built_positions(const struct tec_built *b);
int tec_built_patch_rows(struct tec_built *b, int call);

/* Keeps what the action sees of a prefill: keys and values, to the frame's slots. */
void tec_built_keep(struct tec_built *b);

/* What attentions over projections of a prompt's keys read: once for all steps. */
void tec_built_project_keys(struct tec_built *b);

/* The steps of a flow behind what is made once. */
void tec_built_steps(struct tec_built *b);

/* A copy of a value, or of a tensor that holds it, under a name; only where there are taps. */
void tec_built_tap(struct tec_built *b, int tensor, const char *name);

/* What the taps of the parts of a call's value begin with: its name up to the last dot, in a flow
 * behind the step. False: it has none now. */
bool tec_built_stem(const struct tec_built *b, int call, char stem[TEC_STEM_BYTES]);

#endif

/* words_own.h - between the files that check the words of the builder (words.def). */
#ifndef TEC_GRAPH_MODEL_WORDS_OWN_H
#define TEC_GRAPH_MODEL_WORDS_OWN_H

#include "graph/model/program.h"

/* The check of each word: see tec_word_kind. */
#define WORD(word, operands, text)                                        \
    enum tec_status tec_builder_##word(struct tec_model_program *program, \
                                       struct tec_model_call *call, struct tec_error *err);
#define VALUE(word, operands, text) WORD(word, operands, text)
#define GIVEN(word, name, text) WORD(word, 0, text)
#define FIELD(word, key, kind, member, needed, text)
#include "graph/model/words.def"
#undef WORD
#undef VALUE
#undef GIVEN
#undef FIELD

const struct tec_model_call *tec_builder_operand(const struct tec_model_program *program,
                                                 const struct tec_model_call *call, int i);

/* A group for the rows of a call, which are new ones. */
enum tec_status tec_builder_new_rows(struct tec_model_program *program, struct tec_model_call *call,
                                     struct tec_error *err);

/* The rows of a call are those of x. */
void tec_builder_same_rows(struct tec_model_call *call, const struct tec_model_call *x);

/* A call is a constant: those of a model have a bound. */
enum tec_status tec_builder_constant(struct tec_model_program *program, struct tec_model_call *call,
                                     struct tec_error *err);

/* A call is a row of the time: those of a model have a bound. */
enum tec_status tec_builder_timed(struct tec_model_program *program, struct tec_model_call *call,
                                  struct tec_error *err);

/* A value must be a row of the time with a number for each column of x; nothing for -1. */
enum tec_status tec_builder_row(const struct tec_model_program *program, int value,
                                const struct tec_model_call *x, const char *what,
                                struct tec_error *err);

/* What an attention of a layer must be beside its heads. */
enum tec_status tec_builder_layer_attention(struct tec_model_program *program,
                                            struct tec_model_call *call, struct tec_error *err);

/* What a matrix [rows, cols] of a call must be where its weights are packed. */
enum tec_status tec_builder_packed(const struct tec_model_program *program,
                                   const struct tec_model_call *call, const char *weight, int rows,
                                   int cols, struct tec_error *err);

/* A convolution of a tower's pixels: its windows are patches. */
enum tec_status tec_builder_patch_conv(struct tec_model_program *program,
                                       struct tec_model_call *call, struct tec_error *err);

/* A sum of a tower's patches and a constant; rows in front of them. */
enum tec_status tec_builder_patch_sum(const struct tec_model_program *program,
                                      const struct tec_model_call *call, struct tec_error *err);
enum tec_status tec_builder_patch_rows(struct tec_model_program *program,
                                       struct tec_model_call *call, struct tec_error *err);

/* Columns of two towers beside each other; the patches of one of them. */
enum tec_status tec_builder_beside_tower(const struct tec_model_program *program,
                                         struct tec_model_call *call, struct tec_error *err);
enum tec_status tec_builder_take_patches(struct tec_model_program *program,
                                         struct tec_model_call *call, struct tec_error *err);

/* x must be rows that depend on what is observed. */
enum tec_status tec_builder_need_input(const struct tec_model_call *x, struct tec_error *err);

#endif

/* inspect.h - what is in a checkpoint, held against the model that it is for. */
#ifndef TEC_TOOLS_MEASURE_INSPECT_H
#define TEC_TOOLS_MEASURE_INSPECT_H

#include "base/store/checkpoint.h"
#include "graph/model/model.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Reports are JSON objects; the text form is printed from them. */

/* The checkpoint's own facts: layout, tensors, bytes, dtypes, hash, assets, norm, tokenizer. `list`
 * adds every tensor. */
enum tec_status tec_inspect_checkpoint(json_t *report, const struct tec_checkpoint *c, bool list,
                                       struct tec_arena *arena, struct tec_error *err);

/* Against a model: name, sizes, parameters, missing, unexpected, mismatched. */
enum tec_status tec_inspect_model(json_t *report, const struct tec_checkpoint *c,
                                  const struct tec_model *model, struct tec_arena *arena,
                                  struct tec_error *err);

/* Facts of a tokenizer: path, kind, size, bos, eos, pad, unk. */
enum tec_status tec_inspect_tokenizer(json_t *report, const char *path, struct tec_heap *heap,
                                      struct tec_error *err);

/* Of a tokenizer that was asked for by itself: the same, and the fields of every report, which say
 * that it has no tensors: bytes are those of a file, 0 of a folder. */
enum tec_status tec_inspect_tokenizer_alone(json_t *report, const char *path, struct tec_heap *heap,
                                            struct tec_error *err);

/* What the first page of a memory's store says, whose keys, values and vectors it has, and its
 * texts: a list of {id, tokens, text}, and how many parts of the file are damaged. */
enum tec_status tec_inspect_memory(json_t *report, const char *path, struct tec_heap *heap,
                                   struct tec_arena *arena, struct tec_error *err);

/* The report as lines. */
void tec_inspect_print(const json_t *report, FILE *out);

#endif

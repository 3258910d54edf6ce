/* encoder_own.h - between the files of graph/encoder: what an encoder holds. */
#ifndef TEC_GRAPH_ENCODER_ENCODER_OWN_H
#define TEC_GRAPH_ENCODER_ENCODER_OWN_H

#include "graph/encoder/directory.h"
#include "graph/encoder/encoder.h"

struct tec_encoder {
    struct tec_heap *heap;
    struct tec_arena arena;   /* lives as long as the encoder */
    struct tec_arena scratch; /* of the tokenizer: one block that stays */
    struct tec_encoder_options options;
    struct tec_encoder_directory directory;
    struct tec_checkpoint *checkpoint;
    struct tec_model *model;
    struct tec_tokenizer *tokenizer;
    struct tec_device *device;
    struct tec_weights *weights;
    struct tec_plan *plan;
    struct tec_encode_table table, device_table;
    float *out;    /* device memory [max_texts, ld] */
    float *host;   /* [max_texts, ld] */
    int *ids;      /* [tokens] of the text that is read */
    float **units; /* device memory: rows of the identity, with taps */
    int n_units;
    int tokens, rows, texts; /* of a text; of a forward */
    int filled, n_texts;     /* of the forward that is being filled */
};

#endif

/* directory.h - what a folder of a sentence encoder says of it beside its model: which modules, how
 * many tokens, which rows are a vector, whether vectors have length 1. */
#ifndef TEC_GRAPH_ENCODER_DIRECTORY_H
#define TEC_GRAPH_ENCODER_DIRECTORY_H

#include "base/arena.h"
#include "base/error.h"
#include "graph/model/model.h"

#include <stdbool.h>

/* Which rows of a text its vector is the mean of: all, those around the text too; the first, which
 * is the class token's; the last, which ends it. */
enum tec_encoder_pool { TEC_ENCODER_POOL_MEAN, TEC_ENCODER_POOL_FIRST, TEC_ENCODER_POOL_LAST };

struct tec_encoder_directory {
    const char *checkpoint; /* folder of config.json and the tensors, in the arena */
    int max_tokens;   /* of a text with the ids around it; 0: sentence_bert_config.json has none */
    int usual_tokens; /* the tokenizer's own limit, where the model has so many; 0: none */
    int width;        /* of a vector; 0: the folder does not say */
    const char *prompt; /* stands before every text, in the arena; NULL: nothing does */
    enum tec_encoder_pool pool;
    bool unit; /* vectors have length 1 */
};

/* Read modules.json (a model of tokens, what is taken of its rows, perhaps the length), the
 * pooling's config.json, sentence_bert_config.json, the tokenizer's limit and
 * config_sentence_transformers.json. Files are hostile: TEC_MALFORMED for broken
 * ones, TEC_UNSUPPORTED for modules and settings that this engine does not have, with the place. */
enum tec_status tec_encoder_directory_read(struct tec_encoder_directory *out, const char *path,
                                           struct tec_heap *heap, struct tec_arena *arena,
                                           struct tec_error *err);

/* Tokens of the longest text, those around it included: as the folder says, else as the tokenizer
 * does where the model has positions for so many, else as many as these. `text` is the model's;
 * NULL: not known, and `tokens` is 0 where the folder says nothing. TEC_MALFORMED: the folder says
 * more than the model has. */
enum tec_status tec_encoder_directory_limit(int *tokens, const struct tec_encoder_directory *d,
                                            const struct tec_text *text, struct tec_error *err);

/* The pooling's word in a folder: mean, cls, lasttoken. */
const char *tec_encoder_pool_name(enum tec_encoder_pool pool);

/* Whether the folder has a modules.json. */
bool tec_encoder_directory_is(const char *path);

#endif

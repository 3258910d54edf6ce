/* directory.h - what a folder of a sentence encoder says of it beside its model: which modules, how
 * many tokens, whether vectors have length 1. */
#ifndef TEC_GRAPH_ENCODER_DIRECTORY_H
#define TEC_GRAPH_ENCODER_DIRECTORY_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

struct tec_encoder_directory {
    const char *checkpoint; /* folder of config.json and the tensors, in the arena */
    int max_tokens;         /* of a text with the ids around it; 0: the folder does not say */
    int width;              /* of a vector; 0: the folder does not say */
    bool unit;              /* vectors have length 1 */
};

/* Read modules.json (a model of tokens, the mean of its rows, perhaps the length), the pooling's
 * config.json and sentence_bert_config.json. Files are hostile: TEC_MALFORMED for broken ones,
 * TEC_UNSUPPORTED for modules and settings that this engine does not have, with the place. */
enum tec_status tec_encoder_directory_read(struct tec_encoder_directory *out, const char *path,
                                           struct tec_heap *heap, struct tec_arena *arena,
                                           struct tec_error *err);

/* Whether the folder has a modules.json. */
bool tec_encoder_directory_is(const char *path);

#endif

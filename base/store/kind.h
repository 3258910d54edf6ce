/* kind.h - what a path given in place of something else seems to be, for error messages. */
#ifndef TEC_BASE_STORE_KIND_H
#define TEC_BASE_STORE_KIND_H

#include "base/error.h"

#include <stdbool.h>

enum tec_path_kind {
    TEC_PATH_MISSING,
    TEC_PATH_UNKNOWN,
    TEC_PATH_CHECKPOINT,  /* a directory with tensors, config.json or adapter_config.json, also as
                           * pretrained_model/ */
    TEC_PATH_SAFETENSORS, /* one file of tensors */
    TEC_PATH_PIPELINE,
    TEC_PATH_POLICY,
    TEC_PATH_ROBOT,
    TEC_PATH_TOKENIZER, /* a file, or a directory with nothing more than one */
    TEC_PATH_RECORDING,
    TEC_PATH_MEMORY, /* a memory's store */
    TEC_PATH_ORBAX   /* a JAX checkpoint */
};

/* Guess from the file's name and first 64 KiB; a directory by the files in it. For messages only:
 * nothing is validated. */
enum tec_path_kind tec_path_kind(const char *path);

/* By the first bytes of a file alone: a recording (MCAP), a memory's store or tensors; else
 * UNKNOWN. */
enum tec_path_kind tec_path_content(const char *path);

/* Whether a folder holds an adapter, adapter_config.json, and no model. */
bool tec_path_is_adapter(const char *path);

/* Fail: at this path, of this kind, lies no checkpoint; the message says what does. */
enum tec_status tec_path_fail(const char *path, enum tec_path_kind kind, struct tec_error *err);

/* "a pipeline file"; never NULL. */
const char *tec_path_kind_text(enum tec_path_kind kind);

#endif

/* checkpoint_own.h - between the files that open a checkpoint: what lies in its folders. */
#ifndef TEC_BASE_STORE_CHECKPOINT_OWN_H
#define TEC_BASE_STORE_CHECKPOINT_OWN_H

#include "base/store/checkpoint.h"

static inline enum tec_status tec_checkpoint_no_memory(const struct tec_checkpoint *c,
                                                       struct tec_error *err)
{
    return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its description", c->path);
}

/* The path of a file below a folder of `root` if the file exists, else NULL; *failed is set when
 * memory is out. In the checkpoint's arena. */
const char *tec_checkpoint_file_in(struct tec_checkpoint *c, const char *root, const char *folder,
                                   const char *name, bool *failed);

/* The same of a file of the checkpoint, or of its base. */
const char *tec_checkpoint_file(struct tec_checkpoint *c, const char *folder, const char *name,
                                bool *failed);

/* True if a folder name that comes from a file stays below the root; the file is not trusted. */
bool tec_checkpoint_is_below(const char *name);

/* A JSON file of the root, if it exists. */
enum tec_status tec_checkpoint_load_if(struct tec_checkpoint *c, const char *name, json_t **out,
                                       struct tec_error *err);

/* What a wrapper's attribute puts before the names of all tensors: "model.", or a private one. */
enum tec_status tec_checkpoint_find_prefix(struct tec_checkpoint *c, struct tec_error *err);

/* Read what a folder whose processor was saved beside the model says of robots. */
enum tec_status tec_checkpoint_read_robots(struct tec_checkpoint *c, struct tec_error *err);

#endif

/* find.h - where a file or folder is that a pipeline names. */
#ifndef TEC_BASE_STORE_FIND_H
#define TEC_BASE_STORE_FIND_H

#include "base/arena.h"
#include "base/error.h"

/* `path` as it is where that exists (from the current folder, or absolute), else below `root`.
 * *out is `path` itself or in the arena. TEC_NOT_FOUND says where it was looked for; *out is then
 * `path`. */
enum tec_status tec_find_path(const char **out, const char *path, const char *root,
                              struct tec_arena *arena, struct tec_error *err);

#endif

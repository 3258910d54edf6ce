/* assets.h - the asset ids below a checkpoint's assets folder; part of checkpoint.c. */
#ifndef TEC_BASE_STORE_ASSETS_H
#define TEC_BASE_STORE_ASSETS_H

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

/* Folders below `dir` that hold norm_stats.json, as paths relative to it, sorted: an id may have
 * slashes. At most four levels deep, 1000 ids, 10000 entries looked at. No folder: none. */
enum tec_status tec_assets_list(const char *const **ids, size_t *n, const char *dir,
                                struct tec_arena *arena, struct tec_error *err);

#endif

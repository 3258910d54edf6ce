/* hub.h - files of models that were downloaded before, in the cache folder of Hugging Face's hub.
 */
#ifndef TEC_BASE_STORE_HUB_H
#define TEC_BASE_STORE_HUB_H

#include "base/arena.h"
#include "base/error.h"

/* The path of `file` in the revision `main` of the model "OWNER/NAME", which lies at
 * <hub>/models--OWNER--NAME/snapshots/<what refs/main says>/<file>. *out is in the arena; NULL
 * where it is not there, or the name is no such name. Nothing is downloaded. TEC_NO_MEMORY alone
 * fails. */
enum tec_status tec_hub_find(const char **out, const char *hub, const char *name, const char *file,
                             struct tec_arena *arena, struct tec_error *err);

#endif

/* root.h - where the files that come with the program are: the folder of pipelines/ and policies/.
 */
#ifndef TEC_TOOLS_API_ROOT_H
#define TEC_TOOLS_API_ROOT_H

#include "base/arena.h"
#include "base/error.h"

/* The folder that holds pipelines/ and policies/: `given` (--root) when not NULL, else the first of
 * the executable's folder, the three above it, ../share/tectum beside it, and the current folder.
 * TEC_NOT_FOUND names what was looked at. The text is owned by the arena. */
enum tec_status tec_root_find(const char **root, const char *given, struct tec_arena *arena,
                              struct tec_error *err);

#endif

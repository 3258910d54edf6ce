/* find.c - resolves a path that a pipeline names: as it is given, else below a root folder. */
#include "base/store/find.h"

#include <unistd.h>

enum tec_status tec_find_path(const char **out, const char *path, const char *root,
                              struct tec_arena *arena, struct tec_error *err)
{
    *out = path;
    if (access(path, F_OK) == 0)
        return TEC_OK;
    if (path[0] == '/' || !root)
        return tec_fail(err, TEC_NOT_FOUND, "%s: there is no such file or folder", path);
    const char *below = tec_arena_printf(arena, "%s/%s", root, path);
    if (!below)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a path", path);
    if (access(below, F_OK) != 0)
        return tec_fail(err, TEC_NOT_FOUND,
                        "%s: there is no such file or folder, neither in the current folder nor "
                        "in %s",
                        path, root);
    *out = below;
    return TEC_OK;
}

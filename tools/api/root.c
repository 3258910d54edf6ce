/* root.c - finds the folder that holds the bundled pipelines/ and policies/. */
#include "tools/api/root.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path, const char *name)
{
    char text[4096];
    struct stat st;
    int n = snprintf(text, sizeof text, "%s/%s", path, name);
    return n > 0 && (size_t)n < sizeof text && stat(text, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_root(const char *path)
{
    return is_folder(path, "pipelines") && is_folder(path, "policies");
}

/* The folder of the running program, or "" if the system does not report it. */
static void own_folder(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
}

enum tec_status tec_root_find(const char **root, const char *given, struct tec_arena *arena,
                              struct tec_error *err)
{
    static const char *const above[] = {"", "/..", "/../..", "/../../..", "/../share/tectum"};
    char own[3072], path[4096];
    const char *found = NULL;
    if (given && !is_root(given))
        return tec_fail(err, TEC_NOT_FOUND, "--root %s: holds no pipelines/ and policies/", given);
    own_folder(own, sizeof own);
    found = given;
    for (size_t i = 0; !found && own[0] && i < sizeof above / sizeof above[0]; i++) {
        snprintf(path, sizeof path, "%s%s", own, above[i]);
        if (is_root(path))
            found = path;
    }
    if (!found && is_root("."))
        found = ".";
    if (!found)
        return tec_fail(err, TEC_NOT_FOUND,
                        "no folder with pipelines/ and policies/ near %s or here; name it with "
                        "--root DIR",
                        own[0] ? own : "the program");
    char plain[PATH_MAX]; /* show no name like "/a/build/dev/../.." */
    if (found == path && realpath(path, plain))
        found = plain;
    *root = tec_arena_strdup(arena, found);
    return *root ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
}

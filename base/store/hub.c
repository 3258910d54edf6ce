/* hub.c - looks a file up in the cache folder of Hugging Face's hub. Names and revisions come from
 * files: only plain ones become parts of a path. */
#include "base/store/hub.h"

#include "base/store/file.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

/* A part of a path that neither leads up nor holds another one, of n bytes. */
static bool is_plain(const char *part, size_t n)
{
    return n > 0 && n < 200 && part[0] != '.' && strspn(part, plain) >= n;
}

/* The revision that refs/main names, in `out`; false: none is. */
static bool read_revision(const char *path, char out[80])
{
    uint64_t bytes;
    int fd;
    if (tec_path_open(path, &fd, &bytes, NULL) != TEC_OK)
        return false;
    size_t n = bytes < 79 ? (size_t)bytes : 79;
    bool whole = tec_path_read(fd, path, 0, out, n, NULL) == TEC_OK;
    close(fd);
    out[whole ? n : 0] = '\0';
    out[strcspn(out, "\r\n \t")] = '\0';
    return is_plain(out, strlen(out));
}

enum tec_status tec_hub_find(const char **out, const char *hub, const char *name, const char *file,
                             struct tec_arena *arena, struct tec_error *err)
{
    struct stat st;
    char revision[80];
    const char *slash = strchr(name, '/');
    *out = NULL;
    if (!slash || !is_plain(name, (size_t)(slash - name)) ||
        !is_plain(slash + 1, strlen(slash + 1)))
        return TEC_OK;
    const char *model =
        tec_arena_printf(arena, "%s/models--%.*s--%s", hub, (int)(slash - name), name, slash + 1);
    const char *refs = model ? tec_arena_printf(arena, "%s/refs/main", model) : NULL;
    if (!refs)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a path", name);
    if (!read_revision(refs, revision))
        return TEC_OK;
    const char *path = tec_arena_printf(arena, "%s/snapshots/%s/%s", model, revision, file);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a path", name);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        *out = path;
    return TEC_OK;
}

/* assets.c - lists the asset ids of a checkpoint: the folders that hold a norm_stats.json.
 *
 * The search is breadth first and bounds depth, folders and entries, because a checkpoint is not
 * trusted. Ids are sorted, so that equal folders list equally. */
#include "base/store/assets.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 4, MAX_IDS = 1000, MAX_ENTRIES = 10000 };

/* State of the search: `queue` holds every folder found so far, and the asset ids are chosen from
 * it. */
struct walk {
    const char *dir;
    struct tec_arena *arena;
    const char **queue;
    int *depth;
    size_t n, seen;
};

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum tec_status add(struct walk *w, const char *id, int depth, struct tec_error *err)
{
    if (w->n == MAX_IDS)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: more than %d folders", w->dir, MAX_IDS);
    w->queue[w->n] = id;
    w->depth[w->n++] = depth;
    return TEC_OK;
}

/* Add the folders inside w->queue[i] to the queue. */
static enum tec_status look(struct walk *w, size_t i, struct tec_error *err)
{
    const char *id = w->queue[i], *slash = *id ? "/" : "";
    const char *path = tec_arena_printf(w->arena, "%s%s%s", w->dir, *id ? "/" : "", id);
    DIR *dir = path ? opendir(path) : NULL;
    enum tec_status status = path ? TEC_OK : TEC_NO_MEMORY;
    for (const struct dirent *e; dir && status == TEC_OK && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        if (w->seen++ == MAX_ENTRIES) {
            status =
                tec_fail(err, TEC_UNSUPPORTED, "%s: more than %d entries", w->dir, MAX_ENTRIES);
            break;
        }
        const char *below = tec_arena_printf(w->arena, "%s%s%s", id, slash, e->d_name);
        const char *full = below ? tec_arena_printf(w->arena, "%s/%s", w->dir, below) : NULL;
        if (!full)
            status = TEC_NO_MEMORY;
        else if (is_dir(full))
            status = add(w, below, w->depth[i] + 1, err);
    }
    if (dir)
        closedir(dir);
    if (status == TEC_NO_MEMORY)
        return tec_fail(err, status, "%s: no memory for its asset ids", w->dir);
    return status;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum tec_status tec_assets_list(const char *const **ids, size_t *n, const char *dir,
                                struct tec_arena *arena, struct tec_error *err)
{
    struct walk w = {.dir = dir, .arena = arena};
    *n = 0;
    *ids = NULL;
    if (!is_dir(dir))
        return TEC_OK;
    w.queue = TEC_NEW(arena, MAX_IDS, const char *);
    w.depth = TEC_NEW(arena, MAX_IDS, int);
    const char **found = TEC_NEW(arena, MAX_IDS, const char *);
    if (!w.queue || !w.depth || !found)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its asset ids", dir);
    TEC_TRY(add(&w, "", 0, err));
    for (size_t i = 0; i < w.n; i++) {
        const char *stats = tec_arena_printf(arena, "%s/%s/norm_stats.json", dir, w.queue[i]);
        if (!stats)
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its asset ids", dir);
        if (i > 0 && access(stats, F_OK) == 0)
            found[(*n)++] = w.queue[i];
        if (w.depth[i] < MAX_DEPTH)
            TEC_TRY(look(&w, i, err));
    }
    qsort(found, *n, sizeof *found, compare);
    *ids = found;
    return TEC_OK;
}

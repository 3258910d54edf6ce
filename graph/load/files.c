/* files.c - the files a pipeline is made of: bounded, and only from its own folder or the root. */
#include "base/file_kind.h"
#include "base/lua.h"
#include "base/nearest.h"
#include "base/store/kind.h"
#include "graph/load/derive.h"
#include "graph/load/loader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum tec_status read_fd(struct tec_loader *ld, int fd, const char *path, char **out,
                               size_t *n, struct tec_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return tec_fail(err, TEC_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        bool checkpoint = faccessat(fd, "config.json", F_OK, 0) == 0 ||
                          faccessat(fd, "model.safetensors", F_OK, 0) == 0;
        return tec_fail(err, TEC_IO, "%s: is a %s, give a pipeline file", path,
                        checkpoint ? "checkpoint folder" : "folder");
    }
    if (!S_ISREG(st.st_mode))
        return tec_fail(err, TEC_IO, "%s: is %s, not a regular file", path,
                        tec_file_type(st.st_mode));
    if (st.st_size > TEC_MAX_SOURCE)
        return tec_fail(err, TEC_MALFORMED, "%s: %lld bytes, a pipeline file has at most %d", path,
                        (long long)st.st_size, TEC_MAX_SOURCE);
    size_t size = (size_t)st.st_size, used = 0;
    char *text = tec_arena_push(ld->scratch, size + 1, 1, 1);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for %zu bytes", path, size);
    while (used < size) {
        ssize_t got = read(fd, text + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tec_fail(err, TEC_IO, "%s: %s", path, strerror(errno));
        if (got == 0)
            break;
        used += (size_t)got;
    }
    *out = text;
    *n = used;
    return TEC_OK;
}

/* Take a text as the next source. */
static enum tec_status take(struct tec_loader *ld, const char *file, const char *text, size_t n,
                            struct tec_error *err)
{
    if (ld->n_sources >= TEC_MAX_SOURCES)
        return tec_fail(err, TEC_MALFORMED, "%s: a pipeline is made of at most %d files", file,
                        TEC_MAX_SOURCES);
    struct tec_source *s = &ld->sources[ld->n_sources];
    *s = (struct tec_source){.text = text, .n = n};
    s->file = tec_arena_strdup(ld->arena, file);
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    s->json = i < n && text[i] == '{';
    tec_diagnostics_source(ld->d, file, text, n);
    if (!s->file || !tec_source_lex(s, ld->scratch))
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its tokens", file);
    tec_source_check_keys(s, ld->scratch, ld->d);
    ld->n_sources++;
    return TEC_OK;
}

enum tec_status tec_loader_open(struct tec_loader *ld, struct tec_error *err)
{
    const struct tec_load_options *o = ld->options;
    if (o->text && o->n > TEC_MAX_SOURCE)
        return tec_fail(err, TEC_MALFORMED, "%s: %zu bytes, a pipeline file has at most %d",
                        o->path, o->n, TEC_MAX_SOURCE);
    if (o->text)
        return take(ld, o->path, o->text, o->n, err);
    char *text = NULL;
    const char *derived;
    size_t n = 0;
    if (o->root && tec_path_kind(o->path) == TEC_PATH_CHECKPOINT) {
        const struct tec_checkpoint_source from = {.path = o->path,
                                                   .adapter = o->adapter,
                                                   .hub = o->hub,
                                                   .robot = o->embodiment,
                                                   .bare = o->bare};
        TEC_TRY(tec_pipeline_derive(&derived, &n, &from, o->root, ld->scratch, ld->d, err));
        return take(ld, o->path, derived, n, err);
    }
    if (o->embodiment)
        return tec_fail(err, TEC_INVALID,
                        "%s: --embodiment is for a checkpoint folder; say embodiment in the "
                        "model of a pipeline file",
                        o->path);
    int fd = open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return tec_fail(err, TEC_IO, "%s: %s", o->path, strerror(errno));
    enum tec_status status = read_fd(ld, fd, o->path, &text, &n, err);
    close(fd);
    if (status != TEC_OK)
        return status;
    return take(ld, o->shown ? o->shown : o->path, text, n, err);
}

/* The folder of the first source, "." for a bare name. */
static const char *own_folder(struct tec_loader *ld)
{
    const char *path = ld->options->path, *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    const char *folder =
        tec_arena_strndup(ld->scratch, path, slash == path ? 1 : (size_t)(slash - path));
    return folder ? folder : ".";
}

static bool is_confined(const char *path)
{
    if (path[0] == '\0' || path[0] == '/' || strlen(path) > 255)
        return false;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    }
    return true;
}

/* Links may lead out of a folder although the path does not. */
static bool is_inside(const char *file, const char *folder)
{
    char *real_file = realpath(file, NULL), *real_folder = realpath(folder, NULL);
    size_t n = real_folder ? strlen(real_folder) : 0;
    bool inside = real_file && real_folder && strncmp(real_file, real_folder, n) == 0 &&
                  (n == 1 || real_file[n] == '/');
    free(real_file);
    free(real_folder);
    return inside;
}

static bool is_inside_at(struct tec_loader *ld, const char *at, const char *name,
                         const char *folder)
{
    const char *full = tec_arena_printf(ld->scratch, "%s%s", at, name);
    return full && is_inside(full, folder);
}

/* The path of a file in the same folder that was probably meant; NULL = none, or a folder of too
 * many. What lies outside is neither read nor named. Of equally near names it is the first by the
 * alphabet, in whatever order they come. */
static const char *nearest_file(struct tec_loader *ld, const char *path, const char *folder)
{
    enum { MOST = 1 << 16 }; /* entries, which bounds the time */
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int length = (int)(name - path), nearest = tec_near_limit(name);
    char best[NAME_MAX + 1] = "";
    const char *at = tec_arena_printf(ld->scratch, "%s/%.*s", folder, length, path);
    DIR *dir = at && (length == 0 || is_inside(at, folder)) ? opendir(at) : NULL;
    int n = 0;
    for (struct dirent *e; dir && n <= MOST && (e = readdir(dir)); n++) {
        const char *one = e->d_name;
        int far = tec_word_distance(name, one, nearest);
        bool nearer = far < nearest || !best[0] || strcmp(one, best) < 0;
        if (one[0] == '.' || far == 0 || far > nearest || !nearer || !tec_nearest(name, &one, 1) ||
            !is_inside_at(ld, at, one, folder))
            continue;
        nearest = far;
        snprintf(best, sizeof best, "%s", one);
    }
    if (dir)
        closedir(dir);
    return best[0] && n <= MOST ? tec_arena_printf(ld->scratch, "%.*s%s", length, path, best)
                                : NULL;
}

/* The full path and its folder of `path` beside the file, then under the root. */
static enum tec_status look_up(struct tec_loader *ld, const char *path, const char **out,
                               const char **folder, struct tec_error *err)
{
    const char *folders[] = {own_folder(ld), ld->options->root};
    if (!is_confined(path))
        return tec_fail(
            err, TEC_MALFORMED,
            "'%.100s' must be a relative path without '..', below the pipeline's folder", path);
    bool outside = false;
    for (int i = 0; i < 2; i++) {
        if (!folders[i])
            continue;
        bool here = strcmp(folders[i], ".") == 0;
        const char *full = here ? tec_arena_strdup(ld->scratch, path)
                                : tec_arena_printf(ld->scratch, "%s/%s", folders[i], path);
        *folder = folders[i];
        if (full && access(full, R_OK) == 0 && is_inside(full, folders[i])) {
            *out = full;
            return TEC_OK;
        }
        outside |= full && access(full, F_OK) == 0 && !is_inside(full, folders[i]);
    }
    if (outside)
        return tec_fail(
            err, TEC_NOT_FOUND,
            "'%.100s' is a link, or lies behind one, that leads out of the folder %s%s%s", path,
            folders[0], folders[1] ? " or " : "", folders[1] ? folders[1] : "");
    const char *near = nearest_file(ld, path, folders[0]);
    if (!near && folders[1])
        near = nearest_file(ld, path, folders[1]);
    return tec_fail(err, TEC_NOT_FOUND, "there is no file '%.100s' in %s%s%s%s%.100s%s", path,
                    folders[0], folders[1] ? " or " : "", folders[1] ? folders[1] : "",
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum tec_status tec_loader_add(struct tec_loader *ld, const char *path, int *index,
                               struct tec_error *err)
{
    const char *folder = "", *full = "";
    *index = -1;
    TEC_TRY(look_up(ld, path, &full, &folder, err));
    int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return tec_fail(err, TEC_IO, "%s: %s", full, strerror(errno));
    char *text = NULL;
    size_t n = 0;
    enum tec_status status = read_fd(ld, fd, full, &text, &n, err);
    close(fd);
    if (status == TEC_OK)
        status = take(ld, full, text, n, err);
    *index = status == TEC_OK ? ld->n_sources - 1 : -1;
    return status;
}

/* Read a description without a checkpoint; *out is NULL where it, or a file that it includes, uses
 * `given`, which only a checkpoint can tell. */
static enum tec_status read_alone(json_t **out, const struct tec_decl_robot *robot,
                                  struct tec_heap *heap, struct tec_error *err)
{
    enum tec_status status =
        tec_lua_read_given(out, robot->path, robot->root, robot->shipped, NULL, heap, err);
    return status == TEC_POLICY && strstr(err->message, "unknown name 'given'") ? TEC_OK : status;
}

enum tec_status tec_loader_robot(struct tec_loader *ld, struct tec_decl_robot *out,
                                 const char *path, struct tec_error *err)
{
    const char *folder = "", *full = "";
    TEC_TRY(look_up(ld, path, &full, &folder, err));
    const char *slash = strrchr(full, '/');
    out->file = path;
    out->path = tec_arena_strdup(ld->arena, full);
    out->root = slash ? tec_arena_strndup(ld->arena, full, (size_t)(slash - full)) : ".";
    out->shipped =
        ld->options->root ? tec_arena_printf(ld->arena, "%s/robots", ld->options->root) : NULL;
    if (!out->path || !out->root || (ld->options->root && !out->shipped))
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", path);
    json_t *robot = NULL;
    TEC_TRY(read_alone(&robot, out, ld->heap, err));
    out->description = robot;
    return TEC_OK;
}

/* lua_file.c - files for Lua: bounded reading, include(), and descriptions that are one value. */
#include "base/file_kind.h"
#include "base/lua_lib.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TEXT = 4 << 20, MAX_INCLUDES = 256, MAX_INCLUDE_DEPTH = 16, MAX_PATH = 256 };

/* Read at most `room` bytes; the file may change while it is read. */
static ssize_t read_all(int fd, char *text, size_t room)
{
    size_t n = 0;
    while (n < room) {
        ssize_t got = read(fd, text + n, room - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static enum tec_status slurp(char **out, size_t *n, int fd, const char *path, struct tec_heap *heap,
                             struct tec_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tec_fail(err, TEC_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return tec_fail(err, TEC_IO, "%s: is %s, not a regular file", path,
                        tec_file_type(info.st_mode));
    if (info.st_size > MAX_TEXT)
        return tec_fail(err, TEC_MALFORMED, "%s: %lld bytes, a Lua file has at most %d", path,
                        (long long)info.st_size, MAX_TEXT);
    char *text = tec_heap_get(heap, (size_t)info.st_size + 1);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for %lld bytes", path,
                        (long long)info.st_size);
    ssize_t got = read_all(fd, text, (size_t)info.st_size);
    if (got < 0) {
        tec_heap_put(heap, text);
        return tec_fail(err, TEC_IO, "%s: %s", path, strerror(errno));
    }
    *out = text;
    *n = (size_t)got;
    return TEC_OK;
}

enum tec_status tec_lua_slurp(char **out, size_t *n, int dir, const char *path,
                              struct tec_heap *heap, struct tec_error *err)
{
    *out = NULL;
    /* O_NONBLOCK: opening a pipe must not wait for a writer. */
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return tec_fail(err, errno == ENOENT ? TEC_NOT_FOUND : TEC_IO, "%s: %s", path,
                        strerror(errno));
    enum tec_status status = slurp(out, n, fd, path, heap, err);
    close(fd);
    return status;
}

/* Open `path` below directory `root` one component at a time, without following symbolic links, so
 * that a path cannot leave the root, not even if a link is put there meanwhile. */
static int open_below(int root, const char *path)
{
    char part[MAX_PATH];
    int dir = dup(root);
    while (dir >= 0) {
        size_t n = strcspn(path, "/");
        bool last = path[n] == '\0';
        if (n == 0 || n >= sizeof part || strncmp(path, "..", n) == 0) {
            close(dir); /* empty, too long, "." or ".." */
            errno = EINVAL;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = '\0';
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
        int next = openat(dir, part, flags);
        int why = errno;
        close(dir);
        errno = why;
        if (last)
            return next;
        dir = next;
        path += n + 1;
    }
    return dir;
}

static enum tec_status load_below(struct tec_lua *lua, const char *path, struct tec_error *err)
{
    int fd = open_below(lua->root, path);
    if (fd < 0 && errno == ENOENT && lua->shipped >= 0)
        fd = open_below(lua->shipped, path);
    if (fd < 0)
        return tec_fail(err, TEC_IO, "include \"%.150s\": %s", path,
                        errno == EINVAL  ? "the path must stay below the root, without '..'"
                        : errno == ELOOP ? "links are not followed"
                                         : strerror(errno));
    char *text = NULL;
    size_t n = 0;
    enum tec_status status = slurp(&text, &n, fd, path, lua->heap, err);
    close(fd);
    if (status == TEC_OK)
        status = tec_lua_load(lua, path, text, n, err);
    tec_heap_put(lua->heap, text);
    return status;
}

/* include "relative/path.lua" returns the value of that file. */
static int lib_include(lua_State *L)
{
    struct tec_lua *lua = tec_lua_of(L);
    size_t n;
    const char *path = luaL_checklstring(L, 1, &n);
    if (strlen(path) != n || n >= MAX_PATH)
        return luaL_error(L, "include: a path has at most %d bytes and no NUL", MAX_PATH - 1);
    tec_lua_check(L);
    if (lua->include_depth >= MAX_INCLUDE_DEPTH || lua->includes >= MAX_INCLUDES)
        return luaL_error(L, "include: more than %d files, or nested more than %d deep",
                          MAX_INCLUDES, MAX_INCLUDE_DEPTH);
    lua->includes++;
    struct tec_error err;
    enum tec_status status = load_below(lua, path, &err);
    lua->starved |= status == TEC_NO_MEMORY;
    if (status != TEC_OK)
        return luaL_error(L, "%s", err.message);
    lua->include_depth++;
    lua_call(L, 0, 1);
    lua->include_depth--;
    return 1;
}

static int add_include(lua_State *L)
{
    tec_lua_push_names(L);
    lua_pushstring(L, "include");
    lua_pushcfunction(L, lib_include);
    lua_rawset(L, -3);
    return 0;
}

/* Put an open directory in place of the one that *held is. */
static enum tec_status hold_folder(int *held, const char *folder, struct tec_error *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tec_fail(err, TEC_IO, "%s: %s", folder, strerror(errno));
    if (*held >= 0)
        close(*held);
    *held = fd;
    return TEC_OK;
}

enum tec_status tec_lua_add_include(struct tec_lua *lua, const char *root, const char *shipped,
                                    struct tec_error *err)
{
    TEC_TRY(hold_folder(&lua->root, root, err));
    if (shipped && access(shipped, F_OK) == 0)
        TEC_TRY(hold_folder(&lua->shipped, shipped, err));
    lua->includes = lua->include_depth = 0;
    lua_pushcfunction(lua->state, add_include);
    return tec_lua_call(lua, 0, 0, err);
}

enum tec_status tec_lua_load_file(struct tec_lua *lua, const char *path, const char *name,
                                  struct tec_error *err)
{
    char *text = NULL;
    size_t n = 0;
    TEC_TRY(tec_lua_slurp(&text, &n, AT_FDCWD, path, lua->heap, err));
    enum tec_status status = tec_lua_load(lua, name ? name : path, text, n, err);
    tec_heap_put(lua->heap, text);
    return status;
}

/* Run the file and convert the value that it returns to JSON. */
static enum tec_status read_value(struct tec_lua *lua, json_t **out, const char *path,
                                  const char *root, const char *shipped, struct tec_error *err)
{
    TEC_TRY(tec_lua_add_include(lua, root, shipped, err));
    TEC_TRY(tec_lua_load_file(lua, path, NULL, err));
    TEC_TRY(tec_lua_call(lua, 0, 1, err));
    if (lua_isnil(lua->state, -1))
        return tec_fail(err, TEC_MALFORMED, "the file returns nothing: end it with 'return {...}'");
    return tec_lua_to_json(lua, -1, out, err);
}

enum tec_status tec_lua_read_given(json_t **out, const char *path, const char *root,
                                   const char *shipped, json_t *given, struct tec_heap *heap,
                                   struct tec_error *err)
{
    *out = NULL;
    struct tec_lua *lua;
    enum tec_status status = tec_lua_create(&lua, &tec_lua_file_limits, heap, err);
    if (status != TEC_OK)
        return tec_context(err, status, "%s", path);
    if (given)
        status = tec_lua_give(lua, "given", given, err);
    if (status == TEC_OK)
        status = read_value(lua, out, path, root, shipped, err);
    tec_lua_destroy(lua);
    if (status != TEC_OK && err && strncmp(err->message, path, strlen(path)) != 0)
        tec_context(err, status, "%s", path);
    return status;
}

enum tec_status tec_lua_read(json_t **out, const char *path, const char *root,
                             struct tec_heap *heap, struct tec_error *err)
{
    return tec_lua_read_given(out, path, root, NULL, NULL, heap, err);
}

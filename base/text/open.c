/* open.c - opens a tokenizer from a path or from bytes: chooses the layout. */
#include "base/text/open.h"
#include "base/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum tec_status tec_tokenizer_open_bytes(struct tec_tokenizer **out, const void *bytes, size_t n,
                                         enum tec_text_format format, struct tec_heap *heap,
                                         struct tec_error *err)
{
    struct tec_tokenizer *t = NULL;
    if (!out || !heap || (!bytes && n))
        return tec_fail(err, TEC_INVALID, "open: an argument is NULL");
    bytes = n ? bytes : "";
    TEC_TRY(tec_tokenizer_create(&t, heap, err));
    uint64_t seed = t->identity = XXH3_64bits(bytes, n);
    enum tec_status status = format == TEC_TEXT_MODEL
                                 ? tec_tokenizer_read_model(t, bytes, n, seed, err)
                                 : tec_tokenizer_read_json(t, bytes, n, seed, err);
    if (status != TEC_OK) {
        tec_tokenizer_close(t);
        return status;
    }
    *out = t;
    return TEC_OK;
}

static enum tec_status open_one(struct tec_tokenizer **out, const char *path,
                                enum tec_text_format format, struct tec_heap *heap,
                                struct tec_error *err)
{
    char *bytes = NULL;
    size_t n = 0;
    TEC_TRY(tec_tokenizer_read_file(path, heap, &bytes, &n, err));
    enum tec_status status = tec_tokenizer_open_bytes(out, bytes, n, format, heap, err);
    tec_heap_put(heap, bytes);
    return tec_context(err, status, "%s", path);
}

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), n_end = strlen(end);
    return n >= n_end && strcmp(path + n - n_end, end) == 0;
}

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* Open what a directory holds: the first known layout, in the order of the manual. */
static enum tec_status open_directory(struct tec_tokenizer **out, const char *dir,
                                      struct tec_arena *names, struct tec_error *err)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer.model", "vocab.json",
                                        "merges.txt", "vocab.txt"};
    const char *path[5];
    for (int i = 0; i < 5; i++) {
        path[i] = tec_arena_printf(names, "%s/%s", dir, files[i]);
        if (!path[i])
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    }
    if (is_file(path[0]))
        return open_one(out, path[0], TEC_TEXT_JSON, names->heap, err);
    if (is_file(path[1]))
        return open_one(out, path[1], TEC_TEXT_MODEL, names->heap, err);
    if (is_file(path[2]) && is_file(path[3]))
        return tec_tokenizer_open_merges(out, dir, names, err);
    if (is_file(path[4]))
        return tec_tokenizer_open_words(out, dir, names, err);
    if (is_file(path[2]) != is_file(path[3]))
        return tec_fail(err, TEC_NOT_FOUND, "%s: %s is missing: there is %s, which needs it", dir,
                        files[is_file(path[2]) ? 3 : 2], files[is_file(path[2]) ? 2 : 3]);
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s: holds no tokenizer.json, tokenizer.model, vocab.json with merges.txt, or "
                    "vocab.txt",
                    dir);
}

static const char *directory_of(const char *path, struct tec_arena *names)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    return slash ? tec_arena_strndup(names, path, n) : ".";
}

static enum tec_status open_path(struct tec_tokenizer **out, const char *path,
                                 struct tec_arena *names, struct tec_error *err)
{
    struct stat about;
    struct tec_tokenizer *t = NULL;
    if (stat(path, &about) != 0)
        return tec_fail(err, errno == ENOENT ? TEC_NOT_FOUND : TEC_IO, "%s: %s", path,
                        strerror(errno));
    const char *dir = S_ISDIR(about.st_mode) ? path : directory_of(path, names);
    if (!dir)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    if (S_ISDIR(about.st_mode))
        TEC_TRY(open_directory(&t, path, names, err));
    else if (ends_with(path, ".model"))
        TEC_TRY(open_one(&t, path, TEC_TEXT_MODEL, names->heap, err));
    else if (ends_with(path, "vocab.json") || ends_with(path, "merges.txt"))
        TEC_TRY(tec_tokenizer_open_merges(&t, dir, names, err));
    else if (ends_with(path, ".json"))
        TEC_TRY(open_one(&t, path, TEC_TEXT_JSON, names->heap, err));
    else if (ends_with(path, "vocab.txt"))
        TEC_TRY(tec_tokenizer_open_words(&t, dir, names, err));
    else
        return tec_fail(err, TEC_UNSUPPORTED, "%s: not a .model, a .json or a directory", path);
    enum tec_status status = tec_tokenizer_read_names(t, dir, names, err);
    if (status != TEC_OK) {
        tec_tokenizer_close(t);
        return status;
    }
    *out = t;
    return TEC_OK;
}

enum tec_status tec_tokenizer_open(struct tec_tokenizer **out, const char *path,
                                   struct tec_heap *heap, struct tec_error *err)
{
    struct tec_arena names;
    if (!out || !path || !heap)
        return tec_fail(err, TEC_INVALID, "open: an argument is NULL");
    tec_arena_init(&names, heap);
    enum tec_status status = open_path(out, path, &names, err);
    tec_arena_finish(&names);
    return status;
}

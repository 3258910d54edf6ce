/* file.c - reads regular files: bytes at an offset, whole JSON documents, and what a wrong file
 * seems to be. */
#include "base/store/file.h"

#include "base/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_JSON = 64 << 20 };

enum tec_status tec_path_open(const char *path, int *fd, uint64_t *bytes, struct tec_error *err)
{
    struct stat st;
    *bytes = 0;
    TEC_TRY(tec_file_open_regular(fd, &st, path, err));
    *bytes = (uint64_t)st.st_size;
    return TEC_OK;
}

enum tec_status tec_path_read(int fd, const char *path, uint64_t offset, void *dst, size_t bytes,
                              struct tec_error *err)
{
    char why[80] = "", *to = dst;
    while (bytes) {
        ssize_t n = pread(fd, to, bytes < 1U << 30 ? bytes : 1U << 30, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tec_fail(err, TEC_IO, "%s: cannot be read at byte %llu: %s", path,
                            (unsigned long long)offset, strerror_r(errno, why, sizeof why));
        if (n == 0)
            return tec_fail(err, TEC_IO,
                            "%s: ends at byte %llu, %zu bytes before its end when it was opened",
                            path, (unsigned long long)offset, bytes);
        to += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return TEC_OK;
}

const char *tec_path_kind_of_head(const void *head, size_t n)
{
    static const struct {
        const char *start, *what;
    } kinds[] = {
        {"version https://git-lfs", "a Git LFS pointer, not the file itself: run git lfs pull"},
        {"version ", "a Git LFS pointer, not the file itself: run git lfs pull"},
        {"<!DOCTYPE", "an HTML page, perhaps a failed download"},
        {"<!doctype", "an HTML page, perhaps a failed download"},
        {"<html", "an HTML page, perhaps a failed download"},
        {"GGUF", "a GGUF file"},
        {"PK\3\4", "a zip archive, as PyTorch's .pt and .bin files are: convert it to safetensors"},
        {"\x80\2", "a Python pickle: convert it to safetensors"},
        {"{", "a JSON text"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i].start);
        if (n >= length && memcmp(head, kinds[i].start, length) == 0)
            return kinds[i].what;
    }
    return NULL;
}

/* Report why parsing failed, in our own words where jansson's message would mislead. */
static enum tec_status bad_json(const char *path, const char *text, size_t n,
                                const json_error_t *at, struct tec_error *err)
{
    static const char *const literals[] = {"NaN", "Infinity", "-Infinity"};
    const char *kind = tec_path_kind_of_head(text, n);
    if (n && kind && *text != '{')
        return tec_fail(err, TEC_MALFORMED, "%s: is %s", path, kind);
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++)
        if (strstr(at->text, literals[i]))
            return tec_fail(err, TEC_MALFORMED,
                            "%s: line %d, column %d: %s is not a JSON number; replace it by a "
                            "finite value",
                            path, at->line, at->column, literals[i]);
    return tec_fail(err, TEC_MALFORMED, "%s: line %d, column %d: %s", path, at->line, at->column,
                    at->text);
}

/* What stands at the top of a file: an object, a list, or an object whose whole numbers are read as
 * reals because they may be too large. */
enum top { TOP_OBJECT, TOP_LIST, TOP_REALS };

/* Read and parse the file's n bytes; `text` is a buffer of n bytes. */
static enum tec_status parse_json(json_t **out, int fd, const char *path, char *text, size_t n,
                                  enum top top, struct tec_error *err)
{
    json_error_t at;
    TEC_TRY(tec_path_read(fd, path, 0, text, n, err));
    const bool list = top == TOP_LIST;
    size_t flags = JSON_REJECT_DUPLICATES | (top == TOP_REALS ? JSON_DECODE_INT_AS_REAL : 0);
    json_t *json = json_loadb(text, n, flags, &at);
    if (!json)
        return bad_json(path, text, n, &at, err);
    if (list ? !json_is_array(json) : !json_is_object(json)) {
        json_decref(json);
        return tec_fail(err, TEC_MALFORMED, "%s: holds %s", path,
                        list ? "an object, not a list" : "a list, not an object");
    }
    *out = json;
    return TEC_OK;
}

static enum tec_status load_json(json_t **out, const char *path, enum top top,
                                 struct tec_heap *heap, struct tec_error *err)
{
    int fd = -1;
    uint64_t bytes = 0;
    TEC_TRY(tec_path_open(path, &fd, &bytes, err));
    enum tec_status status;
    char *text = bytes <= MAX_JSON ? tec_heap_get(heap, (size_t)bytes) : NULL;
    if (bytes > MAX_JSON)
        status = tec_fail(err, TEC_UNSUPPORTED, "%s: %llu bytes of JSON; the limit is %d", path,
                          (unsigned long long)bytes, MAX_JSON);
    else if (!text)
        status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its %llu bytes", path,
                          (unsigned long long)bytes);
    else
        status = parse_json(out, fd, path, text, (size_t)bytes, top, err);
    tec_heap_put(heap, text);
    close(fd);
    return status;
}

enum tec_status tec_checkpoint_json_load(json_t **out, const char *path, struct tec_heap *heap,
                                         struct tec_error *err)
{
    return load_json(out, path, TOP_OBJECT, heap, err);
}

enum tec_status tec_checkpoint_json_load_list(json_t **out, const char *path, struct tec_heap *heap,
                                              struct tec_error *err)
{
    return load_json(out, path, TOP_LIST, heap, err);
}

enum tec_status tec_checkpoint_json_load_reals(json_t **out, const char *path,
                                               struct tec_heap *heap, struct tec_error *err)
{
    return load_json(out, path, TOP_REALS, heap, err);
}

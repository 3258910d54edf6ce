/* file.c - a tokenizer that nothing was read into yet, and the bytes of its files. */
#include "base/file_kind.h"
#include "base/text/open.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_FILE ((off_t)1 << 30) /* bytes; published files stay below 40 MB */

enum tec_status tec_tokenizer_create(struct tec_tokenizer **out, struct tec_heap *heap,
                                     struct tec_error *err)
{
    struct tec_tokenizer *t = tec_heap_get(heap, sizeof *t);
    if (!t)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a tokenizer");
    t->heap = heap;
    tec_arena_init(&t->arena, heap);
    t->bos = t->eos = t->pad = t->unk = -1;
    *out = t;
    return TEC_OK;
}

void tec_tokenizer_close(struct tec_tokenizer *t)
{
    if (!t)
        return;
    tec_arena_finish(&t->arena);
    tec_heap_put(t->heap, t);
}

static enum tec_status read_all(int file, char *bytes, size_t n, const char *path,
                                struct tec_error *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(file, bytes + at, n - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tec_fail(err, TEC_IO, "%s: read at byte %zu: %s", path, at,
                            got < 0 ? strerror(errno) : "the file became shorter");
        at += (size_t)got;
    }
    return TEC_OK;
}

enum tec_status tec_tokenizer_read_file(const char *path, struct tec_heap *heap, char **bytes,
                                        size_t *n, struct tec_error *err)
{
    struct stat about;
    int file = -1;
    enum tec_status status = TEC_OK;
    char *all = NULL;
    TEC_TRY(tec_file_open_regular(&file, &about, path, err));
    if (about.st_size > LARGEST_FILE)
        status = tec_fail(err, TEC_IO, "%s: %lld bytes; a tokenizer file has at most %lld", path,
                          (long long)about.st_size, (long long)LARGEST_FILE);
    else if (!(all = tec_heap_get(heap, (size_t)about.st_size + 1)))
        status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory for %lld bytes", path,
                          (long long)about.st_size);
    else
        status = read_all(file, all, (size_t)about.st_size, path, err);
    close(file);
    if (status != TEC_OK) {
        tec_heap_put(heap, all);
        return status;
    }
    *bytes = all;
    *n = (size_t)about.st_size;
    return TEC_OK;
}

/* expect.c - checks that a path holds the kind of thing that was asked for, and otherwise names
 * what it is. */
#include "tools/cli/expect.h"

#include "base/file_kind.h"
#include "base/store/checkpoint.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

enum tec_status tec_expect(const char *path, const char *wanted, struct tec_error *err)
{
    struct stat st;
    enum tec_path_kind kind = tec_path_kind(path);
    if (kind == TEC_PATH_MISSING)
        return tec_fail(err, TEC_NOT_FOUND, "%s: there is no such file or folder", path);
    if (kind == TEC_PATH_UNKNOWN && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return tec_fail(err, TEC_MALFORMED, "%s: this is %s, not %s", path,
                        S_ISDIR(st.st_mode) ? "a folder" : tec_file_type(st.st_mode), wanted);
    if (kind == TEC_PATH_UNKNOWN)
        return tec_fail(err, TEC_MALFORMED, "%s: this is %s%s", path,
                        stat(path, &st) == 0 && st.st_size == 0 ? "an empty file, not " : "not ",
                        wanted);
    return tec_fail(err, TEC_MALFORMED, "%s: this is %s, not %s", path, tec_path_kind_text(kind),
                    wanted);
}

enum tec_status tec_expect_pipeline(const char *path, struct tec_error *err)
{
    struct stat st;
    enum tec_path_kind kind = tec_path_kind(path);
    bool regular = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (kind == TEC_PATH_PIPELINE || kind == TEC_PATH_CHECKPOINT) /* a folder may describe one */
        return TEC_OK;
    if (kind == TEC_PATH_UNKNOWN && regular &&
        (ends_with(path, ".json") || ends_with(path, ".lua")))
        return TEC_OK;
    return tec_expect(path, "a pipeline file", err);
}

/* Load the tokenizer of a checkpoint, which lies where the checkpoint's layout says. */
static enum tec_status of_checkpoint(struct tec_tokenizer **out, const char *path,
                                     struct tec_heap *heap, struct tec_error *err)
{
    struct tec_checkpoint *c = NULL;
    TEC_TRY(tec_checkpoint_open(&c, path, heap, err));
    enum tec_status status =
        c->tokenizer ? tec_tokenizer_open(out, c->tokenizer, heap, err)
                     : tec_fail(err, TEC_NOT_FOUND,
                                "%s: this checkpoint has no tokenizer; give the file itself", path);
    tec_checkpoint_close(c);
    return status;
}

enum tec_status tec_expect_tokenizer(struct tec_tokenizer **out, const char *path,
                                     struct tec_heap *heap, struct tec_error *err)
{
    enum tec_path_kind kind = tec_path_kind(path);
    if (kind == TEC_PATH_TOKENIZER || kind == TEC_PATH_UNKNOWN)
        return tec_tokenizer_open(out, path, heap, err);
    if (kind != TEC_PATH_CHECKPOINT)
        return tec_expect(path, "a tokenizer", err);
    if (tec_tokenizer_open(out, path, heap, NULL) == TEC_OK)
        return TEC_OK;
    return of_checkpoint(out, path, heap, err);
}

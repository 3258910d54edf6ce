#include "tools/expect.h"

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
    if (kind == TEC_PATH_UNKNOWN && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return tec_fail(err, TEC_MALFORMED, "%s: this is a folder, not %s", path, wanted);
    if (kind == TEC_PATH_UNKNOWN)
        return tec_fail(err, TEC_MALFORMED, "%s: this is not %s", path, wanted);
    return tec_fail(err, TEC_MALFORMED, "%s: this is %s, not %s", path, tec_path_kind_text(kind),
                    wanted);
}

enum tec_status tec_expect_pipeline(const char *path, struct tec_error *err)
{
    struct stat st;
    enum tec_path_kind kind = tec_path_kind(path);
    bool regular = stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
    if (kind == TEC_PATH_PIPELINE)
        return TEC_OK;
    if (kind == TEC_PATH_UNKNOWN && regular &&
        (ends_with(path, ".json") || ends_with(path, ".lua")))
        return TEC_OK;
    return tec_expect(path, "a pipeline file", err);
}

/* kind.c - guesses what a path holds (checkpoint, pipeline, policy, ...), so that error messages
 * can name it. */
#include "base/store/kind.h"

#include "base/file_kind.h"
#include "base/store/file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has(const char *dir, const char *name)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

bool tec_path_is_adapter(const char *path)
{
    return has(path, "adapter_config.json") && !has(path, "model.safetensors") &&
           !has(path, "model.safetensors.index.json");
}

static enum tec_path_kind directory(const char *path)
{
    static const char *const checkpoint[] = {"model.safetensors", "model.safetensors.index.json",
                                             "config.json", "adapter_config.json",
                                             "pretrained_model"};
    for (size_t i = 0; i < sizeof checkpoint / sizeof checkpoint[0]; i++)
        if (has(path, checkpoint[i]))
            return TEC_PATH_CHECKPOINT;
    if (has(path, "params/_METADATA") || has(path, "params/manifest.ocdbt") ||
        has(path, "_METADATA") || has(path, "manifest.ocdbt"))
        return TEC_PATH_ORBAX;
    if (has(path, "tokenizer.model") || has(path, "tokenizer.json"))
        return TEC_PATH_TOKENIZER;
    return TEC_PATH_UNKNOWN;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Classify a text file. Pipelines and policies are known by the constructor that they return; a
 * robot's file, which has none, by the fields that every robot has. */
static enum tec_path_kind by_text(const char *path)
{
    static char const *const pipeline = "return pipeline", *const policy = "return policy";
    bool cameras = false, actions = false, nodes = false;
    char text[4096 + 1], kept[16] = "";
    int fd;
    uint64_t bytes;
    if (tec_path_open(path, &fd, &bytes, NULL) != TEC_OK)
        return TEC_PATH_UNKNOWN;
    enum tec_path_kind kind = TEC_PATH_UNKNOWN;
    /* Each piece begins with the last bytes of the piece before it, so that no word is cut. */
    for (uint64_t at = 0; at < bytes && at < 1 << 16 && kind == TEC_PATH_UNKNOWN;) {
        size_t room = sizeof text - 1 - strlen(kept);
        size_t n = bytes - at < room ? (size_t)(bytes - at) : room, old = strlen(kept);
        memcpy(text, kept, old);
        if (tec_path_read(fd, path, at, text + old, n, NULL) != TEC_OK)
            break;
        text[old + n] = '\0';
        if (strstr(text, policy))
            kind = TEC_PATH_POLICY;
        else if (strstr(text, pipeline))
            kind = TEC_PATH_PIPELINE;
        cameras |= strstr(text, "cameras") != NULL;
        actions |= strstr(text, "actions") != NULL;
        nodes |= strstr(text, "nodes") || strstr(text, "extend") || strstr(text, "pipeline");
        size_t total = strlen(text), keep = total < 15 ? total : 15;
        memcpy(kept, text + total - keep, keep);
        kept[keep] = '\0';
        at += n;
    }
    close(fd);
    bool robot = (cameras && actions && !nodes) || strstr(path, "robots/");
    if (kind == TEC_PATH_UNKNOWN && robot && ends_with(path, ".lua"))
        return TEC_PATH_ROBOT;
    return kind;
}

/* By the first bytes: recordings and stores have a magic, tensors the length of a header, which is
 * JSON. */
enum tec_path_kind tec_path_content(const char *path)
{
    uint8_t first[9];
    int fd;
    uint64_t bytes, header = 0;
    if (tec_path_open(path, &fd, &bytes, NULL) != TEC_OK)
        return TEC_PATH_UNKNOWN;
    bool read =
        bytes >= sizeof first && tec_path_read(fd, path, 0, first, sizeof first, NULL) == TEC_OK;
    close(fd);
    for (int i = 7; read && i >= 0; i--)
        header = header << 8 | first[i];
    return !read                                                  ? TEC_PATH_UNKNOWN
           : tec_file_is_recording(first)                         ? TEC_PATH_RECORDING
           : tec_file_is_memory(first)                            ? TEC_PATH_MEMORY
           : first[8] == '{' && header <= bytes - 8 && header > 1 ? TEC_PATH_SAFETENSORS
                                                                  : TEC_PATH_UNKNOWN;
}

enum tec_path_kind tec_path_kind(const char *path)
{
    static const struct {
        const char *end;
        enum tec_path_kind kind;
    } ends[] = {{".safetensors", TEC_PATH_SAFETENSORS}, {"tokenizer.model", TEC_PATH_TOKENIZER},
                {"tokenizer.json", TEC_PATH_TOKENIZER}, {".wrec", TEC_PATH_RECORDING},
                {".rec", TEC_PATH_RECORDING},           {".mcap", TEC_PATH_RECORDING},
                {".jsonl", TEC_PATH_RECORDING}};
    struct stat st;
    if (stat(path, &st) != 0)
        return TEC_PATH_MISSING;
    if (S_ISDIR(st.st_mode))
        return directory(path);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_with(path, ends[i].end))
            return ends[i].kind;
    enum tec_path_kind kind = tec_path_content(path);
    if (kind == TEC_PATH_UNKNOWN)
        kind = by_text(path);
    return kind == TEC_PATH_UNKNOWN && ends_with(path, ".lua") ? TEC_PATH_PIPELINE : kind;
}

const char *tec_path_kind_text(enum tec_path_kind kind)
{
    static const char *const texts[] = {
        [TEC_PATH_MISSING] = "nothing",
        [TEC_PATH_UNKNOWN] = "something else",
        [TEC_PATH_CHECKPOINT] = "a checkpoint directory",
        [TEC_PATH_SAFETENSORS] = "a safetensors file",
        [TEC_PATH_PIPELINE] = "a pipeline file",
        [TEC_PATH_POLICY] = "a policy",
        [TEC_PATH_ROBOT] = "a robot's file, which a pipeline names (`robot = FILE`)",
        [TEC_PATH_TOKENIZER] = "a tokenizer",
        [TEC_PATH_ORBAX] = "a JAX (orbax) checkpoint; tools/convert/openpi.py converts openpi's",
        [TEC_PATH_RECORDING] = "a recording",
        [TEC_PATH_MEMORY] = "a memory's store",
    };
    return texts[kind];
}

enum tec_status tec_path_fail(const char *path, enum tec_path_kind kind, struct tec_error *err)
{
    struct stat st;
    if (kind == TEC_PATH_MISSING)
        return tec_fail(err, TEC_NOT_FOUND, "%s: there is no such file or directory", path);
    if (kind != TEC_PATH_UNKNOWN)
        return tec_fail(err, TEC_INVALID,
                        "%s: this is %s; a checkpoint is a directory with model.safetensors", path,
                        tec_path_kind_text(kind));
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return tec_fail(err, TEC_NOT_FOUND,
                        "%s: holds neither model.safetensors nor model.safetensors.index.json",
                        path);
    return tec_fail(err, TEC_INVALID,
                    "%s: is no checkpoint: that is a directory with model.safetensors", path);
}

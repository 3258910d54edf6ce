/* checkpoint.c - what an open checkpoint has, by name: files of its folders and of models beside
 * it, and tensors. */
#include "base/store/checkpoint_own.h"

#include "base/store/tensors.h"

#include "base/store/file.h"
#include "base/store/hub.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *tec_layout_name(enum tec_layout layout)
{
    static const char *const names[] = {[TEC_LAYOUT_OPENPI] = "openpi",
                                        [TEC_LAYOUT_LEROBOT] = "lerobot",
                                        [TEC_LAYOUT_HF] = "hf",
                                        [TEC_LAYOUT_FILE] = "file"};
    return (size_t)layout < sizeof names / sizeof names[0] ? names[layout] : "?";
}

const char *tec_checkpoint_file_in(struct tec_checkpoint *c, const char *root, const char *folder,
                                   const char *name, bool *failed)
{
    struct stat st;
    const char *slash = *folder ? "/" : "";
    const char *path = tec_arena_printf(&c->arena, "%s/%s%s%s", root, folder, slash, name);
    *failed |= !path;
    return path && stat(path, &st) == 0 && S_ISREG(st.st_mode) ? path : NULL;
}

const char *tec_checkpoint_file(struct tec_checkpoint *c, const char *folder, const char *name,
                                bool *failed)
{
    const char *path = tec_checkpoint_file_in(c, c->root, folder, name, failed);
    return path || c->base == c->root ? path
                                      : tec_checkpoint_file_in(c, c->base, folder, name, failed);
}

enum tec_status tec_checkpoint_load_if(struct tec_checkpoint *c, const char *name, json_t **out,
                                       struct tec_error *err)
{
    bool failed = false;
    const char *path = tec_checkpoint_file_in(c, c->root, "", name, &failed);
    if (failed)
        return tec_checkpoint_no_memory(c, err);
    return path ? tec_checkpoint_json_load(out, path, c->heap, err) : TEC_OK;
}

bool tec_checkpoint_is_below(const char *name)
{
    return *name && *name != '/' && !strchr(name, '\\') && !strstr(name, "..");
}

enum tec_status tec_checkpoint_beside(struct tec_checkpoint *c, const char *name, const char *file,
                                      const char **path, struct tec_error *err)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    const char *const words[] = {name, last};
    bool failed = false;
    *path = NULL;
    for (int i = 0; i < 4 && !*path; i++) {
        if (!tec_checkpoint_is_below(words[i / 2]))
            continue;
        const char *folder = tec_arena_printf(&c->arena, "%s%s", i % 2 ? "../" : "", words[i / 2]);
        failed |= !folder;
        *path = folder ? tec_checkpoint_file(c, folder, file, &failed) : NULL;
    }
    if (failed)
        return tec_checkpoint_no_memory(c, err);
    return *path || !c->hub ? TEC_OK : tec_hub_find(path, c->hub, name, file, &c->arena, err);
}

enum tec_status tec_checkpoint_beside_json(struct tec_checkpoint *c, const char *name,
                                           const char *file, json_t **out, struct tec_error *err)
{
    const char *path, *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    TEC_TRY(tec_checkpoint_beside(c, name, file, &path, err));
    if (path)
        return tec_checkpoint_json_load(out, path, c->heap, err);
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s/config.json names the model '%.120s', whose %s is not there: copy its "
                    "config.json, tokenizer.json and tokenizer_config.json to %s/%.120s%s%.200s%s",
                    c->root, name, file, c->root, last,
                    c->hub ? ", or download the model: it is not in " : "", c->hub ? c->hub : "",
                    c->hub ? " either" : "");
}

enum tec_status tec_checkpoint_find_prefix(struct tec_checkpoint *c, struct tec_error *err)
{
    size_t n = tec_tensors_count(c->tensors), shared = 0;
    const char *first = n ? tec_tensors_at(c->tensors, 0)->name : "", *dot = strchr(first, '.');
    c->prefix = "";
    if (c->layout != TEC_LAYOUT_LEROBOT)
        return TEC_OK;
    size_t length = dot && *first == '_' ? (size_t)(dot - first) + 1 : 0;
    for (size_t i = 0; i < n; i++) {
        const char *name = tec_tensors_at(c->tensors, i)->name;
        shared += length && strncmp(name, first, length) == 0;
        if (strncmp(name, "model.", 6) == 0)
            c->prefix = "model.";
    }
    if (length && shared == n)
        c->prefix = tec_arena_strndup(&c->arena, first, length);
    return c->prefix ? TEC_OK : tec_checkpoint_no_memory(c, err);
}

const struct tec_stored *tec_checkpoint_tensor(const struct tec_checkpoint *c, const char *name)
{
    char longer[512];
    const struct tec_stored *s = tec_tensors_find(c->tensors, name);
    if (s || c->layout != TEC_LAYOUT_LEROBOT)
        return s;
    if (!*c->prefix)
        return strncmp(name, "model.", 6) == 0 ? tec_tensors_find(c->tensors, name + 6) : NULL;
    int n = snprintf(longer, sizeof longer, "%s%s", c->prefix, name);
    return n > 0 && (size_t)n < sizeof longer ? tec_tensors_find(c->tensors, longer) : NULL;
}

static bool is_joined(const struct tec_checkpoint *c, const char *path)
{
    for (int i = 0; i < c->tensors->n_files; i++)
        if (strcmp(tec_tensors_file(c->tensors, i), path) == 0)
            return true;
    return false;
}

enum tec_status tec_checkpoint_join(struct tec_checkpoint *c, const char *dir, const char *file,
                                    bool *joined, struct tec_error *err)
{
    static const char suffix[] = ".safetensors";
    size_t n = strlen(file), tail = sizeof suffix - 1;
    *joined = false;
    if (!tec_tensors_is_plain(file) || n <= tail || strcmp(file + n - tail, suffix) != 0)
        return tec_fail(err, TEC_MALFORMED, "part '%.80s' is not a plain file name that ends in %s",
                        file, suffix);
    const char *path = tec_arena_printf(&c->arena, "%s/%s", dir, file);
    const char *prefix = tec_arena_printf(&c->arena, "%.*s.", (int)(n - tail), file);
    if (!path || !prefix)
        return tec_checkpoint_no_memory(c, err);
    if (!c->tensors || access(path, F_OK) != 0 || is_joined(c, path))
        return TEC_OK;
    TEC_TRY(tec_tensors_join(c->tensors, path, prefix, err));
    tec_tensors_hash(c->tensors, c->hash);
    *joined = true;
    return TEC_OK;
}

/* describe.c - find and evaluate a model description. */
#include "base/json_text.h"
#include "base/lua.h"
#include "base/nearest.h"
#include "base/store/file.h"
#include "graph/model/build.h"
#include "graph/model/parse.h"
#include "graph/model/pictures.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { MAX_NAME = 256, MAX_PARTS = 16, MAX_NAMED = 2 };

/* The picture features of a configuration in the order of the file, which a table would lose. */
static json_t *cameras_of(const json_t *config)
{
    json_t *features = json_object_get(config, "input_features"), *feature, *list = json_array();
    const char *name;
    json_object_foreach(features, name, feature)
    {
        const char *type = json_string_value(json_object_get(feature, "type"));
        if (type && strcmp(type, "VISUAL") == 0)
            json_array_append_new(list, json_string(name));
    }
    return list;
}

/* An evaluated description: its data, owned, and what its functions compute. */
struct described {
    json_t *json;
    uint64_t identity; /* as of the model */
    struct tec_model_programs programs;
    struct tec_arena *arena; /* borrowed: of the programs */
};

static void drop(struct described *d)
{
    json_decref(d->json);
    d->json = NULL;
    d->programs = (struct tec_model_programs){.own = NULL}; /* what they take stays in the arena */
}

/* Builds `given`, the input of a description: {config, cameras, generation, preprocessor,
 * statistics, robots, shapes, dtypes, pictures, size, arch} and the caller's overrides. There are
 * no shapes of tensors that are not there. */
static enum tec_status make_given(json_t **out, const struct tec_model_choice *choice,
                                  struct tec_heap *heap, struct tec_error *err)
{
    const struct tec_checkpoint *c = choice->checkpoint;
    json_t *pictures = NULL;
    if (c && c->layout == TEC_LAYOUT_LEROBOT)
        TEC_TRY(tec_model_pictures(&pictures, c, heap, err));
    json_t *given = json_object(), *shapes = json_object(), *dtypes = json_object();
    int bad = !given || !shapes || !dtypes;
    if (pictures)
        bad |= json_object_set_new(given, "pictures", pictures);
    for (size_t i = 0; c && !bad && i < tec_tensors_count(c->tensors); i++) {
        const struct tec_stored *t = tec_tensors_at(c->tensors, i);
        size_t skip = strlen(c->prefix);
        const char *name = strncmp(t->name, c->prefix, skip) == 0 ? t->name + skip : t->name;
        json_t *shape = json_array();
        for (int d = 0; d < t->rank; d++)
            bad |= json_array_append_new(shape, json_integer(t->shape[d]));
        bad |= json_object_set_new(shapes, name, shape);
        bad |= json_object_set_new(dtypes, name, json_string(tec_dtype_name(t->dtype)));
    }
    if (c && c->tensors)
        bad |= json_object_set(given, "shapes", shapes) | json_object_set(given, "dtypes", dtypes);
    if (c && c->config)
        bad |= json_object_set(given, "config", c->config);
    if (c && c->layout == TEC_LAYOUT_LEROBOT)
        bad |= json_object_set_new(given, "cameras", cameras_of(c->config));
    if (c && c->generation)
        bad |= json_object_set(given, "generation", c->generation);
    if (c && c->pictures)
        bad |= json_object_set(given, "preprocessor", c->pictures);
    if (c && c->statistics)
        bad |= json_object_set(given, "statistics", c->statistics);
    if (c && c->robots)
        bad |= json_object_set(given, "robots", c->robots);
    if (c && c->processor)
        bad |= json_object_set(given, "processor", c->processor);
    if (c && c->robot_numbers)
        bad |= json_object_set(given, "embodiments", c->robot_numbers);
    if (choice->arch)
        bad |= json_object_set_new(given, "arch", json_string(choice->arch));
    bad |= json_object_set_new(given, "size", json_string(choice->size ? choice->size : "full"));
    if (choice->overrides)
        bad |= json_object_update(given, choice->overrides);
    json_decref(shapes);
    json_decref(dtypes);
    if (bad) {
        json_decref(given);
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a model's configuration");
    }
    *out = given;
    return TEC_OK;
}

/* A description is a function of its texts and of what it is given. */
static enum tec_status identify(uint64_t *out, const struct tec_lua *lua, const json_t *given,
                                struct tec_error *err)
{
    char *text = tec_json_whole(given, JSON_SORT_KEYS | JSON_COMPACT);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for what a description is given");
    *out = XXH3_64bits_withSeed(text, strlen(text), tec_lua_texts(lua));
    free(text);
    return TEC_OK;
}

/* Runs a file in a sandbox: its value, and then its functions. Lua knows it by its name below the
 * root, as those that it includes: of a long path it would keep the end alone. */
static enum tec_status run_file(struct described *out, struct tec_lua *lua, const char *path,
                                const char *root, json_t *given, struct tec_error *err)
{
    TEC_TRY(tec_lua_give(lua, "given", given, err));
    TEC_TRY(tec_lua_add_include(lua, root, NULL, err));
    TEC_TRY(tec_lua_load_file(lua, path, path + strlen(root) + 1, err));
    TEC_TRY(tec_lua_call(lua, 0, 1, err));
    if (lua_isnil(tec_lua_state(lua), -1))
        return tec_fail(err, TEC_MALFORMED, "the file returns nothing: end it with 'return {...}'");
    TEC_TRY(tec_model_build(&out->programs, lua, root, out->arena, err));
    TEC_TRY(identify(&out->identity, lua, given, err));
    return tec_lua_to_json(lua, -1, &out->json, err);
}

/* Whether a message begins with a place in a file below the root, as Lua's do: "NAME.lua:LINE: ".
 */
static bool is_placed(const char *message)
{
    const char *line = strstr(message, ".lua:");
    return line && line[5] >= '0' && line[5] <= '9' &&
           strcspn(message, ": ") == (size_t)(line - message) + 4;
}

/* The name of a description by that of its file; false: it is none. */
static bool name_of(char arch[MAX_NAME], const char *file)
{
    size_t n = strlen(file);
    if (n < 5 || n >= MAX_NAME || strcmp(file + n - 4, ".lua") != 0)
        return false;
    snprintf(arch, MAX_NAME, "%.*s", (int)(n - 4), file);
    return true;
}

/* No description has this name; the nearest one that is there. */
static enum tec_status fail_named(const char *root, const char *arch, struct tec_error *err)
{
    enum { MOST = 64 };
    char all[MOST][MAX_NAME];
    const char *names[MOST];
    int n = 0;
    DIR *dir = opendir(root);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e && n < MOST; e = readdir(dir))
        if (name_of(all[n], e->d_name)) {
            names[n] = all[n];
            n++;
        }
    if (dir)
        closedir(dir);
    const char *near = tec_nearest(arch, names, n);
    return tec_fail(err, TEC_NOT_FOUND, "no model is named '%.80s': %s/%.80s.lua is not there%s",
                    arch, root, arch, tec_meant(';', near).text);
}

/* Whether a description refuses a field of the checkpoint's files: they are at fault, not it. */
static bool blames_file(struct tec_error *err, const struct tec_checkpoint *c,
                        enum tec_status status)
{
    static const char *const files[] = {
        "config.json: ", "embodiment_id.json: ", "generation_config.json: ",
        "preprocessor_config.json: ", "config.json of "};
    static const size_t beside = sizeof files / sizeof files[0] - 1; /* another folder's */
    const struct tec_error says = *err;
    for (size_t i = 0; c && i < sizeof files / sizeof files[0]; i++)
        if (strncmp(says.message, files[i], strlen(files[i])) == 0) {
            tec_fail(err, status, "%s%s%s", c->root, i < beside ? "/" : ": ", says.message);
            return true;
        }
    return false;
}

/* Evaluate one description. It may answer false: "this checkpoint is not mine". */
static enum tec_status evaluate(struct described *out, const struct tec_model_choice *choice,
                                const char *arch, json_t *given, struct tec_heap *heap,
                                struct tec_error *err)
{
    char path[4096];
    struct tec_lua *lua = NULL;
    int n = snprintf(path, sizeof path, "%s/%s.lua", choice->root, arch);
    if (n < 0 || (size_t)n >= sizeof path || strpbrk(arch, "/\\") || arch[0] == '.')
        return fail_named(choice->root, arch, err);
    if (access(path, F_OK) != 0)
        return fail_named(choice->root, arch, err);
    enum tec_status status = tec_lua_create(&lua, &tec_lua_file_limits, heap, err);
    if (status == TEC_OK)
        status = run_file(out, lua, path, choice->root, given, err);
    tec_lua_destroy(lua);
    if (status == TEC_OK || !err || strncmp(err->message, path, strlen(path)) == 0 ||
        blames_file(err, choice->checkpoint, status))
        return status;
    if (!is_placed(err->message))
        return tec_context(err, status, "%s", path);
    const struct tec_error lua_says = *err;
    return tec_fail(err, status, "%s/%s", choice->root, lua_says.message);
}

/* What the checkpoint says of itself is what its owner knows it by. */
static enum tec_status fail_unknown(const struct tec_checkpoint *c, struct tec_error *err)
{
    const char *type = json_string_value(json_object_get(c->config, "type"));
    if (!type)
        type = json_string_value(json_object_get(c->config, "model_type"));
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s: no model description recognises this checkpoint%s%.60s%s; name one with "
                    "model { arch = ... }",
                    c->path, type ? ", whose config.json says '" : "", type ? type : "",
                    type ? "'" : "");
}

/* A description as a whole, and not the names of parts alone. */
static bool describes(const struct described *d)
{
    return json_object_get(d->json, "text") || d->programs.own;
}

/* Ask every description whether the checkpoint is its own. */
static enum tec_status recognise(struct described *out, const struct tec_model_choice *choice,
                                 json_t *given, char arch[MAX_NAME], struct tec_heap *heap,
                                 struct tec_error *err)
{
    DIR *dir = opendir(choice->root);
    if (!dir)
        return tec_fail(err, TEC_IO, "%s: cannot be read; it should hold model descriptions",
                        choice->root);
    enum tec_status status = TEC_NOT_FOUND, broken = TEC_OK;
    for (struct dirent *e = readdir(dir); e && status == TEC_NOT_FOUND; e = readdir(dir)) {
        if (!name_of(arch, e->d_name))
            continue;
        enum tec_status one = evaluate(out, choice, arch, given, heap, err);
        if (one != TEC_OK)
            broken = one;
        else if (describes(out) || json_object_get(out->json, "folders"))
            status = TEC_OK;
        else
            drop(out);
    }
    closedir(dir);
    if (status == TEC_NOT_FOUND && broken != TEC_OK)
        return broken;
    if (status == TEC_NOT_FOUND)
        return fail_unknown(choice->checkpoint, err);
    return status;
}

/* What a tokenizer.json adds to its words: ids by their spelling. */
static json_t *added_tokens(const json_t *tokenizer)
{
    json_t *ids = json_object(), *token;
    size_t i;
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, token)
    {
        const char *content = json_string_value(json_object_get(token, "content"));
        if (content)
            json_object_set(ids, content, json_object_get(token, "id"));
    }
    return ids;
}

/* The files of one model that a configuration names: {name, config, tokenizer_config, tokens}. */
static enum tec_status open_folder(json_t *folders, const char *key, const char *name,
                                   struct tec_checkpoint *c, struct tec_error *err)
{
    json_t *config = NULL, *settings = NULL, *tokenizer = NULL;
    const char *words = NULL, *said = NULL;
    TEC_TRY(tec_checkpoint_beside_json(c, name, "config.json", &config, err));
    enum tec_status status = tec_checkpoint_beside(c, name, "tokenizer.json", &words, err);
    if (status == TEC_OK && words)
        status = tec_checkpoint_json_load(&tokenizer, words, c->heap, err);
    if (status == TEC_OK)
        status = tec_checkpoint_beside(c, name, "tokenizer_config.json", &said, err);
    if (status == TEC_OK && said)
        status = tec_checkpoint_json_load_reals(&settings, said, c->heap, err);
    json_t *all = json_pack("{s:s, s:O, s:o, s:O*}", "name", name, "config", config, "tokens",
                            added_tokens(tokenizer), "tokenizer_config", settings);
    json_decref(config);
    json_decref(settings);
    json_decref(tokenizer);
    if (status == TEC_OK && json_object_set(folders, key, all) != 0)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for a model's configuration");
    json_decref(all);
    return status;
}

/* A description that needs files of other models names their folders instead of saying what it is;
 * it is asked again with what they hold, and what they hold may name others, MAX_NAMED times. */
static enum tec_status open_folders(json_t *given, const json_t *said,
                                    const struct tec_model_choice *choice, struct tec_error *err)
{
    const char *key;
    json_t *name, *wanted = json_object_get(said, "folders"), *folders = json_object();
    if (json_object_set_new(given, "folders", folders) != 0)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a model's configuration");
    json_object_foreach(wanted, key, name)
    {
        if (!json_is_string(name) || !choice->checkpoint)
            return tec_fail(err, TEC_MALFORMED, "model: folders.%s is not the name of a model",
                            key);
        struct tec_error says = {.message = ""};
        enum tec_status status =
            open_folder(folders, key, json_string_value(name), choice->checkpoint, &says);
        bool bare = status == TEC_NOT_FOUND && choice->checkpoint->bare; /* sizes may be known */
        if (status != TEC_OK && !bare)
            return tec_fail(err, status, "%s", says.message);
        if (bare &&
            json_object_set_new(folders, key, json_pack("{s:s}", "missing", says.message)) != 0)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a model's configuration");
    }
    return TEC_OK;
}

/* `arch` "": recognise the checkpoint, whose description's name it gets. */
static enum tec_status look(struct described *out, const struct tec_model_choice *choice,
                            char arch[MAX_NAME], struct tec_heap *heap, struct tec_error *err)
{
    json_t *given = NULL;
    TEC_TRY(make_given(&given, choice, heap, err));
    enum tec_status status = !*arch && choice->checkpoint
                                 ? recognise(out, choice, given, arch, heap, err)
                                 : evaluate(out, choice, arch, given, heap, err);
    for (int i = 0; i < MAX_NAMED && status == TEC_OK && json_object_get(out->json, "folders");
         i++) {
        status = open_folders(given, out->json, choice, err);
        drop(out);
        if (status == TEC_OK)
            status = evaluate(out, choice, arch, given, heap, err);
    }
    json_decref(given);
    return status;
}

/* Files that may stand beside the checkpoint, by the description's word. */
static enum tec_status join_parts(const struct tec_model_choice *choice, const json_t *json,
                                  bool *joined, struct tec_error *err)
{
    const json_t *parts = json_object_get(json, "parts");
    struct tec_checkpoint *c = choice->checkpoint;
    *joined = false;
    if (!c || !parts)
        return TEC_OK;
    if (!json_is_array(parts) || json_array_size(parts) > MAX_PARTS)
        return tec_fail(err, TEC_MALFORMED, "model: parts must be a list of %d names at most",
                        MAX_PARTS);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const char *file = json_string_value(json_array_get(parts, i));
        bool one = false;
        if (!file)
            return tec_fail(err, TEC_MALFORMED, "model: parts[%zu] is not a file's name", i + 1);
        TEC_TRY(tec_checkpoint_join(c, choice->beside ? choice->beside : c->base, file, &one, err));
        *joined |= one;
    }
    return TEC_OK;
}

/* What the description of a model does not recognise. torch.compile puts a name of its own before
 * all others. */
static enum tec_status not_of(const struct tec_checkpoint *c, const char *arch,
                              struct tec_error *err)
{
    const char *first =
        c && tec_tensors_count(c->tensors) ? tec_tensors_at(c->tensors, 0)->name : "";
    bool compiled = strstr(first, "_orig_mod.") != NULL;
    return tec_fail(
        err, TEC_NOT_FOUND,
        "%s: this checkpoint is not of the model '%s': the tensors or the config.json by "
        "which it is recognised are not there (the first tensor is '%.120s'%s)",
        c ? c->path : "-", arch, first,
        compiled ? "; torch.compile has put _orig_mod before names: save the module that "
                   "it was made of"
                 : "");
}

/* A description sees its parts' shapes when it is asked again. */
static enum tec_status find(struct described *out, const struct tec_model_choice *choice,
                            struct tec_heap *heap, struct tec_error *err)
{
    char arch[MAX_NAME] = "";
    bool joined = false;
    if (choice->arch && strlen(choice->arch) >= sizeof arch)
        return tec_fail(err, TEC_NOT_FOUND, "no model is named '%.80s'", choice->arch);
    if (choice->arch)
        snprintf(arch, sizeof arch, "%s", choice->arch);
    TEC_TRY(look(out, choice, arch, heap, err));
    enum tec_status status = join_parts(choice, out->json, &joined, err);
    if (status == TEC_OK && joined) {
        drop(out);
        status = look(out, choice, arch, heap, err);
    }
    bool own =
        json_is_object(out->json) && (describes(out) || !json_object_get(out->json, "parts"));
    if (status == TEC_OK && !own)
        status = not_of(choice->checkpoint, arch, err);
    json_object_del(out->json, "parts"); /* done with */
    if (status != TEC_OK)
        drop(out);
    return status;
}

enum tec_status tec_model_open(struct tec_model **out, const struct tec_model_choice *choice,
                               struct tec_heap *heap, struct tec_error *err)
{
    struct tec_arena arena;
    tec_arena_init(&arena, heap);
    struct described found = {.arena = &arena};
    enum tec_status status = find(&found, choice, heap, err);
    if (status != TEC_OK) {
        tec_arena_finish(&arena);
        return status;
    }
    struct tec_model *model = TEC_NEW(&arena, 1, struct tec_model);
    if (!model)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for a model description");
    if (model) {
        model->json = found.json;
        model->identity = found.identity;
        model->program = found.programs.own;
        model->text.program = found.programs.text;
        for (int i = 0; i < TEC_MAX_TOWERS; i++)
            model->vision.towers[i].program = found.programs.towers[i];
        model->vision.project = found.programs.project;
        model->head.program = found.programs.state;
        status = tec_model_parse(model, err);
        model->arena = arena;
    }
    if (status != TEC_OK) {
        if (!err || strncmp(err->message, choice->root, strlen(choice->root)) != 0)
            tec_context(err, status, "model '%s'", choice->arch ? choice->arch : "?");
        json_decref(found.json);
        tec_arena_finish(&arena);
        return status;
    }
    *out = model;
    return TEC_OK;
}

void tec_model_close(struct tec_model *model)
{
    if (!model)
        return;
    json_decref(model->json);
    struct tec_arena arena = model->arena;
    tec_arena_finish(&arena);
}

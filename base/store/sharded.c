/* sharded.c - opens a checkpoint in shards, as model.safetensors.index.json assigns tensors to
 * files. */
#include "base/store/file.h"
#include "base/store/tensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 1000 };

bool tec_tensors_is_plain(const char *name)
{
    return *name && !strpbrk(name, "/\\") && strcmp(name, "..") != 0 && strcmp(name, ".") != 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Collect the distinct shard names of the map, sorted so that equal folders list equally. */
static enum tec_status shard_names(json_t *map, const char ***names, size_t *n,
                                   struct tec_arena *arena, struct tec_error *err)
{
    const char *tensor, **all = TEC_NEW(arena, json_object_size(map), const char *);
    size_t count = 0;
    json_t *value;
    if (!all)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the weight map");
    json_object_foreach(map, tensor, value)
    {
        const char *file = json_string_value(value);
        if (!file)
            return tec_fail(err, TEC_MALFORMED,
                            "weight_map: tensor '%.80s': the file name is not a string", tensor);
        if (!tec_tensors_is_plain(file))
            return tec_fail(err, TEC_MALFORMED,
                            "weight_map: tensor '%.80s': '%.80s' is not a plain file name", tensor,
                            file);
        all[count++] = file;
    }
    if (count)
        qsort(all, count, sizeof *all, compare);
    *n = 0;
    for (size_t i = 0; i < count; i++)
        if (*n == 0 || strcmp(all[*n - 1], all[i]) != 0)
            all[(*n)++] = all[i];
    *names = all;
    if (*n == 0)
        return tec_fail(err, TEC_MALFORMED, "weight_map names no tensor");
    if (*n > MAX_SHARDS)
        return tec_fail(err, TEC_UNSUPPORTED, "%zu shards; the limit is %d", *n, MAX_SHARDS);
    return TEC_OK;
}

/* Keep the tensors of this shard that the map assigns to it. */
static void keep_mapped(struct tec_tensors *t, json_t *map, const char *shard,
                        const struct tec_header *header)
{
    for (size_t i = 0; i < header->n_tensors; i++) {
        const char *file = json_string_value(json_object_get(map, header->tensors[i].name));
        if (file && strcmp(file, shard) == 0)
            t->tensors[t->n++] = header->tensors[i];
    }
}

/* Check that every tensor of the map was found, or name one that was not. */
static enum tec_status check_kept(struct tec_tensors *t, json_t *map, struct tec_error *err)
{
    const char *tensor;
    json_t *value;
    if (t->n == json_object_size(map))
        return TEC_OK;
    TEC_TRY(tec_tensors_sort(t, err));
    json_object_foreach(map, tensor, value)
    {
        if (!tec_tensors_find(t, tensor))
            return tec_fail(err, TEC_MALFORMED, "weight_map: tensor '%.80s' is not in %.80s",
                            tensor, json_string_value(value));
    }
    return TEC_OK;
}

static enum tec_status add_all(struct tec_tensors *t, const char *dir, json_t *map,
                               struct tec_error *err)
{
    const char **names = NULL;
    size_t n = 0;
    TEC_TRY(shard_names(map, &names, &n, &t->arena, err));
    t->files = TEC_NEW(&t->arena, n, struct tec_tensors_file);
    /* A shard holds each name once, so there are at most as many tensors as the map has entries. */
    t->tensors = TEC_NEW(&t->arena, json_object_size(map), struct tec_stored);
    if (!t->files || !t->tensors)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu shards", n);
    for (size_t i = 0; i < n; i++) {
        const char *path = tec_arena_printf(&t->arena, "%s/%s", dir, names[i]);
        if (!path)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu shards", n);
        TEC_TRY(tec_tensors_add(t, path, err));
        keep_mapped(t, map, names[i], &t->files[i].header);
    }
    return check_kept(t, map, err);
}

enum tec_status tec_tensors_add_shards(struct tec_tensors *t, const char *dir,
                                       const char *index_path, struct tec_error *err)
{
    json_t *index = NULL;
    TEC_TRY(tec_checkpoint_json_load(&index, index_path, t->heap, err));
    json_t *map = json_object_get(index, "weight_map");
    enum tec_status status =
        json_is_object(map)
            ? add_all(t, dir, map, err)
            : tec_fail(err, TEC_MALFORMED, "weight_map, an object of tensor to file, is missing");
    json_decref(index);
    return tec_context(err, status, "%s", index_path);
}

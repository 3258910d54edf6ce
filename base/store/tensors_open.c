/* tensors_open.c - opens a safetensors file, or a folder with one or with shards. */
#include "base/store/tensors.h"

#include <sys/stat.h>
#include <unistd.h>

static enum tec_status add_file(struct tec_tensors *t, const char *path, struct tec_error *err)
{
    t->files = TEC_NEW(&t->arena, 1, struct tec_tensors_file);
    if (!t->files)
        return tec_tensors_no_memory(path, err);
    TEC_TRY(tec_tensors_add(t, path, err));
    t->tensors = t->files[0].header.tensors;
    t->n = t->files[0].header.n_tensors;
    return TEC_OK;
}

static enum tec_status add_directory(struct tec_tensors *t, const char *dir, struct tec_error *err)
{
    const char *index = tec_arena_printf(&t->arena, "%s/model.safetensors.index.json", dir);
    const char *single = tec_arena_printf(&t->arena, "%s/model.safetensors", dir);
    if (!index || !single)
        return tec_tensors_no_memory(dir, err);
    if (access(index, F_OK) == 0)
        return tec_tensors_add_shards(t, dir, index, err);
    if (access(single, F_OK) == 0)
        return add_file(t, single, err);
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s: holds neither model.safetensors nor model.safetensors.index.json", dir);
}

static enum tec_status open_into(struct tec_tensors *t, const char *path, struct tec_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        TEC_TRY(add_directory(t, path, err));
    else
        TEC_TRY(add_file(t, path, err));
    for (size_t i = 0; i < t->n; i++)
        t->bytes += t->tensors[i].bytes;
    return tec_tensors_sort(t, err);
}

enum tec_status tec_tensors_open(struct tec_tensors **out, const char *path, struct tec_heap *heap,
                                 struct tec_error *err)
{
    struct tec_tensors *t = tec_heap_get(heap, sizeof *t);
    *out = NULL;
    if (!t)
        return tec_tensors_no_memory(path, err);
    t->heap = heap;
    tec_arena_init(&t->arena, heap);
    enum tec_status status = open_into(t, path, err);
    if (status == TEC_OK)
        *out = t;
    else
        tec_tensors_close(t);
    return status;
}

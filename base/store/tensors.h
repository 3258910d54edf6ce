/* tensors.h - inside of struct tec_tensors, shared by safetensors.c, sharded.c and checkpoint.c
 * only.
 */
#ifndef TEC_BASE_STORE_TENSORS_H
#define TEC_BASE_STORE_TENSORS_H

#include "base/arena.h"
#include "base/store/safetensors.h"

#include <xxhash.h>

struct tec_tensors_file {
    const char *path;
    int fd;
    uint64_t bytes;
    struct tec_header header;
};

struct tec_tensors {
    struct tec_heap *heap;
    struct tec_arena arena;
    struct tec_tensors_file *files;
    int n_files;                /* open ones: close needs no more */
    struct tec_stored *tensors; /* the headers', shard by shard */
    size_t n;
    struct tec_stored **by_name;
    uint64_t bytes;
    XXH128_hash_t hash;
};

/* Open one file as t->files[t->n_files] and read its header; the array has room. */
enum tec_status tec_tensors_add(struct tec_tensors *t, const char *path, struct tec_error *err);

/* Fill t->files, tensors and n from model.safetensors.index.json in folder `dir`. */
enum tec_status tec_tensors_add_shards(struct tec_tensors *t, const char *dir,
                                       const char *index_path, struct tec_error *err);

/* Whether a file's name that comes from another file is one of that file's own folder. */
bool tec_tensors_is_plain(const char *name);

/* A hash as 32 hexadecimal digits. */
void tec_tensors_hash_text(XXH128_hash_t hash, char text[TEC_HASH_TEXT]);

/* The message where there is no memory for what file `path` lists. */
enum tec_status tec_tensors_no_memory(const char *path, struct tec_error *err);

/* Sort tensors into by_name. */
enum tec_status tec_tensors_sort(struct tec_tensors *t, struct tec_error *err);

#endif

/* safetensors.h - tensors of one safetensors file or of a sharded directory: list, find, read. */
#ifndef TEC_BASE_STORE_SAFETENSORS_H
#define TEC_BASE_STORE_SAFETENSORS_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/store/header.h"

#include <stddef.h>
#include <stdint.h>

/* Opaque. Immutable once open: any number of threads may list and read at once. */
struct tec_tensors;

enum { TEC_HASH_TEXT = 33 };

/* Open `path`: a .safetensors file, or a directory with model.safetensors.index.json (shards) or
 * model.safetensors. Every header is validated wholly (header.h) before this returns; no tensor is
 * read. In an index, file names must be plain (no '/', '\', "..", empty), every tensor must lie in
 * the shard the index names; tensors it does not name are left out; a wrong total_size is accepted.
 * Files are opened once and kept open, so swapping one later changes nothing; symbolic links are
 * followed. Memory: a small multiple of the header bytes. Close with tec_tensors_close.
 * Failures name the file: TEC_IO (cannot be opened or read), TEC_MALFORMED, TEC_UNSUPPORTED,
 * TEC_NO_MEMORY. */
enum tec_status tec_tensors_open(struct tec_tensors **out, const char *path, struct tec_heap *heap,
                                 struct tec_error *err);
void tec_tensors_close(struct tec_tensors *t); /* NULL is allowed */

/* Add the tensors of one more file, each under `prefix` + its name. Only before others see the set:
 * what was listed or found before is not valid any more. TEC_MALFORMED when a name is there twice;
 * after a failure the set can only be closed. */
enum tec_status tec_tensors_join(struct tec_tensors *t, const char *path, const char *prefix,
                                 struct tec_error *err);

/* Tensors in header order, shard by shard. Valid until close. NULL is a set of none, here and
 * below where one is looked for. */
size_t tec_tensors_count(const struct tec_tensors *t);
const struct tec_stored *tec_tensors_at(const struct tec_tensors *t, size_t i);

/* The tensor of that exact name, or NULL. */
const struct tec_stored *tec_tensors_find(const struct tec_tensors *t, const char *name);

/* Entry of a key of __metadata__ (the first file that has it), or NULL. Its value may hold NUL
 * bytes. */
const struct tec_metadata *tec_tensors_metadata_entry(const struct tec_tensors *t, const char *key);

/* Path of a file of the set, for messages; `file` as in tec_stored. */
const char *tec_tensors_file(const struct tec_tensors *t, int file);

/* Copy bytes [offset, offset + bytes) of a tensor. TEC_INVALID when they are not all inside it,
 * TEC_IO when the file has shrunk or cannot be read (never a signal). */
enum tec_status tec_tensors_read(const struct tec_tensors *t, const struct tec_stored *stored,
                                 uint64_t offset, void *dst, size_t bytes, struct tec_error *err);

/* Elements [first, first + n) as float (tec_to_f32), through a small buffer on the stack. */
enum tec_status tec_tensors_read_f32(const struct tec_tensors *t, const struct tec_stored *stored,
                                     uint64_t first, float *dst, size_t n, struct tec_error *err);

/* Sum of the tensors' bytes. */
uint64_t tec_tensors_bytes(const struct tec_tensors *t);

/* XXH3-128 over the headers and sizes of all files, as 32 hexadecimal digits: equal for equal
 * headers, whatever the names of the files. It does not cover the data. */
void tec_tensors_hash(const struct tec_tensors *t, char text[TEC_HASH_TEXT]);

enum { TEC_CONTENT_WHOLE = 64 << 20 }; /* of a model, whose start must not wait for more */

/* XXH3-128 over names, dtypes, shapes and data in the order of names: the same for the same
 * tensors, in however many files, in whatever order and with whatever metadata. Of more than
 * `whole` bytes in all it has the first, the middle and the last 4 KiB of each tensor, else every
 * byte: training changes practically every tensor everywhere, but a change that leaves all those
 * parts as they were is not seen. Reads no more than that, through a buffer of `heap`. TEC_IO,
 * TEC_NO_MEMORY. */
enum tec_status tec_tensors_content(const struct tec_tensors *t, uint64_t whole, uint64_t out[2],
                                    struct tec_heap *heap, struct tec_error *err);

/* A hash of which files these are, taken from their headers, and size, time of last change and
 * inode of each as it lies open: it differs where their bytes may differ, without reading them. A
 * copy of a file is another file. */
uint64_t tec_tensors_identity(const struct tec_tensors *t);

/* One tensor to write: `data` holds the bytes of `shape` elements of `dtype`. */
struct tec_tensor_entry {
    const char *name; /* UTF-8 */
    enum tec_dtype dtype;
    int rank;
    int64_t shape[TEC_HEADER_MAX_RANK];
    const void *data;
};

/* Write a file with `n` tensors: by descending dtype (width, then dtype.def), then name; header
 * padded to 8. Written beside `path` under a temporary name, then renamed, so that a reader sees
 * the old file or the whole new one. Equal input gives equal bytes. TEC_INVALID for a name twice,
 * invalid UTF-8, the name __metadata__ or a bad shape; TEC_IO. */
enum tec_status tec_tensors_write(const char *path, const struct tec_tensor_entry *entries,
                                  size_t n, struct tec_heap *heap, struct tec_error *err);

#endif

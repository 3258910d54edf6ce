/* file.h - open, read and parse files of a checkpoint, with messages that name them. */
#ifndef TEC_BASE_STORE_FILE_H
#define TEC_BASE_STORE_FILE_H

#include "base/alloc.h"
#include "base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Open a regular file for reading; symbolic links are followed, nothing blocks. The caller closes
 * *fd. TEC_NOT_FOUND when there is none, else TEC_IO. */
enum tec_status tec_path_open(const char *path, int *fd, uint64_t *bytes, struct tec_error *err);

/* Exactly `bytes` bytes from `offset`; TEC_IO when the file ends before. */
enum tec_status tec_path_read(int fd, const char *path, uint64_t offset, void *dst, size_t bytes,
                              struct tec_error *err);

/* Guess what an unexpected file is from its first n bytes: "a Git LFS pointer, not the file itself:
 * run git lfs pull". NULL when nothing is known. */
const char *tec_path_kind_of_head(const void *head, size_t n);

/* Parse a JSON file whose top is an object, of at most 64 MiB, with line and column in the message.
 * Keys given twice, and NaN and Infinity, are refused. The caller releases with json_decref. */
enum tec_status tec_checkpoint_json_load(json_t **out, const char *path, struct tec_heap *heap,
                                         struct tec_error *err);

/* The same with whole numbers as reals, for files that have some beyond 64 bits. */
enum tec_status tec_checkpoint_json_load_reals(json_t **out, const char *path,
                                               struct tec_heap *heap, struct tec_error *err);

/* Parse a JSON file whose top is a list likewise. */
enum tec_status tec_checkpoint_json_load_list(json_t **out, const char *path, struct tec_heap *heap,
                                              struct tec_error *err);

#endif

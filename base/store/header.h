/* header.h - the JSON header of one safetensors file: parsed from bytes and validated wholly. */
#ifndef TEC_BASE_STORE_HEADER_H
#define TEC_BASE_STORE_HEADER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/store/dtype.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TEC_HEADER_MAX_BYTES = 100000000, /* the format's own limit */
    TEC_HEADER_MAX_TENSORS = 1000000,
    TEC_HEADER_MAX_RANK = 8
};

/* One tensor as it lies in a file: row-major, little-endian, contiguous, perhaps misaligned. */
struct tec_stored {
    const char *name; /* never a path; may be empty */
    enum tec_dtype dtype;
    int rank; /* 0: a scalar */
    int64_t shape[TEC_HEADER_MAX_RANK];
    uint64_t begin; /* in the file, from its first byte */
    uint64_t bytes;
    int file; /* which file of the set, see tec_tensors_file */
};

struct tec_metadata {
    const char *key, *value; /* NUL-terminated */
    size_t value_bytes;      /* a value may hold NUL bytes too */
};

struct tec_header {
    struct tec_stored *tensors; /* in the header's order */
    size_t n_tensors;
    struct tec_metadata *metadata;
    size_t n_metadata;
};

/* The header is a JSON object, name -> {dtype, shape, data_offsets}, see
 * https://github.com/huggingface/safetensors#format. Rules beyond that text, as its reference
 * reader has them: white space is allowed before the brace; a shape product may not overflow at any
 * step, whatever zeros follow. One rule of our own: no name or metadata key holds a NUL. */

/* Parse `n` header bytes (the JSON that follows the eight length bytes) of a file of `file_bytes`
 * bytes in all. Refused as TEC_MALFORMED, with the position in the header and the tensor's name:
 * anything but one JSON object with spaces around it; invalid UTF-8; a name twice; a field missing,
 * twice or of another type; an unknown dtype; products beyond 64 bits; an element count that is not
 * whole bytes or not the bytes of data_offsets; holes, overlaps and bytes after the last tensor;
 * metadata that is not string to string. Other fields of an entry are ignored. Beyond the limits
 * above: TEC_UNSUPPORTED. Takes from `arena` at most a small multiple of n. */
enum tec_status tec_header_parse(struct tec_header *header, const void *json, size_t n,
                                 uint64_t file_bytes, struct tec_arena *arena,
                                 struct tec_error *err);

/* Elements of the shape: 1 for a scalar. Cannot overflow after tec_header_parse. */
int64_t tec_stored_count(const struct tec_stored *stored);

#endif

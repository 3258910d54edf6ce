/* observation.h - an observation as openpi's clients send it: a MessagePack map of named values. */
#ifndef TEC_TOOLS_CLIENT_OBSERVATION_H
#define TEC_TOOLS_CLIENT_OBSERVATION_H

#include "graph/transform/observer.h"
#include "tools/record/buffer.h"

#include <jansson.h>

enum tec_client_kind {
    TEC_CLIENT_TEXT,
    TEC_CLIENT_BYTES, /* a picture's file, JPEG or PNG */
    TEC_CLIENT_ARRAY
};

/* A named value; everything is borrowed. The server checks it: nothing here has to be right. */
struct tec_client_value {
    const char *name;
    enum tec_client_kind kind;
    const char *dtype; /* ARRAY: NumPy's name of its type, "<f4" */
    int rank;          /* ARRAY: 0 .. 4 */
    int64_t shape[4];
    const void *data; /* row-major, little-endian */
    size_t bytes;
};

/* The same value, as a text or an array. */
struct tec_client_value tec_client_value(const struct tec_value *value);

/* Add the map to `out`. A value "images/NAME" becomes NAME in a map of its own, as ALOHA's clients
 * have it; `tectum` (NULL: none) is the map of that name, which other servers ignore. False where
 * that is too long; `out` is failed where memory is missing. */
bool tec_client_pack(struct tec_buffer *out, const struct tec_client_value *values, size_t n,
                     const json_t *tectum);

#endif

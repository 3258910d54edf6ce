/* values.h - named values as openpi's clients pack them in MessagePack: texts, files of pictures,
 * arrays as msgpack-numpy has them. */
#ifndef TEC_TOOLS_CLIENT_VALUES_H
#define TEC_TOOLS_CLIENT_VALUES_H

#include "tools/record/buffer.h"

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

/* Each adds to `out`, which is failed where memory is missing. A map of n pairs has them behind it.
 */
void tec_client_put_map(struct tec_buffer *out, size_t pairs);
void tec_client_put_text(struct tec_buffer *out, const char *text);
void tec_client_put_int(struct tec_buffer *out, int64_t value);
void tec_client_put_count(struct tec_buffer *out, uint64_t value);
void tec_client_put_number(struct tec_buffer *out, double value);
void tec_client_put_true(struct tec_buffer *out);

/* Names and values as pairs of a map, how many there are: a value "images/NAME" is NAME in a map of
 * its own, as ALOHA's clients have it. */
size_t tec_client_count_values(const struct tec_client_value *values, size_t n);
void tec_client_put_values(struct tec_buffer *out, const struct tec_client_value *values, size_t n);

#endif

/* key.h - the secret that clients must show where `serve` was given --key FILE. */
#ifndef TEC_TOOLS_SERVE_KEY_H
#define TEC_TOOLS_SERVE_KEY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a key; as much as a header has room for. */
enum { TEC_KEY_MIN = 16, TEC_KEY_MAX = 256 };

/* A key; n = 0: everybody may connect. */
struct tec_key {
    char text[TEC_KEY_MAX];
    size_t n;
};

/* Read a regular file, at most `room` bytes of it into *n; a `secret` one must be one that nobody
 * but its owner can read or write. TEC_IO or TEC_UNSUPPORTED (its mode), with the option and the
 * path in the message. */
enum tec_status tec_key_file(void *data, size_t room, size_t *n, const char *option,
                             const char *path, bool secret, struct tec_error *err);

/* Read the first line of a file, without its line end. The file must be a regular one that nobody
 * but its owner can read or write. TEC_IO, TEC_UNSUPPORTED (its mode) or TEC_MALFORMED (no
 * printable ASCII of TEC_KEY_MIN to TEC_KEY_MAX bytes), with the path in the message. */
enum tec_status tec_key_read(struct tec_key *key, const char *path, struct tec_error *err);

/* Whether the value of an Authorization header is "Api-Key KEY", which openpi's client sends, or
 * "Bearer KEY". The time taken depends on n alone, not on how much of the key is right. */
bool tec_key_fits(const struct tec_key *key, const char *header, size_t n);

#endif

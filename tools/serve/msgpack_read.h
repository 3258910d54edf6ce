/* msgpack_read.h - MessagePack from a stranger, token by token: nothing is allocated or copied.
 *
 * msgpack-c builds a tree first, whose size a message of a few bytes decides; this reader bounds
 * the tokens of a message and checks every count against the bytes that are left. */
#ifndef TEC_TOOLS_SERVE_MSGPACK_READ_H
#define TEC_TOOLS_SERVE_MSGPACK_READ_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEC_MSGPACK_TOKENS = 1 << 16 }; /* most tokens that are read of one message */

enum tec_msgpack_kind {
    TEC_MSGPACK_NIL,
    TEC_MSGPACK_BOOL,
    TEC_MSGPACK_UINT, /* any integer that is not negative */
    TEC_MSGPACK_INT,  /* a negative one */
    TEC_MSGPACK_FLOAT,
    TEC_MSGPACK_STR,
    TEC_MSGPACK_BIN,
    TEC_MSGPACK_EXT,
    TEC_MSGPACK_ARRAY, /* its n elements follow */
    TEC_MSGPACK_MAP    /* its n keys and values follow */
};

struct tec_msgpack_token {
    enum tec_msgpack_kind kind;
    uint64_t u; /* BOOL, UINT */
    int64_t i;  /* INT */
    double f;   /* FLOAT */
    const uint8_t *data;
    uint32_t n; /* bytes of STR, BIN, EXT; elements of ARRAY; pairs of MAP */
};

/* A place in a message; copying one remembers it. */
struct tec_msgpack {
    const uint8_t *begin, *at, *end;
    int left; /* tokens */
};

/* The message is borrowed as long as tokens of it are used. */
void tec_msgpack_open(struct tec_msgpack *r, const void *message, size_t n);

/* The next token. TEC_MALFORMED with the byte where the message ends early, has too many tokens, or
 * is no MessagePack. */
enum tec_status tec_msgpack_next(struct tec_msgpack *r, struct tec_msgpack_token *token,
                                 struct tec_error *err);

/* Go past what a container holds; nothing for other tokens. Depth costs nothing. */
enum tec_status tec_msgpack_skip(struct tec_msgpack *r, const struct tec_msgpack_token *token,
                                 struct tec_error *err);

/* A STR or BIN with these bytes. */
bool tec_msgpack_is(const struct tec_msgpack_token *token, const char *text);

/* A number or BOOL as a double; false for anything else. */
bool tec_msgpack_number(const struct tec_msgpack_token *token, double *x);

#endif

/* scan.h - a strict JSON scanner over bytes: pulls one token at a time, bounded in depth. */
#ifndef TEC_BASE_STORE_SCAN_H
#define TEC_BASE_STORE_SCAN_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in the text. Functions skip white space before a token, leave `at` behind what they took,
 * and fail as TEC_MALFORMED with the byte's position (TEC_NO_MEMORY for the arena). It is used in
 * place of a JSON tree where files are large and hostile: it needs no memory but for strings, and
 * every message can say where. */
struct tec_scan {
    const unsigned char *s;
    size_t n, at;
    const char *subject;     /* named in messages as the tensor; NULL = none */
    struct tec_arena *arena; /* strings are decoded into it */
    struct tec_error *err;
};

/* Record "header byte <at>: tensor '<subject>': ..." and return TEC_MALFORMED. */
enum tec_status tec_scan_fail(struct tec_scan *s, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The whole text must be UTF-8; called once, before all else. */
enum tec_status tec_scan_utf8(struct tec_scan *s);

/* Take the character c if it is next. */
bool tec_scan_accept(struct tec_scan *s, char c);

/* Take c or fail; `what` says what c belongs to. */
enum tec_status tec_scan_expect(struct tec_scan *s, char c, const char *what);

/* After an element: take ',' (*more = true) or `close` (*more = false). */
enum tec_status tec_scan_next(struct tec_scan *s, char close, bool *more);

/* A string, decoded, NUL-terminated, of *bytes bytes; it may hold NUL itself. */
enum tec_status tec_scan_string(struct tec_scan *s, const char **out, size_t *bytes);

/* A string without NUL and the colon behind it. */
enum tec_status tec_scan_key(struct tec_scan *s, const char **out, size_t *bytes);

/* A non-negative integer of at most 64 bits, without sign, fraction or exponent. */
enum tec_status tec_scan_integer(struct tec_scan *s, uint64_t *out);

/* Any value, at most eight levels deep. */
enum tec_status tec_scan_skip(struct tec_scan *s);

/* Nothing but white space may follow. */
enum tec_status tec_scan_end(struct tec_scan *s);

#endif

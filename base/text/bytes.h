/* bytes.h - a growing string of bytes in an arena. */
#ifndef TEC_BASE_TEXT_BYTES_H
#define TEC_BASE_TEXT_BYTES_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

/* A borrowed piece of text, not NUL-terminated. */
struct tec_text_span {
    const char *at;
    size_t n;
};

/* Appending never fails at once: `failed` (no memory) or `full` (limit) is looked at when done. */
struct tec_bytes {
    struct tec_arena *arena;
    char *at; /* n bytes, NULL when nothing was appended */
    size_t n, capacity;
    size_t limit; /* most bytes; 0 = no limit */
    bool failed, full;
};

void tec_bytes_init(struct tec_bytes *b, struct tec_arena *arena, size_t limit);
void tec_bytes_add(struct tec_bytes *b, const char *text, size_t n);

#endif

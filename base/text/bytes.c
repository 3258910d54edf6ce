/* bytes.c - a growing byte buffer in an arena, with an optional limit.
 *
 * Failures are remembered in the buffer, so that callers check once, after the last addition. */
#include "base/text/bytes.h"

#include <stdint.h>
#include <string.h>

void tec_bytes_init(struct tec_bytes *b, struct tec_arena *arena, size_t limit)
{
    *b = (struct tec_bytes){.arena = arena, .limit = limit};
}

/* Grow to at least `need` bytes. Doubling leaves the old copies in the arena, which together are
 * smaller than the last one. */
static bool grow(struct tec_bytes *b, size_t need)
{
    size_t capacity = b->capacity ? b->capacity : 64;
    while (capacity < need) {
        if (capacity > SIZE_MAX / 2)
            return false;
        capacity *= 2;
    }
    char *at = TEC_NEW(b->arena, capacity, char);
    if (!at)
        return false;
    if (b->n)
        memcpy(at, b->at, b->n);
    b->at = at;
    b->capacity = capacity;
    return true;
}

void tec_bytes_add(struct tec_bytes *b, const char *text, size_t n)
{
    if (n == 0 || b->failed || b->full)
        return;
    if (b->limit && n > b->limit - b->n) {
        b->full = true;
        return;
    }
    if (n > b->capacity - b->n && (n > SIZE_MAX - b->n || !grow(b, b->n + n))) {
        b->failed = true;
        return;
    }
    memcpy(b->at + b->n, text, n);
    b->n += n;
}

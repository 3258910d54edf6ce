/* arena.h - memory with one lifetime: push many, release once. */
#ifndef TEC_BASE_ARENA_H
#define TEC_BASE_ARENA_H

#include "base/alloc.h"

#include <stdarg.h>
#include <stddef.h>

/* A bump allocator over a chain of blocks taken from one heap. What is pushed stays where it is
 * until rewind, reset or finish. Rewind to a place within keeps
 * one block of at most 1 MiB for later. Not
 * thread-safe: one owner at a time. */
struct tec_arena {
    struct tec_heap *heap;         /* borrowed */
    struct tec_arena_block *block; /* newest first */
    struct tec_arena_block *spare; /* kept by rewind, or NULL: pushing and rewinding again and
                                    * again at a block's end asks the heap for nothing */
};

struct tec_arena_mark {
    struct tec_arena_block *block;
    size_t used;
};

/* Takes no memory yet. `heap` must outlive the arena. */
void tec_arena_init(struct tec_arena *arena, struct tec_heap *heap);

/* Give every block back. The arena may be used again. Also named reset. */
void tec_arena_finish(struct tec_arena *arena);

/* `count` zeroed objects of `size` bytes, aligned to `align` (a power of two, at most 64).
 * NULL when the heap refuses or the product overflows; the arena is then unchanged. */
void *tec_arena_push(struct tec_arena *arena, size_t count, size_t size, size_t align);

/* Remember a place; going back to it forgets everything pushed since. */
struct tec_arena_mark tec_arena_mark(const struct tec_arena *arena);
void tec_arena_rewind(struct tec_arena *arena, struct tec_arena_mark mark);

/* Copies of a NUL-terminated string, of n bytes (a NUL is added), of a formatted text. */
char *tec_arena_strdup(struct tec_arena *arena, const char *s);
char *tec_arena_strndup(struct tec_arena *arena, const char *s, size_t n);
char *tec_arena_printf(struct tec_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define TEC_NEW(arena, count, type) \
    ((type *)tec_arena_push(arena, count, sizeof(type), _Alignof(type)))

#endif

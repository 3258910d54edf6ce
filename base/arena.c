/* arena.c - the bump allocator: memory with one lifetime, released as a whole or back to a mark. */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_STEP = 1 << 20 };

struct tec_arena_block {
    struct tec_arena_block *next;
    size_t size, used; /* bytes of `memory` */
    _Alignas(64) unsigned char memory[];
};

void tec_arena_init(struct tec_arena *arena, struct tec_heap *heap)
{
    arena->heap = heap;
    arena->block = arena->spare = NULL;
}

void tec_arena_finish(struct tec_arena *arena)
{
    tec_arena_rewind(arena, (struct tec_arena_mark){NULL, 0});
}

/* Blocks double up to a step, so that small arenas stay small and large ones make few calls. */
static struct tec_arena_block *grow(struct tec_arena *arena, size_t size)
{
    size_t step = arena->block ? arena->block->size * 2 : FIRST_BLOCK;
    if (step > LARGEST_STEP)
        step = LARGEST_STEP;
    if (step < size)
        step = size;
    struct tec_arena_block *block = arena->spare;
    if (block && block->size >= size) {
        arena->spare = NULL;
    } else {
        block = tec_heap_get(arena->heap, sizeof *block + step);
        if (!block)
            return NULL;
        block->size = step;
    }
    block->next = arena->block;
    return arena->block = block;
}

void *tec_arena_push(struct tec_arena *arena, size_t count, size_t size, size_t align)
{
    if (size != 0 && count > (SIZE_MAX / 4) / size)
        return NULL;
    size_t bytes = count * size;
    struct tec_arena_block *block = arena->block;
    size_t start = block ? (block->used + align - 1) & ~(align - 1) : 0;
    if (!block || start > block->size || bytes > block->size - start) {
        block = grow(arena, bytes);
        if (!block)
            return NULL;
        start = 0;
    }
    block->used = start + bytes;
    return memset(block->memory + start, 0, bytes);
}

struct tec_arena_mark tec_arena_mark(const struct tec_arena *arena)
{
    return (struct tec_arena_mark){arena->block, arena->block ? arena->block->used : 0};
}

void tec_arena_rewind(struct tec_arena *arena, struct tec_arena_mark mark)
{
    while (arena->block != mark.block) {
        struct tec_arena_block *block = arena->block;
        arena->block = block->next;
        if (block->size <= LARGEST_STEP && (!arena->spare || arena->spare->size < block->size)) {
            struct tec_arena_block *smaller = arena->spare;
            arena->spare = block;
            block = smaller;
        }
        tec_heap_put(arena->heap, block);
    }
    if (arena->block) {
        arena->block->used = mark.used;
    } else {
        tec_heap_put(arena->heap, arena->spare);
        arena->spare = NULL;
    }
}

char *tec_arena_strndup(struct tec_arena *arena, const char *s, size_t n)
{
    char *copy = tec_arena_push(arena, n + 1, 1, 1);
    if (copy && n)
        memcpy(copy, s, n);
    return copy;
}

char *tec_arena_strdup(struct tec_arena *arena, const char *s)
{
    return tec_arena_strndup(arena, s, strlen(s));
}

char *tec_arena_printf(struct tec_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : tec_arena_push(arena, (size_t)n + 1, 1, 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

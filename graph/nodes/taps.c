/* taps.c - copies of tensors inside a part, for judges and debugging. */
#include "graph/nodes/node.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

static void out_of_memory(struct tec_lower *l)
{
    if (l->program->status == TEC_OK)
        l->program->status = tec_fail(&l->program->err, TEC_NO_MEMORY, "no memory for a tap");
}

__attribute__((format(printf, 3, 0))) static struct tec_tap *add(struct tec_lower *l, void *block,
                                                                 const char *format, va_list args)
{
    struct tec_taps *t = l->taps;
    char name[128];
    vsnprintf(name, sizeof name, format, args);
    if (t->n == t->room) {
        int room = t->room ? 2 * t->room : FIRST_ROOM;
        struct tec_tap *items = TEC_NEW(t->arena, (size_t)room, struct tec_tap);
        void **blocks = TEC_NEW(t->arena, (size_t)room, void *);
        if (!items || !blocks) {
            out_of_memory(l);
            return NULL;
        }
        if (t->n) {
            memcpy(items, t->items, (size_t)t->n * sizeof *items);
            memcpy(blocks, t->blocks, (size_t)t->n * sizeof(void *));
        }
        t->items = items;
        t->blocks = blocks;
        t->room = room;
    }
    t->blocks[t->n] = block;
    t->items[t->n].name = tec_arena_strdup(t->arena, name);
    if (!t->items[t->n].name)
        out_of_memory(l);
    return &t->items[t->n++];
}

/* A tap of that shape, which a call writes. */
__attribute__((format(printf, 6, 0))) static void write_tap(struct tec_lower *l,
                                                            struct tec_call *call, int rows,
                                                            int cols, const int *live,
                                                            const char *format, va_list args)
{
    int ld = (cols + 15) / 16 * 16;
    size_t size = (size_t)rows * (size_t)ld * sizeof(float);
    void *block = tec_device_get(l->device, size);
    if (!block) {
        out_of_memory(l);
        return;
    }
    call->out[0] = tec_program_fixed(l->program, "tap", block, size, rows, cols, ld, live);
    tec_program_call(l->program, call);
    struct tec_tap *tap = add(l, block, format, args);
    if (!tap) {
        tec_device_put(l->device, block);
        return;
    }
    tap->data = block;
    tap->live = live;
    tap->rows = rows;
    tap->cols = cols;
    tap->ld = ld;
}

void tec_lower_tap(struct tec_lower *l, int tensor, const char *format, ...)
{
    if (!l->taps || tensor < 0 || l->program->status != TEC_OK)
        return;
    const struct tec_tensor x = l->program->tensors[tensor];
    struct tec_call call = tec_call_of(TEC_OP_copy, "tap");
    call.in[0] = tensor;
    va_list args;
    va_start(args, format);
    write_tap(l, &call, x.rows, x.cols, x.live, format, args);
    va_end(args);
}

void tec_lower_tap_view(struct tec_lower *l, int at, int cols, const char *format, ...)
{
    if (!l->taps || l->taps->n == 0 || l->program->status != TEC_OK)
        return;
    va_list args;
    va_start(args, format);
    struct tec_tap *tap = add(l, NULL, format, args);
    va_end(args);
    if (!tap)
        return;
    const char *name = tap->name;
    int whole = l->taps->n - 2;
    while (whole > 0 && !l->taps->blocks[whole])
        whole--;
    *tap = l->taps->items[whole];
    tap->name = name;
    tap->data += at;
    tap->cols = cols;
}

void tec_lower_tap_keys(struct tec_lower *l, const struct tec_attending *a, int keys,
                        const char *format, ...)
{
    if (!l->taps || l->program->status != TEC_OK)
        return;
    struct tec_call call = tec_call_of(TEC_OP_read_kv, "tap");
    call.in[0] = keys;
    call.args.read_kv.slot = a->rows->slot;
    call.bf16 = a->space->shape.bf16;
    va_list args;
    va_start(args, format);
    write_tap(l, &call, a->rows->max, a->attend->kv_heads * a->attend->head_dim, a->rows->count,
              format, args);
    va_end(args);
}

void tec_taps_finish(struct tec_taps *taps, struct tec_device *device)
{
    for (int i = 0; i < taps->n; i++)
        tec_device_put(device, taps->blocks[i]);
    taps->n = 0;
}

/* values.c - copies chunks into a ring on the frame thread, and reads them and the texts on
 * another. */
#include "tools/foxglove/values.h"

#include <string.h>

enum { PLACES = 64 /* chunks between two looks of the reader */ };

enum tec_status tec_foxglove_values_init(struct tec_foxglove_values *v,
                                         const struct tec_engine *engine, struct tec_arena *arena,
                                         struct tec_error *err)
{
    const struct tec_action_room room = tec_engine_room(engine);
    size_t robot = (size_t)room.rows * (size_t)room.columns * sizeof(double);
    size_t model = room.chunk * sizeof(float);
    *v = (struct tec_foxglove_values){.engine = engine, .bytes = robot > model ? robot : model};
    tec_transcript_init(&v->texts);
    tec_foxglove_values_want(v, false, false);
    size_t whole = sizeof *v->given + v->bytes;
    v->given = tec_arena_push(arena, whole, 1, 64);
    v->taken = tec_arena_push(arena, whole, 1, 64);
    if (!v->given || !v->taken ||
        tec_spsc_init(&v->chunks, arena, PLACES, (uint32_t)whole) != TEC_OK)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for chunks that are shown");
    return tec_transcript_attach(&v->texts, engine, -1, arena, err);
}

void tec_foxglove_values_finish(struct tec_foxglove_values *v)
{
    if (v->engine)
        tec_transcript_finish(&v->texts);
}

void tec_foxglove_values_left(struct tec_foxglove_values *v, const struct tec_recorded_chunk *left)
{
    struct tec_foxglove_chunk *to = v->given;
    if (!atomic_load_explicit(&v->wanted, memory_order_relaxed))
        return;
    const struct tec_flow *flow = tec_engine_flow(v->engine, left->action);
    *to = (struct tec_foxglove_chunk){.frame = left->frame,
                                      .release_ns = left->release_ns,
                                      .age_us = left->age_us,
                                      .action = left->action,
                                      .session = left->session,
                                      .rows = left->actions ? left->rows : flow->horizon,
                                      .columns = left->actions ? left->columns : flow->dim,
                                      .late = left->late,
                                      .is_robot = left->actions != NULL};
    size_t n =
        (size_t)to->rows * (size_t)to->columns * (left->actions ? sizeof(double) : sizeof(float));
    if (n > v->bytes)
        return;
    memcpy(&to->values, left->actions ? (const void *)left->actions : left->chunk, n);
    tec_spsc_push(&v->chunks, to);
}

void tec_foxglove_values_told(struct tec_foxglove_values *v)
{
    tec_transcript_tell(&v->texts);
}

void tec_foxglove_values_want(struct tec_foxglove_values *v, bool chunks, bool texts)
{
    atomic_store_explicit(&v->wanted, chunks, memory_order_relaxed);
    atomic_store_explicit(&v->texts.unread, !texts, memory_order_relaxed);
}

const struct tec_foxglove_chunk *tec_foxglove_values_take(struct tec_foxglove_values *v)
{
    return tec_spsc_pop(&v->chunks, v->taken) ? v->taken : NULL;
}

bool tec_foxglove_values_read(struct tec_foxglove_values *v, struct tec_transcript_event *event,
                              char text[TEC_DETOKENIZER_BYTES + 1])
{
    size_t n = 0;
    pthread_mutex_lock(&v->texts.lock);
    bool any = tec_transcript_read(&v->texts, event, text, TEC_DETOKENIZER_BYTES, &n);
    pthread_mutex_unlock(&v->texts.lock);
    text[n] = '\0';
    return any;
}

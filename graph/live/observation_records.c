/* observation_records.c - keeps observations that actions may still be of, so that actions that
 * leave frames later can be converted with the state that they answer. */
#include "graph/live/observation_records.h"

#include <string.h>

enum tec_status tec_observation_records_create(struct tec_observation_records *list,
                                               const struct tec_engine *engine,
                                               struct tec_arena *arena, struct tec_error *err)
{
    int each = TEC_MAX_CHAINS + TEC_MAX_ACTIONS; /* that the loop may act on, of a session */
    int kept = each * engine->n_sessions + TEC_MAX_ROWS;
    int room = TEC_OBSERVATION_RECORDS + kept;
    *list = (struct tec_observation_records){
        .loop = engine->loop,
        .room = room,
        .items = TEC_NEW(arena, (size_t)room, struct tec_observation_record),
        .width = (size_t)tec_session_state(engine->session)};
    bool ok = list->items != NULL;
    for (int i = 0; i < room && ok; i++) {
        list->items[i] = (struct tec_observation_record){.frame = -1};
        list->items[i].state_raw = TEC_NEW(arena, list->width + 1, double);
        ok = list->items[i].state_raw != NULL;
    }
    return ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for observations");
}

/* A frame's number may be used again behind a reset: then the newer record is meant. */
static bool acted_on(const struct tec_observation_records *list,
                     const struct tec_observation_record *s)
{
    return s->added && tec_loop_acts_on(list->loop, s->frame) &&
           tec_observation_records_find(list, s->frame) == s;
}

void tec_observation_records_put(struct tec_observation_records *list, int64_t frame,
                                 int64_t number, int64_t captured_ns, const double *state_raw)
{
    for (int i = 0; i < list->room && acted_on(list, &list->items[list->next]); i++)
        list->next = (list->next + 1) % list->room;
    struct tec_observation_record *s = &list->items[list->next];
    list->next = (list->next + 1) % list->room;
    s->frame = frame;
    s->number = number;
    s->captured_ns = captured_ns;
    s->added = ++list->n;
    memcpy(s->state_raw, state_raw, list->width * sizeof *state_raw);
}

int tec_observation_records_after(const struct tec_observation_records *list, int64_t number)
{
    int n = 0;
    for (int i = 0; i < list->room; i++)
        n += list->items[i].frame >= 0 && list->items[i].number > number;
    return n;
}

const struct tec_observation_record *
tec_observation_records_find(const struct tec_observation_records *list, int64_t frame)
{
    const struct tec_observation_record *newest = NULL;
    for (int i = 0; i < list->room; i++) {
        const struct tec_observation_record *s = &list->items[i];
        if (s->added && s->frame == frame && (!newest || s->added > newest->added))
            newest = s;
    }
    return newest;
}

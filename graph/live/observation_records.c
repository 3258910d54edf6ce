/* observation_records.c - keeps recent observations, so that the actions a ring hands out frames
 * later can be converted with the state that they answer. */
#include "graph/live/observation_records.h"

#include <string.h>

enum tec_status tec_observation_records_create(struct tec_observation_records *list,
                                               const struct tec_engine *engine,
                                               struct tec_arena *arena, struct tec_error *err)
{
    *list = (struct tec_observation_records){.width = (size_t)tec_session_state(engine->session)};
    for (int i = 0; i < TEC_OBSERVATION_RECORDS; i++) {
        list->items[i].frame = -1;
        list->items[i].state_raw = TEC_NEW(arena, list->width + 1, double);
        if (!list->items[i].state_raw)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for observations");
    }
    return TEC_OK;
}

void tec_observation_records_put(struct tec_observation_records *list, int64_t frame,
                                 int64_t number, int64_t captured_ns, const double *state_raw)
{
    struct tec_observation_record *s = &list->items[list->n++ % TEC_OBSERVATION_RECORDS];
    s->frame = frame;
    s->number = number;
    s->captured_ns = captured_ns;
    memcpy(s->state_raw, state_raw, list->width * sizeof *state_raw);
}

int tec_observation_records_after(const struct tec_observation_records *list, int64_t number)
{
    int n = 0;
    for (int i = 0; i < TEC_OBSERVATION_RECORDS; i++)
        n += list->items[i].frame >= 0 && list->items[i].number > number;
    return n;
}

const struct tec_observation_record *
tec_observation_records_find(const struct tec_observation_records *list, int64_t frame)
{
    int64_t kept = list->n < TEC_OBSERVATION_RECORDS ? list->n : TEC_OBSERVATION_RECORDS;
    for (int64_t i = 1; i <= kept; i++) {
        const struct tec_observation_record *s =
            &list->items[(list->n - i) % TEC_OBSERVATION_RECORDS];
        if (s->frame == frame)
            return s;
    }
    return NULL;
}

/* scenario.c - fuzz target: any bytes as a scenario; what is accepted is within its bounds. */
#include "tools/simulate/scenario.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_list(const struct tec_scenario *s, const struct tec_happenings *list)
{
    for (int i = 0; i < list->n; i++) {
        check(list->item[i].frame >= 0 && list->item[i].value >= 0);
        check(list->item[i].session >= -1 && list->item[i].session < TEC_MAX_SESSIONS);
        check(list->item[i].session < s->n_sessions || s->n_sessions == 0);
    }
}

static void use(const struct tec_scenario *s)
{
    check(s->frames >= 0 && s->until_us > 0);
    check(s->n_sessions >= 0 && s->n_sessions <= TEC_MAX_SESSIONS);
    for (int i = 0; i < s->n_sessions; i++)
        check(s->sessions[i].name && s->sessions[i].period_us > 0);
    check_list(s, &s->arrivals);
    check_list(s, &s->cancel);
    check_list(s, &s->spikes);
    check_list(s, &s->late);
    check_list(s, &s->reset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tec_heap heap = {.limit = (size_t)1 << 28};
    struct tec_arena arena;
    struct tec_scenario scenario;
    struct tec_error err;
    tec_arena_init(&arena, &heap);
    json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(json) &&
        tec_scenario_take(&scenario, json, "s.json", &arena, &err) == TEC_OK)
        use(&scenario);
    json_decref(json);
    tec_arena_finish(&arena);
    return 0;
}

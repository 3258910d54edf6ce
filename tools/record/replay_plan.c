/* replay_plan.c - a frame's launches as a list. */
#include "tools/record/replay_plan.h"

json_t *tec_replay_plan_is(const struct tec_frame_record *record)
{
    json_t *all = json_array();
    for (int i = 0; i < record->n_launches; i++)
        json_array_append_new(all, json_pack("[s, i, i]", record->launches[i].node,
                                             record->launches[i].rows, record->launches[i].k));
    return all;
}

json_t *tec_replay_plan_was(const json_t *frame)
{
    const json_t *from = json_object_get(frame, "launches");
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(from); i++) {
        const json_t *one = json_array_get(from, i);
        const char *node = json_string_value(json_object_get(one, "node"));
        json_array_append_new(all, json_pack("[s, I, I]", node ? node : "",
                                             json_integer_value(json_object_get(one, "rows")),
                                             json_integer_value(json_object_get(one, "k"))));
    }
    return all;
}

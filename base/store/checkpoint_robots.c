/* checkpoint_robots.c - the robots that a checkpoint knows, and the one that is asked for. */
#include "base/store/checkpoint_own.h"

#include <string.h>

enum { MOST_LISTED = 200 }; /* bytes of tags in a message */

enum tec_status tec_checkpoint_read_robots(struct tec_checkpoint *c, struct tec_error *err)
{
    json_t *processor = NULL;
    TEC_TRY(tec_checkpoint_load_if(c, "processor_config.json", &processor, err));
    json_t *own = json_object_get(processor, "processor_kwargs");
    json_t *robots = json_object_get(own, "modality_configs");
    if (!json_is_object(robots)) { /* that of a language model with pictures */
        json_decref(processor);
        return TEC_OK;
    }
    c->processor = processor;
    c->robots = json_incref(robots);
    c->tokenizer_name = json_string_value(json_object_get(own, "model_name"));
    TEC_TRY(tec_checkpoint_load_if(c, "statistics.json", &c->robot_statistics, err));
    return tec_checkpoint_load_if(c, "embodiment_id.json", &c->robot_numbers, err);
}

enum tec_status tec_checkpoint_choose(struct tec_checkpoint *c, const char *tag,
                                      struct tec_error *err)
{
    json_t *robot = json_object_get(c->robots, tag), *one, *other;
    const char *name, *list = "";
    if (!c->robots)
        return TEC_OK;
    if (robot) {
        one = json_pack("{s:O}", tag, robot);
        if (!one)
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its robot", c->path);
        json_decref(c->robots);
        c->robots = one;
        return TEC_OK;
    }
    json_object_foreach(c->robots, name, other)
    {
        if (strlen(list) > MOST_LISTED) /* a file may have any number of them */
            break;
        list = tec_arena_printf(&c->arena, "%s%s%s", list, *list ? ", " : "", name);
        if (!list)
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its robots", c->path);
    }
    return tec_fail(err, TEC_NOT_FOUND, "%s: knows no robot '%.60s'; it knows %.*s", c->path, tag,
                    (int)MOST_LISTED, list);
}

bool tec_checkpoint_has_robot(const struct tec_checkpoint *c)
{
    return c->layout == TEC_LAYOUT_LEROBOT || c->robots;
}

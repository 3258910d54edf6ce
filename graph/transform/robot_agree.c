/* robot_agree.c - does a robot say the same as the LeRobot checkpoint that it is driven by? What
 * contradicts runs without a word otherwise, and moves the robot elsewhere. */
#include "graph/transform/robot.h"

#include <string.h>

/* The step of a processor with this name that is switched on. */
static bool is_enabled(const json_t *processor, const char *name)
{
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(processor, "steps"), i, step)
    {
        const char *is = json_string_value(json_object_get(step, "registry_name"));
        const json_t *config = json_object_get(step, "config");
        if (is && strcmp(is, name) == 0 && json_is_true(json_object_get(config, "enabled")))
            return true;
    }
    return false;
}

/* The file that says that actions are changes of the state, and the words; false: none does. */
static bool says_relative(const struct tec_checkpoint *c, const char **file, const char **what)
{
    static const char before[] = "relative_actions_processor";
    static const char after[] = "absolute_actions_processor";
    *file = "policy_preprocessor.json";
    *what = "relative_actions_processor is enabled";
    if (is_enabled(c->preprocessor, before))
        return true;
    *file = "policy_postprocessor.json";
    *what = "absolute_actions_processor is enabled";
    if (is_enabled(c->postprocessor, after))
        return true;
    *file = "config.json";
    *what = "use_relative_actions is true";
    return json_is_true(json_object_get(c->config, "use_relative_actions"));
}

static bool adds_state(const struct tec_robot *robot)
{
    for (int i = 0; i < robot->actions.n; i++)
        if (robot->actions.steps[i].kind == TEC_TRANSFORM_add_state)
            return true;
    return false;
}

/* Numbers of a vector of config.json; -1: it does not say. */
static int length(const struct tec_checkpoint *c, const char *features, const char *name)
{
    const json_t *feature = json_object_get(json_object_get(c->config, features), name);
    const json_t *shape = json_object_get(feature, "shape");
    const json_t *n = json_array_get(shape, 0);
    return json_array_size(shape) == 1 && json_is_integer(n) && json_integer_value(n) >= 0 &&
                   json_integer_value(n) <= TEC_ROBOT_MAX_VALUES
               ? (int)json_integer_value(n)
               : -1;
}

enum tec_status tec_robot_agree(const struct tec_robot *robot, const struct tec_checkpoint *c,
                                struct tec_error *err)
{
    const char *file, *what;
    if (c->layout != TEC_LAYOUT_LEROBOT)
        return TEC_OK;
    int state = length(c, "input_features", "observation.state");
    int actions = length(c, "output_features", "action");
    if (actions >= 0 && actions != robot->n_model_actions)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: robot %s takes %d columns of the actions, but %s/config.json: action "
                        "has %d",
                        robot->where, robot->name, robot->n_model_actions, c->root, actions);
    if (state >= 0 && robot->n_state > 0 && state != robot->n_state)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: robot %s has a state of %d entries, but %s/config.json: "
                        "observation.state has %d",
                        robot->where, robot->name, robot->n_state, c->root, state);
    if (!adds_state(robot) && says_relative(c, &file, &what))
        return tec_fail(err, TEC_MALFORMED,
                        "%s: actions.ops of robot %s has no add_state, but %s/%s: %s: differences "
                        "from the state would leave as places",
                        robot->where, robot->name, c->root, file, what);
    return TEC_OK;
}

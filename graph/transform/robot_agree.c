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

/* Does the robot add the state to the columns that the checkpoint says, and no others? Steps that
 * move columns come behind, or nothing is said. */
static enum tec_status check_columns(const struct tec_robot *robot, const struct tec_checkpoint *c,
                                     struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_transform *step = robot->actions.steps;
    bool *changes;
    int n, wrong = -1;
    TEC_TRY(tec_robot_relative(&changes, &n, c, arena, err));
    if (n == 0 || step->kind != TEC_TRANSFORM_add_state || n > robot->n_model_actions)
        return TEC_OK;
    for (int i = n - 1; i >= 0; i--) {
        bool added = false;
        for (int k = 0; k < step->n_at; k++)
            added |= step->at[k] == i;
        wrong = added != changes[i] ? i : wrong;
    }
    if (wrong < 0)
        return TEC_OK;
    return tec_fail(err, TEC_MALFORMED,
                    "%s: add_state of robot %s %s column %d, which is a %s by "
                    "relative_actions_processor of %s/policy_preprocessor.json",
                    robot->where, robot->name, changes[wrong] ? "leaves out" : "adds to", wrong + 1,
                    changes[wrong] ? "change of the state" : "place", c->root);
}

const char *tec_robot_feature(const struct tec_robot *robot, const struct tec_checkpoint *c, int i)
{
    const json_t *features = json_object_get(c->config, "input_features");
    const char *name = i >= 0 && i < robot->n_parts ? robot->parts[i].input : NULL;
    if (name)
        name += strlen(robot->prefix);
    return name && json_object_get(features, name) ? name : NULL;
}

/* Numbers of the state by config.json: of the features that its parts are, or of the state's own.
 * -1: it does not say. */
static int state_length(const struct tec_robot *robot, const struct tec_checkpoint *c)
{
    int all = 0;
    for (int i = 0; i < robot->n_parts; i++) {
        const char *feature = tec_robot_feature(robot, c, i);
        if (!feature)
            return tec_robot_length(c, "input_features", "observation.state");
        all += tec_robot_length(c, "input_features", feature);
    }
    return all;
}

enum tec_status tec_robot_agree(const struct tec_robot *robot, const struct tec_checkpoint *c,
                                struct tec_arena *arena, struct tec_error *err)
{
    const char *file, *what;
    if (c->layout != TEC_LAYOUT_LEROBOT)
        return TEC_OK;
    int state = state_length(robot, c);
    int actions = tec_robot_length(c, "output_features", "action");
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
    return robot->actions.n > 0 ? check_columns(robot, c, arena, err) : TEC_OK;
}

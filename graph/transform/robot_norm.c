/* robot_norm.c - the statistics of a robot: from which file, and whether they fit. */
#include "graph/transform/robot.h"

#include <string.h>

/* A checkpoint that wants to normalise but has no statistics gives commands of another size, unless
 * it was trained so. */
static enum tec_status check_there(const struct tec_robot *robot, const struct tec_checkpoint *c,
                                   const struct tec_norm *norm, const char *kind,
                                   struct tec_error *err)
{
    if (norm->n > 0 || !norm->wanted || robot->norm_pass || c->bare)
        return TEC_OK;
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s: no statistics of the %s; a base checkpoint has none, take a fine-tuned "
                    "one",
                    c->path, kind);
}

static enum tec_status dataset_norms(const struct tec_robot *robot, const struct tec_checkpoint *c,
                                     const char *key, struct tec_norm *state,
                                     struct tec_norm *actions, struct tec_arena *arena,
                                     struct tec_error *err)
{
    if (robot->n_state > 0)
        TEC_TRY(tec_checkpoint_norm_dataset(c, state, key, "proprio", robot->norm, robot->norm_eps,
                                            arena, err));
    return tec_checkpoint_norm_dataset(c, actions, key, "action", robot->norm, robot->norm_eps,
                                       arena, err);
}

/* The norm of a part of the state that is a feature of its own. */
static enum tec_status part_norm(const struct tec_robot *robot, const struct tec_checkpoint *c,
                                 const char *feature, struct tec_norm *norm,
                                 struct tec_arena *arena, struct tec_error *err)
{
    TEC_TRY(tec_checkpoint_norm_lerobot(c, norm, feature, arena, err));
    norm->wide = robot->norm_wide;
    return check_there(robot, c, norm, "STATE", err);
}

/* LeRobot has statistics by feature. The state is "observation.state", whatever its parts are
 * called; behind it may be one more part that is a feature itself. */
static enum tec_status lerobot_state(const struct tec_robot *robot, const struct tec_checkpoint *c,
                                     struct tec_norm *state, struct tec_arena *arena,
                                     struct tec_error *err)
{
    const char *last = tec_robot_feature(robot, c, robot->n_parts - 1);
    const char *first = tec_robot_feature(robot, c, 0);
    TEC_TRY(part_norm(robot, c, first ? first : "observation.state", state, arena, err));
    if (robot->n_parts < 2 || !last)
        return TEC_OK;
    struct tec_norm *then = TEC_NEW(arena, 1, struct tec_norm);
    if (!then)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the statistics of %s", last);
    state->then = then;
    state->from = (size_t)(robot->n_raw - robot->parts[robot->n_parts - 1].size);
    return part_norm(robot, c, last, then, arena, err);
}

enum tec_status tec_robot_norms(const struct tec_robot *robot,
                                const struct tec_checkpoint *checkpoint, const char *asset,
                                struct tec_norm *state, struct tec_norm *actions,
                                struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_checkpoint *c = checkpoint;
    *state = *actions = (struct tec_norm){.mode = TEC_NORM_NONE};
    if (robot->norm == TEC_NORM_NONE && !robot->norm_any)
        return TEC_OK;
    if (c->layout == TEC_LAYOUT_LEROBOT) {
        if (robot->n_state > 0)
            TEC_TRY(lerobot_state(robot, c, state, arena, err));
        TEC_TRY(tec_checkpoint_norm_lerobot(c, actions, "action", arena, err));
        actions->wide = robot->norm_wide;
        return check_there(robot, c, actions, "ACTION", err);
    }
    if (robot->norm_any)
        return tec_fail(err, TEC_MALFORMED,
                        "robot %s takes its mode from the checkpoint, but %s does not say one",
                        robot->name, c->path);
    if (!asset)
        asset = robot->asset;
    if (c->layout == TEC_LAYOUT_HF)
        return dataset_norms(robot, c, asset, state, actions, arena, err);
    if (robot->norm == TEC_NORM_MIN_MAX || robot->norm_eps > 0.0)
        return tec_fail(err, TEC_MALFORMED,
                        "robot %s: norm.%s is for statistics by dataset, %s has them by asset",
                        robot->name, robot->norm_eps > 0.0 ? "eps" : "mode = \"min_max\"", c->path);
    if (robot->n_state > 0)
        TEC_TRY(tec_checkpoint_norm_openpi(c, state, asset, "state", robot->norm, arena, err));
    return tec_checkpoint_norm_openpi(c, actions, asset, "actions", robot->norm, arena, err);
}

enum tec_status tec_robot_check_norm(const struct tec_robot *robot, const struct tec_norm *norm,
                                     const char *what, struct tec_error *err)
{
    int n = strcmp(what, "state") == 0 ? robot->n_state : robot->n_model_actions;
    if (norm->then)
        n = (int)norm->from;
    if (!robot->norm_any && norm->mode != robot->norm)
        return tec_fail(
            err, TEC_MALFORMED, "robot %s wants %s statistics for its %s, the checkpoint's are %s",
            robot->name, tec_norm_mode_name(robot->norm), what, tec_norm_mode_name(norm->mode));
    if (norm->mode == TEC_NORM_NONE)
        return TEC_OK;
    const char *missing = tec_norm_missing(norm);
    if (missing)
        return tec_fail(err, TEC_MALFORMED,
                        "the statistics of the %s lack %s; the mode may be wrong", what, missing);
    if (norm->n < (size_t)n)
        return tec_fail(err, TEC_MALFORMED,
                        "the statistics of the %s have %zu entries, robot %s has %d; another "
                        "robot's asset?",
                        what, norm->n, robot->name, n);
    if (norm->convention != TEC_NORM_OPENPI && norm->n != (size_t)n)
        return tec_fail(err, TEC_MALFORMED,
                        "the statistics of the %s have %zu entries, robot %s has %d; those of "
                        "another dataset?",
                        what, norm->n, robot->name, n);
    return TEC_OK;
}

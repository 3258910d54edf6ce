/* session_given.c - reads the first actions that an observation brings along, and checks their
 * shape and values.
 *
 * Runs on the session's thread. Their numbers are the robot's, not the model's: that the robot's
 * transforms can be undone is checked at load, so that a frame can only fail by its values. */
#include "graph/run/session_given.h"

#include "graph/transform/picture.h"

#include <math.h>
#include <string.h>

static bool robot_has(const struct tec_robot *robot, const char *name)
{
    bool has = strcmp(robot->prompt_input, name) == 0;
    for (int i = 0; i < robot->n_cameras; i++)
        has |= robot->cameras[i].input && strcmp(robot->cameras[i].input, name) == 0;
    for (int i = 0; i < robot->n_parts; i++)
        has |= strcmp(robot->parts[i].input, name) == 0;
    return has;
}

enum tec_status tec_given_init(struct tec_given *given, const struct tec_pipeline *pipeline,
                               const struct tec_decl_node *action, const struct tec_robot *robot,
                               bool plain, struct tec_arena *arena, struct tec_error *err)
{
    bool any = action && action->prefix.index >= 0;
    const struct tec_decl_input *in = any ? &pipeline->inputs[action->prefix.index] : NULL;
    *given = (struct tec_given){.input = in};
    if (!in)
        return TEC_OK;
    const char *file = in->where.file ? in->where.file : "?";
    given->rows = in->shape.item[0];
    given->columns = robot->n_actions;
    if (in->shape.item[1] != given->columns)
        return tec_fail(err, TEC_MALFORMED, "%s:%d: '%s' has %d columns, an action of %s%s has %d",
                        file, in->where.line, in->name, in->shape.item[1],
                        plain ? "the model" : "robot ", plain ? "" : robot->name, given->columns);
    if (robot_has(robot, in->name))
        return tec_fail(err, TEC_MALFORMED,
                        "%s:%d: robot %s sends '%s' as something else than actions", file,
                        in->where.line, robot->name, in->name);
    TEC_TRY(tec_context(err, tec_robot_check_undo(robot, err), "%s:%d: '%s'", file, in->where.line,
                        in->name));
    given->actions = TEC_NEW(arena, (size_t)given->rows * (size_t)given->columns, double);
    return given->actions ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "%s: no memory", in->name);
}

static enum tec_status check_shape(const struct tec_given *given, const struct tec_value *v,
                                   struct tec_error *err)
{
    char shape[120];
    bool floats = v->kind == TEC_VALUE_F32 || v->kind == TEC_VALUE_F64;
    bool empty = v->rank == 1 && v->shape[0] == 0;
    bool fits = v->rank == 2 && v->shape[0] >= 0 && v->shape[0] <= given->rows &&
                v->shape[1] == given->columns;
    if (!floats || (!fits && !empty))
        return tec_fail(err, TEC_SHAPE, "%s: must be float[d,%d] with d = 0 to %d, is %s", v->name,
                        given->columns, given->rows, tec_value_shape(v, shape, sizeof shape));
    size_t want = empty ? 0 : (size_t)(v->shape[0] * v->shape[1]) * tec_value_size(v->kind);
    if (v->bytes != want)
        return tec_fail(err, TEC_SHAPE, "%s: %zu bytes do not make %s", v->name, v->bytes,
                        tec_value_shape(v, shape, sizeof shape));
    return TEC_OK;
}

enum tec_status tec_given_read(struct tec_given *given, const struct tec_value *values,
                               size_t n_values, int *n, struct tec_error *err)
{
    const struct tec_value *v = NULL;
    *n = 0;
    for (size_t i = 0; given->input && !v && i < n_values; i++)
        if (strcmp(values[i].name, given->input->name) == 0)
            v = &values[i];
    if (!v)
        return TEC_OK;
    TEC_TRY(check_shape(given, v, err));
    int count = v->rank == 2 ? (int)(v->shape[0] * v->shape[1]) : 0;
    for (int i = 0; i < count; i++) {
        const unsigned char *at =
            (const unsigned char *)v->data + (size_t)i * tec_value_size(v->kind);
        float f;
        if (v->kind == TEC_VALUE_F32) {
            memcpy(&f, at, sizeof f);
            given->actions[i] = (double)f;
        } else {
            memcpy(&given->actions[i], at, sizeof given->actions[i]);
        }
        if (!isfinite(given->actions[i]))
            return tec_fail(err, TEC_INVALID, "%s: row %d, column %d is %s", v->name,
                            i / given->columns + 1, i % given->columns + 1,
                            isnan(given->actions[i]) ? "NaN" : "infinite");
    }
    *n = count / given->columns;
    return TEC_OK;
}

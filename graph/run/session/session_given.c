/* session_given.c - reads the actions that an observation brings along, the first ones of its chunk
 * or what is left of the earlier one, and checks their shape and values.
 *
 * Runs on the session's thread. Their numbers are the robot's, not the model's: that the robot's
 * transforms can be undone is checked at load, so that a frame can only fail by its values. */
#include "graph/run/session/session_given.h"

#include "graph/run/launch/text_input.h"
#include "graph/transform/guide.h"
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
                               int input, const struct tec_robot *robot, bool plain,
                               struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_decl_input *in = input >= 0 ? &pipeline->inputs[input] : NULL;
    *given = (struct tec_given){.input = in};
    if (!in)
        return TEC_OK;
    given->rows = in->shape.item[0];
    given->columns = robot->n_actions;
    if (in->shape.item[1] != given->columns)
        return tec_where_fail(err, TEC_MALFORMED, &in->where,
                              "'%s' has %d columns, an action of %s%s has %d", in->name,
                              in->shape.item[1], plain ? "the model" : "robot ",
                              plain ? "" : robot->name, given->columns);
    if (robot_has(robot, in->name))
        return tec_where_fail(err, TEC_MALFORMED, &in->where,
                              "robot %s sends '%s' as something else than actions", robot->name,
                              in->name);
    TEC_TRY(tec_where_context(err, tec_robot_check_undo(robot, err), &in->where, "'%s'", in->name));
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

/* Number i of a value. */
static double number(const struct tec_value *v, int i)
{
    const unsigned char *at = (const unsigned char *)v->data + (size_t)i * tec_value_size(v->kind);
    float f;
    double d;
    if (v->kind == TEC_VALUE_F32)
        memcpy(&f, at, sizeof f);
    else
        memcpy(&d, at, sizeof d);
    return v->kind == TEC_VALUE_F32 ? (double)f : d;
}

enum tec_status tec_given_read(struct tec_given *given, const struct tec_value *values,
                               size_t n_values, int *n, struct tec_error *err)
{
    const struct tec_value *v =
        given->input ? tec_text_find(values, n_values, given->input->name, "") : NULL;
    *n = 0;
    if (!v)
        return TEC_OK;
    TEC_TRY(check_shape(given, v, err));
    int count = v->rank == 2 ? (int)(v->shape[0] * v->shape[1]) : 0;
    for (int i = 0; i < count; i++) {
        given->actions[i] = number(v, i);
        if (!isfinite(given->actions[i]))
            return tec_fail(err, TEC_INVALID, "%s: row %d, column %d is %s", v->name,
                            i / given->columns + 1, i % given->columns + 1,
                            isnan(given->actions[i]) ? "NaN" : "infinite");
    }
    *n = count / given->columns;
    return TEC_OK;
}

enum tec_status tec_guiding_init(struct tec_guiding *g, const struct tec_pipeline *pipeline,
                                 const struct tec_decl_node *action, const struct tec_robot *robot,
                                 bool plain, struct tec_arena *arena, struct tec_error *err)
{
    bool any = action && action->guide.previous.index >= 0;
    *g = (struct tec_guiding){.guide = any ? &action->guide : NULL};
    if (!any)
        return TEC_OK;
    int delays = action->guide.delays.index;
    g->delays = delays >= 0 ? &pipeline->inputs[delays] : NULL;
    if (g->delays && robot_has(robot, g->delays->name))
        return tec_where_fail(err, TEC_MALFORMED, &g->delays->where,
                              "robot %s sends '%s' as something else than a delay", robot->name,
                              g->delays->name);
    return tec_given_init(&g->left, pipeline, action->guide.previous.index, robot, plain, arena,
                          err);
}

enum tec_status tec_guiding_read(struct tec_guiding *g, const struct tec_value *values,
                                 size_t n_values, struct tec_error *err)
{
    enum { MOST = 4096 };
    g->n = 0;
    if (!g->guide)
        return TEC_OK;
    g->delay = g->guide->delay;
    TEC_TRY(tec_given_read(&g->left, values, n_values, &g->n, err));
    const struct tec_value *v =
        g->delays ? tec_text_find(values, n_values, g->delays->name, "") : NULL;
    if (!v)
        return TEC_OK;
    bool floats = v->kind == TEC_VALUE_F32 || v->kind == TEC_VALUE_F64;
    if (!floats || v->bytes != tec_value_size(v->kind))
        return tec_fail(err, TEC_SHAPE, "%s: must be one number, the rows that are executed",
                        v->name);
    double delay = number(v, 0);
    if (!(delay >= 0.0) || delay > MOST || delay != floor(delay))
        return tec_fail(err, TEC_INVALID, "%s: %g is no whole number from 0 to %d", v->name, delay,
                        (int)MOST);
    g->delay = (int)delay;
    return TEC_OK;
}

enum tec_status tec_guiding_start(const struct tec_guiding *g, struct tec_observer *observer,
                                  const double *state_raw, const struct tec_flow *flow,
                                  float *previous, float *pulls, struct tec_error *err)
{
    if (g->n == 0)
        return TEC_OK;
    memset(previous, 0, (size_t)flow->horizon * (size_t)flow->dim * sizeof *previous);
    enum tec_status status =
        tec_robot_undo(observer, g->left.actions, g->n, state_raw, previous, err);
    TEC_TRY(tec_context(err, status, "%s", g->left.input->name));
    tec_guide_pulls((enum tec_guide_schedule)g->guide->schedule, g->delay, g->guide->horizon, g->n,
                    flow->horizon, pulls);
    return TEC_OK;
}

/* observer_act.c - the way of actions: from the model to the robot, and back. */
#include "graph/transform/observer_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum tec_status tec_observer_fill_decode(struct tec_observer *o, struct tec_error *err)
{
    const struct tec_robot *robot = o->robot;
    const struct tec_observer_tokens *tokens = &o->needs.tokens;
    const struct tec_transforms *from = &robot->decode;
    char where[120];
    o->decode = *from;
    o->decode.steps = TEC_NEW(&o->arena, (size_t)from->n + 1, struct tec_transform);
    if (!o->decode.steps)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a session", robot->called);
    snprintf(where, sizeof where, "robot %.60s: actions.decode", robot->name);
    for (int i = 0; i < from->n; i++) {
        struct tec_transform *step = &o->decode.steps[i];
        *step = from->steps[i];
        if (step->kind != TEC_TRANSFORM_bins)
            continue;
        bool said = step->a != 0.0;
        if (!said && tokens->vocabulary == 0)
            return tec_fail(err, TEC_MALFORMED,
                            "%s: bins are for token ids, but the model's actions are none", where);
        if (said && tokens->vocabulary &&
            (step->a != tokens->vocabulary || step->b != tokens->bins))
            return tec_fail(err, TEC_MALFORMED,
                            "%s: %g bins of a vocabulary of %g; the model has %d of %d", where,
                            step->b, step->a, tokens->bins, tokens->vocabulary);
        step->a = said ? step->a : tokens->vocabulary;
        step->b = said ? step->b : tokens->bins;
        TEC_TRY(tec_transform_check_bins(step, where, err));
    }
    return TEC_OK;
}

static bool all_finite(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

enum tec_action_ids tec_robot_judge_ids(const struct tec_observer *o, const float *row, int *at)
{
    const struct tec_transform *bins = tec_transforms_bins(&o->decode);
    enum tec_action_ids verdict = TEC_IDS_GOOD;
    int end = o->needs.tokens.vocabulary ? o->needs.tokens.end : -1;
    for (int i = 0; bins && i < bins->n_at; i++) {
        int column = bins->at[i];
        double id = (double)row[column];
        bool ended = end >= 0 && id == end && column < o->decode.n_in - 1;
        bool outside = !tec_transform_has_bin(bins, id);
        if (at && (ended || (outside && verdict == TEC_IDS_GOOD)))
            *at = column;
        if (ended)
            return TEC_IDS_ENDED;
        if (outside)
            verdict = TEC_IDS_OUTSIDE;
    }
    return verdict;
}

/* One row of the model to its columns, un-normalised, in act_x; false: it is no action. */
static bool decode_row(struct tec_observer *o, const float *row, int n_row)
{
    size_t n = (size_t)o->robot->n_model_actions;
    if (o->decode.n == 0) {
        tec_norm_undo_f32(&o->needs.action_norm, row, n, o->act_x);
        return true;
    }
    if (tec_robot_judge_ids(o, row, NULL) == TEC_IDS_ENDED)
        return false;
    for (size_t i = 0; i < n; i++)
        o->act_x[i] = (double)row[i];
    tec_transforms_run(&o->decode, n_row, o->act_x, NULL, o->act_scratch);
    tec_norm_undo(&o->needs.action_norm, o->act_x, n, o->act_x);
    return true;
}

/* Un-normalised values as the statistics allow, then the robot's own. The row before is held
 * already. False: it is no action. */
static bool act_row(struct tec_observer *o, const float *row, int n, const double *state_raw,
                    const double *before, struct tec_beyond *beyond)
{
    const struct tec_robot *robot = o->robot;
    struct tec_beyond trained = {0}, own = {0};
    if (!decode_row(o, row, n))
        return false;
    tec_limits_keep(&o->trained, n, NULL, o->act_x, &trained);
    trained.trained = true;
    tec_transforms_run(&robot->actions, n, o->act_x, state_raw, o->act_scratch);
    if (!all_finite(o->act_x, robot->n_actions))
        return false;
    tec_limits_keep(&robot->limits, n, before, o->act_x, &own);
    if (beyond->n == 0 && trained.n + own.n > 0) {
        *beyond = trained.n ? trained : own;
        beyond->n = 0;
    }
    beyond->n += trained.n + own.n;
    return true;
}

int tec_robot_act(struct tec_observer *o, const float *actions, int rows, const double *state_raw,
                  double *out, struct tec_beyond *beyond)
{
    const struct tec_robot *robot = o->robot;
    int most = robot->max_rows > 0 && robot->max_rows < rows ? robot->max_rows : rows, n = 0;
    struct tec_beyond found = {0};
    size_t columns = (size_t)robot->n_actions;
    for (; n < most; n++) {
        double *to = out + (size_t)n * columns;
        if (!act_row(o, actions + (size_t)n * (size_t)o->needs.action_width, n, state_raw,
                     n > 0 ? to - columns : NULL, &found))
            break;
        memcpy(to, o->act_x, columns * sizeof *to);
    }
    if (beyond)
        *beyond = found;
    return tec_beyond_refused(&found) ? 0 : n;
}

enum tec_status tec_robot_check_undo(const struct tec_robot *robot, struct tec_error *err)
{
    int at = tec_transforms_lossy(&robot->actions), first = tec_transforms_lossy(&robot->decode);
    if (at < 0 && first < 0)
        return TEC_OK;
    const struct tec_transforms *which = first < 0 ? &robot->actions : &robot->decode;
    int step = first < 0 ? at : first;
    return tec_fail(err, TEC_MALFORMED,
                    "robot %s: step %d of its %s, %s, cannot be undone, so that actions of "
                    "the robot cannot be given to the model",
                    robot->name, step + 1, first < 0 ? "actions" : "decoding",
                    tec_transform_name(which->steps[step].kind));
}

enum tec_status tec_robot_undo(struct tec_observer *o, const double *actions, int rows,
                               const double *state_raw, float *out, struct tec_error *err)
{
    const struct tec_robot *robot = o->robot;
    size_t columns = (size_t)robot->n_actions, model = (size_t)robot->n_model_actions;
    for (int r = 0; r < rows; r++) {
        float *y = out + (size_t)r * (size_t)o->needs.action_width;
        memcpy(o->x, actions + (size_t)r * columns, columns * sizeof *o->x);
        tec_transforms_undo(&robot->actions, r, o->x, state_raw, o->scratch);
        tec_norm_apply(&o->needs.action_norm, o->x, model, o->x);
        tec_transforms_undo(&o->decode, r, o->x, NULL, o->scratch);
        memset(y, 0, (size_t)o->needs.action_width * sizeof *y);
        for (size_t i = 0; i < model; i++) {
            y[i] = (float)o->x[i];
            if (!isfinite(y[i]))
                return tec_fail(err, TEC_INVALID,
                                "row %d is out of range: column %zu is not finite when normalised",
                                r + 1, i + 1);
        }
    }
    return TEC_OK;
}

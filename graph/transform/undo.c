/* undo.c - the float64 steps of a robot backwards. */
#include "graph/transform/robot.h"

#include <string.h>

/* Does a select of `n` entries only put them in another order? */
static bool is_permutation(const struct tec_transform *step, int n)
{
    bool seen[TEC_ROBOT_MAX_VALUES] = {false};
    if (step->n_at != n)
        return false;
    for (int i = 0; i < n; i++) {
        if (seen[step->at[i]])
            return false;
        seen[step->at[i]] = true;
    }
    return true;
}

static bool has_zero(const struct tec_transform *step)
{
    bool zero = false;
    for (int i = 0; i < step->a_rows * step->n_at; i++)
        zero |= tec_transform_of(step, i / step->n_at, i % step->n_at).a == 0.0;
    return zero;
}

int tec_transforms_lossy(const struct tec_transforms *t)
{
    for (int i = 0; i < t->n; i++) {
        const struct tec_transform *step = &t->steps[i];
        bool lossy = step->kind == TEC_TRANSFORM_linkage || step->kind == TEC_TRANSFORM_bins ||
                     step->kind == TEC_TRANSFORM_sine || step->kind == TEC_TRANSFORM_cosine ||
                     step->kind == TEC_TRANSFORM_quaternion_6d ||
                     step->kind == TEC_TRANSFORM_rpy_6d ||
                     step->kind == TEC_TRANSFORM_axis_angle_rpy ||
                     (step->kind == TEC_TRANSFORM_multiply && has_zero(step)) ||
                     (step->kind == TEC_TRANSFORM_select && !is_permutation(step, t->n_in));
        if (lossy)
            return i;
    }
    return -1; /* so every step had n_in entries */
}

static double undo(const struct tec_transform *step, double x, double state)
{
    switch (step->kind) {
    case TEC_TRANSFORM_multiply:
        return x / step->a;
    case TEC_TRANSFORM_shift:
        return x - step->a;
    case TEC_TRANSFORM_unit_to_range:
        return (x - step->a) / (step->b - step->a);
    case TEC_TRANSFORM_range_to_unit:
        return x * (step->b - step->a) + step->a;
    case TEC_TRANSFORM_add_state:
        return x - state;
    case TEC_TRANSFORM_select:
    case TEC_TRANSFORM_linkage:
    case TEC_TRANSFORM_clamp:
    case TEC_TRANSFORM_round:
    case TEC_TRANSFORM_single:
    case TEC_TRANSFORM_sign:
    case TEC_TRANSFORM_sine:
    case TEC_TRANSFORM_cosine:
    case TEC_TRANSFORM_quaternion_6d:
    case TEC_TRANSFORM_rpy_6d:
    case TEC_TRANSFORM_axis_angle_rpy:
    case TEC_TRANSFORM_bins:
    case TEC_N_TRANSFORMS:
        break;
    }
    return x;
}

void tec_transforms_undo(const struct tec_transforms *t, int row, double *x, const double *state,
                         double *scratch)
{
    for (int i = t->n - 1; i >= 0; i--) {
        const struct tec_transform *step = &t->steps[i];
        bool wants_state = step->kind == TEC_TRANSFORM_add_state;
        for (int j = 0; j < step->n_at; j++)
            if (step->kind == TEC_TRANSFORM_select)
                scratch[step->at[j]] = x[j];
            else {
                const struct tec_transform one = tec_transform_of(step, row, j);
                x[step->at[j]] = undo(&one, x[step->at[j]],
                                      wants_state ? state[tec_transform_adds(step, j)] : 0.0);
            }
        if (step->kind == TEC_TRANSFORM_select)
            memcpy(x, scratch, (size_t)step->n_at * sizeof *x);
    }
}

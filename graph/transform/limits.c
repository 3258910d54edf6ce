/* limits.c - limits of commands: as a robot declares them, as statistics imply them. */
#include "graph/transform/limits.h"

#include "graph/transform/fields.h"
#include "graph/transform/robot_fields.h"

#include <math.h>
#include <stdio.h>

bool tec_beyond_refused(const struct tec_beyond *beyond)
{
    return beyond->n > 0 && beyond->on != TEC_LIMIT_CLIP;
}

void tec_beyond_text(char *text, size_t room, const struct tec_beyond *b)
{
    static const char *const done[] = {"clipped", "held", "stopped"};
    static const char *const sides[] = {"below", "above", "more than"};
    text[0] = '\0';
    if (b->n == 0)
        return;
    snprintf(text, room,
             "%d value%s beyond the robot's limits, %s: row %d, column %d %s %.6g, %s %.6g%s", b->n,
             b->n == 1 ? "" : "s", done[b->on], b->row + 1, b->column + 1,
             b->kind == TEC_LIMIT_STEP ? "changes by" : "is", b->value, sides[b->kind], b->limit,
             b->trained ? " of the statistics" : "");
}

/* One of min, max, max_step. A column without a limit gets `none`. */
static const double *read_bound(struct tec_fields *f, const char *name, int n, double none)
{
    const json_t *json = tec_fields_get(f, name);
    if (!json || f->status != TEC_OK)
        return NULL;
    double *bound = TEC_NEW(f->arena, (size_t)n, double);
    if (!bound) {
        tec_fields_fail(f, TEC_NO_MEMORY, "no memory for '%s'", name);
        return NULL;
    }
    if (!json_is_number(json) && !json_is_array(json))
        tec_fields_fail(f, TEC_MALFORMED, "'%s' must be a number, or a list of %d", name, n);
    else if (json_is_array(json) && json_array_size(json) != (size_t)n)
        tec_fields_fail(f, TEC_MALFORMED, "'%s' lists %zu limits for %d columns", name,
                        json_array_size(json), n);
    for (int i = 0; i < n && f->status == TEC_OK; i++) {
        const json_t *one = json_is_array(json) ? json_array_get(json, (size_t)i) : json;
        bound[i] = json_is_false(one) ? none : json_number_value(one);
        if (!json_is_false(one) && (!json_is_number(one) || !isfinite(bound[i])))
            tec_fields_fail(f, TEC_MALFORMED, "'%s[%d]' must be a finite number, or false", name,
                            i + 1);
    }
    return bound;
}

static void check(struct tec_fields *f, const struct tec_limits *l)
{
    for (int i = 0; f->status == TEC_OK && i < l->n; i++) {
        if (l->min && l->max && !(l->min[i] <= l->max[i]))
            tec_fields_fail(f, TEC_MALFORMED, "min[%d] = %g is above max[%d] = %g", i + 1,
                            l->min[i], i + 1, l->max[i]);
        else if (l->max_step && !(l->max_step[i] > 0.0))
            tec_fields_fail(f, TEC_MALFORMED, "max_step[%d] = %g must be more than 0", i + 1,
                            l->max_step[i]);
    }
}

enum tec_status tec_limits_parse(struct tec_limits *out, bool *off, const json_t *json, int n,
                                 const char *where, struct tec_arena *arena, struct tec_error *err)
{
    static const char *const words[] = {"clip", "hold", "stop"}; /* as in enum tec_limit_on */
    size_t n_names;
    const char *const *names = tec_robot_fields(TEC_ROBOT_TABLE_limits, &n_names);
    *out = (struct tec_limits){.n = n};
    *off = json_is_false(json);
    if (*off)
        return TEC_OK;
    struct tec_fields f = tec_fields_open(json, names, n_names, where, arena, err);
    out->min = read_bound(&f, "min", n, -HUGE_VAL);
    out->max = read_bound(&f, "max", n, HUGE_VAL);
    out->max_step = read_bound(&f, "max_step", n, HUGE_VAL);
    out->on = (enum tec_limit_on)tec_fields_word(&f, "on", words, sizeof words / sizeof words[0],
                                                 TEC_LIMIT_CLIP);
    check(&f, out);
    return f.status;
}

/* How far a model's normalised values go; the page on limits has the table. */
static double reach(enum tec_norm_mode mode)
{
    static const double far[] = {[TEC_NORM_MEAN_STD] = 10.0,
                                 [TEC_NORM_QUANTILE] = 5.0,
                                 [TEC_NORM_MIN_MAX] = 3.0,
                                 [TEC_NORM_QUANTILE10] = 10.0};
    return far[mode];
}

enum tec_status tec_limits_trained(struct tec_limits *out, const struct tec_norm *norm, int n,
                                   enum tec_limit_on on, struct tec_arena *arena,
                                   struct tec_error *err)
{
    *out = (struct tec_limits){.on = on, .n = n};
    if (norm->mode == TEC_NORM_NONE)
        return TEC_OK;
    double *min = TEC_NEW(arena, (size_t)n, double), *max = TEC_NEW(arena, (size_t)n, double);
    if (!min || !max)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the limits of %d columns", n);
    for (int i = 0; i < n; i++) {
        min[i] = -reach(norm->mode);
        max[i] = reach(norm->mode);
    }
    tec_norm_undo(norm, min, (size_t)n, min);
    tec_norm_undo(norm, max, (size_t)n, max);
    const double *const known[] = {norm->min, norm->max, norm->q01,
                                   norm->q99, norm->q10, norm->q90};
    for (int i = 0; i < n && (size_t)i < norm->n; i++)
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
            min[i] = known[k] ? fmin(min[i], known[k][i]) : min[i];
            max[i] = known[k] ? fmax(max[i], known[k][i]) : max[i];
        }
    out->min = min;
    out->max = max;
    return TEC_OK;
}

static void note(struct tec_beyond *b, const struct tec_limits *l, enum tec_limit_kind kind,
                 int row, int column, double value, double limit)
{
    if (b->n++ > 0)
        return;
    b->on = l->on;
    b->kind = kind;
    b->row = row;
    b->column = column;
    b->value = value;
    b->limit = limit;
}

/* One column towards the command before; `beyond` NULL: told already. */
static bool keep_step(const struct tec_limits *l, int i, int row, const double *before, double *x,
                      struct tec_beyond *beyond)
{
    if (!l->max_step || !before)
        return false;
    double step = l->max_step[i], change = x[i] - before[i];
    if (!isfinite(step) || !(fabs(change) > step + 1e-9 * (step + fabs(before[i]))))
        return false;
    x[i] = before[i] + copysign(step, change);
    if (beyond)
        note(beyond, l, TEC_LIMIT_STEP, row, i, fabs(change), step);
    return true;
}

/* Bounds first: what is within them stays so when it is moved towards the command before. A change
 * that rounding alone makes too large is none, so that a chunk that was held to the limits is
 * within them when it is looked at again. */
bool tec_limits_keep(const struct tec_limits *l, int row, const double *before, double *x,
                     struct tec_beyond *beyond)
{
    bool changed = false;
    for (int i = 0; i < l->n; i++) {
        double was = x[i];
        if (!isfinite(was))
            continue;
        if (l->min && was < l->min[i])
            x[i] = l->min[i];
        else if (l->max && was > l->max[i])
            x[i] = l->max[i];
        bool outside = x[i] != was;
        if (outside)
            note(beyond, l, was < x[i] ? TEC_LIMIT_MIN : TEC_LIMIT_MAX, row, i, was, x[i]);
        outside |= keep_step(l, i, row, before, x, outside ? NULL : beyond);
        changed |= outside;
    }
    return changed;
}

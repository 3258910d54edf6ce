/* words_flow.c - the words of a flow: what depends on the time of a step, rows out of others, the
 * prompt. */
#include "graph/model/unpack.h"
#include "graph/model/words_own.h"

#include <math.h>

enum { MAX_TIMED = 1 << 22 };

void tec_model_call_moves(const struct tec_model_program *p, struct tec_model_call *c)
{
    c->moves |= c->scale >= 0 || c->shift >= 0 || c->gate >= 0;
    for (int i = 0; i < c->n_in; i++)
        c->moves |= p->calls[c->in[i]].moves || p->calls[c->in[i]].timed;
    c->moves &= !c->timed && !c->constant;
}

double tec_model_time(const struct tec_program_flow *flow, int step, int steps)
{
    double share = (double)step / (double)steps;
    if (flow->falls)
        share = flow->f32 ? 1.0 + step * (-1.0 / steps) : 1.0 - share;
    if (flow->f32)
        share = (double)(float)share;
    return flow->buckets ? (double)(int)(share * (double)flow->buckets) : share;
}

enum tec_status tec_builder_noise(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    c->rows = p->flow.horizon;
    c->cols = p->flow.dim;
    c->moves = true;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_time(struct tec_model_program *p, struct tec_model_call *c,
                                 struct tec_error *err)
{
    c->cols = 1;
    return tec_builder_timed(p, c, err);
}

/* Rows of the time are in host memory as float64, for every step, while tables are made. */
enum tec_status tec_builder_timed(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    c->timed = true;
    c->rows = 1;
    p->timed += c->cols;
    return p->timed <= MAX_TIMED
               ? tec_builder_new_rows(p, c, err)
               : tec_fail(err, TEC_MALFORMED,
                          "%d columns: the rows of the time have more than %d in a model", c->cols,
                          MAX_TIMED);
}

enum tec_status tec_builder_waves(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    if (tec_builder_operand(p, c, 0)->word != TEC_WORD_time)
        return tec_fail(err, TEC_MALFORMED, "reads the time alone");
    if (c->cols % 2 != 0 || c->cols < 4)
        return tec_fail(err, TEC_MALFORMED, "cols %d must be even and at least 4", c->cols);
    bool own = c->shortest != 0.0 || c->longest != 0.0;
    if (own && (c->period != 0.0 || c->closed))
        return tec_fail(err, TEC_MALFORMED, "has period, or shortest and longest, not both");
    if (own && !(c->shortest >= 1e-6 && c->longest > c->shortest && c->longest <= 1e9))
        return tec_fail(err, TEC_MALFORMED,
                        "shortest %g must be at least 1e-6, and longest %g above it, at most 1e9",
                        c->shortest, c->longest);
    if (!own && !(c->period > 1.0))
        return tec_fail(err, TEC_MALFORMED, "period %g must be above 1", c->period);
    return tec_builder_timed(p, c, err);
}

/* i / (n - 1) with the rounding of the published code's torch.linspace, which counts from the
 * nearer end, and of whole eights four at a time from the first of them: the sine of a whole number
 * of turns is what rounding leaves of it. */
static double share_of(int i, int n)
{
    double step = 1.0 / (n - 1);
    int first = i < n / 8 * 8 ? i / 4 * 4 : i;
    double base = first < n / 2 ? first * step : 1.0 - (n - 1 - first) * step;
    return base + (i - first) * step;
}

/* Angle i of n. */
static double angle_of(const struct tec_model_call *c, double t, int i, int n)
{
    static const double pi = 3.14159265358979323846264338327950288;
    if (!(c->shortest > 0.0))
        return t * exp(-log(c->period) * i / (c->closed ? n - 1 : n));
    double period = c->shortest * pow(c->longest / c->shortest, share_of(i, n));
    return 1.0 / period * 2.0 * pi * t;
}

void tec_model_call_waves(const struct tec_model_call *c, double t, double *out)
{
    int n = c->cols / 2;
    for (int i = 0; i < n; i++) {
        double angle = angle_of(c, t, i, n);
        out[i] = c->cosines ? cos(angle) : sin(angle);
        out[n + i] = c->cosines ? sin(angle) : cos(angle);
    }
    for (int i = 0; i < c->cols && c->f32; i++)
        out[i] = (double)(float)out[i];
}

enum tec_status tec_builder_columns(struct tec_model_program *p, struct tec_model_call *c,
                                    struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (!x->timed)
        return tec_fail(err, TEC_UNSUPPORTED, "reads rows of the time alone");
    if (c->first > x->cols - c->cols)
        return tec_fail(err, TEC_MALFORMED, "%d columns from %d on, of %d", c->cols, c->first,
                        x->cols);
    return tec_builder_timed(p, c, err);
}

enum tec_status tec_builder_beside(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0),
                                *y = tec_builder_operand(p, c, 1);
    if (p->projects)
        return tec_builder_beside_tower(p, c, err);
    TEC_TRY(tec_builder_need_input(x, err));
    if (!y->timed)
        return tec_fail(err, TEC_UNSUPPORTED, "the second value must be a row of the time");
    if (x->cols > TEC_PARSE_MAX - y->cols)
        return tec_fail(err, TEC_MALFORMED, "%d columns beside %d are more than %d", y->cols,
                        x->cols, TEC_PARSE_MAX);
    tec_builder_same_rows(c, x);
    c->cols = x->cols + y->cols;
    return TEC_OK;
}

enum tec_status tec_builder_take(struct tec_model_program *p, struct tec_model_call *c,
                                 struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (p->projects)
        return tec_builder_take_patches(p, c, err);
    c->constant = x->constant;
    if (!x->constant)
        TEC_TRY(tec_builder_need_input(x, err));
    if (!x->constant && (!p->flow.steps || c->part != TEC_PART_OF_ACTION))
        return tec_fail(err, TEC_UNSUPPORTED, "reads constants, or rows of a flow's action");
    if (c->first > x->rows - c->rows)
        return tec_fail(err, TEC_MALFORMED, "%d rows from %d on, of %d", c->rows, c->first,
                        x->rows);
    c->cols = x->cols;
    if (c->constant)
        TEC_TRY(tec_builder_constant(p, c, err));
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_prompt(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    const struct tec_model_call *row = c->behind < 0 ? NULL : &p->calls[c->behind];
    if (!p->flow.steps || c->part != TEC_PART_OF_PREFILL)
        return tec_fail(err, TEC_UNSUPPORTED, "belongs to the prefill of a flow");
    if (p->hidden >= 0 || p->prompt >= 0)
        return tec_fail(err, TEC_MALFORMED, "the prompt is read already");
    if (row)
        TEC_TRY(tec_builder_need_input(row, err));
    if (row && row->rows != 1)
        return tec_fail(err, TEC_MALFORMED, "%d rows behind it; must be one", row->rows);
    p->prompt = p->n;
    return tec_builder_new_rows(p, c, err);
}

/* words_flow.c - the words of a flow's action: what depends on the time of a step, rows out of
 * others, attention. */
#include "graph/model/parse.h"
#include "graph/model/words_own.h"

#include <math.h>

enum { MAX_TIMED = 1 << 22, MAX_HEADS = 1024, MAX_HEAD_DIM = 4096 };

void tec_model_call_moves(const struct tec_model_program *p, struct tec_model_call *c)
{
    c->moves |= c->scale >= 0 || c->shift >= 0 || c->gate >= 0 || c->time >= 0;
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

/* What the rows of an action's stack are computed by, together with the prompt's keys. */
static enum tec_status check_expert(const struct tec_stack *s, const struct tec_model_call *c,
                                    struct tec_error *err)
{
    bool adaptive = s->norm == TEC_BLOCK_ADAPTIVE_NORM;
    if (s->after || s->names[TEC_ROLE_cross])
        return tec_fail(err, TEC_UNSUPPORTED,
                        "over a prompt needs neither norms behind the halves nor the role cross");
    if (c->position >= 0 || c->over_position >= 0)
        return tec_fail(err, TEC_UNSUPPORTED, "over a prompt has no position: rows are rotated");
    return adaptive == (c->time >= 0)
               ? TEC_OK
               : tec_fail(err, TEC_MALFORMED, "time and adaptive norms come together");
}

enum tec_status tec_builder_over_prompt(struct tec_model_program *p, struct tec_model_call *c,
                                        struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (c->part != TEC_PART_OF_ACTION)
        return tec_fail(err, TEC_UNSUPPORTED, "over a prompt belongs to the action");
    if (p->asks >= 0)
        return tec_fail(err, TEC_UNSUPPORTED, "is a second one; an action has one stack");
    TEC_TRY(tec_builder_need_input(x, err));
    TEC_TRY(check_expert(c->stack, c, err));
    TEC_TRY(tec_builder_row(p, c->time, x, "time", err));
    if (c->lead > x->rows)
        return tec_fail(err, TEC_MALFORMED, "lead %d of %d rows", c->lead, x->rows);
    p->asks = p->n;
    p->seeing = x->rows;
    tec_builder_same_rows(c, x);
    c->cols = x->cols;
    return TEC_OK;
}

static enum tec_status check_heads(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    struct tec_attend *a = &c->attend;
    struct tec_stack *kept = &p->kept;
    a->kv_heads = a->kv_heads ? a->kv_heads : a->heads;
    if (a->heads > MAX_HEADS || a->head_dim > MAX_HEAD_DIM ||
        a->heads * a->head_dim > TEC_PARSE_MAX || a->heads % a->kv_heads != 0)
        return tec_fail(err, TEC_MALFORMED, "%d heads of %d over %d kv_heads", a->heads,
                        a->head_dim, a->kv_heads);
    if (kept->kv_heads && (kept->kv_heads != a->kv_heads || kept->head_dim != a->head_dim))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "keys of %d heads of %d; those of the first attention are %d of %d",
                        a->kv_heads, a->head_dim, kept->kv_heads, kept->head_dim);
    *kept = (struct tec_stack){.layers = kept->layers,
                               .heads = a->heads > kept->heads ? a->heads : kept->heads,
                               .kv_heads = a->kv_heads,
                               .head_dim = a->head_dim};
    if (!(c->norms[0] || c->norms[1]) != !(c->eps > 0.0))
        return tec_fail(err, TEC_MALFORMED, "norms of heads and an eps above 0 come together");
    if (!(fabs(c->offset) < 1e6) || (c->offset != 0.0 && !c->norms[0] && !c->norms[1]))
        return tec_fail(err, TEC_MALFORMED,
                        "offset %g is added to weights of norms of heads; must be below 1e6, and "
                        "there must be such norms",
                        c->offset);
    c->cols = a->heads * a->head_dim;
    return TEC_OK;
}

/* Its projections: three tensors, or one. */
static enum tec_status check_projections(const struct tec_model_call *c, struct tec_error *err)
{
    int n = 0, biases = 0;
    for (int i = 0; i < 3; i++) {
        n += c->joined[i] != NULL;
        biases += c->joined_bias[i] != NULL;
    }
    if (c->fused ? n + biases > 0 : n < 3 || c->fused_bias)
        return tec_fail(err, TEC_MALFORMED,
                        "has q, k and v, each perhaps with a bias, or qkv, perhaps with qkv_bias");
    return !c->fused || (c->over < 0 && !c->packing.kind)
               ? TEC_OK
               : tec_fail(err, TEC_UNSUPPORTED, "qkv beside over, or beside packing");
}

/* Attentions over own rows are numbered apart from those over the prefill's. */
static enum tec_status place_keys(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    c->place = c->over < 0 ? p->n_own++ : p->n_over++;
    if (c->place == TEC_MAX_STACK_LAYERS)
        return tec_fail(err, TEC_UNSUPPORTED, "an action has more than %d of a kind", c->place);
    if (c->place >= p->kept.layers)
        p->kept.layers = c->place + 1;
    p->sees[c->sees] |= c->over >= 0;
    return TEC_OK;
}

enum tec_status tec_builder_attention(struct tec_model_program *p, struct tec_model_call *c,
                                      struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    const struct tec_model_call *over = c->over < 0 ? NULL : &p->calls[c->over];
    if (!p->width && (!p->flow.steps || c->part != TEC_PART_OF_ACTION))
        return tec_fail(err, TEC_UNSUPPORTED, "belongs to a flow's action, or to a layer");
    TEC_TRY(tec_builder_need_input(x, err));
    TEC_TRY(check_projections(c, err));
    TEC_TRY(check_heads(p, c, err));
    if (p->width)
        return tec_builder_layer_attention(p, c, err);
    if (c->attend.scale != 0.0 || c->attend.cap != 0.0 || c->attend.window || c->relative.name ||
        c->rotation.theta > 0.0 || c->packing.kind)
        return tec_fail(
            err, TEC_UNSUPPORTED,
            "scale, cap, window, rotation, relative and packing are of a text's layers");
    if (over && over->word == TEC_WORD_prompt)
        return tec_fail(err, TEC_UNSUPPORTED, "keys of a prompt are for a stack");
    if (over && (over->part == c->part || over->constant))
        return tec_fail(err, TEC_MALFORMED, "over must be what prefill has made");
    if (!over && c->sees != TEC_SEEN_ALL)
        return tec_fail(err, TEC_MALFORMED, "sees says which rows of over: it has none");
    if (!over && x->rows == 1)
        return tec_fail(err, TEC_UNSUPPORTED, "one row alone has nothing to see");
    if (p->seeing && p->seeing != x->rows)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "of %d rows; an action has attention of equally many rows, here %d",
                        x->rows, p->seeing);
    p->seeing = x->rows;
    c->attend.from = over ? over->cols : x->cols;
    TEC_TRY(place_keys(p, c, err));
    int cols = c->cols;
    tec_builder_same_rows(c, x);
    c->cols = cols;
    return TEC_OK;
}

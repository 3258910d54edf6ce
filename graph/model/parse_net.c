/* parse_net.c - the net of convolutions of a description, its pictures, and the encoder and the
 * queries behind it. */
#include "graph/model/parse.h"
#include "ops/window.h"

#include <string.h>

enum { MAX_PIXELS = 1 << 22, MAX_SIDE = 4096, MAX_WINDOW = 31 };

static enum tec_status refuse_step(int at, const char *what, struct tec_error *err)
{
    return tec_fail(err, TEC_MALFORMED, "net.steps: step %d %s", at + 1, what);
}

static enum tec_status parse_norm(struct tec_net_step *s, json_t *json, struct tec_error *err)
{
    double eps = 1e-5;
    if (!json)
        return TEC_OK;
    TEC_UNPACK(json, "net.steps.norm", "{s:s, s:s, s:s, s:s, s?F}", "weight", &s->norm.weight,
               "bias", &s->norm.bias, "mean", &s->norm.mean, "var", &s->norm.var, "eps", &eps);
    s->norm.eps = eps;
    return eps > 0.0 ? TEC_OK
                     : tec_fail(err, TEC_MALFORMED, "net.steps.norm: eps must be positive");
}

/* Steps are counted from 1, and 0 is the picture. The one that adds takes the other's place, so
 * nobody reads that any more. */
static enum tec_status check_step(const struct tec_conv_net *net, int at, struct tec_error *err)
{
    const struct tec_net_step *s = &net->steps[at];
    if (s->from < -1 || s->from >= at || s->add < -1 || s->add >= at)
        return refuse_step(at, "reads or adds a step that is not before it", err);
    if (s->side < 1 || s->side > MAX_WINDOW || s->stride < 1 || s->stride > MAX_WINDOW ||
        s->dilation < 1 || s->dilation > MAX_WINDOW || s->pad < 0 || s->pad > MAX_WINDOW)
        return refuse_step(at, "has side, stride, dilation or pad beyond 1 .. 31", err);
    if (s->kind == TEC_NET_MAX_POOL &&
        (s->weight || s->bias || s->norm.weight || s->add >= 0 || s->relu || 2 * s->pad > s->side))
        return refuse_step(at,
                           "is a max_pool: it has neither tensors, add nor relu, and pad is at "
                           "most half its side",
                           err);
    if (s->kind == TEC_NET_CONV && (!s->weight || (s->bias && s->norm.weight)))
        return refuse_step(at, "is a conv: it has a weight, and bias or norm", err);
    for (int i = 0; i < at; i++)
        if (net->steps[i].add >= 0 && (net->steps[i].add == s->from || net->steps[i].add == s->add))
            return refuse_step(at, "reads a step that another one was added to", err);
    if (s->add >= 0 && net->steps[s->add].out != s->out)
        return refuse_step(at, "adds a step of other channels", err);
    return TEC_OK;
}

static enum tec_status parse_step(struct tec_conv_net *net, json_t *json, struct tec_error *err)
{
    int at = net->n_steps, from = at, add = 0, relu = 0;
    struct tec_net_step *s = &net->steps[net->n_steps++];
    const char *op;
    json_t *norm = NULL;
    *s = (struct tec_net_step){.stride = 1, .dilation = 1};
    TEC_UNPACK(json, "net.steps",
               "{s:s, s?s, s?i, s?i, s?i, s:i, s?i, s?i, s?i, s?s, s?s, s?o, s?b}", "op", &op,
               "name", &s->name, "from", &from, "add", &add, "out", &s->out, "side", &s->side,
               "stride", &s->stride, "pad", &s->pad, "dilation", &s->dilation, "weight", &s->weight,
               "bias", &s->bias, "norm", &norm, "relu", &relu);
    bool pools = strcmp(op, "max_pool") == 0;
    if (!pools && strcmp(op, "conv") != 0)
        return tec_fail(err, TEC_MALFORMED, "net.steps: '%s' is not conv or max_pool", op);
    s->kind = pools ? TEC_NET_MAX_POOL : TEC_NET_CONV;
    s->from = from - 1;
    s->add = add - 1;
    s->relu = relu != 0;
    TEC_TRY(parse_norm(s, norm, err));
    if (s->from >= -1 && s->from < at)
        s->in = s->from < 0 ? 3 : net->steps[s->from].out;
    if (pools)
        s->out = s->in;
    TEC_TRY(tec_parse_positive(s->out, "net.steps", "out", err));
    return check_step(net, at, err);
}

/* The size of every step's result; two that are added have the same. */
static enum tec_status check_picture(const struct tec_conv_net *net,
                                     const struct tec_net_picture *p, struct tec_error *err)
{
    struct tec_net_size sizes[TEC_MAX_NET_STEPS];
    tec_model_net_sizes(net, p, sizes);
    for (int i = 0; i < net->n_steps; i++) {
        const struct tec_net_step *s = &net->steps[i];
        if (sizes[i].h < 1 || sizes[i].w < 1)
            return tec_fail(err, TEC_MALFORMED,
                            "net.pictures: nothing is left of one of %d x %d at step %d", p->w,
                            p->h, i + 1);
        if (s->add >= 0 && (sizes[s->add].h != sizes[i].h || sizes[s->add].w != sizes[i].w))
            return tec_fail(err, TEC_MALFORMED,
                            "net.pictures: step %d makes %d x %d of one of %d x %d, and adds %d x "
                            "%d",
                            i + 1, sizes[i].w, sizes[i].h, p->w, p->h, sizes[s->add].w,
                            sizes[s->add].h);
    }
    return TEC_OK;
}

static enum tec_status parse_picture(struct tec_conv_net *net, json_t *json, int at,
                                     struct tec_error *err)
{
    struct tec_net_picture *p = &net->pictures[at];
    json_t *mean, *std;
    TEC_UNPACK(json, "net.pictures", "{s:i, s:i, s:o, s:o}", "height", &p->h, "width", &p->w,
               "mean", &mean, "std", &std);
    if (p->h < 1 || p->w < 1 || p->h > MAX_SIDE || p->w > MAX_SIDE || p->h * p->w > MAX_PIXELS)
        return tec_fail(err, TEC_MALFORMED, "net.pictures: %d x %d; sides are 1 to %d", p->w, p->h,
                        MAX_SIDE);
    TEC_TRY(tec_parse_channels(p->mean, mean, false, "net.pictures", "mean", err));
    TEC_TRY(tec_parse_channels(p->std, std, true, "net.pictures", "std", err));
    TEC_TRY(check_picture(net, p, err));
    struct tec_net_size sizes[TEC_MAX_NET_STEPS];
    tec_model_net_sizes(net, p, sizes);
    p->out = sizes[net->n_steps - 1];
    return TEC_OK;
}

static enum tec_status parse_net(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_conv_net *net = &model->net;
    json_t *steps, *pictures;
    TEC_UNPACK(json, "net", "{s:o, s:o}", "steps", &steps, "pictures", &pictures);
    size_t n = json_array_size(steps);
    if (n < 1 || n > TEC_MAX_NET_STEPS)
        return tec_fail(err, TEC_MALFORMED, "net.steps: must be 1 .. %d", TEC_MAX_NET_STEPS);
    if (json_array_size(pictures) != (size_t)model->n_slots)
        return tec_fail(err, TEC_MALFORMED, "net.pictures: %zu for %d slots",
                        json_array_size(pictures), model->n_slots);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(parse_step(net, json_array_get(steps, i), err));
    if (net->steps[n - 1].out != model->encoder.stack.width)
        return tec_fail(err, TEC_MALFORMED,
                        "net.steps: the last one makes %d channels, the encoder's rows have %d",
                        net->steps[n - 1].out, model->encoder.stack.width);
    for (int i = 0; i < model->n_slots; i++)
        TEC_TRY(parse_picture(net, json_array_get(pictures, (size_t)i), i, err));
    return TEC_OK;
}

/* A constant, or a dense layer of the next entries of the robot's state. */
static enum tec_status parse_front(struct tec_row_encoder *e, json_t *json, struct tec_error *err)
{
    struct tec_front_row *row = &e->rows[e->n_rows++];
    int entries = 0;
    TEC_UNPACK(json, "encoder.rows", "{s?s, s?s, s?s, s?i}", "constant", &row->constant, "weight",
               &row->dense.weight, "bias", &row->dense.bias, "entries", &entries);
    if (!row->constant == !row->dense.weight || (row->constant && (row->dense.bias || entries)))
        return tec_fail(err, TEC_MALFORMED,
                        "encoder.rows: a row is a constant, or weight, bias and entries of the "
                        "state");
    row->dense.rows = e->stack.width;
    row->dense.cols = entries;
    row->first = e->state;
    row->place = e->places;
    if (row->constant)
        return TEC_OK;
    if (entries < 1 || entries > 1024)
        return tec_fail(err, TEC_MALFORMED, "encoder.rows: entries must be 1 .. 1024, is %d",
                        entries);
    e->state += entries;
    e->places += (entries + 15) / 16 * 16;
    return TEC_OK;
}

static enum tec_status parse_encoder(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_row_encoder *e = &model->encoder;
    json_t *rows, *stack;
    double period;
    TEC_UNPACK(json, "encoder", "{s:o, s:s, s:F, s:o}", "rows", &rows, "position", &e->position,
               "period", &period, "stack", &stack);
    TEC_TRY(tec_parse_stack(&e->stack, stack, "encoder.stack", err));
    size_t n = json_array_size(rows);
    if (n < 1 || n > TEC_MAX_FRONT_ROWS)
        return tec_fail(err, TEC_MALFORMED, "encoder.rows: must be 1 .. %d", TEC_MAX_FRONT_ROWS);
    if (!(period > 1.0) || e->stack.width % 2 != 0)
        return tec_fail(err, TEC_MALFORMED,
                        "encoder: period %g must be above 1, and its width %d even", period,
                        e->stack.width);
    e->period = period;
    for (size_t i = 0; i < n; i++)
        TEC_TRY(parse_front(e, json_array_get(rows, i), err));
    return TEC_OK;
}

static enum tec_status parse_queries(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_queries *q = &model->queries;
    struct tec_flow *f = &model->flow;
    json_t *stack, *out;
    TEC_UNPACK(json, "queries", "{s:i, s:i, s:s, s:o, s:o}", "horizon", &f->horizon, "dim", &f->dim,
               "position", &q->position, "stack", &stack, "out", &out);
    if (f->horizon < 1 || f->horizon > 4096 || f->dim < 1 || f->dim > 1024)
        return tec_fail(err, TEC_MALFORMED,
                        "queries: %d actions of %d values; 4096 of 1024 at most", f->horizon,
                        f->dim);
    f->steps = 1;
    TEC_TRY(tec_parse_stack(&q->stack, stack, "queries.stack", err));
    if (!q->stack.names[TEC_ROLE_cross] || !q->stack.names[TEC_ROLE_final])
        return tec_fail(err, TEC_MALFORMED, "queries.stack.tensors: lacks 'cross' or 'final'");
    if (q->stack.width != model->encoder.stack.width)
        return tec_fail(err, TEC_MALFORMED, "queries.stack: %d columns cannot read rows of %d",
                        q->stack.width, model->encoder.stack.width);
    TEC_TRY(tec_parse_dense(&q->out, out, f->dim, q->stack.width, "queries.out", err));
    return q->out.weight ? TEC_OK : tec_fail(err, TEC_MALFORMED, "queries: lacks out");
}

/* What the rows of these stacks are computed by has been written for plain ones alone. */
static enum tec_status check_plain(const struct tec_stack *s, const char *where,
                                   struct tec_error *err)
{
    bool plain = s->norm == TEC_BLOCK_LAYER_NORM && !(s->theta > 0.0) && !s->scored &&
                 !s->relative.name && !s->packing.kind && !s->names[TEC_ROLE_first] &&
                 s->names[TEC_ROLE_qkv];
    return plain ? TEC_OK
                 : tec_fail(err, TEC_UNSUPPORTED,
                            "%s: an encoder and its queries have layer norms, q, k and v in one "
                            "tensor, and neither rotations, scores, relative distances, packing "
                            "nor a first norm",
                            where);
}

enum tec_status tec_parse_encoded(struct tec_model *model, json_t *net, json_t *encoder,
                                  json_t *queries, struct tec_error *err)
{
    if (!encoder || !queries)
        return tec_fail(err, TEC_MALFORMED, "description: encoder and queries come together");
    TEC_TRY(parse_encoder(model, encoder, err));
    TEC_TRY(parse_queries(model, queries, err));
    TEC_TRY(check_plain(&model->encoder.stack, "encoder.stack", err));
    TEC_TRY(check_plain(&model->queries.stack, "queries.stack", err));
    if (model->encoder.stack.names[TEC_ROLE_cross])
        return tec_fail(err, TEC_MALFORMED, "encoder.stack.tensors: 'cross' is of queries");
    return net ? parse_net(model, net, err) : TEC_OK;
}

/* parse_denoiser.c - rows of features and the denoiser that reads them, every number checked. */
#include "graph/model/parse.h"

enum tec_status tec_parse_norm(struct tec_plain_norm *norm, json_t *json, const char *where,
                               struct tec_error *err)
{
    double eps;
    if (!json)
        return TEC_OK;
    TEC_UNPACK(json, where, "{s:s, s?s, s:F}", "weight", &norm->weight, "bias", &norm->bias, "eps",
               &eps);
    norm->eps = (float)eps;
    return norm->eps > 0.0F ? TEC_OK
                            : tec_fail(err, TEC_MALFORMED, "%s: eps must be positive", where);
}

/* A stack of layer norms whose rows see each other, without positions. */
static enum tec_status check_plain(const struct tec_stack *s, struct tec_error *err)
{
    bool plain = s->norm == TEC_BLOCK_LAYER_NORM && !(s->theta > 0.0) && !s->scored &&
                 !s->relative.name && !s->packing.kind && !s->names[TEC_ROLE_first] &&
                 !s->names[TEC_ROLE_cross] && !s->crosses && !s->after;
    return plain ? TEC_OK
                 : tec_fail(err, TEC_UNSUPPORTED,
                            "features.stack: has layer norms in front of its halves, and neither "
                            "rotations, scores, relative distances, packing, a first norm nor a "
                            "second attention");
}

static enum tec_status parse_features(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_features *f = &model->features;
    json_t *project = NULL, *norm = NULL, *stack = NULL;
    int text = model->text.stack.width;
    f->width = text;
    TEC_UNPACK(json, "features", "{s?i, s?o, s?o, s?o}", "width", &f->width, "project", &project,
               "norm", &norm, "stack", &stack);
    TEC_TRY(tec_parse_positive(f->width, "features", "width", err));
    if (project)
        TEC_TRY(tec_parse_dense(&f->project, project, f->width, text, "features.project", err));
    if (!f->project.weight && f->width != text)
        return tec_fail(err, TEC_MALFORMED,
                        "features: width %d of a text whose rows have %d needs project", f->width,
                        text);
    TEC_TRY(tec_parse_norm(&f->norm, norm, "features.norm", err));
    if (!stack)
        return TEC_OK;
    TEC_TRY(tec_parse_stack(&f->stack, stack, "features.stack", err));
    if (f->stack.width != f->width)
        return tec_fail(err, TEC_MALFORMED, "features.stack: width %d for rows of %d",
                        f->stack.width, f->width);
    return check_plain(&f->stack, err);
}

/* `n` layers of categories in a list; sizes[i] are the columns of layer i, sizes[i + 1] its rows.
 */
static enum tec_status parse_layers(struct tec_dense *out, json_t *json, int n, const int *sizes,
                                    const char *where, struct tec_error *err)
{
    if (json_array_size(json) != (size_t)n)
        return tec_fail(err, TEC_MALFORMED, "%s: must be a list of %d layers", where, n);
    for (int i = 0; i < n; i++) {
        TEC_TRY(tec_parse_dense(&out[i], json_array_get(json, (size_t)i), sizes[i + 1], sizes[i],
                                where, err));
        if (!out[i].weight || !out[i].bias)
            return tec_fail(err, TEC_MALFORMED, "%s: layer %d must have weight and bias", where, i);
    }
    return TEC_OK;
}

static enum tec_status parse_table(struct tec_table_rows *t, json_t *json, int most,
                                   const char *where, struct tec_error *err)
{
    if (!json)
        return TEC_OK;
    TEC_UNPACK(json, where, "{s:s, s:i}", "name", &t->name, "rows", &t->rows);
    return t->rows >= 1 && t->rows <= most
               ? TEC_OK
               : tec_fail(err, TEC_MALFORMED, "%s: rows must be 1 .. %d, is %d", where, most,
                          t->rows);
}

/* What the layers of a denoiser that cross read. */
static enum tec_status parse_reads(struct tec_model *model, json_t *pictured, struct tec_error *err)
{
    struct tec_stack *s = &model->denoiser.stack;
    int text = tec_model_mark(model);
    if (s->norm != TEC_BLOCK_SCALED_NORM || !s->crosses || s->scored)
        return tec_fail(err, TEC_MALFORMED,
                        "denoiser.stack: must have norm scaled, crossed layers and no scores");
    s->reads = model->features.width;
    s->split = pictured != NULL;
    if (s->split && text < 0)
        return tec_fail(err, TEC_MALFORMED,
                        "denoiser.pictured: rows of pictures apart from others need text.picture");
    return tec_parse_set(s->pictured, s, pictured, "denoiser", "pictured", err);
}

/* Numbers that are the flow's of other models, too. */
static enum tec_status check_numbers(const struct tec_model *m, int inner, int output,
                                     struct tec_error *err)
{
    const struct tec_flow *f = &m->flow;
    const struct tec_denoiser *d = &m->denoiser;
    const struct {
        const char *name;
        int value;
    } numbers[] = {{"horizon", f->horizon}, {"dim", f->dim},
                   {"steps", f->steps},     {"inner", inner},
                   {"output", output},      {"state_dim", f->state_dim},
                   {"buckets", d->buckets}, {"categories", d->categories}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        TEC_TRY(tec_parse_positive(numbers[i].value, "denoiser", numbers[i].name, err));
    if (f->horizon > 4096 || f->steps > 1000 || !(d->period > 1.0) || !(d->eps > 0.0F))
        return tec_fail(err, TEC_MALFORMED,
                        "denoiser: horizon %d, steps %d, period %g or eps out of range", f->horizon,
                        f->steps, d->period);
    if (d->category < 0 || d->category >= d->categories)
        return tec_fail(err, TEC_MALFORMED, "denoiser: category must be 0 .. %d, is %d",
                        d->categories - 1, d->category);
    return TEC_OK;
}

/* The layers around the stack. */
struct parts {
    json_t *state, *in, *out, *time, *scale, *project, *position, *future;
    int inner, output, frequencies;
};

static enum tec_status parse_parts(struct tec_model *model, const struct parts *p,
                                   struct tec_error *err)
{
    struct tec_denoiser *d = &model->denoiser;
    const struct tec_flow *f = &model->flow;
    int w = d->stack.width;
    const int state[] = {f->state_dim, p->inner, w}, out[] = {p->output, p->inner, f->dim};
    const int in0[] = {f->dim, w}, in1[] = {2 * w, w}, in2[] = {w, w};
    const int *const in[] = {in0, in1, in2};
    if (w % 2 != 0 || p->frequencies < 2 || p->frequencies > 4096)
        return tec_fail(err, TEC_MALFORMED,
                        "denoiser: an even width and 2 .. 4096 frequencies, not %d and %d", w,
                        p->frequencies);
    if (json_array_size(p->in) != 3 || json_array_size(p->time) != 2)
        return tec_fail(err, TEC_MALFORMED, "denoiser: 'in' is a list of 3 layers, 'time' of 2");
    TEC_TRY(parse_layers(d->state, p->state, 2, state, "denoiser.state", err));
    TEC_TRY(parse_layers(d->out, p->out, 2, out, "denoiser.out", err));
    for (size_t i = 0; i < 3; i++) {
        TEC_TRY(tec_parse_dense(&d->in[i], json_array_get(p->in, i), in[i][1], in[i][0],
                                "denoiser.in", err));
        if (!d->in[i].weight || !d->in[i].bias)
            return tec_fail(err, TEC_MALFORMED, "denoiser.in: must have weights and biases");
    }
    TEC_TRY(tec_parse_dense(&d->time1, json_array_get(p->time, 0), w, 2 * p->frequencies,
                            "denoiser.time", err));
    TEC_TRY(tec_parse_dense(&d->time2, json_array_get(p->time, 1), w, w, "denoiser.time", err));
    TEC_TRY(tec_parse_dense(&d->scale, p->scale, 2 * w, w, "denoiser.scale", err));
    TEC_TRY(tec_parse_dense(&d->project, p->project, p->output, w, "denoiser.project", err));
    if (!d->time1.weight || !d->time2.weight || !d->scale.weight || !d->project.weight)
        return tec_fail(err, TEC_MALFORMED, "denoiser: lacks time, scale or project");
    TEC_TRY(parse_table(&d->position, p->position, TEC_PARSE_MAX, "denoiser.position", err));
    if (d->position.rows < f->horizon)
        return tec_fail(err, TEC_MALFORMED, "denoiser.position: %d rows for %d actions",
                        d->position.rows, f->horizon);
    return parse_table(&d->future, p->future, 1024, "denoiser.future", err);
}

enum tec_status tec_parse_denoiser(struct tec_model *model, json_t *features, json_t *denoiser,
                                   struct tec_error *err)
{
    struct tec_denoiser *d = &model->denoiser;
    struct tec_flow *f = &model->flow;
    struct parts p = {0};
    json_t *stack, *pictured = NULL;
    double eps;
    TEC_TRY(parse_features(model, features, err));
    TEC_UNPACK(denoiser, "denoiser",
               "{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:F, s:F, s:o, s:o, s:o, s:o, "
               "s:o, s:o, s:o, s?o, s:o, s?o}",
               "horizon", &f->horizon, "dim", &f->dim, "steps", &f->steps, "state_dim",
               &f->state_dim, "categories", &d->categories, "category", &d->category, "inner",
               &p.inner, "output", &p.output, "buckets", &d->buckets, "frequencies", &p.frequencies,
               "period", &d->period, "eps", &eps, "state", &p.state, "in", &p.in, "out", &p.out,
               "time", &p.time, "scale", &p.scale, "project", &p.project, "position", &p.position,
               "future", &p.future, "stack", &stack, "pictured", &pictured);
    d->eps = (float)eps;
    TEC_TRY(check_numbers(model, p.inner, p.output, err));
    TEC_TRY(tec_parse_stack(&d->stack, stack, "denoiser.stack", err));
    TEC_TRY(parse_reads(model, pictured, err));
    return parse_parts(model, &p, err);
}

/* parse_vision.c - the towers of a description and the projector behind them. */
#include "graph/model/parse.h"

#include <math.h>
#include <string.h>

enum tec_status tec_parse_channels(float out[3], json_t *json, bool divides, const char *where,
                                   const char *what, struct tec_error *err)
{
    for (size_t i = 0; i < 3; i++) {
        const json_t *value = json_array_get(json, i);
        double x = json_number_value(value);
        if (json_array_size(json) != 3 || !json_is_number(value) || !isfinite((float)x) ||
            (divides && !(x > 1e-6)))
            return tec_fail(err, TEC_MALFORMED, "%s: %s must be three %snumbers", where, what,
                            divides ? "positive " : "");
        out[i] = (float)x;
    }
    return TEC_OK;
}

static enum tec_status parse_prefix(struct tec_tower *t, json_t *json, struct tec_error *err)
{
    size_t n = json_array_size(json);
    if (n > TEC_MAX_PREFIX)
        return tec_fail(err, TEC_MALFORMED, "vision.towers: prefix has more than %d tensors",
                        TEC_MAX_PREFIX);
    for (size_t i = 0; i < n; i++) {
        struct tec_table_rows *p = &t->prefix[i];
        TEC_UNPACK(json_array_get(json, i), "vision.towers.prefix", "{s:s, s:i}", "name", &p->name,
                   "rows", &p->rows);
        if (p->rows < 1 || p->rows > 1024)
            return tec_fail(err, TEC_MALFORMED,
                            "vision.towers.prefix: '%s' must have 1 .. 1024 rows, is given %d",
                            p->name, p->rows);
        t->prefix_rows += p->rows;
        t->n_prefix++;
    }
    return TEC_OK;
}

static enum tec_status parse_size(struct tec_vision *v, int image_size, int patch,
                                  struct tec_error *err)
{
    TEC_TRY(tec_parse_positive(image_size, "vision", "image_size", err));
    TEC_TRY(tec_parse_positive(patch, "vision", "patch", err));
    if (image_size > 4096 || patch > image_size || image_size % patch != 0)
        return tec_fail(err, TEC_MALFORMED,
                        "vision: image_size %d does not divide into patches of %d", image_size,
                        patch);
    if (v->image_size && (v->image_size != image_size || v->patch != patch))
        return tec_fail(err, TEC_MALFORMED,
                        "vision.towers: pictures of %d in patches of %d, and of %d in patches of "
                        "%d; all towers must see the same patches",
                        v->image_size, v->patch, image_size, patch);
    int side = image_size / patch;
    v->image_size = image_size;
    v->patch = patch;
    v->tokens = side * side;
    return TEC_OK;
}

static enum tec_status parse_tower(struct tec_vision *v, json_t *json, struct tec_error *err)
{
    struct tec_tower *t = &v->towers[v->n_towers++];
    json_t *patch_embed, *stack, *mean, *std, *prefix = NULL;
    int image_size, patch;
    TEC_UNPACK(json, "vision.towers", "{s:i, s:i, s:o, s:o, s:o, s:s, s?o, s:o}", "image_size",
               &image_size, "patch", &patch, "mean", &mean, "std", &std, "patch_embed",
               &patch_embed, "position", &t->position, "prefix", &prefix, "stack", &stack);
    TEC_TRY(parse_size(v, image_size, patch, err));
    TEC_TRY(tec_parse_channels(t->mean, mean, false, "vision.towers", "mean", err));
    TEC_TRY(tec_parse_channels(t->std, std, true, "vision.towers", "std", err));
    TEC_TRY(parse_prefix(t, prefix, err));
    TEC_TRY(tec_parse_stack(&t->stack, stack, "vision.stack", err));
    t->final = t->stack.names[TEC_ROLE_final] != NULL;
    if (t->stack.theta != 0.0)
        return tec_fail(err, TEC_MALFORMED,
                        "vision.stack: theta %g; a picture's rows have no positions to rotate by",
                        t->stack.theta);
    TEC_TRY(tec_parse_dense(&t->patch_embed, patch_embed, t->stack.width, 3 * patch * patch,
                            "vision.patch_embed", err));
    if (!t->patch_embed.weight)
        return tec_fail(err, TEC_MALFORMED, "vision: lacks patch_embed");
    return TEC_OK;
}

/* The first layer reads the features of all towers, the last makes rows of the text. */
static enum tec_status parse_projector(struct tec_vision *v, json_t *json, int width,
                                       struct tec_error *err)
{
    size_t n = json_array_size(json);
    int cols = 0;
    if (n < 1 || n > TEC_MAX_PROJECTOR)
        return tec_fail(err, TEC_MALFORMED, "vision: projector must be 1 .. %d layers",
                        TEC_MAX_PROJECTOR);
    for (int i = 0; i < v->n_towers; i++)
        cols += v->towers[i].stack.width;
    for (size_t i = 0; i < n; i++) {
        struct tec_dense *d = &v->projector[i];
        int rows = width;
        TEC_UNPACK(json_array_get(json, i), "vision.projector", "{s:s, s?s, s?i}", "weight",
                   &d->weight, "bias", &d->bias, "rows", &rows);
        TEC_TRY(tec_parse_positive(rows, "vision.projector", "rows", err));
        if (i + 1 == n && rows != width)
            return tec_fail(err, TEC_MALFORMED,
                            "vision.projector: the last layer has %d rows; the text's rows have %d "
                            "columns",
                            rows, width);
        d->rows = rows;
        d->cols = cols;
        cols = rows;
        v->n_projector++;
    }
    return TEC_OK;
}

enum tec_status tec_parse_vision(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_vision *v = &model->vision;
    json_t *towers, *projector;
    const char *activation = NULL;
    TEC_UNPACK(json, "vision", "{s:o, s:o, s?s}", "towers", &towers, "projector", &projector,
               "activation", &activation);
    size_t n = json_array_size(towers);
    if (n < 1 || n > TEC_MAX_TOWERS)
        return tec_fail(err, TEC_MALFORMED, "vision: towers must be 1 .. %d", TEC_MAX_TOWERS);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(parse_tower(v, json_array_get(towers, i), err));
    TEC_TRY(tec_parse_activation(&v->activation, activation, "vision", err));
    return parse_projector(v, projector, model->text.stack.width, err);
}

/* parse_vision.c - the towers of a description and the projector behind them. */
#include "graph/model/parse.h"
#include "graph/model/program.h"

#include <math.h>
#include <string.h>

static enum tec_status parse_channels(float out[3], json_t *json, bool divides, const char *where,
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

/* `rest`: pixels at the right and at the bottom that fill no patch are left out. */
static enum tec_status parse_size(struct tec_vision *v, int image_size, int patch, bool rest,
                                  struct tec_error *err)
{
    TEC_TRY(tec_parse_positive(image_size, "vision", "image_size", err));
    TEC_TRY(tec_parse_positive(patch, "vision", "patch", err));
    if (image_size > 4096 || patch > image_size || (image_size % patch != 0 && !rest))
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
    v->patches = side * side;
    return TEC_OK;
}

/* Positions of a square that differs from the picture's are taken by their share of the side. */
static enum tec_status parse_positions(struct tec_tower *t, int side, const struct tec_vision *v,
                                       struct tec_error *err)
{
    t->position_side = side ? side : v->image_size / v->patch;
    if (t->position_side < 1 || t->position_side > TEC_MAX_POSITION_SIDE)
        return tec_fail(err, TEC_MALFORMED, "vision.towers: position_side must be 1 .. %d, is %d",
                        TEC_MAX_POSITION_SIDE, side);
    return TEC_OK;
}

static enum tec_status parse_tower(struct tec_vision *v, json_t *json, struct tec_error *err)
{
    struct tec_tower *t = &v->towers[v->n_towers++];
    json_t *patch_embed, *mean, *std, *prefix = NULL;
    int image_size, patch, side = 0, rest = 0, linear = 0, smooth = 0;
    TEC_UNPACK(json, "vision.towers", "{s:i, s:i, s?b, s:o, s:o, s:o, s:s, s?i, s?o, s?b, s?b}",
               "image_size", &image_size, "patch", &patch, "rest", &rest, "mean", &mean, "std",
               &std, "patch_embed", &patch_embed, "position", &t->position, "position_side", &side,
               "prefix", &prefix, "linear", &linear, "smooth", &smooth);
    t->linear = linear != 0;
    t->smooth = smooth != 0;
    TEC_TRY(parse_size(v, image_size, patch, rest != 0, err));
    TEC_TRY(parse_positions(t, side, v, err));
    TEC_TRY(parse_channels(t->mean, mean, false, "vision.towers", "mean", err));
    TEC_TRY(parse_channels(t->std, std, true, "vision.towers", "std", err));
    TEC_TRY(parse_prefix(t, prefix, err));
    if (!t->program)
        return tec_fail(err, TEC_MALFORMED, "vision.towers: lacks the function layer");
    TEC_TRY(tec_model_layers_check(t->program, &t->stack, err));
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
        cols += v->towers[i].stack.width * v->shuffle * v->shuffle;
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

/* Squares of patches that become one row: whole ones, of one tower, with nothing before them. */
static enum tec_status parse_shuffle(struct tec_vision *v, struct tec_error *err)
{
    int side = v->image_size / v->patch;
    if (v->shuffle < 1 || v->shuffle > 16 || side % v->shuffle != 0)
        return tec_fail(err, TEC_MALFORMED,
                        "vision: shuffle %d; must be 1 .. 16 and divide a side of %d patches",
                        v->shuffle, side);
    if (v->shuffle > 1 && (v->n_towers > 1 || v->towers[0].prefix_rows))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "vision: shuffle with two towers, or with tensors before the patches");
    v->tokens = v->patches / (v->shuffle * v->shuffle);
    return TEC_OK;
}

/* [[height, width], ...] of the slots: whole squares of patches, told apart by tokens that stand
 * for a picture each. */
static enum tec_status parse_sizes(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_vision *v = &model->vision;
    int whole = v->patch * v->shuffle, most = v->image_size / whole * v->shuffle;
    if (!json)
        return TEC_OK;
    if (!model->text.marks || v->n_towers > 1 || v->towers[0].prefix_rows || v->floats)
        return tec_fail(err, TEC_MALFORMED,
                        "vision.sizes: need text.picture, one tower and pictures u8");
    if (json_array_size(json) != (size_t)model->n_slots)
        return tec_fail(err, TEC_MALFORMED, "vision.sizes: must be %d, one a slot", model->n_slots);
    v->patches = 0;
    for (int i = 0; i < model->n_slots; i++) {
        struct tec_picture_size *s = &v->sizes[i];
        TEC_UNPACK(json_array_get(json, (size_t)i), "vision.sizes", "[i, i]", &s->h, &s->w);
        int h = s->h / whole * v->shuffle, w = s->w / whole * v->shuffle;
        if (h < 1 || w < 1 || h > most || w > most || s->h % whole || s->w % whole)
            return tec_fail(err, TEC_MALFORMED,
                            "vision.sizes: %d x %d must be multiples of %d up to image_size %d",
                            s->h, s->w, whole, v->image_size);
        v->patches = h * w > v->patches ? h * w : v->patches;
    }
    v->n_sizes = model->n_slots;
    v->tokens = v->patches / (v->shuffle * v->shuffle);
    return TEC_OK;
}

static enum tec_status parse_ids(int *ids, int *n, json_t *json, const char *what, int vocab,
                                 struct tec_error *err)
{
    size_t count = json_array_size(json);
    if (count > TEC_MAX_AROUND)
        return tec_fail(err, TEC_MALFORMED, "vision.around: %s has more than %d tokens", what,
                        TEC_MAX_AROUND);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(json, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= vocab)
            return tec_fail(err, TEC_MALFORMED, "vision.around: %s must be tokens 0 .. %d", what,
                            vocab - 1);
        ids[(*n)++] = (int)json_integer_value(id);
    }
    return TEC_OK;
}

/* Tokens around each picture, and how many pictures that are not there have them too. */
static enum tec_status parse_around(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_vision *v = &model->vision;
    json_t *before, *behind;
    if (!json)
        return TEC_OK;
    TEC_UNPACK(json, "vision.around", "{s:o, s:o, s?i}", "before", &before, "behind", &behind,
               "blanks", &v->blanks);
    TEC_TRY(parse_ids(v->before, &v->n_before, before, "before", model->text.vocab, err));
    TEC_TRY(parse_ids(v->behind, &v->n_behind, behind, "behind", model->text.vocab, err));
    if (v->n_before + v->n_behind == 0 || v->blanks < 0 || v->blanks > model->n_slots)
        return tec_fail(err, TEC_MALFORMED,
                        "vision.around: must have tokens before or behind, and blanks of 0 .. %d, "
                        "is %d",
                        model->n_slots, v->blanks);
    if (model->text.mask != TEC_MASK_BIDIR || model->text.lead)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "vision.around: need mask bidir and no token that leads");
    return TEC_OK;
}

static enum tec_status parse_pictures(struct tec_vision *v, const char *pictures, double scale,
                                      struct tec_error *err)
{
    v->floats = strcmp(pictures, "f32") == 0;
    v->scale = (float)scale;
    if (!v->floats && strcmp(pictures, "u8") != 0)
        return tec_fail(err, TEC_MALFORMED, "vision.pictures: '%s' is not u8 or f32", pictures);
    return v->scale > 0.0F && scale <= 1e6
               ? TEC_OK
               : tec_fail(err, TEC_MALFORMED, "vision.scale: must be above 0, is %g", scale);
}

/* {weight, bias, eps}, or NULL where there is no such norm. */
static enum tec_status parse_norm(struct tec_plain_norm *norm, json_t *json, const char *where,
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

enum tec_status tec_parse_vision(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_vision *v = &model->vision;
    json_t *towers, *projector, *around = NULL, *norm = NULL, *sizes = NULL;
    int planes = 0;
    const char *activation = NULL, *pictures = "u8";
    double scale = 1.0;
    v->shuffle = 1;
    TEC_UNPACK(json, "vision", "{s:o, s:o, s?s, s?i, s?s, s?F, s?o, s?o, s?o, s?b}", "towers",
               &towers, "projector", &projector, "activation", &activation, "shuffle", &v->shuffle,
               "pictures", &pictures, "scale", &scale, "around", &around, "norm", &norm, "sizes",
               &sizes, "planes", &planes);
    v->planes = planes != 0 && v->shuffle > 1;
    TEC_TRY(parse_norm(&v->norm, norm, "vision.norm", err));
    TEC_TRY(parse_pictures(v, pictures, scale, err));
    size_t n = json_array_size(towers);
    if (n < 1 || n > TEC_MAX_TOWERS)
        return tec_fail(err, TEC_MALFORMED, "vision: towers must be 1 .. %d", TEC_MAX_TOWERS);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(parse_tower(v, json_array_get(towers, i), err));
    TEC_TRY(parse_shuffle(v, err));
    TEC_TRY(parse_sizes(model, sizes, err));
    if (norm && (v->n_towers > 1 || v->towers[0].prefix_rows))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "vision.norm: with two towers, or with tensors before the patches");
    TEC_TRY(parse_around(model, around, err));
    TEC_TRY(tec_parse_activation(&v->activation, activation, "vision", err));
    return parse_projector(v, projector, model->text.stack.width, err);
}

/* parse_vision.c - the towers of a description, and what stands around pictures. */
#include "graph/model/parse_vision.h"
#include "graph/model/program.h"
#include "graph/model/unpack.h"

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

/* The sizes that its program says. */
static enum tec_status take_patches(struct tec_vision *v, struct tec_tower *t,
                                    struct tec_error *err)
{
    const struct tec_model_program *p = t->program;
    if (v->image_size && (v->image_size != p->image || v->patch != p->patch))
        return tec_fail(err, TEC_MALFORMED,
                        "vision.towers: pictures of %d in patches of %d, and of %d in patches of "
                        "%d; all towers must see the same patches",
                        v->image_size, v->patch, p->image, p->patch);
    v->image_size = p->image;
    v->patch = p->patch;
    v->patches = p->patches;
    t->prefix_rows = p->before;
    return TEC_OK;
}

static enum tec_status parse_tower(struct tec_vision *v, json_t *json, struct tec_error *err)
{
    struct tec_tower *t = &v->towers[v->n_towers++];
    json_t *mean, *std;
    TEC_UNPACK(json, "vision.towers", "{s:o, s:o}", "mean", &mean, "std", &std);
    TEC_TRY(parse_channels(t->mean, mean, false, "vision.towers", "mean", err));
    TEC_TRY(parse_channels(t->std, std, true, "vision.towers", "std", err));
    if (!t->program)
        return tec_fail(err, TEC_MALFORMED, "vision.towers: lacks the function layer");
    TEC_TRY(take_patches(v, t, err));
    return tec_model_layers_check(t->program, &t->stack, err);
}

/* Numbers that are added to patches are as many as these: interpolated, where they differ. */
static enum tec_status check_smooth(const struct tec_model_program *p, struct tec_error *err)
{
    for (int i = 0; i < p->layers[0].first; i++) {
        const struct tec_model_call *c = &p->calls[i];
        if (c->constant && !(c->word == TEC_WORD_grid && (c->smooth || c->corners)))
            return tec_model_call_fail(c, err,
                                       "vision.sizes: of pictures of several sizes positions are a "
                                       "grid with smooth or corners");
    }
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
    TEC_TRY(check_smooth(v->towers[0].program, err));
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

enum tec_status tec_parse_vision(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_vision *v = &model->vision;
    json_t *towers, *around = NULL, *sizes = NULL;
    const char *pictures = "u8";
    TEC_UNPACK(json, "vision", "{s:o, s?s, s?o, s?o}", "towers", &towers, "pictures", &pictures,
               "around", &around, "sizes", &sizes);
    v->floats = strcmp(pictures, "f32") == 0;
    if (!v->floats && strcmp(pictures, "u8") != 0)
        return tec_fail(err, TEC_MALFORMED, "vision.pictures: '%s' is not u8 or f32", pictures);
    size_t n = json_array_size(towers);
    if (n < 1 || n > TEC_MAX_TOWERS)
        return tec_fail(err, TEC_MALFORMED, "vision: towers must be 1 .. %d", TEC_MAX_TOWERS);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(parse_tower(v, json_array_get(towers, i), err));
    TEC_TRY(tec_model_project_check(v->project, model->text.stack.width, err));
    v->shuffle = v->project->squares;
    v->tokens = v->patches / (v->shuffle * v->shuffle);
    TEC_TRY(parse_sizes(model, sizes, err));
    return parse_around(model, around, err);
}

/* pictures.c - what a LeRobot checkpoint says of its pictures: names in the model's order, sizes,
 * and the numbers that a channel is normalised with. */
#include "graph/model/pictures.h"

#include <string.h>

/* (x - mean) / std of each channel, x in 0 .. 1, from the statistics and their mode. */
static enum tec_status add_norm(json_t *picture, const struct tec_checkpoint *c, const char *name,
                                struct tec_arena *arena, struct tec_error *err)
{
    struct tec_norm norm = {.mode = TEC_NORM_NONE};
    json_t *mean = json_array(), *std = json_array();
    enum tec_status status = tec_checkpoint_norm_lerobot(c, &norm, name, arena, err);
    if (status == TEC_NOT_FOUND) /* no step that normalises */
        status = TEC_OK;
    if (status == TEC_OK && norm.mode != TEC_NORM_NONE && norm.n != 3)
        status = tec_fail(err, TEC_MALFORMED, "%s: the statistics of '%s' have %zu channels",
                          c->root, name, norm.n);
    const char *missing = status == TEC_OK ? tec_norm_missing(&norm) : NULL;
    if (missing)
        status = tec_fail(err, TEC_MALFORMED, "%s: the statistics of '%s' lack %s", c->root, name,
                          missing);
    for (size_t i = 0; i < 3 && status == TEC_OK; i++) {
        double middle, width;
        tec_norm_line(&norm, i, &middle, &width);
        if (json_array_append_new(mean, json_real(middle)) != 0 ||
            json_array_append_new(std, json_real(width)) != 0)
            status = tec_fail(err, TEC_NO_MEMORY, "no memory for a picture's statistics");
    }
    if (json_object_set_new(picture, "mean", mean) != 0 ||
        json_object_set_new(picture, "std", std) != 0)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for a picture's statistics");
    return status;
}

static enum tec_status add(json_t *list, const struct tec_checkpoint *c, const char *name,
                           const json_t *feature, struct tec_arena *arena, struct tec_error *err)
{
    const json_t *shape = json_object_get(feature, "shape");
    json_int_t h = json_integer_value(json_array_get(shape, 1));
    json_int_t w = json_integer_value(json_array_get(shape, 2));
    json_t *picture = json_pack("{s:s, s:I, s:I}", "name", name, "height", h, "width", w);
    if (!picture || json_array_append_new(list, picture) != 0)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a picture");
    return add_norm(picture, c, name, arena, err);
}

enum tec_status tec_model_pictures(json_t **out, const struct tec_checkpoint *c,
                                   struct tec_heap *heap, struct tec_error *err)
{
    json_t *features = json_object_get(c->config, "input_features"), *feature, *list = json_array();
    const char *name;
    struct tec_arena arena;
    enum tec_status status =
        list ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a list of pictures");
    tec_arena_init(&arena, heap);
    json_object_foreach(features, name, feature)
    {
        const char *type = json_string_value(json_object_get(feature, "type"));
        if (status == TEC_OK && type && strcmp(type, "VISUAL") == 0)
            status = add(list, c, name, feature, &arena, err);
    }
    tec_arena_finish(&arena);
    if (status != TEC_OK) {
        json_decref(list);
        return status;
    }
    *out = list;
    return TEC_OK;
}

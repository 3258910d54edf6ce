/* openvla_inputs.c - pictures and prompts of a case, as the model's own code would prepare them. */
#include "tests/judge/images.h"
#include "tests/judge/openvla.h"

#include <string.h>

const uint8_t *tec_openvla_picture(struct tec_pi *pi, const char *name, struct tec_error *err)
{
    struct tec_image image;
    struct tec_processor processor;
    int size = pi->model->vision.image_size;
    if (tec_images_picture(&image, pi->v, pi->inputs, name, err) != TEC_OK ||
        tec_checkpoint_processor(pi->checkpoint, &processor, err) != TEC_OK)
        return NULL;
    struct tec_reshape_spec spec = {.kind = processor.kind,
                                    .in_height = image.height,
                                    .in_width = image.width,
                                    .height = size,
                                    .width = size};
    memcpy(spec.fill, processor.fill, sizeof spec.fill);
    const struct tec_reshape *plan = NULL;
    if (tec_reshape_plan(&plan, &spec, pi->v->arena, err) != TEC_OK)
        return NULL;
    size_t bytes = (size_t)size * (size_t)size * 3;
    unsigned char *out = tec_arena_push(pi->v->arena, bytes, 1, 16);
    void *scratch = tec_arena_push(pi->v->arena, tec_reshape_scratch(plan) + 1, 1, 16);
    if (!out || !scratch) {
        tec_fail(err, TEC_NO_MEMORY, "no memory for picture '%s'", name);
        return NULL;
    }
    tec_reshape_run(plan, out, image.pixels, scratch);
    return out;
}

const int *tec_openvla_prompt(struct tec_pi *pi, const char *name, int *n, struct tec_error *err)
{
    const struct tec_stored *t = tec_tensors_find(pi->inputs, name);
    const json_t *empty = json_object_get(pi->v->json, "empty_token_id");
    size_t ids = t && t->dtype == TEC_I32 ? t->bytes / 4 : 0;
    int *out = ids && ids < 65536 ? TEC_NEW(pi->v->arena, ids + 1, int) : NULL;
    if (!out || !json_is_integer(empty)) {
        tec_fail(err, TEC_NOT_FOUND, "inputs: no I32 tensor '%s', or the case lacks empty_token_id",
                 name);
        return NULL;
    }
    if (tec_tensors_read(pi->inputs, t, 0, out, t->bytes, err) != TEC_OK)
        return NULL;
    *n = (int)ids;
    if (out[ids - 1] != (int)json_integer_value(empty))
        out[(*n)++] = (int)json_integer_value(empty);
    return out;
}

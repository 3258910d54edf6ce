/* launch_pictures.c - pictures of a prompt: the tokens around them, the rows that they become, and
 * where the device finds them. */
#include "graph/run/launch/launch_rows.h"

int tec_prefix_pairs(const struct tec_vision *v, const struct tec_prefix_input *o)
{
    if (v->n_before + v->n_behind == 0)
        return 0;
    return o->n_around ? o->n_around : o->n_pictures;
}

int tec_prefix_around(const struct tec_vision *v, const struct tec_prefix_input *o)
{
    return tec_prefix_pairs(v, o) * (v->n_before + v->n_behind);
}

int tec_prefix_rows(const struct tec_plan *plan, const struct tec_prefix_input *o)
{
    if (tec_model_asks(plan->model))
        return tec_model_encoded(plan->model);
    const struct tec_vision *v = &plan->model->vision;
    int marks = plan->model->text.marks ? o->n_pictures : 0; /* ids that are no rows */
    return tec_vision_tokens(v, o->n_pictures) + tec_prefix_around(v, o) + o->n_text - marks +
           tec_head_rows(plan->model);
}

bool tec_prefix_sees(const struct tec_prefix_input *o, int pair)
{
    return !o->n_around || (o->around >> pair & 1U);
}

enum tec_status tec_prefix_check_around(const struct tec_plan *plan,
                                        const struct tec_prefix_input *o, struct tec_error *err)
{
    int pairs = tec_prefix_pairs(&plan->model->vision, o), pictures = 0;
    for (int i = 0; i < pairs && i < TEC_MAX_CAMERAS; i++)
        pictures += tec_prefix_sees(o, i);
    if (pairs > plan->model->n_slots || (pairs && pictures != o->n_pictures))
        return tec_fail(err, TEC_INVALID,
                        "%d pictures between %d pairs of tokens around them of %d slots",
                        o->n_pictures, pairs, plan->model->n_slots);
    return TEC_OK;
}

void tec_give_picture(const struct tec_plan *plan, const struct tec_plan_part *part, int i,
                      const uint8_t *picture)
{
    const struct tec_prefix_table *t = &part->prefix;
    struct tec_picture_size size = tec_model_picture(plan->model, i);
    if (t->pixels)
        tec_device_upload(
            plan->device, part->stream, t->pixels + (size_t)i * t->picture_size, picture,
            (size_t)size.h * (size_t)size.w * 3 * (plan->model->vision.floats ? sizeof(float) : 1));
    else
        t->picture[i] = picture;
}

int tec_give_pictures(const struct tec_plan *plan, const struct tec_plan_part *part,
                      const struct tec_prefix_place *places, int n)
{
    const struct tec_prefix_table *t = &part->prefix;
    const struct tec_vision *v = &plan->model->vision;
    int pictures = 0;
    for (int p = 0; p < n; p++)
        for (int i = 0; i < places[p].input->n_pictures; i++)
            tec_give_picture(plan, part, pictures++, places[p].input->picture[i]);
    int patches = tec_vision_patches(v, pictures);
    *t->n_pictures = pictures;
    *t->n_patches = patches;
    *t->n_image = tec_vision_tokens(v, pictures);
    if (t->n_known)
        *t->n_known = 0;
    for (int i = 0; i < v->n_towers; i++) {
        int before = v->towers[i].prefix_rows, most = t->towers[i].max / (before + v->patches);
        *t->towers[i].count = most * before + patches;
    }
    return *t->n_image;
}

void tec_know_pictures(const struct tec_plan *plan, struct tec_prefix_table *t)
{
    *t->n_known = *t->n_image;
    *t->n_pictures = *t->n_patches = *t->n_image = 0;
    for (int i = 0; i < plan->model->vision.n_towers; i++)
        *t->towers[i].count = 0;
}

void tec_fill_pictures(const struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_prefix_input *o)
{
    tec_give_pictures(plan, part, &(struct tec_prefix_place){.region = -1, .input = o}, 1);
}

/* resize.c - plans of resizes: sizes, placement, scratch. */
#include "base/image/resize_plan.h"

#include "base/image/image.h"

static bool side_ok(int side)
{
    return side >= 1 && side <= TEC_IMAGE_SIDE;
}

static enum tec_status check(const struct tec_resize_spec *s, struct tec_error *err)
{
    if (!side_ok(s->in_height) || !side_ok(s->in_width) || !side_ok(s->height) ||
        !side_ok(s->width) || (int64_t)s->in_height * s->in_width > TEC_IMAGE_PIXELS ||
        (int64_t)s->height * s->width > TEC_IMAGE_PIXELS)
        return tec_fail(err, TEC_INVALID,
                        "resize from %d x %d to %d x %d; sides are 1 to %d, a picture at most %d "
                        "pixels",
                        s->in_width, s->in_height, s->width, s->height, TEC_IMAGE_SIDE,
                        TEC_IMAGE_PIXELS);
    if (s->channels != 1 && s->channels != 3)
        return tec_fail(err, TEC_INVALID, "resize of %d channels; 1 or 3", s->channels);
    if ((unsigned)s->filter > TEC_FILTER_LANCZOS || (unsigned)s->fit > TEC_FIT_CORNER)
        return tec_fail(err, TEC_INVALID, "resize with filter %d and fit %d, which do not exist",
                        (int)s->filter, (int)s->fit);
    if (s->sharp && s->filter != TEC_FILTER_BILINEAR && s->filter != TEC_FILTER_BICUBIC)
        return tec_fail(err, TEC_INVALID,
                        "resize without antialias: only bilinear and bicubic exist");
    if (s->half &&
        (s->sharp || (s->filter != TEC_FILTER_BILINEAR && s->filter != TEC_FILTER_BICUBIC)))
        return tec_fail(err, TEC_INVALID,
                        "resize by weights of 16 bits: only bilinear and bicubic exist, with "
                        "antialias");
    return TEC_OK;
}

/* The picture's size and place in the result. Truncation, not rounding, as the models saw. */
static enum tec_status place(struct tec_resize *plan, struct tec_error *err)
{
    const struct tec_resize_spec *s = &plan->spec;
    plan->rows = s->height;
    plan->columns = s->width;
    if (s->fit == TEC_FIT_STRETCH)
        return TEC_OK;
    double x = (double)s->in_width / s->width, y = (double)s->in_height / s->height;
    double ratio = x > y ? x : y;
    plan->rows = (int)(s->in_height / ratio);
    plan->columns = (int)(s->in_width / ratio);
    if (plan->rows < 1 || plan->columns < 1)
        return tec_fail(err, TEC_INVALID,
                        "a picture of %d x %d fitted into %d x %d would have no pixels left",
                        s->in_width, s->in_height, s->width, s->height);
    int above = s->height - plan->rows, before = s->width - plan->columns;
    plan->top = s->fit == TEC_FIT_CENTRED ? above / 2 : above;
    plan->left = s->fit == TEC_FIT_CENTRED ? before / 2 : before;
    return TEC_OK;
}

enum tec_status tec_resize_plan(const struct tec_resize **out, const struct tec_resize_spec *spec,
                                struct tec_arena *arena, struct tec_error *err)
{
    TEC_TRY(check(spec, err));
    struct tec_resize *plan = TEC_NEW(arena, 1, struct tec_resize);
    if (!plan)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the plan of a resize");
    plan->spec = *spec;
    TEC_TRY(place(plan, err));
    TEC_TRY(tec_axis_plan(&plan->across, spec->in_width, plan->columns, spec, arena, err));
    TEC_TRY(tec_axis_plan(&plan->down, spec->in_height, plan->rows, spec, arena, err));
    plan->first_row = spec->in_height;
    for (int i = 0; i < plan->rows; i++) {
        int low = plan->down.first[i], high = low + plan->down.count[i];
        plan->first_row = low < plan->first_row ? low : plan->first_row;
        plan->last_row = high > plan->last_row ? high : plan->last_row;
    }
    *out = plan;
    return TEC_OK;
}

size_t tec_resize_scratch(const struct tec_resize *plan)
{
    size_t channels = (size_t)plan->spec.channels;
    size_t rows = (size_t)(plan->last_row - plan->first_row) + 1;
    return (rows * (size_t)plan->columns + (size_t)plan->spec.in_width) * channels * sizeof(float);
}

void tec_resize_shorter_edge(int *height, int *width, int edge)
{
    int shorter = *height < *width ? *height : *width, longer = *height < *width ? *width : *height;
    int64_t scaled = (int64_t)edge * longer / (shorter > 0 ? shorter : 1);
    int fitted = scaled > INT32_MAX ? INT32_MAX : (int)scaled;
    int tall = *height > *width;
    *height = tall ? fitted : edge;
    *width = tall ? edge : fitted;
}

enum tec_status tec_image_resize(struct tec_image *out, const struct tec_image *in,
                                 struct tec_resize_spec spec, struct tec_arena *arena,
                                 struct tec_error *err)
{
    const struct tec_resize *plan = NULL;
    struct tec_arena scratch;
    struct tec_image made = {0};
    spec.in_height = in->height;
    spec.in_width = in->width;
    spec.channels = in->channels;
    tec_arena_init(&scratch, arena->heap);
    enum tec_status status = tec_resize_plan(&plan, &spec, &scratch, err);
    void *work = NULL;
    if (status == TEC_OK && plan) {
        work = tec_arena_push(&scratch, tec_resize_scratch(plan), 1, 64);
        if (!work)
            status = tec_fail(err, TEC_NO_MEMORY, "no memory for the scratch of a resize");
    }
    if (status == TEC_OK)
        status = tec_image_new(&made, spec.height, spec.width, spec.channels, arena, err);
    if (status == TEC_OK && work) {
        tec_resize_run_u8(plan, made.pixels, in->pixels, work);
        *out = made;
    }
    tec_arena_finish(&scratch);
    return status;
}

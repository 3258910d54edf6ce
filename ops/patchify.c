/* patchify.c - pictures to rows of patches, bytes through a table or floats as numbers.
 *   y [pictures * patches, 3 * patch * patch]. args: pictures, count, max_pictures, height, width,
 *   patch; lut of bytes; floats, mean and std of floats. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *y = tec_out(program, call, 0);
    struct tec_patchify_args *a = &call->args.patchify;
    TEC_TRY(
        TEC_NEED(y && a->pictures && (a->lut || a->floats) && a->count, err, "lacks an argument"));
    bool holds = a->patch > 0 && a->height >= a->patch && a->width >= a->patch;
    TEC_TRY(TEC_NEED(holds, err, "pictures of %d x %d hold no patch of %d", a->height, a->width,
                     a->patch));
    bool wide = a->std[0] > 0.0F && a->std[1] > 0.0F && a->std[2] > 0.0F;
    TEC_TRY(TEC_NEED(!a->floats || wide, err, "std of floats must be positive"));
    TEC_TRY(TEC_NEED(y->cols == 3 * a->patch * a->patch, err, "y must have %d columns",
                     3 * a->patch * a->patch));
    int patches = a->height / a->patch * (a->width / a->patch);
    TEC_TRY(TEC_NEED(y->rows >= a->max_pictures * patches, err, "y holds %d rows", y->rows));
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_patchify_args a = call->args.patchify;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_patchify, &a, call->barrier, call->label);
}

/* P pictures of h x w x 3 bytes, a float32 written for each byte; the table of 3 x 256. Of floats
 * four bytes each, a difference and a quotient. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_patchify_args *a = &call->args.patchify;
    int64_t pictures = tec_counts_rows(counts, a->count, a->max_pictures);
    int64_t n = tec_cost_times(pictures, (int64_t)a->height * a->width * 3);
    if (a->floats)
        return (struct tec_cost){.other = n * 2, .read = n * 4, .written = n * 4};
    return (struct tec_cost){.weights = INT64_C(3) * 256 * 4, .read = n, .written = n * 4};
}

const struct tec_op tec_op_patchify = {.infer = infer, .record = record, .cost = cost};

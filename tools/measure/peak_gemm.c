/* peak_gemm.c - measures the FLOP a second that a device's matrix products reach on a large
 * matrix. */
#include "tools/measure/peak_gemm.h"

#include "kernels/bf16.h"
#include "kernels/int4.h"
#include "kernels/int8.h"
#include "kernels/matrix.h"

#include <math.h>

struct product {
    struct tec_device *device;
    struct tec_arena arena;
    float *x, *y;
    void *w;
    int *rows;
    struct tec_capture *capture;
};

/* Fill with values between -1 and 1, because zeros would draw less power than a model does. */
static void fill(float *values, size_t n)
{
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (float)((int)(state >> 40) - (1 << 23)) / (float)(1 << 23);
    }
}

static size_t packed_size(const struct product *p, const struct tec_peak_gemm *of)
{
    if (of->kernel == TEC_KERNEL_gemm_int8)
        return tec_int8_size(of->side, of->side);
    if (of->kernel == TEC_KERNEL_gemm_int4)
        return tec_int4_size(of->side, of->side, TEC_INT4_GROUP);
    return tec_matrix_size(tec_device_layout(p->device), of->kernel == TEC_KERNEL_gemm_bf16,
                           of->side, of->side);
}

static void pack(const struct product *p, const struct tec_peak_gemm *of, void *packed,
                 const float *values)
{
    int side = of->side;
    if (of->kernel == TEC_KERNEL_gemm_int8)
        tec_int8_pack(packed, side, side, 0, side, values);
    else if (of->kernel == TEC_KERNEL_gemm_int4)
        tec_int4_pack(packed, side, side, TEC_INT4_GROUP, 0, side, values);
    else
        tec_matrix_pack(packed, tec_device_layout(p->device), of->kernel == TEC_KERNEL_gemm_bf16,
                        side, side, 0, side, values);
}

/* x holds bf16 values where that is said of it. */
static void fill_rows(const struct tec_peak_gemm *of, float *values, size_t n)
{
    for (size_t i = 0; i < n && of->rounded; i++)
        values[i] = tec_bf16_round(values[i]);
}

static enum tec_status make(struct product *p, const struct tec_peak_gemm *of,
                            struct tec_error *err)
{
    size_t rows = (size_t)of->rows, side = (size_t)of->side;
    size_t largest = rows > side ? rows : side;
    size_t size = packed_size(p, of);
    float *values = TEC_NEW(&p->arena, largest * side, float);
    unsigned char *packed = tec_arena_push(&p->arena, size, 1, 64);
    p->x = tec_device_get(p->device, rows * side * sizeof(float));
    p->y = tec_device_get(p->device, rows * side * sizeof(float));
    p->w = tec_device_get(p->device, size);
    p->rows = tec_device_get(p->device, sizeof(int));
    if (!values || !packed || !p->x || !p->y || !p->w || !p->rows)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a product of %d x %d x %d", of->rows,
                        of->side, of->side);
    fill(values, largest * side);
    pack(p, of, packed, values);
    fill_rows(of, values, rows * side);
    tec_device_upload(p->device, TEC_STREAM_MAIN, p->x, values, rows * side * sizeof(float));
    tec_device_upload(p->device, TEC_STREAM_MAIN, p->w, packed, size);
    tec_device_upload(p->device, TEC_STREAM_MAIN, p->rows, &of->rows, sizeof(int));
    const struct tec_gemm_args args = {
        .x = p->x,
        .w = p->w,
        .y = p->y,
        .rows = p->rows,
        .max_rows = of->rows,
        .ldx = of->side,
        .ldy = of->side,
        .n = of->side,
        .k = of->side,
        .group = of->kernel == TEC_KERNEL_gemm_int4 ? TEC_INT4_GROUP : 0,
        .rounded = of->rounded,
        .digits = of->kernel == TEC_KERNEL_gemm_int8 && of->rounded ? 1 : 2};
    TEC_TRY(tec_capture_begin(&p->capture, p->device, TEC_STREAM_MAIN, &p->arena, err));
    tec_capture_add(p->capture, of->kernel, &args, true, "peak");
    return tec_capture_end(p->capture, err);
}

static enum tec_status run(struct product *p, const struct tec_peak_gemm *of, double *flop_s,
                           struct tec_error *err)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < of->times; i++) {
        struct tec_replay replay = {.start_ns = 0};
        tec_device_replay(p->device, p->capture, &replay);
        TEC_TRY(tec_device_failure(p->device, err));
        int64_t took = replay.end_ns - replay.start_ns;
        best = took < best ? took : best;
    }
    double flop = 2.0 * of->rows * of->side * of->side;
    *flop_s = best > 0 ? flop * 1e9 / (double)best : (double)NAN;
    return TEC_OK;
}

enum tec_status tec_peak_gemm_measure(double *flop_s, struct tec_device *device,
                                      const struct tec_peak_gemm *of, struct tec_heap *heap,
                                      struct tec_error *err)
{
    struct product p = {.device = device};
    tec_arena_init(&p.arena, heap);
    enum tec_status status = make(&p, of, err);
    if (status == TEC_OK)
        status = run(&p, of, flop_s, err);
    tec_capture_free(p.capture);
    void *const taken[] = {p.x, p.y, p.w, p.rows};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (taken[i])
            tec_device_put(device, taken[i]);
    tec_arena_finish(&p.arena);
    return status;
}

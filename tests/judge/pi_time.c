/* pi_time.c - judges the case of kind "time": sine tables, conditions, modulations. */
#include "graph/model/timed.h"
#include "kernels/matrix.h"
#include "tests/judge/pi.h"

#include <string.h>

static const float *doubles_to_floats(struct tec_verify *v, const double *x, size_t n)
{
    float *out = TEC_NEW(v->arena, n, float);
    for (size_t i = 0; out && i < n; i++)
        out[i] = (float)x[i];
    return out;
}

static void judge_sincos(struct tec_pi *pi, const json_t *t, int width, const char *kind,
                         const char *list)
{
    char check[64];
    const json_t *times = json_object_get(json_object_get(t, "S10"), list);
    size_t steps = json_array_size(times);
    double *x = TEC_NEW(pi->v->arena, steps * (size_t)width + 1, double);
    const struct tec_model_call waves = {.cols = width, .shortest = 0.004, .longest = 4.0};
    for (size_t s = 0; x && s < steps; s++)
        tec_model_call_waves(&waves, json_number_value(json_array_get(times, s)),
                             x + s * (size_t)width);
    snprintf(check, sizeof check, "sincos%d.%s", width, kind);
    const float *got = x ? doubles_to_floats(pi->v, x, steps * (size_t)width) : NULL;
    tec_pi_compare(pi, check, got, steps * (size_t)width, NULL);
}

/* Rows of a call at every step, without their padding: `parts` of them, of W columns each. */
static const float *read_rows(struct tec_verify *v, const struct tec_timed *t, int call, int parts,
                              int width)
{
    size_t w = (size_t)width, padded = (size_t)tec_padded(width), at = 0;
    float *out = TEC_NEW(v->arena, (size_t)t->steps * (size_t)parts * w + 1, float);
    for (int s = 0; out && s < t->steps; s++)
        for (int i = 0; i < parts; i++, at += w)
            tec_device_download(t->device, TEC_STREAM_MAIN, out + at,
                                t->of[call] + (size_t)(s * parts + i) * padded, w * sizeof *out);
    return out;
}

/* <name>.cond [S, W] and <name>.mod [S, norms, 3 W] of one checkpoint. */
static enum tec_status judge_checkpoint(struct tec_pi *judge, const char *name, const char *path,
                                        struct tec_error *err)
{
    struct tec_pi pi;
    char check[128];
    struct tec_timed *t = NULL;
    const struct tec_timed_options ten = {.steps = 10};
    enum tec_status status = tec_pi_open(&pi, judge->v, path, NULL, err);
    const struct tec_weight_source source = {.checkpoint = pi.checkpoint};
    if (status == TEC_OK)
        tec_pi_keep_times(pi.model);
    if (status == TEC_OK)
        status =
            tec_timed_create(&t, pi.model->program, &source, &ten, pi.device, judge->v->heap, err);
    if (status == TEC_OK) {
        const struct tec_model_call *expert = tec_model_expert(pi.model);
        int width = expert->stack->width, parts = 3 * tec_stack_norms(expert->stack);
        size_t n = (size_t)t->steps * (size_t)width;
        snprintf(check, sizeof check, "%s.cond", name);
        tec_pi_compare(judge, check, read_rows(judge->v, t, expert->time, 1, width), n, NULL);
        snprintf(check, sizeof check, "%s.mod", name);
        tec_pi_compare(judge, check, read_rows(judge->v, t, pi.model->program->asks, parts, width),
                       n * (size_t)parts, NULL);
    }
    tec_timed_destroy(t);
    tec_pi_finish(&pi);
    return status;
}

enum tec_status tec_verify_pi_time(struct tec_verify *v, struct tec_error *err)
{
    struct tec_pi pi = {.v = v, .tensors = json_object_get(v->json, "tensors")};
    static const int widths[] = {1024, 64, 36};
    const json_t *t = json_object_get(v->json, "t");
    const char *name;
    json_t *path;
    /* The case has one set of errors: these tables are float64 whatever the plan's dtype. */
    const char *dtype = v->dtype;
    v->dtype = "f32";
    enum tec_status status = tec_pi_open_tensors(&pi, err);
    for (size_t i = 0; status == TEC_OK && i < 3; i++) {
        judge_sincos(&pi, t, widths[i], "exact", "exact");
        judge_sincos(&pi, t, widths[i], "openpi_fp32_accumulated", "openpi_fp32_accumulated");
    }
    json_object_foreach(json_object_get(v->json, "checkpoints"), name, path)
    {
        if (status == TEC_OK)
            status = judge_checkpoint(&pi, name, json_string_value(path), err);
    }
    v->dtype = dtype;
    tec_pi_finish(&pi);
    return status;
}

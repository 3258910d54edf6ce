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

/* Rows of `n` calls of equally many columns, one after the other at every step, without padding. */
static const float *read_rows(struct tec_verify *v, const struct tec_timed *t, const int *calls,
                              int n)
{
    size_t w = (size_t)t->program->calls[calls[0]].cols, at = 0;
    float *out = TEC_NEW(v->arena, (size_t)t->steps * (size_t)n * w + 1, float);
    for (int s = 0; out && s < t->steps; s++)
        for (int i = 0; i < n; i++, at += w)
            tec_device_download(t->device, TEC_STREAM_MAIN, out + at, tec_timed_row(t, calls[i], s),
                                w * sizeof *out);
    return out;
}

/* The tables of a checkpoint's norms, and the row of the time that they are made of. */
static void judge_rows(struct tec_pi *judge, const char *name, const struct tec_timed *t)
{
    const struct tec_model_program *p = t->program;
    char check[128];
    int norms = tec_pi_modulations(p), *rows = TEC_NEW(judge->v->arena, (size_t)norms + 1, int);
    for (int i = 0; rows && i < norms; i++)
        rows[i] = tec_pi_modulation(p, i);
    if (!rows || !norms)
        return;
    const int *time = &p->calls[rows[0]].in[0];
    size_t n = (size_t)t->steps * (size_t)p->calls[*time].cols;
    snprintf(check, sizeof check, "%s.cond", name);
    tec_pi_compare(judge, check, read_rows(judge->v, t, time, 1), n, NULL);
    snprintf(check, sizeof check, "%s.mod", name);
    tec_pi_compare(judge, check, read_rows(judge->v, t, rows, norms), 3 * n * (size_t)norms, NULL);
}

/* <name>.cond [S, W] and <name>.mod [S, norms, 3 W] of one checkpoint. */
static enum tec_status judge_checkpoint(struct tec_pi *judge, const char *name, const char *path,
                                        struct tec_error *err)
{
    struct tec_pi pi;
    struct tec_timed *t = NULL;
    const struct tec_timed_options ten = {.steps = 10};
    enum tec_status status = tec_pi_open(&pi, judge->v, path, NULL, err);
    const struct tec_weight_source source = {.checkpoint = pi.checkpoint};
    if (status == TEC_OK)
        tec_pi_keep_times(pi.model);
    if (status == TEC_OK)
        status =
            tec_timed_create(&t, pi.model->program, &source, &ten, pi.device, judge->v->heap, err);
    if (status == TEC_OK)
        judge_rows(judge, name, t);
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

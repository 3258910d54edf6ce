/* pi_time.c - judges the case of kind "time": sine tables, conditions, modulations. */
#include "graph/model/tables.h"
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
    for (size_t s = 0; x && s < steps; s++)
        tec_sincos(json_number_value(json_array_get(times, s)), 0.004, 4.0, width,
                   x + s * (size_t)width);
    snprintf(check, sizeof check, "sincos%d.%s", width, kind);
    const float *got = x ? doubles_to_floats(pi->v, x, steps * (size_t)width) : NULL;
    tec_pi_compare(pi, check, got, steps * (size_t)width, NULL);
}

/* <name>.cond [S, W] and <name>.mod [S, norms, 3 W] of one checkpoint. */
static enum tec_status judge_checkpoint(struct tec_pi *judge, const char *name, const char *path,
                                        struct tec_error *err)
{
    struct tec_pi pi;
    char check[128];
    struct tec_flow_tables *t = NULL;
    enum tec_status status = tec_pi_open(&pi, judge->v, path, NULL, err);
    if (status == TEC_OK)
        status = tec_flow_tables_create(&t, &pi.model->flow,
                                        &(struct tec_weight_source){.checkpoint = pi.checkpoint},
                                        10, false, pi.device, judge->v->heap, err);
    if (status == TEC_OK) {
        size_t w = (size_t)t->width, row = 3 * w, n = (size_t)(t->steps * t->n_norms) * row;
        float *mod = TEC_NEW(judge->v->arena, n, float);
        for (int i = 0; mod && i < t->steps * t->n_norms; i++)
            for (size_t part = 0; part < 3; part++)
                tec_device_download(pi.device, TEC_STREAM_MAIN, mod + (size_t)i * row + part * w,
                                    t->modulation + ((size_t)i * 3 + part) * (size_t)t->padded,
                                    w * sizeof(float));
        snprintf(check, sizeof check, "%s.cond", name);
        tec_pi_compare(judge, check, t->condition, (size_t)t->steps * w, NULL);
        snprintf(check, sizeof check, "%s.mod", name);
        tec_pi_compare(judge, check, mod, n, NULL);
    }
    tec_flow_tables_destroy(t);
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

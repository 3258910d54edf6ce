/* groot_time.c - judges the case of kind "time": what depends on a denoiser's time alone. */
#include "tests/judge/groot.h"

#include <stdio.h>
#include <string.h>

static void compare(struct tec_pi *judge, const char *name, const char *what, const float *got,
                    size_t n)
{
    char check[128];
    snprintf(check, sizeof check, "%s.%s", name, what);
    tec_pi_compare(judge, check, got, n, NULL);
}

/* Norms first .. first + n - 1 at every time: [times, n, 2 W]. */
static float *read_norms(struct tec_pi *pi, struct tec_verify *v, const struct tec_flow_tables *t,
                         int first, int n)
{
    size_t w = (size_t)t->width;
    bool shift_first = first == t->n_norms - 1;
    float *out = TEC_NEW(v->arena, (size_t)(t->steps * n) * 2 * w, float), *at = out;
    for (int s = 0; out && s < t->steps; s++)
        for (int i = 0; i < n; i++)
            for (size_t part = 0; part < 2; part++, at += w)
                tec_device_download(pi->device, TEC_STREAM_MAIN, at,
                                    tec_modulation(t, s, first + i) +
                                        (shift_first ? 1 - part : part) * (size_t)t->padded,
                                    w * sizeof(float));
    return out;
}

static enum tec_status judge_checkpoint(struct tec_pi *judge, const char *name, const char *path,
                                        const int *times, int n, struct tec_error *err)
{
    struct tec_verify *v = judge->v;
    struct tec_pi pi;
    struct tec_flow_tables *t = NULL;
    json_t *overrides = json_pack("{s:i}", "embodiment", 0);
    enum tec_status status = tec_pi_open_beside(&pi, v, path, NULL, overrides, err);
    const struct tec_weight_source source = {.checkpoint = pi.checkpoint};
    json_decref(overrides);
    if (status == TEC_OK)
        status = tec_flow_tables_denoise(&t, pi.model, &source, times, n, pi.device, v->heap, err);
    if (status == TEC_OK) {
        size_t w = (size_t)t->width, rows = (size_t)n;
        int norms = t->n_norms - 1;
        compare(judge, name, "action_sincos", t->sincos, rows * w);
        compare(judge, name, "temb", t->condition, rows * w);
        compare(judge, name, "mod", read_norms(&pi, v, t, 0, norms), rows * (size_t)norms * 2 * w);
        compare(judge, name, "out_mod", read_norms(&pi, v, t, norms, 1), rows * 2 * w);
    }
    tec_flow_tables_destroy(t);
    tec_pi_finish(&pi);
    return status;
}

static void judge_buckets(struct tec_verify *v)
{
    const char *steps;
    json_t *times;
    char check[64];
    json_object_foreach(json_object_get(v->json, "timesteps"), steps, times)
    {
        size_t n = json_array_size(times);
        int *got = TEC_NEW(v->arena, n + 1, int), *want = TEC_NEW(v->arena, n + 1, int);
        for (size_t s = 0; got && want && s < n; s++) {
            got[s] = tec_flow_bucket((int)s, (int)n, 1000);
            want[s] = (int)json_integer_value(json_array_get(times, s));
        }
        snprintf(check, sizeof check, "timesteps.%s", steps);
        tec_verify_ids(v, check, got, n, want, n);
    }
}

static enum tec_status judge_tables(struct tec_pi *pi, struct tec_error *err)
{
    struct tec_verify *v = pi->v;
    const struct tec_stored *stored = tec_tensors_find(pi->inputs, "buckets");
    int n = stored && stored->dtype == TEC_I32 ? (int)tec_stored_count(stored) : 0;
    int *times = TEC_NEW(v->arena, (size_t)n + 1, int);
    const char *name;
    json_t *path;
    if (!n || !times)
        return tec_fail(err, TEC_NOT_FOUND, "inputs: no buckets");
    TEC_TRY(tec_tensors_read(pi->inputs, stored, 0, times, (size_t)n * sizeof *times, err));
    float *waves = TEC_NEW(v->arena, (size_t)n * 256, float);
    double one[256];
    for (int s = 0; waves && s < n; s++) {
        tec_flow_waves(times[s], 10000.0, 128, 127, true, one);
        for (int i = 0; i < 256; i++)
            waves[s * 256 + i] = (float)one[i];
    }
    tec_pi_compare(pi, "time_proj", waves, (size_t)n * 256, NULL);
    json_object_foreach(json_object_get(v->json, "checkpoints"), name, path)
        TEC_TRY(judge_checkpoint(pi, name, json_string_value(path), times, n, err));
    return TEC_OK;
}

enum tec_status tec_verify_groot_time(struct tec_verify *v, struct tec_error *err)
{
    struct tec_pi pi = {.v = v, .tensors = json_object_get(v->json, "tensors")};
    /* The tables are float64 whatever the plan's dtype. */
    const char *dtype = v->dtype;
    v->dtype = "f32";
    judge_buckets(v);
    enum tec_status status = tec_pi_open_tensors(&pi, err);
    if (status == TEC_OK)
        status = judge_tables(&pi, err);
    v->dtype = dtype;
    tec_pi_finish(&pi);
    return status;
}

/* groot_time.c - judges the case of kind "time": what depends on a flow's time alone. */
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

/* A row of the time, or of every layer the one of that name. */
struct rows {
    const char *check, *name;
    bool layers;
};

static int call_of(const struct tec_model_program *p, const struct rows *r, int layer)
{
    char name[64];
    if (r->layers)
        snprintf(name, sizeof name, "layer%d.%s", layer, r->name);
    else
        snprintf(name, sizeof name, "%s", r->name);
    int i = 0;
    while (i < p->n && (!p->calls[i].name || strcmp(p->calls[i].name, name) != 0))
        i++;
    return i < p->n && (r->layers || !layer) ? i : -1;
}

/* Rows at every time: [times, layers, columns], *n values. */
static float *read_rows(struct tec_verify *v, const struct tec_timed *t, const struct rows *r,
                        size_t *n)
{
    const struct tec_model_program *p = t->program;
    int layers = 0, first = call_of(p, r, 0);
    while (call_of(p, r, layers) >= 0)
        layers++;
    size_t cols = layers ? (size_t)p->calls[first].cols : 0;
    *n = (size_t)t->steps * (size_t)layers * cols;
    float *out = TEC_NEW(v->arena, *n + 1, float), *at = out;
    for (int s = 0; out && s < t->steps; s++)
        for (int i = 0; i < layers; i++, at += cols)
            tec_device_download(t->device, TEC_STREAM_MAIN, at,
                                tec_timed_row(t, call_of(p, r, i), s), cols * sizeof(float));
    return out;
}

static enum tec_status judge_checkpoint(struct tec_pi *judge, const char *name, const char *path,
                                        const struct tec_timed_options *times,
                                        struct tec_error *err)
{
    static const struct rows rows[] = {{"action_sincos", "action_sincos", false},
                                       {"temb", "temb", false},
                                       {"mod", "mod", true},
                                       {"out_mod", "out_mod", false}};
    struct tec_verify *v = judge->v;
    struct tec_pi pi;
    struct tec_timed *t = NULL;
    json_t *overrides = json_pack("{s:i}", "embodiment", 0);
    enum tec_status status = tec_pi_open_beside(&pi, v, path, NULL, overrides, err);
    const struct tec_weight_source source = {.checkpoint = pi.checkpoint};
    json_decref(overrides);
    if (status == TEC_OK)
        status = tec_timed_create(&t, pi.model->program, &source, times, pi.device, v->heap, err);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == TEC_OK; i++) {
        size_t values = 0;
        const float *got = read_rows(v, t, &rows[i], &values);
        compare(judge, name, rows[i].check, got, got ? values : 0);
    }
    tec_timed_destroy(t);
    tec_pi_finish(&pi);
    return status;
}

static void judge_buckets(struct tec_verify *v)
{
    const struct tec_program_flow flow = {.buckets = 1000};
    const char *steps;
    json_t *times;
    char check[64];
    json_object_foreach(json_object_get(v->json, "timesteps"), steps, times)
    {
        size_t n = json_array_size(times);
        int *got = TEC_NEW(v->arena, n + 1, int), *want = TEC_NEW(v->arena, n + 1, int);
        for (size_t s = 0; got && want && s < n; s++) {
            got[s] = (int)tec_model_time(&flow, (int)s, (int)n);
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
    const struct tec_model_call call = {
        .cols = 256, .period = 10000.0, .closed = true, .cosines = true};
    int *buckets = TEC_NEW(v->arena, (size_t)n + 1, int);
    double *times = TEC_NEW(v->arena, (size_t)n + 1, double), one[256];
    const char *name;
    json_t *path;
    if (!n || !buckets || !times)
        return tec_fail(err, TEC_NOT_FOUND, "inputs: no buckets");
    TEC_TRY(tec_tensors_read(pi->inputs, stored, 0, buckets, (size_t)n * sizeof *buckets, err));
    float *waves = TEC_NEW(v->arena, (size_t)n * 256, float);
    for (int s = 0; waves && s < n; s++) {
        times[s] = buckets[s];
        tec_model_call_waves(&call, times[s], one);
        for (int i = 0; i < 256; i++)
            waves[s * 256 + i] = (float)one[i];
    }
    tec_pi_compare(pi, "time_proj", waves, (size_t)n * 256, NULL);
    const struct tec_timed_options options = {.times = times, .steps = n};
    json_object_foreach(json_object_get(v->json, "checkpoints"), name, path)
        TEC_TRY(judge_checkpoint(pi, name, json_string_value(path), &options, err));
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

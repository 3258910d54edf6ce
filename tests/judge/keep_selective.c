/* keep_selective.c - judges cases of kind "selective": kept segments, prompts of them, what is
 * chosen to be computed anew, and what the model says then. */
#include "kernels/bf16.h"
#include "tests/judge/keep.h"

#include <math.h>
#include <string.h>

static int *read_ids(struct tec_keep *j, const char *name, int *n)
{
    const struct tec_stored *t = tec_tensors_find(j->pi->inputs, name);
    int *ids = t && t->dtype == TEC_I32 ? TEC_NEW(j->pi->v->arena, t->bytes / 4 + 1, int) : NULL;
    if (!ids || tec_tensors_read(j->pi->inputs, t, 0, ids, t->bytes, NULL) != TEC_OK)
        return NULL;
    *n = (int)(t->bytes / 4);
    return ids;
}

static enum tec_status read_inputs(struct tec_keep *j, struct tec_error *err)
{
    const json_t *json = j->pi->v->json;
    int n_old = 0, n_pos = 0, n_begin = 0, n_end = 0;
    j->ids = read_ids(j, "ids", &j->n);
    j->old_ids = read_ids(j, "old_ids", &n_old);
    j->pos = read_ids(j, "positions", &n_pos);
    const int *begin = read_ids(j, "unit_begin", &n_begin), *end = read_ids(j, "unit_end", &n_end);
    j->query = j->n - (int)json_integer_value(json_object_get(json, "query_tokens"));
    j->n_segments = n_begin;
    j->layers = j->pi->model->text.stack.layers;
    if (!j->ids || !j->old_ids || !j->pos || !begin || !end || n_pos != j->n || n_begin != n_end ||
        n_begin > TEC_KEEP_SEGMENTS - 1 || j->query < 0 || j->layers > TEC_KEEP_LAYERS)
        return tec_fail(err, TEC_MALFORMED, "the case's ids, positions or segments do not fit");
    for (int u = 0; u < n_begin; u++)
        j->segments[u] = (struct tec_segment_range){begin[u], end[u]};
    return TEC_OK;
}

/* {max, rms} of both precisions, and the size of what is expected. */
static json_t *bounds_of(struct tec_keep *j)
{
    const json_t *fp32 = json_object_get(j->pi->v->json, "err_fp32"), *e;
    const json_t *bf16 = json_object_get(j->pi->v->json, "err_bf16");
    json_t *all = json_object();
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)fp32, name, e)
    {
        json_t *entry = json_object();
        json_object_set(entry, "err_fp32", (json_t *)(uintptr_t)e);
        json_object_set(entry, "err_bf16", json_object_get(bf16, name));
        json_object_set_new(all, name, entry);
    }
    return all;
}

void tec_keep_near(struct tec_keep *j, const char *check, const double *got, size_t n, double bound)
{
    struct tec_error err;
    const struct tec_stored *t = tec_tensors_find(j->pi->expected, check);
    float *want = TEC_NEW(j->pi->v->arena, n + 1, float);
    double worst = 0.0, sum = 0.0;
    if (!t || t->bytes / 4 != n || !want ||
        tec_tensors_read_f32(j->pi->expected, t, 0, want, n, &err) != TEC_OK) {
        tec_fail(&err, TEC_SHAPE, "the engine made %zu values, the case has %zu", n,
                 t ? t->bytes / 4 : 0);
        tec_verify_cannot(j->pi->v, check, &err);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double d = fabs(got[i] - (double)want[i]);
        if (!(d <= worst))
            worst = d;
        sum += d * d;
    }
    tec_verify_compared(j->pi->v, check);
    tec_verify_report(j->pi->v, check, worst, n ? sqrt(sum / (double)n) : 0.0, bound,
                      worst <= bound, NULL, NULL);
}

static enum tec_status read_kept(struct tec_keep *j, struct tec_keep_store *store, int first,
                                 int to, int tokens, struct tec_error *err)
{
    const struct tec_kv_shape *s = &j->plan->kept.shape;
    size_t row = (size_t)s->kv_heads * (size_t)s->head_dim * (s->bf16 ? 2 : 4);
    for (int l = 0; l < j->layers; l++) {
        if (!store->k[l])
            store->k[l] = tec_arena_push(j->pi->v->arena, (size_t)j->query * row + 1, 1, 16);
        if (!store->v[l])
            store->v[l] = tec_arena_push(j->pi->v->arena, (size_t)j->query * row + 1, 1, 16);
        if (!store->k[l] || !store->v[l])
            return tec_fail(err, TEC_NO_MEMORY, "no memory for kept keys");
        tec_remember_read(j->plan, first, tokens, l, store->k[l] + (size_t)to * row,
                          store->v[l] + (size_t)to * row);
    }
    return TEC_OK;
}

/* The beginning and each segment alone, in one forward. */
static enum tec_status remember_single(struct tec_keep *j, struct tec_error *err)
{
    struct tec_remember_text texts[TEC_KEEP_SEGMENTS];
    int n = 0, first = j->n_segments ? j->segments[0].begin : j->query;
    if (first)
        texts[n++] = (struct tec_remember_text){j->ids, first};
    for (int u = 0; u < j->n_segments; u++)
        texts[n++] = (struct tec_remember_text){j->ids + j->segments[u].begin,
                                                j->segments[u].end - j->segments[u].begin};
    TEC_TRY(tec_remember_run(j->plan, texts, n, err));
    TEC_TRY(read_kept(j, &j->single, 0, 0, j->query, err));
    return first ? read_kept(j, &j->group, 0, 0, first, err) : TEC_OK;
}

/* One group as one sequence. */
static enum tec_status remember_group(struct tec_keep *j, const json_t *group,
                                      struct tec_error *err)
{
    int *ids = TEC_NEW(j->pi->v->arena, (size_t)j->n, int), n = 0;
    size_t members = json_array_size(group);
    if (!ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a group");
    for (size_t i = 0; i < members; i++) {
        json_int_t u = json_integer_value(json_array_get(group, i));
        if (u < 0 || u >= j->n_segments || n + j->segments[u].end - j->segments[u].begin > j->n)
            return tec_fail(err, TEC_MALFORMED, "a group has segment %lld", (long long)u);
        j->local[u] = n;
        for (int t = j->segments[u].begin; t < j->segments[u].end; t++)
            ids[n++] = j->ids[t];
    }
    TEC_TRY(tec_remember_run(j->plan, &(struct tec_remember_text){ids, n}, 1, err));
    for (size_t i = 0; i < members; i++) {
        json_int_t u = json_integer_value(json_array_get(group, i));
        TEC_TRY(read_kept(j, &j->group, j->local[u], j->segments[u].begin,
                          j->segments[u].end - j->segments[u].begin, err));
    }
    return TEC_OK;
}

static void compare_store(struct tec_keep *j, const char *kind, struct tec_keep_store *store)
{
    const struct tec_kv_shape *s = &j->plan->kept.shape;
    size_t n = (size_t)j->query * (size_t)s->kv_heads * (size_t)s->head_dim;
    float *values = TEC_NEW(j->pi->v->arena, n + 1, float);
    for (int i = 0; values && i < 2 * j->layers; i++) {
        const unsigned char *from = i % 2 ? store->v[i / 2] : store->k[i / 2];
        for (size_t k = 0; k < n; k++)
            values[k] = s->bf16 ? tec_bf16_float(((const uint16_t *)(const void *)from)[k])
                                : ((const float *)(const void *)from)[k];
        tec_pi_compare(j->pi,
                       tec_arena_printf(j->pi->v->arena, "store.%s.layer%d.%s", kind, i / 2,
                                        i % 2 ? "v" : "k"),
                       values, n, NULL);
    }
}

enum tec_status tec_keep_remember(struct tec_keep *j, struct tec_error *err)
{
    const json_t *groups = json_object_get(j->pi->v->json, "groups");
    TEC_TRY(remember_single(j, err));
    for (size_t i = 0; i < json_array_size(groups); i++)
        TEC_TRY(remember_group(j, json_array_get(groups, i), err));
    compare_store(j, "single", &j->single);
    compare_store(j, "group", &j->group);
    return TEC_OK;
}

static enum tec_status judge(struct tec_keep *j, struct tec_error *err)
{
    struct tec_pi *pi = j->pi;
    TEC_TRY(tec_pi_open_tensors(pi, err));
    TEC_TRY(read_inputs(j, err));
    pi->sibling = bounds_of(j);
    pi->tensors = pi->sibling;
    pi->max_text = pi->segment_tokens = j->n;
    pi->segments = j->n_segments + 1;
    for (int t = 0; t < j->n; t++)
        pi->positions = j->pos[t] >= pi->positions ? j->pos[t] + 1 : pi->positions;
    pi->positions += TEC_KEEP_STEPS;
    TEC_TRY(tec_pi_plan(pi, &j->plan, 0, 1, TEC_KEEP_STEPS, true, err));
    TEC_TRY(tec_recall_create(&j->recall, j->plan, pi->v->arena, err));
    j->region = tec_kv_pool_take(&j->plan->prefixes);
    j->forced = TEC_NEW(pi->v->arena, (size_t)j->layers * (size_t)j->n_segments + 1, unsigned char);
    j->layer_rows = TEC_NEW(pi->v->arena, (size_t)j->layers * (size_t)j->n + 1, int);
    if (!j->forced || !j->layer_rows || j->region < 0)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the case's sets");
    TEC_TRY(tec_keep_remember(j, err));
    return tec_keep_runs(j, err);
}

enum tec_status tec_verify_keep_selective(struct tec_verify *v, struct tec_error *err)
{
    struct tec_pi pi;
    struct tec_keep j = {.pi = &pi};
    enum tec_status status = tec_pi_open(&pi, v, "checkpoint", NULL, err);
    if (status == TEC_OK)
        status = judge(&j, err);
    tec_recall_finish(&j.recall);
    tec_plan_destroy(j.plan);
    tec_pi_finish(&pi);
    return status;
}

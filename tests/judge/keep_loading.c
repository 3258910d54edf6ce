/* keep_loading.c - judges loading schedules, event by event; and that ours loses to no other by the
 * next layer alone. */
#include "graph/memory/loading.h"
#include "tests/judge/tokenizers_case.h"

#include <stdlib.h>
#include <string.h>

/* A list of integers as times; NULL without memory. */
static int64_t *times(struct tec_verify *v, const json_t *list, size_t n)
{
    int64_t *out = TEC_NEW(v->arena, n, int64_t);
    for (size_t i = 0; out && i < n; i++)
        out[i] = json_integer_value(json_array_get(list, i));
    return out;
}

static int *order_of(struct tec_verify *v, const json_t *list, int segments)
{
    int *order = list ? TEC_NEW(v->arena, (size_t)segments, int) : NULL;
    for (int i = 0; order && i < segments; i++)
        order[i] = (int)json_integer_value(json_array_get(list, (size_t)i));
    return order;
}

static enum tec_status read_table(struct tec_verify *v, const json_t *in,
                                  struct tec_loading_table *t, unsigned char **sets,
                                  struct tec_error *err)
{
    json_int_t layers = json_integer_value(json_object_get(in, "layers"));
    json_int_t segments = json_integer_value(json_object_get(in, "units"));
    if (layers < 1 || layers > TEC_MAX_LOADING_LAYERS || segments < 0 ||
        segments > TEC_MAX_LOADING_SEGMENTS)
        return tec_fail(err, TEC_MALFORMED, "%s: sizes out of range", v->dir);
    size_t n = (size_t)layers, m = (size_t)segments;
    int64_t *load = TEC_NEW(v->arena, n * m, int64_t);
    *sets = TEC_NEW(v->arena, n * m, unsigned char);
    *t = (struct tec_loading_table){.layers = (int)layers,
                                    .segments = (int)segments,
                                    .attention = times(v, json_object_get(in, "attention"), n),
                                    .importance = times(v, json_object_get(in, "importance"), n),
                                    .mlp = times(v, json_object_get(in, "mlp"), n),
                                    .load = load,
                                    .order =
                                        order_of(v, json_object_get(in, "order"), (int)segments)};
    if (!load || !*sets || !t->attention || !t->importance || !t->mlp)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", v->dir);
    for (size_t l = 0; l < n; l++) {
        const json_t *line = json_array_get(json_object_get(in, "load"), l), *segment;
        const json_t *set = json_array_get(json_object_get(in, "sets"), l);
        for (size_t u = 0; u < m; u++)
            load[l * m + u] = json_integer_value(json_array_get(line, u));
        for (size_t i = 0; (segment = json_array_get(set, i)) != NULL; i++) {
            json_int_t u = json_integer_value(segment);
            if (u < 0 || u >= segments)
                return tec_fail(err, TEC_MALFORMED, "%s: segment %lld of %lld", v->dir,
                                (long long)u, (long long)segments);
            (*sets)[l * m + (size_t)u] = 1;
        }
    }
    return TEC_OK;
}

/* Segments of a layer with `kind` in the sets, as a list. */
static json_t *segments_where(const struct tec_loading_table *t, const unsigned char *set,
                              bool kind)
{
    json_t *list = json_array();
    for (int u = 0; u < t->segments; u++)
        if ((set[u] != 0) == kind)
            json_array_append_new(list, json_integer(u));
    return list;
}

/* What was loaded of a layer by the events themselves. */
static json_t *segments_loaded(const struct tec_loading_table *t,
                               const struct tec_loading_result *r, int layer)
{
    json_t *list = json_array();
    for (int u = 0; u < t->segments; u++)
        for (size_t i = 0; i < r->n_loads; i++)
            if (r->loads[i].layer == layer && r->loads[i].segment == u)
                json_array_append_new(list, json_integer(u));
    return list;
}

static json_t *describe(const struct tec_loading_table *t, const unsigned char *sets,
                        const struct tec_loading_result *r)
{
    json_t *loads = json_array(), *compute = json_array(), *waits = json_array();
    json_t *recomputed = json_array(), *loaded = json_array();
    for (size_t i = 0; i < r->n_loads; i++)
        json_array_append_new(loads, json_pack("[I, I, i, i]", (json_int_t)r->loads[i].start,
                                               (json_int_t)r->loads[i].end, r->loads[i].layer,
                                               r->loads[i].segment));
    for (int l = 0; l < t->layers; l++) {
        const struct tec_layer_event *e = &r->layers[l];
        json_array_append_new(
            compute, json_pack("[I, I, I, I]", (json_int_t)e->start, (json_int_t)e->attention_end,
                               (json_int_t)e->importance_end, (json_int_t)e->end));
        json_array_append_new(waits, json_integer((json_int_t)e->waited));
        json_array_append_new(recomputed,
                              segments_where(t, sets + (size_t)l * (size_t)t->segments, true));
        json_array_append_new(loaded, segments_loaded(t, r, l));
    }
    return json_pack("{s:o, s:o, s:I, s:o, s:I, s:o, s:o}", "loads", loads, "compute", compute,
                     "finish", (json_int_t)r->finish, "wait_for_load", waits, "loader_busy",
                     (json_int_t)r->busy, "recomputed", recomputed, "loaded", loaded);
}

static void judge(struct tec_verify *v, const char *name, const char *rule, const json_t *want,
                  const json_t *got)
{
    const char *check = tec_arena_printf(v->arena, "%s %s", name, rule), *wrong = NULL, *field;
    json_t *value;
    if (json_object_size(want) == 0)
        wrong = "nothing is expected";
    json_object_foreach((json_t *)(uintptr_t)want, field, value)
    {
        if (!json_equal(value, json_object_get(got, field)))
            wrong = field;
    }
    tec_verify_report(v, check ? check : rule, wrong ? 1.0 : 0.0, 0.0, 0.0, !wrong, NULL, wrong);
}

static enum tec_status judge_case(struct tec_verify *v, const char *name, const json_t *in,
                                  const json_t *want, struct tec_error *err)
{
    struct tec_loading_table table = {0};
    struct tec_loading_result result = {0};
    unsigned char *sets = NULL;
    int64_t next = 0;
    TEC_TRY(read_table(v, in, &table, &sets, err));
    for (int i = 0; i < TEC_OVERLAPS; i++) {
        const char *rule = tec_overlap_name((enum tec_overlap)i);
        TEC_TRY(tec_loading_simulate(&result, &table, (enum tec_overlap)i, sets, v->arena, err));
        if (i == TEC_OVERLAP_NEXT)
            next = result.finish;
        if (i == TEC_OVERLAP_BOUNDED) {
            const char *check = tec_arena_printf(v->arena, "%s bounded, not after next", name);
            int64_t late = result.finish - next;
            tec_verify_report(v, check ? check : rule, late > 0 ? (double)late : 0.0, 0.0, 0.0,
                              late <= 0, NULL, NULL);
            continue;
        }
        json_t *got = describe(&table, sets, &result);
        judge(v, name, rule, json_object_get(want, rule), got);
        json_decref(got);
    }
    return TEC_OK;
}

enum tec_status tec_verify_keep_loading(struct tec_verify *v, struct tec_error *err)
{
    json_t *in = tec_case_json(v, "inputs.json"), *want = tec_case_json(v, "expected.json");
    const json_t *finish = json_object_get(v->json, "finish");
    const char *name;
    json_t *one;
    enum tec_status status = TEC_OK;
    if (json_object_size(in) == 0 || json_object_size(in) != json_object_size(finish) ||
        json_object_size(in) != json_object_size(want))
        status = tec_fail(err, TEC_MALFORMED, "%s: tables and schedules do not match", v->dir);
    if (status == TEC_OK)
        json_object_foreach(in, name, one)
        {
            status = judge_case(v, name, one, json_object_get(want, name), err);
            if (status != TEC_OK) {
                tec_context(err, status, "%s", name);
                break;
            }
        }
    json_decref(in);
    json_decref(want);
    return status;
}

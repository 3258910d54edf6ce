/* encoders_encoder.c - judges cases of kind "encoder": a sentence encoder's directory and texts. */
#include "tests/judge/encoders.h"

#include <string.h>

const char *tec_encoders_path(const struct tec_encoders *j, const char *name)
{
    const char *path = tec_arena_printf(j->v->arena, "%s/%s", j->v->dir, name);
    return path ? path : "";
}

float *tec_encoders_floats(struct tec_encoders *j, const struct tec_tensors *file, const char *name,
                           size_t *n, struct tec_error *err)
{
    const struct tec_stored *t = tec_tensors_find(file, name);
    *n = t ? (size_t)tec_stored_count(t) : 0;
    float *out = t ? TEC_NEW(j->v->arena, *n + 1, float) : NULL;
    if (!t)
        tec_fail(err, TEC_NOT_FOUND, "the case lacks '%s'", name);
    else if (!out)
        tec_fail(err, TEC_NO_MEMORY, "no memory for '%s'", name);
    else if (tec_tensors_read_f32(file, t, 0, out, *n, err) != TEC_OK)
        return NULL;
    return out;
}

const int *tec_encoders_ints(struct tec_encoders *j, const struct tec_tensors *file,
                             const char *name, size_t *n, struct tec_error *err)
{
    const struct tec_stored *t = tec_tensors_find(file, name);
    *n = t ? (size_t)tec_stored_count(t) : 0;
    if (!t || t->dtype != TEC_I32) {
        tec_fail(err, TEC_NOT_FOUND, "the case lacks '%s' as I32", name);
        return NULL;
    }
    int *out = TEC_NEW(j->v->arena, *n + 1, int);
    if (!out)
        tec_fail(err, TEC_NO_MEMORY, "no memory for '%s'", name);
    else if (tec_tensors_read(file, t, 0, out, *n * sizeof *out, err) != TEC_OK)
        return NULL;
    return out;
}

void tec_encoders_compare(struct tec_encoders *j, const char *name, const float *got, size_t n,
                          const char *tap)
{
    struct tec_error err;
    size_t want = 0;
    const json_t *bounds = json_object_get(j->bounds, name);
    const float *values = tec_encoders_floats(j, j->expected, name, &want, &err);
    if (!values) {
        tec_verify_cannot(j->v, name, &err);
    } else if (!bounds || want != n || !got) {
        tec_fail(&err, TEC_SHAPE, "expected holds %zu values, the engine made %zu%s", want,
                 got ? n : 0, bounds ? "" : "; no bounds in the case");
        tec_verify_cannot(j->v, name, &err);
    } else {
        tec_verify_compared(j->v, name);
        tec_verify_floats(j->v, name, got, values, n, bounds, tap);
    }
}

void tec_encoders_same(struct tec_encoders *j, const char *check, const void *a, const void *b,
                       size_t bytes)
{
    const unsigned char *x = a, *y = b;
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += x[i] != y[i];
    tec_verify_report(j->v, check, (double)wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
}

/* The case has [max, rms] where others have an object. */
static json_t *error_of(const json_t *e)
{
    if (json_is_object(e))
        return json_deep_copy(e);
    return json_pack("{s:f, s:f}", "max", json_number_value(json_array_get(e, 0)), "rms",
                     json_number_value(json_array_get(e, 1)));
}

static json_t *bounds_of(json_t *tensors)
{
    json_t *all = json_object(), *e;
    const char *name;
    json_object_foreach(tensors, name, e)
    {
        json_object_set_new(all, name,
                            json_pack("{s:o, s:o, s:f}", "err_fp32",
                                      error_of(json_object_get(e, "err_fp32")), "err_bf16",
                                      error_of(json_object_get(e, "err_bf16")), "rms",
                                      json_number_value(json_object_get(e, "rms"))));
    }
    return all;
}

static enum tec_status read_texts(struct tec_encoders *j, struct tec_error *err)
{
    const json_t *texts = json_object_get(j->v->json, "texts");
    size_t n = json_array_size(texts);
    if (n < 1 || n > 4096)
        return tec_fail(err, TEC_MALFORMED, "case.json: texts must be a list of 1 .. 4096");
    j->n = (int)n;
    j->texts = TEC_NEW(j->v->arena, n, struct tec_encoder_text);
    for (size_t i = 0; j->texts && i < n; i++) {
        const json_t *text = json_array_get(texts, i);
        if (!json_is_string(text))
            return tec_fail(err, TEC_MALFORMED, "case.json: texts[%zu] is no text", i);
        j->texts[i] = (struct tec_encoder_text){json_string_value(text), json_string_length(text)};
    }
    return j->texts ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for texts");
}

static enum tec_status open_encoder(struct tec_encoders *j, struct tec_encoder **out, bool taps,
                                    struct tec_error *err)
{
    const struct tec_encoder_options o = {.path = tec_encoders_path(j, "checkpoint"),
                                          .models = tec_verify_shipped(j->v, "models"),
                                          .device = j->v->device,
                                          .bf16 = strcmp(j->v->dtype, "bf16") == 0,
                                          .max_texts = taps ? 1 : 8,
                                          .max_rows = taps ? 0 : 300,
                                          .taps = taps};
    return tec_encoder_open(out, &o, j->v->heap, err);
}

/* Ids of every text, against both places where the case has them. */
static enum tec_status judge_ids(struct tec_encoders *j, struct tec_error *err)
{
    size_t n_ids = 0, n_offsets = 0;
    const int *want = tec_encoders_ints(j, j->inputs, "ids", &n_ids, err);
    const int *offsets = want ? tec_encoders_ints(j, j->inputs, "offsets", &n_offsets, err) : NULL;
    const json_t *lists = json_object_get(j->v->json, "token_ids");
    int tokens = tec_encoder_tokens(j->encoder);
    j->ids = TEC_NEW(j->v->arena, (size_t)j->n * (size_t)tokens, int);
    j->starts = TEC_NEW(j->v->arena, (size_t)j->n + 1, int);
    if (!offsets || n_offsets != (size_t)j->n + 1)
        return tec_fail(err, TEC_MALFORMED, "inputs: ids and offsets of %d texts are not there",
                        j->n);
    if (!j->ids || !j->starts)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for ids");
    for (int i = 0; i < j->n; i++) {
        int n = 0, from = offsets[i], to = offsets[i + 1], *ids = j->ids + j->starts[i];
        TEC_TRY(tec_encoder_ids(j->encoder, j->texts[i], ids, &n, err));
        j->starts[i + 1] = j->starts[i] + n;
        if (from < 0 || to < from || (size_t)to > n_ids)
            return tec_fail(err, TEC_MALFORMED, "inputs: offsets of text %d", i);
        const char *check = tec_arena_printf(j->v->arena, "text%d.ids", i);
        tec_verify_ids(j->v, check, ids, (size_t)n, want + from, (size_t)(to - from));
        const json_t *list = json_array_get(lists, (size_t)i);
        bool same = json_array_size(list) == (size_t)n;
        for (int k = 0; same && k < n; k++)
            same = json_integer_value(json_array_get(list, (size_t)k)) == ids[k];
        check = tec_arena_printf(j->v->arena, "text%d.token_ids", i);
        tec_verify_report(j->v, check, same ? 0.0 : 1.0, 0.0, 0.0, same, NULL, NULL);
    }
    return TEC_OK;
}

static enum tec_status judge(struct tec_encoders *j, struct tec_error *err)
{
    TEC_TRY(read_texts(j, err));
    TEC_TRY(
        tec_tensors_open(&j->inputs, tec_encoders_path(j, "inputs.safetensors"), j->v->heap, err));
    TEC_TRY(tec_tensors_open(&j->expected, tec_encoders_path(j, "expected.safetensors"), j->v->heap,
                             err));
    TEC_TRY(tec_tensors_open(&j->similarity, tec_encoders_path(j, "similarity.safetensors"),
                             j->v->heap, err));
    TEC_TRY(open_encoder(j, &j->encoder, false, err));
    TEC_TRY(open_encoder(j, &j->tapped, true, err));
    int want = (int)json_integer_value(json_object_get(j->v->json, "max_seq_length"));
    int tokens = tec_encoder_tokens(j->encoder);
    tec_verify_ids(j->v, "max_seq_length", &tokens, 1, &want, 1);
    TEC_TRY(judge_ids(j, err));
    j->width = tec_encoder_width(j->encoder);
    size_t values = (size_t)j->n * (size_t)j->width;
    j->embedding = TEC_NEW(j->v->arena, values, float);
    j->pooled = TEC_NEW(j->v->arena, values, float);
    if (!j->embedding || !j->pooled)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu values", values);
    TEC_TRY(tec_encoder_embed(j->encoder, j->texts, j->n, j->embedding, err));
    tec_encoders_compare(j, "embedding", j->embedding, values, NULL);
    TEC_TRY(tec_encoders_taps(j, err));
    tec_encoders_compare(j, "pooled", j->pooled, values, NULL);
    TEC_TRY(tec_encoders_batch(j, err));
    TEC_TRY(tec_encoders_similarity(j, err));
    return tec_encoders_buckets(j, err);
}

enum tec_status tec_verify_encoders_encoder(struct tec_verify *v, struct tec_error *err)
{
    struct tec_encoders j = {.v = v, .bounds = bounds_of(json_object_get(v->json, "tensors"))};
    enum tec_status status = judge(&j, err);
    tec_encoder_close(j.encoder);
    tec_encoder_close(j.tapped);
    tec_tensors_close(j.inputs);
    tec_tensors_close(j.expected);
    tec_tensors_close(j.similarity);
    json_decref(j.bounds);
    return status;
}

/* encoders_tensors.c - an encoder's tensors text by text, its batch, its similarities. */
#include "graph/model/program.h"
#include "tests/judge/encoders.h"
#include "tests/judge/taps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct tec_tap_name names[] = {
#define TAP(theirs, ours, form) {theirs, ours, NULL, TEC_TAP_##form},
#include "tests/judge/taps/encoders.def"
#undef TAP
};

/* Weights of keys [heads, n, n], from taps of head_dim keys each: `name` and their number. */
static float *weights_of_keys(struct tec_encoders *j, const char *name, size_t *n)
{
    const struct tec_stack *s = &tec_encoder_model(j->tapped)->text.stack;
    int rows = 0, cols = 0, dim = s->head_dim;
    char tap[TEC_TAP_BYTES + 16];
    float *out = NULL;
    for (int at = 0; at == 0 || at < rows; at += dim) {
        snprintf(tap, sizeof tap, "%s%d", name, at / dim);
        const float *part = tec_encoder_tap(j->tapped, tap, &rows, &cols, j->v->arena);
        if (!out && part)
            out = TEC_NEW(j->v->arena, (size_t)s->heads * (size_t)rows * (size_t)rows, float);
        if (!part || !out)
            return NULL;
        for (int h = 0; h < s->heads; h++)
            for (int r = 0; r < rows; r++)
                for (int k = at; k < rows && k < at + dim; k++)
                    out[((size_t)h * (size_t)rows + (size_t)r) * (size_t)rows + (size_t)k] =
                        part[(size_t)r * (size_t)cols + (size_t)(h * dim + k - at)];
    }
    *n = (size_t)s->heads * (size_t)rows * (size_t)rows;
    return out;
}

/* The values of a tensor of the text that ran last; NULL: it has no tap. */
static float *values_of(struct tec_encoders *j, const char *name, size_t *n)
{
    struct tec_tap_found found;
    int rows = 0, cols = 0;
    *n = 0;
    if (!tec_tap_find(names, sizeof names / sizeof names[0], name, &found))
        return NULL;
    if (found.form == TEC_TAP_WEIGHTS)
        return weights_of_keys(j, found.ours, n);
    float *out = tec_encoder_tap(j->tapped, found.ours, &rows, &cols, j->v->arena);
    *n = (size_t)rows * (size_t)cols;
    return out;
}

/* Every expected tensor of text i. */
static void compare_text(struct tec_encoders *j, int i)
{
    char prefix[32];
    int length = snprintf(prefix, sizeof prefix, "text%d.", i);
    for (size_t t = 0; t < tec_tensors_count(j->expected); t++) {
        const char *name = tec_tensors_at(j->expected, t)->name;
        size_t n = 0;
        if (strncmp(name, prefix, (size_t)length) != 0)
            continue;
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        const float *got = values_of(j, name + length, &n);
        tec_encoders_compare(j, name, got, n, strstr(name, "probs") ? "unfused" : NULL);
        tec_arena_rewind(j->v->arena, mark);
    }
}

enum tec_status tec_encoders_taps(struct tec_encoders *j, struct tec_error *err)
{
    size_t row = (size_t)j->width;
    float *alone = TEC_NEW(j->v->arena, (size_t)j->n * row, float);
    if (!alone)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d texts", j->n);
    for (int i = 0; i < j->n; i++) {
        int rows = 0, cols = 0;
        TEC_TRY(tec_encoder_embed(j->tapped, &j->texts[i], 1, alone + (size_t)i * row, err));
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        const float *pooled = tec_encoder_tap(j->tapped, "pooled", &rows, &cols, j->v->arena);
        if (!pooled || rows != 1 || cols != j->width)
            return tec_fail(err, TEC_INVALID, "text %d: its mean is not there", i);
        memcpy(j->pooled + (size_t)i * row, pooled, row * sizeof *pooled);
        tec_arena_rewind(j->v->arena, mark);
        compare_text(j, i);
    }
    tec_encoders_same(j, "embedding.alone_equals_together", alone, j->embedding,
                      (size_t)j->n * row * sizeof *alone);
    return TEC_OK;
}

/* The ids of a padded batch that its mask keeps, text after text. */
static enum tec_status unpad(struct tec_encoders *j, int *n, int **ids, int **starts,
                             struct tec_error *err)
{
    size_t n_rows = 0, n_ids = 0, n_mask = 0;
    const int *rows = tec_encoders_ints(j, j->inputs, "batch.rows", &n_rows, err);
    const int *all = rows ? tec_encoders_ints(j, j->inputs, "batch.ids", &n_ids, err) : NULL;
    const int *mask = all ? tec_encoders_ints(j, j->inputs, "batch.mask", &n_mask, err) : NULL;
    if (!mask || n_rows < 1 || n_mask != n_ids || n_ids % n_rows != 0)
        return tec_fail(err, TEC_MALFORMED, "inputs: batch.rows, batch.ids and batch.mask");
    *n = (int)n_rows;
    *ids = TEC_NEW(j->v->arena, n_ids, int);
    *starts = TEC_NEW(j->v->arena, n_rows + 1, int);
    if (!*ids || !*starts)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a batch");
    size_t each = n_ids / n_rows;
    int kept = 0;
    for (size_t i = 0; i < n_ids; i++) {
        if (mask[i])
            (*ids)[kept++] = all[i];
        (*starts)[i / each + 1] = kept;
    }
    return TEC_OK;
}

enum tec_status tec_encoders_batch(struct tec_encoders *j, struct tec_error *err)
{
    int n = 0, *ids = NULL, *starts = NULL;
    size_t n_rows = 0, n_want = 0, row = (size_t)j->width;
    TEC_TRY(unpad(j, &n, &ids, &starts, err));
    const int *rows = tec_encoders_ints(j, j->inputs, "batch.rows", &n_rows, err);
    const float *all = tec_encoders_floats(j, j->expected, "embedding", &n_want, err);
    float *got = TEC_NEW(j->v->arena, (size_t)n * row, float);
    float *want = TEC_NEW(j->v->arena, (size_t)n * row, float);
    float *before = TEC_NEW(j->v->arena, (size_t)n * row, float);
    if (!rows || !all || !got || !want || !before || n_want != (size_t)j->n * row)
        return tec_fail(err, TEC_MALFORMED, "the batch or its embeddings are not there");
    for (int i = 0; i < n; i++) {
        if (rows[i] < 0 || rows[i] >= j->n)
            return tec_fail(err, TEC_MALFORMED, "inputs: batch.rows[%d] is %d", i, rows[i]);
        memcpy(want + (size_t)i * row, all + (size_t)rows[i] * row, row * sizeof *want);
        memcpy(before + (size_t)i * row, j->embedding + (size_t)rows[i] * row,
               row * sizeof *before);
    }
    TEC_TRY(tec_encoder_embed_ids(j->encoder, ids, starts, n, got, err));
    tec_verify_floats(j->v, "batch.embedding", got, want, (size_t)n * row,
                      json_object_get(j->bounds, "embedding"), NULL);
    tec_encoders_same(j, "batch.equals_alone", got, before, (size_t)n * row * sizeof *got);
    return TEC_OK;
}

/* How far a product of two unit vectors may be off: by the lengths of both errors. */
static double product_bound(const struct tec_encoders *j)
{
    bool bf16 = strcmp(j->v->dtype, "bf16") == 0;
    const json_t *e =
        json_object_get(json_object_get(j->bounds, "embedding"), bf16 ? "err_bf16" : "err_fp32");
    double max = json_number_value(json_object_get(e, "max"));
    return 2.0 * sqrt((double)j->width) * (bf16 ? 1.5 : 4.0) * max;
}

/* Pairs of texts whose distance to a third one is the other way round, by more than the bound. */
static size_t inversions(const float *want, const double *got, int n, double bound)
{
    size_t wrong = 0;
    for (int i = 0; i < n; i++)
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                wrong += (double)want[i * n + a] - (double)want[i * n + b] > 2.0 * bound &&
                         !(got[i * n + a] > got[i * n + b]);
    return wrong;
}

enum tec_status tec_encoders_similarity(struct tec_encoders *j, struct tec_error *err)
{
    size_t count = 0, n = (size_t)j->n, row = (size_t)j->width;
    const float *want = tec_encoders_floats(j, j->similarity, "similarity", &count, err);
    double *got = TEC_NEW(j->v->arena, n * n, double), max = 0.0, squares = 0.0;
    if (!want)
        return err->status;
    if (!got || count != n * n)
        return tec_fail(err, TEC_MALFORMED, "similarity: %zu values of %d texts", count, j->n);
    for (size_t i = 0; i < n * n; i++) {
        const float *a = j->embedding + i / n * row, *b = j->embedding + i % n * row;
        for (size_t k = 0; k < row; k++)
            got[i] += (double)a[k] * (double)b[k];
        double d = fabs(got[i] - (double)want[i]);
        max = d <= max ? max : d; /* a NaN stays */
        squares += d * d;
    }
    double bound = product_bound(j);
    tec_verify_report(j->v, "similarity", max, sqrt(squares / (double)(n * n)), bound, max <= bound,
                      NULL, NULL);
    size_t wrong = inversions(want, got, j->n, bound);
    tec_verify_report(j->v, "similarity.order", (double)wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
    return TEC_OK;
}

/* Beside the cases of encoders whose scores know distances stands a list of buckets. */
enum tec_status tec_encoders_buckets(struct tec_encoders *j, struct tec_error *err)
{
    const struct tec_relative *r = &tec_model_attention(tec_encoder_model(j->encoder), 0)->relative;
    const char *path = tec_encoders_path(j, "../mpnet_buckets.json");
    json_error_t where;
    if (!r->name || access(path, F_OK) != 0)
        return TEC_OK;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    const json_t *list = json_object_get(json, "bucket");
    int first = (int)json_integer_value(json_object_get(json, "first"));
    size_t n = json_array_size(list), wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong +=
            json_integer_value(json_array_get(list, i)) != tec_relative_bucket(r, first + (int)i);
    json_decref(json);
    if (n == 0)
        return tec_fail(err, TEC_MALFORMED, "%s: has no buckets", path);
    tec_verify_report(j->v, "buckets", (double)wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
    return TEC_OK;
}

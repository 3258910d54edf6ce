/* openvla_oft.c - judges cases of kind "oft": chunks of actions from one bidirectional forward. */
#include "tests/judge/openvla.h"
#include "tests/judge/stage_times.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VALUES = 64 };

struct judge {
    struct tec_pi *pi;
    struct tec_plan *plan;
    const char *name; /* of the variant */
    struct tec_prefix_input o;
    float state[MAX_VALUES];
    float *chunk;
    int horizon, dim;
    bool parallel; /* actions are tokens */
};

static const json_t *variant(const struct judge *j)
{
    return json_object_get(json_object_get(j->pi->v->json, "variants"), j->name);
}

static const char *check(const struct judge *j, const char *what)
{
    const char *name = tec_arena_printf(j->pi->v->arena, "%s.%s", j->name, what);
    return name ? name : "?";
}

static enum tec_status read_inputs(struct judge *j, struct tec_error *err)
{
    const json_t *ids = json_object_get(variant(j), "input_ids_extended");
    size_t n = json_array_size(ids);
    int *out = TEC_NEW(j->pi->v->arena, n + 1, int), images;
    images = (int)json_integer_value(json_object_get(variant(j), "images"));
    if (!out || n < 2 || n > 4096 || images < 1 || images > j->pi->model->n_slots)
        return tec_fail(err, TEC_MALFORMED, "%s: %zu ids and %d images of at most %d", j->name, n,
                        images, j->pi->model->n_slots);
    for (size_t i = 0; i < n; i++)
        out[i] = (int)json_integer_value(json_array_get(ids, i));
    j->o = (struct tec_prefix_input){.n_pictures = images, .ids = out, .n_text = (int)n};
    for (int i = 0; i < images; i++) {
        char name[32];
        snprintf(name, sizeof name, "image.%d", i);
        j->o.picture[i] = tec_openvla_picture(j->pi, name, err);
        if (!j->o.picture[i])
            return err->status;
    }
    if (j->pi->max_text < j->o.n_text)
        j->pi->max_text = j->o.n_text;
    return TEC_OK;
}

static enum tec_status norm(const struct judge *j, const char *vector, struct tec_norm *out,
                            struct tec_error *err)
{
    const char *key = json_string_value(json_object_get(j->pi->v->json, "unnorm_key"));
    const char *mode = json_string_value(
        json_object_get(json_object_get(j->pi->v->json, "constants"), "normalisation"));
    bool bounds = mode && strcmp(mode, "bounds") == 0;
    return tec_checkpoint_norm_dataset(j->pi->checkpoint, out, key, vector,
                                       bounds ? TEC_NORM_MIN_MAX : TEC_NORM_QUANTILE, 1e-8,
                                       j->pi->v->arena, err);
}

/* The robot's state as the case gives it, normalised; compared once. */
static enum tec_status read_state(struct judge *j, bool compare, struct tec_error *err)
{
    const struct tec_stored *raw = tec_tensors_find(j->pi->inputs, "proprio_raw");
    const struct tec_stored *want = tec_tensors_find(j->pi->expected, "proprio_normalised");
    int n = j->pi->model->head.state;
    float in[MAX_VALUES], expected[MAX_VALUES];
    double x[MAX_VALUES], worst = 0.0;
    struct tec_norm stats;
    if (n < 1 || n > MAX_VALUES || !raw || raw->bytes != (size_t)n * 4 || !want ||
        want->bytes != raw->bytes)
        return tec_fail(err, TEC_SHAPE, "%s: a state of %d entries is not what the case has",
                        j->name, n);
    TEC_TRY(norm(j, "proprio", &stats, err));
    TEC_TRY(tec_tensors_read_f32(j->pi->inputs, raw, 0, in, (size_t)n, err));
    TEC_TRY(tec_tensors_read_f32(j->pi->expected, want, 0, expected, (size_t)n, err));
    for (int i = 0; i < n; i++)
        x[i] = (double)in[i];
    tec_norm_apply(&stats, x, (size_t)n, x);
    for (int i = 0; i < n; i++) {
        j->state[i] = (float)x[i];
        double off = fabs((double)j->state[i] - (double)expected[i]);
        worst = off > worst ? off : worst; /* not fmax: gcc 12 for aarch64 fails on a loop of it */
    }
    tec_verify_compared(j->pi->v, "proprio_normalised");
    if (compare)
        tec_verify_report(j->pi->v, "proprio_normalised", worst, 0.0, 2e-7, worst <= 2e-7, NULL,
                          NULL);
    return TEC_OK;
}

/* Rows of memory in the order of the sequence. */
static const float *in_order(const struct judge *j, const float *rows, size_t n)
{
    const struct tec_rows *prefix = &j->plan->parts[0].prefix.prefix;
    size_t live = (size_t)*prefix->count, cols = live ? n / live : 0;
    float *out = rows ? TEC_NEW(j->pi->v->arena, n, float) : NULL;
    for (size_t r = 0; out && r < live; r++)
        memcpy(out + (size_t)prefix->pos[r] * cols, rows + r * cols, cols * sizeof *out);
    return out;
}

static const float *tap(const struct judge *j, const char *name, size_t *n)
{
    return tec_pi_tap(j->pi, &j->plan->parts[0], name, 0, -1, n);
}

/* Every fourth of the rows. */
static const float *logits(struct judge *j, size_t *n)
{
    size_t cols = (size_t)j->pi->model->text.vocab, all;
    const float *rows = tap(j, "logits", &all);
    size_t count = rows ? (all / cols + 3) / 4 : 0;
    float *out = rows ? TEC_NEW(j->pi->v->arena, count * cols, float) : NULL;
    for (size_t r = 0; out && r < count; r++)
        memcpy(out + r * cols, rows + 4 * r * cols, cols * sizeof *out);
    *n = count * cols;
    return out;
}

static const float *tensor(struct judge *j, const char *what, size_t *n)
{
    struct tec_tap_found found;
    const float *rows;
    if (!tec_openvla_tap(what, &found))
        return NULL;
    switch (found.form) {
    case TEC_TAP_ROWS:
        return tap(j, found.ours, n);
    case TEC_TAP_TEXT_ROWS:
    case TEC_TAP_HEADS:
        rows = tap(j, found.ours, n);
        rows = in_order(j, rows, rows ? *n : 0);
        return found.form == TEC_TAP_HEADS
                   ? tec_openvla_by_head(j->pi, &j->pi->model->text.stack, rows, rows ? *n : 0)
                   : rows;
    case TEC_TAP_LOGITS:
        return logits(j, n);
    case TEC_TAP_CHUNK:
        *n = (size_t)j->horizon * (size_t)j->dim;
        return j->chunk;
    default:
        return NULL;
    }
}

/* True if the case has no tensor of the actions in the robot's units, or it holds the numbers of
 * the case's JSON, rounded to float32 as tensors are. */
static bool holds_action(struct judge *j, const json_t *rows)
{
    const char *name = check(j, "action");
    const struct tec_stored *t = tec_tensors_find(j->pi->expected, name);
    size_t n = (size_t)j->horizon * (size_t)j->dim;
    float *stored = t ? TEC_NEW(j->pi->v->arena, n + 1, float) : NULL;
    if (!t)
        return true;
    if (!stored || (size_t)tec_stored_count(t) != n ||
        tec_tensors_read_f32(j->pi->expected, t, 0, stored, n, NULL) != TEC_OK)
        return false;
    tec_verify_compared(j->pi->v, name);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i / (size_t)j->dim);
        if (stored[i] != (float)json_number_value(json_array_get(row, i % (size_t)j->dim)))
            return false;
    }
    return true;
}

/* The actions in the robot's units: as far off as the bound of the normalised ones lets them be. */
static void judge_action(struct judge *j)
{
    const json_t *rows = json_object_get(variant(j), "action");
    const json_t *bounds =
        json_object_get(json_object_get(j->pi->tensors, check(j, "actions_normalised")),
                        strcmp(j->pi->v->dtype, "bf16") == 0 ? "err_bf16" : "err_fp32");
    double factor = strcmp(j->pi->v->dtype, "bf16") == 0 ? 1.5 : 4.0, worst = 0.0;
    double bound = j->parallel ? 1e-6 : factor * json_number_value(json_object_get(bounds, "max"));
    struct tec_norm stats;
    struct tec_error err;
    if (j->dim > MAX_VALUES || json_array_size(rows) != (size_t)j->horizon || !(bound > 0.0) ||
        norm(j, "action", &stats, &err) != TEC_OK) {
        tec_verify_report(j->pi->v, check(j, "action"), 1.0, 0.0, 0.0, false, NULL,
                          "no actions, bounds or statistics of the model's shape");
        return;
    }
    bool held = holds_action(j, rows);
    for (int r = 0; r < j->horizon; r++) {
        double one[MAX_VALUES], low[MAX_VALUES], high[MAX_VALUES];
        for (int c = 0; c < j->dim; c++) {
            one[c] = (double)j->chunk[(size_t)r * (size_t)j->dim + (size_t)c];
            low[c] = -1.0;
            high[c] = 1.0;
        }
        tec_norm_undo(&stats, one, (size_t)j->dim, one);
        tec_norm_undo(&stats, low, (size_t)j->dim, low);
        tec_norm_undo(&stats, high, (size_t)j->dim, high);
        for (int c = 0; c < j->dim; c++) {
            const json_t *want = json_array_get(json_array_get(rows, (size_t)r), (size_t)c);
            double off = fabs(one[c] - json_number_value(want));
            double unit = 0.5 * fabs(high[c] - low[c]);
            worst = fmax(worst, json_is_number(want) ? off / fmax(unit, 1e-9) : 1e9);
        }
    }
    tec_verify_report(j->pi->v, check(j, "action"), worst, 0.0, bound, worst <= bound && held, NULL,
                      held ? NULL : "the case's tensor has other actions than its JSON");
}

/* Token ids, and in the chunk the actions that they mean. False: this dtype is held to neither,
 * because the model's own bf16 run chose other ids. */
static bool judge_ids(struct judge *j)
{
    static const char other[] = "not judged: the case's own bf16 run chooses others";
    const json_t *ids = json_object_get(variant(j), "token_ids");
    const struct tec_action_tokens *t = &j->pi->model->tokens;
    const json_t *same = json_object_get(variant(j), "token_ids_bf16_equal");
    size_t n = json_array_size(ids), rows = (size_t)j->horizon * (size_t)j->dim;
    int *got = TEC_NEW(j->pi->v->arena, rows + 1, int),
        *want = TEC_NEW(j->pi->v->arena, n + 1, int);
    if (!got || !want)
        return true;
    for (size_t i = 0; i < rows; i++)
        got[i] = (int)j->chunk[i];
    for (size_t i = 0; i < n; i++)
        want[i] = (int)json_integer_value(json_array_get(ids, i));
    if (strcmp(j->pi->v->dtype, "bf16") == 0 && json_number_value(same) < 1.0) {
        tec_verify_unjudged(j->pi->v, check(j, "token_ids"), other);
        tec_verify_unjudged(j->pi->v, check(j, "action"), other);
        return false;
    }
    tec_verify_ids(j->pi->v, check(j, "token_ids"), got, rows, want, n);
    for (size_t i = 0; i < rows; i++) {
        int bin = t->vocab - got[i] - 1;
        bin = bin < 0 ? 0 : bin > t->bins - 2 ? t->bins - 2 : bin;
        j->chunk[i] = (float)(-1.0 + (2.0 * bin + 1.0) / (t->bins - 1));
    }
    return true;
}

static void judge_tensors(struct judge *j)
{
    size_t skip = strlen(j->name);
    for (size_t i = 0; i < tec_tensors_count(j->pi->expected); i++) {
        const char *name = tec_tensors_at(j->pi->expected, i)->name;
        size_t n = 0;
        if (strncmp(name, j->name, skip) != 0 || name[skip] != '.' ||
            strcmp(name + skip, ".action") == 0) /* compared by judge_action */
            continue;
        const float *got = tensor(j, name + skip + 1, &n);
        tec_pi_compare(j->pi, name, got, got ? n : 0, "unfused");
    }
}

static enum tec_status run(struct judge *j, bool taps, struct tec_error *err)
{
    struct tec_replay replay = {0};
    const struct tec_action_inputs a = {.state = j->pi->model->head.state ? j->state : NULL};
    size_t n = (size_t)j->horizon * (size_t)j->dim;
    tec_plan_destroy(j->plan);
    j->plan = NULL;
    TEC_TRY(tec_pi_plan(j->pi, &j->plan, 1, 0, 0, taps, err));
    TEC_TRY(tec_prefix_check(j->plan, &j->o, err));
    int region = tec_kv_pool_take(&j->plan->prefixes);
    j->chunk = TEC_NEW(j->pi->v->arena, n, float);
    if (region < 0 || !j->chunk)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a chunk");
    tec_launch_prefix(j->plan, &j->plan->parts[0], region, &j->o, &a, &replay);
    tec_verify_replayed(j->pi->v, j->plan, &replay);
    tec_launch_actions(j->plan, &j->plan->parts[0], j->chunk);
    return TEC_OK;
}

static enum tec_status judge_variant(struct judge *j, bool first, struct tec_error *err)
{
    j->horizon = j->pi->model->flow.horizon;
    j->dim = j->pi->model->flow.dim;
    TEC_TRY(tec_pi_open_tensors(j->pi, err));
    TEC_TRY(read_inputs(j, err));
    if (j->pi->model->head.state)
        TEC_TRY(read_state(j, first, err));
    TEC_TRY(run(j, true, err));
    judge_tensors(j);
    const float *unfused = j->chunk;
    TEC_TRY(run(j, false, err));
    tec_pi_same(j->pi, check(j, "actions.fused_equals_unfused"), j->chunk, unfused,
                (size_t)j->horizon * (size_t)j->dim * sizeof(float));
    if (!j->parallel || judge_ids(j))
        judge_action(j);
    return TEC_OK;
}

static enum tec_status open_variant(struct judge *j, struct tec_verify *v, struct tec_error *err)
{
    const json_t *constants = json_object_get(v->json, "constants");
    const char *base = json_string_value(json_object_get(v->json, "checkpoint"));
    const json_t *horizon = json_object_get(constants, "NUM_ACTIONS_CHUNK");
    size_t n = base ? strcspn(base, " ") : 0;
    const char *path = tec_arena_printf(v->arena, "%.*s", (int)n, base ? base : "");
    const char *head = json_string_value(json_object_get(variant(j), "head"));
    j->parallel = head && strncmp(head, "none", 4) == 0;
    json_t *overrides = json_pack("{s:I, s:I, s:s}", "horizon", json_integer_value(horizon), "dim",
                                  json_integer_value(json_object_get(constants, "ACTION_DIM")),
                                  "arch", j->parallel ? "openvla_parallel" : "openvla");
    enum tec_status status =
        !path || !n
            ? tec_fail(err, TEC_MALFORMED, "%s/case.json: no checkpoint", v->dir)
            : tec_pi_open_beside(j->pi, v, path, j->parallel ? NULL : "checkpoint", overrides, err);
    json_decref(overrides);
    return status;
}

enum tec_status tec_verify_openvla_oft(struct tec_verify *v, struct tec_error *err)
{
    const char *name;
    json_t *value;
    bool first = true;
    enum tec_status status = TEC_OK;
    json_object_foreach(json_object_get(v->json, "variants"), name, value)
    {
        struct tec_pi pi = {.v = v};
        struct judge j = {.pi = &pi, .name = name};
        if (status == TEC_OK)
            status = open_variant(&j, v, err);
        if (status == TEC_OK)
            status = judge_variant(&j, first, err);
        first = false;
        tec_plan_destroy(j.plan);
        tec_pi_finish(&pi);
    }
    return first ? tec_fail(err, TEC_MALFORMED, "%s/case.json: no variants", v->dir) : status;
}

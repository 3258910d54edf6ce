/* pi_actions.c - judges cases of kind "actions": every tap of one prefill and one action chunk. */
#include "graph/model/program.h"
#include "kernels/matrix.h"
#include "tests/judge/pi.h"
#include "tests/judge/pi_lerobot.h"
#include "tests/judge/stage_times.h"
#include "tests/judge/taps.h"

#include <stdio.h>
#include <string.h>

struct judge {
    struct tec_pi *pi;
    struct tec_pi_inputs in;
    struct tec_plan *plan; /* with taps */
    int rows;
};

static const struct tec_tap_name names[] = {
#define TAP(theirs, ours, form) {theirs, ours, NULL, TEC_TAP_##form},
#include "tests/judge/taps/pi.def"
#undef TAP
};

static const float *read_tap(struct judge *j, const char *name, int first, int rows, size_t *n)
{
    return tec_pi_tap(j->pi, &j->plan->parts[0], name, first, rows, n);
}

/* "<slot>.<what>": the rows of that slot's picture in the tap "vision.<what>". */
static const float *read_vision(struct judge *j, const char *slot, size_t *n)
{
    const struct tec_model *m = j->pi->model;
    char tap[128];
    for (int s = 0; s < m->n_slots; s++) {
        size_t length = strlen(m->slots[s]);
        if (strncmp(slot, m->slots[s], length) != 0 || slot[length] != '.' ||
            !j->in.camera_valid[s])
            continue;
        snprintf(tap, sizeof tap, "vision.%s", slot + length + 1);
        return read_tap(j, tap, j->in.slot_row[s] * m->vision.tokens, m->vision.tokens, n);
    }
    return NULL;
}

/* A row of the time at a step, without its padding; NULL for no call. */
static const float *read_timed(struct judge *j, int call, int step, size_t *n)
{
    const struct tec_timed *t = j->plan->timed[0];
    size_t cols = call < 0 ? 0 : (size_t)t->program->calls[call].cols;
    float *out = TEC_NEW(j->pi->v->arena, cols + 1, float);
    if (call < 0 || !out || step >= t->steps)
        return NULL;
    tec_device_download(j->pi->device, TEC_STREAM_MAIN, out, tec_timed_row(t, call, step),
                        cols * sizeof(float));
    *n = cols;
    return out;
}

static const float *read_condition(struct judge *j, int step, size_t *n)
{
    const struct tec_model_program *p = j->pi->model->program;
    int row = tec_pi_modulation(p, 0);
    return read_timed(j, row < 0 ? -1 : p->calls[row].in[0], step, n);
}

/* The modulation of a norm: scale, shift and gate. */
static const float *read_norm(struct judge *j, const struct tec_tap_found *found, size_t *n)
{
    const struct tec_model_program *p = j->pi->model->program;
    int norm = found->form == TEC_TAP_FINAL_NORM
                   ? tec_pi_modulations(p) - 1
                   : 2 * found->number[1] + (found->form == TEC_TAP_POST_NORM);
    return read_timed(j, tec_pi_modulation(p, norm), found->number[0], n);
}

/* The last [H, A] of the steps' taps. */
static const float *read_last(struct judge *j, const char *tap, size_t *n)
{
    size_t chunk = (size_t)j->pi->model->flow.horizon * (size_t)j->pi->model->flow.dim, all;
    const float *x = tec_pi_steps(j->pi, j->plan, tap, j->in.noise, &all);
    *n = chunk;
    return x ? x + (all - chunk) : NULL;
}

static const float *find(struct judge *j, const char *name, size_t *n)
{
    struct tec_tap_found found;
    if (!tec_tap_find(names, sizeof names / sizeof names[0], name, &found))
        return NULL;
    switch (found.form) {
    case TEC_TAP_STEPS:
    case TEC_TAP_STEPS_FROM_NOISE:
        return tec_pi_steps(j->pi, j->plan, found.ours,
                            found.form == TEC_TAP_STEPS_FROM_NOISE ? j->in.noise : NULL, n);
    case TEC_TAP_LAST_STEP:
        return read_last(j, found.ours, n);
    case TEC_TAP_PICTURE:
        return read_vision(j, found.ours, n);
    case TEC_TAP_CONDITION:
        return read_condition(j, found.number[0], n);
    case TEC_TAP_INPUT_NORM:
    case TEC_TAP_POST_NORM:
    case TEC_TAP_FINAL_NORM:
        return read_norm(j, &found, n);
    case TEC_TAP_ROWS:
        return read_tap(j, found.ours, 0, -1, n);
    default:
        return NULL;
    }
}

/* Which rows of the padded prefix there are, pictures by slot and then the text; and behind them
 * how many the engine runs. */
static void judge_valid(struct judge *j, const char *name, const struct tec_stored *t)
{
    struct tec_pi *pi = j->pi;
    const struct tec_model *m = pi->model;
    size_t n = t->bytes, each = (size_t)m->vision.tokens, pictures = (size_t)m->n_slots * each;
    unsigned char *valid = tec_arena_push(pi->v->arena, n + 1, 1, 1);
    int *want = TEC_NEW(pi->v->arena, n + 1, int), *got = TEC_NEW(pi->v->arena, n + 1, int);
    bool read =
        valid && want && got && tec_tensors_read(pi->expected, t, 0, valid, n, NULL) == TEC_OK;
    for (size_t i = 0; read && i < n; i++) {
        want[i] = valid[i];
        want[n] += valid[i];
        got[i] =
            i < pictures ? j->in.camera_valid[i / each] : i - pictures < (size_t)j->in.o.n_text;
    }
    if (read)
        got[n] = j->rows;
    tec_verify_compared(pi->v, name);
    tec_verify_ids(pi->v, name, got, read ? n + 1 : 0, want, n + 1);
}

/* What is no tensor of numbers to compare: which rows the prefix has, or what another part of the
 * judge compares. */
static bool judged_otherwise(struct judge *j, const char *name)
{
    struct tec_pi *pi = j->pi;
    const struct tec_stored *t = tec_tensors_find(pi->expected, name);
    struct tec_tap_found found;
    if (!tec_tap_find(names, sizeof names / sizeof names[0], name, &found))
        return false;
    if (found.form == TEC_TAP_POSITIONS) {
        int *want = TEC_NEW(pi->v->arena, t->bytes / 4 + 1, int);
        tec_verify_compared(pi->v, name);
        if (want && tec_tensors_read(pi->expected, t, 0, want, t->bytes, NULL) == TEC_OK)
            tec_verify_ids(pi->v, name, j->plan->parts[0].prefix.prefix.pos, (size_t)j->rows, want,
                           t->bytes / 4);
        return true;
    }
    if (found.form != TEC_TAP_VALID)
        return found.form == TEC_TAP_ELSEWHERE;
    judge_valid(j, name, t);
    return true;
}

/* Every expected tensor whose name begins with `prefix`. */
static void judge_all(struct judge *j, const char *prefix)
{
    struct tec_pi *pi = j->pi;
    for (size_t i = 0; i < tec_tensors_count(pi->expected); i++) {
        const char *name = tec_tensors_at(pi->expected, i)->name;
        bool three = strncmp(name, "s3.", 3) == 0;
        if (three != (prefix[0] != '\0') || judged_otherwise(j, name))
            continue;
        size_t n = 0;
        const float *got = find(j, name + strlen(prefix), &n);
        tec_pi_compare(pi, name, got, got ? n : 0, "unfused");
    }
}

/* The plan without taps and with the last layer's shortcut gives the same chunk. */
static enum tec_status judge_fused(struct judge *j, int steps, struct tec_error *err)
{
    struct tec_pi *pi = j->pi;
    struct tec_plan *plan = NULL;
    size_t n = 0;
    TEC_TRY(tec_pi_plan(pi, &plan, steps, 0, 0, false, err));
    const struct tec_action_inputs a = {.noise = j->in.noise, .state = j->in.state};
    struct tec_replay replay = {0};
    const float *unfused = find(j, "actions", &n);
    float *chunk = TEC_NEW(pi->v->arena, n, float);
    int region = tec_kv_pool_take(&plan->prefixes);
    tec_launch_prefix(plan, &plan->parts[0], region, &j->in.o, &a, &replay);
    tec_verify_replayed(j->pi->v, plan, &replay);
    if (chunk && unfused) {
        tec_launch_actions(plan, &plan->parts[0], chunk);
        tec_pi_same(pi,
                    steps == 3 ? "s3.actions.fused_equals_unfused" : "actions.fused_equals_unfused",
                    chunk, unfused, n * sizeof(float));
    }
    tec_plan_destroy(plan);
    return TEC_OK;
}

static enum tec_status judge_steps(struct judge *j, int steps, const char *prefix,
                                   struct tec_error *err)
{
    struct tec_pi *pi = j->pi;
    TEC_TRY(tec_pi_plan(pi, &j->plan, steps, 0, 0, true, err));
    TEC_TRY(tec_prefix_check(j->plan, &j->in.o, err));
    j->rows = tec_prefix_rows(j->plan, &j->in.o);
    const struct tec_action_inputs a = {.noise = j->in.noise, .state = j->in.state};
    struct tec_replay replay = {0};
    int region = tec_kv_pool_take(&j->plan->prefixes);
    tec_launch_prefix(j->plan, &j->plan->parts[0], region, &j->in.o, &a, &replay);
    tec_verify_replayed(j->pi->v, j->plan, &replay);
    judge_all(j, prefix);
    return judge_fused(j, steps, err);
}

static bool has_three(const struct tec_pi *pi)
{
    return tec_tensors_find(pi->expected, "s3.actions") != NULL;
}

static enum tec_status judge_case(struct tec_pi *pi, struct tec_error *err)
{
    struct judge j = {.pi = pi};
    TEC_TRY(tec_pi_open_tensors(pi, err));
    TEC_TRY(tec_pi_read(pi, "", &j.in, err));
    enum tec_status status = judge_steps(&j, 10, "", err);
    tec_plan_destroy(j.plan);
    j.plan = NULL;
    if (status == TEC_OK && has_three(pi))
        status = judge_steps(&j, 3, "s3.", err);
    tec_plan_destroy(j.plan);
    if (status == TEC_OK && json_object_get(pi->v->json, "processing"))
        tec_verify_lerobot_processing(pi->v);
    return status;
}

enum tec_status tec_verify_pi_actions(struct tec_verify *v, struct tec_error *err)
{
    struct tec_pi pi;
    enum tec_status status = tec_pi_open(&pi, v, NULL, NULL, err);
    if (status == TEC_OK)
        tec_pi_keep_times(pi.model);
    if (status == TEC_OK)
        status = judge_case(&pi, err);
    tec_pi_finish(&pi);
    return status;
}

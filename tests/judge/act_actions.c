/* act_actions.c - judges cases of kind "actions": every tensor of one observation's way through
 * net, encoder and queries, and its actions in both units. */
#include "graph/model/program.h"
#include "tests/judge/act.h"
#include "tests/judge/taps.h"

#include <stdio.h>
#include <string.h>

static const struct tec_tap_name names[] = {
#define TAP(theirs, ours, form) {theirs, ours, NULL, TEC_TAP_##form},
#include "tests/judge/taps/act.def"
#undef TAP
};

static const float *tap(struct tec_act *a, const char *name, int first, int rows, size_t *n)
{
    return tec_pi_tap(&a->pi, &a->plan->parts[0], name, first, rows, n);
}

/* Pixels as rows to [channels, pixels]. */
static const float *by_channel(struct tec_act *a, const char *name, size_t *n)
{
    const float *rows = tap(a, name, 0, -1, n);
    const struct tec_plan_part *part = &a->plan->parts[0];
    float *out = rows ? TEC_NEW(a->pi.v->arena, *n + 1, float) : NULL;
    size_t cols = 1;
    for (int i = 0; i < part->taps.n; i++)
        if (strcmp(part->taps.items[i].name, name) == 0)
            cols = (size_t)part->taps.items[i].cols;
    for (size_t r = 0; out && r < *n / cols; r++)
        for (size_t c = 0; c < cols; c++)
            out[c * (*n / cols) + r] = rows[r * cols + c];
    return out;
}

/* The rows of a picture among those of the encoder, which are joined before its layers. */
static const float *of_picture(struct tec_act *a, const char *name, int slot, size_t *n)
{
    const struct tec_model_program *p = a->pi.model->program;
    const struct tec_model_call *rows = p->calls;
    int before = 0, seen = 0;
    while (rows->word != TEC_WORD_concat || rows->constant)
        rows++;
    for (int i = 0; i < rows->n_in; i++) {
        const struct tec_model_call *part = &p->calls[rows->in[i]];
        if (part->h && seen++ == slot)
            return tap(a, name, before, part->rows, n);
        before += part->rows;
    }
    return NULL;
}

/* Entries of the state that a row in front reads, the first or the last of those. */
static const float *state(struct tec_act *a, bool first, size_t *n)
{
    const struct tec_model_program *p = a->pi.model->program;
    if (!p->n_states)
        return NULL;
    const struct tec_model_call *c = &p->calls[p->states[first ? 0 : p->n_states - 1]];
    *n = (size_t)c->cols;
    return a->seen.state + c->first;
}

/* What leaves the encoder is its last layer's where no norm stands behind that. */
static const float *read_rows(struct tec_act *a, const char *name, size_t *n)
{
    const struct tec_model_program *p = a->pi.model->program;
    const float *rows = tap(a, name, 0, -1, n);
    if (rows || strcmp(name, "encoder.out") != 0)
        return rows;
    for (int i = p->parts[TEC_PART_OF_ACTION] - 1; i >= 0; i--)
        if (p->calls[i].name && !p->calls[i].constant)
            return tap(a, p->calls[i].name, 0, -1, n);
    return NULL;
}

static const float *find(struct tec_act *a, const char *name, size_t *n)
{
    struct tec_tap_found found;
    if (!tec_tap_find(names, sizeof names / sizeof names[0], name, &found))
        return NULL;
    if (found.form == TEC_TAP_ROWS)
        return read_rows(a, found.ours, n);
    if (found.form == TEC_TAP_CHANNELS)
        return by_channel(a, found.ours, n);
    if (found.form == TEC_TAP_PICTURE)
        return of_picture(a, found.ours, found.number[0], n);
    if (found.form == TEC_TAP_STATE)
        return state(a, strcmp(found.ours, "first") == 0, n);
    *n = (size_t)a->pi.model->flow.horizon * (size_t)a->pi.model->flow.dim;
    return found.form == TEC_TAP_CHUNK ? a->chunk : NULL;
}

/* What is made before the model, the state in float32, is the same in every dtype of the plan: it
 * is held to the bound of fp32. */
static void compare(struct tec_act *a, const char *name, const float *got, size_t n)
{
    struct tec_verify *v = a->pi.v;
    const char *dtype = v->dtype;
    struct tec_tap_found found;
    if (tec_tap_find(names, sizeof names / sizeof names[0], name, &found) &&
        found.form == TEC_TAP_STATE)
        v->dtype = "f32";
    tec_pi_compare(&a->pi, name, got, got ? n : 0, "unfused");
    v->dtype = dtype;
}

static enum tec_status judge_all(struct tec_act *a, struct tec_error *err)
{
    float *robot = NULL;
    int horizon = a->pi.model->flow.horizon;
    TEC_TRY(tec_act_frame(a, "", err));
    TEC_TRY(tec_act_robot(a, a->chunk, horizon, &robot, err));
    for (size_t i = 0; i < tec_tensors_count(a->pi.expected); i++) {
        const char *name = tec_tensors_at(a->pi.expected, i)->name;
        size_t n = (size_t)horizon * (size_t)a->robot->n_actions;
        const float *got = strcmp(name, "robot_actions") == 0 ? robot : find(a, name, &n);
        compare(a, name, got, n);
    }
    return TEC_OK;
}

/* The plan without taps makes the same bytes. */
static enum tec_status judge_fused(struct tec_verify *v, const struct tec_act *a,
                                   struct tec_error *err)
{
    struct tec_act fused;
    size_t bytes =
        (size_t)a->pi.model->flow.horizon * (size_t)a->pi.model->flow.dim * sizeof(float);
    enum tec_status status = tec_act_open(&fused, v, false, err);
    if (status == TEC_OK)
        status = tec_act_frame(&fused, "", err);
    if (status == TEC_OK)
        tec_pi_same(&fused.pi, "actions.fused_equals_unfused", fused.chunk, a->chunk, bytes);
    tec_act_finish(&fused);
    return status;
}

enum tec_status tec_verify_act_actions(struct tec_verify *v, struct tec_error *err)
{
    struct tec_act a;
    enum tec_status status = tec_act_open(&a, v, true, err);
    if (status == TEC_OK)
        status = judge_all(&a, err);
    if (status == TEC_OK)
        status = judge_fused(v, &a, err);
    tec_act_finish(&a);
    return status;
}

/* groot_actions.c - judges cases of kind "actions": every tap of one request on its way from
 * pictures, tokens and state to actions. */
#include "tests/judge/groot.h"
#include "tests/judge/groot_robot.h"
#include "tests/judge/taps.h"

#include <stdio.h>
#include <string.h>

struct judge {
    struct tec_groot *g;
    struct tec_plan *plan;
    struct tec_robot *robot;
    float *chunk; /* [horizon, dim] */
};

static const struct tec_tap_name names[] = {
#define TAP(theirs, ours, form) {theirs, ours, NULL, TEC_TAP_##form},
#include "tests/judge/taps/groot.def"
#undef TAP
};

static const float *read_tap(struct judge *j, const char *name, int first, int rows, size_t *n)
{
    return tec_pi_tap(&j->g->pi, &j->plan->parts[0], name, first, rows, n);
}

static float *floats(struct judge *j, size_t n)
{
    return TEC_NEW(j->g->pi.v->arena, n + 1, float);
}

/* A picture's rows among those of all; the connector makes fewer of them. */
static const float *read_image(struct judge *j, const struct tec_tap_found *found, size_t *n)
{
    const struct tec_vision *v = &j->g->pi.model->vision;
    bool fewer =
        strcmp(found->ours, "vision.projector") == 0 || strcmp(found->ours, "vision.shuffled") == 0;
    int rows = fewer ? v->tokens : v->patches;
    return read_tap(j, found->ours, found->number[0] * rows, rows, n);
}

/* Columns [square, channel] of each row as [channel, square]. */
static const float *read_planes(struct judge *j, const char *name, size_t *n)
{
    const struct tec_vision *v = &j->g->pi.model->vision;
    const float *rows = read_tap(j, name, 0, -1, n);
    size_t square = (size_t)v->shuffle * (size_t)v->shuffle,
           all = square * (size_t)v->towers[0].stack.width;
    float *out = rows ? floats(j, *n) : NULL;
    for (size_t i = 0; out && i < *n; i++) {
        size_t at = i % all, width = all / square;
        out[i - at + at % width * square + at / width] = rows[i];
    }
    return out;
}

static const float *read_sequence(struct judge *j, const char *name, size_t *n)
{
    const struct tec_prefix_table *t = &j->plan->parts[0].prefix;
    const float *rows = read_tap(j, name, 0, -1, n);
    size_t count = (size_t)*t->prefix.count, cols = rows ? *n / count : 0;
    float *out = rows ? floats(j, *n) : NULL;
    for (size_t r = 0; out && r < count; r++)
        memcpy(out + (size_t)t->features.pos[r] * cols, rows + r * cols, cols * sizeof *out);
    return out;
}

static const float *read_layer(struct judge *j, const struct tec_tap_found *found, size_t *n)
{
    char name[2 * TEC_TAP_BYTES];
    snprintf(name, sizeof name, "step%d.layer%d.%s", found->number[0], found->number[1],
             found->ours);
    return read_tap(j, name, 0, -1, n);
}

/* Does LeRobot's folder describe the robot? Its state and its actions are a vector each. */
static bool of_lerobot(const struct judge *j)
{
    return j->g->pi.checkpoint->layout == TEC_LAYOUT_LEROBOT;
}

/* Columns of one part of the actions, as the robot is sent them. */
static const float *read_robot(struct judge *j, const char *name, size_t *n)
{
    struct tec_verify *v = j->g->pi.v;
    const struct tec_flow *f = &j->g->pi.model->flow;
    const json_t *keys = json_object_get(json_object_get(v->json, "data_config"), "action_keys");
    const char *tag = json_string_value(json_object_get(v->json, "embodiment_tag"));
    int first = 0, cols = j->robot ? j->robot->n_actions : 0;
    if (!j->robot || (!of_lerobot(j) && !tec_groot_columns(j->g->pi.checkpoint->robots, tag, keys,
                                                           tec_groot_key(name), &first, &cols)))
        return NULL;
    float *all = tec_groot_sent(j->robot, v, j->chunk, f->horizon, f->dim);
    float *out = floats(j, (size_t)f->horizon * (size_t)cols);
    for (int r = 0; all && out && r < f->horizon; r++)
        memcpy(out + (size_t)r * (size_t)cols, all + (ptrdiff_t)r * j->robot->n_actions + first,
               (size_t)cols * sizeof *out);
    *n = (size_t)f->horizon * (size_t)cols;
    return all ? out : NULL;
}

/* The chunk; of LeRobot's only the columns that it hands out. */
static const float *read_chunk(struct judge *j, size_t *n)
{
    const struct tec_flow *f = &j->g->pi.model->flow;
    size_t cols = of_lerobot(j) ? (size_t)j->robot->n_model_actions : (size_t)f->dim;
    float *out = floats(j, (size_t)f->horizon * cols);
    for (int r = 0; out && r < f->horizon; r++)
        memcpy(out + (size_t)r * cols, j->chunk + (size_t)r * (size_t)f->dim, cols * sizeof *out);
    *n = (size_t)f->horizon * cols;
    return out;
}

static const float *find(struct judge *j, const struct tec_tap_found *found, size_t *n)
{
    const struct tec_model *m = j->g->pi.model;
    switch (found->form) {
    case TEC_TAP_IMAGE:
        return read_image(j, found, n);
    case TEC_TAP_PLANES:
        return read_planes(j, found->ours, n);
    case TEC_TAP_SEQUENCE:
        return read_sequence(j, found->ours, n);
    case TEC_TAP_STATE_PADDED:
        *n = (size_t)tec_model_state(m);
        return j->g->state;
    case TEC_TAP_STEP_LAYER:
        return read_layer(j, found, n);
    case TEC_TAP_ROWS:
    case TEC_TAP_LAST_ROWS:
        return read_tap(j, found->ours, 0, -1, n);
    case TEC_TAP_STEPS:
    case TEC_TAP_STEPS_FROM_NOISE:
        return tec_pi_steps(&j->g->pi, j->plan, found->ours,
                            found->form == TEC_TAP_STEPS_FROM_NOISE ? j->g->noise : NULL, n);
    case TEC_TAP_ROBOT_ACTIONS:
        return read_robot(j, found->ours, n);
    case TEC_TAP_CHUNK:
        return read_chunk(j, n);
    default:
        return NULL;
    }
}

/* The number behind "s" in a name like "s10.x_t"; 0: the name has none. */
static int other_steps(const char *name, const char **rest)
{
    int n = 0, used = 0;
    if (sscanf(name, "s%d.%n", &n, &used) != 1 || !used)
        return 0;
    *rest = name + used;
    return n;
}

/* Every expected tensor of a run with so many steps; 0: the first run. */
static void judge_run(struct judge *j, int steps)
{
    struct tec_pi *pi = &j->g->pi;
    for (size_t i = 0; i < tec_tensors_count(pi->expected); i++) {
        const char *name = tec_tensors_at(pi->expected, i)->name, *rest = name;
        struct tec_tap_found found;
        size_t n = 0;
        if (other_steps(name, &rest) != steps)
            continue;
        bool known = tec_tap_find(names, sizeof names / sizeof names[0], rest, &found);
        const float *got = known ? find(j, &found, &n) : NULL;
        if (known && found.form == TEC_TAP_LAST_ROWS)
            tec_pi_compare_last(pi, name, got, got ? n : 0, "unfused");
        else
            tec_pi_compare(pi, name, got, got ? n : 0, "unfused");
    }
}

static void judge_times(struct judge *j, const char *run, const json_t *times)
{
    const struct tec_timed *t = j->plan->timed[0];
    char check[64];
    int *got = TEC_NEW(j->g->pi.v->arena, (size_t)t->steps, int);
    int *want = TEC_NEW(j->g->pi.v->arena, json_array_size(times) + 1, int);
    for (int s = 0; got && s < t->steps; s++)
        got[s] = (int)t->t[s];
    for (size_t s = 0; want && s < json_array_size(times); s++)
        want[s] = (int)json_integer_value(json_array_get(times, s));
    snprintf(check, sizeof check, "timesteps.%s", run);
    tec_verify_ids(j->g->pi.v, check, got, (size_t)t->steps, want, json_array_size(times));
}

/* A run with as many steps as `times` has, or the model where it is NULL; the plan without taps
 * gives the same chunk. */
static enum tec_status judge_steps(struct judge *j, const char *run, const json_t *times,
                                   struct tec_error *err)
{
    const struct tec_flow *f = &j->g->pi.model->flow;
    size_t n = (size_t)f->horizon * (size_t)f->dim;
    int steps = times ? (int)json_array_size(times) : f->steps;
    float *plain = floats(j, n);
    char check[64];
    j->chunk = floats(j, n);
    if (!j->chunk || !plain)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
    TEC_TRY(tec_groot_plan(j->g, &j->plan, steps, true, err));
    TEC_TRY(tec_groot_run(j->g, j->plan, j->chunk, err));
    if (times)
        judge_times(j, run, times);
    judge_run(j, strcmp(run, "steps") == 0 ? 0 : steps);
    tec_plan_destroy(j->plan);
    j->plan = NULL;
    TEC_TRY(tec_groot_plan(j->g, &j->plan, steps, false, err));
    TEC_TRY(tec_groot_run(j->g, j->plan, plain, err));
    snprintf(check, sizeof check, "%s.fused_equals_unfused", run);
    tec_pi_same(&j->g->pi, check, plain, j->chunk, n * sizeof *plain);
    tec_plan_destroy(j->plan);
    j->plan = NULL;
    return TEC_OK;
}

static enum tec_status read_description(struct judge *j, struct tec_error *err)
{
    struct tec_verify *v = j->g->pi.v;
    const char *tag = json_string_value(json_object_get(v->json, "embodiment_tag"));
    if (of_lerobot(j))
        return tec_robot_load(&j->robot, tec_verify_shipped(v, "robots/lerobot.lua"),
                              tec_verify_shipped(v, "robots"), NULL, NULL, j->g->pi.checkpoint,
                              v->arena, err);
    json_t *data = tec_groot_data(json_object_get(v->json, "data_config"),
                                  (int)json_integer_value(json_object_get(v->json, "cameras")));
    enum tec_status status =
        tec_groot_robot(&j->robot, v, j->g->pi.checkpoint->robots, tag, data, err);
    json_decref(data);
    return status;
}

/* The robot's parts of the state, one after the other, as the model reads them. */
static enum tec_status read_state(struct judge *j, struct tec_error *err)
{
    struct tec_verify *v = j->g->pi.v;
    const json_t *keys = json_object_get(json_object_get(v->json, "data_config"), "state_keys");
    const json_t *key;
    size_t i, n;
    int at = 0;
    TEC_TRY(read_description(j, err));
    double *raw = TEC_NEW(v->arena, (size_t)j->robot->n_raw + 1, double);
    json_array_foreach(keys, i, key)
    {
        const char *name = json_string_value(key);
        const float *x = name ? tec_groot_floats(j->g, j->g->pi.inputs, name, &n) : NULL;
        for (size_t k = 0; raw && x && k < n && at < j->robot->n_raw; k++)
            raw[at++] = (double)x[k];
    }
    if (at != j->robot->n_raw)
        return tec_fail(err, TEC_SHAPE, "inputs: the parts of the state must have %d values",
                        j->robot->n_raw);
    j->g->state = tec_groot_state(j->robot, v, raw, tec_model_state(j->g->pi.model));
    return j->g->state ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a state");
}

/* The category of the layers that have one. */
static int category_of(const struct tec_model_program *p)
{
    int i = 0;
    while (i < p->n && !p->calls[i].categories)
        i++;
    return i < p->n ? p->calls[i].category : -1;
}

static enum tec_status judge_case(struct judge *j, struct tec_error *err)
{
    struct tec_verify *v = j->g->pi.v;
    json_t *runs = json_object_get(v->json, "timesteps"), *times;
    const char *run;
    int category = category_of(j->g->pi.model->program);
    int id = (int)json_integer_value(json_object_get(v->json, "embodiment_id"));
    size_t n;
    if (tec_tensors_find(j->g->pi.inputs, "state")) /* given as the model reads it */
        j->g->state = tec_groot_floats(j->g, j->g->pi.inputs, "state", &n);
    else
        TEC_TRY(read_state(j, err));
    tec_verify_ids(v, "embodiment", &category, 1, &id, 1);
    if (!json_object_size(runs))
        return judge_steps(j, "steps", NULL, err);
    json_object_foreach(runs, run, times) TEC_TRY(judge_steps(j, run, times, err));
    return TEC_OK;
}

enum tec_status tec_verify_groot_actions(struct tec_verify *v, struct tec_error *err)
{
    struct tec_groot g;
    struct judge j = {.g = &g};
    enum tec_status status = tec_groot_open(&g, v, err);
    if (status == TEC_OK)
        status = judge_case(&j, err);
    tec_plan_destroy(j.plan);
    tec_groot_finish(&g);
    return status;
}

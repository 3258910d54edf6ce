/* act.c - what the judges of chunks from an encoder's rows share: it opens and plans a checkpoint,
 * observes raw inputs as a session does, and runs a frame. */
#include "tests/judge/act.h"
#include "tests/judge/observation.h"
#include "tests/judge/stage_times.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 64 };

static enum tec_status no_memory(struct tec_error *err)
{
    return tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
}

static enum tec_status open_robot(struct tec_act *a, struct tec_error *err)
{
    struct tec_verify *v = a->pi.v;
    const struct tec_model *m = a->pi.model;
    struct tec_observer_size sizes[TEC_MAX_CAMERAS];
    TEC_TRY(tec_robot_load(&a->robot, tec_verify_shipped(v, "robots/lerobot.lua"),
                           tec_verify_shipped(v, "robots"), NULL, NULL, a->pi.checkpoint, v->arena,
                           err));
    a->robot->unlimited = true; /* the published code holds no action to its statistics */
    for (int i = 0; i < m->n_slots; i++) {
        struct tec_picture_size size = tec_model_picture(m, i);
        sizes[i] = (struct tec_observer_size){size.h, size.w};
    }
    struct tec_observer_needs needs = {.slots = m->slots,
                                       .n_slots = m->n_slots,
                                       .image_h = 1,
                                       .image_w = 1,
                                       .sizes = sizes,
                                       .state_width = tec_model_state(m),
                                       .action_width = m->flow.dim,
                                       .text_max = TEXT,
                                       .text_optional = true};
    TEC_TRY(tec_robot_norms(a->robot, a->pi.checkpoint, NULL, &needs.state_norm, &needs.action_norm,
                            v->arena, err));
    TEC_TRY(tec_robot_agree(a->robot, a->pi.checkpoint, v->arena, err));
    return tec_observer_create(&a->observer, a->robot, &needs, v->heap, err);
}

static enum tec_status give_buffers(struct tec_act *a, struct tec_error *err)
{
    struct tec_arena *arena = a->pi.v->arena;
    const struct tec_model *m = a->pi.model;
    const struct tec_observation_sizes sizes = {.slots = m->n_slots,
                                                .picture_bytes = tec_model_picture_bytes(m),
                                                .width = tec_model_state(m),
                                                .text = TEXT};
    a->chunk = TEC_NEW(arena, (size_t)m->flow.horizon * (size_t)m->flow.dim, float);
    return a->chunk ? tec_verify_observation(&a->seen, &sizes, arena, err) : no_memory(err);
}

static enum tec_status plan(struct tec_act *a, bool taps, struct tec_error *err)
{
    const struct tec_plan_spec spec = {.frame_tokens = tec_model_encoded(a->pi.model),
                                       .n_actions = 1,
                                       .actions = {{.steps = 1}},
                                       .round = a->pi.v->round,
                                       .taps = taps,
                                       .whole = taps};
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = a->pi.model,
                                       .weights = a->pi.weights,
                                       .source = {.checkpoint = a->pi.checkpoint},
                                       .device = a->pi.device};
    return tec_plan_create(&a->plan, &in, a->pi.v->heap, err);
}

enum tec_status tec_act_open(struct tec_act *a, struct tec_verify *v, bool taps,
                             struct tec_error *err)
{
    *a = (struct tec_act){.pi = {.v = v}};
    TEC_TRY(tec_pi_open(&a->pi, v, NULL, NULL, err));
    if (!tec_model_asks(a->pi.model))
        return tec_fail(err, TEC_UNSUPPORTED, "model '%s' has no encoder", a->pi.model->name);
    TEC_TRY(tec_pi_open_tensors(&a->pi, err));
    TEC_TRY(open_robot(a, err));
    TEC_TRY(give_buffers(a, err));
    return plan(a, taps, err);
}

void tec_act_finish(struct tec_act *a)
{
    tec_plan_destroy(a->plan);
    tec_observer_destroy(a->observer);
    tec_pi_finish(&a->pi);
}

/* One input as a value of a request; its name is without the prefix and without "image.". */
static enum tec_status read_value(struct tec_act *a, const struct tec_stored *t, const char *name,
                                  struct tec_value *value, struct tec_error *err)
{
    bool picture = strncmp(name, "image.", 6) == 0;
    void *data = tec_arena_push(a->pi.v->arena, t->bytes + 1, 1, 16);
    if (!data)
        return no_memory(err);
    TEC_TRY(tec_tensors_read(a->pi.inputs, t, 0, data, t->bytes, err));
    *value = (struct tec_value){.name = picture ? name + 6 : name,
                                .kind = t->dtype == TEC_U8 ? TEC_VALUE_U8 : TEC_VALUE_F32,
                                .rank = t->rank,
                                .data = data,
                                .bytes = t->bytes};
    for (int i = 0; i < t->rank && i < 4; i++)
        value->shape[i] = t->shape[i];
    return TEC_OK;
}

static enum tec_status observe(struct tec_act *a, const char *prefix, struct tec_error *err)
{
    struct tec_value values[TEC_MAX_CAMERAS + 4];
    size_t n = 0, skip = strlen(prefix);
    for (size_t i = 0; i < tec_tensors_count(a->pi.inputs); i++) {
        const struct tec_stored *t = tec_tensors_at(a->pi.inputs, i);
        if (strncmp(t->name, prefix, skip) != 0 || n == sizeof values / sizeof values[0])
            continue;
        TEC_TRY(read_value(a, t, t->name + skip, &values[n++], err));
    }
    return tec_robot_observe(a->observer, values, n, &a->seen, err);
}

enum tec_status tec_act_frame(struct tec_act *a, const char *prefix, struct tec_error *err)
{
    struct tec_prefix_input o = {.n_pictures = a->pi.model->n_slots};
    struct tec_replay replay = {0};
    TEC_TRY(observe(a, prefix, err));
    for (int i = 0; i < o.n_pictures; i++)
        o.picture[i] = a->seen.pictures[i];
    TEC_TRY(tec_prefix_check(a->plan, &o, err));
    const struct tec_action_inputs start = {.state = a->seen.state};
    int region = tec_kv_pool_take(&a->plan->prefixes);
    if (region < 0)
        return tec_fail(err, TEC_INVALID, "no region for a frame");
    tec_launch_prefix(a->plan, &a->plan->parts[0], region, &o, &start, &replay);
    tec_verify_replayed(a->pi.v, a->plan, &replay);
    tec_launch_actions(a->plan, &a->plan->parts[0], a->chunk);
    tec_kv_pool_drop(&a->plan->prefixes, region);
    return tec_device_failure(a->pi.device, err);
}

enum tec_status tec_act_robot(struct tec_act *a, const float *rows, int n, float **out,
                              struct tec_error *err)
{
    size_t all = (size_t)n * (size_t)a->robot->n_actions;
    double *made = TEC_NEW(a->pi.v->arena, all + 1, double);
    *out = TEC_NEW(a->pi.v->arena, all + 1, float);
    if (!made || !*out)
        return no_memory(err);
    int got = tec_robot_act(a->observer, rows, n, a->seen.state_raw, made, NULL);
    if (got != n)
        return tec_fail(err, TEC_INVALID, "%d of %d rows", got, n);
    for (size_t i = 0; i < all; i++)
        (*out)[i] = (float)made[i];
    return TEC_OK;
}

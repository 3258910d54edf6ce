/* act_frames.c - judges cases of kinds "queue" and "ensemble": one action a frame, from the rows of
 * a chunk in turn, or as a mean of what all chunks say, with episodes that begin anew. */
#include "graph/live/action_output.h"
#include "tests/judge/act.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FRAMES = 256 };

struct judge {
    struct tec_act act;
    struct tec_action_output *output;
    double *chunk; /* [horizon, dim] */
    int left;      /* rows of the newest chunk that are still to be carried out */
    int computed[MAX_FRAMES], n_computed;
};

static bool begins(const struct judge *j, int frame)
{
    const json_t *list = json_object_get(j->act.pi.v->json, "reset_before");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_integer_value(json_array_get(list, i)) == frame)
            return true;
    return false;
}

/* In the model's units, so that what leaves can be compared in both. */
static enum tec_status make_output(struct judge *j, struct tec_error *err)
{
    const struct tec_flow *f = &j->act.pi.model->flow;
    struct tec_arena *arena = j->act.pi.v->arena;
    const struct tec_action_output_options o = {.on_miss = TEC_MISS_LAST_CHUNK,
                                                .actions = 1,
                                                .rows = f->horizon,
                                                .width = f->dim,
                                                .executed = 1,
                                                .ensembles = j->act.robot->ensembles,
                                                .ensemble = j->act.robot->ensemble};
    j->chunk = TEC_NEW(arena, (size_t)f->horizon * (size_t)f->dim, double);
    return j->chunk ? tec_action_output_create(&j->output, &o, arena, err)
                    : tec_fail(err, TEC_NO_MEMORY, "no memory for a chunk");
}

static struct tec_handed hand_out(struct judge *j, int frame, bool fresh)
{
    const struct tec_flow *f = &j->act.pi.model->flow;
    if (!fresh)
        return tec_action_output_missed(j->output, frame);
    for (int i = 0; i < f->horizon * f->dim; i++)
        j->chunk[i] = (double)j->act.chunk[i];
    return tec_action_output_fresh(
        j->output, &(struct tec_action_output_chunk){.frame = frame, .actions = j->chunk});
}

/* The frame's action is compared in the model's units and in the robot's. */
static enum tec_status compare(struct judge *j, int frame, const double *action,
                               struct tec_error *err)
{
    struct tec_arena *arena = j->act.pi.v->arena;
    size_t n = (size_t)j->act.pi.model->flow.dim;
    float *row = TEC_NEW(arena, n + 1, float), *robot = NULL;
    const char *names[] = {tec_arena_printf(arena, "frame%d.action", frame),
                           tec_arena_printf(arena, "frame%d.robot_action", frame)};
    if (!row || !names[0] || !names[1])
        return tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
    for (size_t i = 0; i < n; i++)
        row[i] = (float)action[i];
    TEC_TRY(tec_act_robot(&j->act, row, 1, &robot, err));
    tec_pi_compare(&j->act.pi, names[0], row, n, NULL);
    tec_pi_compare(&j->act.pi, names[1], robot, (size_t)j->act.robot->n_actions, NULL);
    return TEC_OK;
}

static enum tec_status run_frame(struct judge *j, int frame, struct tec_error *err)
{
    bool fresh;
    if (begins(j, frame)) {
        tec_action_output_forget(j->output);
        j->left = 0;
    }
    fresh = j->left == 0;
    if (fresh) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "frame%d.", frame);
        TEC_TRY(tec_act_frame(&j->act, prefix, err));
        j->computed[j->n_computed++] = frame;
        j->left = j->act.robot->execute ? j->act.robot->execute : j->act.pi.model->flow.horizon;
    }
    j->left--;
    const struct tec_handed handed = hand_out(j, frame, fresh);
    if (handed.n != 1)
        return tec_fail(err, TEC_INVALID, "frame %d has no action", frame);
    return compare(j, frame, handed.actions, err);
}

static enum tec_status judge_all(struct judge *j, struct tec_error *err)
{
    struct tec_verify *v = j->act.pi.v;
    const json_t *at = json_object_get(v->json, "chunk_computed_at");
    int frames = (int)json_integer_value(json_object_get(v->json, "frames")), want[MAX_FRAMES];
    size_t n = json_array_size(at);
    if (frames < 1 || frames > MAX_FRAMES || n > MAX_FRAMES)
        return tec_fail(err, TEC_UNSUPPORTED, "%d frames", frames);
    TEC_TRY(make_output(j, err));
    for (int i = 0; i < frames; i++)
        TEC_TRY(run_frame(j, i, err));
    for (size_t i = 0; i < n; i++)
        want[i] = (int)json_integer_value(json_array_get(at, i));
    tec_verify_ids(v, "chunk_computed_at", j->computed, (size_t)j->n_computed, want, n);
    return TEC_OK;
}

enum tec_status tec_verify_act_frames(struct tec_verify *v, struct tec_error *err)
{
    struct judge j = {.left = 0};
    enum tec_status status = tec_act_open(&j.act, v, false, err);
    if (status == TEC_OK)
        status = judge_all(&j, err);
    tec_act_finish(&j.act);
    return status;
}

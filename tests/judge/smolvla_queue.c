/* smolvla_queue.c - judges cases of kind "queue": frame after frame, a chunk is computed when all
 * rows of the one before that the robot executes are gone, or after a reset. */
#include "tests/judge/smolvla.h"

#include <stdio.h>
#include <string.h>

struct queue {
    struct tec_smolvla *s;
    struct tec_plan *plan;
    float *chunk, *actions, *robot_actions;
    int next, left; /* rows of the chunk */
    int *computed, n_computed;
};

static bool resets_before(const struct queue *q, json_int_t frame)
{
    const json_t *list = json_object_get(q->s->pi.v->json, "reset_before"), *at;
    size_t i;
    json_array_foreach(list, i, at) if (json_integer_value(at) == frame) return true;
    return false;
}

static enum tec_status refill(struct queue *q, struct tec_error *err)
{
    struct tec_smolvla *s = q->s;
    int horizon = s->pi.model->flow.horizon;
    TEC_TRY(tec_prefix_check(q->plan, &s->prefix, err));
    tec_smolvla_run(s, q->plan, &s->prefix, NULL, q->chunk);
    q->actions = tec_smolvla_actions(s, q->chunk, horizon);
    q->robot_actions = tec_smolvla_robot_actions(s, q->chunk, horizon);
    q->next = 0;
    q->left = s->robot->execute > 0 && s->robot->execute < horizon ? s->robot->execute : horizon;
    return q->actions && q->robot_actions ? TEC_OK
                                          : tec_fail(err, TEC_NO_MEMORY, "no memory for a chunk");
}

static enum tec_status judge_frame(struct queue *q, int frame, struct tec_error *err)
{
    struct tec_smolvla *s = q->s;
    const json_t *tasks = json_object_get(s->pi.v->json, "tasks");
    const char *task = json_string_value(json_array_get(tasks, (size_t)frame));
    char prefix[32], name[64];
    snprintf(prefix, sizeof prefix, "frame%d.", frame);
    TEC_TRY(tec_smolvla_read(s, prefix, task, err));
    if (resets_before(q, frame))
        q->left = 0;
    if (q->left == 0) {
        TEC_TRY(refill(q, err));
        q->computed[q->n_computed++] = frame;
    }
    size_t model = (size_t)s->robot->n_model_actions, own = (size_t)s->robot->n_actions;
    snprintf(name, sizeof name, "%saction", prefix);
    tec_pi_compare(&s->pi, name, q->actions + (size_t)q->next * model, model, NULL);
    snprintf(name, sizeof name, "%srobot_action", prefix);
    tec_pi_compare(&s->pi, name, q->robot_actions + (size_t)q->next * own, own, NULL);
    q->next++;
    q->left--;
    return TEC_OK;
}

static enum tec_status judge_case(struct queue *q, struct tec_error *err)
{
    struct tec_smolvla *s = q->s;
    const json_t *json = s->pi.v->json, *at = json_object_get(json, "chunk_computed_at");
    const struct tec_flow *f = &s->pi.model->flow;
    int frames = (int)json_integer_value(json_object_get(json, "frames"));
    size_t n = json_array_size(at);
    int *want = TEC_NEW(s->pi.v->arena, n + 1, int);
    TEC_TRY(tec_pi_plan(&s->pi, &q->plan, f->steps, 0, 0, false, err));
    q->chunk = TEC_NEW(s->pi.v->arena, (size_t)f->horizon * (size_t)f->dim, float);
    q->computed = frames > 0 ? TEC_NEW(s->pi.v->arena, (size_t)frames, int) : NULL;
    if (!q->chunk || !q->computed || !want)
        return tec_fail(err, TEC_INVALID, "%d frames cannot be judged", frames);
    for (int frame = 0; frame < frames; frame++)
        TEC_TRY(judge_frame(q, frame, err));
    for (size_t i = 0; i < n; i++)
        want[i] = (int)json_integer_value(json_array_get(at, i));
    tec_verify_ids(s->pi.v, "chunk_computed_at", q->computed, (size_t)q->n_computed, want, n);
    return TEC_OK;
}

enum tec_status tec_verify_smolvla_queue(struct tec_verify *v, struct tec_error *err)
{
    struct tec_smolvla s;
    struct queue q = {.s = &s};
    enum tec_status status = tec_smolvla_open(&s, v, err);
    if (status == TEC_OK)
        status = judge_case(&q, err);
    tec_plan_destroy(q.plan);
    tec_smolvla_finish(&s);
    return status;
}

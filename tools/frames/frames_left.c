/* frames_left.c - what leaves in a frame: kept as it does, and turned into the robot's actions
 * behind it. */
#include "tools/frames/frames_left.h"

#include "tools/frames/frames_record.h"

#include <math.h>
#include <string.h>

void tec_frames_left_keep(void *user, const struct tec_runtime_left *from)
{
    struct tec_frames *f = user;
    struct tec_frames_session *s = &f->sessions[from->session];
    const struct tec_action_record *of = &from->record->actions[from->action];
    if (s->n_left == f->max_left)
        return;
    struct tec_frame_left *left = &s->left[s->n_left];
    float *own = s->chunks + (size_t)s->n_left++ * f->chunk;
    if (from->chunk)
        memcpy(own, from->chunk, tec_engine_chunk(f->opened.engine, from->action) * sizeof *own);
    *left = (struct tec_frame_left){.action = from->action,
                                    .seen = from->seen->number,
                                    .age_us = of->age_us,
                                    .released_ns = of->release_ns,
                                    .chunk = from->chunk ? own : NULL,
                                    .state_raw = from->seen->state_raw};
}

/* May frames leave the action out? */
static bool optional(const struct tec_frames *f, int action)
{
    const struct tec_engine *e = f->opened.engine;
    return e->topology.nodes[tec_loop_settings(e->loop)->actions[action].node].optional;
}

enum tec_status tec_frames_left_output(struct tec_frames *f, struct tec_frames_session *s,
                                       int action, struct tec_error *err)
{
    const struct tec_decl_deadline *d = tec_watchdog_deadline(f->opened.pipeline, action);
    struct tec_action_output_options options = tec_watchdog_output(f->opened.engine, action, d, 0);
    if (!optional(f, action)) {
        options.on_miss = TEC_MISS_HOLD;
        options.decay_actions = 0;
    }
    return tec_action_output_create(&s->outputs[action], &options, &f->arena, err);
}

/* Compare a chunk with the command before it, and replace one that exceeds the limits. Rows that
 * are not finite are reported as they are. Where actions are means of chunks, take the frame's. */
static void hold_to_limits(struct tec_frames *f, struct tec_frames_session *s,
                           struct tec_frame_left *left, double *actions)
{
    const struct tec_session *session = tec_engine_session(f->opened.engine, left->action);
    double ensemble;
    int rows = tec_session_rows(session), columns = tec_session_columns(session);
    bool means = tec_session_ensembles(session, &ensemble);
    bool whole = left->rows == rows && (tec_session_limits(session) || optional(f, left->action));
    if (!whole && !means && left->chunk && !tec_beyond_refused(&left->beyond))
        return;
    for (int i = left->rows * columns; i < rows * columns && means; i++)
        actions[i] = (double)NAN;
    const struct tec_action_output_chunk chunk = {.frame = s->number,
                                                  .actions = actions,
                                                  .seen = left->seen,
                                                  .beyond = left->beyond,
                                                  .left_out = !left->chunk};
    const struct tec_handed handed = tec_action_output_fresh(s->outputs[left->action], &chunk);
    left->source = handed.source;
    left->beyond = handed.beyond;
    left->rows = handed.n;
    if (handed.n > 0)
        memcpy(actions, handed.actions, (size_t)handed.n * (size_t)columns * sizeof *actions);
}

const struct tec_frame_left *tec_frame_left_of(const struct tec_frame_out *frame, int action)
{
    for (int i = frame->n_left - 1; i >= 0; i--)
        if (frame->left[i].action == action)
            return &frame->left[i];
    return NULL;
}

void tec_frames_left_take(struct tec_frames *f, struct tec_frames_session *s,
                          const struct tec_frame_record *record)
{
    struct tec_frame_left *left = s->left;
    for (int i = 0; i < s->n_left; i++)
        left[i].columns = tec_session_columns(tec_engine_session(f->opened.engine, left[i].action));
    for (int i = 0; i < s->n_left && !f->runtime.n_watchdogs; i++) {
        struct tec_session *session = tec_engine_session(f->opened.engine, left[i].action);
        double *actions = s->numbers + (size_t)i * f->actions_size;
        left[i].actions = actions;
        if (left[i].chunk)
            left[i].rows = tec_session_act_on(session, left[i].state_raw, left[i].chunk, actions,
                                              &left[i].beyond);
        hold_to_limits(f, s, &left[i], actions);
    }
    tec_frames_record_left(f, s, record);
    s->out.n_left = s->n_left;
    s->out.left = left;
    s->out.columns = tec_session_columns(f->opened.engine->session);
    const struct tec_frame_left *last = tec_frame_left_of(&s->out, 0);
    if (!last)
        return;
    s->out.acted = true;
    s->out.chunk = last->chunk;
    s->out.actions = last->actions;
    s->out.source = last->source;
    s->out.beyond = last->beyond;
    s->out.rows = last->rows;
}

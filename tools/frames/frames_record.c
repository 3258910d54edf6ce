/* frames_record.c - tells a recording, and who looks, what frames are given and what leaves them.
 */
#include "tools/frames/frames_record.h"

void tec_frames_record_tick(struct tec_frames *f, const struct tec_tick *tick)
{
    const struct tec_frames_session *s = &f->sessions[tick->session];
    const struct tec_flow *flow = tec_engine_flow(f->opened.engine, 0);
    const struct tec_recorded_tick one = {.number = s->number,
                                          .session = tick->session,
                                          .observed = s->out.observed,
                                          .reset = f->reset ? TEC_RESET_ALL : TEC_RESET_NONE,
                                          .noise = s->out.observed ? s->noise : NULL,
                                          .noise_n = flow->horizon * flow->dim,
                                          .tick = tick};
    if (f->recording)
        tec_recording_tick(f->recording, &one);
}

void tec_frames_record_left(struct tec_frames *f, const struct tec_frames_session *s,
                            const struct tec_frame_record *record)
{
    for (int i = 0; i < s->n_left && (f->recording || f->view); i++) {
        const struct tec_frame_left *left = &s->left[i];
        if (!left->chunk)
            continue;
        const struct tec_recorded_chunk one = {.action = left->action,
                                               .session = record->session,
                                               .frame = record->frame,
                                               .seen = left->seen,
                                               .release_ns = left->released_ns,
                                               .age_us = left->age_us,
                                               .late = record->actions[left->action].missed,
                                               .chunk = left->chunk,
                                               .actions = left->actions,
                                               .rows = left->rows,
                                               .columns = left->columns};
        tec_recording_left(f->recording, &one);
        tec_view_left(f->view, &one);
    }
}

void tec_frames_record_frame(struct tec_frames *f, const struct tec_frame_record *record)
{
    tec_recording_frame(f->recording, record);
    tec_view_frame(f->view, record);
}

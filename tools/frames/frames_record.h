/* frames_record.h - what frames tell a recording, and those who look, where there are any. */
#ifndef TEC_TOOLS_FRAMES_FRAMES_RECORD_H
#define TEC_TOOLS_FRAMES_FRAMES_RECORD_H

#include "tools/frames/frames.h"

/* A session's tick, before its frame runs. */
void tec_frames_record_tick(struct tec_frames *f, const struct tec_tick *tick);

/* What left in a session's frame, with the robot's actions where they are made here. */
void tec_frames_record_left(struct tec_frames *f, const struct tec_frames_session *s,
                            const struct tec_frame_record *record);

/* A session's frame has run. */
void tec_frames_record_frame(struct tec_frames *f, const struct tec_frame_record *record);

#endif

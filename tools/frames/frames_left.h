/* frames_left.h - what leaves in a frame: kept as it does, and turned into the robot's actions
 * behind it. */
#ifndef TEC_TOOLS_FRAMES_FRAMES_LEFT_H
#define TEC_TOOLS_FRAMES_FRAMES_LEFT_H

#include "tools/frames/frames.h"

/* The runtime's listener; `user` are the frames. */
void tec_frames_left_keep(void *user, const struct tec_runtime_left *from);

/* Create what an action's robot is given in a session. Frames that follow each other without a
 * clock miss nothing, but may leave the action out: the robot carries out all of a chunk, or as
 * much as the pipeline says. TEC_NO_MEMORY. */
enum tec_status tec_frames_left_output(struct tec_frames *f, struct tec_frames_session *s,
                                       int action, struct tec_error *err);

/* Convert the chunks that left in a session's frame to the robot's units; with watchdogs, their
 * consumer converts them instead. */
void tec_frames_left_take(struct tec_frames *f, struct tec_frames_session *s,
                          const struct tec_frame_record *record);

#endif

/* replay_plan.h - what a frame ran, as a list that two frames are compared by. */
#ifndef TEC_TOOLS_RECORD_REPLAY_PLAN_H
#define TEC_TOOLS_RECORD_REPLAY_PLAN_H

#include "graph/run/loop/loop.h"

#include <jansson.h>

/* [[node, rows, k], ...] in launch order: of a recorded frame's message, of a frame that has just
 * run. New references; NULL where memory is missing. */
json_t *tec_replay_plan_was(const json_t *frame);
json_t *tec_replay_plan_is(const struct tec_frame_record *record);

#endif

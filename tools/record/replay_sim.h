/* replay_sim.h - a recording's arrivals run again on a virtual clock: what a policy would have
 * decided, and when, without the model. */
#ifndef TEC_TOOLS_RECORD_REPLAY_SIM_H
#define TEC_TOOLS_RECORD_REPLAY_SIM_H

#include "tools/record/replay.h"

/* Run the recorded arrivals through the frame loop and the call's policy, where launches take what
 * --costs says, without it what they took in the recording; print what came of it, with
 * options.diff a JSON line for each frame that ran something else. No weight is read.
 * TEC_MALFORMED, TEC_NO_MEMORY. */
enum tec_status tec_replay_simulate(struct tec_invocation *call,
                                    const struct tec_replay_options *options,
                                    struct tec_error *err);

#endif

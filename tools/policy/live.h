/* live.h - policy load, fallback and the like: what a running robot is told over its control
 * socket, and what it answers. */
#ifndef TEC_TOOLS_POLICY_LIVE_H
#define TEC_TOOLS_POLICY_LIVE_H

#include "tools/cli/command.h"

struct tec_live_options {
    const char *control; /* path of the socket */
    const char *out;     /* dump: the file */
    bool wait;           /* load: until the policy is adopted or rejected */
    int timeout_s;       /* of that */
};

/* Give the order named by the call's first argument. call->wrong when a policy that was waited for
 * is not in force. TEC_INVALID and others as the robot answers them, TEC_NOT_FOUND when there is
 * no robot, TEC_TIME when it does not answer or no trial ends in time. */
enum tec_status tec_policies_live(struct tec_invocation *call,
                                  const struct tec_live_options *options, struct tec_error *err);

#endif

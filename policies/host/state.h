/* state.h - a policy's state S as plain bytes, so that a thread of its own can read it into another
 * state while this one goes on. */
#ifndef TEC_POLICIES_HOST_STATE_H
#define TEC_POLICIES_HOST_STATE_H

#include "policies/host/policy.h"

/* A copy and where it came from. `bytes` has `size` bytes and is the owner's. */
struct tec_state_copy {
    unsigned char *bytes;
    size_t size, n;
    char name[64]; /* of the policy */
    int version;
    char why[200]; /* it could not be copied; "" when it could */
};

/* Copy S. Allocates nothing, raises nothing, and ends when copy->size is full or limits.state_us
 * are over, in CPU time. What does not fit, takes longer or is no plain data (nil, boolean, number,
 * string, tables with string or integer keys, at most 32 deep, without cycles) gives TEC_MALFORMED
 * and copy->why. For the policy's owner, between two calls. */
enum tec_status tec_policy_copy_state(struct tec_policy *policy, struct tec_state_copy *copy);

/* Give `fresh` what its migrate makes of the copy, under its setup budget. Without migrate, or when
 * the copy is of a policy of another name, its state stays as it is: new. */
enum tec_status tec_policy_migrate(struct tec_policy *fresh, const struct tec_state_copy *copy,
                                   struct tec_error *err);
bool tec_policy_migrates(const struct tec_policy *fresh, const char *name);

#endif

/* trial.h - one policy under test: what a test file asked it, and what is expected.
 *
 * Used by test.c, inside the protected calls of a test file's Lua state. */
#ifndef TEC_TOOLS_POLICY_TRIAL_H
#define TEC_TOOLS_POLICY_TRIAL_H

#include "tools/policy/checks.h"
#include "tools/policy/mock.h"

#include <lua.h>

enum tec_asked { TEC_ASKED_NOTHING, TEC_ASKED_FRAME, TEC_ASKED_ADMIT, TEC_ASKED_EVICT };

struct tec_trial {
    struct tec_mock *mock;
    struct tec_checks *checks; /* borrowed */
    enum tec_asked asked;      /* by the last call */
    bool told;                 /* its failure was expected or reported */
    char where[300];           /* of the last call, "file:line" */
    bool admitted;
    char reason[32];
    int victim; /* row from 0, -1 = the engine chooses */
};

/* t:frame{...}, t:admit{...}, t:observe{...}: read the table at index 2 strictly, ask the policy.
 * t:evict(n). They raise when the test itself is wrong. */
void tec_trial_frame(lua_State *L, struct tec_trial *trial);
void tec_trial_admit(lua_State *L, struct tec_trial *trial);
void tec_trial_observe(lua_State *L, struct tec_trial *trial);
void tec_trial_evict(lua_State *L, struct tec_trial *trial);

/* t:expect{...}: a check for each field of the table at index 2. */
void tec_trial_expect(lua_State *L, struct tec_trial *trial);

/* Report the failure of the last call if nobody expected it. Does not raise. */
enum tec_status tec_trial_settle(struct tec_trial *trial, struct tec_error *err);

#endif

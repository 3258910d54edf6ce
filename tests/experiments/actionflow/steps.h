/* steps.h - launches of a variant: how many there are, and a packed forward taken apart into steps
 * that the host launches one by one, as the paper's naive pipe does. */
#ifndef TEC_TESTS_EXPERIMENTS_ACTIONFLOW_STEPS_H
#define TEC_TESTS_EXPERIMENTS_ACTIONFLOW_STEPS_H

#include "graph/run/launch/executor.h"

/* An executor in front of a plan's own. Zeroed is closed; must not move while it is open. */
struct tec_actionflow_steps {
    struct tec_executor own;
    struct tec_plan *plan;
    bool apart;       /* set by the caller: packed forwards run command by command, if recorded */
    int64_t launches; /* of the device so far; the host waits for the end of each */
    int n;
    struct tec_capture **commands; /* [n] one command each */
    bool *lists;                   /* [n] the host writes what is gathered in front of it */
};

struct tec_executor tec_actionflow_steps_executor(struct tec_actionflow_steps *steps,
                                                  struct tec_plan *plan,
                                                  const struct tec_executor *own);

/* Record every command of the plan's packed forward by itself, into the arena. Closed before the
 * plan's device. */
enum tec_status tec_actionflow_steps_record(struct tec_actionflow_steps *steps,
                                            struct tec_arena *arena, struct tec_error *err);
void tec_actionflow_steps_close(struct tec_actionflow_steps *steps);

#endif

/* team.h - lanes that run one function together: lane 0 is the caller, the others are threads that
 * spin for a while between runs, then park. */
#ifndef TEC_KERNELS_TEAM_H
#define TEC_KERNELS_TEAM_H

#include "base/alloc.h"
#include "base/error.h"

struct tec_team;

/* `lanes` >= 1; workers spin `spin_us` between runs before they park (0: park at once). One owner
 * at a time: the thread that calls run. */
enum tec_status tec_team_create(struct tec_team **out, int lanes, int spin_us,
                                struct tec_heap *heap, struct tec_error *err);
void tec_team_destroy(struct tec_team *team); /* joins the workers; NULL is allowed */

int tec_team_lanes(const struct tec_team *team);

/* Calls run(user, lane) on every lane and returns when all have returned. Waking parked workers is
 * one non-blocking system call; nothing else here is one, and nothing allocates. */
void tec_team_run(struct tec_team *team, void (*run)(void *user, int lane), void *user);

/* Inside a run: returns when every lane of the team has come here. Lanes spin. */
void tec_team_barrier(struct tec_team *team);

#endif

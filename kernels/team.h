/* team.h - lanes that run one function together: lane 0 is the caller, the others are threads that
 * spin for a while between runs, then park. The last lanes may be split off for a while, as a team
 * of their own beside the first ones. Inside a run, lanes may share work in stages (stages.h).
 *
 * A lane that waits for others spins for TEC_LANE_SPIN_NS, then sleeps until they have come. */
#ifndef TEC_KERNELS_TEAM_H
#define TEC_KERNELS_TEAM_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "kernels/stages.h"

struct tec_team;

/* `lanes` >= 1; workers spin `spin_us` between runs before they park (0: park at once). One owner
 * at a time: the thread that calls run, fork and join, with TEC_THREAD_STACK of base/thread.h. */
enum tec_status tec_team_create(struct tec_team **out, int lanes, int spin_us,
                                struct tec_heap *heap, struct tec_error *err);

/* Create a team whose last `beside` lanes can be split off: 0 .. lanes - 1. */
enum tec_status tec_team_create_split(struct tec_team **out, int lanes, int beside, int spin_us,
                                      struct tec_heap *heap, struct tec_error *err);
void tec_team_destroy(struct tec_team *team); /* joins the workers; NULL is allowed */

/* Schedule the lanes that are threads; lane 0 is its owner, which does so for itself. TEC_INVALID
 * for fewer cores than lanes; else as tec_thread_schedule. */
enum tec_status tec_team_schedule(struct tec_team *team, const struct tec_scheduling *how,
                                  struct tec_error *err);

/* Lanes of a run: all, or while some are split off, the others. */
int tec_team_lanes(const struct tec_team *team);

/* Calls run(user, lane) on every lane and returns when all have returned. Waking parked workers is
 * one system call for each of the two groups. Nothing allocates. */
void tec_team_run(struct tec_team *team, void (*run)(void *user, int lane), void *user);

/* Before a run that shares work in stages, on the thread that begins it: `at` is the first stage.
 * Inside the run, on each of its first `parts` lanes: take part, until the last stage is done.
 * `beside`: of the lanes that are split off, counted from the first of them. */
void tec_team_begin(struct tec_team *team, bool beside, int at);
void tec_team_join_in(struct tec_team *team, bool beside, const struct tec_stage_work *work,
                      int lane);

/* Split off: run(user, 0 .. beside - 1) starts on the last lanes, and this returns; the runs that
 * follow have the other lanes. join waits for the end, and the team is whole again.
 * Nothing to split or nothing split off: both do nothing. */
void tec_team_fork(struct tec_team *team, void (*run)(void *user, int lane), void *user);
void tec_team_join(struct tec_team *team);

/* Inside what fork started: returns when every lane that was split off has come here. */
void tec_team_barrier_concurrent(struct tec_team *team);

#endif

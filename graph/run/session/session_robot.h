/* session_robot.h - which robot a session has, the template of its prompts, and whether a
 * pipeline's inputs and kv.frame fit it. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_ROBOT_H
#define TEC_GRAPH_RUN_SESSION_SESSION_ROBOT_H

#include "graph/run/session/session.h"

/* The pipeline's robot; else LeRobot's, when the checkpoint has processors; else one made of the
 * pipeline's inputs but for those that other chains alone read (*plain = true): pictures in slot
 * order, float vectors joined to the state, actions as they are. Without a checkpoint its
 * statistics are not asked for. Failures of a robot, here and below, have the place of its
 * description in the pipeline. */
enum tec_status tec_session_find_robot(struct tec_robot **out, bool *plain,
                                       const struct tec_session_options *options,
                                       struct tec_arena *arena, struct tec_error *err);

/* The robot that the pipeline declares for the session; NULL = none. */
const struct tec_decl_robot *tec_session_declared(const struct tec_session_options *options);

/* Is it an input of the session's robot, or of no named one? */
bool tec_session_mine(const struct tec_session_options *options, int input);

/* True if the session's prefill reads the input, or none does. */
bool tec_session_frames_read(const struct tec_session_options *options, int input);

/* By slot of the model: is its picture read by prefills of secondary chains alone? Then it is none
 * of the frames'. */
enum tec_status tec_session_others(bool **out, const struct tec_session_options *options,
                                   const struct tec_observer *observer, struct tec_arena *arena,
                                   struct tec_error *err);

/* A template of pipelines/models/prompts.lua by its name. */
enum tec_status tec_session_read_template(struct tec_template **out, const char *root,
                                          const char *name, struct tec_arena *arena,
                                          struct tec_error *err);

/* The template as session.h says. */
enum tec_status tec_session_find_template(struct tec_template **out,
                                          const struct tec_session_options *options,
                                          const struct tec_robot *robot, struct tec_arena *arena,
                                          struct tec_error *err);

/* Makes the robot's transforms for this model, with the checkpoint's statistics. */
enum tec_status tec_session_make_observer(struct tec_observer **out,
                                          const struct tec_session_options *options,
                                          const struct tec_robot *robot, int text_max,
                                          struct tec_arena *arena, struct tec_heap *heap,
                                          struct tec_error *err);

/* session_fit.c: what every frame would be refused for, said before the first one, all of it, with
 * its places. E060, W106, W108: an input that the robot does not know, one that it wants and the
 * pipeline does not declare, a size or an element type that is not the robot's; more pictures than
 * max_pictures. All of it goes to options->found; where that is NULL, the first error is the
 * failure, TEC_MALFORMED. A `plain` robot is made of the inputs: only its pictures are counted. */
enum tec_status tec_session_fit(const struct tec_session_options *options,
                                const struct tec_robot *robot, bool plain, struct tec_heap *heap,
                                struct tec_error *err);

/* Whether what leaves in place of late chunks repeats old commands for as long as they are late.
 * NULL: the pipeline has no hard deadline, the last command is held. */
bool tec_session_repeats(const struct tec_decl_deadline *deadline);

#endif

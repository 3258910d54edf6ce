/* session_fit.h - do a pipeline's inputs and kv.frame fit its robot? What every frame would be
 * refused for, said before the first one, all of it, with its places. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_FIT_H
#define TEC_GRAPH_RUN_SESSION_SESSION_FIT_H

#include "graph/run/session/session.h"

/* E060, W106, W108: an input that the robot does not know, one that it wants and the pipeline does
 * not declare, a size or an element type that is not the robot's; more pictures than max_pictures.
 * All of it goes to options->found; where that is NULL, the first error is the failure,
 * TEC_MALFORMED. A `plain` robot is made of the inputs: only its pictures are counted. */
enum tec_status tec_session_fit(const struct tec_session_options *options,
                                const struct tec_robot *robot, bool plain, struct tec_heap *heap,
                                struct tec_error *err);

/* Whether what leaves in place of late chunks repeats old commands for as long as they are late.
 * NULL: the pipeline has no hard deadline, the last command is held. */
bool tec_session_repeats(const struct tec_decl_deadline *deadline);

#endif

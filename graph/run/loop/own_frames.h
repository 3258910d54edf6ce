/* own_frames.h - the sessions of a frame: whose turn it is. */
#ifndef TEC_GRAPH_RUN_LOOP_OWN_FRAMES_H
#define TEC_GRAPH_RUN_LOOP_OWN_FRAMES_H

#include "graph/run/loop/state.h"

/* The place of a request's session among those of the running frame, -1 = it is not in it. */
int tec_loop_place(const struct tec_loop *l, const struct tec_request *r);
/* Let it be the turn of a session: by its place, or that of a request. */
void tec_loop_turn(struct tec_loop *l, int who);
void tec_loop_turn_of(struct tec_loop *l, const struct tec_request *r);
/* Let the chains have the prefixes of a session. */
void tec_loop_take_prefixes(struct tec_loop *l, int session);
/* Whether any of them has an observation. */
bool tec_loop_observed(const struct tec_loop *l);
enum tec_status tec_own_frames_create(struct tec_loop *l, struct tec_error *err);

#endif

/* text_keys.h - keys of finished texts, which actions read. */
#ifndef TEC_GRAPH_RUN_LOOP_TEXT_KEYS_H
#define TEC_GRAPH_RUN_LOOP_TEXT_KEYS_H

#include "graph/run/loop/state.h"

enum tec_status tec_loop_text_keys_create(struct tec_loop *l, struct tec_error *err);
/* Is a request slot of a session kept free for those of a decoder? */
bool tec_loop_text_keys_reserves(const struct tec_loop *l, int decoder, int session);
/* What a request's prefix saw, when it is stored. */
void tec_loop_text_keys_see(struct tec_loop *l, struct tec_request *r);
/* Whether its keys stay: asked when it has finished. */
bool tec_loop_text_keys_hold(struct tec_loop *l, const struct tec_request *r, int64_t at_ns);
/* The newest that an action reads in the frame of the session whose turn it is; NULL = none. */
const struct tec_text_keys *tec_loop_text_keys_of(const struct tec_loop *l, int action);
void tec_loop_text_keys_reset(struct tec_loop *l); /* the session's */

#endif

/* state_texts.h - within the loop: texts that prefills read, keys that finished texts leave, and
 * texts that hard nodes wait for. */
#ifndef TEC_GRAPH_RUN_LOOP_STATE_TEXTS_H
#define TEC_GRAPH_RUN_LOOP_STATE_TEXTS_H

#include "graph/run/loop/state.h"

/* texts.c: a finished text that prefills read becomes a version of its stream; what a prefill of
 * this frame reads is recorded and told; the prompt of one that waits, when its text is said: what
 * it reads then, NULL where it waits for none. */
void tec_loop_post_text(struct tec_loop *l, const struct tec_request *r, int64_t at_ns);
void tec_loop_read_text(struct tec_loop *l, const struct tec_chain *c);
void tec_loop_tell_reads(struct tec_loop *l, const struct tec_chain *c,
                         const struct tec_text_read *reads);
void tec_loop_tell_unread(struct tec_loop *l); /* which the observation could not read */
const struct tec_chain_input *tec_loop_hear(struct tec_loop *l, struct tec_chain *c);
/* Which texts of an input are new, of an episode's first one all: bit 0, any; bit 1 + i,
 * that one. Asked once a frame, as it updates the record of those seen. */
unsigned tec_loop_news(struct tec_text_given *given, const struct tec_chain_input *input,
                       int64_t episode);

/* text_keys.c: keys of finished texts that actions read. Request slots of a session that are kept
 * free for them; what a request's prefix saw, when it is stored; whether its keys stay, which is
 * asked when it has finished; the newest that an action reads in the frame of the session whose
 * turn it is, NULL = none. */
enum tec_status tec_loop_text_keys_create(struct tec_loop *l, struct tec_error *err);
bool tec_loop_text_keys_reserves(const struct tec_loop *l, int decoder, int session);
void tec_loop_text_keys_see(struct tec_loop *l, struct tec_request *r);
bool tec_loop_text_keys_hold(struct tec_loop *l, const struct tec_request *r, int64_t at_ns);
const struct tec_text_keys *tec_loop_text_keys_of(const struct tec_loop *l, int action);
void tec_loop_text_keys_reset(struct tec_loop *l); /* the session's */

/* text_first.c: hard texts. Those of a chain go in, with what they need: in front of an action
 * (-1: of none), or behind its actions. */
enum { TEC_TEXTS_BEHIND = -2 };
void tec_loop_add_texts(struct tec_loop *l, struct tec_chain *c, int who, int of);

#endif

/* texts.h - finished texts of decode nodes, and the prefills that read them. */
#ifndef TEC_GRAPH_RUN_LOOP_TEXTS_H
#define TEC_GRAPH_RUN_LOOP_TEXTS_H

#include "graph/run/loop/state.h"

/* The key of the texts that begin a chain's prefill where they change. */
uint64_t tec_loop_key(const struct tec_loop *l, const struct tec_chain *c);
/* A finished text that prefills read becomes a version of its stream. */
void tec_loop_post_text(struct tec_loop *l, const struct tec_request *r, int64_t at_ns);
/* What a prefill of this frame reads is recorded and told. */
void tec_loop_read_text(struct tec_loop *l, const struct tec_chain *c);
void tec_loop_tell_reads(struct tec_loop *l, const struct tec_chain *c,
                         const struct tec_text_read *reads);
void tec_loop_tell_unread(struct tec_loop *l); /* which the observation could not read */
/* The prompt of a prefill that waits, when its text is said: what it reads then; NULL where it
 * waits for none. */
const struct tec_chain_input *tec_loop_hear(struct tec_loop *l, struct tec_chain *c);
/* Which texts of an input are new, of an episode's first one all: bit 0, any; bit 1 + i,
 * that one. Asked once a frame, as it updates the record of those seen. */
unsigned tec_loop_news(struct tec_text_given *given, const struct tec_chain_input *input,
                       int64_t episode);

#endif

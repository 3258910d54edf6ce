/* pictures.h - rows of pictures that prefills of one model share: whose they are. Owned by the
 * frame thread. */
#ifndef TEC_GRAPH_RUN_LOOP_PICTURES_H
#define TEC_GRAPH_RUN_LOOP_PICTURES_H

#include "graph/run/launch/executor.h"

struct tec_loop;
struct tec_chain;

/* Pictures of an observation: which frame's, counted on, and which session's. */
struct tec_pictures_seen {
    int64_t opened; /* 0 = none */
    int session, n;
    const uint8_t *picture[TEC_MAX_CAMERAS];
};

/* Those of an input of the running frame, of the session whose turn it is. */
struct tec_pictures_seen tec_pictures_of(const struct tec_loop *l,
                                         const struct tec_prefix_input *o);
/* Are their rows those that the chain's model made last? And now they are. */
bool tec_pictures_known(const struct tec_chain *c, const struct tec_pictures_seen *seen);
void tec_pictures_keep(const struct tec_chain *c, struct tec_pictures_seen seen);

/* The session's observation as the chain reads it, into a region. */
struct tec_observed tec_pictures_observed(const struct tec_loop *l, const struct tec_chain *c,
                                          int region);

#endif

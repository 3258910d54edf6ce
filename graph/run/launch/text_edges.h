/* text_edges.h - the newest finished text of each stream that a prefill reads: an edge of text,
 * which always leads from an earlier version. The loop posts versions, a session reads them; nobody
 * reads half of one and nobody waits.
 *
 * Thread rule: one thread posts, one thread reads a session's. After create nothing allocates. */
#ifndef TEC_GRAPH_RUN_LAUNCH_TEXT_EDGES_H
#define TEC_GRAPH_RUN_LAUNCH_TEXT_EDGES_H

#include "base/arena.h"
#include "base/error.h"
#include "graph/load/pipeline.h"

#include <stdint.h>

/* A finished text, as the tokens of its writer's model. */
struct tec_text_version {
    int64_t number;  /* of its stream, from 1; 0 = there is none yet */
    int64_t episode; /* of the observation that its request was born with */
    int64_t request, frame;
    int64_t born_ns, finished_ns;
    int n, *tokens;
};

/* Which version a prefill reads. */
struct tec_text_read {
    int stream;      /* 1 + index; 0 = it reads no stream */
    int64_t request; /* -1 = none yet: the default is read */
    int64_t frame, born_ns;
};

struct tec_text_edges;

/* Room for each stream of the pipeline that is read, with tokens[i] of stream i at most, for so
 * many sessions; in the arena. */
enum tec_status tec_text_edges_create(struct tec_text_edges **out,
                                      const struct tec_pipeline *pipeline, const int *tokens,
                                      int sessions, struct tec_arena *arena, struct tec_error *err);

const char *tec_text_edges_name(const struct tec_text_edges *edges, int stream);
int tec_text_edges_room(const struct tec_text_edges *edges, int stream); /* tokens */

/* A text is finished: it is copied. False where a text of a later request, or of a later episode,
 * is there already. */
bool tec_text_edges_post(struct tec_text_edges *edges, int stream, int session,
                         const struct tec_text_version *version);

/* What was posted last, of an episode, for the thread that posts: valid until it posts two more of
 * that stream and session; NULL = none since a restart. */
const struct tec_text_version *tec_text_edges_last(const struct tec_text_edges *edges, int stream,
                                                   int session, int64_t episode);

/* For the thread that posts: is it to be told that no prompt can be made of the text of a request?
 * Once for each, however often it is found out. */
bool tec_text_edges_unread(struct tec_text_edges *edges, int stream, int session, int64_t request);

/* Requests are numbered anew; what was posted stays. */
void tec_text_edges_restart(struct tec_text_edges *edges);

/* The newest version of an episode, valid until the next call; NULL = none yet. */
const struct tec_text_version *tec_text_edges_newest(struct tec_text_edges *edges, int stream,
                                                     int session, int64_t episode);

#endif

/* transcript.h - what requests say, on its way to readers: the frame thread reports each token and
 * each end in a ring of events, and each node's newest ranking in a triple buffer. It neither locks
 * nor waits: events that do not fit are left out, and the end of their text says so.
 *
 * Readers, any number of threads, share `lock`: calls marked "reader" are made under it. */
#ifndef TEC_GRAPH_LIVE_TRANSCRIPT_H
#define TEC_GRAPH_LIVE_TRANSCRIPT_H

#include "base/bell.h"
#include "base/ring.h"
#include "base/triple.h"
#include "graph/live/text_cursor.h"
#include "graph/run/engine/engine.h"

#include <pthread.h>

/* A token of a text, or its end. */
struct tec_transcript_event {
    int64_t request, observation; /* observation: by the client's number; -1 = of none */
    int token, decoder, session;
    bool ends; /* the end, with its reason; else a token */
    bool lost; /* tokens before this one did not fit */
    char reason[32];
};

/* A ranking of a score node: [n] items, the likeliest first. */
struct tec_transcript_ranking {
    int64_t request, observation;
    int n;
    struct tec_ranked *items;
};

/* The frame thread's, of a text record: how much is reported. */
struct tec_transcript_place {
    struct tec_text_cursor at;
    bool lost, ranked;
};

/* The newest ranking of a decoder. */
struct tec_transcript_newest {
    struct tec_triple box;
    struct tec_transcript_ranking places[TEC_TRIPLE_PLACES];
    int64_t taken; /* request of places[box.reading], -1 = none */
};

/* The readers', of a text: the characters that are not whole yet. */
struct tec_transcript_text {
    int64_t request; /* -1: free */
    struct tec_detokenizer decoder;
};

struct tec_transcript {
    pthread_mutex_t lock;
    struct tec_bell said;            /* rings for readers */
    const struct tec_engine *engine; /* borrowed */
    int session;                     /* of the frame's, whose texts it reports; -1 = of all */
    struct tec_ring events;
    _Atomic bool unread; /* nobody reads: what is said meanwhile is never reported, and not lost */
    int n_texts;
    struct tec_transcript_place *places;  /* [n_texts] */
    struct tec_transcript_text *texts;    /* [n_texts] */
    struct tec_transcript_newest *newest; /* [n_decoders] */
    int64_t *observation_of; /* by frame, the frame thread's; not read of all sessions */
};

void tec_transcript_init(struct tec_transcript *t);
void tec_transcript_finish(struct tec_transcript *t);

/* Report the texts of one session of this engine's loop; -1: of all, and a text's
 * observation is then the number that the frame in which it was born had in its session. Everything
 * comes from the arena. */
enum tec_status tec_transcript_attach(struct tec_transcript *t, const struct tec_engine *engine,
                                      int session, struct tec_arena *arena, struct tec_error *err);

/* Frame thread: the loop's frame of this number is of that observation, -1 = of none; before it is
 * run. Then, behind the frame or a reset of the loop: report what its requests have said. */
void tec_transcript_note(struct tec_transcript *t, int64_t frame, int64_t observation);
void tec_transcript_tell(struct tec_transcript *t);

/* Reader: the next event, and the bytes, at most `room`, that it adds to its text; a reader without
 * a tokenizer gets none. false: there is none yet. */
bool tec_transcript_read(struct tec_transcript *t, struct tec_transcript_event *event, char *text,
                         size_t room, size_t *bytes);

/* Reader: the newest ranking of a decoder that ranks, of this request or a later one; valid under
 * the lock. NULL: there is none yet. */
const struct tec_transcript_ranking *tec_transcript_ranking(struct tec_transcript *t, int decoder,
                                                            int64_t from);

#endif

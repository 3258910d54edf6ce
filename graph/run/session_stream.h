/* session_stream.h - streams of text that prefills read, as a session sees them: the newest
 * finished text, as bytes. */
#ifndef TEC_GRAPH_RUN_SESSION_STREAM_H
#define TEC_GRAPH_RUN_SESSION_STREAM_H

#include "graph/run/session.h"

struct tec_stream_reader {
    const struct tec_decl_input *input;
    const struct tec_tokenizer *tokenizer; /* of the writer's model; NULL = its text has no bytes */
    const struct tec_text_version *version; /* NULL: the default is read */
    int64_t number;                         /* of the version whose text is below; 0 = of none */
    char *text;                             /* [room] */
    size_t room, bytes;
};

struct tec_session_streams {
    int n;
    struct tec_stream_reader *readers; /* [n] */
};

/* Room in the arena. TEC_NOT_FOUND where a reader has a tokenizer and the writer has none. */
enum tec_status tec_streams_init(struct tec_session_streams *streams,
                                 const struct tec_session_options *options, struct tec_arena *arena,
                                 struct tec_error *err);

/* Bytes of scratch that reading a text takes. */
size_t tec_streams_scratch(const struct tec_session_streams *streams);

/* The newest texts of an episode, for one observation. */
enum tec_status tec_streams_take(struct tec_session_streams *streams, struct tec_text_edges *edges,
                                 int session, int64_t episode, struct tec_arena *scratch,
                                 struct tec_error *err);

/* What is read: a text, or the default. False: there is none yet. */
bool tec_streams_text(const struct tec_session_streams *streams, int stream, const char **text,
                      size_t *bytes, struct tec_text_read *read);

/* Without tokenizers the writer's tokens stand for the text: they replace the first of n made ids.
 * How many there are. */
int tec_streams_ids(const struct tec_session_streams *streams, int stream, int vocab, int *ids,
                    int n);

/* Of the version that is read, from 1; 0 = the default is read. */
int64_t tec_streams_number(const struct tec_session_streams *streams, int stream);

#endif

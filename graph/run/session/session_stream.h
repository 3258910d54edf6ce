/* session_stream.h - streams of text that prefills read, as a session sees them: the newest
 * finished text, as bytes. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_STREAM_H
#define TEC_GRAPH_RUN_SESSION_SESSION_STREAM_H

#include "graph/run/session/session.h"

struct tec_stream_reader {
    const struct tec_decl_input *input;
    const struct tec_tokenizer *tokenizer; /* of the writer's model; NULL = its text has no bytes */
    const struct tec_text_version *version; /* NULL: the default is read */
    struct tec_text_version of; /* the version whose text is below; number 0 = of none */
    char *text;                 /* [room] */
    size_t room, bytes;
    struct tec_text_version before; /* the one before that, with the same room */
    char *text_before;
    size_t bytes_before;
    bool fresh;      /* no prompt has been made of the newer one yet */
    bool turned;     /* that one is in `before` while the older one is tried */
    int64_t refused; /* the version that none could be made of: it is not read; 0 = none */
};

struct tec_session_streams {
    int64_t observation; /* counted from 1; one that is prepared again has its number */
    bool trying;         /* older texts in place of new ones: what is said meanwhile is not taken */
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

/* No prompt could be made: of one stream (-1: of each) whose text is new the one before is read;
 * called again the new one again. False: no such text is new; without a tokenizer none is. */
bool tec_streams_turn_back(struct tec_session_streams *streams, int stream, int64_t episode);

/* Say so in a failure: whose text, and where it is declared. */
void tec_streams_refuse(const struct tec_stream_reader *reader, enum tec_status status,
                        struct tec_error *err);

/* Prompts have been made: what is read now stays what is read. Returns the first stream whose text
 * was turned back and is never read; -1 = none. Others that were are tried with the next
 * observation, each alone. */
int tec_streams_settle(struct tec_session_streams *streams);

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

/* remote_link.h - one connection to a server: questions and answers within bounds of time and size.
 *
 * hiredis connects, writes the protocol and reads it; the bytes between go through poll with one
 * deadline for a whole question, and an answer may have as many bytes as were asked for and no
 * more. After a failure the connection is closed. Not thread-safe. */
#ifndef TEC_GRAPH_MEMORY_REMOTE_LINK_H
#define TEC_GRAPH_MEMORY_REMOTE_LINK_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEC_REMOTE_HOST = 256 };

/* The address of a server. */
struct tec_remote_place {
    char host[TEC_REMOTE_HOST]; /* or the path of a socket */
    int port;                   /* 0: a socket */
};

enum { TEC_REMOTE_PLACES = 8, TEC_REMOTE_ADDRESS = 1024 };

/* The places of an address; returns how many in *n. TEC_INVALID: neither redis://host[:port], of
 * which there may be several with commas between them, nor unix:/path. The message has the address,
 * but where there is an @ outside a path: before that may be a password. */
enum tec_status tec_remote_places_parse(struct tec_remote_place out[TEC_REMOTE_PLACES], int *n,
                                        const char *address, struct tec_error *err);

enum tec_answer_kind {
    TEC_ANSWER_NONE,
    TEC_ANSWER_STATUS, /* text */
    TEC_ANSWER_ERROR,  /* text: printable, cut */
    TEC_ANSWER_INTEGER,
    TEC_ANSWER_STRING, /* size bytes; in `into` where they are not more than room */
    TEC_ANSWER_NIL
};

struct tec_answer {
    enum tec_answer_kind kind;
    long long integer;
    size_t size;
    char text[96];
    unsigned char *into; /* the caller's; may be NULL */
    size_t room;
};

struct tec_remote_link {
    struct redisContext *context; /* NULL: closed */
    struct redisReader *reader;
    struct tec_answer *answer;
};

/* TEC_IO says why not. A name is looked up without a bound of time. */
enum tec_status tec_remote_link_open(struct tec_remote_link *link,
                                     const struct tec_remote_place *place, int64_t timeout_ns,
                                     struct tec_error *err);
void tec_remote_link_close(struct tec_remote_link *link);

/* Send one question: n words. deadline_ns: of the monotonic clock. TEC_IO: closed by now. */
enum tec_status tec_remote_link_ask(struct tec_remote_link *link, int n, const char *const *words,
                                    const size_t *sizes, int64_t deadline_ns,
                                    struct tec_error *err);
/* Take the answer to the oldest question not yet answered. TEC_IO, TEC_MALFORMED (longer than
 * answer->room and a line, or no answer in this protocol): closed by now. */
enum tec_status tec_remote_link_answer(struct tec_remote_link *link, struct tec_answer *answer,
                                       int64_t deadline_ns, struct tec_error *err);

#endif

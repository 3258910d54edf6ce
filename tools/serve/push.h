/* push.h - texts on their way to a client that wants each as a message of its own: a bounded queue
 * for each connection, from the engine thread to the connection thread.
 *
 * A queue that is full takes no more: the engine counts what is lost and waits for nobody. */
#ifndef TEC_TOOLS_SERVE_PUSH_H
#define TEC_TOOLS_SERVE_PUSH_H

#include "base/arena.h"
#include "base/error.h"
#include "tools/serve/reply.h"

#include <stdatomic.h>

enum { TEC_PUSHES = 16, TEC_PUSH_ROOM = 4096, TEC_PUSH_HEAD = 64 /* bytes before a message */ };

/* One message: `n` bytes behind TEC_PUSH_HEAD of them, for the connection of that number. */
struct tec_push_message {
    int64_t client;
    size_t n;
    uint8_t bytes[TEC_PUSH_HEAD + TEC_PUSH_ROOM];
};

/* Owned by the caller of init, as long as its arena. */
struct tec_push {
    struct tec_push_message *messages; /* [TEC_PUSHES] */
    _Atomic uint32_t written, read;    /* messages so far; the engine's, the connection thread's */
    int lost;                          /* the engine's: texts of `client` that found no room */
    int64_t client;
};

/* TEC_NO_MEMORY. */
enum tec_status tec_push_init(struct tec_push *p, struct tec_arena *arena, struct tec_error *err);

/* Engine thread: queue a text; false: it is lost, and counted for the next one's message. */
bool tec_push_put(struct tec_push *p, int64_t client, const struct tec_reply_text *text);

/* Connection thread: the oldest message, those for other connections dropped; NULL: there is none.
 * It is the caller's until it is dropped. */
struct tec_push_message *tec_push_first(struct tec_push *p, int64_t client);
void tec_push_drop(struct tec_push *p);

#endif

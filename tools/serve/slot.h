/* slot.h - one connection as the connection thread sees it: two messages, one reply, and in which
 * order they come. Knows nothing of sockets. Not thread-safe.
 *
 *     idle -> with the engine -> answered -> being sent -> idle
 *
 * A message that comes early waits until the reply before it has left. A job whose deadline has
 * come is answered here although the engine still holds it: then a message waits until the engine
 * has given it back, too, or until its own deadline. */
#ifndef TEC_TOOLS_SERVE_SLOT_H
#define TEC_TOOLS_SERVE_SLOT_H

#include "base/alloc.h"
#include "tools/serve/exchange.h"

/* Bytes of one message. */
struct tec_slot_message {
    uint8_t *data;
    size_t n, room;
    bool is_text;
};

enum tec_slot_state {
    TEC_SLOT_IDLE,
    TEC_SLOT_ENGINE, /* the job is the engine's */
    TEC_SLOT_ANSWERED,
    TEC_SLOT_SENDING, /* the reply is with the socket, not yet all of it gone */
    TEC_SLOT_ENDING   /* an error was told: the connection is closed next */
};

struct tec_slot {
    struct tec_heap *heap;
    struct tec_exchange *exchange;
    int job;
    int64_t client;   /* number of the connection */
    void *connection; /* NULL: the client is gone, or the slot was never used */
    bool greeted;     /* the metadata has left */
    bool closing;     /* it is being closed: nothing more is done for it */
    bool replaced;    /* ... because its place was given to another client */
    bool early;       /* `filling` is whole and waits */
    bool substituted; /* the newest reply is not the engine's */
    bool held;        /* by the engine, although it is answered */
    bool pushing;     /* a text is with the socket, not yet all of it gone */
    enum tec_slot_state state;
    struct tec_slot_message filling, serving;
    int64_t began_ns;     /* the cycle's: the reply before had left */
    double previous_ms;   /* negative: no cycle is over */
    int64_t whole_by_ns;  /* when the message that comes in must be whole; 0 = none does */
    int64_t taken_by_ns;  /* when the reply must have left; 0 = none is stuck */
    int64_t filled_ns;    /* when `filling` was whole */
    int64_t early_due_ns; /* by when its reply leaves; 0 = whenever */
    bool early_due_acts;  /* tec_job.due_acts of it */
    int64_t n_requests;   /* whole messages of this connection so far */
    int64_t tick;         /* which of them is with the engine, or was last */
    int64_t held_tick;    /* of the held one */
};

/* Whether another connection may take it: nobody there, and nothing with the engine. */
bool tec_slot_free(const struct tec_slot *slot);
void tec_slot_open(struct tec_slot *slot, void *connection, int64_t now);
/* The client has disconnected; memory is freed as soon as the engine does not need it any more. */
void tec_slot_leave(struct tec_slot *slot);

/* Add received bytes to the incoming message; memory grows with the bytes that came, not with the
 * announced length. False without memory. */
bool tec_slot_append(struct tec_slot *slot, const void *bytes, size_t n);
/* The message is complete: hand it to the engine now, or when the previous reply has left. Its
 * reply leaves by `due_ns` (0: whenever); `due_acts` is tec_job's. */
void tec_slot_whole(struct tec_slot *slot, int64_t now, int64_t due_ns, bool due_acts);
/* The engine has given the job back; false when nobody wants the reply. */
bool tec_slot_answered(struct tec_slot *slot);
/* The engine has given a job back that was answered at its deadline. */
void tec_slot_returned(struct tec_slot *slot);
/* The job with the engine is answered at its deadline. */
void tec_slot_expired(struct tec_slot *slot);
/* The message that waits is answered at its deadline, and thrown away; only while idle. */
void tec_slot_early_expired(struct tec_slot *slot);
/* The reply has left; a waiting message goes to the engine. */
void tec_slot_sent(struct tec_slot *slot, int64_t now);

void tec_slot_finish(struct tec_slot *slot);

#endif

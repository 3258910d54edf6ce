/* remote_state.h - the inside of a server's tier, for its source files. */
#ifndef TEC_GRAPH_MEMORY_REMOTE_STATE_H
#define TEC_GRAPH_MEMORY_REMOTE_STATE_H

#include "base/clock.h"
#include "graph/memory/remote_link.h"
#include "graph/memory/remote_own.h"

#include <pthread.h>
#include <stdatomic.h>

/* One connection for each kind of question, so that none waits for another. */
enum {
    TEC_REMOTE_SENDS,
    TEC_REMOTE_LOOKS,
    TEC_REMOTE_READS,  /* of forwards */
    TEC_REMOTE_COPIES, /* reads that nobody's forward waits for */
    TEC_REMOTE_LINES
};

enum {
    TEC_REMOTE_KEY = 96,
    TEC_REMOTE_MOST = 512 << 20, /* of a string: what servers take */
    TEC_REMOTE_NS_PER_BYTE = 100 /* a link of less than 10 MB/s counts as one that stands */
};

struct tec_remote_line {
    pthread_mutex_t lock;
    struct tec_remote_link link;
};

struct tec_remote_job {
    struct tec_remote_job *next;
    struct tec_remote_ticket ticket;
    struct tec_remote_name name;
    size_t size;
    _Alignas(64) unsigned char bytes[];
};

struct tec_remote {
    struct tec_heap *heap;
    struct tec_log_key key;
    struct tec_remote_options options; /* with the defaults in it */
    struct tec_remote_place places[TEC_REMOTE_PLACES];
    int n_places, place;   /* place: the one that was asked last; the thread's */
    int64_t refuses_until; /* a master without replicas is not left before; the thread's */
    char address[TEC_REMOTE_ADDRESS], prefix[64];
    void *user;
    void (*sent)(void *user, const struct tec_remote_ticket *ticket);
    struct tec_remote_line lines[TEC_REMOTE_LINES];
    pthread_t thread;
    bool started;
    _Atomic bool here;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;
    struct tec_remote_job *first, *last;
    int64_t queued; /* bytes */
    int64_t retry_at, backoff;
    int64_t stop_at;
    bool stop;
    bool told; /* that it is away, at least once */
    struct tec_remote_counts counts;
};

/* remote_role.c, by the thread: whether the place whose connection this is takes strings: TEC_IO,
 * it is a replica, or does not say it in time; TEC_UNSUPPORTED, it is one of a cluster. */
enum tec_status tec_remote_role(const struct tec_remote *remote, struct tec_remote_line *line,
                                struct tec_error *err);
/* Whether an answer says that the place which gave it is no master any more, or not yet: TEC_IO.
 * Any thread, any question. */
enum tec_status tec_remote_gives_up_role(const struct tec_answer *answer, struct tec_error *err);
/* By the thread, of an answer to SET: the same, and TEC_IO of a master that has lost its replicas,
 * where there are other places: one of them may be the new master, and the next is tried first.
 * That is so once in rest_ns: if there is none, this one is kept for what it has. */
enum tec_status tec_remote_refuses(struct tec_remote *remote, const struct tec_answer *answer,
                                   struct tec_error *err);

/* When an answer of so many bytes is due to a question that is asked now. */
static inline int64_t tec_remote_deadline(const struct tec_remote *remote, size_t bytes)
{
    const struct tec_clock clock = {0};
    return tec_clock_now(&clock) + remote->options.timeout_ns +
           (int64_t)bytes * TEC_REMOTE_NS_PER_BYTE;
}

void tec_remote_key(const struct tec_remote *remote, struct tec_remote_name name,
                    char key[TEC_REMOTE_KEY]);
/* A question failed: the server is away. Late: it is, because a forward could not wait. It answered
 * as it should: it is not. Under no lock. */
void tec_remote_lost(struct tec_remote *remote, const struct tec_error *why);
void tec_remote_late(struct tec_remote *remote, const struct tec_error *why);
void tec_remote_good(struct tec_remote *remote);

#endif

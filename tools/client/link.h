/* link.h - a robot's client: the thread that speaks with the server, and what it shares with
 * others. */
#ifndef TEC_TOOLS_CLIENT_LINK_H
#define TEC_TOOLS_CLIENT_LINK_H

#include "base/alloc.h"
#include "base/triple.h"
#include "tools/client/message.h"
#include "tools/client/queue.h"
#include "tools/client/socket.h"

#include <pthread.h>

enum { TEC_CLIENT_SESSION = 120, TEC_CLIENT_KEY = 256 };

/* Zero-initialised; the texts and numbers of the options are set before the start. */
struct tectum_client {
    struct tec_heap heap;
    struct tec_client_queue queue;
    char url[300], key[TEC_CLIENT_KEY + 1], session[TEC_CLIENT_SESSION + 1];
    char left_input[TEC_CLIENT_NAME + 1], delay_input[TEC_CLIENT_NAME + 1];
    char given_input[TEC_CLIENT_NAME + 1];
    uint64_t seed;
    bool has_seed;
    double deadline_ms;
    int reply_ms, max_rows, max_columns;

    /* Observations, from who observes to the network's thread. */
    struct tec_triple between;
    struct tec_client_observation seen[TEC_TRIPLE_PLACES];
    int64_t observed; /* how many */

    /* The network's thread. */
    pthread_t thread;
    bool started;
    int wake;                      /* an eventfd: there is something new */
    int stop[2];                   /* sockets: closing the second ends every wait */
    struct tec_client_trust trust; /* zeroed where the URL is plain */
    struct tec_client_socket socket;
    struct tec_buffer request, reply;
    double *actions; /* [max_rows, max_columns] */
    bool held;       /* the observation that is read was not sent */
    struct tec_client_clock clock;
    struct tec_client_durations trips;
    int64_t pause_ms; /* before the next connection */
    _Atomic bool end_stop;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct tectum_client_stats stats;
    int64_t ready_episode; /* of the chunk that was taken last; -1: none yet */
    bool refused;          /* stats.message is more than a connection that could not be made or was
                            * lost: it says why there is no reply also while there is one */
};

/* Begin the thread. TEC_NO_MEMORY, TEC_IO where the system refuses a thread or a socket. */
enum tec_status tec_client_start(struct tectum_client *c, struct tec_error *err);

/* End it, however far it is. */
void tec_client_stop(struct tectum_client *c);

/* There is something new: wake the thread. */
void tec_client_wake(struct tectum_client *c);

#endif

/* places.h - the connections of a gateway's clients, and which of them may ask: a place goes to a
 * request, not to who connects, and who has asked keeps it before those that have not. Any thread.
 */
#ifndef TEC_TOOLS_GATEWAY_PLACES_H
#define TEC_TOOLS_GATEWAY_PLACES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TEC_GATEWAY_PLACES = 160, /* connections, with those that are shut down and not closed yet */
    TEC_GATEWAY_OPEN = 128,   /* of these are open */
    TEC_GATEWAY_IDLE_S = 10,  /* a robot that asks for nothing for so long may be asked to leave */
    TEC_GATEWAY_ARRIVE_S =
        2 /* so long a request may arrive, an answer be taken, where others wait */
};

/* What a connection does with its newest request: nothing any more; it arrives; it is answered; the
 * answer leaves. */
enum tec_gateway_does {
    TEC_GATEWAY_IDLE,
    TEC_GATEWAY_ARRIVES,
    TEC_GATEWAY_WORKS,
    TEC_GATEWAY_SENDS
};

/* A connection. */
struct tec_gateway_place {
    int fd;
    int64_t since_ns; /* when what it does began */
    enum tec_gateway_does does;
    bool may;    /* it has one of the places */
    bool proven; /* a request of its own was accepted */
    bool ends;   /* it was shut down, and its thread has not closed it yet */
};

struct tec_gateway_places {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t gone;
    bool ending;
    int most, n;
    struct tec_gateway_place place[TEC_GATEWAY_PLACES];
};

/* `most`: requests that arrive or are answered at once; at most half of TEC_GATEWAY_OPEN. */
void tec_gateway_places_init(struct tec_gateway_places *p, int most);
void tec_gateway_places_finish(struct tec_gateway_places *p);

/* A connection comes. Of very many, the one that has had no place for longest is shut down. False:
 * there is no memory of it, close it. */
bool tec_gateway_places_come(struct tec_gateway_places *p, int fd);
/* It is about to be closed. */
void tec_gateway_places_go(struct tec_gateway_places *p, int fd);

/* A request begins to arrive: it needs a place, if it has none. Where all are taken, one that never
 * asked anything right gives way, or is late; else a robot that is idle. False: there is none. */
bool tec_gateway_places_begin(struct tec_gateway_places *p, int fd);
/* It is whole: nothing takes its place. */
void tec_gateway_places_work(struct tec_gateway_places *p, int fd);
/* Its answer is ready to be sent. `proven`: the request was accepted; `keeps`: the place stays its
 * own. Then: the answer has left. */
void tec_gateway_places_send(struct tec_gateway_places *p, int fd, bool proven, bool keeps);
void tec_gateway_places_rest(struct tec_gateway_places *p, int fd);

/* From now on each is shut down once its answer has left, with `all` at once. Waits until all are
 * closed, at most `wait_ms` (-1: for as long as it takes). True: they are. */
bool tec_gateway_places_end(struct tec_gateway_places *p, bool all, int wait_ms);

#endif

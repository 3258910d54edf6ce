/* places.h - the open connections of a gateway's clients: those that ask for nothing give their
 * place to those that do. Any thread. */
#ifndef TEC_TOOLS_GATEWAY_PLACES_H
#define TEC_TOOLS_GATEWAY_PLACES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { TEC_GATEWAY_PLACES = 128 /* with those that are told that there is no place, or closed */ };

struct tec_gateway_place {
    int fd;
    int64_t since_ns; /* when it came, or its newest request was answered */
    bool works;       /* its request is whole and being answered */
    bool full;        /* it came when all others worked: it is told so */
    bool ends;        /* it was shut down, and its thread has not closed it yet */
};

struct tec_gateway_places {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t gone;
    bool ending;
    int most, n;
    struct tec_gateway_place place[TEC_GATEWAY_PLACES];
};

/* `most`: connections that are answered at once, less than TEC_GATEWAY_PLACES. */
void tec_gateway_places_init(struct tec_gateway_places *p, int most);
void tec_gateway_places_finish(struct tec_gateway_places *p);

/* A connection comes. Where there are more than `most`, the one that has had no request whole for
 * longest is shut down. False: there is no memory of it, close it. */
bool tec_gateway_places_come(struct tec_gateway_places *p, int fd);
/* It is about to be closed. */
void tec_gateway_places_go(struct tec_gateway_places *p, int fd);

/* Whether its request may be answered: every other place works otherwise. */
bool tec_gateway_places_may(struct tec_gateway_places *p, int fd);
/* Its request is whole and being answered, or is answered. */
void tec_gateway_places_note(struct tec_gateway_places *p, int fd, bool works);

/* From now on each is shut down once it is answered, with `all` at once. Waits until all are
 * closed, at most `wait_ms` (-1: for as long as it takes). True: they are. */
bool tec_gateway_places_end(struct tec_gateway_places *p, bool all, int wait_ms);

#endif

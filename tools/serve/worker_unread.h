/* worker_unread.h - keys of requests that nothing reads: a misspelt one is no error, as with
 * openpi, but is told. */
#ifndef TEC_TOOLS_SERVE_WORKER_UNREAD_H
#define TEC_TOOLS_SERVE_WORKER_UNREAD_H

#include <stdint.h>

enum { TEC_UNREAD_CLIENTS = 16, TEC_UNREAD_KEYS = 16 };

/* Each key is told once for each connection: of the newest connections, and of so many keys. */
struct tec_worker_unread {
    struct tec_unread_client {
        int64_t client;                 /* a connection's number, from 1 on; 0 = none */
        uint64_t all;                   /* hash of the newest request's keys */
        uint64_t keys[TEC_UNREAD_KEYS]; /* hashes of those that were told */
        int n;
    } clients[TEC_UNREAD_CLIENTS];
};

#endif

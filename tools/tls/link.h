/* link.h - one connection behind its handshake: bytes between the client's socket, where they are
 * encrypted, and a socket within the program, where they are not. Nothing here blocks, and no more
 * than two records are held. One thread at a time. */
#ifndef TEC_TOOLS_TLS_LINK_H
#define TEC_TOOLS_TLS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ssl_st; /* OpenSSL's */

enum {
    TEC_TLS_RECORD = 16384,  /* bytes that a record of TLS carries at most */
    TEC_TLS_ROUNDS = 16,     /* records each way in one turn: others come next */
    TEC_TLS_LEAVE_MS = 2000, /* so long a client may take what was said last */
};

/* Bytes on their way. */
struct tec_tls_bytes {
    size_t at, n;
    uint8_t data[TEC_TLS_RECORD];
};

struct tec_tls_link {
    struct ssl_st *ssl;
    int outer, inner;               /* sockets: of the client, of the program */
    short outer_waits, inner_waits; /* for poll(2); 0: it is not to be looked at */
    bool again;                     /* there is more to do at once */
    bool outer_ended, told_inner;   /* the client sends no more; the program was told so */
    bool inner_ended, told_outer;   /* the same the other way round */
    bool broken;                    /* nothing can be said to the client any more */
    int64_t until_ns; /* when it is closed at the latest; 0: the program has not closed its side */
    struct tec_tls_bytes up, down; /* from the client, to it */
};

/* Pass on what can be passed on without waiting; false: it is over, and to be closed. */
bool tec_tls_link_turn(struct tec_tls_link *link, int64_t now_ns);

/* Close both sockets and free what OpenSSL holds; the struct is its owner's. */
void tec_tls_link_close(struct tec_tls_link *link);

#endif

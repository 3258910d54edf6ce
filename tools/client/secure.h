/* secure.h - TLS of a client: what a server's certificate is held against, and one connection's
 * records. Nothing here touches a socket or waits: bytes that were received are fed in, bytes that
 * are to be sent are taken out. no_tls.c is the same for a library that is built without OpenSSL.
 */
#ifndef TEC_TOOLS_CLIENT_SECURE_H
#define TEC_TOOLS_CLIENT_SECURE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct ssl_ctx_st; /* OpenSSL's, as the two below */
struct ssl_st;
struct bio_st;

enum {
    TEC_CLIENT_SERVER_NAME = 253, /* bytes of a name that DNS knows, RFC 1035 */
    TEC_CLIENT_CA_FILE = 4 << 20, /* bytes of a file of certificates */
    TEC_CLIENT_RECORD = 16384     /* bytes that are put into one record */
};

/* What servers are believed by. Zeroed: none is, and only plain URLs are spoken with. */
struct tec_client_trust {
    struct ssl_ctx_st *context;
    char name[TEC_CLIENT_SERVER_NAME + 1]; /* that certificates must have; "": the URL's host */
};

/* ca_file NULL: the system's certificates, where OpenSSL looks for them. Otherwise those of the
 * file, in PEM form, alone: authorities', or the server's own. server_name NULL: the URL's host.
 * TEC_IO, TEC_MALFORMED where the file has no certificate, TEC_INVALID for a name, TEC_UNSUPPORTED
 * without OpenSSL, TEC_NO_MEMORY. Close it with tec_client_trust_close, also where it is zeroed. */
enum tec_status tec_client_trust_open(struct tec_client_trust *trust, const char *ca_file,
                                      const char *server_name, struct tec_error *err);
void tec_client_trust_close(struct tec_client_trust *trust);

/* One connection. Zeroed: it is plain. The trust outlives it. */
struct tec_client_secure {
    struct ssl_st *ssl;
    struct bio_st *received, *sent; /* records in, records out; the connection's */
    bool starved;                   /* what was fed in has been read, but for part of a record */
};

/* A connection to a server that must prove to be `host`, or what the trust names in its place: an
 * address is looked for among the certificate's addresses. */
enum tec_status tec_client_secure_begin(struct tec_client_secure *c,
                                        const struct tec_client_trust *trust, const char *host,
                                        struct tec_error *err);
/* As much of the handshake as what was fed in allows; *done: the server has proved who it is.
 * TEC_IO where it has not, with the remedy in the message. */
enum tec_status tec_client_secure_shake(struct tec_client_secure *c, bool *done,
                                        struct tec_error *err);
/* Bytes that the server has sent. TEC_NO_MEMORY. */
enum tec_status tec_client_secure_feed(struct tec_client_secure *c, const void *data, size_t n,
                                       struct tec_error *err);
/* Of them what the server has said, at most `room` bytes; *n 0: nothing yet. TEC_IO. */
enum tec_status tec_client_secure_read(struct tec_client_secure *c, void *to, size_t room,
                                       size_t *n, struct tec_error *err);
/* Say n bytes to the server, 1 to TEC_CLIENT_RECORD. TEC_IO. */
enum tec_status tec_client_secure_write(struct tec_client_secure *c, const void *data, size_t n,
                                        struct tec_error *err);
/* What is to be sent to the server, at most `room` bytes; 0: nothing. */
size_t tec_client_secure_take(struct tec_client_secure *c, void *to, size_t room);
/* Whether reading may give something though nothing is received. */
bool tec_client_secure_pending(const struct tec_client_secure *c);
/* Say that this is the end, to be taken with tec_client_secure_take. */
void tec_client_secure_leave(struct tec_client_secure *c);
/* Zeroed is allowed, and what it is afterwards. */
void tec_client_secure_end(struct tec_client_secure *c);

#endif

/* context.h - a certificate and its key, read from PEM files and judged before a model is loaded.
 */
#ifndef TEC_TOOLS_TLS_CONTEXT_H
#define TEC_TOOLS_TLS_CONTEXT_H

#include "base/error.h"

struct ssl_ctx_st; /* OpenSSL's */

/* Values of the options --tls-cert and --tls-key; NULL: not given. */
struct tec_tls_asked {
    const char *cert, *key;
};

/* What connections are made from; *out is NULL where nothing was asked for. `cert` holds the
 * server's certificate and behind it those between it and the root, at most TEC_TLS_CHAIN; `key`
 * its private key, without a pass phrase, in a file that nobody but its owner can use. TLS 1.2 and
 * 1.3 alone are spoken, without renegotiation, resumption, compression and early data.
 *
 * TEC_INVALID where one of them is missing, TEC_IO, TEC_UNSUPPORTED (the key's mode or pass phrase,
 * a certificate that OpenSSL takes for too weak) or TEC_MALFORMED, with the option and the path. */
enum { TEC_TLS_CHAIN = 8, TEC_TLS_FILE = 256 << 10 /* bytes of either file */ };
enum tec_status tec_tls_context_open(struct ssl_ctx_st **out, const struct tec_tls_asked *asked,
                                     struct tec_error *err);

/* NULL is allowed. */
void tec_tls_context_close(struct ssl_ctx_st *context);

#endif

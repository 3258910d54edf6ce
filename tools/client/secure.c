/* secure.c - OpenSSL between a client's messages and its socket. A server proves who it is, or
 * nothing is said to it. */
#include "tools/client/secure.h"

#include "tools/serve/key.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* OpenSSL's reason for the last failure, and nothing of it left behind. */
static const char *reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return text ? text : "no reason given";
}

/* --- what servers are believed by ------------------------------------------------------------- */

/* The certificates of a file become all that is believed. */
static enum tec_status add_certificates(X509_STORE *store, BIO *bio, const char *path,
                                        struct tec_error *err)
{
    X509 *next;
    int n = 0;
    bool added = true;
    while (added && (next = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        added = X509_STORE_add_cert(store, next) == 1;
        X509_free(next);
        n += added;
    }
    bool is_end = added && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    const char *why = reason();
    if (n > 0 && is_end)
        return TEC_OK;
    return tec_fail(err, TEC_MALFORMED, "ca_file %s: certificate %d in PEM form: %s", path, n + 1,
                    why);
}

static enum tec_status read_ca_file(SSL_CTX *context, const char *path, struct tec_error *err)
{
    size_t n = 0;
    char *data = OPENSSL_malloc(TEC_CLIENT_CA_FILE);
    if (!data)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for ca_file");
    enum tec_status status =
        tec_key_file(data, TEC_CLIENT_CA_FILE, &n, "ca_file", path, false, err);
    if (status == TEC_OK && n == TEC_CLIENT_CA_FILE)
        status = tec_fail(err, TEC_MALFORMED, "ca_file %s: more than %d MiB", path,
                          TEC_CLIENT_CA_FILE >> 20);
    BIO *bio = status == TEC_OK ? BIO_new_mem_buf(data, (int)n) : NULL;
    if (status == TEC_OK)
        status = bio ? add_certificates(SSL_CTX_get_cert_store(context), bio, path, err)
                     : tec_fail(err, TEC_NO_MEMORY, "no memory for ca_file");
    BIO_free(bio);
    OPENSSL_free(data);
    return status;
}

static enum tec_status configure(SSL_CTX *context, const char *ca_file, struct tec_error *err)
{
    ERR_clear_error();
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    /* A file may hold the server's own certificate and none that it was signed by. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
        return tec_fail(err, TEC_UNSUPPORTED, "OpenSSL: %s", reason());
    if (ca_file)
        return read_ca_file(context, ca_file, err);
    return SSL_CTX_set_default_verify_paths(context) == 1
               ? TEC_OK
               : tec_fail(err, TEC_IO, "the system's certificates: %s", reason());
}

enum tec_status tec_client_trust_open(struct tec_client_trust *trust, const char *ca_file,
                                      const char *server_name, struct tec_error *err)
{
    *trust = (struct tec_client_trust){.context = NULL};
    size_t n = server_name ? strlen(server_name) : 0;
    if (server_name && (n < 1 || n > TEC_CLIENT_SERVER_NAME))
        return tec_fail(err, TEC_INVALID, "server_name: must have 1 to %d bytes",
                        TEC_CLIENT_SERVER_NAME);
    memcpy(trust->name, server_name ? server_name : "", n + 1);
    trust->context = SSL_CTX_new(TLS_client_method());
    if (!trust->context)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for TLS: %s", reason());
    enum tec_status status = configure(trust->context, ca_file, err);
    if (status != TEC_OK)
        tec_client_trust_close(trust);
    return status;
}

void tec_client_trust_close(struct tec_client_trust *trust)
{
    SSL_CTX_free(trust->context);
    trust->context = NULL;
}

/* --- the handshake ---------------------------------------------------------------------------- */

/* Whom the certificate must be for. A name goes to the server as well, which may have several. */
static bool expect(SSL *ssl, const char *name)
{
    uint8_t address[sizeof(struct in6_addr)];
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    SSL_set_hostflags(ssl,
                      X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    char sent[TLSEXT_MAXLEN_host_name + 1]; /* OpenSSL's macro takes no const */
    if (snprintf(sent, sizeof sent, "%s", name) >= (int)sizeof sent)
        return false;
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, sent) == 1;
}

enum tec_status tec_client_secure_begin(struct tec_client_secure *c,
                                        const struct tec_client_trust *trust, const char *host,
                                        struct tec_error *err)
{
    ERR_clear_error();
    *c = (struct tec_client_secure){.ssl = SSL_new(trust->context)};
    c->received = BIO_new(BIO_s_mem());
    c->sent = BIO_new(BIO_s_mem());
    if (!c->ssl || !c->received || !c->sent) {
        BIO_free(c->received);
        BIO_free(c->sent);
        SSL_free(c->ssl);
        *c = (struct tec_client_secure){.ssl = NULL};
        return tec_fail(err, TEC_NO_MEMORY, "no memory for TLS: %s", reason());
    }
    BIO_set_mem_eof_return(c->received, -1); /* no bytes yet, and not the end */
    SSL_set_bio(c->ssl, c->received, c->sent);
    SSL_set_connect_state(c->ssl);
    const char *name = trust->name[0] ? trust->name : host;
    return expect(c->ssl, name)
               ? TEC_OK
               : tec_fail(err, TEC_INVALID, "server_name: '%s' is no name of a host: %s", name,
                          reason());
}

/* Why the certificate is not believed, and what helps. */
static enum tec_status not_believed(long verdict, struct tec_error *err)
{
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return tec_fail(
            err, TEC_IO,
            "the server's certificate is for another host: its subjectAltName must "
            "have the URL's, or the one that the option server_name (--server-name) says");
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return tec_fail(err, TEC_IO, "the server's certificate %s, by the clock of this machine",
                        verdict == X509_V_ERR_CERT_HAS_EXPIRED ? "has expired"
                                                               : "is not yet valid");
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return tec_fail(err, TEC_IO,
                        "the server's certificate is signed by nobody who is believed: the option "
                        "ca_file (--ca-file) names its authority's, or its own");
    default:
        return tec_fail(err, TEC_IO, "the server's certificate is not believed: %s",
                        X509_verify_cert_error_string(verdict));
    }
}

enum tec_status tec_client_secure_shake(struct tec_client_secure *c, bool *done,
                                        struct tec_error *err)
{
    ERR_clear_error();
    int result = SSL_do_handshake(c->ssl);
    *done = result == 1;
    if (*done || SSL_get_error(c->ssl, result) == SSL_ERROR_WANT_READ)
        return TEC_OK;
    long verdict = SSL_get_verify_result(c->ssl);
    int code = ERR_GET_REASON(ERR_peek_last_error());
    if (verdict != X509_V_OK) {
        ERR_clear_error();
        return not_believed(verdict, err);
    }
    if (code == SSL_R_WRONG_VERSION_NUMBER) {
        ERR_clear_error();
        return tec_fail(err, TEC_IO, "the server speaks no TLS: its URL begins with ws://");
    }
    return tec_fail(err, TEC_IO, "TLS: %s", reason());
}

/* --- bytes ------------------------------------------------------------------------------------ */

enum tec_status tec_client_secure_feed(struct tec_client_secure *c, const void *data, size_t n,
                                       struct tec_error *err)
{
    c->starved = false;
    return n <= INT_MAX && BIO_write(c->received, data, (int)n) == (int)n
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for what a server sends: %s", reason());
}

enum tec_status tec_client_secure_read(struct tec_client_secure *c, void *to, size_t room,
                                       size_t *n, struct tec_error *err)
{
    ERR_clear_error();
    int got = SSL_read(c->ssl, to, room < TEC_CLIENT_RECORD ? (int)room : TEC_CLIENT_RECORD);
    *n = got > 0 ? (size_t)got : 0;
    c->starved = got <= 0;
    if (got > 0)
        return TEC_OK;
    switch (SSL_get_error(c->ssl, got)) {
    case SSL_ERROR_WANT_READ:
        return TEC_OK;
    case SSL_ERROR_ZERO_RETURN:
        return tec_fail(err, TEC_IO, "the server ended the connection");
    default:
        return tec_fail(err, TEC_IO, "TLS: %s", reason());
    }
}

enum tec_status tec_client_secure_write(struct tec_client_secure *c, const void *data, size_t n,
                                        struct tec_error *err)
{
    ERR_clear_error();
    bool written = n <= TEC_CLIENT_RECORD && SSL_write(c->ssl, data, (int)n) == (int)n;
    return written ? TEC_OK : tec_fail(err, TEC_IO, "TLS: %s", reason());
}

size_t tec_client_secure_take(struct tec_client_secure *c, void *to, size_t room)
{
    int got = BIO_read(c->sent, to, room < INT_MAX ? (int)room : INT_MAX);
    return got > 0 ? (size_t)got : 0;
}

bool tec_client_secure_pending(const struct tec_client_secure *c)
{
    return c->ssl && !c->starved;
}

void tec_client_secure_leave(struct tec_client_secure *c)
{
    SSL_shutdown(c->ssl);
    ERR_clear_error();
}

void tec_client_secure_end(struct tec_client_secure *c)
{
    SSL_free(c->ssl); /* with both BIOs */
    *c = (struct tec_client_secure){.ssl = NULL};
}

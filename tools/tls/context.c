/* context.c - PEM files become OpenSSL's context, or one error with the file in it. */
#include "tools/tls/context.h"

#include "tools/serve/key.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#define CERT "--tls-cert"
#define KEY "--tls-key"

/* What is taken while files are read; released by the caller of read_files. */
struct files {
    const struct tec_tls_asked *asked;
    SSL_CTX *context;
    X509 *cert;
    EVP_PKEY *key;
    bool has_pass_phrase;
};

/* OpenSSL's reason for the last failure, and nothing of it left behind. */
static const char *reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return text ? text : "no reason given";
}

/* Nobody is there to be asked: a pass phrase is told, not waited for. */
static int ask_nobody(char *text, int room, int writing, void *user)
{
    struct files *f = user;
    (void)text;
    (void)room;
    (void)writing;
    f->has_pass_phrase = true;
    return -1;
}

/* The certificates behind the server's own; the end of the file is no error. */
static enum tec_status read_chain(struct files *f, BIO *bio, struct tec_error *err)
{
    X509 *next;
    int n = 1;
    while ((next = PEM_read_bio_X509(bio, NULL, ask_nobody, f)) != NULL) {
        if (++n > TEC_TLS_CHAIN || SSL_CTX_add0_chain_cert(f->context, next) != 1) {
            X509_free(next);
            return tec_fail(err, TEC_UNSUPPORTED, CERT " %s: certificate %d is refused: %s",
                            f->asked->cert, n, n > TEC_TLS_CHAIN ? "there are too many" : reason());
        }
    }
    bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    const char *why = reason();
    return is_end ? TEC_OK
                  : tec_fail(err, TEC_MALFORMED, CERT " %s: certificate %d cannot be read: %s",
                             f->asked->cert, n + 1, why);
}

static enum tec_status read_cert(struct files *f, BIO *bio, struct tec_error *err)
{
    f->cert = PEM_read_bio_X509(bio, NULL, ask_nobody, f);
    if (!f->cert)
        return tec_fail(err, TEC_MALFORMED, CERT " %s: there is no certificate in PEM form: %s",
                        f->asked->cert, reason());
    if (SSL_CTX_use_certificate(f->context, f->cert) != 1)
        return tec_fail(err, TEC_UNSUPPORTED, CERT " %s: the certificate is refused: %s",
                        f->asked->cert, reason());
    if (X509_cmp_current_time(X509_get0_notAfter(f->cert)) < 0)
        return tec_fail(err, TEC_UNSUPPORTED,
                        CERT " %s: the certificate has expired, by the clock of this machine",
                        f->asked->cert);
    return read_chain(f, bio, err);
}

static enum tec_status read_key(struct files *f, BIO *bio, struct tec_error *err)
{
    f->key = PEM_read_bio_PrivateKey(bio, NULL, ask_nobody, f);
    if (!f->key && f->has_pass_phrase) {
        ERR_clear_error();
        return tec_fail(err, TEC_UNSUPPORTED,
                        KEY " %s: the key has a pass phrase, and nobody is there to be asked: "
                            "`openssl pkey -in FILE -out FILE` takes it away",
                        f->asked->key);
    }
    if (!f->key)
        return tec_fail(err, TEC_MALFORMED, KEY " %s: there is no private key in PEM form: %s",
                        f->asked->key, reason());
    if (X509_check_private_key(f->cert, f->key) != 1) {
        ERR_clear_error();
        return tec_fail(err, TEC_MALFORMED, KEY " %s: it is not the key of the certificate in %s",
                        f->asked->key, f->asked->cert);
    }
    return SSL_CTX_use_PrivateKey(f->context, f->key) == 1
               ? TEC_OK
               : tec_fail(err, TEC_UNSUPPORTED, KEY " %s: the key is refused: %s", f->asked->key,
                          reason());
}

/* Read a file whole and have it judged; its bytes are wiped. */
static enum tec_status read_file(struct files *f, const char *option, const char *path, bool secret,
                                 enum tec_status (*read)(struct files *, BIO *, struct tec_error *),
                                 struct tec_error *err)
{
    size_t n = 0;
    char *data = OPENSSL_zalloc(TEC_TLS_FILE);
    if (!data)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %s", option);
    enum tec_status status = tec_key_file(data, TEC_TLS_FILE, &n, option, path, secret, err);
    if (status == TEC_OK && n == TEC_TLS_FILE)
        status = tec_fail(err, TEC_MALFORMED, "%s %s: more than %d KiB", option, path,
                          TEC_TLS_FILE >> 10);
    BIO *bio = status == TEC_OK ? BIO_new_mem_buf(data, (int)n) : NULL;
    if (status == TEC_OK)
        status = bio ? read(f, bio, err) : tec_fail(err, TEC_NO_MEMORY, "no memory for %s", option);
    BIO_free(bio);
    OPENSSL_clear_free(data, TEC_TLS_FILE);
    return status;
}

static enum tec_status configure(SSL_CTX *context, struct tec_error *err)
{
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                     SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    /* A call ends behind each record, also behind those that carry no data: else a client that
     * sends such records as fast as it can would hold the thread of all. */
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    bool good = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
                SSL_CTX_set_num_tickets(context, 0) == 1 &&
                SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
    return good ? TEC_OK : tec_fail(err, TEC_UNSUPPORTED, "OpenSSL: %s", reason());
}

enum tec_status tec_tls_context_open(struct ssl_ctx_st **out, const struct tec_tls_asked *asked,
                                     struct tec_error *err)
{
    struct files f = {.asked = asked};
    *out = NULL;
    if (!asked->cert && !asked->key)
        return TEC_OK;
    if (!asked->cert || !asked->key)
        return tec_fail(err, TEC_INVALID, "%s needs %s: a certificate and its key go together",
                        asked->cert ? CERT : KEY, asked->cert ? KEY : CERT);
    f.context = SSL_CTX_new(TLS_server_method());
    if (!f.context)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for TLS");
    enum tec_status status = configure(f.context, err);
    if (status == TEC_OK)
        status = read_file(&f, CERT, asked->cert, false, read_cert, err);
    if (status == TEC_OK)
        status = read_file(&f, KEY, asked->key, true, read_key, err);
    X509_free(f.cert);
    EVP_PKEY_free(f.key);
    if (status != TEC_OK)
        SSL_CTX_free(f.context);
    else
        *out = f.context;
    return status;
}

void tec_tls_context_close(struct ssl_ctx_st *context)
{
    SSL_CTX_free(context);
}

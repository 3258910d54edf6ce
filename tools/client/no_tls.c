/* no_tls.c - secure.h for a library that is built without OpenSSL (TECTUM_CLIENT_TLS=off): a URL
 * that asks for TLS is refused, and nothing is ever sent in its place. */
#include "tools/client/secure.h"

static enum tec_status none(struct tec_error *err)
{
    return tec_fail(err, TEC_UNSUPPORTED,
                    "this client was built without TLS: build it with -DTECTUM_CLIENT_TLS=on");
}

enum tec_status tec_client_trust_open(struct tec_client_trust *trust, const char *ca_file,
                                      const char *server_name, struct tec_error *err)
{
    (void)ca_file;
    (void)server_name;
    *trust = (struct tec_client_trust){.context = NULL};
    return none(err);
}

void tec_client_trust_close(struct tec_client_trust *trust)
{
    (void)trust;
}

enum tec_status tec_client_secure_begin(struct tec_client_secure *c,
                                        const struct tec_client_trust *trust, const char *host,
                                        struct tec_error *err)
{
    (void)c;
    (void)trust;
    (void)host;
    return none(err);
}

enum tec_status tec_client_secure_shake(struct tec_client_secure *c, bool *done,
                                        struct tec_error *err)
{
    (void)c;
    *done = false;
    return none(err);
}

enum tec_status tec_client_secure_feed(struct tec_client_secure *c, const void *data, size_t n,
                                       struct tec_error *err)
{
    (void)c;
    (void)data;
    (void)n;
    return none(err);
}

enum tec_status tec_client_secure_read(struct tec_client_secure *c, void *to, size_t room,
                                       size_t *n, struct tec_error *err)
{
    (void)c;
    (void)to;
    (void)room;
    *n = 0;
    return none(err);
}

enum tec_status tec_client_secure_write(struct tec_client_secure *c, const void *data, size_t n,
                                        struct tec_error *err)
{
    (void)c;
    (void)data;
    (void)n;
    return none(err);
}

size_t tec_client_secure_take(struct tec_client_secure *c, void *to, size_t room)
{
    (void)c;
    (void)to;
    (void)room;
    return 0;
}

bool tec_client_secure_pending(const struct tec_client_secure *c)
{
    (void)c;
    return false;
}

void tec_client_secure_leave(struct tec_client_secure *c)
{
    (void)c;
}

void tec_client_secure_end(struct tec_client_secure *c)
{
    (void)c;
}

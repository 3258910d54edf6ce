/* client_tls.c - a robot's client by TLS: whom it believes, whom it does not, and that a server
 * which stops amid the handshake costs the control loop nothing. */
#include "tests/box.h"
#include "tests/client_server.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>

enum { DAY = 86400, LONG = 60000 };

/* --- certificates ----------------------------------------------------------------------------- */

struct identity {
    X509 *cert;
    EVP_PKEY *key;
};

static void extend(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    REQUIRE(e && X509_add_ext(cert, e, -1) == 1);
    X509_EXTENSION_free(e);
}

/* A certificate for `names` ("DNS:a,IP:b"; NULL: an authority's), valid between days from now, that
 * `by` has signed; NULL: it has itself. */
static struct identity identity(const char *names, long from, long to, const struct identity *by)
{
    struct identity own = {X509_new(), EVP_EC_gen("P-256")};
    REQUIRE(own.cert && own.key);
    X509_set_version(own.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(own.cert), (long)(intptr_t)own.cert & 0xffffff);
    X509_gmtime_adj(X509_getm_notBefore(own.cert), from * DAY);
    X509_gmtime_adj(X509_getm_notAfter(own.cert), to * DAY);
    X509_set_pubkey(own.cert, own.key);
    X509_NAME *subject = X509_get_subject_name(own.cert);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               (const unsigned char *)(names ? "robot" : "authority"), -1, -1, 0);
    X509_set_issuer_name(own.cert, by ? X509_get_subject_name(by->cert) : subject);
    extend(own.cert, NID_basic_constraints, names ? "CA:FALSE" : "critical,CA:TRUE");
    if (names)
        extend(own.cert, NID_subject_alt_name, names);
    REQUIRE(X509_sign(own.cert, by ? by->key : own.key, EVP_sha256()) > 0);
    return own;
}

static void forget(struct identity *own)
{
    X509_free(own->cert);
    EVP_PKEY_free(own->key);
}

static void put_cert(struct box *b, const char *name, const struct identity *own)
{
    box_path(b, name);
    FILE *f = fopen(b->path, "wb");
    REQUIRE(f && PEM_write_X509(f, own->cert) == 1 && fclose(f) == 0);
}

/* --- a server by TLS -------------------------------------------------------------------------- */

static SSL_CTX *presented; /* what the servers here show */

/* A whole frame of a request, of whatever length; false: the client has left. */
static bool read_request(SSL *ssl)
{
    static char bytes[4 * ROOM];
    size_t n = 0, whole = 14;
    while (n < whole) {
        int got = SSL_read(ssl, bytes + n, (int)(sizeof bytes - n));
        if (got <= 0)
            return false;
        n += (size_t)got;
        const uint8_t *head = (const uint8_t *)bytes;
        size_t length = head[1] & 127;
        if (n >= 14) /* a mask of four bytes behind the length */
            whole = length == 127   ? ((size_t)head[7] << 16 | (size_t)head[8] << 8 | head[9]) + 14
                    : length == 126 ? (size_t)head[2] * 256 + head[3] + 8
                                    : length + 6;
    }
    return true;
}

/* Records that carry nothing for the client: a ticket and new keys, which it must answer. */
static bool chat(SSL *ssl)
{
    static const char ping[] = "\x89\x01x";
    return SSL_new_session_ticket(ssl) == 1 && SSL_do_handshake(ssl) == 1 &&
           SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(ssl) == 1 &&
           SSL_write(ssl, ping, sizeof ping - 1) > 0 && SSL_new_session_ticket(ssl) == 1 &&
           SSL_do_handshake(ssl) == 1;
}

static void answer_by_tls(struct server *s, SSL *ssl)
{
    static char reply[ROOM], metadata[LONG + 4] = "\x82\x7e\xea\x60\xc5\xea\x5d";
    static char pong[64];
    size_t n = good_reply(reply);
    bool on = SSL_read(ssl, reply + n, ROOM - (int)n) > 0 &&
              SSL_write(ssl, SWITCHED, sizeof SWITCHED - 1) > 0 &&
              SSL_write(ssl, metadata, sizeof metadata) > 0;
    while (on && read_request(ssl)) {
        atomic_fetch_add(&s->requests, 1);
        on = SSL_write(ssl, reply, (int)n) > 0 && chat(ssl) && SSL_read(ssl, pong, sizeof pong) > 0;
        atomic_fetch_add(&s->pongs, on);
    }
}

static void meet_by_tls(struct server *s, int fd)
{
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); /* of this server alone: the client must raise none */
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    SSL *ssl = SSL_new(presented);
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1)
        answer_by_tls(s, ssl);
    SSL_free(ssl);
    ERR_clear_error();
}

static void begin_by_tls(struct server *s, const struct identity *own)
{
    const struct script script = {.name = "TLS", .meets = meet_by_tls};
    presented = SSL_CTX_new(TLS_server_method());
    REQUIRE(presented && SSL_CTX_use_certificate(presented, own->cert) == 1 &&
            SSL_CTX_use_PrivateKey(presented, own->key) == 1);
    begin(s, &script);
}

static void end_by_tls(struct server *s)
{
    end(s);
    SSL_CTX_free(presented);
}

/* --- robots ----------------------------------------------------------------------------------- */

static struct tectum_client *robot_by_tls(const struct server *s, const char *host,
                                          const char *ca_file, const char *server_name)
{
    const struct tectum_client_options options = {.rate_hz = 20,
                                                  .reply_ms = 20000,
                                                  .max_rows = 8,
                                                  .max_columns = 4,
                                                  .hold_ms = -1,
                                                  .key = "a-key-of-24-characters..",
                                                  .ca_file = ca_file,
                                                  .server_name = server_name};
    struct tectum_client *client = NULL;
    struct tectum_error err = {.message = ""};
    char url[64];
    snprintf(url, sizeof url, "wss://%s:%d", host, s->port);
    REQUIRE(tectum_client_open(&client, url, &options, &err) == TECTUM_OK);
    return client;
}

/* An observation of a hundred kilobytes: several records. */
static void observe_much(struct tectum_client *client)
{
    static const uint8_t picture[100000] = {7};
    const struct tectum_value value = {"picture",        TECTUM_TYPE_U8, 1,
                                       {sizeof picture}, picture,        sizeof picture};
    CHECK_INT(tectum_client_observe(client, &value, 1, 0, NULL, NULL), ==, TECTUM_OK);
}

static void believed(const struct identity *own, const char *host, const char *ca_file,
                     const char *server_name)
{
    struct server s;
    struct tectum_client_stats stats;
    struct tectum_client_action told;
    double action[4];
    begin_by_tls(&s, own);
    struct tectum_client *client = robot_by_tls(&s, host, ca_file, server_name);
    do { /* between replies there are records of TLS's own */
        observe_much(client);
        pause_a_bit();
        tectum_client_stats(client, &stats);
    } while (stats.replies < MANY && stats.failures == 0);
    CHECK_STR(stats.message, "");
    CHECK_INT(stats.failures, ==, 0);
    CHECK_INT(stats.connections, ==, 1);
    CHECK_INT(tectum_client_next(client, 0, action, 4, &told), ==, TECTUM_OK);
    while (stats.failures == 0 && atomic_load(&s.pongs) < MANY)
        pause_a_bit();
    tectum_client_close(&client);
    end_by_tls(&s);
}

/* The robot has no connection and says why, again and again; its control loop goes on. */
static void fails(struct tectum_client *client, const char *why)
{
    struct tectum_client_stats stats;
    struct tectum_error err = {.message = ""};
    double action[4];
    do {
        observe(client);
        CHECK_INT(tectum_client_next(client, 0, action, 4, NULL), ==, TECTUM_TIME);
        pause_a_bit();
        tectum_client_stats(client, &stats);
    } while (stats.failures < MANY);
    CHECK_INT(stats.connections, ==, 0);
    CHECK_INT(stats.requests, ==, 0);
    if (!strstr(stats.message, why))
        printf("# '%s' is not in '%s'\n", why, stats.message);
    CHECK(strstr(stats.message, why));
    CHECK_INT(tectum_client_ready(client, 1, &err), ==, TECTUM_TIME);
    CHECK(strstr(err.message, why));
}

/* The server's certificate is not believed, and it never hears a request. */
static void not_believed(const struct identity *own, const char *host, const char *ca_file,
                         const char *why)
{
    struct server s;
    begin_by_tls(&s, own);
    struct tectum_client *client = robot_by_tls(&s, host, ca_file, NULL);
    fails(client, why);
    tectum_client_close(&client);
    CHECK_INT(atomic_load(&s.requests), ==, 0);
    end_by_tls(&s);
}

TEST(an_authority_is_believed_for_a_name_and_for_an_address)
{
    struct box b;
    box_make(&b);
    struct identity root = identity(NULL, -1, 2, NULL);
    struct identity own = identity("DNS:localhost,IP:127.0.0.1", -1, 2, &root);
    put_cert(&b, "root.pem", &root);
    believed(&own, "127.0.0.1", b.path, NULL);
    believed(&own, "localhost", b.path, NULL);
    believed(&own, "localhost", b.path, "127.0.0.1");
    forget(&own);
    forget(&root);
    box_remove(&b);
}

TEST(a_certificate_of_another_host_is_not_believed_unless_it_is_named)
{
    struct box b;
    box_make(&b);
    struct identity root = identity(NULL, -1, 2, NULL);
    struct identity own = identity("DNS:arm.example,IP:10.0.0.1", -1, 2, &root);
    struct identity bare = identity("email:robot@example.org", -1, 2, &root);
    put_cert(&b, "root.pem", &root);
    not_believed(&own, "127.0.0.1", b.path, "another host");
    not_believed(&own, "localhost", b.path, "another host");
    not_believed(&bare, "localhost", b.path, "another host");
    believed(&own, "127.0.0.1", b.path, "arm.example");
    believed(&own, "localhost", b.path, "10.0.0.1");
    forget(&bare);
    forget(&own);
    forget(&root);
    box_remove(&b);
}

TEST(a_certificate_outside_its_time_is_not_believed)
{
    struct box b;
    box_make(&b);
    struct identity root = identity(NULL, -9, 9, NULL);
    struct identity old = identity("IP:127.0.0.1", -3, -1, &root);
    struct identity early = identity("IP:127.0.0.1", 1, 3, &root);
    put_cert(&b, "root.pem", &root);
    not_believed(&old, "127.0.0.1", b.path, "has expired");
    not_believed(&early, "127.0.0.1", b.path, "is not yet valid");
    put_cert(&b, "old.pem", &old); /* not even where it is the one that is believed */
    not_believed(&old, "127.0.0.1", b.path, "has expired");
    forget(&early);
    forget(&old);
    forget(&root);
    box_remove(&b);
}

TEST(who_has_signed_must_be_believed)
{
    struct box b;
    box_make(&b);
    struct identity root = identity(NULL, -1, 2, NULL), other = identity(NULL, -1, 2, NULL);
    struct identity own = identity("IP:127.0.0.1", -1, 2, &root);
    struct identity alone = identity("IP:127.0.0.1", -1, 2, NULL);
    put_cert(&b, "other.pem", &other);
    not_believed(&own, "127.0.0.1", b.path, "not believed");
    not_believed(&alone, "127.0.0.1", b.path, "signed by nobody who is believed");
    not_believed(&own, "127.0.0.1", NULL, "signed by nobody who is believed");
    not_believed(&alone, "127.0.0.1", NULL, "signed by nobody who is believed");
    put_cert(&b, "own.pem", &own); /* pinned: the server's own, and none above it */
    believed(&own, "127.0.0.1", b.path, NULL);
    put_cert(&b, "alone.pem", &alone);
    believed(&alone, "127.0.0.1", b.path, NULL);
    not_believed(&own, "127.0.0.1", b.path, "signed by nobody who is believed");
    forget(&alone);
    forget(&own);
    forget(&other);
    forget(&root);
    box_remove(&b);
}

/* --- servers that are none by TLS ------------------------------------------------------------- */

/* A robot that waits `reply_ms` for a server which ends no handshake. */
static void refused(const struct script *script, int reply_ms, const char *why)
{
    struct server s;
    struct tectum_client *client = NULL;
    struct tectum_error err = {.message = ""};
    char url[64];
    const struct tectum_client_options options = {.rate_hz = 20, .reply_ms = reply_ms};
    begin(&s, script);
    snprintf(url, sizeof url, "https://127.0.0.1:%d/robot", s.port);
    REQUIRE(tectum_client_open(&client, url, &options, &err) == TECTUM_OK);
    fails(client, why);
    tectum_client_close(&client);
    end(&s);
}

static void hang(struct server *s, int fd)
{
    (void)fd;
    await_go(s);
}

/* A record that is announced and comes byte by byte: every one of them is something that came. */
static void drip(struct server *s, int fd)
{
    static const char head[] = "\x16\x03\x03\x40\x00";
    struct pollfd stop[2] = {{.fd = s->end[0], .events = POLLIN}, {.fd = fd, .events = POLLRDHUP}};
    bool on = give(fd, head, sizeof head - 1);
    while (on && poll(stop, 2, 2) == 0)
        on = give(fd, "\x02", 1);
}

TEST(a_server_without_tls_is_told_nothing)
{
    static char plain[] = SWITCHED METADATA, other[4096];
    memset(other, 'x', sizeof other);
    refused(&(struct script){.name = "plain", .first = plain, .n_first = sizeof plain - 1}, 20000,
            "speaks no TLS");
    refused(&(struct script){.name = "no TLS", .first = other, .n_first = sizeof other}, 20000,
            "TLS");
    refused(&(struct script){.name = "an end", .first = "", .hangs_up = true}, 20000,
            "in the TLS handshake");
}

TEST(a_server_that_hangs_in_the_handshake_is_left_in_time)
{
    refused(&(struct script){.name = "silence", .meets = hang}, 200, "no answer within 200 ms");
    refused(&(struct script){.name = "drips", .meets = drip}, 200, "no answer within 200 ms");
    struct server s; /* and a client ends amid it, however long it would wait */
    struct script c = {.name = "silence", .meets = hang};
    struct tectum_client *client = NULL;
    const struct tectum_client_options options = {.rate_hz = 20, .reply_ms = 3600000};
    char url[64];
    begin(&s, &c);
    snprintf(url, sizeof url, "wss://127.0.0.1:%d", s.port);
    REQUIRE(tectum_client_open(&client, url, &options, NULL) == TECTUM_OK);
    while (atomic_load(&s.clients) == 0)
        pause_a_bit();
    tectum_client_close(&client);
    end(&s);
}

TEST(files_and_names_that_do_not_fit_open_nothing)
{
    struct box b;
    char dir[64], empty[400], half[400];
    char longest[300];
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    box_make(&b);
    snprintf(dir, sizeof dir, "%s", b.dir);
    box_put(&b, "empty.pem", "no certificate\n");
    snprintf(empty, sizeof empty, "%s", b.path);
    box_put(&b, "half.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    snprintf(half, sizeof half, "%s", b.path);
    const struct {
        const char *url, *ca_file, *server_name;
        enum tectum_status status;
        const char *word;
    } wrong[] = {{"wss://robot", "/no/such/file", NULL, TECTUM_IO, "ca_file /no/such/file"},
                 {"wss://robot", dir, NULL, TECTUM_IO, "not a regular file"},
                 {"wss://robot", empty, NULL, TECTUM_MALFORMED, "certificate 1"},
                 {"wss://robot", half, NULL, TECTUM_MALFORMED, "certificate 1"},
                 {"wss://robot", NULL, "", TECTUM_INVALID, "server_name"},
                 {"wss://robot", NULL, longest, TECTUM_INVALID, "server_name"},
                 {"ws://robot", empty, NULL, TECTUM_INVALID, "ca_file is for TLS"},
                 {"ws://robot", NULL, "robot", TECTUM_INVALID, "server_name is for TLS"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tectum_client *client = NULL;
        struct tectum_error err = {.message = ""};
        const struct tectum_client_options o = {
            .rate_hz = 20, .ca_file = wrong[i].ca_file, .server_name = wrong[i].server_name};
        CHECK_INT(tectum_client_open(&client, wrong[i].url, &o, &err), ==, wrong[i].status);
        CHECK(!client && strstr(err.message, wrong[i].word));
    }
    box_remove(&b);
}

TAP_MAIN

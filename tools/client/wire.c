/* wire.c - a client's socket: connected, waited for, read from and written to, through TLS where
 * the URL says so. */
#include "tools/client/wire.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- bytes ------------------------------------------------------------------------------------ */

static enum tec_status failed(const struct tec_client_socket *s, const char *what,
                              struct tec_error *err)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return tec_fail(err, TEC_TIME, "%s: no answer within %d s", s->url, TEC_CLIENT_PATIENCE_S);
    return tec_fail(err, TEC_IO, "%s: %s: %s", s->url, what, strerror(errno));
}

static int64_t now_ns(void)
{
    static const struct tec_clock clock = {NULL};
    return tec_clock_now(&clock);
}

void tec_client_wire_begin(struct tec_client_socket *s)
{
    s->until_ns = s->wait_ms > 0 ? now_ns() + s->wait_ms * (int64_t)1000000 : 0;
}

/* Whether something ends its waiting besides the socket's own patience. */
static bool is_bounded(const struct tec_client_socket *s)
{
    return s->asker >= 0 || s->wait_ms > 0;
}

/* Wait for bytes, or for room, as long as the asker is there, if there is one, and there is time.
 */
static enum tec_status wait_for(struct tec_client_socket *s, short events, struct tec_error *err)
{
    struct pollfd both[2] = {{.fd = s->fd, .events = events},
                             {.fd = s->asker, .events = POLLRDHUP}};
    while (is_bounded(s) && !both[0].revents) { /* poll passes over a socket of -1 */
        int64_t left = s->until_ns ? (s->until_ns - now_ns() + 999999) / 1000000 : -1;
        if (s->until_ns && left <= 0)
            return tec_fail(err, TEC_TIME, "%s: no answer within %d ms", s->url, s->wait_ms);
        if (poll(both, 2, (int)left) < 0 && errno != EINTR)
            return failed(s, "it cannot be waited for", err);
        if (both[1].revents) /* also from a server that never stops sending */
            return tec_fail(err, TEC_TIME, "who asked has left");
    }
    return TEC_OK;
}

static enum tec_status send_raw(struct tec_client_socket *s, const void *data, size_t n,
                                struct tec_error *err)
{
    const char *at = data;
    bool wait = s->wait_ms > 0;
    while (n > 0) {
        ssize_t sent = send(s->fd, at, n, MSG_NOSIGNAL | (wait ? MSG_DONTWAIT : 0));
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && wait && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            TEC_TRY(wait_for(s, POLLOUT, err));
            continue;
        }
        if (sent <= 0)
            return failed(s, "it does not listen", err);
        at += sent;
        n -= (size_t)sent;
    }
    return TEC_OK;
}

/* At least one byte of what the server sends, or with MSG_DONTWAIT also none. */
static enum tec_status receive_raw(struct tec_client_socket *s, void *to, size_t room, size_t *n,
                                   int flags, struct tec_error *err)
{
    ssize_t got = -1;
    *n = 0;
    do {
        if (!flags)
            TEC_TRY(wait_for(s, POLLIN, err));
        got = recv(s->fd, to, room, flags);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && flags && (errno == EAGAIN || errno == EWOULDBLOCK))
        return TEC_OK;
    if (got < 0)
        return failed(s, "it does not answer", err);
    *n = (size_t)got;
    return got ? TEC_OK : tec_fail(err, TEC_IO, "%s: the server ended the connection", s->url);
}

/* --- through TLS ------------------------------------------------------------------------------ */

/* Send what TLS has made. */
static enum tec_status flush(struct tec_client_socket *s, struct tec_error *err)
{
    char records[TEC_CLIENT_RECORD];
    size_t n;
    while ((n = tec_client_secure_take(&s->secure, records, sizeof records)) > 0)
        TEC_TRY(send_raw(s, records, n, err));
    return TEC_OK;
}

/* Receive bytes of records and hand them to TLS. */
static enum tec_status feed(struct tec_client_socket *s, int flags, struct tec_error *err)
{
    char records[TEC_CLIENT_RECORD];
    size_t n;
    TEC_TRY(receive_raw(s, records, sizeof records, &n, flags, err));
    return n ? tec_client_secure_feed(&s->secure, records, n, err) : TEC_OK;
}

enum tec_status tec_client_wire_secure(struct tec_client_socket *s, const char *host,
                                       struct tec_error *err)
{
    bool done = false;
    TEC_TRY(tec_client_secure_begin(&s->secure, s->trust, host, err));
    while (!done) {
        enum tec_status status = tec_client_secure_shake(&s->secure, &done, err);
        enum tec_status sent = flush(s, status == TEC_OK ? err : NULL); /* also why it ends here */
        TEC_TRY(tec_context(err, status, "%s", s->url));
        TEC_TRY(sent);
        if (!done)
            TEC_TRY(tec_context(err, feed(s, 0, err), "in the TLS handshake"));
    }
    return TEC_OK;
}

/* Some of what the server has said becomes `held`, as it is, or through TLS. Without waiting a
 * server that sends records of no bytes is looked at once. */
static enum tec_status fill(struct tec_client_socket *s, int flags, struct tec_error *err)
{
    s->at = s->n = 0;
    if (!s->secure.ssl)
        return receive_raw(s, s->held, sizeof s->held, &s->n, flags, err);
    for (bool fed = false;; fed = true) {
        enum tec_status status =
            tec_client_secure_read(&s->secure, s->held, sizeof s->held, &s->n, err);
        TEC_TRY(tec_context(err, status, "%s", s->url));
        TEC_TRY(flush(s, err)); /* TLS has answers of its own */
        if (s->n > 0 || (flags && fed))
            return TEC_OK;
        TEC_TRY(feed(s, flags, err));
    }
}

/* --- bytes of messages ------------------------------------------------------------------------ */

enum tec_status tec_client_wire_send(struct tec_client_socket *s, const void *data, size_t n,
                                     struct tec_error *err)
{
    const char *at = data;
    if (!s->secure.ssl)
        return send_raw(s, data, n, err);
    while (n > 0) {
        size_t some = n < TEC_CLIENT_RECORD ? n : TEC_CLIENT_RECORD;
        enum tec_status status = tec_client_secure_write(&s->secure, at, some, err);
        TEC_TRY(tec_context(err, status, "%s", s->url));
        TEC_TRY(flush(s, err));
        at += some;
        n -= some;
    }
    return TEC_OK;
}

enum tec_status tec_client_wire_take(struct tec_client_socket *s, void *data, size_t n,
                                     struct tec_error *err)
{
    uint8_t *to = data;
    while (n > 0) {
        if (s->at == s->n)
            TEC_TRY(fill(s, 0, err));
        size_t some = s->n - s->at < n ? s->n - s->at : n;
        memcpy(to, s->held + s->at, some);
        s->at += some;
        to += some;
        n -= some;
    }
    return TEC_OK;
}

enum tec_status tec_client_wire_look(struct tec_client_socket *s, struct tec_error *err)
{
    return s->at < s->n ? TEC_OK : fill(s, MSG_DONTWAIT, err);
}

/* --- a connection and its end ----------------------------------------------------------------- */

/* Connect one socket; who waits for a bounded time can be left meanwhile. 0, or why not. */
static int connect_one(struct tec_client_socket *s, const struct addrinfo *a)
{
    int why = 0;
    socklen_t size = sizeof why;
    bool wait = s->wait_ms > 0;
    int flags = fcntl(s->fd, F_GETFL);
    if (wait)
        fcntl(s->fd, F_SETFL, flags | O_NONBLOCK);
    int failed = connect(s->fd, a->ai_addr, a->ai_addrlen);
    if (failed && wait && errno == EINPROGRESS) {
        if (wait_for(s, POLLOUT, NULL) != TEC_OK)
            why = ETIMEDOUT;
        failed = !why && getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &why, &size) != 0;
    }
    why = failed ? errno : why;
    fcntl(s->fd, F_SETFL, flags);
    return why;
}

enum tec_status tec_client_wire_dial(struct tec_client_socket *s, const char *host,
                                     const char *port, struct tec_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int on = 1, bad = getaddrinfo(host, port, &hints, &list), why = ECONNREFUSED;
    if (bad)
        return tec_fail(err, TEC_IO, "%s: %s", s->url, gai_strerror(bad));
    for (const struct addrinfo *a = list; a && s->fd < 0; a = a->ai_next) {
        s->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (s->fd >= 0 && (why = connect_one(s, a)) != 0) {
            close(s->fd);
            s->fd = -1;
        }
    }
    freeaddrinfo(list);
    if (s->fd < 0)
        return tec_fail(err, TEC_IO, "%s: %s", s->url, strerror(why));
    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return TEC_OK;
}

void tec_client_wire_end(struct tec_client_socket *s)
{
    char record[512];
    if (s->secure.ssl && s->fd >= 0) {
        tec_client_secure_leave(&s->secure);
        size_t n = tec_client_secure_take(&s->secure, record, sizeof record);
        ssize_t sent = send(s->fd, record, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent; /* a server that does not take it hears of the end anyway */
    }
    tec_client_secure_end(&s->secure);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

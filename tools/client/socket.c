/* socket.c - a small WebSocket client: handshake, masked frames out, frames in. */
#include "tools/client/socket.h"

#include "base/clock.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATIENCE_S = 60, MOST = 64 << 20, HEAD = 14 };
enum { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10, FINAL = 0x80 };

/* --- bytes ------------------------------------------------------------------------------------ */

static enum tec_status failed(const struct tec_client_socket *s, const char *what,
                              struct tec_error *err)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return tec_fail(err, TEC_TIME, "%s: no answer within %d s", s->url, PATIENCE_S);
    return tec_fail(err, TEC_IO, "%s: %s: %s", s->url, what, strerror(errno));
}

static int64_t now_ns(void)
{
    static const struct tec_clock clock = {NULL};
    return tec_clock_now(&clock);
}

/* From now on the time of this exchange counts. */
static void begin(struct tec_client_socket *s)
{
    s->until_ns = s->wait_ms > 0 ? now_ns() + s->wait_ms * (int64_t)1000000 : 0;
}

/* Wait for bytes, or for room, as long as the asker is there and there is time. */
static enum tec_status wait_for(struct tec_client_socket *s, short events, struct tec_error *err)
{
    struct pollfd both[2] = {{.fd = s->fd, .events = events},
                             {.fd = s->asker, .events = POLLRDHUP}};
    while (s->asker >= 0 && !both[0].revents) {
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

static enum tec_status send_bytes(struct tec_client_socket *s, const void *data, size_t n,
                                  struct tec_error *err)
{
    const char *at = data;
    bool wait = s->asker >= 0 && s->wait_ms > 0;
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

static enum tec_status take(struct tec_client_socket *s, void *data, size_t n,
                            struct tec_error *err)
{
    uint8_t *to = data;
    while (n > 0) {
        if (s->at == s->n) {
            TEC_TRY(wait_for(s, POLLIN, err));
            ssize_t got = recv(s->fd, s->held, sizeof s->held, 0);
            if (got < 0 && errno == EINTR)
                continue;
            if (got < 0)
                return failed(s, "it does not answer", err);
            if (got == 0)
                return tec_fail(err, TEC_IO, "%s: the server ended the connection", s->url);
            s->n = (size_t)got;
            s->at = 0;
        }
        size_t some = s->n - s->at < n ? s->n - s->at : n;
        memcpy(to, s->held + s->at, some);
        s->at += some;
        to += some;
        n -= some;
    }
    return TEC_OK;
}

/* --- the handshake ---------------------------------------------------------------------------- */

/* Keep the URL, and take its host and port. */
static enum tec_status take_url(struct tec_client_socket *s, const char *url, char host[200],
                                char port[8], struct tec_error *err)
{
    const char *at = s->url;
    int64_t n = 8000;
    if (snprintf(s->url, sizeof s->url, "%s", url) >= (int)sizeof s->url)
        return tec_fail(err, TEC_INVALID, "a URL has at most %zu bytes", sizeof s->url - 1);
    if (strncmp(at, "ws://", 5) != 0)
        return tec_fail(err, TEC_INVALID, "%s: a URL like ws://robot:8000%s", s->url,
                        strncmp(at, "wss://", 6) == 0 ? "; this client speaks no TLS" : "");
    at += 5;
    bool wrapped = *at == '[';
    at += wrapped;
    size_t length = strcspn(at, wrapped ? "]" : ":/");
    const char *behind = at + length + (wrapped && at[length] == ']');
    char digits[8] = "";
    if (*behind == ':')
        snprintf(digits, sizeof digits, "%.*s", (int)strcspn(behind + 1, "/"), behind + 1);
    if (length == 0 || length >= 200 || (*behind && *behind != ':' && *behind != '/') ||
        (*behind == ':' && (!tec_number_parse(digits, &n) || n < 1 || n > 65535)))
        return tec_fail(err, TEC_INVALID, "%s: a URL like ws://robot:8000", s->url);
    for (const char *c = behind; *c; c++)
        if (*c <= ' ' || *c > '~')
            return tec_fail(err, TEC_INVALID, "%s: a path of printable ASCII without spaces",
                            s->url);
    memcpy(host, at, length);
    host[length] = '\0';
    snprintf(port, 8, "%d", (int)n);
    return TEC_OK;
}

enum tec_status tec_client_check_url(const char *url, struct tec_error *err)
{
    struct tec_client_socket s = {.fd = -1};
    char host[200], port[8];
    return take_url(&s, url, host, port, err);
}

/* Connect one socket; who waits for a bounded time can be left meanwhile. 0, or why not. */
static int connect_one(struct tec_client_socket *s, const struct addrinfo *a)
{
    int why = 0;
    socklen_t size = sizeof why;
    bool wait = s->asker >= 0 && s->wait_ms > 0;
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

static enum tec_status dial(struct tec_client_socket *s, const char *host, const char *port,
                            struct tec_error *err)
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

/* The head of the server's answer, byte by byte: messages follow it at once. */
static enum tec_status read_head(struct tec_client_socket *s, struct tec_error *err)
{
    char head[2048];
    size_t n = 0;
    do {
        TEC_TRY(take(s, &head[n], 1, err));
        head[++n] = '\0';
    } while (n < sizeof head - 1 && (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0));
    head[strcspn(head, "\r\n")] = '\0';
    return strncmp(head, "HTTP/1.1 101", 12) == 0
               ? TEC_OK
               : tec_fail(err, TEC_IO, "%s: the server says '%.80s'", s->url, head);
}

/* The path of the URL, by which a proxy may know a robot; "/" where it has none. */
static const char *path_of(const char *url)
{
    const char *at = strchr(url + strlen("ws://"), '/');
    return at ? at : "/";
}

/* Connect to the URL, or use `fd` where that is a socket. */
static enum tec_status connect_by(struct tec_client_socket *s, int fd, const char *url,
                                  const char *key, struct tec_error *err)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    char host[200], port[8], request[1024];
    s->fd = fd;
    s->n = s->at = 0;
    begin(s);
    enum tec_status status = take_url(s, url, host, port, err);
    if (status == TEC_OK && fd < 0)
        status = dial(s, host, port, err);
    if (status != TEC_OK) {
        tec_client_close(s);
        return status;
    }
    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int n = snprintf(request, sizeof request,
                     "GET %s HTTP/1.1\r\nHost: %s:%s\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Key: dGVjdHVtIGNsaWVudCBrZQ==\r\n"
                     "Sec-WebSocket-Version: 13\r\n%s%s%s\r\n",
                     path_of(url), host, port, key ? "Authorization: Api-Key " : "", key ? key : "",
                     key ? "\r\n" : "");
    status = n < (int)sizeof request ? send_bytes(s, request, (size_t)n, err)
                                     : tec_fail(err, TEC_INVALID, "the key is too long");
    if (status == TEC_OK)
        status = read_head(s, err);
    if (status != TEC_OK)
        tec_client_close(s);
    return status;
}

enum tec_status tec_client_connect(struct tec_client_socket *s, const char *url, const char *key,
                                   int asker, struct tec_error *err)
{
    *s = (struct tec_client_socket){.fd = -1, .asker = asker, .most = MOST};
    return tec_client_connect_again(s, url, key, err);
}

enum tec_status tec_client_connect_over(struct tec_client_socket *s, int fd, const char *url,
                                        const char *key, int asker, struct tec_error *err)
{
    *s = (struct tec_client_socket){.fd = -1, .asker = asker, .most = MOST};
    return connect_by(s, fd, url, key, err);
}

enum tec_status tec_client_connect_again(struct tec_client_socket *s, const char *url,
                                         const char *key, struct tec_error *err)
{
    return connect_by(s, -1, url, key, err);
}

void tec_client_close(struct tec_client_socket *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

bool tec_client_ended(const struct tec_client_socket *s)
{
    uint8_t first = s->held[s->at < s->n ? s->at : 0];
    ssize_t got = s->at < s->n ? 1 : recv(s->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0)
        return errno != EAGAIN && errno != EWOULDBLOCK;
    return got == 0 || (first & 15) == CLOSE;
}

/* --- frames ----------------------------------------------------------------------------------- */

static enum tec_status send_frame(struct tec_client_socket *s, int opcode, const void *data,
                                  size_t n, struct tec_error *err)
{
    static const uint8_t no_mask[4] = {0}; /* the rules ask for one; this hides nothing */
    uint8_t head[HEAD] = {(uint8_t)(FINAL | opcode)};
    size_t bytes = 2;
    head[1] = 0x80 | (n < 126 ? (uint8_t)n : n < 65536 ? 126 : 127);
    size_t length = n < 126 ? 0 : n < 65536 ? 2 : 8;
    for (size_t i = 0; i < length; i++)
        head[bytes++] = (uint8_t)((uint64_t)n >> (8 * (length - 1 - i)));
    memcpy(head + bytes, no_mask, sizeof no_mask);
    TEC_TRY(send_bytes(s, head, bytes + sizeof no_mask, err));
    return send_bytes(s, data, n, err);
}

enum tec_status tec_client_send(struct tec_client_socket *s, const void *data, size_t n,
                                struct tec_error *err)
{
    begin(s);
    return send_frame(s, BINARY, data, n, err);
}

/* One frame's data behind what `out` has. */
static enum tec_status receive_frame(struct tec_client_socket *s, int *opcode, bool *last,
                                     struct tec_buffer *out, struct tec_error *err)
{
    uint8_t head[2] = {0}, longer[8] = {0};
    TEC_TRY(take(s, head, 2, err));
    uint64_t n = head[1] & 127;
    size_t length = n == 126 ? 2 : n == 127 ? 8 : 0;
    *opcode = head[0] & 15;
    *last = head[0] & FINAL;
    if (length)
        TEC_TRY(take(s, longer, length, err));
    n = length ? 0 : n;
    for (size_t i = 0; i < length; i++)
        n = n << 8 | longer[i];
    if (head[1] & 0x80 || head[0] & 0x70 || n > s->most || out->n + n > s->most)
        return tec_fail(err, TEC_MALFORMED, "%s: what it sends is no frame of a WebSocket server",
                        s->url);
    uint8_t *to = n ? tec_buffer_push(out, (size_t)n) : NULL;
    if (n && !to)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a reply");
    return n ? take(s, to, (size_t)n, err) : TEC_OK;
}

enum tec_status tec_client_receive(struct tec_client_socket *s, struct tec_buffer *out,
                                   bool *refused, struct tec_error *err)
{
    int kind = CONTINUATION, opcode;
    bool last = false;
    out->n = 0;
    while (!last) {
        size_t before = out->n;
        TEC_TRY(receive_frame(s, &opcode, &last, out, err));
        if (opcode == CLOSE)
            return tec_fail(err, TEC_IO, "%s: the server closed the connection", s->url);
        if (opcode == PING)
            TEC_TRY(send_frame(s, PONG, out->data + before, out->n - before, err));
        if (opcode == PING || opcode == PONG) {
            out->n = before;
            last = false;
            continue;
        }
        kind = opcode ? opcode : kind;
    }
    *refused = kind == TEXT;
    return TEC_OK;
}

bool tec_client_pending(const struct tec_client_socket *s)
{
    return s->at < s->n;
}

enum tec_status tec_client_idle(struct tec_client_socket *s, struct tec_buffer *out,
                                struct tec_error *err)
{
    int opcode;
    bool last;
    begin(s);
    out->n = 0;
    TEC_TRY(receive_frame(s, &opcode, &last, out, err));
    if (opcode == CLOSE)
        return tec_fail(err, TEC_IO, "%s: the server closed the connection", s->url);
    return opcode == PING ? send_frame(s, PONG, out->data, out->n, err) : TEC_OK;
}

/* link.c - records come in, bytes go out, and the other way round. */
#include "tools/tls/link.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* What the client's socket is to be waited for, by the result of a call of OpenSSL's. */
static void wait_outer(struct tec_tls_link *l, int result)
{
    switch (SSL_get_error(l->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        l->outer_waits |= POLLIN;
        break;
    case SSL_ERROR_WANT_WRITE:
        l->outer_waits |= POLLOUT;
        break;
    case SSL_ERROR_ZERO_RETURN:
        l->outer_ended = true;
        break;
    default:
        l->broken = true;
        ERR_clear_error();
    }
}

/* From the client; true: bytes have moved. */
static bool pass_up(struct tec_tls_link *l)
{
    bool moved = false;
    if (l->up.n == 0 && !l->outer_ended) {
        int got = SSL_read(l->ssl, l->up.data, sizeof l->up.data);
        moved = got > 0;
        l->up.at = 0;
        l->up.n = moved ? (size_t)got : 0;
        if (!moved)
            wait_outer(l, got);
    }
    while (l->up.n > 0 && !l->broken) {
        ssize_t sent = send(l->inner, l->up.data + l->up.at, l->up.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && would_block()) {
            l->inner_waits |= POLLOUT;
            return moved;
        }
        if (sent < 0) /* the program has closed it: what it has said last is still to be read */
            sent = (ssize_t)l->up.n;
        l->up.at += (size_t)sent;
        l->up.n -= (size_t)sent;
        moved = true; /* there is room for more */
    }
    if (l->outer_ended && !l->told_inner)
        shutdown(l->inner, SHUT_WR);
    l->told_inner = l->outer_ended;
    return moved;
}

/* To the client. */
static bool pass_down(struct tec_tls_link *l)
{
    bool moved = false;
    if (l->down.n == 0 && !l->inner_ended) {
        ssize_t got = recv(l->inner, l->down.data, sizeof l->down.data, MSG_DONTWAIT);
        moved = got > 0;
        l->down.at = 0;
        l->down.n = moved ? (size_t)got : 0;
        if (got < 0 && would_block())
            l->inner_waits |= POLLIN;
        else if (!moved)
            l->inner_ended = true;
    }
    while (l->down.n > 0) {
        int sent = SSL_write(l->ssl, l->down.data + l->down.at, (int)l->down.n);
        if (sent <= 0) {
            wait_outer(l, sent);
            l->broken |= !l->outer_waits;
            return moved;
        }
        l->down.at += (size_t)sent;
        l->down.n -= (size_t)sent;
        moved = true;
    }
    return moved;
}

/* All was said: say that this is the end, and let the client read it. A socket that is closed while
 * there is something to read from it would take back what was sent. True: it has closed, too. */
static bool leave(struct tec_tls_link *l)
{
    if (!l->told_outer) {
        SSL_shutdown(l->ssl);
        ERR_clear_error();
        shutdown(l->outer, SHUT_WR);
        l->told_outer = true;
    }
    for (int i = 0; i < TEC_TLS_ROUNDS; i++) {
        ssize_t got = recv(l->outer, l->up.data, sizeof l->up.data, MSG_DONTWAIT);
        if (got < 0 && would_block())
            break;
        if (got <= 0)
            return true;
    }
    l->outer_waits |= POLLIN;
    return false;
}

/* The program has closed its side: also where what it said is not read yet. From then on a client
 * that takes nothing is waited for no longer than TEC_TLS_LEAVE_MS. */
static void look_at_inner(struct tec_tls_link *l, bool moved, int64_t now_ns)
{
    struct pollfd inner = {.fd = l->inner, .events = POLLRDHUP};
    bool left = l->until_ns || l->inner_ended || (l->down.n && poll(&inner, 1, 0) > 0);
    if (left && (moved || !l->until_ns))
        l->until_ns = now_ns + TEC_TLS_LEAVE_MS * 1000000LL;
    if (!left && l->down.n)
        l->inner_waits |= POLLRDHUP;
}

bool tec_tls_link_turn(struct tec_tls_link *l, int64_t now_ns)
{
    bool sent = false;
    ERR_clear_error(); /* what another link has left would be read as this one's */
    l->again = false;
    l->outer_waits = l->inner_waits = 0;
    for (int i = 0; i < TEC_TLS_ROUNDS && !l->told_outer && (i == 0 || l->again); i++) {
        l->outer_waits = l->inner_waits = 0;
        bool up = !l->inner_ended && pass_up(l), down = !l->broken && pass_down(l);
        if (l->broken)
            return false;
        l->again = up || down;
        sent |= down;
    }
    look_at_inner(l, sent, now_ns);
    if (l->inner_ended && l->down.n == 0 && leave(l))
        return false;
    return !l->until_ns || now_ns < l->until_ns;
}

void tec_tls_link_close(struct tec_tls_link *l)
{
    SSL_free(l->ssl); /* the socket stays: it was given by SSL_set_fd */
    close(l->outer);
    close(l->inner);
}

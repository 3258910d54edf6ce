/* take.c - the thread that takes connections and makes their handshakes. */
#include "tools/serve/guard.h"
#include "tools/tls/front_own.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { AT_ONCE = 8 /* connections taken in a turn */, NICE = 10, TELL_S = 1 };

static void forget(struct tec_tls_front *f, int i)
{
    f->n_handshakes--;
    memmove(&f->handshakes[i], &f->handshakes[i + 1],
            (size_t)(f->n_handshakes - i) * sizeof f->handshakes[0]);
}

static void give_up(struct tec_tls_front *f, int i)
{
    SSL_free(f->handshakes[i].ssl);
    close(f->handshakes[i].fd);
    forget(f, i);
}

/* A client that speaks no TLS is told so in its own words: most are a URL without the s. */
static void answer_plain(int fd)
{
    static const char text[] =
        "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\n"
        "content-length: 52\r\n\r\nThis port speaks TLS: ask with wss:// or https://.\r\n";
    char rest[4096];
    ssize_t sent = send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    ssize_t got = recv(fd, rest, sizeof rest, MSG_DONTWAIT); /* unread, it would undo the answer */
    (void)sent;
    (void)got;
}

/* Say why a handshake failed, once a second at most: who sets up certificates needs it. */
static void tell(struct tec_tls_front *f, int fd, unsigned long code)
{
    char text[200];
    const char *why = ERR_reason_error_string(code);
    if (ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST)
        answer_plain(fd);
    if (f->told_ns && tec_tls_now() - f->told_ns < TELL_S * 1000000000LL)
        return;
    f->told_ns = tec_tls_now();
    snprintf(text, sizeof text, "tectum %.60s: a TLS handshake failed: %s\n", f->verb,
             why ? why : "no reason given");
    tec_guard_say(text);
}

/* Hand a connection to both its sides. */
static bool pass_on(struct tec_tls_front *f, const struct tec_tls_handshake *h)
{
    int ends[2];
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof peer;
    getpeername(h->fd, (struct sockaddr *)&peer, &n);
    struct tec_tls_link *link = tec_heap_get(f->heap, sizeof *link);
    if (!link)
        return false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        tec_heap_put(f->heap, link);
        return false;
    }
    link->ssl = h->ssl;
    link->outer = h->fd;
    link->inner = ends[0];
    link->again = true;
    const struct tec_tls_passed passed = {link};
    if (write(f->passed[1], &passed, sizeof passed) != (ssize_t)sizeof passed) {
        close(ends[0]);
        close(ends[1]);
        tec_heap_put(f->heap, link);
        return false;
    }
    f->ports[h->port].hand(f->ports[h->port].user, ends[1], &peer, n);
    return true;
}

/* One step of a handshake; behind the last one it is no longer listed. */
static void advance(struct tec_tls_front *f, int i)
{
    struct tec_tls_handshake *h = &f->handshakes[i];
    ERR_clear_error();
    int result = SSL_accept(h->ssl);
    int what = SSL_get_error(h->ssl, result);
    h->waits = what == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE)
        return;
    if (result == 1 && pass_on(f, h)) {
        forget(f, i);
        return;
    }
    if (what == SSL_ERROR_SSL)
        tell(f, h->fd, ERR_peek_last_error());
    ERR_clear_error();
    give_up(f, i);
}

static void take_some(struct tec_tls_front *f, int port)
{
    for (int n = 0; n < AT_ONCE; n++) {
        int fd = tec_listen_accept(&f->ports[port].listener);
        if (fd < 0)
            return;
        if (f->n_handshakes == TEC_TLS_HANDSHAKES)
            give_up(f, 0);
        SSL *ssl = SSL_new(f->context);
        if (!ssl || SSL_set_fd(ssl, fd) != 1) {
            SSL_free(ssl);
            close(fd);
            continue;
        }
        f->handshakes[f->n_handshakes++] = (struct tec_tls_handshake){
            .ssl = ssl, .fd = fd, .port = port, .began_ns = tec_tls_now(), .waits = POLLIN};
    }
}

/* Wait until something comes, or the oldest handshake has taken too long. */
static void wait_for_any(struct tec_tls_front *f, struct pollfd *polled)
{
    int n = 0, ms = -1;
    polled[n++] = (struct pollfd){.fd = f->wake[TEC_TLS_TAKER], .events = POLLIN};
    for (int i = 0; i < f->n_ports; i++)
        polled[n++] = (struct pollfd){.fd = f->ports[i].listener.fd, .events = POLLIN};
    for (int i = 0; i < f->n_handshakes; i++)
        polled[n++] = (struct pollfd){.fd = f->handshakes[i].fd, .events = f->handshakes[i].waits};
    if (f->n_handshakes) {
        int64_t left =
            f->handshakes[0].began_ns + TEC_TLS_HANDSHAKE_S * 1000000000LL - tec_tls_now();
        ms = left > 0 ? (int)(left / 1000000) + 1 : 0;
    }
    poll(polled, (nfds_t)n, ms);
}

void *tec_tls_take(void *user)
{
    struct tec_tls_front *f = user;
    struct pollfd polled[1 + TEC_TLS_PORTS + TEC_TLS_HANDSHAKES];
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    for (;;) {
        wait_for_any(f, polled);
        if (polled[0].revents)
            break;
        const struct pollfd *of = &polled[1 + f->n_ports];
        for (int i = f->n_handshakes - 1; i >= 0; i--) /* the last first: places move down */
            if (of[i].revents)
                advance(f, i);
        int64_t before = tec_tls_now() - TEC_TLS_HANDSHAKE_S * 1000000000LL;
        while (f->n_handshakes && f->handshakes[0].began_ns <= before)
            give_up(f, 0);
        for (int i = 0; i < f->n_ports; i++)
            if (polled[1 + i].revents)
                take_some(f, i);
    }
    while (f->n_handshakes)
        give_up(f, 0);
    return NULL;
}

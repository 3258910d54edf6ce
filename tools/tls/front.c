/* front.c - TLS before the server: its ports, its threads, its end. */
#include "tools/tls/front.h"

#include "tools/tls/front_own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SPARE = 32 /* links whose server has ended them, beside those that it has */ };

enum tec_status tec_tls_front_open(struct tec_tls_front *f, const struct tec_tls_asked *asked,
                                   const char *verb, struct tec_heap *heap, struct tec_error *err)
{
    *f = (struct tec_tls_front){.heap = heap,
                                .verb = verb,
                                .door = -1,
                                .wake = {-1, -1},
                                .passed = {-1, -1},
                                .n_links = SPARE};
    return tec_tls_context_open(&f->context, asked, err);
}

int tec_tls_descriptors(const struct tec_tls_front *f, int n)
{
    enum { OTHERS = 16 };
    return f->context ? 2 * (n + SPARE) + TEC_TLS_HANDSHAKES + OTHERS : 0;
}

/* To the server: what it cannot take is closed. */
static void hand_to_server(void *user, int fd, const struct sockaddr_storage *peer, socklen_t n)
{
    const struct tec_tls_front *f = user;
    (void)peer;
    (void)n;
    if (!tec_listen_hand(f->door, fd))
        close(fd);
}

enum tec_status tec_tls_front_door(struct tec_tls_front *f, const struct tec_listener *listener,
                                   int n, struct tec_listener *out, struct tec_error *err)
{
    *out = *listener;
    if (!f->context)
        return TEC_OK;
    const struct tec_tls_port port = {.listener = *listener, .hand = hand_to_server, .user = f};
    tec_tls_front_add(f, &port, n);
    return tec_listen_door(out, &f->door, err);
}

void tec_tls_front_add(struct tec_tls_front *f, const struct tec_tls_port *port, int n)
{
    f->ports[f->n_ports++] = *port;
    f->n_links += n;
}

int tec_tls_front_dial(struct tec_tls_front *f)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    if (tec_listen_hand(f->door, ends[1]))
        return ends[0];
    close(ends[0]);
    close(ends[1]);
    return -1;
}

enum tec_status tec_tls_front_start(struct tec_tls_front *f, struct tec_error *err)
{
    if (!f->context)
        return TEC_OK;
    f->links = tec_heap_get(f->heap, (size_t)f->n_links * sizeof(struct tec_tls_link *));
    f->polled = tec_heap_get(f->heap, ((size_t)f->n_links * 2 + 2) * sizeof(struct pollfd));
    if (!f->links || !f->polled)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d connections over TLS", f->n_links);
    for (int i = 0; i < 2; i++)
        f->wake[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pipe2(f->passed, O_CLOEXEC | O_NONBLOCK) != 0 || f->wake[0] < 0 || f->wake[1] < 0)
        return tec_fail(err, TEC_IO, "TLS: %s", strerror(errno));
    f->relaying = tec_thread_start(&f->relay, tec_tls_pass, f);
    f->taking = f->relaying && tec_thread_start(&f->taker, tec_tls_take, f);
    return f->taking ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the threads of TLS");
}

enum tec_status tec_tls_front_schedule(struct tec_tls_front *f, const struct tec_scheduling *how,
                                       struct tec_error *err)
{
    return f->relaying ? tec_thread_schedule(f->relay, how, -1, err) : TEC_OK;
}

/* Wake a thread for its end, and wait for that. */
static void end_thread(bool *runs, pthread_t thread, int wake)
{
    const uint64_t one = 1;
    if (!*runs)
        return;
    ssize_t written = write(wake, &one, sizeof one);
    (void)written; /* an eventfd always has room for this write */
    pthread_join(thread, NULL);
    *runs = false;
}

void tec_tls_front_leave(struct tec_tls_front *f)
{
    end_thread(&f->taking, f->taker, f->wake[TEC_TLS_TAKER]);
    while (f->n_ports)
        tec_listen_close(&f->ports[--f->n_ports].listener);
}

void tec_tls_front_stop(struct tec_tls_front *f)
{
    struct tec_tls_passed passed;
    if (!f->context)
        return;
    tec_tls_front_leave(f);
    end_thread(&f->relaying, f->relay, f->wake[TEC_TLS_RELAY]);
    while (read(f->passed[0], &passed, sizeof passed) == (ssize_t)sizeof passed)
        tec_tls_drop(f, passed.link);
    const int all[] = {f->door, f->wake[0], f->wake[1], f->passed[0], f->passed[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] >= 0)
            close(all[i]);
    tec_heap_put(f->heap, f->links);
    tec_heap_put(f->heap, f->polled);
    tec_tls_context_close(f->context);
    f->context = NULL;
}

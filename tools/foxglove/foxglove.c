/* foxglove.c - the thread of Foxglove's clients: connections in, messages out, each client at its
 * own pace. */
#include "tools/foxglove/foxglove_own.h"

#include "base/json_text.h"
#include "base/thread.h"
#include "tools/record/recording_own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 20000000, MS_NS = 1000000, IDLE_MS = 1000, SOCKET_BYTES = 64 << 10 };

/* --- the thread ------------------------------------------------------------------------------- */

static void leave(struct tec_foxglove *f, struct tec_foxglove_client *c)
{
    tec_foxglove_client_close(c, f->heap);
    atomic_fetch_sub(&f->n_clients, 1);
}

static void take_new(struct tec_foxglove *f, int64_t now_ns)
{
    int fd, at = 0;
    if (read(f->door[0], &fd, sizeof fd) != (ssize_t)sizeof fd)
        return;
    while (at < TEC_FOXGLOVE_CLIENTS - 1 && f->clients[at].fd >= 0)
        at++;
    if (tec_foxglove_client_open(&f->clients[at], fd, now_ns, f->engine, f->info, f->heap))
        return;
    close(fd);
    atomic_fetch_sub(&f->n_clients, 1);
}

/* What clients have sent. */
static void receive(struct tec_foxglove *f, const struct pollfd fds[TEC_FOXGLOVE_CLIENTS],
                    int64_t now_ns)
{
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++) {
        struct tec_foxglove_client *c = &f->clients[i];
        bool reads = fds[i].revents & (POLLIN | POLLHUP | POLLERR);
        if (c->fd >= 0 && reads && !tec_foxglove_client_receive(c, f->engine, now_ns))
            leave(f, c);
    }
}

static void send_all(struct tec_foxglove *f, int64_t now_ns)
{
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++)
        if (f->clients[i].fd >= 0 && !tec_foxglove_client_send(&f->clients[i], now_ns))
            leave(f, &f->clients[i]);
}

/* A subscription counts from here on: before the client gets the answer to what it has sent behind
 * it. */
static void look(struct tec_foxglove *f)
{
    bool looked_at = false, chunks = false, texts = false;
    for (int i = 0; i < TEC_FOXGLOVE_CHANNELS; i++) {
        bool wanted = tec_foxglove_wants(f, i);
        looked_at |= wanted;
        chunks |= wanted && i >= TEC_FOXGLOVE_ACTIONS && i < TEC_FOXGLOVE_TEXTS;
        texts |= wanted && (i >= TEC_FOXGLOVE_TEXTS || i == TEC_FOXGLOVE_LOG);
    }
    if (looked_at && !f->looked_at)
        tec_foxglove_forget(f);
    f->looked_at = looked_at;
    tec_foxglove_values_want(&f->values, chunks, texts);
}

static void tell(struct tec_foxglove *f, int64_t now_ns)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    f->wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - tec_clock_now(&f->clock);
    tec_foxglove_tell(f, now_ns);
}

static void *run(void *user)
{
    struct tec_foxglove *f = user;
    int64_t told_ns = 0;
    for (;;) {
        struct pollfd fds[2 + TEC_FOXGLOVE_CLIENTS] = {{.fd = f->stop, .events = POLLIN},
                                                       {.fd = f->door[0], .events = POLLIN}};
        for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++) {
            const struct tec_foxglove_client *c = &f->clients[i];
            short out = c->out_n > c->out_at ? POLLOUT : 0, in = c->ends ? 0 : POLLIN;
            fds[2 + i] = (struct pollfd){.fd = c->fd, .events = (short)(in | out)};
        }
        int64_t left = told_ns + TICK_NS - tec_clock_now(&f->clock);
        int wait = left > 0 ? (int)(left / MS_NS) + 1 : 0;
        if (!f->looked_at) /* a client that takes nothing is closed after a while */
            wait = atomic_load(&f->n_clients) > 0 ? IDLE_MS : -1;
        if (poll(fds, 2 + TEC_FOXGLOVE_CLIENTS, wait) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents)
            return NULL;
        int64_t now_ns = tec_clock_now(&f->clock);
        receive(f, fds + 2, now_ns);
        if (fds[1].revents)
            take_new(f, now_ns);
        look(f);
        if (f->looked_at && now_ns - told_ns >= TICK_NS) {
            tell(f, now_ns);
            told_ns = now_ns;
        }
        send_all(f, now_ns);
    }
}

/* --- the frame thread, and who takes connections ---------------------------------------------- */

void tec_foxglove_left(struct tec_foxglove *f, const struct tec_recorded_chunk *left)
{
    if (f)
        tec_foxglove_values_left(&f->values, left);
}

void tec_foxglove_frame(struct tec_foxglove *f, const struct tec_frame_record *record)
{
    if (f && record->place == 0)
        tec_foxglove_values_told(&f->values);
}

bool tec_foxglove_full(const struct tec_foxglove *f)
{
    return atomic_load(&f->n_clients) >= TEC_FOXGLOVE_CLIENTS;
}

bool tec_foxglove_take(struct tec_foxglove *f, int fd)
{
    const int bytes = SOCKET_BYTES;
    if (atomic_fetch_add(&f->n_clients, 1) >= TEC_FOXGLOVE_CLIENTS ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) != 0 ||
        write(f->door[1], &fd, sizeof fd) != (ssize_t)sizeof fd) {
        atomic_fetch_sub(&f->n_clients, 1);
        return false;
    }
    return true;
}

/* --- life ------------------------------------------------------------------------------------- */

static enum tec_status start(struct tec_foxglove *f, struct tec_error *err)
{
    TEC_TRY(tec_foxglove_values_init(&f->values, f->engine, &f->arena, err));
    f->about = tec_recording_about(f->o.opened, f->o.mode, 0);
    f->info = json_pack("{s:s, s:o, s:[], s:{s:s}}", "op", "serverInfo", "name",
                        tec_json_shown(f->o.opened->pipeline->name), "capabilities", "metadata",
                        "program", "tectum");
    f->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!f->about || !f->info || f->stop < 0 || pipe2(f->door, O_CLOEXEC | O_NONBLOCK) != 0)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for clients of the page");
    f->started = tec_thread_start(&f->thread, run, f);
    return f->started
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for the thread of a page's clients");
}

enum tec_status tec_foxglove_open(struct tec_foxglove **out,
                                  const struct tec_foxglove_options *options, struct tec_error *err)
{
    struct tec_heap *heap = options->opened->call->heap;
    struct tec_foxglove *f = tec_heap_get(heap, sizeof *f);
    *out = NULL;
    if (!f)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for clients of the page");
    *f = (struct tec_foxglove){.o = *options,
                               .engine = options->opened->engine,
                               .heap = heap,
                               .stop = -1,
                               .door = {-1, -1}};
    tec_arena_init(&f->arena, heap);
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++)
        f->clients[i].fd = -1;
    enum tec_status status = start(f, err);
    if (status == TEC_OK)
        *out = f;
    else
        tec_foxglove_close(f);
    return status;
}

void tec_foxglove_close(struct tec_foxglove *f)
{
    const uint64_t one = 1;
    if (!f)
        return;
    if (f->started) {
        ssize_t written = write(f->stop, &one, sizeof one);
        (void)written; /* an eventfd always has room for this write */
        pthread_join(f->thread, NULL);
    }
    int64_t now_ns = tec_clock_now(&f->clock);
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++) {
        if (f->clients[i].fd < 0)
            continue;
        tec_foxglove_client_end(&f->clients[i], TEC_WEBSOCKET_AWAY);
        tec_foxglove_client_send(&f->clients[i], now_ns);
        tec_foxglove_client_close(&f->clients[i], f->heap);
    }
    for (int fd; f->door[0] >= 0 && read(f->door[0], &fd, sizeof fd) == (ssize_t)sizeof fd;)
        close(fd);
    for (int i = 0; i < 2; i++)
        if (f->door[i] >= 0)
            close(f->door[i]);
    if (f->stop >= 0)
        close(f->stop);
    json_decref(f->about);
    json_decref(f->info);
    tec_foxglove_values_finish(&f->values);
    tec_arena_finish(&f->arena);
    tec_heap_put(f->heap, f);
}

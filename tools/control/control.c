/* control.c - the control thread beside a running robot: it serves the control socket, obeys
 * SIGUSR1 and SIGUSR2, and replaces policies through a canary. */
#include "tools/control/control.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDLE_MS = 50, BUSY_MS = 2, SILENCE_S = 30, AT_ONCE = 8 };
enum { AT_STOP, AT_SIGNALS, AT_SOCKET, AT_PEERS, N_FDS = AT_PEERS + TEC_CONTROL_PEERS };

/* --- the thread --------------------------------------------------------------------------- */

static void refuse(int fd)
{
    struct tec_error full;
    tec_fail(&full, TEC_INVALID, "%d connections are open already: come again later",
             TEC_CONTROL_PEERS);
    char *line = tec_control_failure(&full);
    size_t n = line ? strlen(line) : 0;
    if (line)
        line[n] = '\n';
    ssize_t sent = line ? send(fd, line, n + 1, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    (void)sent; /* the client will be refused again when it asks again */
    free(line);
    close(fd);
}

/* Accept one connection; false if nobody is waiting. */
static bool accept_one(struct tec_control *c)
{
    int fd = accept4(c->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    for (int i = 0; i < TEC_CONTROL_PEERS; i++)
        if (c->peers[i].fd < 0) {
            tec_peer_open(&c->peers[i], fd, tec_clock_now(&c->clock));
            return true;
        }
    refuse(fd);
    return true;
}

static void serve_peer(struct tec_control *c, int at)
{
    struct tec_peer *p = &c->peers[at];
    int64_t now = tec_clock_now(&c->clock);
    size_t n;
    const char *line = NULL;
    tec_peer_move(p, now);
    for (int i = 0; i < AT_ONCE && (line = tec_peer_line(p, &n)); i++) {
        tec_control_obey(c, at, line, n);
        tec_peer_move(p, now);
    }
    if (!line && tec_peer_flooded(p)) {
        struct tec_error err;
        tec_fail(&err, TEC_INVALID, "a request has at most %d bytes", TEC_PEER_LINE);
        p->leaving = true;
        tec_peer_answer(p, tec_control_failure(&err));
        tec_peer_move(p, now);
    }
    if (p->fd >= 0 && !p->answering && now - p->since_ns > SILENCE_S * INT64_C(1000000000))
        tec_peer_close(p);
}

static void wait(struct tec_control *c, struct pollfd *fds)
{
    fds[AT_STOP] = (struct pollfd){.fd = c->stopping, .events = POLLIN};
    fds[AT_SIGNALS] = (struct pollfd){.fd = c->signals, .events = POLLIN};
    fds[AT_SOCKET] = (struct pollfd){.fd = c->socket.fd, .events = POLLIN};
    for (int i = 0; i < TEC_CONTROL_PEERS; i++) {
        const struct tec_peer *p = &c->peers[i];
        bool reads = !p->ended && p->n < TEC_PEER_LINE;
        short events = (short)((reads ? POLLIN : 0) | (p->out ? POLLOUT : 0));
        fds[AT_PEERS + i] = (struct pollfd){.fd = events ? p->fd : -1, .events = events};
    }
    bool busy = tec_canary_waits(c->canary) || c->dump.peer >= 0;
    poll(fds, N_FDS, busy ? BUSY_MS : IDLE_MS);
}

static void hear_signals(struct tec_control *c)
{
    struct signalfd_siginfo info;
    while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info)
        atomic_fetch_add(info.ssi_signo == SIGUSR1 ? &c->all->dumps : &c->all->fallbacks, 1);
}

/* True where one has come that was not obeyed yet. */
static bool is_new(_Atomic uint32_t *come, _Atomic uint32_t *obeyed)
{
    uint32_t n = atomic_load(come);
    return atomic_exchange(obeyed, n) != n;
}

static void obey_signals(struct tec_control *c)
{
    if (is_new(&c->all->dumps, &c->obeyed.dumps))
        tec_control_dump_flight(c);
    if (is_new(&c->all->fallbacks, &c->obeyed.fallbacks))
        tec_canary_fallback_now(c->canary);
}

static void *run(void *control)
{
    struct tec_control *c = control;
    struct pollfd fds[N_FDS];
    for (;;) {
        wait(c, fds);
        if (fds[AT_SIGNALS].revents)
            hear_signals(c);
        obey_signals(c);
        tec_control_watch(c);
        tec_control_look_for_misses(c);
        if (fds[AT_STOP].revents)
            return NULL;
        for (int i = 0; i < AT_ONCE && fds[AT_SOCKET].revents && accept_one(c); i++)
            ;
        for (int i = 0; i < TEC_CONTROL_PEERS; i++)
            serve_peer(c, i);
        tec_control_dump(c);
    }
}

/* --- life --------------------------------------------------------------------------------- */

static enum tec_status check_folder(const char *path, struct tec_error *err)
{
    struct stat there;
    if (stat(path, &there) != 0)
        return tec_fail(err, TEC_INVALID, "--dump-dir %s: %s", path, strerror(errno));
    return S_ISDIR(there.st_mode)
               ? TEC_OK
               : tec_fail(err, TEC_INVALID, "--dump-dir %s: this is no folder", path);
}

enum tec_status tec_control_open(struct tec_control *c, struct tec_invocation *call,
                                 const struct tec_control_options *options, struct tec_error *err)
{
    sigset_t ours;
    *c = (struct tec_control){.call = call,
                              .options = *options,
                              .socket = {.fd = -1},
                              .signals = -1,
                              .stopping = -1,
                              .opened = true,
                              .dump = {.peer = -1},
                              .struck = -1};
    for (int i = 0; i < TEC_CONTROL_PEERS; i++) {
        c->peers[i].fd = -1;
        c->peers[i].in = options->path ? TEC_NEW(call->arena, TEC_PEER_LINE, char) : NULL;
        if (options->path && !c->peers[i].in)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a control socket");
    }
    if (options->dump_dir)
        TEC_TRY(check_folder(options->dump_dir, err));
    sigemptyset(&ours);
    sigaddset(&ours, SIGUSR1);
    sigaddset(&ours, SIGUSR2);
    c->all = options->signals ? options->signals : &c->come;
    bool hears = !options->signals || options->hears;
    if (pthread_sigmask(SIG_BLOCK, &ours, NULL) != 0 ||
        (hears && (c->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK)) < 0) ||
        (c->stopping = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return tec_fail(err, TEC_IO, "signals cannot be read");
    return options->path ? tec_control_bind(&c->socket, options->path, err) : TEC_OK;
}

enum tec_status tec_control_run(struct tec_control *c, struct tec_canary *canary,
                                const char *fallback, struct tec_error *err)
{
    c->canary = canary;
    c->fallback = fallback;
    c->started = pthread_create(&c->thread, NULL, run, c) == 0;
    return c->started ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the control thread");
}

enum tec_status tec_control_start(struct tec_control *c, struct tec_opened *opened,
                                  struct tec_error *err)
{
    TEC_TRY(tec_use_canary(opened, tec_control_closing, c, err));
    c->engine = opened->engine;
    c->program = opened;
    return tec_control_run(c, opened->canary,
                           opened->fallback ? tec_policy_name(opened->fallback) : "default", err);
}

void tec_control_close(struct tec_control *c)
{
    if (!c->opened)
        return;
    if (c->started) {
        const uint64_t one = 1;
        ssize_t written = write(c->stopping, &one, sizeof one);
        (void)written; /* an eventfd always has room for this write */
        pthread_join(c->thread, NULL);
        c->started = false;
        c->ended = true;
        tec_control_watch(c);
        tec_control_look_for_misses(c);
    }
    c->opened = false;
    for (int i = 0; i < TEC_CONTROL_PEERS; i++)
        tec_peer_close(&c->peers[i]);
    tec_control_unbind(&c->socket);
    if (c->signals >= 0)
        close(c->signals);
    if (c->stopping >= 0)
        close(c->stopping);
}

/* peer.c - one connection of the control socket: bounded lines in, bounded lines out, and no call
 * that waits. */
#include "tools/control/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void tec_peer_open(struct tec_peer *p, int fd, int64_t now_ns)
{
    *p = (struct tec_peer){.fd = fd, .in = p->in, .since_ns = now_ns, .number = p->number + 1};
}

void tec_peer_close(struct tec_peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    free(p->out);
    *p = (struct tec_peer){.fd = -1, .in = p->in, .number = p->number};
}

static bool later(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static bool take(struct tec_peer *p, int64_t now_ns)
{
    if (p->ended || p->n == TEC_PEER_LINE)
        return true;
    ssize_t got = recv(p->fd, p->in + p->n, TEC_PEER_LINE - p->n, MSG_DONTWAIT);
    if (got > 0) {
        p->n += (size_t)got;
        p->since_ns = now_ns;
    }
    p->ended = got == 0;
    return got >= 0 || later();
}

static bool give(struct tec_peer *p, int64_t now_ns)
{
    if (!p->out)
        return true;
    ssize_t gone = send(p->fd, p->out + p->sent, p->out_n - p->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (gone < 0)
        return later();
    p->sent += (size_t)gone;
    p->since_ns = now_ns;
    if (p->sent == p->out_n) {
        free(p->out);
        p->out = NULL;
    }
    return true;
}

static bool has_line(const struct tec_peer *p)
{
    return memchr(p->in + p->used, '\n', p->n - p->used) != NULL;
}

void tec_peer_move(struct tec_peer *p, int64_t now_ns)
{
    if (p->fd < 0)
        return;
    bool fine = take(p, now_ns) && give(p, now_ns);
    bool idle = !p->out && !p->answering;
    if (!fine || (idle && (p->leaving || (p->ended && !has_line(p)))))
        tec_peer_close(p);
}

const char *tec_peer_line(struct tec_peer *p, size_t *n)
{
    if (p->fd < 0 || p->out || p->answering || p->leaving)
        return NULL;
    memmove(p->in, p->in + p->used, p->n - p->used);
    p->n -= p->used;
    p->used = 0;
    const char *end = memchr(p->in, '\n', p->n);
    if (!end)
        return NULL;
    *n = (size_t)(end - p->in);
    p->used = *n + 1;
    p->answering = true;
    return p->in;
}

bool tec_peer_flooded(const struct tec_peer *p)
{
    return p->fd >= 0 && !p->out && !p->answering && p->n == TEC_PEER_LINE && !has_line(p);
}

void tec_peer_answer(struct tec_peer *p, char *line)
{
    p->answering = false;
    if (!line) {
        tec_peer_close(p);
        return;
    }
    p->out = line;
    p->out_n = strlen(line) + 1;
    line[p->out_n - 1] = '\n';
    p->sent = 0;
}

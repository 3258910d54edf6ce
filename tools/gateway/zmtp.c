/* zmtp.c - greeting, frames in, frames out. */
#include "tools/gateway/zmtp.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

static const struct tec_clock real = {NULL};

enum { GREETING = 64, COMMAND_BYTES = 512, STEP = 1 << 16 };
enum { MORE = 1, LONG = 2, COMMAND = 4 }; /* of a frame's first byte */

/* --- bytes ------------------------------------------------------------------------------------ */

/* Wait until the socket can be read or written; false: the time is over. */
static bool wait_for(const struct tec_zmtp *z, short events)
{
    struct pollfd one = {.fd = z->fd, .events = events};
    for (;;) {
        int64_t left_ms = z->until_ns ? (z->until_ns - tec_clock_now(&real)) / 1000000 : -1;
        if (z->until_ns && left_ms <= 0)
            return false;
        int n = poll(&one, 1, left_ms > 1 << 20 ? 1 << 20 : (int)left_ms);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
}

/* Whether a call that failed can be made again once the socket is ready. */
static bool again(const struct tec_zmtp *z, short events)
{
    return errno == EINTR || ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_for(z, events));
}

/* Bytes that are there, at most n; what is long goes past the small buffer. 0: none will come. */
static size_t take_some(struct tec_zmtp *z, uint8_t *to, size_t n)
{
    bool direct = n >= sizeof z->held;
    while (z->at == z->n) {
        ssize_t got = recv(z->fd, direct ? to : z->held, direct ? n : sizeof z->held, 0);
        if (got == 0 || (got < 0 && !again(z, POLLIN)))
            return 0;
        if (got > 0 && direct)
            return (size_t)got;
        z->at = 0;
        z->n = got > 0 ? (size_t)got : 0;
    }
    size_t some = z->n - z->at < n ? z->n - z->at : n;
    memcpy(to, z->held + z->at, some);
    z->at += some;
    return some;
}

static bool take(struct tec_zmtp *z, void *to, size_t n)
{
    uint8_t *out = to;
    while (n > 0) {
        size_t some = take_some(z, out, n);
        if (some == 0)
            return false;
        out += some;
        n -= some;
    }
    return true;
}

static bool put(const struct tec_zmtp *z, const void *from, size_t n, int flags)
{
    const uint8_t *at = from;
    while (n > 0) {
        ssize_t sent = send(z->fd, at, n, MSG_NOSIGNAL | flags);
        if (sent == 0 || (sent < 0 && !again(z, POLLOUT)))
            return false;
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* --- frames ----------------------------------------------------------------------------------- */

static bool take_head(struct tec_zmtp *z, struct tec_zmtp_head *h, int64_t patience_ns)
{
    uint8_t length[8];
    if (!take(z, &h->flags, 1))
        return false;
    z->until_ns = z->until_ns ? z->until_ns : tec_clock_now(&real) + patience_ns;
    int bytes = h->flags & LONG ? 8 : 1;
    if (h->flags & ~(MORE | LONG | COMMAND) || !take(z, length, (size_t)bytes))
        return false;
    h->n = 0;
    for (int i = 0; i < bytes; i++)
        h->n = h->n << 8 | length[i];
    return true;
}

/* A command between messages: PING, two bytes of time and a context is answered by PONG with that
 * context; others are let pass. */
static bool take_command(struct tec_zmtp *z, const struct tec_zmtp_head *h)
{
    static const char ping[] = "\x04PING", pong[] = "\x04PONG";
    enum { WORD = sizeof ping - 1, TIME = 2 };
    uint8_t bytes[COMMAND_BYTES], out[2 + COMMAND_BYTES] = {COMMAND};
    if (h->flags & MORE || h->n > sizeof bytes || !take(z, bytes, (size_t)h->n))
        return false;
    if (h->n < WORD + TIME || h->n > UINT8_MAX || memcmp(bytes, ping, WORD) != 0)
        return true;
    size_t context = (size_t)h->n - WORD - TIME;
    out[1] = (uint8_t)(WORD + context);
    memcpy(out + 2, pong, WORD);
    memcpy(out + 2 + WORD, bytes + WORD + TIME, context);
    return put(z, out, 2 + WORD + context, 0);
}

static bool take_body(struct tec_zmtp *z, struct tec_buffer *out, uint64_t n)
{
    uint8_t forgotten[512];
    while (n > 0) {
        size_t room = out ? STEP : sizeof forgotten, some = n < room ? (size_t)n : room;
        uint8_t *to = out ? tec_buffer_push(out, some) : forgotten;
        if (!to || !take(z, to, some))
            return false;
        n -= some;
    }
    return true;
}

bool tec_zmtp_wait(struct tec_zmtp *z, int64_t patience_ns)
{
    do {
        z->until_ns = 0;
        if (!take_head(z, &z->head, patience_ns) ||
            (z->head.flags & COMMAND && !take_command(z, &z->head)))
            return false;
    } while (z->head.flags & COMMAND);
    return true;
}

bool tec_zmtp_receive(struct tec_zmtp *z, struct tec_buffer *out, size_t most, int64_t patience_ns)
{
    struct tec_zmtp_head next = z->head, body;
    z->id_n = (size_t)next.n;
    if (next.n > 0 && (!(next.flags & MORE) || next.n > sizeof z->id || !take(z, z->id, z->id_n) ||
                       !take_head(z, &next, patience_ns)))
        return false;
    if (out)
        out->n = 0;
    return (next.flags & (MORE | COMMAND)) == MORE && next.n == 0 &&
           take_head(z, &body, patience_ns) && !(body.flags & (MORE | COMMAND)) && body.n <= most &&
           take_body(z, out, body.n);
}

static size_t put_head(uint8_t *head, uint8_t flags, uint64_t n)
{
    size_t bytes = 1;
    head[0] = flags | (n > 255 ? LONG : 0);
    for (int shift = n > 255 ? 56 : 0; shift >= 0; shift -= 8)
        head[bytes++] = (uint8_t)(n >> shift);
    return bytes;
}

bool tec_zmtp_send(struct tec_zmtp *z, const void *data, size_t n, int64_t patience_ns)
{
    uint8_t head[2 + TEC_ZMTP_ID + 2 + 9];
    size_t bytes = 0;
    z->until_ns = tec_clock_now(&real) + patience_ns;
    if (z->id_n) {
        bytes = put_head(head, MORE, z->id_n);
        memcpy(head + bytes, z->id, z->id_n);
        bytes += z->id_n;
    }
    bytes += put_head(head + bytes, MORE, 0);
    bytes += put_head(head + bytes, 0, n);
    return put(z, head, bytes, MSG_MORE) && put(z, data, n, 0);
}

/* --- the handshake ---------------------------------------------------------------------------- */

/* Signature, version 3.0, mechanism, whether it is the server of that, zeros. */
static bool greet(struct tec_zmtp *z)
{
    static const char mechanism[20] = "NULL";
    uint8_t ours[GREETING] = {0xff, [9] = 0x7f, 3, 0}, theirs[GREETING];
    memcpy(ours + 12, mechanism, sizeof mechanism);
    return put(z, ours, sizeof ours, 0) && take(z, theirs, sizeof theirs) && theirs[0] == 0xff &&
           theirs[9] == 0x7f && theirs[10] >= 3 &&
           memcmp(theirs + 12, mechanism, sizeof mechanism) == 0;
}

/* The value of a property in READY's list: a byte and the name, four bytes and the value. */
static bool has_type(const uint8_t *list, size_t n, const char *type)
{
    static const char name[] = "Socket-Type";
    while (n > 0) {
        size_t key = list[0];
        if (n < 1 + key + 4)
            return false;
        const uint8_t *at = list + 1 + key;
        size_t value = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
        if (value > n - 1 - key - 4)
            return false;
        if (key == sizeof name - 1 && strncasecmp((const char *)list + 1, name, key) == 0)
            return value == strlen(type) && memcmp(at + 4, type, value) == 0;
        list = at + 4 + value;
        n -= 1 + key + 4 + value;
    }
    return false;
}

static bool agree(struct tec_zmtp *z)
{
    static const char ours[] = "\x05READY\x0bSocket-Type\0\0\0\x03REP", word[] = "\x05READY";
    const size_t skip = sizeof word - 1;
    uint8_t head[2] = {COMMAND, sizeof ours - 1}, theirs[COMMAND_BYTES];
    struct tec_zmtp_head h;
    return put(z, head, sizeof head, MSG_MORE) && put(z, ours, sizeof ours - 1, 0) &&
           take_head(z, &h, 0) && h.flags & COMMAND && h.n >= skip && h.n <= sizeof theirs &&
           take(z, theirs, (size_t)h.n) && memcmp(theirs, word, skip) == 0 &&
           (has_type(theirs + skip, (size_t)h.n - skip, "REQ") ||
            has_type(theirs + skip, (size_t)h.n - skip, "DEALER"));
}

bool tec_zmtp_open(struct tec_zmtp *z, int fd, int64_t patience_ns)
{
    *z = (struct tec_zmtp){.fd = fd, .until_ns = tec_clock_now(&real) + patience_ns};
    return greet(z) && agree(z);
}

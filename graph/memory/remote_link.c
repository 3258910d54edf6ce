/* remote_link.c - one connection to a KV server: bytes by poll, the protocol by hiredis.
 *
 * Runs on whichever thread holds the connection's lock. Answers are hostile: the parser is fed no
 * more bytes than an answer may have and builds no objects; it writes into the caller's struct.
 * After any error the connection is closed, because the position within the stream is lost. */
#include "graph/memory/remote_link.h"

#include "base/clock.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PORT = 6379, CHUNK = 1 << 16 };

static enum tec_status port_parse(struct tec_remote_place *out, const char *text,
                                  struct tec_error *err)
{
    char *end = NULL;
    long port = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || port < 1 || port > 65535)
        return tec_fail(err, TEC_INVALID, "memory: '%.20s' is no port of a server", text);
    out->port = (int)port;
    return TEC_OK;
}

static enum tec_status place_parse(struct tec_remote_place *out, const char *address,
                                   struct tec_error *err)
{
    bool tcp = strncmp(address, "redis://", 8) == 0, path = strncmp(address, "unix:/", 6) == 0;
    const char *host = address + (tcp ? 8 : path ? 5 : 0), *rest = host + strlen(host);
    *out = (struct tec_remote_place){.port = tcp ? PORT : 0};
    if (!tcp && !path)
        return tec_fail(err, TEC_INVALID,
                        "memory: a server is redis://host:port or unix:/path, not '%.100s'",
                        address);
    if (tcp && *host == '[') {
        rest = strchr(++host, ']');
        if (!rest || (rest[1] != '\0' && rest[1] != ':'))
            return tec_fail(err, TEC_INVALID, "memory: '%.100s' has no host in [ ]", address);
        if (rest[1] == ':')
            TEC_TRY(port_parse(out, rest + 2, err));
    } else if (tcp && strchr(host, ':')) {
        rest = strchr(host, ':');
        TEC_TRY(port_parse(out, rest + 1, err));
    }
    size_t n = (size_t)(rest - host), most = tcp ? sizeof out->host - 1 : 107;
    if (n < 1 || n > most || (tcp && memchr(host, '/', n)))
        return tec_fail(err, TEC_INVALID, "memory: '%.100s' names no server (1 .. %zu characters)",
                        address, most);
    memcpy(out->host, host, n);
    return TEC_OK;
}

enum tec_status tec_remote_places_parse(struct tec_remote_place out[TEC_REMOTE_PLACES], int *n,
                                        const char *address, struct tec_error *err)
{
    static const char scheme[] = "redis://";
    size_t head = sizeof scheme - 1;
    char one[TEC_REMOTE_ADDRESS + sizeof scheme];
    *n = 0;
    if (strncmp(address, "unix:/", 6) != 0 && strchr(address, '@')) /* what is there is not told */
        return tec_fail(err, TEC_INVALID,
                        "memory: an address with a user or password: tectum has none for a server");
    if (strlen(address) >= TEC_REMOTE_ADDRESS)
        return tec_fail(err, TEC_INVALID, "memory: an address of servers has at most %d characters",
                        TEC_REMOTE_ADDRESS - 1);
    if (strncmp(address, scheme, head) != 0) {
        *n = 1;
        return place_parse(out, address, err);
    }
    for (const char *at = address + head, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        snprintf(one, sizeof one, "%s%.*s", scheme, (int)(end - at), at);
        if (*n == TEC_REMOTE_PLACES)
            return tec_fail(err, TEC_INVALID, "memory: '%.100s' names more than %d servers",
                            address, TEC_REMOTE_PLACES);
        TEC_TRY(place_parse(&out[(*n)++], one, err));
    }
    return TEC_OK;
}

/* Callbacks of the hiredis reader. */

static struct tec_answer *answer_of(const redisReadTask *task)
{
    return ((struct tec_remote_link *)task->privdata)->answer;
}

static void text_set(struct tec_answer *a, const char *text, size_t n)
{
    n = n < sizeof a->text - 1 ? n : sizeof a->text - 1;
    for (size_t i = 0; i < n; i++)
        a->text[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
    a->text[n] = '\0';
}

static void *on_string(const redisReadTask *task, char *text, size_t n)
{
    struct tec_answer *a = answer_of(task);
    a->size = n;
    a->kind = task->type == REDIS_REPLY_ERROR    ? TEC_ANSWER_ERROR
              : task->type == REDIS_REPLY_STATUS ? TEC_ANSWER_STATUS
                                                 : TEC_ANSWER_STRING;
    if (a->kind != TEC_ANSWER_STRING)
        text_set(a, text, n);
    else if (a->into && n <= a->room && n > 0)
        memcpy(a->into, text, n);
    return a;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    struct tec_answer *a = answer_of(task);
    a->kind = TEC_ANSWER_INTEGER;
    a->integer = value;
    return a;
}

static void *on_nil(const redisReadTask *task)
{
    struct tec_answer *a = answer_of(task);
    a->kind = TEC_ANSWER_NIL;
    return a;
}

/* No question of ours is answered with a list. */
#if HIREDIS_MAJOR >= 1
static void *on_array(const redisReadTask *task, size_t n)
#else
static void *on_array(const redisReadTask *task, int n)
#endif
{
    (void)task;
    (void)n;
    return NULL;
}

static void on_free(void *object)
{
    (void)object; /* the caller's struct */
}

static const redisReplyObjectFunctions functions = {.createString = on_string,
                                                    .createArray = on_array,
                                                    .createInteger = on_integer,
                                                    .createNil = on_nil,
                                                    .freeObject = on_free};

/* hiredis has no const there, and writes nothing. */
static redisReader *reader_new(void)
{
    return redisReaderCreateWithFunctions((redisReplyObjectFunctions *)(uintptr_t)&functions);
}

enum tec_status tec_remote_link_open(struct tec_remote_link *link,
                                     const struct tec_remote_place *place, int64_t timeout_ns,
                                     struct tec_error *err)
{
    const struct timeval limit = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                                  .tv_usec = (suseconds_t)(timeout_ns % 1000000000 / 1000)};
    tec_remote_link_close(link);
    redisContext *c = place->port ? redisConnectWithTimeout(place->host, place->port, limit)
                                  : redisConnectUnixWithTimeout(place->host, limit);
    redisReader *reader = c && !c->err ? reader_new() : NULL;
    if (reader) {
        reader->privdata = link;
        reader->maxbuf = 0; /* its buffer is kept between answers */
        link->context = c;
        link->reader = reader;
        return TEC_OK;
    }
    enum tec_status status = tec_fail(err, TEC_IO, "%s", c && c->err ? c->errstr : "no memory");
    if (c)
        redisFree(c);
    return status;
}

void tec_remote_link_close(struct tec_remote_link *link)
{
    if (link->reader)
        redisReaderFree(link->reader);
    if (link->context)
        redisFree(link->context);
    *link = (struct tec_remote_link){NULL, NULL, NULL};
}

static enum tec_status broken(struct tec_remote_link *link, enum tec_status status,
                              const char *what, struct tec_error *err)
{
    (void)tec_fail(err, status, "%s", what);
    tec_remote_link_close(link);
    return status;
}

/* Wait until the socket can be read or written; false at the deadline. */
static bool wait_for(int file, short events, int64_t deadline_ns)
{
    const struct tec_clock clock = {0};
    for (;;) {
        int64_t left = deadline_ns - tec_clock_now(&clock);
        struct pollfd p = {.fd = file, .events = events};
        const struct timespec limit = {left > 0 ? (time_t)(left / 1000000000) : 0,
                                       left > 0 ? (long)(left % 1000000000) : 0};
        int n = ppoll(&p, 1, &limit, NULL);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

enum tec_status tec_remote_link_ask(struct tec_remote_link *link, int n, const char *const *words,
                                    const size_t *sizes, int64_t deadline_ns, struct tec_error *err)
{
    char *text = NULL;
    size_t sent = 0;
    if (!link->context)
        return tec_fail(err, TEC_IO, "it is not connected");
    int size = redisFormatCommandArgv(&text, n, (const char **)(uintptr_t)words, sizes);
    if (size < 0 || !text)
        return broken(link, TEC_IO, "no memory for a question", err);
    while (sent < (size_t)size) {
        ssize_t more =
            send(link->context->fd, text + sent, (size_t)size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        bool later = more >= 0 || errno == EAGAIN || errno == EINTR;
        if (more > 0)
            sent += (size_t)more;
        else if (!later || !wait_for(link->context->fd, POLLOUT, deadline_ns))
            break;
    }
    redisFreeCommand(text);
    if (sent < (size_t)size)
        return broken(link, TEC_IO, "a question could not be sent in time", err);
    return TEC_OK;
}

/* Feed the reader once. Its unread input may be at most `most` bytes. */
static enum tec_status prefetch(struct tec_remote_link *link, size_t most, int64_t deadline_ns,
                                struct tec_error *err)
{
    char chunk[CHUNK];
    ssize_t got;
    do {
        if (!wait_for(link->context->fd, POLLIN, deadline_ns))
            return broken(link, TEC_IO, "no answer in time", err);
        got = recv(link->context->fd, chunk, sizeof chunk, MSG_DONTWAIT);
    } while (got < 0 && (errno == EAGAIN || errno == EINTR));
    if (got <= 0)
        return broken(link, TEC_IO, got == 0 ? "it ended the connection" : "it cannot be read",
                      err);
    size_t waiting = link->reader->len - link->reader->pos;
    if (waiting + (size_t)got > most)
        return broken(link, TEC_MALFORMED, "the answer is longer than what was asked", err);
    if (redisReaderFeed(link->reader, chunk, (size_t)got) != REDIS_OK)
        return broken(link, TEC_MALFORMED, "the answer is none of its protocol", err);
    return TEC_OK;
}

enum tec_status tec_remote_link_answer(struct tec_remote_link *link, struct tec_answer *answer,
                                       int64_t deadline_ns, struct tec_error *err)
{
    unsigned char *into = answer->into;
    size_t room = answer->room;
    if (!link->context)
        return tec_fail(err, TEC_IO, "it is not connected");
    *answer = (struct tec_answer){.into = into, .room = room};
    link->answer = answer;
    for (;;) {
        void *done = NULL;
        if (redisReaderGetReply(link->reader, &done) != REDIS_OK)
            return broken(link, TEC_MALFORMED, "the answer is none of its protocol", err);
        if (done)
            break;
        TEC_TRY(prefetch(link, room + CHUNK, deadline_ns, err));
    }
    link->answer = NULL;
    if (answer->kind == TEC_ANSWER_STRING && answer->size > room)
        return broken(link, TEC_MALFORMED, "the answer is longer than what was asked", err);
    return TEC_OK;
}

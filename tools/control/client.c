/* client.c - the other end of a robot's control socket: one request and its answer. */
#include "tools/control/client.h"

#include "base/json_text.h"
#include "tools/control/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWER_S = 15, LARGEST = 1 << 22 };

static enum tec_status send_all(int fd, const char *text, size_t n, struct tec_error *err)
{
    for (size_t sent = 0; sent < n;) {
        ssize_t gone = send(fd, text + sent, n - sent, MSG_NOSIGNAL);
        if (gone < 0 && errno != EINTR)
            return tec_fail(err, TEC_IO, "the robot does not listen: %s", strerror(errno));
        sent += gone > 0 ? (size_t)gone : 0;
    }
    return TEC_OK;
}

/* Receive one line into `text` [LARGEST]. */
static enum tec_status receive(int fd, char *text, size_t *n, struct tec_error *err)
{
    for (*n = 0; *n < LARGEST;) {
        ssize_t got = recv(fd, text + *n, LARGEST - *n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return tec_fail(err, TEC_TIME, "the robot gives no answer within %d s", ANSWER_S);
        if (got <= 0)
            return tec_fail(err, TEC_IO, "the robot ended the connection without an answer");
        *n += (size_t)got;
        if (memchr(text + *n - got, '\n', (size_t)got))
            return TEC_OK;
    }
    return tec_fail(err, TEC_MALFORMED, "the robot's answer has no end");
}

/* Parse an answer; one that is not ok becomes this call's failure. */
static enum tec_status read_answer(json_t **out, const char *text, size_t n, struct tec_error *err)
{
    *out = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *ok = json_object_get(*out, "ok");
    const char *why = json_string_value(json_object_get(*out, "error"));
    const char *name = json_string_value(json_object_get(*out, "status"));
    if (json_is_true(ok))
        return TEC_OK;
    enum tec_status status = TEC_MALFORMED;
#define STATUS(word, text)                \
    if (name && strcmp(name, #word) == 0) \
        status = TEC_##word;
#include "base/status.def"
#undef STATUS
    tec_fail(err, status == TEC_OK ? TEC_MALFORMED : status, "%s",
             why ? why : "the robot's answer is not understood");
    json_decref(*out);
    *out = NULL;
    return status == TEC_OK ? TEC_MALFORMED : status;
}

enum tec_status tec_control_ask(struct tec_heap *heap, const char *path, json_t *request,
                                json_t **answer, struct tec_error *err)
{
    const struct timeval patience = {.tv_sec = ANSWER_S};
    char *line = request ? tec_json_whole(request, JSON_COMPACT) : NULL;
    char *text = tec_heap_get(heap, LARGEST);
    int fd = -1;
    size_t n = 0;
    json_decref(request);
    enum tec_status status = line && text ? tec_control_connect(&fd, path, err)
                                          : tec_fail(err, TEC_NO_MEMORY, "no memory for a request");
    if (status == TEC_OK) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        line[n = strlen(line)] = '\n';
        status = send_all(fd, line, n + 1, err);
    }
    if (status == TEC_OK)
        status = receive(fd, text, &n, err);
    if (status == TEC_OK)
        status = read_answer(answer, text, n, err);
    if (fd >= 0)
        close(fd);
    tec_heap_put(heap, text);
    free(line);
    return status;
}

/* remote_ask.c - asks a KV server the questions that a caller waits for: which keys exist, and
 * their bytes.
 *
 * Runs on the caller's thread: the worker of a memory looks for keys, a prefetch reads pieces. Each
 * kind of question has a connection of its own, so a forward's read never queues behind a long
 * send. Every question has a deadline; a read also ends at the moment until which its forward can
 * wait. */
#include "graph/memory/remote_state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct tec_clock real = {NULL};

static enum tec_status away(const struct tec_remote *r, struct tec_error *err)
{
    return tec_fail(err, TEC_IO, "memory: server %.120s is away", r->address);
}

/* Ask for the lengths of n strings in one pipelined exchange. All answers are taken, also behind
 * one that says it is no master: the connection may be used before it is opened anew. */
static enum tec_status look_some(struct tec_remote *r, struct tec_remote_link *link,
                                 const struct tec_remote_name *names, long long *sizes, uint32_t n,
                                 int64_t deadline, struct tec_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        char key[TEC_REMOTE_KEY];
        tec_remote_key(r, names[i], key);
        const char *words[] = {"STRLEN", key};
        const size_t lengths[] = {6, strlen(key)};
        TEC_TRY(tec_remote_link_ask(link, 2, words, lengths, deadline, err));
    }
    enum tec_status status = TEC_OK;
    for (uint32_t i = 0; i < n; i++) {
        struct tec_answer answer = {.kind = TEC_ANSWER_NONE};
        TEC_TRY(tec_remote_link_answer(link, &answer, deadline, err));
        sizes[i] = answer.kind == TEC_ANSWER_INTEGER ? answer.integer : -1;
        if (status == TEC_OK)
            status = tec_remote_gives_up_role(&answer, err);
    }
    return status;
}

uint32_t tec_remote_look(struct tec_remote *r, const struct tec_remote_name *names,
                         const size_t *sizes, uint32_t n, bool *found)
{
    struct tec_remote_line *line = &r->lines[TEC_REMOTE_LOOKS];
    struct tec_error why = {TEC_OK, ""};
    long long there[TEC_REMOTE_LOOK];
    uint32_t right = 0, none = 0;
    memset(found, 0, n * sizeof *found);
    if (n < 1 || n > TEC_REMOTE_LOOK || !tec_remote_here(r))
        return 0;
    pthread_mutex_lock(&line->lock);
    enum tec_status status =
        look_some(r, &line->link, names, there, n, tec_remote_deadline(r, 0), &why);
    pthread_mutex_unlock(&line->lock);
    for (uint32_t i = 0; status == TEC_OK && i < n; i++) {
        found[i] = there[i] > 0 && (size_t)there[i] == sizes[i];
        right += found[i];
        none += there[i] == 0;
    }
    pthread_mutex_lock(&r->lock);
    r->counts.found += right;
    r->counts.missed += n - right;
    r->counts.bad += status == TEC_OK ? n - right - none : status == TEC_MALFORMED;
    pthread_mutex_unlock(&r->lock);
    if (status != TEC_OK)
        tec_remote_lost(r, &why);
    else
        tec_remote_good(r);
    return right;
}

/* Lock the connection to read by; NULL if it was not free in time. A reconnect holds it for as long
 * as it takes, and a forward must not wait for that. */
static struct tec_remote_line *take_line(struct tec_remote *r, int64_t until_ns)
{
    const struct timespec pause = {.tv_nsec = 50000};
    bool bound = until_ns != INT64_MAX;
    struct tec_remote_line *line = &r->lines[bound ? TEC_REMOTE_READS : TEC_REMOTE_COPIES];
    if (!bound)
        pthread_mutex_lock(&line->lock);
    while (bound && pthread_mutex_trylock(&line->lock) != 0) {
        if (!tec_remote_here(r) || tec_clock_now(&real) >= until_ns)
            return NULL;
        nanosleep(&pause, NULL);
    }
    return line;
}

/* Run GETRANGE; *late is set if the forward's deadline has passed. */
static enum tec_status read_range(struct tec_remote *r, const char *key, size_t from,
                                  struct tec_answer *answer, int64_t until_ns, bool *late,
                                  struct tec_error *why)
{
    char first[24], last[24];
    int64_t own = tec_remote_deadline(r, answer->room), deadline = own < until_ns ? own : until_ns;
    snprintf(first, sizeof first, "%zu", from);
    snprintf(last, sizeof last, "%zu", from + answer->room - 1);
    const char *words[] = {"GETRANGE", key, first, last};
    const size_t sizes[] = {8, strlen(key), strlen(first), strlen(last)};
    enum tec_status status = tec_fail(why, TEC_IO, "it is being connected again");
    struct tec_remote_line *line = tec_clock_now(&real) < until_ns ? take_line(r, until_ns) : NULL;
    if (line) {
        status = tec_remote_link_ask(&line->link, 4, words, sizes, deadline, why);
        if (status == TEC_OK)
            status = tec_remote_link_answer(&line->link, answer, deadline, why);
        pthread_mutex_unlock(&line->lock);
    }
    *late = status == TEC_IO && tec_clock_now(&real) >= until_ns;
    return *late ? tec_fail(why, TEC_IO, "a forward's keys and values did not come in time")
                 : status;
}

enum tec_status tec_remote_read(struct tec_remote *r, struct tec_remote_name name, size_t from,
                                size_t size, unsigned char *into, int64_t until_ns,
                                struct tec_error *err)
{
    char key[TEC_REMOTE_KEY];
    bool late = false;
    struct tec_error why = {TEC_OK, ""};
    struct tec_answer answer = {.into = into, .room = size};
    if (!tec_remote_here(r))
        return away(r, err);
    if (size < 1)
        return TEC_OK;
    tec_remote_key(r, name, key);
    enum tec_status status = read_range(r, key, from, &answer, until_ns, &late, &why);
    if (status == TEC_OK)
        status = tec_remote_gives_up_role(&answer, &why);
    if (status != TEC_OK) {
        if (status == TEC_MALFORMED)
            tec_remote_bad(r);
        if (late)
            tec_remote_late(r, &why);
        else
            tec_remote_lost(r, &why);
        return tec_fail(err, status, "memory: server %.120s: %s", r->address, why.message);
    }
    if (answer.kind == TEC_ANSWER_STRING && answer.size == size) {
        tec_remote_good(r);
        return TEC_OK;
    }
    if (answer.kind == TEC_ANSWER_STRING && answer.size == 0)
        return tec_fail(err, TEC_NOT_FOUND, "memory: server %.120s has no string %s any more",
                        r->address, key);
    tec_remote_bad(r);
    return tec_fail(err, TEC_MALFORMED, "memory: server %.120s: %zu bytes of %s for %zu%s%s",
                    r->address, answer.size, key, size, *answer.text ? ": " : "", answer.text);
}

void tec_remote_bad(struct tec_remote *r)
{
    pthread_mutex_lock(&r->lock);
    r->counts.bad++;
    pthread_mutex_unlock(&r->lock);
}

bool tec_remote_here(const struct tec_remote *r)
{
    return atomic_load(&((struct tec_remote *)(uintptr_t)r)->here);
}

struct tec_remote_counts tec_remote_counts(struct tec_remote *r)
{
    pthread_mutex_lock(&r->lock);
    struct tec_remote_counts counts = r->counts;
    counts.here = tec_remote_here(r);
    pthread_mutex_unlock(&r->lock);
    return counts;
}

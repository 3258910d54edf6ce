/* tectum_client.c - the functions of tectum_client.h. */
#include "tectum_client.h"

#include "base/clock.h"
#include "tools/client/link.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* tectum.h's errors have the layout and the numbers of ours. */
_Static_assert(sizeof(struct tectum_error) == sizeof(struct tec_error), "one layout");
_Static_assert((int)TECTUM_TIME == (int)TEC_TIME, "one list of statuses");

static enum tectum_status told(struct tectum_error *to, const struct tec_error *err,
                               enum tec_status status)
{
    if (status != TEC_OK && to) {
        to->status = (enum tectum_status)status;
        memcpy(to->message, err->message, sizeof to->message);
    }
    return (enum tectum_status)status;
}

int64_t tectum_client_now(void)
{
    static const struct tec_clock clock = {NULL};
    return tec_clock_now(&clock);
}

/* --- open ------------------------------------------------------------------------------------- */

static enum tec_status text(char *to, size_t room, const char *name, const char *given,
                            const char *without, struct tec_error *err)
{
    const char *from = given ? given : without;
    if (given && (!*given || strlen(given) >= room))
        return tec_fail(err, TEC_INVALID, "%s: must have 1 to %zu bytes", name, room - 1);
    memcpy(to, from, strlen(from) + 1);
    return TEC_OK;
}

static void random_session(char *to, size_t room)
{
    uint64_t number = (uint64_t)tectum_client_now();
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number ^= (uint64_t)(uintptr_t)to;
    snprintf(to, room, "robot-%016llx", (unsigned long long)number);
}

/* Where the URL asks for TLS, whom to believe. Options that mean nothing without it are refused:
 * who gives them counts on it. */
static enum tec_status open_trust(struct tectum_client *c, const struct tectum_client_options *o,
                                  struct tec_error *err)
{
    bool secure = false;
    TEC_TRY(tec_client_check_url(c->url, &secure, err));
    if (secure)
        return tec_client_trust_open(&c->trust, o->ca_file, o->server_name, err);
    if (o->ca_file || o->server_name)
        return tec_fail(err, TEC_INVALID,
                        "%s: %s is for TLS, which this URL does not ask for: wss://", c->url,
                        o->ca_file ? "ca_file" : "server_name");
    return TEC_OK;
}

static enum tec_status read_options(struct tectum_client *c, const char *url,
                                    const struct tectum_client_options *o, struct tec_error *err)
{
    char session[40];
    random_session(session, sizeof session);
    if (!url || !o)
        return tec_fail(err, TEC_INVALID, "a client needs a url and options");
    TEC_TRY(text(c->url, sizeof c->url, "url", url, "", err));
    TEC_TRY(text(c->key, sizeof c->key, "key", o->key, "", err));
    TEC_TRY(text(c->session, sizeof c->session, "session_id", o->session_id, session, err));
    TEC_TRY(text(c->left_input, sizeof c->left_input, "left_input", o->left_input,
                 "prev_chunk_left_over", err));
    TEC_TRY(text(c->delay_input, sizeof c->delay_input, "delay_input", o->delay_input,
                 "inference_delay", err));
    TEC_TRY(text(c->given_input, sizeof c->given_input, "given_input", o->given_input,
                 "prev_actions", err));
    const char *const inputs[] = {c->left_input, c->delay_input, c->given_input};
    for (int i = 0; i < 3; i++)
        TEC_TRY(tec_client_check_name(inputs[i], err));
    if (!(o->deadline_ms >= 0.0 && o->deadline_ms <= 1e6))
        return tec_fail(err, TEC_INVALID, "deadline_ms: must be 0 to 1e6, is %g", o->deadline_ms);
    if (o->reply_ms < 0 || o->reply_ms > 3600000)
        return tec_fail(err, TEC_INVALID, "reply_ms: must be 0 to 3600000, is %d", o->reply_ms);
    c->deadline_ms = o->deadline_ms;
    c->reply_ms = o->reply_ms ? o->reply_ms : 10000;
    c->has_seed = o->seed != NULL;
    c->seed = o->seed ? *o->seed : 0;
    TEC_TRY(open_trust(c, o, err));
    TEC_TRY(tec_client_queue_init(&c->queue, o, &c->heap, err));
    c->max_rows = c->queue.plan.most_rows;
    c->max_columns = c->queue.plan.most_columns;
    return TEC_OK;
}

enum tectum_status tectum_client_open(struct tectum_client **out, const char *url,
                                      const struct tectum_client_options *options,
                                      struct tectum_error *error)
{
    struct tec_error err = {.message = ""};
    struct tec_heap outside = {0}; /* the client's own counts what is in it */
    if (!out)
        return told(error, &err, tec_fail(&err, TEC_INVALID, "tectum_client_open: no out"));
    *out = NULL;
    struct tectum_client *c = tec_heap_get(&outside, sizeof *c);
    if (!c)
        return told(error, &err, tec_fail(&err, TEC_NO_MEMORY, "no memory for a client"));
    enum tec_status status = read_options(c, url, options, &err);
    if (status == TEC_OK) {
        status = tec_client_start(c, &err);
        if (status != TEC_OK)
            tec_client_queue_finish(&c->queue);
    }
    if (status == TEC_OK)
        *out = c;
    else {
        tec_client_trust_close(&c->trust);
        tec_heap_put(&outside, c);
    }
    return told(error, &err, status);
}

void tectum_client_close(struct tectum_client **client)
{
    struct tec_heap outside = {0};
    if (!client || !*client)
        return;
    tec_client_stop(*client);
    tec_client_queue_finish(&(*client)->queue);
    tec_client_trust_close(&(*client)->trust);
    tec_heap_put(&outside, *client);
    *client = NULL;
}

/* --- observations and actions ----------------------------------------------------------------- */

enum tectum_status tectum_client_observe(struct tectum_client *client,
                                         const struct tectum_value *values, size_t n,
                                         int64_t captured_ns, int64_t *number,
                                         struct tectum_error *error)
{
    struct tec_error err = {.message = ""};
    struct tec_client_observation *seen = &client->seen[client->between.writing];
    int64_t now = tectum_client_now();
    enum tec_status status = tec_client_pack_observation(seen, values, n, &err);
    if (status != TEC_OK)
        return told(error, &err, status);
    seen->number = client->observed++;
    seen->captured_ns = captured_ns > 0 && captured_ns < now ? captured_ns : now;
    seen->episode = atomic_load(&client->queue.episode);
    if (number)
        *number = seen->number;
    tec_triple_post(&client->between);
    tec_client_wake(client);
    return TECTUM_OK;
}

enum tectum_status tectum_client_next(struct tectum_client *client, int64_t now, double *action,
                                      int room, struct tectum_client_action *told_of)
{
    struct tectum_client_action unread;
    return (enum tectum_status)tec_client_queue_next(
        &client->queue, now ? now : tectum_client_now(), action, room, told_of ? told_of : &unread);
}

/* Whether a chunk of this episode came; the lock is held. */
static bool is_ready(const struct tectum_client *c)
{
    return c->ready_episode == atomic_load(&c->queue.episode);
}

/* Why no chunk came; the lock is held. */
static const char *why_not(const struct tectum_client *c)
{
    const struct tectum_client_stats *s = &c->stats;
    if (!s->connected)
        return s->message[0] ? s->message : "there is no connection";
    if (s->requests == 0)
        return "nothing was observed";
    return c->refused ? s->message : "the server has not replied with actions";
}

enum tectum_status tectum_client_ready(struct tectum_client *client, int64_t timeout_ns,
                                       struct tectum_error *error)
{
    struct tec_error err = {.message = ""};
    int64_t now = tectum_client_now(), wait = timeout_ns > 0 ? timeout_ns : 0;
    int64_t until = wait < INT64_MAX - now ? now + wait : INT64_MAX;
    const struct timespec at = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    int late = 0;
    pthread_mutex_lock(&client->lock);
    while (!is_ready(client) && !late)
        late = pthread_cond_timedwait(&client->changed, &client->lock, &at);
    bool ready = is_ready(client);
    if (!ready)
        tec_fail(&err, TEC_TIME, "%s: no chunk yet: %s", client->url, why_not(client));
    pthread_mutex_unlock(&client->lock);
    return ready ? TECTUM_OK : told(error, &err, TEC_TIME);
}

void tectum_client_reset(struct tectum_client *client, int end_stop)
{
    tec_client_queue_reset(&client->queue);
    if (end_stop)
        atomic_store(&client->end_stop, true);
    tec_client_wake(client);
}

void tectum_client_stats(struct tectum_client *client, struct tectum_client_stats *stats)
{
    pthread_mutex_lock(&client->lock);
    *stats = client->stats;
    pthread_mutex_unlock(&client->lock);
    stats->dry = atomic_load(&client->queue.dry);
}

/* client.c - a client of Foxglove's protocol: its orders, and the bytes to it. */
#include "tools/foxglove/client.h"

#include "base/alloc.h"
#include "base/json_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SECOND_NS = 1000000000, DATA = 1, DATA_HEAD = 13 };
enum { MESSAGES_A_SECOND = 200, BYTES_A_SECOND = 1 << 20 }; /* that it may send */
static const int64_t patience_ns = 60 * (int64_t)SECOND_NS;
enum level { INFO, WARNING, ERROR };

/* --- to it ------------------------------------------------------------------------------------ */

/* Room for n bytes behind what is on its way; NULL: there is none. */
static uint8_t *room(struct tec_foxglove_client *c, size_t n)
{
    if (c->ends || n > TEC_FOXGLOVE_OUT - (c->out_n - c->out_at))
        return NULL;
    if (n > TEC_FOXGLOVE_OUT - c->out_n) {
        memmove(c->out, c->out + c->out_at, c->out_n - c->out_at);
        c->out_n -= c->out_at;
        c->out_at = 0;
    }
    c->out_n += n;
    return c->out + c->out_n - n;
}

/* A message that `front` begins; it is left out where there is no room for it. */
static void put(struct tec_foxglove_client *c, enum tec_websocket_opcode opcode, const void *front,
                size_t front_n, const void *data, size_t n)
{
    uint8_t head[TEC_WEBSOCKET_HEAD];
    size_t head_n = tec_websocket_head(head, opcode, front_n + n);
    uint8_t *to = room(c, head_n + front_n + n);
    if (!to) {
        c->lost += !c->ends;
        return;
    }
    memcpy(to, head, head_n);
    if (front_n)
        memcpy(to + head_n, front, front_n);
    if (n)
        memcpy(to + head_n + front_n, data, n);
}

/* Takes the reference. */
static void put_json(struct tec_foxglove_client *c, json_t *json)
{
    char *text = tec_json_whole(json, JSON_COMPACT);
    if (text)
        put(c, TEC_WEBSOCKET_TEXT, NULL, 0, text, strlen(text));
    free(text);
    json_decref(json);
}

static void tell_status(struct tec_foxglove_client *c, enum level level, const char *message)
{
    put_json(c, json_pack("{s:s, s:i, s:o}", "op", "status", "level", (int)level, "message",
                          tec_json_shown(message)));
}

void tec_foxglove_client_tell(struct tec_foxglove_client *c, int channel, int64_t time_ns,
                              const char *text, size_t n)
{
    uint8_t front[DATA_HEAD] = {DATA};
    if (c->fd < 0 || !c->subscribed[channel])
        return;
    for (int i = 0; i < 4; i++)
        front[1 + i] = (uint8_t)(c->ids[channel] >> (8 * i));
    for (int i = 0; i < 8; i++)
        front[5 + i] = (uint8_t)((uint64_t)time_ns >> (8 * i));
    put(c, TEC_WEBSOCKET_BINARY, front, sizeof front, text, n);
}

void tec_foxglove_client_end(struct tec_foxglove_client *c, enum tec_websocket_code code)
{
    const uint8_t why[2] = {(uint8_t)(code >> 8), (uint8_t)(code & 255)};
    put(c, TEC_WEBSOCKET_CLOSE, NULL, 0, why, sizeof why);
    c->ends = true;
}

bool tec_foxglove_client_send(struct tec_foxglove_client *c, int64_t now_ns)
{
    char words[100];
    while (c->out_at < c->out_n) {
        ssize_t n = send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return now_ns - c->moved_ns < patience_ns;
        if (n <= 0)
            return false;
        c->out_at += (size_t)n;
        c->moved_ns = now_ns;
    }
    c->out_at = c->out_n = 0;
    c->moved_ns = now_ns;
    if (c->ends)
        return false;
    if (c->lost > 0) {
        snprintf(words, sizeof words, "%lld messages were left out: they were not taken in time",
                 (long long)c->lost);
        c->lost = 0;
        tell_status(c, WARNING, words);
    }
    return true;
}

/* --- from it ---------------------------------------------------------------------------------- */

/* A number of `json` that is whole and fits; -1: it is none. */
static int64_t number(const json_t *json)
{
    json_int_t n = json_is_integer(json) ? json_integer_value(json) : -1;
    return n >= 0 && n <= UINT32_MAX ? n : -1;
}

static int with_id(const struct tec_foxglove_client *c, int64_t id)
{
    for (int i = 0; i < TEC_FOXGLOVE_CHANNELS; i++)
        if (c->subscribed[i] && c->ids[i] == id)
            return i;
    return -1;
}

static void subscribe(struct tec_foxglove_client *c, const struct tec_engine *engine,
                      const json_t *one)
{
    int64_t id = number(json_object_get(one, "id"));
    int64_t channel = number(json_object_get(one, "channelId")) - 1;
    if (id < 0 || !tec_foxglove_has(engine, channel))
        tell_status(c, ERROR, "subscribe: an id, and the channelId of a channel that there is");
    else if (c->subscribed[channel] || with_id(c, id) >= 0)
        tell_status(c, WARNING, "subscribe: one subscription for each channel, each with its id");
    else {
        c->subscribed[channel] = true;
        c->ids[channel] = (uint32_t)id;
    }
}

static void unsubscribe(struct tec_foxglove_client *c, const struct tec_engine *engine,
                        const json_t *one)
{
    int channel = with_id(c, number(one));
    (void)engine;
    if (channel < 0)
        tell_status(c, WARNING, "unsubscribe: there is no subscription with this id");
    else
        c->subscribed[channel] = false;
}

/* Orders, with the member whose items they are for; those without one are not for a client here. */
static const struct {
    const char *op, *items;
    void (*each)(struct tec_foxglove_client *, const struct tec_engine *, const json_t *);
} orders[] = {{"subscribe", "subscriptions", subscribe},
              {"unsubscribe", "subscriptionIds", unsubscribe},
              {.op = "advertise"},
              {.op = "unadvertise"},
              {.op = "getParameters"},
              {.op = "setParameters"},
              {.op = "subscribeParameterUpdates"},
              {.op = "unsubscribeParameterUpdates"},
              {.op = "subscribeConnectionGraph"},
              {.op = "unsubscribeConnectionGraph"},
              {.op = "fetchAsset"}};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static void obey(struct tec_foxglove_client *c, const struct tec_engine *engine,
                 const json_t *message)
{
    const char *op = json_string_value(json_object_get(message, "op"));
    char words[160];
    int i = 0;
    while (op && i < ORDERS && strcmp(orders[i].op, op) != 0)
        i++;
    if (!op || i == ORDERS) {
        snprintf(words, sizeof words, "a message without effect: its op '%.40s' is not known",
                 op ? op : "");
        tell_status(c, WARNING, words);
        return;
    }
    if (!orders[i].each) {
        snprintf(words, sizeof words, "%s: clients look at this robot, and change nothing", op);
        tell_status(c, ERROR, words);
        return;
    }
    const json_t *items = json_object_get(message, orders[i].items);
    size_t n = json_array_size(items);
    if (!json_is_array(items) || n > TEC_FOXGLOVE_SUBSCRIPTIONS) {
        snprintf(words, sizeof words, "%s: '%s' is a list of at most %d", op, orders[i].items,
                 TEC_FOXGLOVE_SUBSCRIPTIONS);
        tell_status(c, ERROR, words);
        return;
    }
    for (size_t k = 0; k < n; k++)
        orders[i].each(c, engine, json_array_get(items, k));
}

static void take_text(struct tec_foxglove_client *c, const struct tec_engine *engine,
                      const struct tec_websocket_came *came)
{
    json_t *message = json_loadb((const char *)came->data, came->n, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(message))
        obey(c, engine, message);
    else
        tell_status(c, ERROR, "a message that is no JSON object");
    json_decref(message);
}

/* A client may send so much in a second: more would take time from the robot. Bytes count besides
 * messages, for a message may come in parts without an end. */
static bool too_much(struct tec_foxglove_client *c, size_t bytes, int64_t now_ns)
{
    if (now_ns - c->second_ns > SECOND_NS) {
        c->second_ns = now_ns;
        c->sent = 0;
        c->sent_bytes = 0;
    }
    c->sent_bytes += bytes;
    return c->sent_bytes > BYTES_A_SECOND;
}

static void take_one(struct tec_foxglove_client *c, const struct tec_engine *engine,
                     const struct tec_websocket_came *came)
{
    if (came->code)
        tec_foxglove_client_end(c, (enum tec_websocket_code)came->code);
    else if (++c->sent > MESSAGES_A_SECOND)
        tec_foxglove_client_end(c, TEC_WEBSOCKET_POLICY);
    else if (came->opcode == TEC_WEBSOCKET_TEXT)
        take_text(c, engine, came);
    else if (came->opcode == TEC_WEBSOCKET_BINARY)
        tell_status(c, ERROR, "binary messages: clients look at this robot, and change nothing");
    else if (came->opcode == TEC_WEBSOCKET_PING)
        put(c, TEC_WEBSOCKET_PONG, NULL, 0, came->data, came->n);
    else if (came->opcode == TEC_WEBSOCKET_CLOSE) {
        put(c, TEC_WEBSOCKET_CLOSE, NULL, 0, came->data, came->n < 2 ? 0 : 2);
        c->ends = true;
    }
}

bool tec_foxglove_client_receive(struct tec_foxglove_client *c, const struct tec_engine *engine,
                                 int64_t now_ns)
{
    struct tec_websocket_came came;
    size_t n;
    uint8_t *to = tec_websocket_room(&c->in, &n);
    ssize_t got = recv(c->fd, to, n, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (got == 0)
        return false;
    c->in.n += (size_t)got;
    if (!c->ends && too_much(c, (size_t)got, now_ns))
        tec_foxglove_client_end(c, TEC_WEBSOCKET_POLICY);
    while (!c->ends && tec_websocket_next(&c->in, &came))
        take_one(c, engine, &came);
    if (c->ends)
        c->in.at = c->in.n; /* what comes behind its end is not read */
    return true;
}

/* --- life ------------------------------------------------------------------------------------- */

bool tec_foxglove_client_open(struct tec_foxglove_client *c, int fd, int64_t now_ns,
                              const struct tec_engine *engine, const json_t *info,
                              struct tec_heap *heap)
{
    *c = (struct tec_foxglove_client){.fd = fd,
                                      .in = {.bytes = tec_heap_get(heap, TEC_WEBSOCKET_ROOM),
                                             .message = tec_heap_get(heap, TEC_WEBSOCKET_MOST)},
                                      .out = tec_heap_get_sparse(heap, TEC_FOXGLOVE_OUT),
                                      .moved_ns = now_ns};
    if (!c->in.bytes || !c->in.message || !c->out) {
        c->fd = -1;
        tec_foxglove_client_close(c, heap);
        return false;
    }
    put_json(c, json_deep_copy(info));
    put_json(c, tec_foxglove_advertise(engine));
    return true;
}

void tec_foxglove_client_close(struct tec_foxglove_client *c, struct tec_heap *heap)
{
    if (c->fd >= 0)
        close(c->fd);
    tec_heap_put(heap, c->in.bytes);
    tec_heap_put(heap, c->in.message);
    tec_heap_put(heap, c->out);
    *c = (struct tec_foxglove_client){.fd = -1};
}

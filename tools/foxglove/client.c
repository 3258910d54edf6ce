/* client.c - a client of Foxglove's protocol: its orders, and the messages to it. */
#include "tools/foxglove/client.h"

#include "base/alloc.h"
#include "base/json_text.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 1, DATA_HEAD = 13 };
enum { MESSAGES_A_SECOND = 200, BYTES_A_SECOND = 1 << 20 }; /* that it may send */
enum { A_PART = 512 /* a part of a message counts as so many bytes more: it takes time, too */ };
enum { SECOND_NS = 1000000000, GOODBYE_S = 2 };
enum level { INFO, WARNING, ERROR };

/* In front of each message in `out`, with room for the head that the library puts there. */
struct waits {
    uint32_t n;
    bool is_text;
    uint8_t head[LWS_PRE];
};

/* --- to it ------------------------------------------------------------------------------------ */

/* Room for n bytes behind what is on its way; NULL: there is none. */
static uint8_t *room(struct tec_foxglove_client *c, size_t n)
{
    if (c->code || n > TEC_FOXGLOVE_OUT - (c->out_n - c->out_at))
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
static void put(struct tec_foxglove_client *c, bool is_text, const void *front, size_t front_n,
                const void *data, size_t n)
{
    struct waits waits = {.n = (uint32_t)(front_n + n), .is_text = is_text};
    uint8_t *to = room(c, sizeof waits + front_n + n);
    if (!to) {
        c->lost += !c->code;
        return;
    }
    to = mempcpy(to, &waits, sizeof waits);
    if (front_n)
        to = mempcpy(to, front, front_n);
    memcpy(to, data, n);
    lws_callback_on_writable(c->wsi);
}

/* Takes the reference. */
static void put_json(struct tec_foxglove_client *c, json_t *json)
{
    char *text = tec_json_whole(json, JSON_COMPACT);
    if (text)
        put(c, true, NULL, 0, text, strlen(text));
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
    if (!c->wsi || !c->subscribed[channel])
        return;
    for (int i = 0; i < 4; i++)
        front[1 + i] = (uint8_t)(c->ids[channel] >> (8 * i));
    for (int i = 0; i < 8; i++)
        front[5 + i] = (uint8_t)((uint64_t)time_ns >> (8 * i));
    put(c, false, front, sizeof front, text, n);
}

void tec_foxglove_client_end(struct tec_foxglove_client *c, int code)
{
    if (c->code)
        return;
    c->code = code;
    lws_set_timer_usecs(c->wsi, GOODBYE_S * LWS_US_PER_SEC); /* it may take nothing */
    lws_callback_on_writable(c->wsi);
}

/* The message that waits longest; false: the connection is broken. */
static bool send_one(struct tec_foxglove_client *c)
{
    struct waits waits;
    memcpy(&waits, c->out + c->out_at, sizeof waits);
    uint8_t *at = c->out + c->out_at + sizeof waits;
    int wrote = lws_write(c->wsi, at, waits.n, waits.is_text ? LWS_WRITE_TEXT : LWS_WRITE_BINARY);
    c->out_at += sizeof waits + waits.n; /* what the socket did not take, the library has copied */
    return wrote >= (int)waits.n;
}

int tec_foxglove_client_send(struct tec_foxglove_client *c)
{
    char words[100];
    while (c->out_at < c->out_n && !lws_send_pipe_choked(c->wsi))
        if (!send_one(c))
            return -1;
    if (c->out_at < c->out_n) {
        lws_callback_on_writable(c->wsi);
        return 0;
    }
    c->out_at = c->out_n = 0;
    if (c->code) {
        lws_close_reason(c->wsi, (enum lws_close_status)c->code, NULL, 0);
        return -1;
    }
    if (c->lost > 0) {
        snprintf(words, sizeof words, "%lld messages were left out: they were not taken in time",
                 (long long)c->lost);
        c->lost = 0;
        tell_status(c, WARNING, words);
    }
    return 0;
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

static void take(struct tec_foxglove_client *c, const struct tec_engine *engine)
{
    if (++c->sent > MESSAGES_A_SECOND) {
        tec_foxglove_client_end(c, LWS_CLOSE_STATUS_POLICY_VIOLATION);
        return;
    }
    if (!c->is_text) {
        tell_status(c, ERROR, "binary messages: clients look at this robot, and change nothing");
        return;
    }
    json_t *message =
        json_loadb((const char *)c->message, c->message_n, JSON_REJECT_DUPLICATES, NULL);
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

void tec_foxglove_client_receive(struct tec_foxglove_client *c, const struct tec_engine *engine,
                                 const void *data, size_t n, int64_t now_ns)
{
    size_t rest = lws_remaining_packet_payload(c->wsi);
    if (c->code) /* what comes behind its end is not read */
        return;
    if (lws_is_first_fragment(c->wsi)) {
        c->message_n = 0;
        c->is_text = !lws_frame_is_binary(c->wsi);
    }
    size_t left = TEC_FOXGLOVE_MESSAGE - c->message_n;
    if (too_much(c, A_PART + n, now_ns))
        tec_foxglove_client_end(c, LWS_CLOSE_STATUS_POLICY_VIOLATION);
    else if (n > left || rest > left - n)
        tec_foxglove_client_end(c, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE);
    if (c->code)
        return;
    if (n > 0)
        memcpy(c->message + c->message_n, data, n);
    c->message_n += n;
    if (!rest && lws_is_final_fragment(c->wsi))
        take(c, engine);
}

/* --- life ------------------------------------------------------------------------------------- */

bool tec_foxglove_client_open(struct tec_foxglove_client *c, struct lws *wsi,
                              const struct tec_engine *engine, const json_t *info,
                              struct tec_heap *heap)
{
    *c = (struct tec_foxglove_client){.wsi = wsi,
                                      .message = tec_heap_get(heap, TEC_FOXGLOVE_MESSAGE),
                                      .out = tec_heap_get_sparse(heap, TEC_FOXGLOVE_OUT)};
    if (!c->message || !c->out) {
        tec_foxglove_client_close(c, heap);
        return false;
    }
    put_json(c, json_deep_copy(info));
    put_json(c, tec_foxglove_advertise(engine));
    return true;
}

void tec_foxglove_client_close(struct tec_foxglove_client *c, struct tec_heap *heap)
{
    tec_heap_put(heap, c->message);
    tec_heap_put(heap, c->out);
    *c = (struct tec_foxglove_client){.wsi = NULL};
}

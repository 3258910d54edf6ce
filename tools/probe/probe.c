/* probe.c - packs an observation as openpi's clients do, and reads the times out of the replies. */
#include "tools/probe/probe.h"

#include "base/clock.h"
#include "tools/client/observation.h"
#include "tools/client/socket.h"
#include "tools/measure/bench.h"
#include "tools/probe/draw.h"
#include "tools/probe/object.h"

/* --- the request ------------------------------------------------------------------------------ */

static enum tec_status pack(struct tec_buffer *out, const struct tec_value *observation, size_t n,
                            struct tec_error *err)
{
    struct tec_client_value values[TEC_MAX_INPUTS];
    json_t *asked = json_pack("{s:b}", "timing", 1);
    for (size_t i = 0; i < n; i++)
        values[i] = tec_client_value(&observation[i]);
    bool good = asked && tec_client_pack(out, values, n, asked) && !out->failed;
    json_decref(asked);
    return good ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a request");
}

/* --- the reply -------------------------------------------------------------------------------- */

/* A number, times `scale`; -1: there is none. */
static int64_t number(const msgpack_object *o, double scale)
{
    if (o && (o->type == MSGPACK_OBJECT_FLOAT64 || o->type == MSGPACK_OBJECT_FLOAT32))
        return (int64_t)(o->via.f64 * scale);
    return o && o->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? (int64_t)((double)o->via.u64 * scale)
                                                           : -1;
}

/* Samples of one request, by these indices. */
enum { CLIENT, WIRE, DECODE, PREPARE, MODEL, FINISH, SAMPLES };

static void read_times(int64_t sample[SAMPLES], const msgpack_object *reply)
{
    const msgpack_object *server = tec_probe_member(reply, "server_timing");
    const msgpack_object *timing = tec_probe_member(tec_probe_member(reply, "tectum"), "timing");
    int64_t inside = number(tec_probe_member(server, "infer_ms"), 1e3);
    sample[DECODE] = number(tec_probe_member(timing, "decode_us"), 1.0);
    sample[PREPARE] = number(tec_probe_member(timing, "prepare_us"), 1.0);
    sample[MODEL] = number(tec_probe_member(timing, "model_us"), 1.0);
    sample[FINISH] = number(tec_probe_member(timing, "finish_us"), 1.0);
    if (sample[MODEL] < 0)
        sample[MODEL] =
            number(tec_probe_member(tec_probe_member(reply, "policy_timing"), "infer_ms"), 1e3);
    sample[WIRE] = inside >= 0 ? sample[CLIENT] - inside - (timing ? sample[DECODE] : 0) : -1;
}

static void read_shape(struct tec_probe_times *out, const msgpack_object *reply)
{
    const msgpack_object *shape = tec_probe_member(tec_probe_member(reply, "actions"), "shape");
    if (!shape || shape->type != MSGPACK_OBJECT_ARRAY || shape->via.array.size < 1)
        return;
    out->rows = (int)number(&shape->via.array.ptr[0], 1.0);
    out->columns = shape->via.array.size > 1 ? (int)number(&shape->via.array.ptr[1], 1.0) : 1;
}

static enum tec_status read_reply(struct tec_probe_times *out, int64_t sample[SAMPLES],
                                  const struct tec_buffer *reply, struct tec_error *err)
{
    msgpack_unpacked one;
    size_t at = 0;
    msgpack_unpacked_init(&one);
    bool good = reply->n && msgpack_unpack_next(&one, (const char *)reply->data, reply->n, &at) ==
                                MSGPACK_UNPACK_SUCCESS;
    good = good && one.data.type == MSGPACK_OBJECT_MAP;
    if (good) {
        read_times(sample, &one.data);
        read_shape(out, &one.data);
    }
    msgpack_unpacked_destroy(&one);
    return good ? TEC_OK : tec_fail(err, TEC_MALFORMED, "the reply is no msgpack map");
}

/* An observation that fits what the server's first message says. */
static enum tec_status pack_drawn(struct tec_buffer *out, const struct tec_probe_options *o,
                                  const struct tec_buffer *metadata, struct tec_heap *heap,
                                  struct tec_error *err)
{
    struct tec_value values[TEC_MAX_INPUTS];
    struct tec_arena arena;
    msgpack_unpacked one;
    size_t at = 0, n = 0;
    msgpack_unpacked_init(&one);
    tec_arena_init(&arena, heap);
    bool good = metadata->n && msgpack_unpack_next(&one, (const char *)metadata->data, metadata->n,
                                                   &at) == MSGPACK_UNPACK_SUCCESS;
    enum tec_status status =
        good ? tec_probe_draw(values, TEC_MAX_INPUTS, &n, &one.data, o->seed, &arena, err)
             : tec_fail(err, TEC_MALFORMED, "its first message is no msgpack");
    if (status == TEC_OK)
        status = pack(out, values, n, err);
    tec_arena_finish(&arena);
    msgpack_unpacked_destroy(&one);
    return tec_context(err, status, "%s", o->url);
}

/* --- the whole -------------------------------------------------------------------------------- */

static int64_t quantile(int64_t (*samples)[SAMPLES], int n, int which, double q)
{
    int64_t sorted[TEC_PROBE_MOST];
    struct tec_samples all = {.n = n, .ns = sorted};
    for (int i = 0; i < n; i++)
        sorted[i] = samples[i][which];
    tec_samples_sort(&all);
    return tec_samples_at(&all, q);
}

static enum tec_status receive(struct tec_client_socket *s, struct tec_buffer *reply,
                               struct tec_error *err)
{
    bool refused;
    TEC_TRY(tec_client_receive(s, reply, &refused, err));
    int n = 0;
    const char *why = tec_client_refusal(reply, &n);
    return !refused ? TEC_OK
                    : tec_fail(err, TEC_MALFORMED, "%s: the server refuses: %.*s", s->url, n, why);
}

static enum tec_status ask(struct tec_probe_times *out, struct tec_client_socket *s,
                           const struct tec_buffer *request, struct tec_buffer *reply,
                           int64_t sample[SAMPLES], struct tec_error *err)
{
    static const struct tec_clock clock = {NULL};
    int64_t begin = tec_clock_now(&clock);
    TEC_TRY(tec_client_send(s, request->data, request->n, err));
    TEC_TRY(receive(s, reply, err));
    sample[CLIENT] = (tec_clock_now(&clock) - begin) / 1000;
    return tec_context(err, read_reply(out, sample, reply, err), "%s", s->url);
}

static void sum_up(struct tec_probe_times *out, int64_t (*samples)[SAMPLES], int n)
{
    out->n = n;
    out->client = quantile(samples, n, CLIENT, 0.5);
    out->client_p99 = quantile(samples, n, CLIENT, 0.99);
    out->wire = quantile(samples, n, WIRE, 0.5);
    out->decode = quantile(samples, n, DECODE, 0.5);
    out->prepare = quantile(samples, n, PREPARE, 0.5);
    out->model = quantile(samples, n, MODEL, 0.5);
    out->finish = quantile(samples, n, FINISH, 0.5);
}

static enum tec_status run(struct tec_probe_times *out, const struct tec_probe_options *o,
                           struct tec_client_socket *s, struct tec_buffer *request,
                           struct tec_buffer *reply, struct tec_heap *heap, struct tec_error *err)
{
    int64_t samples[TEC_PROBE_MOST][SAMPLES];
    TEC_TRY(receive(s, reply, err)); /* the metadata */
    s->wait_ms = o->reply_ms;
    TEC_TRY(o->values ? pack(request, o->values, o->n, err)
                      : pack_drawn(request, o, reply, heap, err));
    TEC_TRY(ask(out, s, request, reply, samples[0], err));
    for (int i = 0; i < o->count; i++)
        TEC_TRY(ask(out, s, request, reply, samples[i], err));
    sum_up(out, samples, o->count);
    return TEC_OK;
}

enum tec_status tec_probe_run(struct tec_probe_times *out, const struct tec_probe_options *options,
                              struct tec_heap *heap, struct tec_error *err)
{
    struct tec_client_socket s;
    struct tec_buffer request = {.heap = heap}, reply = {.heap = heap};
    *out = (struct tec_probe_times){.n = 0};
    TEC_TRY(tec_client_connect(&s, options->url, options->key, options->trust, -1,
                               options->connect_ms, err));
    enum tec_status status = run(out, options, &s, &request, &reply, heap, err);
    tec_client_close(&s);
    tec_buffer_finish(&request);
    tec_buffer_finish(&reply);
    return status;
}

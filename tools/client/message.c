/* message.c - requests of a robot, and replies read token by token. */
#include "tools/client/message.h"

#include "tools/client/values.h"
#include "tools/serve/msgpack_read.h"

#include <math.h>
#include <string.h>

/* --- requests --------------------------------------------------------------------------------- */

static const struct {
    const char *dtype;
    size_t bytes;
} types[] = {[TECTUM_TYPE_TEXT] = {NULL, 1},
             [TECTUM_TYPE_U8] = {"|u1", 1},
             [TECTUM_TYPE_F32] = {"<f4", 4},
             [TECTUM_TYPE_F64] = {"<f8", 8},
             [TECTUM_TYPE_I32] = {"<i4", 4}};

/* Keys of a request that are the client's own: twice in a map, a server may take either. */
enum tec_status tec_client_check_name(const char *name, struct tec_error *err)
{
    static const char *const taken[] = {"tectum", "images", "images/"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(name, taken[i]) == 0)
            return tec_fail(err, TEC_INVALID, "%s: no input of a robot can have this name", name);
    return TEC_OK;
}

static enum tec_status to_wire(struct tec_client_value *to, const struct tectum_value *v,
                               struct tec_error *err)
{
    const char *name = v->name && strlen(v->name) <= TEC_CLIENT_NAME ? v->name : NULL;
    if (!name || !*name || v->type < TECTUM_TYPE_TEXT || v->type > TECTUM_TYPE_I32 || v->rank < 0 ||
        v->rank > 4 || (v->bytes && !v->data))
        return tec_fail(err, TEC_INVALID, "%s: a name of 1 to %d bytes, a type, a rank of 0 to 4",
                        name ? name : "a value", TEC_CLIENT_NAME);
    TEC_TRY(tec_client_check_name(name, err));
    uint64_t bytes = types[v->type].bytes;
    for (int i = 0; i < v->rank; i++) {
        uint64_t most = UINT32_MAX, side = (uint64_t)v->shape[i];
        if (v->shape[i] < 0 || (side && bytes > most / side))
            return tec_fail(err, TEC_INVALID, "%s: axis %d has %lld entries", name, i,
                            (long long)v->shape[i]);
        bytes *= side;
    }
    if (v->bytes > UINT32_MAX || (v->type != TECTUM_TYPE_TEXT && v->bytes != bytes))
        return tec_fail(err, TEC_INVALID, "%s: %zu bytes, its shape has %llu", name, v->bytes,
                        (unsigned long long)bytes);
    *to = (struct tec_client_value){.name = name,
                                    .kind = v->type == TECTUM_TYPE_TEXT ? TEC_CLIENT_TEXT
                                                                        : TEC_CLIENT_ARRAY,
                                    .dtype = types[v->type].dtype,
                                    .rank = v->rank,
                                    .data = v->data,
                                    .bytes = v->bytes};
    memcpy(to->shape, v->shape, sizeof to->shape);
    return TEC_OK;
}

enum tec_status tec_client_pack_observation(struct tec_client_observation *out,
                                            const struct tectum_value *values, size_t n,
                                            struct tec_error *err)
{
    struct tec_client_value wire[TEC_CLIENT_VALUES];
    if (n > TEC_CLIENT_VALUES || (n && !values))
        return tec_fail(err, TEC_INVALID, "%zu values; at most %d are taken", n, TEC_CLIENT_VALUES);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(to_wire(&wire[i], &values[i], err));
    out->bytes.n = 0;
    out->bytes.failed = false;
    out->pairs = tec_client_count_values(wire, n);
    tec_client_put_values(&out->bytes, wire, n);
    return out->bytes.failed ? tec_fail(err, TEC_NO_MEMORY, "no memory for an observation")
                             : TEC_OK;
}

static void put_asked(struct tec_buffer *out, const struct tec_client_asked *a)
{
    tec_client_put_text(out, "tectum");
    tec_client_put_map(out,
                       2U + a->has_obs_ts + a->reset + (a->deadline_ms > 0.0) + (a->seed != NULL));
    tec_client_put_text(out, "session_id");
    tec_client_put_text(out, a->session_id);
    tec_client_put_text(out, "timing");
    tec_client_put_true(out);
    if (a->has_obs_ts) {
        tec_client_put_text(out, "obs_ts");
        tec_client_put_int(out, a->obs_ts);
    }
    if (a->reset) {
        tec_client_put_text(out, "reset");
        tec_client_put_true(out);
    }
    if (a->deadline_ms > 0.0) {
        tec_client_put_text(out, "deadline_ms");
        tec_client_put_number(out, a->deadline_ms);
    }
    if (a->seed) {
        tec_client_put_text(out, "seed");
        tec_client_put_count(out, *a->seed);
    }
}

void tec_client_pack_request(struct tec_buffer *out, const struct tec_client_observation *seen,
                             const struct tec_client_asked *asked)
{
    const struct tec_client_ahead *ahead = &asked->ahead;
    bool guided = asked->rtc == TECTUM_CLIENT_GUIDED;
    double delay = ahead->delay;
    const struct tec_client_value along[2] = {
        {.name = guided ? asked->left_input : asked->given_input,
         .kind = TEC_CLIENT_ARRAY,
         .dtype = "<f8",
         .rank = 2,
         .shape = {ahead->rows, ahead->columns},
         .data = ahead->values,
         .bytes = (size_t)ahead->rows * (size_t)ahead->columns * sizeof(double)},
        {.name = asked->delay_input,
         .kind = TEC_CLIENT_ARRAY,
         .dtype = "<f8",
         .rank = 1,
         .shape = {1},
         .data = &delay,
         .bytes = sizeof delay}};
    size_t n = ahead->rows == 0 ? 0 : guided ? 2 : 1;
    out->n = 0;
    out->failed = false;
    tec_client_put_map(out, seen->pairs + n + 1);
    tec_buffer_bytes(out, seen->bytes.data, seen->bytes.n);
    tec_client_put_values(out, along, n);
    put_asked(out, asked);
}

/* --- replies ---------------------------------------------------------------------------------- */

struct reading {
    struct tec_msgpack at;
    struct tec_client_reply *reply;
    double *actions;
    int most_rows, most_columns;
    struct tec_error *err;
};

/* Call `pair` for each key of a map; it reads the value. */
static enum tec_status
each(struct reading *in, const struct tec_msgpack_token *map,
     enum tec_status (*pair)(struct reading *, const struct tec_msgpack_token *, void *), void *to)
{
    struct tec_msgpack_token key;
    for (uint32_t i = 0; i < map->n; i++) {
        TEC_TRY(tec_msgpack_next(&in->at, &key, in->err));
        TEC_TRY(tec_msgpack_skip(&in->at, &key, in->err));
        TEC_TRY(pair(in, &key, to));
    }
    return TEC_OK;
}

static enum tec_status pass(struct reading *in)
{
    struct tec_msgpack_token value;
    TEC_TRY(tec_msgpack_next(&in->at, &value, in->err));
    return tec_msgpack_skip(&in->at, &value, in->err);
}

/* An array as msgpack-numpy packs it. */
struct array {
    struct tec_msgpack_token data, dtype;
    uint64_t shape[2];
    int rank; /* -1: another one */
};

static enum tec_status read_shape(struct reading *in, struct array *a)
{
    struct tec_msgpack_token list, side;
    TEC_TRY(tec_msgpack_next(&in->at, &list, in->err));
    a->rank = list.kind == TEC_MSGPACK_ARRAY && list.n <= 2 ? (int)list.n : -1;
    if (a->rank < 0)
        return tec_msgpack_skip(&in->at, &list, in->err);
    for (int i = 0; i < a->rank; i++) {
        TEC_TRY(tec_msgpack_next(&in->at, &side, in->err));
        TEC_TRY(tec_msgpack_skip(&in->at, &side, in->err));
        a->shape[i] = side.kind == TEC_MSGPACK_UINT ? side.u : UINT64_MAX;
    }
    return TEC_OK;
}

static enum tec_status array_pair(struct reading *in, const struct tec_msgpack_token *key, void *to)
{
    struct array *a = to;
    if (tec_msgpack_is(key, "shape"))
        return read_shape(in, a);
    struct tec_msgpack_token value;
    TEC_TRY(tec_msgpack_next(&in->at, &value, in->err));
    if (tec_msgpack_is(key, "data"))
        a->data = value;
    if (tec_msgpack_is(key, "dtype"))
        a->dtype = value;
    return tec_msgpack_skip(&in->at, &value, in->err);
}

/* Larger numbers are no robot's, and sums and differences of them would not be finite. */
static const double LARGEST = 1e100;

static enum tec_status copy_actions(struct reading *in, const struct array *a)
{
    bool wide = tec_msgpack_is(&a->dtype, "<f8");
    size_t size = wide ? 8 : 4, n = (size_t)(a->shape[0] * a->shape[1]);
    for (size_t i = 0; i < n; i++) {
        float narrow;
        if (wide)
            memcpy(&in->actions[i], a->data.data + i * size, size);
        else {
            memcpy(&narrow, a->data.data + i * size, size);
            in->actions[i] = (double)narrow;
        }
        if (!(fabs(in->actions[i]) <= LARGEST))
            return tec_fail(in->err, TEC_MALFORMED, "a reply's actions are not finite, or above %g",
                            LARGEST);
    }
    in->reply->rows = (int)a->shape[0];
    in->reply->columns = (int)a->shape[1];
    return TEC_OK;
}

static enum tec_status read_actions(struct reading *in)
{
    struct array a = {.rank = -1};
    struct tec_msgpack_token map;
    TEC_TRY(tec_msgpack_next(&in->at, &map, in->err));
    if (map.kind != TEC_MSGPACK_MAP)
        return tec_fail(in->err, TEC_MALFORMED, "a reply's actions are no array");
    TEC_TRY(each(in, &map, array_pair, &a));
    bool wide = tec_msgpack_is(&a.dtype, "<f8");
    if (a.rank != 2 || a.data.kind != TEC_MSGPACK_BIN ||
        (!wide && !tec_msgpack_is(&a.dtype, "<f4")))
        return tec_fail(in->err, TEC_MALFORMED,
                        "a reply's actions are no rows of float64 or float32");
    if (a.shape[0] > (uint64_t)in->most_rows || a.shape[1] > (uint64_t)in->most_columns)
        return tec_fail(in->err, TEC_SHAPE,
                        "a reply has actions [%llu, %llu], there is room for [%d, %d]: raise "
                        "max_rows or max_columns",
                        (unsigned long long)a.shape[0], (unsigned long long)a.shape[1],
                        in->most_rows, in->most_columns);
    if (a.data.n != a.shape[0] * a.shape[1] * (wide ? 8 : 4))
        return tec_fail(in->err, TEC_MALFORMED, "a reply's actions have %u bytes", a.data.n);
    return a.shape[0] && a.shape[1] ? copy_actions(in, &a) : TEC_OK;
}

static enum tec_status stamp_pair(struct reading *in, const struct tec_msgpack_token *key, void *to)
{
    struct tec_msgpack_token value;
    int *seen = to;
    bool received = tec_msgpack_is(key, "received_ts"), left = tec_msgpack_is(key, "left_ts");
    TEC_TRY(tec_msgpack_next(&in->at, &value, in->err));
    if ((received || left) && value.kind == TEC_MSGPACK_UINT && value.u <= INT64_MAX) {
        *(received ? &in->reply->received_ts : &in->reply->left_ts) = (int64_t)value.u;
        *seen |= received ? 1 : 2;
    }
    return tec_msgpack_skip(&in->at, &value, in->err);
}

static enum tec_status told_pair(struct reading *in, const struct tec_msgpack_token *key, void *to)
{
    struct tec_client_reply *r = to;
    struct tec_msgpack_token value;
    int seen = 0;
    TEC_TRY(tec_msgpack_next(&in->at, &value, in->err));
    if (tec_msgpack_is(key, "source") && value.kind == TEC_MSGPACK_STR) {
        r->fresh = tec_msgpack_is(&value, "fresh");
        r->stopped = tec_msgpack_is(&value, "stopped");
    }
    if (tec_msgpack_is(key, "timing") && value.kind == TEC_MSGPACK_MAP) {
        TEC_TRY(each(in, &value, stamp_pair, &seen));
        r->has_stamps = seen == 3;
        return TEC_OK;
    }
    return tec_msgpack_skip(&in->at, &value, in->err);
}

static enum tec_status reply_pair(struct reading *in, const struct tec_msgpack_token *key, void *to)
{
    struct tec_client_reply *r = to;
    bool actions = tec_msgpack_is(key, "actions");
    r->is_reply = r->is_reply || actions || tec_msgpack_is(key, "policy_timing");
    if (actions)
        return read_actions(in);
    struct tec_msgpack ahead = in->at;
    struct tec_msgpack_token value;
    TEC_TRY(tec_msgpack_next(&ahead, &value, in->err));
    if (!tec_msgpack_is(key, "tectum") || value.kind != TEC_MSGPACK_MAP)
        return pass(in);
    in->at = ahead;
    return each(in, &value, told_pair, r);
}

enum tec_status tec_client_read_reply(struct tec_client_reply *reply, double *actions,
                                      int most_rows, int most_columns, const void *message,
                                      size_t n, struct tec_error *err)
{
    struct tec_msgpack_token map;
    struct reading in = {.reply = reply,
                         .actions = actions,
                         .most_rows = most_rows,
                         .most_columns = most_columns,
                         .err = err};
    *reply = (struct tec_client_reply){.fresh = true};
    tec_msgpack_open(&in.at, message, n);
    TEC_TRY(tec_msgpack_next(&in.at, &map, err));
    if (map.kind != TEC_MSGPACK_MAP)
        return tec_fail(err, TEC_MALFORMED, "the reply is no map");
    return each(&in, &map, reply_pair, reply);
}

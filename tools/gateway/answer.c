/* answer.c - finds the actions in a reply, and what it says of them. */
#include "tools/gateway/answer.h"

#include "tools/serve/msgpack_numpy.h"

#include <stdio.h>

static enum tec_status read_told(struct tec_gateway_answer *out, struct tec_msgpack *r,
                                 uint32_t pairs, struct tec_error *err)
{
    struct tec_msgpack_token key, t;
    for (uint32_t i = 0; i < pairs; i++) {
        TEC_TRY(tec_msgpack_next(r, &key, err));
        TEC_TRY(tec_msgpack_next(r, &t, err));
        if (tec_msgpack_is(&key, "source") && t.kind == TEC_MSGPACK_STR)
            snprintf(out->source, sizeof out->source, "%.*s", (int)(t.n < 15 ? t.n : 15),
                     (const char *)t.data);
        if (tec_msgpack_is(&key, "missed") && t.kind == TEC_MSGPACK_BOOL)
            out->missed = t.u;
        if (tec_msgpack_is(&key, "left_out") && t.kind == TEC_MSGPACK_BOOL)
            out->left_out = t.u;
        TEC_TRY(tec_msgpack_skip(r, &t, err));
    }
    return TEC_OK;
}

static enum tec_status read_reply(struct tec_gateway_answer *out, const struct tec_buffer *reply,
                                  struct tec_arena *arena, struct tec_error *err)
{
    struct tec_msgpack r;
    struct tec_msgpack_token map, key, t;
    enum tec_numpy_found found;
    tec_msgpack_open(&r, reply->data, reply->n);
    TEC_TRY(tec_msgpack_next(&r, &map, err));
    for (uint32_t i = 0; map.kind == TEC_MSGPACK_MAP && i < map.n; i++) {
        TEC_TRY(tec_msgpack_next(&r, &key, err));
        TEC_TRY(tec_msgpack_next(&r, &t, err));
        if (tec_msgpack_is(&key, "actions"))
            TEC_TRY(tec_numpy_read(&out->actions, &found, &r, &t, "actions", 0, arena, err));
        else if (tec_msgpack_is(&key, "tectum") && t.kind == TEC_MSGPACK_MAP)
            TEC_TRY(read_told(out, &r, t.n, err));
        else
            TEC_TRY(tec_msgpack_skip(&r, &t, err));
    }
    return TEC_OK;
}

enum tec_status tec_gateway_answer_read(struct tec_gateway_answer *out,
                                        const struct tec_buffer *reply, struct tec_arena *arena,
                                        struct tec_error *err)
{
    *out = (struct tec_gateway_answer){.source = "fresh"};
    TEC_TRY(read_reply(out, reply, arena, err));
    if (!out->actions.data)
        return tec_fail(err, TEC_NOT_FOUND, "the pipeline has no actions for this request");
    if (out->actions.kind != TEC_VALUE_F64 || out->actions.rank != 2)
        return tec_fail(err, TEC_MALFORMED, "the server's actions are no float64 [rows, columns]");
    return out->actions.shape[0] > 0
               ? TEC_OK
               : tec_fail(err, TEC_TIME, "there are no actions for this request: %s", out->source);
}

/* groot_reply.c - what GR00T's clients are answered. */
#include "base/json_text.h"
#include "tools/gateway/answer.h"
#include "tools/gateway/groot.h"
#include "tools/gateway/npy.h"

#include <jansson.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_text(msgpack_packer *p, const char *text)
{
    msgpack_pack_str_with_body(p, text, strlen(text));
}

static void put_bytes(msgpack_packer *p, const char *text)
{
    msgpack_pack_bin_with_body(p, text, strlen(text));
}

/* --- actions ---------------------------------------------------------------------------------- */

/* Columns of a chunk: a part of the action. */
struct part {
    const struct tec_value *actions;
    int64_t from, columns;
};

static void put_numbers(msgpack_packer *p, const struct part *part)
{
    const uint8_t *at = part->actions->data;
    int64_t all = part->actions->shape[1];
    for (int64_t row = 0; row < part->actions->shape[0]; row++)
        for (int64_t c = 0; c < part->columns; c++) {
            double x;
            memcpy(&x, at + (row * all + part->from + c) * (int64_t)sizeof x, sizeof x);
            const float f = (float)x;
            msgpack_pack_bin_body(p, &f, sizeof f);
        }
}

static void put_array(msgpack_packer *p, const struct part *part,
                      const struct tec_groot_asked *asked)
{
    const int64_t all[3] = {1, part->actions->shape[0], part->columns};
    const int64_t *shape = asked->nested ? all : all + 1;
    int axes = asked->nested ? 3 : 2;
    size_t bytes = (size_t)(all[1] * all[2]) * sizeof(float);
    if (!asked->packed) {
        uint8_t head[TEC_NPY_HEAD];
        tec_npy_head(head, shape, axes);
        msgpack_pack_map(p, 2);
        put_text(p, "__ndarray_class__");
        msgpack_pack_true(p);
        put_text(p, "as_npy");
        msgpack_pack_bin(p, sizeof head + bytes);
        msgpack_pack_bin_body(p, head, sizeof head);
        put_numbers(p, part);
        return;
    }
    msgpack_pack_map(p, 5);
    put_bytes(p, "nd");
    msgpack_pack_true(p);
    put_bytes(p, "type");
    put_text(p, "<f4");
    put_bytes(p, "kind");
    put_bytes(p, "");
    put_bytes(p, "shape");
    msgpack_pack_array(p, (size_t)axes);
    for (int i = 0; i < axes; i++)
        msgpack_pack_int64(p, shape[i]);
    put_bytes(p, "data");
    msgpack_pack_bin(p, bytes);
    put_numbers(p, part);
}

/* Parts of the action; without names of its columns it is one part, "actions". */
static int count_outputs(const struct tec_robot *r)
{
    return r->n_outputs > 0 ? r->n_outputs : 1;
}

static const char *output_at(const struct tec_robot *r, int i)
{
    return r->n_outputs > 0 ? r->outputs[i].name : "actions";
}

static void put_parts(msgpack_packer *p, const struct tec_groot_asked *asked,
                      const struct tec_robot *r, const struct tec_value *actions)
{
    struct part part = {.actions = actions};
    msgpack_pack_map(p, (size_t)count_outputs(r));
    for (int i = 0; i < count_outputs(r); i++) {
        char name[256];
        snprintf(name, sizeof name, "%s%.200s", asked->nested ? "" : "action.", output_at(r, i));
        part.columns = r->n_outputs > 0 ? r->outputs[i].size : actions->shape[1];
        put_text(p, name);
        put_array(p, &part, asked);
        part.from += part.columns;
    }
}

enum tec_status tec_groot_reply(struct tec_buffer *out, const struct tec_groot_asked *asked,
                                const struct tec_groot_robot *robot, const struct tec_buffer *reply,
                                struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_robot *r = robot->names.robot;
    struct tec_gateway_answer answer;
    msgpack_packer p;
    TEC_TRY(tec_gateway_answer_read(&answer, reply, arena, err));
    if (r->n_outputs > 0 && answer.actions.shape[1] != r->n_actions)
        return tec_fail(err, TEC_MALFORMED, "the server's actions have %lld columns, not %d",
                        (long long)answer.actions.shape[1], r->n_actions);
    msgpack_packer_init(&p, out, tec_buffer_write);
    if (asked->nested)
        msgpack_pack_array(&p, 2);
    put_parts(&p, asked, r, &answer.actions);
    if (asked->nested) {
        msgpack_pack_map(&p, 2U + answer.left_out);
        put_text(&p, "source");
        put_text(&p, answer.source);
        put_text(&p, "missed");
        answer.missed ? msgpack_pack_true(&p) : msgpack_pack_false(&p);
        if (answer.left_out) {
            put_text(&p, "left_out");
            msgpack_pack_true(&p);
        }
    }
    return out->failed ? tec_fail(err, TEC_NO_MEMORY, "no memory for a reply") : TEC_OK;
}

/* --- the other endpoints ---------------------------------------------------------------------- */

void tec_groot_pong(struct tec_buffer *out)
{
    msgpack_packer p;
    msgpack_packer_init(&p, out, tec_buffer_write);
    msgpack_pack_map(&p, 2);
    put_text(&p, "status");
    put_text(&p, "ok");
    put_text(&p, "message");
    put_text(&p, "Server is running");
}

void tec_groot_was_reset(struct tec_buffer *out)
{
    msgpack_packer p;
    msgpack_packer_init(&p, out, tec_buffer_write);
    msgpack_pack_map(&p, 0);
}

void tec_groot_error(struct tec_buffer *out, const char *text, size_t n)
{
    msgpack_packer p;
    msgpack_packer_init(&p, out, tec_buffer_write);
    msgpack_pack_map(&p, 1);
    put_text(&p, "error");
    msgpack_pack_str_with_body(&p, text, n);
}

static json_t *state_keys(const struct tec_robot *r)
{
    json_t *keys = json_array();
    for (int i = 0; i < r->n_parts; i++)
        json_array_append_new(keys, json_string(r->parts[i].input));
    return keys;
}

static json_t *camera_keys(const struct tec_robot *r)
{
    json_t *keys = json_array();
    for (int i = 0; i < r->n_cameras; i++)
        if (r->cameras[i].input)
            json_array_append_new(keys, json_string(r->cameras[i].input));
    return keys;
}

static json_t *action_keys(const struct tec_robot *r)
{
    json_t *keys = json_array();
    for (int i = 0; i < count_outputs(r); i++)
        json_array_append_new(keys, json_sprintf("action.%s", output_at(r, i)));
    return keys;
}

/* {"__ModalityConfig_class__": true, "as_json": {delta_indices, modality_keys}}: of the observation
 * the newest step, of the action all. Takes the keys. */
static void put_modality(msgpack_packer *p, const char *name, json_t *keys, int steps)
{
    json_t *indices = json_array();
    for (int i = 0; i < steps; i++)
        json_array_append_new(indices, json_integer(i));
    json_t *config = json_pack("{s:o, s:o}", "delta_indices", indices, "modality_keys", keys);
    char *text = config ? tec_json_whole(config, 0) : NULL;
    put_text(p, name);
    msgpack_pack_map(p, 2);
    put_text(p, "__ModalityConfig_class__");
    msgpack_pack_true(p);
    put_text(p, "as_json");
    put_text(p, text ? text : "{}");
    free(text);
    json_decref(config);
}

void tec_groot_modality(struct tec_buffer *out, const struct tec_groot_robot *robot)
{
    const struct tec_robot *r = robot->names.robot;
    msgpack_packer p;
    msgpack_packer_init(&p, out, tec_buffer_write);
    msgpack_pack_map(&p, 4);
    put_modality(&p, "video", camera_keys(r), 1);
    put_modality(&p, "state", state_keys(r), 1);
    put_modality(&p, "action", action_keys(r), robot->rows);
    put_modality(&p, "language", json_pack("[s]", r->prompt_input), 1);
}

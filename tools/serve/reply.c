/* reply.c - packs what the server answers, byte for byte as openpi's server packs it. */
#include "tools/serve/reply.h"

#include <msgpack.h>
#include <string.h>

static int put(void *data, const char *bytes, size_t n)
{
    struct tec_reply_buffer *b = data;
    if (b->full || n > b->room - b->n) {
        b->full = true;
        return -1;
    }
    memcpy(b->data + b->n, bytes, n);
    b->n += n;
    return 0;
}

static void put_str(msgpack_packer *p, const char *text, size_t n)
{
    msgpack_pack_str(p, n);
    msgpack_pack_str_body(p, text, n);
}

static void put_key(msgpack_packer *p, const char *text)
{
    put_str(p, text, strlen(text));
}

/* Pack a key as bytes, as msgpack-numpy does. */
static void put_bin_key(msgpack_packer *p, const char *text)
{
    msgpack_pack_bin(p, strlen(text));
    msgpack_pack_bin_body(p, text, strlen(text));
}

/* Returns where the numbers begin. */
static size_t put_array(msgpack_packer *p, const double *x, int rows, int columns)
{
    size_t bytes = (size_t)rows * (size_t)columns * sizeof *x;
    msgpack_pack_map(p, 4);
    put_bin_key(p, "__ndarray__");
    msgpack_pack_true(p);
    put_bin_key(p, "data");
    msgpack_pack_bin(p, bytes);
    size_t at = ((struct tec_reply_buffer *)p->data)->n;
    msgpack_pack_bin_body(p, x, bytes);
    put_bin_key(p, "dtype");
    put_key(p, "<f8");
    put_bin_key(p, "shape");
    msgpack_pack_array(p, 2);
    msgpack_pack_int(p, rows);
    msgpack_pack_int(p, columns);
    return at;
}

static void put_timing(msgpack_packer *p, const struct tec_reply_timing *t)
{
    const struct {
        const char *name;
        int64_t value;
    } all[] = {{"wait_us", t->wait},   {"decode_us", t->decode}, {"prepare_us", t->prepare},
               {"model_us", t->model}, {"finish_us", t->finish}, {"received_ts", t->received},
               {"left_ts", t->left}};
    put_key(p, "timing");
    msgpack_pack_map(p, sizeof all / sizeof all[0]);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        put_key(p, all[i].name);
        msgpack_pack_int64(p, all[i].value);
    }
}

static void put_texts(msgpack_packer *p, const struct tec_reply *r)
{
    put_key(p, "texts");
    msgpack_pack_array(p, (size_t)r->n_texts);
    for (int i = 0; i < r->n_texts; i++) {
        const struct tec_reply_text *t = &r->texts[i];
        msgpack_pack_map(p, 8);
        put_key(p, "stream");
        t->stream ? put_key(p, t->stream) : (void)msgpack_pack_nil(p);
        put_key(p, "node");
        put_key(p, t->node);
        put_key(p, "request");
        msgpack_pack_int64(p, t->request);
        put_key(p, "chunk_id");
        msgpack_pack_int64(p, t->chunk_id);
        put_key(p, "text");
        put_str(p, t->text, t->bytes);
        put_key(p, "tokens");
        msgpack_pack_int(p, t->tokens);
        put_key(p, "text_done");
        t->done ? msgpack_pack_true(p) : msgpack_pack_false(p);
        put_key(p, "reason");
        put_key(p, t->reason);
    }
    put_key(p, "texts_lost");
    msgpack_pack_int(p, r->texts_lost);
}

static void put_extended(msgpack_packer *p, const struct tec_reply *r)
{
    put_key(p, "tectum");
    msgpack_pack_map(p, (r->has_text ? 10U : 5U) + (r->cause != NULL) + (r->limited > 0) +
                            (r->timing != NULL) + (r->has_texts ? 2U : 0U) + r->left_out);
    if (r->has_text) {
        put_key(p, "text");
        put_str(p, r->text, r->text_bytes);
        put_key(p, "text_done");
        r->text_done ? msgpack_pack_true(p) : msgpack_pack_false(p);
        put_key(p, "request");
        msgpack_pack_int64(p, r->request);
        put_key(p, "refused");
        r->refused ? msgpack_pack_true(p) : msgpack_pack_false(p);
        put_key(p, "reason");
        put_key(p, r->reason);
    }
    put_key(p, "chunk_id");
    msgpack_pack_int64(p, r->chunk_id);
    put_key(p, "obs_ts");
    msgpack_pack_int64(p, r->obs_ts);
    put_key(p, "source");
    put_key(p, r->source ? r->source : "fresh");
    if (r->cause) {
        put_key(p, "cause");
        put_key(p, r->cause);
    }
    if (r->limited > 0) {
        put_key(p, "limited");
        msgpack_pack_int(p, r->limited);
    }
    put_key(p, "age_us");
    r->age_us >= 0 ? msgpack_pack_int64(p, r->age_us) : msgpack_pack_nil(p);
    put_key(p, "missed");
    r->missed ? msgpack_pack_true(p) : msgpack_pack_false(p);
    if (r->left_out) {
        put_key(p, "left_out");
        msgpack_pack_true(p);
    }
    if (r->timing)
        put_timing(p, r->timing);
    if (r->has_texts)
        put_texts(p, r);
}

size_t tec_reply_size(int rows, int columns, int actions, size_t text_bytes, int texts,
                      size_t texts_bytes)
{
    enum { NAME = 192, TEXT = 600 }; /* of an array, of a text: names, and what is around it */
    size_t others = actions > 1 ? (size_t)actions - 1 : 0;
    size_t chunk = (size_t)rows * (size_t)columns * sizeof(double);
    return 700 + chunk + others * (chunk + NAME) + text_bytes + (size_t)texts * TEXT + texts_bytes;
}

void tec_reply_pack_text(struct tec_reply_buffer *out, const struct tec_reply_text *text, int lost)
{
    const struct tec_reply r = {.n_texts = 1, .texts = text, .texts_lost = lost};
    msgpack_packer p;
    msgpack_packer_init(&p, out, put);
    msgpack_pack_map(&p, 1);
    put_key(&p, "tectum");
    msgpack_pack_map(&p, 2);
    put_texts(&p, &r);
}

void tec_reply_pack(struct tec_reply_buffer *out, const struct tec_reply *r)
{
    msgpack_packer p;
    msgpack_packer_init(&p, out, put);
    msgpack_pack_map(&p, 2U + (r->actions != NULL) + (unsigned)r->n_others + r->extended);
    if (r->actions) {
        put_key(&p, "actions");
        out->actions_at = put_array(&p, r->actions, r->rows, r->columns);
    }
    for (int i = 0; i < r->n_others; i++) {
        put_key(&p, r->others[i].name);
        put_array(&p, r->others[i].actions, r->others[i].rows, r->others[i].columns);
    }
    put_key(&p, "policy_timing");
    msgpack_pack_map(&p, r->aged ? 3 : 1);
    put_key(&p, "infer_ms");
    msgpack_pack_double(&p, r->policy_ms);
    if (r->aged) {
        put_key(&p, "age_ms");
        msgpack_pack_double(&p, r->age_ms);
        put_key(&p, "age_frames");
        msgpack_pack_int(&p, r->age_frames);
    }
    put_key(&p, "server_timing");
    msgpack_pack_map(&p, r->previous_ms >= 0.0 ? 2 : 1);
    put_key(&p, "infer_ms");
    msgpack_pack_double(&p, r->server_ms);
    if (r->previous_ms >= 0.0) {
        put_key(&p, "prev_total_ms");
        msgpack_pack_double(&p, r->previous_ms);
    }
    if (r->extended)
        put_extended(&p, r);
}

/* Pack JSON. The depth is bounded, because a description's file is read with a bound too. */
static void put_json(msgpack_packer *p, const json_t *json, int depth)
{
    const char *key;
    json_t *value;
    size_t i;
    if (depth > 8) {
        msgpack_pack_nil(p);
        return;
    }
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        msgpack_pack_map(p, json_object_size(json));
        for (void *at = json_object_iter((json_t *)(uintptr_t)json); at;
             at = json_object_iter_next((json_t *)(uintptr_t)json, at)) {
            key = json_object_iter_key(at);
            put_key(p, key);
            put_json(p, json_object_iter_value(at), depth + 1);
        }
        break;
    case JSON_ARRAY:
        msgpack_pack_array(p, json_array_size(json));
        json_array_foreach(json, i, value) put_json(p, value, depth + 1);
        break;
    case JSON_STRING:
        put_str(p, json_string_value(json), json_string_length(json));
        break;
    case JSON_INTEGER:
        msgpack_pack_int64(p, json_integer_value(json));
        break;
    case JSON_REAL:
        msgpack_pack_double(p, json_real_value(json));
        break;
    case JSON_TRUE:
        msgpack_pack_true(p);
        break;
    case JSON_FALSE:
        msgpack_pack_false(p);
        break;
    default:
        msgpack_pack_nil(p);
        break;
    }
}

void tec_reply_pack_json(struct tec_reply_buffer *out, const json_t *json)
{
    msgpack_packer p;
    msgpack_packer_init(&p, out, put);
    if (json)
        put_json(&p, json, 0);
    else
        msgpack_pack_map(&p, 0);
}

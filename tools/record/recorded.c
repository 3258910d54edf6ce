/* recorded.c - reads a recording's messages back as values, ticks and results. Files are hostile.
 */
#include "tools/record/recorded.h"

#include "base/text/base64.h"
#include "graph/transform/picture.h"

#include <string.h>

void tec_recorded_init(struct tec_recorded *r, struct tec_mcap_reader *file, struct tec_heap *heap)
{
    *r = (struct tec_recorded){.file = file};
    for (int i = 0; i < 2 * TEC_MAX_SESSIONS; i++) {
        struct tec_recorded_session *s = &r->sessions[i / 2];
        tec_arena_init(&s->moments[i % 2], heap);
        tec_arena_init(&s->inputs[i % 2].arena, heap);
        s->inputs[i % 2].number = -1;
    }
}

void tec_recorded_finish(struct tec_recorded *r)
{
    for (int i = 0; i < 2 * TEC_MAX_SESSIONS; i++) {
        tec_arena_finish(&r->sessions[i / 2].moments[i % 2]);
        tec_arena_finish(&r->sessions[i / 2].inputs[i % 2].arena);
    }
}

enum tec_status tec_recorded_malformed(const struct tec_mcap_message *m, const char *what,
                                       struct tec_error *err)
{
    return tec_fail(err, TEC_MALFORMED, "message %.*s of frame %u: %s",
                    (int)(m->topic.n < 100 ? m->topic.n : 100), m->topic.text, m->sequence, what);
}

/* --- values ----------------------------------------------------------------------------------- */

static uint32_t word_at(const uint8_t *data, size_t at)
{
    return (uint32_t)data[at] | (uint32_t)data[at + 1] << 8 | (uint32_t)data[at + 2] << 16 |
           (uint32_t)data[at + 3] << 24;
}

/* A text of CDR at *at, counted from behind the four bytes in front; false: it is not whole. */
static bool cdr_text(const uint8_t *data, size_t n, size_t *at, const char **text)
{
    *at = (*at + 3) & ~(size_t)3;
    if (*at + 4 > n)
        return false;
    uint32_t bytes = word_at(data, *at);
    *at += 4;
    *text = (const char *)data + *at;
    if (bytes == 0 || bytes > n - *at || data[*at + bytes - 1] != '\0')
        return false;
    *at += bytes;
    return true;
}

static enum tec_status read_image(struct tec_value *v, const struct tec_mcap_message *m,
                                  struct tec_error *err)
{
    const uint8_t *data = m->data + 4;
    size_t n = m->n > 4 ? m->n - 4 : 0, at = 8;
    const char *name, *encoding;
    if (n < 8 || m->data[1] != 1 || !cdr_text(data, n, &at, &name))
        return tec_recorded_malformed(m, "this is no image in little-endian CDR", err);
    at = (at + 3) & ~(size_t)3;
    if (at + 8 > n)
        return tec_recorded_malformed(m, "the image has no size", err);
    uint32_t h = word_at(data, at), w = word_at(data, at + 4);
    at += 8;
    if (!cdr_text(data, n, &at, &encoding) || ((at + 1 + 3) & ~(size_t)3) + 8 > n)
        return tec_recorded_malformed(m, "the image has no encoding", err);
    int channels = strcmp(encoding, "rgb8") == 0 ? 3 : strcmp(encoding, "mono8") == 0 ? 1 : 0;
    at = ((at + 1 + 3) & ~(size_t)3) + 4;
    uint32_t bytes = word_at(data, at);
    at += 4;
    if (!channels || bytes > n - at || bytes != (uint64_t)h * w * (unsigned)channels)
        return tec_recorded_malformed(m, "the image's bytes are not those of its size and encoding",
                                      err);
    *v = (struct tec_value){.kind = TEC_VALUE_U8,
                            .rank = 3,
                            .shape = {h, w, channels},
                            .data = data + at,
                            .bytes = bytes};
    return TEC_OK;
}

static bool put_number(uint8_t *to, enum tec_value_kind kind, const json_t *json)
{
    double d = json_number_value(json);
    if (!json_is_number(json))
        return false;
    if (kind == TEC_VALUE_F64)
        memcpy(to, &d, sizeof d);
    float f = (float)d;
    if (kind == TEC_VALUE_F32)
        memcpy(to, &f, sizeof f);
    json_int_t whole = json_integer_value(json);
    int32_t i = (int32_t)whole;
    if (kind == TEC_VALUE_I32)
        memcpy(to, &i, sizeof i);
    if (kind == TEC_VALUE_U8)
        *to = (uint8_t)whole;
    return true;
}

static bool read_type(enum tec_value_kind *kind, const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    for (int i = TEC_VALUE_TEXT; type && i <= TEC_VALUE_I32; i++)
        if (strcmp(tec_value_word((enum tec_value_kind)i), type) == 0) {
            *kind = (enum tec_value_kind)i;
            return true;
        }
    return false;
}

/* The numbers of an array, one by one or in base64. */
static bool read_numbers(struct tec_value *v, const json_t *json, struct tec_arena *arena)
{
    const json_t *shape = json_object_get(json, "shape"), *values = json_object_get(json, "values");
    const json_t *packed = json_object_get(json, "base64");
    const char *digits = json_string_value(packed);
    size_t count = 1, size = tec_value_size(v->kind), n;
    v->rank = (int)json_array_size(shape);
    if (v->rank > 4)
        return false;
    for (int i = 0; i < v->rank; i++) {
        v->shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
        if (v->shape[i] < 0 || v->shape[i] > 1 << 28 || count * (size_t)v->shape[i] > 1 << 28)
            return false;
        count *= (size_t)v->shape[i];
    }
    uint8_t *data = tec_arena_push(arena, count + 1, size, 8);
    v->data = data;
    v->bytes = count * size;
    if (!data ||
        (digits && !tec_base64_read(data, v->bytes, digits, json_string_length(packed), &n)) ||
        (digits && n != v->bytes) || (!digits && json_array_size(values) != count))
        return false;
    for (size_t i = 0; i < count && !digits; i++)
        if (!put_number(data + i * size, v->kind, json_array_get(values, i)))
            return false;
    return true;
}

enum tec_status tec_recorded_value(struct tec_value *v, const struct tec_mcap_message *m,
                                   struct tec_arena *arena, struct tec_error *err)
{
    json_t *json = json_loadb((const char *)m->data, m->n, 0, NULL);
    *v = (struct tec_value){.data = ""};
    bool good = json_is_object(json) && read_type(&v->kind, json);
    const char *text = json_string_value(json_object_get(json, "text"));
    if (good && v->kind == TEC_VALUE_TEXT) {
        v->bytes = text ? json_string_length(json_object_get(json, "text")) : 0;
        v->data = tec_arena_strndup(arena, text ? text : "", v->bytes);
        good = text && v->data;
    } else if (good) {
        good = read_numbers(v, json, arena);
    }
    json_decref(json);
    return good ? TEC_OK : tec_recorded_malformed(m, "this is no input {type, shape, values}", err);
}

/* --- topics ----------------------------------------------------------------------------------- */

/* "/session2/inputs/NAME" or "/inputs/NAME": which session and name; false: another topic. */
static bool is_input(struct tec_mcap_name topic, int *session, const char **name, size_t *n)
{
    static const char *const folders[] = {"/images/", "/inputs/"};
    const char *at = topic.text, *end = topic.text + topic.n;
    *session = 0;
    if (topic.n > 9 && memcmp(at, "/session", 8) == 0) {
        for (at += 8; at < end && *at >= '0' && *at <= '9' && *session < TEC_MAX_SESSIONS; at++)
            *session = 10 * *session + (*at - '0');
    }
    for (int i = 0; i < 2; i++)
        if (end - at > 8 && memcmp(at, folders[i], 8) == 0) {
            *name = at + 8;
            *n = (size_t)(end - at) - 8;
            return *session < TEC_MAX_SESSIONS;
        }
    return false;
}

static enum tec_status take_input(struct tec_recorded *r, const struct tec_mcap_message *m,
                                  int session, const char *name, size_t n, struct tec_error *err)
{
    struct tec_recorded_session *s = &r->sessions[session];
    struct tec_recorded_inputs *in = &s->inputs[!s->seen];
    if (in->number != m->sequence) {
        tec_arena_finish(&in->arena);
        in->n = 0;
        in->number = m->sequence;
    }
    if (in->n == TEC_MAX_INPUTS)
        return tec_recorded_malformed(m, "more inputs than a frame may have", err);
    struct tec_value *v = &in->values[in->n];
    TEC_TRY(tec_mcap_is(m->encoding, "cdr") ? read_image(v, m, err)
                                            : tec_recorded_value(v, m, &in->arena, err));
    v->name = tec_arena_strndup(&in->arena, name, n);
    in->n += v->name != NULL;
    return v->name ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a recorded input");
}

/* --- ticks ------------------------------------------------------------------------------------ */

static void read_asks(struct tec_arena *arena, struct tec_input_asks *asks, const json_t *json)
{
    const json_t *list = json_object_get(json, "asks"), *ids = json_object_get(json, "cancels");
    *asks = (struct tec_input_asks){.n_asks = 0};
    for (size_t i = 0; i < json_array_size(list) && asks->n_asks < TEC_MAX_ASKS; i++) {
        const json_t *one = json_array_get(list, i);
        const char *node = json_string_value(json_object_get(one, "node"));
        asks->asks[asks->n_asks++] =
            (struct tec_input_ask){tec_arena_strdup(arena, node ? node : ""),
                                   (int)json_integer_value(json_object_get(one, "max_tokens")),
                                   (int)json_integer_value(json_object_get(one, "prio"))};
    }
    for (size_t i = 0; i < json_array_size(ids) && asks->n_cancels < TEC_MAX_ASKS; i++)
        asks->cancels[asks->n_cancels++] = json_integer_value(json_array_get(ids, i));
}

static int64_t number(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

/* Numbers of frames are subtracted and added to later on: this is far beyond a robot's life. */
static const int64_t MOST_FRAMES = (int64_t)1 << 53;

static enum tec_status take_tick(struct tec_recorded *r, struct tec_recorded_frame *f,
                                 const struct tec_mcap_message *m, const json_t *json,
                                 struct tec_error *err)
{
    const char *reset = json_string_value(json_object_get(json, "reset"));
    const json_t *noise = json_object_get(json, "noise");
    int64_t session = number(json, "session");
    int64_t at = number(json, "number"), frame = number(json, "frame"),
            ahead = number(json, "ahead");
    if (session < 0 || session >= TEC_MAX_SESSIONS || at < 0 || at > MOST_FRAMES || frame < 0 ||
        frame > MOST_FRAMES || ahead < -MOST_FRAMES || ahead > MOST_FRAMES || !reset)
        return tec_recorded_malformed(m, "this is no tick", err);
    struct tec_recorded_session *s = &r->sessions[session];
    int64_t sequence = at & UINT32_MAX;
    bool observed = json_is_true(json_object_get(json, "observed"));
    if (observed && s->inputs[!s->seen].number == sequence)
        s->seen = !s->seen;
    const struct tec_recorded_inputs *in = &s->inputs[s->seen];
    if (observed && in->number != sequence)
        return tec_recorded_malformed(m, "the inputs of this frame are missing", err);
    struct tec_arena *arena = &s->moments[s->moment = !s->moment];
    tec_arena_finish(arena);
    *f = (struct tec_recorded_frame){
        .tick_us = number(json, "tick_us"),
        .reset = strcmp(reset, "all") == 0       ? TEC_RESET_ALL
                 : strcmp(reset, "session") == 0 ? TEC_RESET_SESSION
                                                 : TEC_RESET_NONE,
        .n_noise = json_array_size(noise),
        .again = {.session = (int)session,
                  .number = at,
                  .frame = frame,
                  .ahead = ahead,
                  .counted = number(json, "counted"),
                  .spawn = (unsigned)number(json, "spawn"),
                  .mute = (unsigned)number(json, "mute"),
                  .rests = json_is_true(json_object_get(json, "rests")),
                  .given = {observed ? in->values : NULL, observed ? in->n : 0}}};
    read_asks(arena, &f->asks, json);
    float *drawn = f->n_noise ? TEC_NEW(arena, f->n_noise, float) : NULL;
    for (size_t i = 0; drawn && i < f->n_noise; i++)
        drawn[i] = (float)json_number_value(json_array_get(noise, i));
    f->again.noise = drawn;
    return TEC_OK;
}

static enum tec_recorded_message kind_of(struct tec_mcap_name topic, char node[120])
{
    static const struct {
        const char *front; /* the topic; where it ends in a slash, a node follows */
        enum tec_recorded_message what;
    } kinds[] = {{"/tectum/ticks", TEC_RECORDED_TICK},
                 {"/tectum/frames", TEC_RECORDED_FRAME},
                 {"/tectum/safety", TEC_RECORDED_SAFETY},
                 {"/tectum/not_begun", TEC_RECORDED_NOT_BEGUN},
                 {"/tectum/decisions", TEC_RECORDED_DECISIONS},
                 {"/tectum/actions/", TEC_RECORDED_ACTIONS},
                 {"/tectum/text/", TEC_RECORDED_TEXT}};
    node[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t n = strlen(kinds[i].front), rest = topic.n - n;
        bool folder = kinds[i].front[n - 1] == '/';
        if (topic.n < n || memcmp(topic.text, kinds[i].front, n) != 0 || rest > (folder ? 100 : 0))
            continue;
        memcpy(node, topic.text + n, rest);
        node[rest] = '\0';
        return kinds[i].what;
    }
    return TEC_RECORDED_OTHER;
}

enum tec_status tec_recorded_next(struct tec_recorded *r, enum tec_recorded_message *what,
                                  struct tec_recorded_frame *frame, json_t **json, char node[120],
                                  bool *more, struct tec_error *err)
{
    struct tec_mcap_message m;
    const char *name;
    size_t n;
    int session;
    *json = NULL;
    *what = TEC_RECORDED_OTHER;
    *more = tec_mcap_next(r->file, &m);
    if (!*more)
        return TEC_OK;
    if (is_input(m.topic, &session, &name, &n))
        return take_input(r, &m, session, name, n, err);
    *what = kind_of(m.topic, node);
    if (*what == TEC_RECORDED_OTHER)
        return TEC_OK;
    TEC_TRY(tec_recorded_object(json, &m, err));
    return *what == TEC_RECORDED_TICK ? take_tick(r, frame, &m, *json, err) : TEC_OK;
}

enum tec_status tec_recorded_object(json_t **json, const struct tec_mcap_message *m,
                                    struct tec_error *err)
{
    *json = json_loadb((const char *)m->data, m->n, 0, NULL);
    return json_is_object(*json) ? TEC_OK
                                 : tec_recorded_malformed(m, "this is no JSON object", err);
}

enum tec_status tec_recorded_not_begun(int64_t out[TEC_CAUSES], const json_t *json,
                                       struct tec_error *err)
{
    const json_t *causes = json_object_get(json, "causes");
    for (int i = 0; i < TEC_CAUSES; i++) {
        const char *cause = tec_cause_name((enum tec_cause)i);
        out[i] = json_integer_value(json_object_get(causes, cause));
        if (out[i] < 0 || out[i] > INT64_MAX / TEC_CAUSES)
            return tec_fail(err, TEC_MALFORMED,
                            "message /tectum/not_begun: %lld misses of cause '%s'",
                            (long long)out[i], cause);
    }
    return TEC_OK;
}

bool tec_recorded_whole(const char *reason)
{
    static const char *const ends[] = {"eos", "length", "stop", "choice", "ranked"};
    for (size_t i = 0; reason && i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(ends[i], reason) == 0)
            return true;
    return false;
}

/* ros2_messages.c - messages of a recording as messages of ROS 2. Recordings are hostile: what is
 * not as a recording has it is an error, or a zero where nothing depends on it. */
#include "base/text/utf8.h"
#include "graph/transform/picture.h"
#include "tools/record/cdr.h"
#include "tools/record/recording_own.h"
#include "tools/record/ros2_own.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int64_t whole(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

static const char *word(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : "";
}

/* A text that was cut may end amid a character, which no reader of the bag takes. */
static void put_cut_text(struct tec_buffer *b, const char *text)
{
    tec_cdr_text_n(b, text, tec_utf8_check(text, strlen(text)));
}

/* The names of n columns: those that were given, if there are as many. */
static void put_names(struct tec_ros2_bag *bag, size_t n, const char *name)
{
    const char *last = strrchr(name, '/');
    char front[101], numbered[160];
    snprintf(front, sizeof front, "%s", last ? last + 1 : name);
    front[tec_utf8_check(front, strlen(front))] = '\0';
    bag->counts->named += n == (size_t)bag->n_joints;
    tec_cdr_u32(&bag->message, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        if (n == (size_t)bag->n_joints) {
            tec_cdr_text_n(&bag->message, bag->joints[i], (size_t)bag->joint_bytes[i]);
            continue;
        }
        snprintf(numbered, sizeof numbered, "%s_%zu", front, i);
        tec_cdr_text(&bag->message, numbered);
    }
}

enum tec_status tec_ros2_fill_image(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                                    const json_t *json, const char *name,
                                    const struct tec_ros2_type **type, struct tec_error *err)
{
    (void)json, (void)name;
    if (!tec_mcap_is(m->encoding, "cdr"))
        return tec_recorded_malformed(m, "this is no image in CDR", err);
    bag->message.n = 0;
    tec_buffer_bytes(&bag->message, m->data, m->n);
    *type = &tec_ros2_image;
    return TEC_OK;
}

/* --- inputs ----------------------------------------------------------------------------------- */

static void put_joint_state(struct tec_ros2_bag *bag, const struct tec_value *v, uint64_t time_ns,
                            const char *name)
{
    struct tec_buffer *b = &bag->message;
    size_t n = (size_t)v->shape[0];
    tec_cdr_header(b, time_ns, "");
    put_names(bag, n, name);
    tec_cdr_u32(b, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        tec_cdr_f64(b, tec_recording_number(v, i));
    tec_cdr_u32(b, 0); /* no velocity */
    tec_cdr_u32(b, 0); /* no effort */
}

static void put_numbers(struct tec_ros2_bag *bag, const struct tec_value *v)
{
    struct tec_buffer *b = &bag->message;
    size_t n = v->bytes / tec_value_size(v->kind), stride = n;
    tec_cdr_u32(b, (uint32_t)v->rank);
    for (int i = 0; i < v->rank; i++) {
        tec_cdr_text(b, "");
        tec_cdr_u32(b, (uint32_t)v->shape[i]);
        tec_cdr_u32(b, (uint32_t)stride);
        stride = v->shape[i] ? stride / (size_t)v->shape[i] : 0;
    }
    tec_cdr_u32(b, 0); /* data_offset */
    tec_cdr_u32(b, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        tec_cdr_f64(b, tec_recording_number(v, i));
}

enum tec_status tec_ros2_fill_input(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                                    const json_t *json, const char *name,
                                    const struct tec_ros2_type **type, struct tec_error *err)
{
    struct tec_value v;
    (void)json;
    TEC_TRY(tec_recorded_value(&v, m, &bag->arena, err));
    tec_cdr_begin(&bag->message);
    if (v.kind == TEC_VALUE_TEXT) {
        tec_cdr_text_n(&bag->message, v.data, v.bytes);
        *type = &tec_ros2_text;
    } else if (v.rank == 1) {
        put_joint_state(bag, &v, m->time_ns, name);
        *type = &tec_ros2_joint_state;
    } else {
        put_numbers(bag, &v);
        *type = &tec_ros2_numbers;
    }
    return TEC_OK;
}

/* --- actions ---------------------------------------------------------------------------------- */

/* From a row to the next one: the robot's rate, else the frame's period. */
static uint64_t row_ns(const struct tec_ros2_bag *bag, const char *node)
{
    const json_t *chunks = json_object_get(bag->about, "chunks");
    int64_t us = 0;
    for (size_t i = 0; i < json_array_size(chunks); i++)
        if (strcmp(word(json_array_get(chunks, i), "node"), node) == 0)
            us = whole(json_array_get(chunks, i), "row_us");
    us = us > 0 ? us : whole(bag->about, "period_us");
    return us > 0 && us < 1000000000 ? (uint64_t)us * 1000 : 0;
}

static void put_point(struct tec_buffer *b, const json_t *row, uint64_t from_start_ns)
{
    size_t n = json_array_size(row);
    tec_cdr_u32(b, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        const json_t *number = json_array_get(row, i);
        tec_cdr_f64(b, json_is_number(number) ? json_number_value(number) : (double)NAN);
    }
    for (int i = 0; i < 3; i++) /* velocities, accelerations, effort */
        tec_cdr_u32(b, 0);
    tec_cdr_time(b, from_start_ns);
}

/* The trajectory begins at the observation: its row i is for that moment and i rows. */
enum tec_status tec_ros2_fill_actions(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                                      const json_t *json, const char *name,
                                      const struct tec_ros2_type **type, struct tec_error *err)
{
    const json_t *rows = json_object_get(json, "actions");
    size_t n = json_array_size(rows), columns = json_array_size(json_array_get(rows, 0));
    uint64_t age = (uint64_t)whole(json, "age_us"), period = row_ns(bag, name);
    for (size_t i = 0; i < n; i++)
        if (json_array_size(json_array_get(rows, i)) != columns)
            return tec_recorded_malformed(m, "the actions are no rows of equal length", err);
    if (n == 0 || columns == 0) {
        bag->counts->left_out++;
        return TEC_OK;
    }
    bool aged = age < m->time_ns / 1000;
    tec_cdr_begin(&bag->message);
    tec_cdr_header(&bag->message, aged ? m->time_ns - age * 1000 : m->time_ns, "");
    put_names(bag, columns, name);
    tec_cdr_u32(&bag->message, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        put_point(&bag->message, json_array_get(rows, i), i * period);
    *type = &tec_ros2_trajectory;
    return TEC_OK;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* The text that a token belongs to; one that has not ended gives its place to the 64th after it. */
static struct tec_ros2_open_text *open_text(struct tec_ros2_bag *bag, int source,
                                            const json_t *json)
{
    int64_t session = whole(json, "session"), request = whole(json, "request");
    for (int i = 0; i < TEC_ROS2_TEXTS; i++) {
        struct tec_ros2_open_text *t = &bag->texts[i];
        if (t->used && t->source == source && t->session == session && t->request == request)
            return t;
    }
    struct tec_ros2_open_text *t = &bag->texts[bag->oldest];
    bag->oldest = (bag->oldest + 1) % TEC_ROS2_TEXTS;
    t->text.heap = bag->heap;
    t->text.n = 0;
    t->session = session;
    t->request = request;
    t->source = source;
    t->used = true;
    return t;
}

enum tec_status tec_ros2_fill_text(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                                   const json_t *json, const char *name,
                                   const struct tec_ros2_type **type, struct tec_error *err)
{
    struct tec_ros2_open_text *t = open_text(bag, m->channel, json);
    const char *piece = word(json, "text");
    (void)name;
    tec_buffer_bytes(&t->text, piece, strlen(piece));
    if (t->text.failed)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a recorded text");
    if (!json_is_true(json_object_get(json, "done")))
        return TEC_OK;
    tec_cdr_begin(&bag->message);
    tec_cdr_text_n(&bag->message, t->text.n ? (const char *)t->text.data : "", t->text.n);
    t->used = false;
    *type = &tec_ros2_text;
    return TEC_OK;
}

/* --- frames and misses ------------------------------------------------------------------------ */

static void put_pair(struct tec_buffer *b, const char *key, const json_t *value)
{
    char number[40] = "";
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" PRId64, (int64_t)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(number, sizeof number, "%.6g", json_real_value(value));
    tec_cdr_text(b, key);
    tec_cdr_text(b, json_is_string(value) ? json_string_value(value) : number);
}

enum tec_status tec_ros2_fill_frame(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                                    const json_t *json, const char *name,
                                    const struct tec_ros2_type **type, struct tec_error *err)
{
    static const char *const keys[] = {"frame",  "session",   "policy",     "cause",
                                       "age_us", "slack_us",  "overrun_us", "tokens",
                                       "rows",   "in_flight", "frame_ms"};
    enum { OK = 0, WARN = 1, KEYS = sizeof keys / sizeof keys[0] };
    struct tec_buffer *b = &bag->message;
    bool missed = json_is_true(json_object_get(json, "missed"));
    char text[120] = "in time", who[120];
    (void)name, (void)err;
    if (missed)
        snprintf(text, sizeof text, "missed its deadline, by %" PRId64 " us: %.60s",
                 whole(json, "overrun_us"), word(json, "cause"));
    tec_cdr_begin(b);
    tec_cdr_header(b, m->time_ns, "");
    tec_cdr_u32(b, 1);
    tec_cdr_u8(b, missed ? WARN : OK);
    snprintf(who, sizeof who, "tectum: %.80s", word(bag->about, "pipeline"));
    put_cut_text(b, who);
    put_cut_text(b, text);
    tec_cdr_text(b, word(bag->about, "device"));
    tec_cdr_u32(b, KEYS);
    for (size_t i = 0; i < KEYS; i++)
        put_pair(b, keys[i], json_object_get(json, keys[i]));
    *type = &tec_ros2_diagnostics;
    return TEC_OK;
}

enum tec_status tec_ros2_fill_about(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                                    const json_t *json, const char *name,
                                    const struct tec_ros2_type **type, struct tec_error *err)
{
    (void)name, (void)err;
    json_decref(bag->about);
    bag->about = json_deep_copy(json);
    tec_cdr_begin(&bag->message);
    tec_cdr_text_n(&bag->message, (const char *)m->data, m->n);
    *type = &tec_ros2_text;
    return TEC_OK;
}

/* ros2.c - a recording as a bag of ROS 2: its topics, the file and the description beside it. */
#include "base/out_file.h"
#include "base/text/utf8.h"
#include "tools/record/ros2_own.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* What becomes of a topic; `renamed` NULL: it keeps its name. Topics that are not here are of
 * tectum alone, and stay out of the bag. */
static const struct kept {
    const char *front, *renamed;
    tec_ros2_fill *fill;
} kept[] = {{"/images/", NULL, tec_ros2_fill_image},
            {"/inputs/", NULL, tec_ros2_fill_input},
            {"/tectum/actions/", NULL, tec_ros2_fill_actions},
            {"/tectum/text/", NULL, tec_ros2_fill_text},
            {"/tectum/frames", "/diagnostics", tec_ros2_fill_frame},
            {"/tectum/recording", NULL, tec_ros2_fill_about}};

/* --- topics ----------------------------------------------------------------------------------- */

/* A name as ROS 2 allows it: letters, digits and _, parts behind a / that do not begin with a
 * digit. */
static void legal(char out[TEC_ROS2_TOPIC], const char *name)
{
    size_t n = 0;
    for (; *name && n < TEC_ROS2_TOPIC - 3; name++) {
        bool first = n > 0 && out[n - 1] == '/';
        if (*name == '/' && first)
            continue;
        if (first && isdigit((unsigned char)*name))
            out[n++] = '_';
        out[n] = '_';
        if (*name == '/' || isalnum((unsigned char)*name))
            out[n] = *name;
        n++;
    }
    while (n > 1 && out[n - 1] == '/')
        n--;
    out[n] = '\0';
}

static bool is_there(const struct tec_ros2_bag *bag, const char *name)
{
    for (int i = 0; i < bag->n_topics; i++)
        if (strcmp(bag->topics[i].name, name) == 0)
            return true;
    return false;
}

/* The topic of a channel, a session and a type, made when its first message comes; NULL: there are
 * too many, or no name is left for it. */
static struct tec_ros2_topic *topic_of(struct tec_ros2_bag *bag, int source, int session,
                                       const char *name, const struct tec_ros2_type *type)
{
    for (int i = 0; i < bag->n_topics; i++) {
        struct tec_ros2_topic *t = &bag->topics[i];
        if (t->source == source && t->session == session && t->type == type)
            return t;
    }
    if (bag->n_topics == TEC_MCAP_CHANNELS)
        return NULL;
    struct tec_ros2_topic *t = &bag->topics[bag->n_topics];
    *t = (struct tec_ros2_topic){.source = source, .session = session, .type = type};
    legal(t->name, name);
    for (size_t n = strlen(t->name); is_there(bag, t->name) && n < TEC_ROS2_TOPIC - 1; n++)
        memcpy(t->name + n, "_", 2);
    if (is_there(bag, t->name))
        return NULL;
    const struct tec_mcap_channel channel = {.topic = t->name,
                                             .encoding = "cdr",
                                             .schema = type->name,
                                             .schema_encoding = "ros2msg",
                                             .schema_text = type->definition};
    t->channel = tec_mcap_channel(&bag->out, &channel);
    bag->n_topics += t->channel >= 0;
    return t->channel >= 0 ? t : NULL;
}

/* --- messages --------------------------------------------------------------------------------- */

/* What to do with a topic, and the rest of its name; NULL: nothing. */
static const struct kept *kept_of(const char *topic, const char **rest)
{
    const char *at = topic;
    if (strncmp(at, "/session", 8) == 0 && strchr(at + 8, '/'))
        at = strchr(at + 8, '/');
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        size_t n = strlen(kept[i].front);
        *rest = at + n;
        if (kept[i].front[n - 1] == '/' ? strncmp(at, kept[i].front, n) == 0 && at[n]
                                        : strcmp(at, kept[i].front) == 0)
            return &kept[i];
    }
    return NULL;
}

static enum tec_status put(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                           const json_t *json, const char *topic, struct tec_error *err)
{
    const char *rest;
    const struct kept *how = kept_of(topic, &rest);
    const struct tec_ros2_type *type = NULL;
    int session = (int)json_integer_value(json_object_get(json, "session"));
    char name[2 * TEC_ROS2_TOPIC];
    if (!json && how->fill != tec_ros2_fill_image)
        return tec_recorded_malformed(m, "this is no JSON object", err);
    TEC_TRY(how->fill(bag, m, json, rest, &type, err));
    if (!type)
        return TEC_OK;
    if (bag->message.failed)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a message of a bag");
    if (session > 0)
        snprintf(name, sizeof name, "/session%d%s", session, how->renamed ? how->renamed : topic);
    else
        snprintf(name, sizeof name, "%s", how->renamed ? how->renamed : topic);
    const struct tec_ros2_topic *t = topic_of(bag, m->channel, session, name, type);
    if (!t) {
        bag->counts->left_out++;
        return tec_mcap_status(&bag->out, err);
    }
    tec_mcap_message(&bag->out, t->channel, m->sequence, m->time_ns, bag->message.data,
                     bag->message.n);
    bag->counts->messages++;
    return tec_mcap_status(&bag->out, err);
}

static enum tec_status take(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                            struct tec_error *err)
{
    char topic[TEC_ROS2_TOPIC];
    const char *rest;
    size_t n = m->topic.n < sizeof topic - 1 ? m->topic.n : sizeof topic - 1;
    memcpy(topic, m->topic.text, n);
    topic[n] = '\0';
    if (!kept_of(topic, &rest))
        return TEC_OK;
    json_t *json = NULL;
    if (tec_mcap_is(m->encoding, "json")) {
        json = json_loadb((const char *)m->data, m->n, 0, NULL);
        if (!json_is_object(json)) {
            json_decref(json);
            return tec_recorded_malformed(m, "this is no JSON object", err);
        }
    }
    enum tec_status status = put(bag, m, json, topic, err);
    json_decref(json);
    tec_arena_finish(&bag->arena);
    return status;
}

/* --- the folder ------------------------------------------------------------------------------- */

static bool is_joint(const struct tec_ros2_bag *bag, const char *name, size_t n)
{
    for (int i = 0; i < bag->n_joints; i++)
        if ((size_t)bag->joint_bytes[i] == n && memcmp(bag->joints[i], name, n) == 0)
            return true;
    return false;
}

/* Names between commas; empty ones are names too, and refused. */
static enum tec_status read_joints(struct tec_ros2_bag *bag, const char *list,
                                   struct tec_error *err)
{
    while (list) {
        size_t n = strcspn(list, ",");
        if (n == 0 || n > 100 || bag->n_joints == TEC_ROS2_JOINTS || tec_utf8_check(list, n) != n ||
            is_joint(bag, list, n))
            return tec_fail(err, TEC_INVALID,
                            "--joints: 1 to %d different names of 1 to 100 bytes in UTF-8, with "
                            "commas between them, are needed",
                            TEC_ROS2_JOINTS);
        bag->joints[bag->n_joints] = list;
        bag->joint_bytes[bag->n_joints++] = (int)n;
        list = list[n] ? list + n + 1 : NULL;
    }
    return TEC_OK;
}

/* metadata.yaml as rosbag2 writes it, version 5. Topics and types have no character that YAML gives
 * a meaning. */
static void describe(const struct tec_ros2_bag *bag, FILE *out)
{
    const struct tec_mcap_writer *w = &bag->out;
    uint64_t duration = w->end_ns - w->start_ns;
    fprintf(out,
            "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: mcap\n"
            "  duration:\n    nanoseconds: %" PRIu64 "\n  starting_time:\n"
            "    nanoseconds_since_epoch: %" PRIu64 "\n  message_count: %" PRId64 "\n"
            "  topics_with_message_count:%s\n",
            duration, w->start_ns, bag->counts->messages, bag->n_topics ? "" : " []");
    for (int i = 0; i < bag->n_topics; i++)
        fprintf(out,
                "    - topic_metadata:\n        name: %s\n        type: %s\n"
                "        serialization_format: cdr\n        offered_qos_profiles: \"\"\n"
                "      message_count: %" PRIu64 "\n",
                bag->topics[i].name, bag->topics[i].type->name, w->counts[bag->topics[i].channel]);
    fprintf(out,
            "  compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n"
            "    - recording.mcap\n  files:\n    - path: recording.mcap\n      starting_time:\n"
            "        nanoseconds_since_epoch: %" PRIu64 "\n      duration:\n"
            "        nanoseconds: %" PRIu64 "\n      message_count: %" PRId64 "\n",
            w->start_ns, duration, bag->counts->messages);
}

static enum tec_status write_description(const struct tec_ros2_bag *bag, const char *path,
                                         struct tec_error *err)
{
    struct tec_out_file out = {.file = NULL};
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    describe(bag, out.file);
    return tec_outfile_file_keep(&out, err);
}

static enum tec_status write_bag(struct tec_ros2_bag *bag, const struct tec_ros2_options *o,
                                 struct tec_error *err)
{
    char path[4096], beside[4096];
    struct tec_mcap_message m;
    if (snprintf(path, sizeof path, "%s/recording.mcap", o->folder) >= (int)sizeof path ||
        snprintf(beside, sizeof beside, "%s/metadata.yaml", o->folder) >= (int)sizeof beside)
        return tec_fail(err, TEC_INVALID, "--ros2: the folder's path is too long");
    TEC_TRY(read_joints(bag, o->joints, err));
    TEC_TRY(tec_mcap_read(&bag->file, o->recording, err));
    if (mkdir(o->folder, 0777) != 0)
        return tec_fail(err, TEC_IO, "--ros2: %s: %s", o->folder, strerror(errno));
    TEC_TRY(tec_mcap_open(&bag->out, path, "ros2", bag->heap, err));
    enum tec_status status = TEC_OK;
    while (status == TEC_OK && tec_mcap_next(&bag->file, &m))
        status = take(bag, &m, err);
    snprintf(bag->counts->damage, sizeof bag->counts->damage, "%s", bag->file.damage);
    struct tec_error of_close;
    enum tec_status closed = tec_mcap_close(&bag->out, status == TEC_OK ? err : &of_close);
    bag->counts->topics = bag->n_topics;
    bag->counts->joints = bag->n_joints;
    status = status == TEC_OK ? closed : status;
    return status == TEC_OK ? write_description(bag, beside, err) : status;
}

enum tec_status tec_ros2_write(struct tec_ros2_counts *counts, const struct tec_ros2_options *o,
                               struct tec_heap *heap, struct tec_error *err)
{
    struct tec_ros2_bag *bag = tec_heap_get(heap, sizeof *bag);
    *counts = (struct tec_ros2_counts){.topics = 0};
    if (!bag)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a bag");
    memset(bag, 0, sizeof *bag);
    bag->heap = bag->message.heap = heap;
    bag->counts = counts;
    tec_arena_init(&bag->arena, heap);
    enum tec_status status = write_bag(bag, o, err);
    for (int i = 0; i < TEC_ROS2_TEXTS; i++)
        tec_buffer_finish(&bag->texts[i].text);
    tec_buffer_finish(&bag->message);
    tec_arena_finish(&bag->arena);
    json_decref(bag->about);
    tec_mcap_read_close(&bag->file);
    tec_heap_put(heap, bag);
    return status;
}

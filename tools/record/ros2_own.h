/* ros2_own.h - what the files of a bag share. */
#ifndef TEC_TOOLS_RECORD_ROS2_OWN_H
#define TEC_TOOLS_RECORD_ROS2_OWN_H

#include "base/arena.h"
#include "tools/record/recorded.h"
#include "tools/record/ros2.h"
#include "tools/record/ros2_types.h"

/* TEC_ROS2_TOPIC: bytes of a name, of which ROS 2 allows 247 and the end. */
enum { TEC_ROS2_TOPIC = 248, TEC_ROS2_TEXTS = 64, TEC_ROS2_JOINTS = 256 };

/* A topic of the bag: of a channel of the recording, a session and a type. */
struct tec_ros2_topic {
    int source, session, channel;
    const struct tec_ros2_type *type;
    char name[TEC_ROS2_TOPIC];
};

/* A text that has begun. */
struct tec_ros2_open_text {
    int64_t session, request;
    int source; /* the channel */
    bool used;
    struct tec_buffer text;
};

struct tec_ros2_bag {
    struct tec_heap *heap;
    struct tec_mcap_reader file;
    struct tec_mcap_writer out;
    struct tec_ros2_counts *counts;
    struct tec_arena arena;    /* of one message */
    struct tec_buffer message; /* the one that is being made */
    json_t *about;             /* what the recording says of itself; NULL until it has */
    const char *joints[TEC_ROS2_JOINTS];
    int joint_bytes[TEC_ROS2_JOINTS], n_joints;
    int n_topics, oldest; /* oldest: of texts, the place that is taken next */
    struct tec_ros2_topic topics[TEC_MCAP_CHANNELS];
    struct tec_ros2_open_text texts[TEC_ROS2_TEXTS];
};

/* ros2_messages.c: a message of the recording as bag->message; *type NULL: nothing is to be
 * written. `json` is the message's object, NULL for one that is not JSON; `name` is the topic's
 * last part. */
typedef enum tec_status tec_ros2_fill(struct tec_ros2_bag *bag, const struct tec_mcap_message *m,
                                      const json_t *json, const char *name,
                                      const struct tec_ros2_type **type, struct tec_error *err);
tec_ros2_fill tec_ros2_fill_image, tec_ros2_fill_input, tec_ros2_fill_actions, tec_ros2_fill_text,
    tec_ros2_fill_frame, tec_ros2_fill_about;

#endif

/* ros2.h - a recording as a bag of ROS 2: the same pictures, inputs, actions, texts and misses as
 * messages of its standard packages. doc/ros.md says which. */
#ifndef TEC_TOOLS_RECORD_ROS2_H
#define TEC_TOOLS_RECORD_ROS2_H

#include "base/alloc.h"
#include "base/error.h"

struct tec_ros2_options {
    const char *recording; /* the MCAP file */
    const char *folder;    /* of the bag, which must not be there */
    const char *joints;    /* names of an action's columns, "a,b,c"; NULL: numbered ones */
};

struct tec_ros2_counts {
    int topics;
    int joints;    /* names that were given */
    int64_t named; /* messages that have them */
    int64_t messages,
        left_out;     /* chunks without the robot's actions, topics beyond 128 or without a name */
    char damage[200]; /* of the recording; "" where it is whole */
};

/* Write folder/recording.mcap and folder/metadata.yaml. TEC_NOT_FOUND, TEC_MALFORMED, TEC_IO,
 * TEC_NO_MEMORY; the folder is then left without metadata.yaml. */
enum tec_status tec_ros2_write(struct tec_ros2_counts *counts, const struct tec_ros2_options *o,
                               struct tec_heap *heap, struct tec_error *err);

#endif

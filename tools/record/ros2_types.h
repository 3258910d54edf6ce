/* ros2_types.h - the ROS 2 message types of recordings: their names, and what they are in the form
 * "ros2msg" of MCAP: the definition with those that it names behind it. */
#ifndef TEC_TOOLS_RECORD_ROS2_TYPES_H
#define TEC_TOOLS_RECORD_ROS2_TYPES_H

struct tec_ros2_type {
    const char *name, *definition;
};

extern const struct tec_ros2_type tec_ros2_image, tec_ros2_joint_state, tec_ros2_trajectory,
    tec_ros2_text, tec_ros2_numbers, tec_ros2_diagnostics;

#endif

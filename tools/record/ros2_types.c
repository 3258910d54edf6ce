/* ros2_types.c - definitions of ROS 2 messages, as sensor_msgs, trajectory_msgs, std_msgs and
 * diagnostic_msgs have them. */
#include "tools/record/ros2_types.h"

/* In front of each definition that the first one names. */
#define NEXT \
    "================================================================================\nMSG: "
#define TIME NEXT "builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
#define HEADER NEXT "std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n" TIME
#define DURATION NEXT "builtin_interfaces/Duration\nint32 sec\nuint32 nanosec\n"
#define POINT_NUMBERS \
    "float64[] positions\nfloat64[] velocities\nfloat64[] accelerations\nfloat64[] effort\n"
#define POINT                                                   \
    NEXT "trajectory_msgs/JointTrajectoryPoint\n" POINT_NUMBERS \
         "builtin_interfaces/Duration time_from_start\n" DURATION
#define DIMENSION NEXT "std_msgs/MultiArrayDimension\nstring label\nuint32 size\nuint32 stride\n"
#define LAYOUT                                                                    \
    NEXT "std_msgs/MultiArrayLayout\nstd_msgs/MultiArrayDimension[] dim\nuint32 " \
         "data_offset\n" DIMENSION
#define LEVELS "byte OK=0\nbyte WARN=1\nbyte ERROR=2\nbyte STALE=3\nbyte level\n"
#define STATUS                                                                       \
    NEXT "diagnostic_msgs/DiagnosticStatus\n" LEVELS "string name\nstring message\n" \
         "string hardware_id\ndiagnostic_msgs/KeyValue[] values\n"
#define KEY_VALUE NEXT "diagnostic_msgs/KeyValue\nstring key\nstring value\n"

const struct tec_ros2_type tec_ros2_image = {
    "sensor_msgs/msg/Image",
    "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\n"
    "uint32 step\nuint8[] data\n" HEADER};

const struct tec_ros2_type tec_ros2_joint_state = {
    "sensor_msgs/msg/JointState",
    "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
    "float64[] effort\n" HEADER};

const struct tec_ros2_type tec_ros2_trajectory = {
    "trajectory_msgs/msg/JointTrajectory",
    "std_msgs/Header header\nstring[] joint_names\n"
    "trajectory_msgs/JointTrajectoryPoint[] points\n" HEADER POINT};

const struct tec_ros2_type tec_ros2_text = {"std_msgs/msg/String", "string data\n"};

const struct tec_ros2_type tec_ros2_numbers = {
    "std_msgs/msg/Float64MultiArray", "std_msgs/MultiArrayLayout layout\nfloat64[] data\n" LAYOUT};

const struct tec_ros2_type tec_ros2_diagnostics = {
    "diagnostic_msgs/msg/DiagnosticArray",
    "std_msgs/Header header\ndiagnostic_msgs/DiagnosticStatus[] status\n" HEADER STATUS KEY_VALUE};

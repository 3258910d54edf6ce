#!/bin/sh
# ros2_node.t - integrations/ros2/tectum_node.py under ROS 2 (rclpy, Fast DDS) against `tectum serve`: see ros2_node.py.
# usage: tests/ros2_node.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
. "$root/tests/python_package.sh"
python=/usr/bin/python3
# pip's --prefix: Debian's puts a folder `local` and dist-packages into it.
for ros in "$root/build/ros2-python/local" "$root/build/ros2-python"; do [ ! -d "$ros/lib" ] || break; done
for folder in "$ros"/lib/python3*/site-packages "$ros"/lib/python3*/dist-packages; do
    PYTHONPATH=$folder:$PYTHONPATH
    for libraries in "$folder"/ros_*.libs; do LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries; done
done
LD_LIBRARY_PATH=$ros/lib:$LD_LIBRARY_PATH AMENT_PREFIX_PATH=$ros
export LD_LIBRARY_PATH AMENT_PREFIX_PATH
# Nothing leaves this machine, and no other test's nodes are seen.
export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST ROS_DOMAIN_ID=$(($$ % 100 + 1)) FASTDDS_BUILTIN_TRANSPORTS=UDPv4 ROS_LOG_DIR="$W/log"
"$python" -c "import rclpy, cffi, numpy" 2>/dev/null ||
    { echo "1..0 # SKIP no rclpy, cffi and numpy for $python: tools/setup.sh --test --robots brings them"; exit 0; }
python_package "$W/installed" >"$W/out" 2>"$W/err" || { echo "1..0 # SKIP PROGRAM's build makes no Python package (TECTUM_PYTHON)"; exit 0; }
PYTHONPATH=$W/installed:$PYTHONPATH
timeout 300 "$python" tests/ros2_node.py "$T"

#!/bin/sh
# ros2_bag.t - recordings as bags of ROS 2, read by the package rosbags: see ros2_bag.py.
# usage: tests/ros2_bag.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
PYTHONPATH=$root/build/rosbags-python${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
for python in /usr/bin/python3 python3 ""; do
    [ -n "$python" ] || { echo "1..0 # SKIP no python3 with rosbags: tools/setup.sh --test brings it"; exit 0; }
    "$python" -c "import rosbags.highlevel" 2>/dev/null && break
done
"$python" tests/ros2_bag.py "$T" "$W"

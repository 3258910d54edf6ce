#!/bin/sh
# lerobot_plugin.t - the pip package lerobot_policy_tectum against `tectum serve`: see tests/lerobot_plugin/.
# usage: tests/lerobot_plugin.t [PROGRAM]; LEROBOT_PYTHON=PROGRAM: a python that has LeRobot, websockets and msgpack
. "$(dirname "$0")/opening.sh"
for python in ${LEROBOT_PYTHON:-} build/demo/venv/bin/python python3; do
    PYTHONPATH=integrations/lerobot/src "$python" -c 'import lerobot_policy_tectum.protocol' 2>/dev/null && break
    if [ "$python" = "${LEROBOT_PYTHON:-}" ]; then
        echo "1..1"
        echo "not ok 1 - LEROBOT_PYTHON has what the package needs"
        exit 1
    fi
    [ "$python" != python3 ] || { echo "1..0 # SKIP no python with numpy, msgpack and websockets 13"; exit 0; }
done
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=integrations/lerobot/src "$python" tests/lerobot_plugin/without.py "$T"

#!/bin/sh
# lerobot.t - folders as LeRobot saves them run without a pipeline: see lerobot.py. usage: tests/lerobot.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/lerobot.py "$T" "$W"

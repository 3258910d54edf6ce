#!/bin/sh
# realtime.t - how threads of `tectum serve` and `run --clock paced` are scheduled: see realtime.py.
# usage: tests/realtime.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/realtime.py "$T"

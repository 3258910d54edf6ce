#!/bin/sh
# serve_hostile.t - what strangers may send to `tectum serve`: see serve_hostile.py.
# usage: tests/serve_hostile.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_hostile.py "$T"

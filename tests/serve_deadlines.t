#!/bin/sh
# serve_deadlines.t - deadlines of the clients of `tectum serve`: see serve_deadlines.py.
# usage: tests/serve_deadlines.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_deadlines.py "$T"

#!/bin/sh
# serve_sessions.t - one server for several robots of one kind: see serve_sessions.py.
# usage: tests/serve_sessions.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_sessions.py "$T"

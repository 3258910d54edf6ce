#!/bin/sh
# rings.t - every verb with a ring, from the outside: see rings.py.
# usage: tests/rings.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/rings.py "$T"

#!/bin/sh
# chaos.t - every cause of a miss is brought about from the outside, and every place names it: see chaos.py.
# usage: tests/chaos.t [PROGRAM] [--long]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/chaos.py "$T" "$W" $2

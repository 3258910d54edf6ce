#!/bin/sh
# replay.t - a recording run again is decided as it was, whatever launches take: see replay.py.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/replay.py "$T" "$W"

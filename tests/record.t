#!/bin/sh
# record.t - recordings and the flight recorder: run --record, serve --record, replay, explain,
# trace, files that were cut, see record.py.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/record.py "$T" "$W"

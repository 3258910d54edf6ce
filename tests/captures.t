#!/bin/sh
# captures.t - `tectum explain captures`: why each capture of a pipeline is there, see captures.py.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/captures.py "$T" "$W"

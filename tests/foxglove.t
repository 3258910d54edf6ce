#!/bin/sh
# foxglove.t - a running robot's live values by Foxglove's WebSocket protocol: see foxglove.py.
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do
    "$python" -c "import websockets" 2>/dev/null && break
done
PYTHONDONTWRITEBYTECODE=1 "$python" tests/foxglove.py "$T"

#!/bin/sh
# peers.t - tools/bench_peers without its peers: turns, ratios, sides that end or compute something else, tables and pictures, see
# peers.py; and what the harness of kernels says of the machine. usage: tests/peers.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
for python in "${TECTUM_PYTHON:-}" /usr/bin/python3 python3; do
    [ -n "$python" ] && "$python" -c "import numpy" 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy: tools/setup.sh --test brings it"; exit 0; }
PYTHONDONTWRITEBYTECODE=1 "$python" tests/peers.py "$W" "$(dirname "$T")/kernels.t"

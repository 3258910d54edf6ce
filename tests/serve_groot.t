#!/bin/sh
# serve_groot.t - GR00T's ZeroMQ protocol of `tectum serve`: see serve_groot.py.
# usage: tests/serve_groot.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do
    "$python" -c "import zmq, msgpack, numpy" 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with zmq, msgpack and numpy: tools/setup.sh --test brings them"; exit 0; }
PYTHONDONTWRITEBYTECODE=1 "$python" tests/serve_groot.py "$T"

#!/bin/sh
# serve_tls.t - `tectum serve` with a certificate: see serve_tls.py.
# usage: tests/serve_tls.t [PROGRAM] [--times]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
for tool in openssl curl; do
    command -v $tool >/dev/null 2>&1 || { echo "1..0 # SKIP no $tool (sh tools/setup.sh --test)"; exit 0; }
done
for python in /usr/bin/python3 python3; do
    "$python" -c "import websockets" 2>/dev/null && break
done
PYTHONDONTWRITEBYTECODE=1 "$python" tests/serve_tls.py "$T" ${2:+"$2"}

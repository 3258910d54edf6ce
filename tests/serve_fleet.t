#!/bin/sh
# serve_fleet.t - twenty robots, three servers, HAProxy between them: see serve_fleet.py.
# usage: tests/serve_fleet.t [PROGRAM] [--times]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PATH=$PATH:/usr/sbin
for tool in haproxy openssl; do
    command -v $tool >/dev/null 2>&1 || { echo "1..0 # SKIP no $tool (sh tools/setup.sh --test)"; exit 0; }
done
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_fleet.py "$T" ${2:+"$2"}

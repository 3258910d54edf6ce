#!/bin/sh
# serve_deadlines.t - deadlines of the clients of `tectum serve`: see serve_deadlines.py.
# usage: tests/serve_deadlines.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
cd "$(dirname "$0")/.." || exit 1
T=${1:-${TECTUM:-}}
[ -n "$T" ] || for T in build/release/tectum build/*/tectum; do [ -x "$T" ] && break; done
if [ ! -x "$T" ]; then echo "1..0 # SKIP no program: give one as an argument"; exit 0; fi
if ! command -v python3 >/dev/null 2>&1; then echo "1..0 # SKIP no python3"; exit 0; fi
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/serve_deadlines.py "$T"

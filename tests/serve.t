#!/bin/sh
# serve.t - `tectum serve` from the outside: see serve.py.
# usage: tests/serve.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve.py "$T"

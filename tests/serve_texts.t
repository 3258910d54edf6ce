#!/bin/sh
# serve_texts.t - texts of streams for the clients of `tectum serve`: see serve_texts.py.
# usage: tests/serve_texts.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_texts.py "$T"

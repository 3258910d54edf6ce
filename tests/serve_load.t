#!/bin/sh
# serve_load.t - a server keeps its memory and descriptors under load: see serve_load.py.
# usage: tests/serve_load.t [PROGRAM] [--long | --requests N]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_load.py "$T" $2 $3

#!/bin/sh
# serve_pipelines.t - several pipelines in one server: see serve_pipelines.py.
# usage: tests/serve_pipelines.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_pipelines.py "$T"

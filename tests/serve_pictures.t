#!/bin/sh
# serve_pictures.t - JPEG and PNG pictures in requests to `tectum serve`: see serve_pictures.py.
# usage: tests/serve_pictures.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_pictures.py "$T"

#!/bin/sh
# serve_service.t - `tectum serve` under a service manager, and how it ends: see serve_service.py.
# usage: tests/serve_service.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve_service.py "$T"

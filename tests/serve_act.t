#!/bin/sh
# serve_act.t - POST /act of `tectum serve`, as OpenVLA's clients use it: see serve_act.py.
# usage: tests/serve_act.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PYTHONPATH=$PWD/build/act-python${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
for python in /usr/bin/python3 python3; do
    "$python" -c "import json_numpy" 2>/dev/null && break
done
PYTHONDONTWRITEBYTECODE=1 "$python" tests/serve_act.py "$T"

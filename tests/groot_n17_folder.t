#!/bin/sh
# groot_n17_folder.t - a folder of GR00T N1.7 as LeRobot saves it runs as it is: see groot_n17_folder.py. usage:
# tests/groot_n17_folder.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy"; exit 0; }
PYTHONDONTWRITEBYTECODE=1 "$python" tests/groot_n17_folder.py "$T" "$W"

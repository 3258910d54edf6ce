#!/bin/sh
# groot_n17_nvidia.t - a folder of GR00T N1.7 of NVIDIA runs as it is: see groot_n17_nvidia.py. usage: tests/groot_n17_nvidia.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy"; exit 0; }
PYTHONDONTWRITEBYTECODE=1 "$python" tests/groot_n17_nvidia.py "$T" "$W"

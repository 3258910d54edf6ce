#!/bin/sh
# convert_dataset.t - tools/convert/dataset.py: LeRobot datasets of both layouts become inputs that the program runs,
# broken ones one line, see convert_dataset.py. usage: tests/convert_dataset.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
PYTHONPATH=$root/build/dataset-python${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
for python in "${TECTUM_PYTHON:-}" /usr/bin/python3 python3; do
    [ -n "$python" ] && "$python" -c "import pyarrow.parquet" 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with pyarrow: tools/setup.sh --test brings it"; exit 0; }
PYTHONDONTWRITEBYTECODE=1 "$python" tests/convert_dataset.py "$T" "$W"

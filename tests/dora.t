#!/bin/sh
# dora.t - tectum as a node of a dora dataflow (integrations/dora): see dora.py.
# usage: tests/dora.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
. "$root/tests/python_package.sh"
PYTHONPATH=$root/build/dora-python:$root/build/dataset-python:$PYTHONPATH
python=/usr/bin/python3
"$python" -c "import dora, pyarrow, cffi, numpy" 2>/dev/null && [ -x build/dora-python/bin/dora ] ||
    { echo "1..0 # SKIP no dora, pyarrow, cffi and numpy for $python: tools/setup.sh --test --robots brings them"; exit 0; }
python_package "$W/installed" >"$W/out" 2>"$W/err" || { echo "1..0 # SKIP PROGRAM's build makes no Python package (TECTUM_PYTHON)"; exit 0; }
# What pip would put into the environment of the dataflow.
mkdir "$W/bin"
ln -s "$python" "$W/bin/python"
printf '#!/bin/sh\nexec python -m dora_tectum\n' >"$W/bin/dora-tectum"
chmod +x "$W/bin/dora-tectum"
PATH=$W/bin:$root/build/dora-python/bin:$PATH
PYTHONPATH=$W/installed:$root/integrations/dora:$PYTHONPATH
export PATH
timeout 300 "$python" tests/dora.py "$T" "$W"

#!/bin/sh
# python_types.t - the types of the Python package: mypy finds nothing in it, and in a robot's program, python_types.py, what is
# wrong and nothing else. usage: tests/python_types.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
. "$root/tests/python_package.sh"
python=$(client_python)
PYTHONPATH=$root/build/mypy-python:$PYTHONPATH
makes_client_package && "$python" -m mypy --version >"$W/out" 2>"$W/err" ||
    { echo "1..0 # SKIP no python3 with numpy, cffi and mypy, or no libtectum_client.so: tools/setup.sh --test brings them"; exit 0; }
client_package "$W/package" && cp python/tectum/py.typed "$W/package/tectum/" && cp tests/python_types.py "$W/" || exit 1

mypy() { (cd "$W" && MYPYPATH=$W/package "$python" -m mypy --strict --cache-dir "$W/cache" "$@") >"$W/out" 2>"$W/err"; }
printf '[mypy]\n[mypy-cffi.*]\nignore_missing_imports = True\n[mypy-tectum._binding]\nignore_errors = True\n' >"$W/mypy.ini"
mypy -p tectum
ok $? "the package has no mistake in its types"
mypy python_types.py
ok $? "a program has the types that are documented, and what is wrong in it is found"
echo "1..$n"
exit $failed

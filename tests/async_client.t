#!/bin/sh
# async_client.t - a robot's asynchronous client against `tectum serve`: tectum.AsyncClient over libtectum_client.so,
# see async_client.py; a library with a sanitizer is the part of tests/client_link.c. usage: tests/async_client.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
. "$root/tests/python_package.sh"
python=$(client_python)
makes_client_package || { echo "1..0 # SKIP no python3 with numpy and cffi, or no libtectum_client.so for it beside the program"; exit 0; }
client_package "$W/package" || exit 1
PYTHONPATH=$W/package:$PYTHONPATH "$python" tests/async_client.py "$T"

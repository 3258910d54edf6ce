#!/bin/sh
# demo.sh - from a fresh Debian 12 to frames: install packages, build, run the bundled model on
# recorded robot episodes.  sh tools/demo.sh [options of `tectum demo`]
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
mkdir -p build
log=build/demo-build.log
command -v ninja >/dev/null 2>&1 && export CMAKE_GENERATOR=Ninja # of a build that is new
begin=$(date +%s)
echo "demo: building build/release/tectum (what the compiler says: $log)"
configure="cmake --preset release" # of a build that is new; one that is there keeps what it was configured with
# What nvcc makes takes long and needs a GPU: without the driver of one it is left out.
command -v nvidia-smi >/dev/null 2>&1 || PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -q 'libcuda\.so' ||
    configure="$configure -DTECTUM_CUDA=off"
[ ! -f build/release/CMakeCache.txt ] || configure="cmake build/release"
if ! { $configure &&
    cmake --build --preset release --target tectum -j"$(nproc 2>/dev/null || echo 2)"; } >"$log" 2>&1
then
    grep -E 'error|Error' "$log" | head -n 20 >&2 || true
    tail -n 5 "$log" >&2
    echo "demo: the build failed; everything it said is in $log" >&2
    exit 1
fi
echo "demo: built in $(($(date +%s) - begin)) s"
exec build/release/tectum demo "$@"

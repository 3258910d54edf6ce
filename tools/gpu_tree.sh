#!/bin/sh
# gpu_tree.sh - a tree for a machine with a GPU and nothing else.  tools/gpu_tree.sh [ARCH] | --files DIR
#
# Makes build/gpu_tree.tar.xz (at most 50 MB) for one architecture (90: H100, H200; 80, 86, 89, 87
# Orin, 100, 110 Thor, 120): the program and the tests of the device in one file, the pipelines,
# policies, fixtures and golden cases that they read, and tools/gpu_check.sh. For 90 there are two
# programs: the second multiplies without warp groups, to tell where a fault is. It needs nvcc here;
# there it needs the driver, a C library at least as new as the one here, a shell, tar and xz.
# --files builds nothing: what the programs read goes to DIR.
set -eu
cd "$(dirname "$0")/.."

# files DIR: what the programs read.
files() {
    mkdir -p "$1/tools/measure" "$1/tests/golden" "$1/tests/kernels" "$1/doc/measurements"
    cp tools/gpu_check.sh "$1/tools/"
    cp tools/measure/bench_gemms.py "$1/tools/measure/"
    cp -R tools/gpu "$1/tools/"
    cp tests/kernels/bench_layers.def "$1/tests/kernels/"
    cp -R policies "$1/"
    # Trained models are for robots, but for the one that tests read.
    tar cf - --exclude=checkpoints pipelines | tar xf - -C "$1"
    mkdir -p "$1/pipelines/checkpoints" && cp -R pipelines/checkpoints/metaworld "$1/pipelines/checkpoints/"
    cp -R tests/fixtures tests/pipelines tests/graphs tests/policies "$1/tests/"
    for family in pi openvla keep smolvla groot act text qwen encoders demo schedules; do
        cp -R "tests/golden/$family" "$1/tests/golden/"
    done
    mkdir -p "$1/tests/golden/tokenizers"
    cp -R tests/golden/tokenizers/qwen_like "$1/tests/golden/tokenizers/"
    cp LICENSE "$1/"
}
case ${1:-} in
--files)
    files "${2:?--files needs a folder}"
    exit 0
    ;;
-h | --help) sed -n '2,/^set -eu/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
esac
arch=${1:-90}
case $arch in
*[!0-9a-z]* | "") echo "gpu_tree: ARCH is a number like 90, is '$arch'" >&2; exit 2 ;;
esac
tree=build/gpu_tree most=50000

# compiled CODE: build/gpu_CODE/device_check, with code for sm_CODE alone.
compiled() {
    build=build/gpu_$1
    mkdir -p "$build"
    echo "gpu_tree: building for sm_$1 in $build, which takes minutes of all processors"
    cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DTECTUM_CUDA=on \
        "-DTECTUM_CUDA_ARCHITECTURES=$1-real" -DTECTUM_STATIC=libraries -DTECTUM_TEST_ROOT=. \
        >"$build/configure.log" 2>&1 || { tail -n 15 "$build/configure.log" >&2; exit 1; }
    nice cmake --build "$build" -j"$(nproc)" --target device_check >"$build/build.log" 2>&1 ||
        { grep -E 'error|undefined' "$build/build.log" | head -n 15 >&2; exit 1; }
    # What the linker left to find there must be the C library's own.
    strange=$(ldd "$build/device_check" | awk '{ print $1 }' |
        grep -vE '^(linux-vdso|libc|libm|libdl|libpthread|librt)\.so|^/lib.*/ld-linux' || true)
    [ -z "$strange" ] || { echo "gpu_tree: device_check needs $strange" >&2; exit 1; }
}

code=$arch plain=''
[ "$arch" != 90 ] || code=90a plain=90 # products by warp groups are for this one alone
compiled "$code"
[ -z "$plain" ] || compiled "$plain"
build=build/gpu_$code
nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt" | head -n 1)

rm -rf "$tree" "$tree.tar.xz"
mkdir -p "$tree/bin"
strip -o "$tree/bin/device_check" "$build/device_check"
[ -z "$plain" ] || strip -o "$tree/bin/device_check_plain" "build/gpu_$plain/device_check"
files "$tree"
{
    echo "commit=$(git describe --always --dirty 2>/dev/null || echo unknown)"
    echo "arch=$arch"
    echo "nvcc=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p')"
    echo "libc=$(objdump -T "$build/device_check" 2>/dev/null |
        grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)"
} >"$tree/made_of"
cat "$tree/made_of"
# The second program is nearly the first: found again only by a dictionary that holds both.
XZ_OPT=--lzma2=preset=6,dict=64MiB tar cJf "$tree.tar.xz" -C build gpu_tree
size=$(du -sk "$tree.tar.xz" | awk '{ print $1 }')
echo "gpu_tree: $tree.tar.xz has $size KB"
[ "$size" -le $most ] || { echo "gpu_tree: that is more than $most KB" >&2; exit 1; }
echo "there: tar xf gpu_tree.tar.xz && cd gpu_tree && sh tools/gpu_check.sh --call 1 (doc/gpu.md)"

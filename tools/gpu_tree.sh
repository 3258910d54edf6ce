#!/bin/sh
# gpu_tree.sh - a tree for a machine with a GPU and nothing else.  tools/gpu_tree.sh [ARCH]
#
# Makes build/gpu_tree/ (at most 20 MB) for one architecture (90: H100, H200; 80, 86, 89, 87 Orin,
# 100, 110 Thor, 120): the program and the tests of the device in one file, the pipelines, policies
# and golden cases that they read, and tools/gpu_check.sh. It needs nvcc here; there it needs the
# driver, a C library at least as new as the one here, and a shell.
set -eu
cd "$(dirname "$0")/.."
arch=${1:-90}
case $arch in
*[!0-9a-z]* | "") echo "gpu_tree: ARCH is a number like 90, is '$arch'" >&2; exit 2 ;;
esac
code=$arch
[ "$arch" != 90 ] || code=90a # products by warp groups are for this one alone
build=build/gpu_$arch tree=build/gpu_tree most=20000

mkdir -p "$build"
echo "gpu_tree: building for sm_$arch in $build"
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DTECTUM_CUDA=on \
    "-DTECTUM_CUDA_ARCHITECTURES=$code-real" -DTECTUM_STATIC=libraries -DTECTUM_TEST_ROOT=. \
    >"$build/configure.log" 2>&1 || { tail -n 15 "$build/configure.log" >&2; exit 1; }
nice cmake --build "$build" -j"$(nproc)" --target device_check >"$build/build.log" 2>&1 ||
    { grep -E 'error|undefined' "$build/build.log" | head -n 15 >&2; exit 1; }

nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt" | head -n 1)

# What the linker left to find there must be the C library's own.
strange=$(ldd "$build/device_check" | awk '{ print $1 }' |
    grep -vE '^(linux-vdso|libc|libm|libdl|libpthread|librt)\.so|^/lib.*/ld-linux' || true)
[ -z "$strange" ] || { echo "gpu_tree: device_check needs $strange" >&2; exit 1; }

rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/tools" "$tree/tests/golden/pi" "$tree/doc/measurements"
strip -o "$tree/bin/device_check" "$build/device_check"
cp tools/gpu_check.sh tools/measure/bench_peers.py "$tree/tools/"
cp -R tools/gpu "$tree/tools/"
mkdir -p "$tree/tests/kernels" && cp tests/kernels/bench_layers.def "$tree/tests/kernels/"
cp -R policies "$tree/"
# Trained models are for robots, not for this.
tar cf - --exclude=checkpoints pipelines | tar xf - -C "$tree"
for case in pi05_odd pi05_odd_frames pi05_odd_lang pi05_tiny pi05_tiny_frames pi05_tiny_lang \
    pi0_odd pi0_odd_lang pi0_tiny; do
    cp -R "tests/golden/pi/$case" "$tree/tests/golden/pi/"
done
cp LICENSE "$tree/"
{
    echo "commit=$(git describe --always --dirty 2>/dev/null || echo unknown)"
    echo "arch=$arch"
    echo "nvcc=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p')"
    echo "libc=$(objdump -T "$build/device_check" 2>/dev/null |
        grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)"
} >"$tree/made_of"
cat "$tree/made_of"
size=$(du -sk "$tree" | awk '{ print $1 }')
echo "gpu_tree: $tree has $size KB"
[ "$size" -le $most ] || { echo "gpu_tree: that is more than $most KB" >&2; exit 1; }
echo "there: sh tools/gpu_check.sh (doc/gpu.md)"

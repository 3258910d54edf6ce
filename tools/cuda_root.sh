#!/bin/sh
# cuda_root.sh - the oldest CUDA toolkit that will do, 12.4, in build/cuda-12.4: to try a build with it where
# another one is installed (doc/gpu.md).  tools/cuda_root.sh [--list]
#   --list  only say whether it is missing
# It is Debian 13's package, downloaded by the apt of this machine, which checks signatures (1 GB), and unpacked as
# NVIDIA lays a toolkit out: nothing is installed, no rights are needed. Then:
#   cmake -S . -B build/cuda12 -DTECTUM_CUDA=on -DCMAKE_CUDA_COMPILER=$PWD/build/cuda-12.4/bin/nvcc
set -eu

cd "$(dirname "$0")/.."
root=$PWD/build/cuda-12.4
packages="nvidia-cuda-toolkit nvidia-cuda-dev"

# The list of what is in it comes last: without it the folder is made again.
[ "$(cat "$root/packages" 2>/dev/null)" != "$packages" ] || exit 0
if [ "${1:-}" = --list ]; then
    echo "cuda_root: missing: build/cuda-12.4"
    exit 1
fi

mkdir -p build
fresh=$(mktemp -d build/cuda_root.XXXXXX)
trap 'rm -rf "$fresh"' EXIT
fresh=$PWD/$fresh
mkdir -p "$fresh/lists/partial" "$fresh/archives/partial" "$fresh/root" "$fresh/debs" "$fresh/none"
: >"$fresh/status" # nothing is installed there
# From where this machine has its own packages.
place=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
[ -n "$place" ] || { echo "cuda_root: apt knows no source of Debian's packages" >&2; exit 1; }
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $place trixie non-free" >"$fresh/sources.list"

# of_debian_13 COMMAND...: apt-get for that release, with a memory of its own
of_debian_13() {
    apt-get -qq -o Dir::Etc::SourceList="$fresh/sources.list" -o Dir::Etc::SourceParts="$fresh/none" \
        -o Acquire::Languages=none -o Dir::State::Lists="$fresh/lists" -o Dir::State::Status="$fresh/status" \
        -o Dir::Cache="$fresh" -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}
of_debian_13 update
(cd "$fresh/debs" && of_debian_13 download $packages)

# The compiler, the headers, and of the libraries the two of the runtime: the rest is 2.5 GB.
dpkg-deb -x "$fresh"/debs/nvidia-cuda-toolkit_*.deb "$fresh/root"
dpkg-deb --fsys-tarfile "$fresh"/debs/nvidia-cuda-dev_*.deb | tar -x -C "$fresh/root" --wildcards \
    './usr/include/*' './usr/lib/*/libcudart_static.a' './usr/lib/*/libcudadevrt.a'

made=$fresh/made
from=$fresh/root/usr
mkdir -p "$made/bin" "$made/nvvm/bin" "$made/lib64"
for tool in cudafe++ fatbinary nvlink ptxas; do mv "$from/bin/$tool" "$made/bin/"; done
mv "$from/lib/nvidia-cuda-toolkit/bin/nvcc" "$from/lib/nvidia-cuda-toolkit/bin/crt" "$made/bin/"
mv "$from/lib/nvidia-cuda-toolkit/bin/cicc" "$made/nvvm/bin/"
mv "$from/lib/nvidia-cuda-toolkit/libdevice" "$made/nvvm/"
mv "$from"/lib/*/libcuda*.a "$made/lib64/"
mv "$from/include" "$made/"
cat >"$made/bin/nvcc.profile" <<'END'
TOP              = $(_HERE_)/..
CICC_PATH        = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH            += $(CICC_PATH):$(_HERE_):
INCLUDES        += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES       =+ $(_SPACE_) "-L$(TOP)/lib64"
END
echo "$packages" >"$made/packages"
rm -rf "$root"
mv "$made" "$root"
echo "cuda_root: $("$root/bin/nvcc" --version | grep release) is in build/cuda-12.4"

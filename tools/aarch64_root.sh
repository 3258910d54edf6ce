#!/bin/sh
# aarch64_root.sh - the libraries of Debian 12 for aarch64, in build/aarch64-root: what the preset
# `aarch64` compiles and links with, and where qemu finds them.  tools/aarch64_root.sh [--list]
#   --list  only say whether it is missing
# They are downloaded by the apt of this machine, which checks their signatures, and unpacked: nothing
# is installed, no rights are needed, and packages of two architectures do not meet in one system.
set -eu

cd "$(dirname "$0")/.."
root=$PWD/build/aarch64-root
headers="libc6-dev linux-libc-dev liblua5.4-dev libjansson-dev libutf8proc-dev libxxhash-dev
    libjpeg62-turbo-dev libpng-dev zlib1g-dev libwebsockets-dev libmsgpack-dev libhiredis-dev
    libmicrohttpd-dev"
# What the headers and the files for pkg-config ask for, and what these libraries load.
below="libssl-dev libcap-dev libuv1-dev libev-dev libgnutls28-dev nettle-dev libidn2-dev libp11-kit-dev
    libtasn1-6-dev libgmp-dev libc6 libgcc-s1 libcrypt1 liblua5.4-0 libjansson4 libutf8proc2 libxxhash0
    libjpeg62-turbo libpng16-16 zlib1g libwebsockets17 libssl3 libcap2 libmsgpackc2 libhiredis0.14
    libmicrohttpd12 libgnutls30 libnettle8 libhogweed6 libgmp10 libidn2-0 libunistring2 libtasn1-6
    libp11-kit0 libffi8 libreadline8 libtinfo6 libuv1 libev4"
# A Python, which imports the wheel for that machine (tests/python_aarch64.t), and what NumPy asks of it.
python="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libexpat1 libbz2-1.0 liblzma5 libstdc++6"
packages="$headers $below $python"

# The list of what is in it comes last: without it the folder is made again.
[ "$(cat "$root/packages" 2>/dev/null)" != "$packages" ] || exit 0
if [ "${1:-}" = --list ]; then
    echo "aarch64_root: missing: build/aarch64-root"
    exit 1
fi

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh/lists/partial" "$fresh/archives/partial" "$fresh/root" "$fresh/debs"
: >"$fresh/status" # nothing is installed there

# for_aarch64 COMMAND...: apt-get for that architecture, with a memory of its own
for_aarch64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Languages=none \
        -o Dir::State::Lists="$fresh/lists" -o Dir::State::Status="$fresh/status" \
        -o Dir::Cache="$fresh" -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}
for_aarch64 update
(cd "$fresh/debs" && for_aarch64 download $packages)
for file in "$fresh"/debs/*.deb; do dpkg-deb -x "$file" "$fresh/root"; done

# A link to /lib/... means the folder's own.
find "$fresh/root" -type l -lname '/*' | while read -r link; do
    ln -sfrn "$fresh/root$(readlink "$link")" "$link"
done
echo "$packages" >"$fresh/root/packages"
rm -rf "$root"
mkdir -p build
mv "$fresh/root" "$root"
echo "aarch64_root: $(ls "$fresh/debs" | wc -l) packages are in build/aarch64-root"

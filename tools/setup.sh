#!/bin/sh
# setup.sh - install Debian 12 packages that tectum needs.  tools/setup.sh [--test | --demo] [--list]
#   --test  also what the checks of .ci/run need
#   --demo  only what the simulator of tools/demo needs (its setup.sh calls this)
#   --list  only print what is missing
# Does nothing, and needs no network and no rights, when everything is there.
set -eu

build="build-essential cmake pkg-config liblua5.4-dev libjansson-dev libutf8proc-dev libxxhash-dev
    libjpeg62-turbo-dev libpng-dev libwebsockets-dev libmsgpack-dev graphviz"
tests="git python3 clang clang-format clang-tidy libclang-rt-14-dev llvm-14 universal-ctags lua-check perl
    python3-numpy strace"
demo="python3 python3-venv libegl1 libopengl0 libgl1-mesa-dri"

packages=$build list=
for option in "$@"; do
    case $option in
    --test) packages="$packages $tests" ;;
    --demo) packages=$demo ;;
    --list) list=1 ;;
    *) echo "usage: tools/setup.sh [--test | --demo] [--list]" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: this system has no apt-get; install the equivalents of:" $packages >&2
    exit 1
fi

missing=
for package in $packages; do
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "setup: everything is installed"
    exit 0
fi
echo "setup: missing:$missing"
[ -z "$list" ] || exit 1

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
        echo "setup: run this as root, or install them: apt-get install$missing" >&2
        exit 1
    }
    as_root="sudo"
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends $missing
echo "setup: installed:$missing"

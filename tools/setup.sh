#!/bin/sh
# setup.sh - install Debian 12 packages that tectum needs; on Ubuntu those of its names, which was not run yet.
# tools/setup.sh [--test] [--robots] [--aarch64] [--demo] [--list]
#   --test  also what the checks need: Lua's own test files, and packages of PyPI that read LeRobot's
#           datasets, ask as OpenVLA's clients do, and build the Python package and check its types,
#           all of it in build/
#   --robots  with --test: also packages of PyPI that run dora and ROS 2 (100 MB, in build/)
#   --aarch64  also a cross compiler, qemu to run what it makes, the libraries of Debian 12 for
#           aarch64 in build/aarch64-root (tools/aarch64_root.sh): what the preset `aarch64` needs;
#           and NumPy and cffi for it, with which the Python package is tried
#   --demo  only what the simulator of tools/demo needs (its setup.sh calls this)
#   --list  only print what is missing
# Does nothing, and needs no network and no rights, when everything is there.
set -eu

build="build-essential cmake ninja-build pkg-config liblua5.4-dev libjansson-dev libutf8proc-dev libxxhash-dev
    libjpeg62-turbo-dev libpng-dev zlib1g-dev libwebsockets-dev libmsgpack-dev libhiredis-dev
    libmicrohttpd-dev libssl-dev graphviz"
tests="git python3 valgrind clang clang-format clang-tidy libclang-rt-14-dev llvm-14 universal-ctags lua-check perl
    python3-numpy python3-pip python3-msgpack python3-zmq python3-websockets strace redis-server
    openssl curl haproxy"
demo="python3 python3-venv libegl1 libopengl0 libgl1-mesa-dri"
aarch64="gcc-aarch64-linux-gnu qemu-user-static"

packages=$build list= with_tests= with_robots= with_aarch64=
for option in "$@"; do
    case $option in
    --test) packages="$packages $tests" with_tests=1 ;;
    --robots) with_robots=1 ;;
    --aarch64) packages="$packages $aarch64" with_aarch64=1 ;;
    --demo) packages=$demo ;;
    --list) list=1 ;;
    *) echo "usage: tools/setup.sh [--test] [--robots] [--aarch64] [--demo] [--list]" >&2; exit 2 ;;
    esac
done

# Of what the build needs Ubuntu 22.04 and 24.04 name one library otherwise. OS_RELEASE is for the test.
if grep -qE '^ID(_LIKE)?="?.*ubuntu' "${OS_RELEASE:-/etc/os-release}" 2>/dev/null; then
    packages=$(echo "$packages" | sed 's/libjpeg62-turbo-dev/libjpeg-turbo8-dev/')
fi

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: this system has no apt-get; install the equivalents of:" $packages >&2
    exit 1
fi

# The test files of Lua 5.4.4 are in no Debian package; the source package of lupa 2.0 on PyPI has
# them unchanged. Without a network there are none, and tests/lua_suite.c is skipped.
lua_tests() {
    root=$(cd "$(dirname "$0")/.." && pwd)
    folder=$root/build/lua-tests sum=ad3fef486be7adddd349fe9a9c393789061312cf98ebc533b489be34f484cb79
    [ ! -f "$folder/constructs.lua" ] || return 0
    [ -z "$list" ] || { echo "setup: missing: build/lua-tests"; return 0; }
    fresh=$(mktemp -d)
    echo "lupa==2.0 --hash=sha256:$sum" >"$fresh/wanted"
    if timeout 120 python3 -m pip --disable-pip-version-check --retries 1 download -q --no-deps \
        --no-binary lupa -r "$fresh/wanted" -d "$fresh" >"$fresh/log" 2>&1 &&
        tar -xzf "$fresh/lupa-2.0.tar.gz" -C "$fresh" lupa-2.0/third-party/lua54/testes; then
        rm -rf "$folder"
        mkdir -p "$folder"
        cp "$fresh"/lupa-2.0/third-party/lua54/testes/*.lua "$folder/"
        echo "setup: Lua's test files are in build/lua-tests"
    else
        echo "setup: no test files of Lua (is the network there?): tests/lua_suite.c is skipped" >&2
        tail -n 3 "$fresh/log" >&2
    fi
    rm -rf "$fresh"
}

# Wheels of PyPI for Debian's Python and numpy, which Debian does not have, in build/FOLDER: lines of
# a requirements file on standard input. Elsewhere, or without a network, the test is skipped.
# wheels FOLDER WHAT TEST [OPTION...]; the last of pip's options takes the folder: --target, or
# --prefix for those that have more than Python's files
wheels() {
    root=$(cd "$(dirname "$0")/.." && pwd)
    name=$1 what=$2 test=$3
    shift 3
    [ ! -d "$root/build/$name" ] || return 0
    [ -z "$list" ] || { echo "setup: missing: build/$name"; return 0; }
    fresh=$(mktemp -d)
    cat >"$fresh/wanted"
    if timeout 240 /usr/bin/python3 -m pip --disable-pip-version-check --retries 1 install -q --no-deps \
        --only-binary :all: --no-compile --require-hashes --ignore-installed -r "$fresh/wanted" "${@:---target}" "$fresh/packages" \
        >"$fresh/log" 2>&1; then
        mkdir -p "$root/build"
        mv "$fresh/packages" "$root/build/$name"
        echo "setup: $what in build/$name"
    else
        echo "setup: no $what (is the network there?): tests/$test is skipped" >&2
        tail -n 3 "$fresh/log" >&2
    fi
    rm -rf "$fresh"
}

# What no package of this machine's architecture has: for tests, for another architecture.
beside_packages() {
    [ -z "$with_tests" ] || beside_tests
    [ -z "$with_robots" ] || beside_robots
    [ -z "$with_aarch64" ] || beside_aarch64
}
beside_aarch64() {
    sh "$(dirname "$0")/aarch64_root.sh" ${list:+--list}
    wheels aarch64-python "NumPy and cffi for aarch64" python_aarch64.t --platform manylinux2014_aarch64 --python-version 3.11 --target <<END
numpy==2.2.6 --hash=sha256:b64d8d4d17135e00c8e346e0a738deb17e754230d7e0810ac5012750bbd85a5a
cffi==2.1.1 --hash=sha256:3311ed60d36f83378794e1009ac6258bafbf81f7888b4caa7b35a521e3f95813
pycparser==3.12 --hash=sha256:a076f3f489b39b43ed13563a1dafe42447445bec2e294154ec5c57fcdda4c85e
END
}
beside_tests() {
    lua_tests
    wheels dataset-python "pyarrow and PyAV" convert_dataset.t <<END
pyarrow==20.0.0 --hash=sha256:a6ad3e7758ecf559900261a4df985662df54fb7fdb55e8e3b3aa99b23d526b62
av==18.1.0 --hash=sha256:8a032e8d8ebc73dec079364b9b4a6837638a2d106e8472314e685ffbf163e700
END
    wheels act-python json-numpy serve_act.t <<END
json-numpy==2.1.1 --hash=sha256:91e45b756c1345f478651c3d7e767a7488335f34a3d500ef7829b917a8043c28
END
    wheels rosbags-python rosbags ros2_bag.t <<END
rosbags==0.11.9 --hash=sha256:010c5a48b326e4dad6a79183db243c7b59188121d37b629d8c166ecaed3fc890
lz4==4.4.5 --hash=sha256:75419bb1a559af00250b8f1360d508444e80ed4b26d9d40ec5b09fe7875cb989
backports-zstd==1.8.0 --hash=sha256:9c7fe40a58dbe1fd358e0ceb5b6b3f50a9b328f8fff42dcb3bdaeb9a022c2506
ruamel-yaml==0.19.1 --hash=sha256:27592957fedf6e0b62f281e96effd28043345e0e66001f97683aa9a40c667c93
typing-extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
apsw==3.54.1.0 --hash=sha256:55f7fd02953f7f8cc188b1015afd0b5f1148412c368362bab24d3e8c69d07322
END
    wheels mypy-python mypy python_types.t <<END
mypy==2.4.1 --hash=sha256:b69a15fc2e75858d6b15e91ed3a0dcff1a533265183b64734138791fe0f49aa5
mypy-extensions==1.2.0 --hash=sha256:993e7a20aa5671eb41a7132cf555af30062da99729601601b9a8382b11cae768
ast-serialize==0.13.1 --hash=sha256:9f99786e0d62082a5b121b3437f3167562133711df22128de1e9886f57f0b226
librt==0.17.0 --hash=sha256:598c5455f07fc182a926b88e63776c49dc4cf47465c998cbc6ba1f010b875b51
pathspec==1.1.1 --hash=sha256:a00ce642f577bf7f473932318056212bc4f8bfdf53128c78bbd5af0b9b20b189
typing-extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
END
    wheels python-packages "scikit-build-core and cffi" python.t <<END
scikit-build-core==1.1.2 --hash=sha256:7f4f959a467692db50bdd1ea7ce1507f2c7972e6023b753ee302d169bc4cec85
cffi==2.1.1 --hash=sha256:34e261f78cb6ceaaa36f42f2613f4380d94d9c759a9c73c769ee6e0247364632
packaging==26.4 --hash=sha256:81383611a09c1bc0b08b76e0fd5829d7c6824c65b27a6aee339da133f4233ea2
pathspec==1.1.1 --hash=sha256:a00ce642f577bf7f473932318056212bc4f8bfdf53128c78bbd5af0b9b20b189
pycparser==3.12 --hash=sha256:a076f3f489b39b43ed13563a1dafe42447445bec2e294154ec5c57fcdda4c85e
END
}

beside_robots() {
    wheels dora-python dora dora.t <<END
dora-rs==1.1.0 --hash=sha256:788ca09301d03041f823bdd7a5aca1241718730c21e5928bbc9abcc45a7fd397
dora-rs-cli==1.1.0 --hash=sha256:f681b189a0ab7aaee5f1346f86550aea651712c658c9f1c352469f9313cfc8eb
END
    wheels ros2-python rclpy ros2_node.t --prefix <"$(dirname "$0")/../tests/ros2_requirements.txt"
}

missing=
for package in $packages; do
    # A line for each architecture that the system has it for.
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -qx "install ok installed" ||
        missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "setup: everything is installed"
    beside_packages
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
beside_packages

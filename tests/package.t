#!/bin/sh
# package.t - what is installed serves others: pkg-config, find_package, a Debian package.
# usage: tests/package.t [PROGRAM], of a build of the preset release.
. "$(dirname "$0")/opening.sh"
build=$(dirname "$T")
[ -f "$build/CPackConfig.cmake" ] && command -v pkg-config >/dev/null || { echo "1..0 # SKIP no build of the preset release, or no pkg-config"; exit 0; }
cmake --install "$build" --prefix "$W/first" >"$W/out" 2>"$W/err" && mv "$W/first" "$W/moved"
ok $? "it is installed, and moved afterwards"
PKG_CONFIG_PATH=$W/moved/lib/pkgconfig
export PKG_CONFIG_PATH
version=$(sed -n 's/^project(tectum VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ "$(pkg-config --modversion tectum)" = "$version" ]
ok $? "pkg-config knows its version"

# says FILE: the program of tools/examples/hello.c ran.
says() { grep -q '^first action: ' "$1" && grep -q '^text: .' "$1"; }
cc tools/examples/hello.c $(pkg-config --cflags --libs tectum) -o "$W/hello" >"$W/out" 2>"$W/err" &&
    "$W/hello" "$root" >"$W/out" 2>"$W/err" && says "$W/out"
ok $? "a program is compiled by pkg-config alone, and runs"

mkdir "$W/project"
cat >"$W/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(mine LANGUAGES C)
find_package(tectum $version REQUIRED)
add_executable(hello $root/tools/examples/hello.c)
target_link_libraries(hello PRIVATE tectum::tectum)
END
unset PKG_CONFIG_PATH
{ cmake -S "$W/project" -B "$W/made" -DCMAKE_PREFIX_PATH="$W/moved" && cmake --build "$W/made"; } >"$W/out" 2>"$W/err" &&
    "$W/made/hello" "$root" >"$W/out" 2>"$W/err" && says "$W/out"
ok $? "a CMake project finds it, and runs"
# The client's library alone: shared by pkg-config, as an archive, by CMake; none of the engine's libraries.
follows() { "$1" nowhere >"$W/out" 2>&1; [ $? -eq 2 ] && grep -q 'nowhere: a URL like ws://' "$W/out"; }
PKG_CONFIG_PATH=$W/moved/lib/pkgconfig
export PKG_CONFIG_PATH
cc tools/examples/follow.c $(pkg-config --cflags --libs tectum_client) -Wl,-rpath,"$W/moved/lib" -o "$W/follow" 2>"$W/err" &&
    follows "$W/follow" && ldd "$W/follow" >"$W/libraries" && grep -q libtectum_client.so "$W/libraries" &&
    ! grep -qE 'lua|jansson|hiredis|websockets|msgpack|jpeg' "$W/libraries"
ok $? "a robot's program is linked with libtectum_client.so, and needs nothing of the engine"
cc tools/examples/follow.c $(pkg-config --cflags tectum_client) "$W/moved/lib/libtectum_client.a" \
    $(pkg-config --libs --static tectum_client | sed 's/-ltectum_client//') -o "$W/follow" 2>"$W/err" && follows "$W/follow"
ok $? "or with the archive"
cat >"$W/used.c" <<'END'
#include "tectum_client.h"
void (*const used)(struct tectum_client **) = tectum_client_close;
END
cc tools/examples/hello.c "$W/used.c" $(pkg-config --cflags --libs tectum) "$W/moved/lib/libtectum_client.a" \
    $(pkg-config --libs tectum) $(pkg-config --libs --static tectum_client | sed 's/-ltectum_client//') -o "$W/both" 2>"$W/err" && "$W/both" "$root" >"$W/out" && says "$W/out"
ok $? "or with both libraries"
unset PKG_CONFIG_PATH
mkdir "$W/robot"
cat >"$W/robot/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(mine LANGUAGES C)
find_package(tectum $version REQUIRED COMPONENTS client)
add_executable(follow $root/tools/examples/follow.c)
target_link_libraries(follow PRIVATE tectum::client)
END
{ cmake -S "$W/robot" -B "$W/robot/made" -DCMAKE_PREFIX_PATH="$W/moved" && cmake --build "$W/robot/made"; } >"$W/out" 2>"$W/err" &&
    follows "$W/robot/made/follow"
ok $? "a CMake project finds the client alone"

{ cmake -S . -B "$W/plain" -DTECTUM_CLIENT_TLS=off -DTECTUM_CUDA=off &&
    cmake --build "$W/plain" --target follow --target tectum_client_shared; } >"$W/out" 2>"$W/err"
ok $? "the client is built without OpenSSL"
ldd "$W/plain/libtectum_client.so" >"$W/libraries" && ! grep -qE 'ssl|crypto' "$W/libraries" && follows "$W/plain/follow"
ok $? "it needs none then"
"$W/plain/follow" wss://127.0.0.1:1 >"$W/out" 2>&1
[ $? -eq 2 ] && grep -q 'built without TLS' "$W/out"
ok $? "and says so where a URL asks for TLS"

sed -i "s/find_package(tectum $version/find_package(tectum 9.0/" "$W/project/CMakeLists.txt"
cmake -S "$W/project" -B "$W/other" -DCMAKE_PREFIX_PATH="$W/moved" >"$W/out" 2>"$W/err"
[ $? -ne 0 ] && grep -q 'compatible' "$W/err"
ok $? "another version is refused"

if command -v dpkg-shlibdeps >/dev/null && command -v cpack >/dev/null; then
    (cd "$build" && cpack -G DEB -B "$W/deb") >"$W/out" 2>"$W/err"
    ok $? "a Debian package is made"
    deb=$(ls "$W"/deb/*.deb)
    dpkg-deb -f "$deb" Depends >"$W/out" 2>"$W/err"
    for library in libwebsockets libjansson4 liblua5.4-0 libmicrohttpd; do grep -q "$library" "$W/out" || break; done
    grep -q "$library" "$W/out"
    ok $? "it names the libraries that it needs"
    dpkg-deb -x "$deb" "$W/system" >"$W/out" 2>"$W/err" && [ -f "$W/system/lib/systemd/system/tectum@.service" ] ||
        [ -f "$W/system/usr/lib/systemd/system/tectum@.service" ]
    ok $? "the units are where systemd looks"
    (cd / && "$W/system/usr/bin/tectum" check "$W/system/usr/share/tectum/pipelines/pi05_libero.lua" --random-weights 1 --size tiny) \
        >"$W/out" 2>"$W/err"
    ok $? "its program finds its pipelines and policies, from anywhere"
else
    n=$((n + 1))
    echo "ok $n - a Debian package # SKIP no dpkg-dev"
fi
echo "1..$n"
exit $failed

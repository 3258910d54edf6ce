#!/bin/sh
# container.t - the Containerfile: its stages and user, its check of health against a server, where podman is an image; and
# the names of packages on Ubuntu. usage: tests/container.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
sed -n '/^FROM .*debian:12 AS build$/,/^FROM .*debian:12-slim$/p' Containerfile | grep -q '^RUN sh tools/setup.sh'
ok $? "the build stage has the packages of tools/setup.sh, on its Debian"
sed '1,/^FROM .*-slim$/d' Containerfile >"$W/last"
! grep -E 'apt-get install' "$W/last" | grep -qvE 'no-install-recommends /package/\*\.deb'
ok $? "the last stage has this tree's package and its dependencies, and names no other"
user=$(sed -n 's/^USER //p' "$W/last" | tail -n 1)
[ -n "$user" ] && [ "$user" != root ] && [ "$user" != 0 ] && grep -q "useradd --system .* $user\$" "$W/last"
ok $? "it runs as a user of its own"
"$T" serve --help | grep -q -- '--host' && grep -q '^CMD \["serve", .*"--host", "0.0.0.0"' "$W/last"
ok $? "it serves on every interface of the container"

"$T" serve pipelines/demo_metaworld.lua --threads 1 --port 0 >"$W/served" 2>"$W/err" &
server=$!
tries=0
while ! grep -q ' on ws://' "$W/served" && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries + 1)); done
port=$(sed -n 's|.* on ws://[^:]*:\([0-9]*\).*|\1|p' "$W/served")
# health PORT: the command of HEALTHCHECK, as JSON's words, with another port.
health() {
    python3 - "$1" <<'END'
import json, re, subprocess, sys
words = json.loads(re.search(r'^ +CMD (\[.*\])$', open("Containerfile").read(), re.M).group(1))
words = [w.replace("/8000", "/" + sys.argv[1]) for w in words]
sys.exit(subprocess.run(words, stderr=subprocess.DEVNULL, timeout=60).returncode)
END
}
health "$port"
ok $? "the check of health succeeds against a server"
kill $server
wait $server 2>/dev/null
! health "$port"
ok $? "and fails without one"

if command -v podman >/dev/null 2>&1; then
    podman build -q -t tectum-test . >"$W/out" 2>"$W/err" && podman run --rm tectum-test --version >"$W/out" 2>"$W/err"
    ok $? "podman makes the image, and its program runs"
else
    n=$((n + 1))
    echo "ok $n - the image itself # SKIP no podman"
fi

printf 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n' >"$W/ubuntu"
OS_RELEASE=$W/ubuntu sh tools/setup.sh --list >"$W/out" 2>"$W/err"
grep -qE 'missing:.* libjpeg-turbo8-dev|everything is installed' "$W/out" && ! grep -q libjpeg62 "$W/out"
ok $? "on Ubuntu setup.sh asks for the JPEG library by its name there"
printf 'ID=debian\n' >"$W/debian"
OS_RELEASE=$W/debian sh tools/setup.sh --list >"$W/out" 2>"$W/err"
! grep -q libjpeg-turbo8 "$W/out"
ok $? "and on Debian by Debian's"
echo "1..$n"
exit $failed

#!/bin/sh
# closed_loop.t - the robot in its simulator against `tectum serve`, a short version: two episodes,
# two policies, one age. Needs the environment of tools/demo/setup.sh; the long one is tools/demo/prove.
# usage: tests/closed_loop.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
python=build/demo/venv/bin/python
if ! "$python" -c 'import metaworld, openpi_client' 2>/dev/null; then
    echo "1..0 # SKIP no simulator: tools/demo/setup.sh installs it"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore tools/demo/prove.py policies ages --tectum "$T" --out "$W" \
    --tasks button,drawer_close --episodes 1 --random 1 --ages 4 >"$W/out" 2>&1
ok $? "two episodes under two policies and a random one: the same success, steps, sentences and bytes"
[ "$(grep -c 'equal 2/2, bytes 2/2' "$W/out")" -eq 3 ]; ok $? "all of them were compared"
grep -q '^metaworld_aged 50 ms .* 100.0 %' "$W/out"; ok $? "the aged policy does its tasks at 50 ms"
grep -q '"age_ms": 50.0' "$W/prove.json" && [ -s "$W/ages.svg" ]; ok $? "the report and the plot are written"

"$T" serve pipelines/demo_metaworld.lua --late-ok --port 0 >"$W/serving" 2>/dev/null &
server=$! port=
for _ in 1 2 3 4 5 6 7 8 9 10; do
    port=$(sed -n 's|^serving .* on ws://[^ ]*:\([0-9]*\) .*|\1|p' "$W/serving")
    [ -z "$port" ] || break
    sleep 0.5
done
PYTHONDONTWRITEBYTECODE=1 "$python" tests/serve_openpi.py "$port" >"$W/out" 2>&1
ok $? "the unmodified openpi-client"
kill "$server"
wait "$server"; ok $? "the server ends well"
echo "1..$n"
exit $failed

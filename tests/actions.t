#!/bin/sh
# actions.t - several action nodes on one prefill: each gives the bytes that it gives alone.
# usage: tests/actions.t [PROGRAM]
cd "$(dirname "$0")/.." || exit 1
T=${1:-${TECTUM:-}}
[ -n "$T" ] || for T in build/release/tectum build/*/tectum; do [ -x "$T" ] && break; done
if [ ! -x "$T" ] || ! command -v python3 >/dev/null 2>&1; then
    echo "1..0 # SKIP no program or no python3"
    exit 0
fi
W=$(mktemp -d) || exit 1
trap 'rm -rf "$W"' EXIT
n=0 failed=0
G=pipelines/graphs

# run NAME PIPELINE ARGUMENTS...
run() {
    name=$1 pipeline=$2
    shift 2
    "$T" run "$pipeline" --random-weights 1 --size tiny --random-inputs 1 -n 6 --threads 2 --policy default \
        --format json "$@" >"$W/$name" 2>"$W/err" </dev/null || sed 's/^/# /' "$W/err"
}

# is DESCRIPTION EXPRESSION: of `f(NAME)`, the frames of a run
is() {
    n=$((n + 1))
    if python3 - "$W" "$2" >"$W/err" 2>&1 <<'PYTHON'
import json, sys
def f(name):
    frames = [json.loads(line) for line in open(f"{sys.argv[1]}/{name}")]
    assert len(frames) == 6, f"{name}: {len(frames)} frames"
    return frames
def of(name, node):
    return [x["actions"][node] for x in f(name)]
assert eval(sys.argv[2]), "is not so"
PYTHON
    then echo "ok $n - $1"
    else
        failed=1
        echo "not ok $n - $1"
        sed 's/^/# /' "$W/err" | tail -n 3
    fi
}

run alone pipelines/pi05_libero.lua --dump "$W/alone.safetensors"
run two $G/g04_two_heads.lua
is "the first node's chunk is that of a pipeline without the second" 'of("two", "act") == of("alone", "act")'
is "each node starts from noise of its own" 'of("two", "act") != of("two", "act_early")'
run four pipelines/pi05_libero.lua --set nodes.act.steps=4 --noise "@$W/alone.safetensors#noise"
run given $G/g04_two_heads.lua --noise "@$W/alone.safetensors#noise"
is "from equal noise the second node's chunk is that of a pipeline with it alone" \
    'of("given", "act_early") == of("four", "act")'
is "the earlier deadline runs first, in the prefill's launch" \
    'all([l["node"] for l in x["plan"]["launches"]][:3] == ["see", "act_early", "act"] for x in f("two"))'
is "each node's chunk leaves when it is ready" \
    'all(x["released"]["act_early"]["age_us"] < x["released"]["act"]["age_us"] == x["age_us"] for x in f("two"))'
run paced $G/g04_two_heads.lua --clock paced --actions 2
is "ticks hand out the chunk of each" \
    'all(len(x["actions"]["act"]) in (0, 2) and set(x["released"]) == {"act", "act_early"} for x in f("paced"))'

"$T" run $G/g04_two_heads.lua --random-weights 1 --size tiny --random-inputs 1 -n 2 --dump "$W/two.safetensors" \
    >/dev/null 2>&1 </dev/null
n=$((n + 1))
if grep -aq act_early.chunk "$W/two.safetensors"; then echo "ok $n - a dump has the chunks of each"
else failed=1; echo "not ok $n - a dump has the chunks of each"; fi

n=$((n + 1))
"$T" simulate $G/g04_two_heads.lua --random-weights 1 --size tiny --launch-ms 1 -n 2 --trace "$W/trace" --format json \
    >"$W/sum" 2>/dev/null </dev/null
if [ "$(grep -c '"release"' "$W/trace")" = 4 ] && grep -q '"act_early"' "$W/sum"; then
    echo "ok $n - a simulation releases both"
else failed=1; echo "not ok $n - a simulation releases both"; fi
echo "1..$n"
exit $failed

#!/bin/sh
# joules.t - energy in reports: what a graphics card counts, and nothing where nothing is counted.
# usage: tests/joules.t [PROGRAM]; a program with CUDA's emulator does the second half, too
. "$(dirname "$0")/opening.sh"
demo="pipelines/demo_metaworld.lua --random-weights 1 --size tiny"

# has REPORT WHERE COUNTER KEYS...: the field energy has these keys, and they are what they say of joules.
has() {
    python3 -S - "$@" <<'PYTHON' >"$W/out" 2>"$W/err"
import json, sys
report, where, counter, each, *other = sys.argv[1:]
r = json.load(open(report))
e = (r["rows"][0] if where == "row" else r)["energy"]
assert set(e) == {"joules", "counters", each, *other}, e
assert counter in e["counters"] and e["joules"] > 0, e
frames = r["rows"][0]["frames"] if where == "row" else r["frames"]
assert abs(e[each] * frames - e["joules"]) < 1e-6 * e["joules"], (e, frames)
for key in other:
    assert 0 < e[key] <= e["joules"], e
PYTHON
}
# none REPORT: no counter of a card is named in it.
none() { ! grep -q '"card ' "$1"; }

"$T" bench $demo --device cpu --frames 4 --warmup 2 --rounds 2 --format json >"$W/cpu" 2>"$W/err"
ok $? "a bench on a CPU"
none "$W/cpu"; ok $? "counts no card"

build=$(dirname "$T")
[ -d "$build/nvml" ] || build=$build/..
emulated= # the stand-in knows the emulator's card alone
case $T in */emulator/*) emulated=1 ;; esac
if [ -n "$emulated" ] && [ -d "$build/nvml" ]; then
    report() { # report FOLDER NAME VERB...: with a driver's library of that folder
        folder=$1 name=$2
        shift 2
        LD_LIBRARY_PATH="$build/$folder" "$T" "$@" $demo --device cuda --format json >"$W/$name" 2>"$W/err"
    }
    few="--frames 2 --warmup 1 --rounds 1"
    report nvml bench bench $few
    ok $? "a bench on a card"
    has "$W/bench" row "card 0000:00:00.0" frame_j action_j; ok $? "has joules of a frame and of an action"
    LD_LIBRARY_PATH="$build/nvml" "$T" bench $demo --device cuda $few | grep -q "J a frame, .* J an action: counted by .*card 0000:00:00.0"
    ok $? "prints them"
    report nvml profile profile --frames 2 --rounds 1
    ok $? "a profile on a card"
    has "$W/profile" report "card 0000:00:00.0" turn_j; ok $? "has joules of a turn"
    report nvml_old old bench $few
    ok $? "a driver whose library does not count"
    none "$W/old"; ok $? "leaves the card out"
else
    n=$((n + 1))
    echo "ok $n - a card # SKIP no emulator, or no shared library in this build"
fi
echo "1..$n"
exit $failed

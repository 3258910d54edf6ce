#!/bin/sh
# bench_actionflow.t - experiments actionflow from the outside: what it writes, and what must hold
# in any run of it. Sizes are tiny: no time that is measured here means anything.
. "$(dirname "$0")/opening.sh"
experiments=${T%tectum}experiments
# count PATTERN N TEXT: so many lines of the report hold it.
count() {
    [ "$(grep -c "$1" "$json")" = "$2" ]; ok $? "$3"
}
out=$W/out json=$W/out/suite.json
"$experiments" actionflow --random-weights 1 --size tiny --quick --frames 4 -o "$out" \
    >"$W/log" 2>&1
ok $? "it ends well"
cat "$W/log" >&2
count '"bound": [0-9]' 4 "two K with two prompts, each with its bound"
for variant in sequential unpacked naive gather device_copy rotate; do
    count "\"variant\": \"$variant\"" 4 "each has a row of $variant"
done
count '"frames": 4' 24 "each row has the frames that were asked for"
count '"actions": 4' 24 "and an action in each of them"
! grep -q '"equal": false' "$json" && ! grep -q '"compared": 0' "$json"
ok $? "all variants made the same actions"
awk '/"copied_bytes_frame"/ { copied = $2 + 0 }
    /"formula_bytes_frame"/ { rows++; bad += copied != $2 + 0; some += $2 + 0 > 0 }
    END { exit bad || rows != 24 || some != 12 }' "$json"
ok $? "bytes copied are those of the formula: of moves and of gathers, else none"
python3 - "$json" <<'PYTHON'
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    n = {row["variant"]: row["launches_frame"] for row in cell["rows"]}
    once = {n[name] for name in ("gather", "device_copy", "rotate")}
    assert once == {1} and n["sequential"] == n["unpacked"] == cell["K"] and n["naive"] > 50, n
PYTHON
ok $? "launches: one of a ring's, K where nothing is packed, one for each command of the naive pipe"
for field in machine commit command p50 p99 max actions_s age_ms prefill_ms decode_ms speedup of_bound \
    device_copy_over_rotate gather_over_packed naive_over_packed unpacked_over_packed read_bytes_s bf16_flop_s intensity of_roof launch_ms; do
    grep -q "\"$field\"" "$json"; ok $? "the report has $field"
done
count '"forward": ' 5 "five forwards are taken apart"
for piece in pictures prefix decode head copies; do
    ! grep -q "\"$piece\": null" "$json"; ok $? "a frame's $piece are timed"
done
for chart in fig2 fig5 age; do
    head -c 4 "$out/$chart.svg" | grep -q '<svg' && tail -n 1 "$out/$chart.svg" | grep -q '</svg>'
    ok $? "$chart is drawn"
done
[ "$(grep -c '^| 7 | .* | yes |$' "$out/actionflow.md")" = 12 ]
ok $? "the tables have a row for each variant"
"$experiments" actionflow --size tiny >/dev/null 2>&1
[ $? = 2 ]; ok $? "without --out it is refused"
"$experiments" actionflow --size tiny --policy actionflow -o "$out" >/dev/null 2>&1
[ $? = 2 ]; ok $? "a policy is refused: depths are the suite's"
echo "1..$n"
exit $failed

#!/bin/sh
# bench_actionflow.t - experiments actionflow from the outside: what it writes, and what must hold
# in any run of it. Sizes are tiny: no time that is measured here means anything.
cd "$(dirname "$0")/.." || exit 1
tectum=
for preset in release dev clang asan; do
    [ -n "$tectum" ] || [ ! -x "build/$preset/tectum" ] || tectum=build/$preset/tectum
done
if [ -z "$tectum" ]; then
    echo "1..0 # SKIP tectum is not built"
    exit 0
fi
experiments=${tectum%tectum}experiments
n=0 bad=0
check() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"
    else bad=1; echo "not ok $n - $2"; fi
}
# count PATTERN N TEXT: so many lines of the report hold it.
count() {
    [ "$(grep -c "$1" "$json")" = "$2" ]; check $? "$3"
}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
out=$dir/out json=$dir/out/suite.json
"$experiments" actionflow --random-weights 1 --size tiny --quick --frames 4 -o "$out" \
    >"$dir/log" 2>&1
check $? "it ends well"
cat "$dir/log" >&2
count '"bound": [0-9]' 4 "two K with two prompts, each with its bound"
for variant in sequential gather device_copy rotate; do
    count "\"variant\": \"$variant\"" 4 "each has a row of $variant"
done
count '"frames": 4' 16 "each row has the frames that were asked for"
count '"actions": 4' 16 "and an action in each of them"
! grep -q '"equal": false' "$json" && ! grep -q '"compared": 0' "$json"
check $? "all variants made the same actions"
awk '/"copied_bytes_frame"/ { copied = $2 + 0 }
    /"formula_bytes_frame"/ { rows++; bad += copied != $2 + 0; some += $2 + 0 > 0 }
    END { exit bad || rows != 16 || some != 8 }' "$json"
check $? "bytes copied are those of the formula: of moves and of gathers, else none"
for field in machine commit command p50 p99 max actions_s age_ms prefill_ms decode_ms speedup of_bound \
    device_copy_over_rotate gather_over_packed read_bytes_s bf16_flop_s intensity of_roof launch_ms; do
    grep -q "\"$field\"" "$json"; check $? "the report has $field"
done
count '"forward": ' 5 "four forwards are taken apart, and the moves"
for piece in pictures prefix decode head copies; do
    ! grep -q "\"$piece\": null" "$json"; check $? "a frame's $piece are timed"
done
for chart in fig2 fig5 age; do
    head -c 4 "$out/$chart.svg" | grep -q '<svg' && tail -n 1 "$out/$chart.svg" | grep -q '</svg>'
    check $? "$chart is drawn"
done
[ "$(grep -c '^| 7 | .* | yes |$' "$out/actionflow.md")" = 8 ]
check $? "the tables have a row for each variant"
"$experiments" actionflow --size tiny >/dev/null 2>&1
[ $? = 2 ]; check $? "without --out it is refused"
"$experiments" actionflow --size tiny --policy actionflow -o "$out" >/dev/null 2>&1
[ $? = 2 ]; check $? "a policy is refused: depths are the suite's"
echo "1..$n"
exit $bad

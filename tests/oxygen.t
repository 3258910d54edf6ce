#!/bin/sh
# oxygen.t - experiments oxygen from the outside: what it writes, what must hold in any run of it,
# refusals with their exit code. Sizes are tiny: no time that is measured here means anything.
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
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
out=$dir/out
suite="oxygen --random-weights 1 --size tiny --quick --frames 2"
"$experiments" $suite -o "$out" >"$dir/log" 2>&1
check $? "it ends well"
cat "$dir/log" >&2
[ "$(grep -c '"setting": ' "$out/suite.json")" = 67 ]; check $? "a row for each point"
! grep -E '"(refused|shed|policy_failures)": [1-9]' "$out/suite.json" >&2
check $? "nobody was refused, nothing shed, no policy failed"
for field in machine commit command p50 p99 max action_hz tokens_s mean_batch joules_request plan_bytes; do
    grep -q "\"$field\"" "$out/suite.json"; check $? "the report has $field"
done
for figure in 4a 4b 5a 5b 6 7; do
    head -c 4 "$out/fig$figure.svg" | grep -q '<svg' && tail -n 1 "$out/fig$figure.svg" | grep -q '</svg>'
    check $? "figure $figure is drawn"
done
grep -q '^| LIBERO | compact | oxygen | 2 |.* 6.00 |$' "$out/oxygen.md"
check $? "the mean batch of N = 30, k = 5 is N / k"

# OxyGen's layout.
one=$out/oxygen_compact/continuous_batching/pi05_o2_libero/denoise10_decode30_step5_uniform_1.json
[ "$(grep -c '"frame_idx"' "$one")" = 8 ] && [ "$(grep -c '"is_warmup": true' "$one")" = 6 ]
check $? "N / k frames of warm-up, then those that count"
[ "$(grep -c '"n_total": 6' "$one")" = 3 ] && [ "$(grep -c '"total_tokens_this_frame": 30' "$one")" = 3 ]
check $? "six requests of five tokens in each steady frame"
grep -q '"arrival_pattern": "uniform_arrivals(rate=1)"' "$one" && grep -q '"completed_requests"' "$one"
check $? "arrivals and completed requests are told"
one=$out/oxygen_compact/continuous_batching/pi05_o2_libero/denoise10_decode30_step5_uniform_0.25_30.json
[ "$(grep -c '"n_new": 4' "$one")" = "$(grep -c '"frame_idx"' "$one")" ] && grep -q '"n_total": 24' "$one"
check $? "four arrivals a frame make a batch of 24"
one=$out/oxygen_compact/continuous_batching/pi05_o2_libero/denoise10_decode30_step5_uniform_4_30.json
grep -q '"n_new": 0' "$one"; check $? "one arrival in four frames leaves frames without"
one=$out/oxygen_padded/baseline/pi05_o2_libero/denoise10_decode30.json
[ "$(grep -c '"total_tokens_this_frame": 30' "$one")" = 3 ] && grep -q '"text_total_ms"' "$one"
check $? "the padded baseline makes all tokens in each frame"
[ -f "$out/oxygen_compact/parallel_mps/pi05_o2_libero/denoise10_decode20.json" ]
check $? "the parallel baseline is there"

"$experiments" $suite >/dev/null 2>&1
[ $? = 2 ]; check $? "without --out it is refused"
"$experiments" $suite -o "$out" pipelines/pi05_libero.lua >/dev/null 2>&1
[ $? = 2 ]; check $? "a pipeline beside it is refused"
"$experiments" $suite -o "$out" --policy oxygen >/dev/null 2>&1
[ $? = 2 ]; check $? "a policy beside it is refused"
"$experiments" paper -o "$out" >/dev/null 2>&1
[ $? = 2 ]; check $? "an unknown suite is refused"
"$tectum" bench >/dev/null 2>&1
[ $? = 2 ]; check $? "bench without a pipeline is refused"
"$tectum" bench pipelines/pi05_aloha.lua --random-weights 1 --size tiny --frames 2 --warmup 1 --rounds 1 >/dev/null
check $? "a pipeline whose pictures go by slot is measured"
echo "1..$n"
exit $bad

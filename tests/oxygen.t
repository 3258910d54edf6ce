#!/bin/sh
# oxygen.t - experiments oxygen from the outside: what it writes, what must hold in any run of it,
# refusals with their exit code. Sizes are tiny: no time that is measured here means anything.
. "$(dirname "$0")/opening.sh"
experiments=${T%tectum}experiments
out=$W/out
suite="oxygen --random-weights 1 --size tiny --quick --frames 2"
"$experiments" $suite -o "$out" >"$W/log" 2>&1
ok $? "it ends well"
cat "$W/log" >&2
[ "$(grep -c '"setting": ' "$out/suite.json")" = 73 ]; ok $? "a row for each point"
! grep -E '"(refused|shed|policy_failures)": [1-9]' "$out/suite.json" >&2
ok $? "nobody was refused, nothing shed, no policy failed"
for field in machine commit command p50 p99 max action_hz tokens_s mean_batch joules_request plan_bytes; do
    grep -q "\"$field\"" "$out/suite.json"; ok $? "the report has $field"
done
for figure in 4a 4b 5a 5b 6 7; do
    head -c 4 "$out/fig$figure.svg" | grep -q '<svg' && tail -n 1 "$out/fig$figure.svg" | grep -q '</svg>'
    ok $? "figure $figure is drawn"
done
grep -q '^| LIBERO | compact | oxygen | 2 |.* 6.00 |$' "$out/oxygen.md"
ok $? "the mean batch of N = 30, k = 5 is N / k"

# OxyGen's layout.
one=$out/oxygen_compact/continuous_batching/pi05_o2_libero/denoise10_decode30_step5_uniform_1.json
[ "$(grep -c '"frame_idx"' "$one")" = 8 ] && [ "$(grep -c '"is_warmup": true' "$one")" = 6 ]
ok $? "N / k frames of warm-up, then those that count"
[ "$(grep -c '"n_total": 6' "$one")" = 3 ] && [ "$(grep -c '"total_tokens_this_frame": 30' "$one")" = 3 ]
ok $? "six requests of five tokens in each steady frame"
grep -q '"arrival_pattern": "uniform_arrivals(rate=1)"' "$one" && grep -q '"completed_requests"' "$one"
ok $? "arrivals and completed requests are told"
one=$out/oxygen_compact/continuous_batching/pi05_o2_libero/denoise10_decode30_step5_uniform_0.25_30.json
[ "$(grep -c '"n_new": 4' "$one")" = "$(grep -c '"frame_idx"' "$one")" ] && grep -q '"n_total": 24' "$one"
ok $? "four arrivals a frame make a batch of 24"
grep -q '^| uniform | 4 | one after the other | [0-9]* |' "$out/oxygen.md" &&
    grep -q '^| uniform | 4 | in one launch | [0-9]* |.* 0 |$' "$out/oxygen.md"
ok $? "the same arrivals one after the other and in one launch"
one=$out/oxygen_compact/continuous_batching/pi05_o2_libero/denoise10_decode30_step5_uniform_4_30.json
grep -q '"n_new": 0' "$one"; ok $? "one arrival in four frames leaves frames without"
one=$out/oxygen_padded/baseline/pi05_o2_libero/denoise10_decode30.json
[ "$(grep -c '"total_tokens_this_frame": 30' "$one")" = 3 ] && grep -q '"text_total_ms"' "$one"
ok $? "the padded baseline makes all tokens in each frame"
[ -f "$out/oxygen_compact/parallel_mps/pi05_o2_libero/denoise10_decode20.json" ]
ok $? "the parallel baseline is there"

"$experiments" $suite --threads 1 --set experiment=headline -o "$out/one" >"$W/log" 2>&1 && [ -f "$out/one/oxygen.md" ] &&
    ! grep -q two_engines "$out/one/oxygen.md"
ok $? "one lane has no parallel baseline"
"$experiments" $suite --set experiment=other -o "$out" >/dev/null 2>&1
[ $? != 0 ]; ok $? "an unknown experiment is refused"
"$experiments" $suite >/dev/null 2>&1
[ $? = 2 ]; ok $? "without --out it is refused"
"$experiments" $suite -o "$out" pipelines/pi05_libero.lua >/dev/null 2>&1
[ $? = 2 ]; ok $? "a pipeline beside it is refused"
"$experiments" $suite -o "$out" --policy oxygen >/dev/null 2>&1
[ $? = 2 ]; ok $? "a policy beside it is refused"
"$experiments" paper -o "$out" >/dev/null 2>&1
[ $? = 2 ]; ok $? "an unknown suite is refused"
"$T" bench >/dev/null 2>&1
[ $? = 2 ]; ok $? "bench without a pipeline is refused"
"$T" bench pipelines/pi05_aloha.lua --random-weights 1 --size tiny --frames 2 --warmup 1 --rounds 1 >/dev/null
ok $? "a pipeline whose pictures go by slot is measured"
echo "1..$n"
exit $failed

#!/bin/sh
# accuracy.t - `check --accuracy`: a pipeline's actions and texts against those of float32, from files,
# recordings and what is drawn; its figures, its exit codes.
# usage: tests/accuracy.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P=pipelines/demo_metaworld.lua Q="--set model.quantize=int8" E=pipelines/checkpoints/metaworld/episodes/button.jsonl
# found CONDITION OPTION...: check --accuracy as JSON in $W/out; the condition holds for a, its object, and e, every
# element of every action.
found() {
    condition=$1
    shift
    "$T" check --device cpu --accuracy --format json "$@" >"$W/out" 2>"$W/err" && python3 - "$W/out" "$condition" <<'END'
import json, sys
a = json.loads(open(sys.argv[1]).read().splitlines()[-1])["accuracy"]
e = [x for action in a["actions"] for x in action["elements"]]
sys.exit(not eval("(" + sys.argv[2] + ")"))
END
}

found "a['frames'] == 8 and len(e) == 4 and all(0 == x['largest'] == x['p99'] == x['rms'] for x in e)
       and a['tokens']['share'] == 1 and a['alone'] == 0" --set model.dtype=f32 $P
ok $? "float32 against itself: no difference, in 8 frames that are drawn"
found "all(0 < x['rms'] <= x['p99'] <= x['largest'] < 0.02 and x['low'] < x['high'] for x in e)
       and a['texts']['equal'] == a['texts']['compared'] == 8 and a['actions'][0]['rows'] == 8 * 16" $P --inputs $E
ok $? "bf16 over an episode"
cp "$W/out" "$W/bf16"
found "all(0 < x['rms'] < 0.01 for x in e) and a['tokens']['equal'] == a['tokens']['compared'] > 30" $Q $P --inputs $E
ok $? "8-bit weights, with the same sentences"
found "all(0.002 < x['rms'] < 0.1 for x in e)" --set model.quantize=int4 $P --inputs $E
ok $? "4-bit weights, which are further"
found "all(0 < x['rms'] for x in e)" $Q --set model.dtype=f32 $P --inputs $E -n 2
ok $? "of a float32 plan, too: what it is held against has none"
found "len(e) > 0" $Q $P --inputs $E && ! cmp -s "$W/out" "$W/bf16"; ok $? "which is another difference"
cp "$W/out" "$W/file"
"$T" run $P --device cpu --inputs $E --record "$W/robot.mcap" >"$W/out" 2>"$W/err" &&
    found "a['frames'] == 8 and len(e) == 4" $Q $P --inputs "$W/robot.mcap" && cmp "$W/out" "$W/file" >"$W/err"
ok $? "a recording of the episode gives the same figures"
found "a['frames'] == 3 and a['actions'][0]['chunks'] == 3" $Q $P --inputs "$W/robot.mcap" -n 3
ok $? "some of its frames"
found "len(e) > 0 and a['alone'] == 0" $Q pipelines/openvla_ring.lua --random-weights 1 --size tiny &&
    found "len(e) > 0" $Q pipelines/act_aloha.lua --random-weights 1 --size tiny --random-inputs 7 -n 2 &&
    found "not e and a['texts']['compared'] > 0" pipelines/qwen_chat.lua --random-weights 1 --size tiny -n 3
ok $? "a ring, a model that is a program, a model of texts"

"$T" check --accuracy $Q $P --within 0.5 >"$W/out" 2>"$W/err" && grep -q "^act: 8 chunks, 128 rows" "$W/out" &&
    grep -q "tokens: .* equal (100.00 %)" "$W/out"
ok $? "text: a table; all within a bound"
"$T" check --accuracy $Q $P --within 0.0001 >"$W/out" 2>"$W/err"
[ $? -eq 1 ] && tail -1 "$W/out" | grep -q "^beyond the bound: the largest difference is .* not at most 0.0001$"
ok $? "beyond it the exit code is 1, and a line says by how much"
found "a['bound'] == {'within': 0.5, 'largest': max(x['largest'] for x in e), 'holds': True}" $Q $P --within 0.5 &&
    found "'bound' not in a" $Q $P
ok $? "as JSON it is said that the bound holds, where there is one"
"$T" check --accuracy --format json $Q $P --within 0.0001 >"$W/out" 2>"$W/err"; [ $? -eq 1 ] &&
    grep -q '"bound":{"within":0.0001,"largest":0.[0-9]*,"holds":false}' "$W/out"
ok $? "and that it does not"
"$T" check --accuracy --set model.round=bf16 --set nodes.act.steps=2 $P --inputs $E -n 2 --within 9 >"$W/out" 2>"$W/err" &&
    [ "$(tail -1 "$W/out")" = "within the bound; in the pipeline's model { } it is: round = \"bf16\"" ] &&
    [ "$(grep -c "within the bound" "$W/out")" -eq 1 ]
ok $? "what was tried of the model is told as a line of the file where it holds"
"$T" check --accuracy --set model.round=bf16 $P --inputs $E -n 2 --within 1e-9 >"$W/out" 2>"$W/err"
[ $? -eq 1 ] && ! grep -q "within the bound" "$W/out"
ok $? "and is not where it does not"
: >"$W/empty.jsonl"
"$T" check --accuracy $P --inputs "$W/empty.jsonl" --within 1 >"$W/out" 2>"$W/err"; [ $? -ne 0 ] &&
    { "$T" check --accuracy --format json $P --inputs "$W/empty.jsonl" --within 1 || true; } 2>"$W/err" |
    grep -q '"bound":{"within":1.0,"largest":null,"holds":false}'
ok $? "nothing to compare is not within a bound"
texts="pipelines/qwen_chat.lua --random-weights 1 --size tiny -n 3 --within 1"
"$T" check --accuracy $texts --set model.quantize=int4 >"$W/out" 2>"$W/err"; [ $? -eq 1 ] &&
    tail -1 "$W/out" | grep -q "^beyond the bound: [1-9][0-9]* of [0-9]* texts differ, and there are no actions$" &&
    found "a['bound'] == {'within': 1.0, 'largest': None, 'holds': True} and a['texts']['equal'] > 0" $texts --set model.dtype=f32
ok $? "of texts alone a bound holds where all are equal"
"$T" check --accuracy --set frame.period_ms=1 $P >"$W/out" 2>&1; [ $? -eq 1 ] && ! grep -q "against float32" "$W/out"
ok $? "a pipeline with errors is not run"
for wrong in "--inputs $E $P" "--accuracy --inputs $E --random-inputs 2 $P" "--accuracy policies/oxygen.lua" "--accuracy $P $P" \
    "--accuracy --within 0 $P"; do
    "$T" check $wrong >"$W/out" 2>"$W/err"; [ $? -eq 2 ] || break
done
ok $? "what does not go together is a mistake of the command line"
"$T" check --accuracy $P --inputs "$W/none.jsonl" >"$W/out" 2>"$W/err"; [ $? -eq 3 ] && grep -q "none.jsonl" "$W/err"
ok $? "a file that is not there"
echo "1..$n"
exit $failed

#!/bin/sh
# profile.t - the verb profile, its file, and --costs of those that take it.
# usage: tests/profile.t [PROGRAM]; else the first of build/*/tectum. From the root.
. "$(dirname "$0")/opening.sh"
# run CODE TEXT ARGUMENTS...
run() {
    want=$1 text=$2
    shift 2
    "$T" "$@" >"$W/out" 2>"$W/err" </dev/null
    [ $? = "$want" ]; ok $? "$text: exit $want"
}
out() { [ "$1" != -- ] || shift; grep -q -- "$1" "$W/out"; ok $? "prints '$1'"; }
err() { grep -q -- "$1" "$W/err"; ok $? "says '$1'"; }

demo=pipelines/demo_metaworld.lua
patient="--set frame.period_ms=60000 --set nodes.act.deadline.ms=50000" # a slow machine is no error
run 0 "the bundled robot is measured" profile $demo --threads 1 --frames 12 --rounds 2 -o "$W/demo.costs"
out "step, batch 8"; out "private"; out "own overhead"; out "wrote "
[ ! -s "$W/err" ]; ok $? "no progress where there is no terminal"
run 0 "a model of random weights is" profile pipelines/pi05_aloha.lua --random-weights 1 --size tiny \
    --frames 4 --rounds 1 --format json -o "$W/aloha.costs"
for field in schema unit device tier threads version commit pipeline variants private overhead_us busy; do
    out "\"$field\""
done
if command -v python3 >/dev/null 2>&1; then
    python3 - "$W/demo.costs" "$W/out" 2>"$W/err" <<'END'
import json, sys
demo, aloha = (json.load(open(path)) for path in sys.argv[1:])
assert demo["schema"] == 1 and demo["unit"] == "us" and demo["pipeline"] == "demo_metaworld"
rows = {(r["node"], r["point"].get("batch", 0)): r for r in demo["variants"]}
assert set(rows) == {("see", 0), ("act", 0), ("talk", 1), ("talk", 3), ("talk", 5), ("talk", 8)}
for r in demo["variants"] + demo["private"] + aloha["variants"]:
    assert 0 < r["min"] <= r["p50"] <= r["p99"] <= r["p999"] <= r["max"] and r["n"] in (12, 4), r
assert rows["talk", 8]["p50"] < rows["see", 0]["p50"]  # of one step, not of a launch
assert 0 < aloha["busy"] <= 1 and aloha["overhead_us"] > 0
END
    ok $? "every variant has a row, quantiles ascend"
fi
run 0 "its own file is taken" check $demo $patient --costs "$W/demo.costs"
[ ! -s "$W/err" ]; ok $? "without a word"
run 0 "and by run" run $demo --costs "$W/demo.costs" --frames 2 --threads 1 \
    --inputs pipelines/checkpoints/metaworld/episodes/button.jsonl
run 0 "and by bench" bench $demo --costs "$W/demo.costs" --frames 4 --warmup 1 --rounds 1 --threads 1
run 0 "a file of another pipeline is used" check pipelines/pi05_aloha.lua $patient --costs "$W/demo.costs"
err "measured on pipeline 'demo_metaworld'"

costs() { # costs FILE SEE ACT [NODE]
    printf '{"schema":1,"variants":[{"node":"%s","point":{},"n":1,"min":1,"p50":1,"p99":%s,"p999":%s,"max":%s},
{"node":"act","point":{},"n":1,"min":1,"p50":1,"p99":%s,"p999":%s,"max":%s}]}' \
        "${4:-see}" "$2" "$2" "$2" "$3" "$3" "$3" >"$W/$1"
}
costs fits.costs 50000 40000
run 0 "a path that takes all of its deadline" check $demo --costs "$W/fits.costs"
err "no row of 'talk'"
cat >"$W/asks.lua" <<'END'
return policy {
  name = "asks", api = 1, version = 1,
  plan = function(S, F, D)
    if F.index == 0 and F.cost("act", 0, 0.99) == 40000 and F.cost("prefill", 0, 1) == 50000 then
      D:decode(1, 4)
    end
  end,
}
END
for file in fits.costs demo.costs; do
    run 0 "a policy asks $file" run $demo --costs "$W/$file" --policy "$W/asks.lua" --frames 1 \
        --inputs pipelines/checkpoints/metaworld/episodes/button.jsonl
    grep -q "batch 1" "$W/out"
    [ $? = $([ $file = fits.costs ]; echo $?) ]; ok $? "and gets what the file says"
done
costs slow.costs 50000 40001
run 1 "one that takes more" check $demo --costs "$W/slow.costs"
out "E031"; out "$demo:[0-9]*:[0-9]*"; out "see 50 + act 40"
run 1 "as JSON" check $demo --costs "$W/slow.costs" --format json
out '"code": *"E031"'; out '"line": *[1-9]'
run 1 "a deadline of --set" check $demo --costs "$W/fits.costs" --set nodes.act.deadline.ms=89
out "E031"; out -- "--set:1:"
# By the time of another number of steps: the judgement says so, met or not, whoever says how many there are.
costs steps.costs 50000 30000
sed -i 's/"node": *"act",/&"steps":7,/' "$W/steps.costs"
run 0 "actions of other steps" check $demo --costs "$W/steps.costs"
out "W119.: 'act' was measured with 7 steps and has 10 here: deadlines are judged by the time of 7"
out "$demo:$(grep -n 'steps = 10' $demo | cut -d : -f 1):" && out "steps = 10"
run 0 "steps of --set" check $demo --costs "$W/steps.costs" --set nodes.act.steps=9
out -- "--set:1:"
run 1 "which are late" check $demo --costs "$W/steps.costs" --set nodes.act.deadline.ms=70 --format json
out '"E031", .*see 50 + act 30; act with 7 steps, it has 10)'; out '"code": *"W119"'
mkdir -p "$W/robots" && cp pipelines/robots/metaworld.lua "$W/robots/" && sed 's/steps = 10, //' $demo >"$W/left.lua"
run 0 "steps that the file leaves to the model" check "$W/left.lua" --costs "$W/steps.costs"
out "'act' was measured with 7 steps and has 10 here"
sed -i 's/"steps":7,/"steps":10,/' "$W/steps.costs"
run 0 "the same steps" check "$W/left.lua" --costs "$W/steps.costs"
! grep -q "W119" "$W/out"; ok $? "and nothing to say"
sed 's/arch = "pi05"/arch = "gone"/' "$W/left.lua" >"$W/gone.lua"
run 1 "a model that is not there" check "$W/gone.lua" --costs "$W/steps.costs"
out "W119.: 'act' was measured with 10 steps; its model's description, which says how many it has here, cannot be read"
# By other words that launches cost by.
grep -q '"model.round": "none"' "$W/demo.costs"; ok $? "a file says with which words it was measured"
run 0 "another word of round" check $demo $patient --costs "$W/demo.costs" --set model.round=mixed
out "W119.: costs were measured with model.round = \"none\", which is \"mixed\" here"
out "^ --> --set:[0-9]:13"; out "measure it again"
sed 's/model.round/model.rond/' "$W/demo.costs" >"$W/rond.costs"
run 0 "a word of nothing, near to one that is missing" check $demo $patient --costs "$W/rond.costs"
out "W119.: settings of these costs: nothing is called 'model.rond'"; out "did you mean 'model.round'"
run 0 "and told by run" run $demo --costs "$W/rond.costs" --frames 1 --threads 1 \
    --inputs pipelines/checkpoints/metaworld/episodes/button.jsonl
err "settings: nothing is called 'model.rond'; did you mean 'model.round'"
run 0 "told by run, once" run $demo --costs "$W/demo.costs" --frames 1 --threads 1 --set model.round=bf16 \
    --inputs pipelines/checkpoints/metaworld/episodes/button.jsonl
[ "$(grep -c 'model.round = "none", which is "bf16" here: measure it again' "$W/err")" = 1 ]; ok $? "says it"
run 0 "and another dtype" run $demo --costs "$W/demo.costs" --frames 1 --threads 1 --dtype f32 \
    --inputs pipelines/checkpoints/metaworld/episodes/button.jsonl
err 'model.dtype = "bf16", which is "f32" here'
run 0 "by simulate" simulate $demo --costs "$W/demo.costs" --frames 4 --set model.quantize=int8
err 'model.quantize = "none", which is "int8" here'
run 0 "and the head's" simulate $demo --costs "$W/demo.costs" --frames 4 --set model.quantize_head=int8
err 'model.quantize_head = "none", which is "int8" here'
act="pipelines/act_aloha.lua --random-weights 1 --size tiny"
run 0 "a model without texts" profile $act --frames 4 --rounds 1 --threads 1 -o "$W/act.costs"
! grep -q quantize_head "$W/act.costs"; ok $? "has no head that counts"
run 0 "so no word of it is another" check $act --set nodes.act.deadline.ms=450 --costs "$W/act.costs" \
    --set model.quantize_head=int8
! grep -q W119 "$W/out"; ok $? "than what was measured"
run 0 "a ring is measured" profile pipelines/demo_metaworld_token.lua --threads 1 --frames 4 --rounds 1 -o "$W/ring.costs"
run 0 "and its keys are copied" check pipelines/demo_metaworld_token.lua --costs "$W/ring.costs" \
    --set frame.period_ms=60000 --set resources.ring.shift=device_copy
out 'resources.ring.shift = "rotate", which is "device_copy" here'
sed 's/"settings": *{[^}]*},//' "$W/demo.costs" | tr -d '\n' | sed 's/"settings": *{[^}]*},//' >"$W/older.costs"
run 0 "an older file has none" check $demo $patient --costs "$W/older.costs" --set model.round=mixed
! grep -q "W119" "$W/out" && [ ! -s "$W/err" ]; ok $? "and is taken to be of the pipeline's"
for settings in 7 '{"model.round": 3}'; do
    printf '{"schema":1,"settings":%s,"variants":[{"node":"see","point":{},"n":1,"min":1,"p50":1,"p99":1,"p999":1,"max":1}]}' \
        "$settings" >"$W/settings.costs"
    run 3 "settings $settings" check $demo --costs "$W/settings.costs"; err "settings"
done
costs other.costs 1 1 look
run 0 "a row of an unknown node" check $demo --costs "$W/other.costs"
err "is called 'look'"

echo '{"schema":1,"variants":[{"node":"grasp","point":{},"n":1,"min":1,"p50":1,"p99":1,"p999":1,"max":1}]}' \
    >"$W/foreign.costs"
run 3 "nothing but unknown nodes" check $demo --costs "$W/foreign.costs"; err "'grasp'"
echo '{"schema":1,"variants":[{"node":"see","point":{},"n":1,"min":1,"p50":-1,"p99":1}]}' >"$W/bad.costs"
run 3 "a malformed row" run $demo --costs "$W/bad.costs"
err "bad.costs: variants\[0\]: .*p50"
[ "$(wc -l <"$W/err")" = 1 ]; ok $? "in one line"
head -c 300 "$W/demo.costs" >"$W/cut.costs"
run 3 "a file cut short" bench $demo --costs "$W/cut.costs"; err "line [0-9]*, column"
run 3 "a pipeline in its place" check $demo --costs $demo; err "this is a pipeline file"
run 3 "no file" check $demo --costs "$W/none.costs"; err "no such file"
run 3 "a folder to write to that is not there" profile $demo --frames 1 -o "$W/none/x.costs"

# A model beside the frames that ranks texts: its ranking has a row, and the simulator finds it.
ranks=pipelines/graphs/g12_planner_ranks.lua
run 0 "a planner that ranks" profile $ranks --random-weights 1 --size tiny --frames 2 -o "$W/ranks.costs"
grep -q '"node": *"rank"' "$W/ranks.costs"; ok $? "the ranking has a row"
run 0 "simulate takes them" simulate $ranks --costs "$W/ranks.costs" -n 5
# A memory: a prompt at each captured ratio, segments to be kept; a prompt costs what its recall does.
keeps=pipelines/graphs/g18_answer_is_remembered.lua
run 0 "a planner with a memory" profile $keeps --random-weights 1 --size tiny --frames 2 -o "$W/keeps.costs"
out "recall"; out "25 %"; out "16 tokens"
for row in '"node": "recall", *"point": {}' '"percent": 25' '"tokens": 16'; do
    tr -d '\n' <"$W/keeps.costs" | tr -s ' ' | sed 's/{ }/{}/g' | grep -q -- "$row"; ok $? "a row has $row"
done
run 0 "check takes them" check $keeps --costs "$W/keeps.costs"
! grep -q "is called" "$W/err"; ok $? "and knows their nodes"
two=tests/pipelines/two_load.lua
run 0 "two models of one memory" profile $two --random-weights 1 --size tiny --threads 1 --frames 2 -o "$W/two.costs"
grep -q '"keep"' "$W/two.costs" && grep -q '"keep.recall2"' "$W/two.costs"; ok $? "each has rows of what it keeps"
run 0 "check takes them" check $two --random-weights 1 --size tiny --costs "$W/two.costs"
! grep -q "is called\|no row" "$W/err"; ok $? "and knows all of them"
run 0 "run takes them" run $two --random-weights 1 --size tiny --random-inputs 1 -n 2 --costs "$W/two.costs"
row() { printf '{"node":"%s","point":{%s},"n":1,"min":%s,"p50":%s,"p99":%s,"p999":%s,"max":%s}' $1 "$2" $3 $3 $3 $3 $3; }
printf '{"schema":1,"variants":[%s,%s,%s,%s]}' "$(row ask '' 1000)" "$(row recall '' 5000)" \
    "$(row recall '"percent":25' 3000)" "$(row answer '"batch":1' 10)" >"$W/recall.costs"
run 0 "simulate takes a recall's time for the prompt's" simulate $keeps --costs "$W/recall.costs" -n 5
out "frame_us *p50 5060"
cat >"$W/asks.lua" <<'END'
return policy {
  name = "asks", api = 1, version = 1,
  plan = function(S, F, D)
    assert(F.cost("recall", 0.2, 0.5) == 3000 and F.cost("recall") == 5000 and F.cost("ask") == 5000)
    D:note("seen", 1)
  end,
}
END
run 0 "a policy asks what a recall costs" simulate $keeps --costs "$W/recall.costs" -n 5 --policy "$W/asks.lua" \
    --trace "$W/asks.jsonl"
grep -q '"seen"' "$W/asks.jsonl"; ok $? "and gets it by share"
hard=pipelines/graphs/g06_memory_in_controller.lua
printf '{"schema":1,"variants":[%s,%s,%s]}' "$(row see '' 1000)" "$(row recall '' 60000)" "$(row act '' 40000)" \
    >"$W/hard.costs"
run 1 "a recall in front of actions counts in their deadline" check $hard --costs "$W/hard.costs"
out "recall 60 + act 40"
printf '{"schema":1,"variants":[%s,%s,%s,%s]}' "$(row see '' 1000)" "$(row recall '' 20000)" "$(row act '' 14000)" \
    "$(row talk '"batch":1' 10)" >"$W/robots.costs"
run 0 "in time where there is one robot" check $hard --costs "$W/robots.costs"
run 1 "of three robots, each has a recall" check $hard --costs "$W/robots.costs" --set frame.sessions=3
out "recall 60 + act 42"
run 0 "and so they have in a simulation" simulate $hard --costs "$W/robots.costs" --set frame.sessions=3 -n 5
out "frame_us *p50 102100"
cp -R pipelines "$W/pipelines" # what a file extends lies below its folder
cat >"$W/pipelines/rings.lua" <<END
return extend("graphs/g19_two_rings.lua", { name = "rings",
  model  = without "model", models = { one = model { arch = "openvla" }, two = model { arch = "openvla" } },
  nodes  = { prefill { name = "enter", model = "one" }, prefill { name = "enter2", model = "two" },
             decode { name = "advance", model = "one", deadline = hard { ms = 50 } },
             decode { name = "advance2", model = "two", deadline = hard { ms = 30 } } } })
END
point() { printf '{"node":"%s","point":{"decode":%s},"n":1,"min":1,"p50":1,"p99":%s,"p999":%s,"max":%s}' "$@" "$3" "$3"; }
rings() { printf '{"schema":1,"variants":[%s,%s]}' "$(point packed 0 "$1")" "$(point packed.ring2 0 "$2")" >"$W/rings.costs"; }
tiny="--random-weights 1 --size tiny"
rings 29000 20000
run 0 "two rings in time" check "$W/pipelines/rings.lua" $tiny --costs "$W/rings.costs"
rings 31000 20000
run 1 "the ring with the earlier deadline runs first" check "$W/pipelines/rings.lua" $tiny --costs "$W/rings.costs"
out "path 51 ms (p99: ring2 20 + 1 forward of a ring 7 deep)"
[ "$(grep -c E031 "$W/out")" = 1 ]; ok $? "and is in time itself"
printf '{"schema":1,"variants":[%s]}' "$(point packed 13 56000)" >"$W/shared.costs" # of both, none in flight
run 1 "rings that share forwards" check pipelines/graphs/g19_two_rings.lua --costs "$W/shared.costs"
out "1 forward of rings 7 deep"
[ "$(grep -c E031 "$W/out")" = 2 ]; ok $? "are late together"
printf '{"schema":1,"variants":[%s,%s]}' "$(point packed 6 54000)" "$(point packed 25 56000)" >"$W/robots.costs" # full
run 0 "a ring in time" check pipelines/openvla_ring.lua --costs "$W/robots.costs"
run 1 "those of two robots are late" check pipelines/openvla_ring.lua --costs "$W/robots.costs" --set frame.sessions=2
out "path 56 ms (p99: 1 forward of rings 7 deep)"
words="model.dtype=bf16 model.quantize=int8 model.quantize_head=none model.round=mixed"
set -- $demo --threads 1 --set model.quantize=int8 --set model.round=mixed
run 0 "times with settings" profile "$@" --frames 3; out "^settings: $words$"
run 0 "of ops" profile "$@" --ops --csv "$W/ops.csv"; out "^settings: $words$"
[ "$(head -n 1 "$W/ops.csv")" = "node,part,stage,op,layer,calls,us,share,gflops,gbs,of_roof,settings" ] &&
    [ "$(sed 1d "$W/ops.csv" | grep -vc ",$words$")" = 0 ] && [ "$(wc -l <"$W/ops.csv")" -gt 9 ]
ok $? "and in each row of the table"
run 0 "and as JSON" profile "$@" --layers --format json; out '"model.quantize": "int8"'
run 2 "no pipeline" profile
run 2 "no samples" profile $demo --frames 0
echo "1..$n"
exit $failed

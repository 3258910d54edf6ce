#!/bin/sh
# planner_and_arm.t - a planner beside an arm from the outside: what check and graph say of two models,
# that no action is late while a prefill of 20 times the slack is under way, that actions do not
# change for it, and the budget of both.
# usage: tests/planner_and_arm.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P=pipelines/planner_and_arm.lua

run() { timeout 120 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null; }
lines() { grep -c -- "$1" "$W/trace"; }

# --- both models in one plan ---------------------------------------------------------------------
run check $P && grep -q ': ok  2 models' "$W/out" && grep -q '^  planner/private in 24 slices$' "$W/out"
ok $? "check names both models and the slices"
run check $P --set capture.slices=6 && grep -q '^  planner/private in 6 slices$' "$W/out"
ok $? "as many slices as the file says"
run check $P --set capture.max_graphs=8
[ $? -ne 0 ] && grep -q '28 captures, the most is 8: give capture.slices, or raise max_graphs' "$W/out" "$W/err"
ok $? "slices count as captures"
run check $P --set memory.device=5GiB; [ $? -ne 0 ] && grep -q 'E040' "$W/out"
ok $? "the budget is that of both"
run graph $P -T text && grep -q 'pi05 bf16, qwen2 bf16' "$W/out"
ok $? "graph names both"
run graph $P --compiled -T text --random-weights 1 --size tiny && grep -q '^planner/private .*in 4 slices' "$W/out" &&
    grep -q '^frame ' "$W/out" && grep -q '^planner/decode.b2' "$W/out"
ok $? "graph has the parts of both"
run expand $P && "$T" expand $P >"$W/once.json" && "$T" expand "$W/once.json" >"$W/again.json" &&
    grep -q '"name": "planner"' "$W/again.json" && grep -v '"at"' "$W/once.json" >"$W/a" &&
    grep -v '"at"' "$W/again.json" >"$W/b" && cmp -s "$W/a" "$W/b"
ok $? "expand keeps them"
run run $P --weights tests/golden/demo/episodes/checkpoint; [ $? -ne 0 ] && [ "$(wc -l <"$W/err")" -eq 1 ]
ok $? "a planner without weights is refused in one line"

# --- on a virtual clock: 804 ms of prefill beside 40 ms of slack ----------------------------------
row() { printf '{"node":"%s","point":%s,"n":1000,"min":%d,"p50":%d,"p99":%d,"p999":%d,"max":%d}' "$@"; }
{
    printf '{"schema":1,"unit":"us","variants":['
    row see '{}' 19000 20000 22000 23000 24000; printf ','
    row act '{}' 35000 36000 38000 39000 40000; printf ','
    row think '{"slices":24}' 33000 33500 34000 35000 36000; printf ','
    row plan '{"batch":1}' 4000 4100 4500 4600 4700; printf ','
    row plan '{"batch":2}' 4200 4300 4700 4800 4900
    printf ']}\n'
} >"$W/costs.json"
simulate() { run simulate $P --costs "$W/costs.json" --scenario "$W/s.json" --trace "$W/trace" "$@"; }
echo '{"schema":1,"clock":"paced","frames":120,"instruction":[{"frame":10},{"frame":60}]}' >"$W/s.json"
simulate && grep -q '^fill: 120 frames, 0 skipped, 0 missed$' "$W/out"
ok $? "no frame is missed"
[ "$(lines '"event":"release".*"late":false')" -eq 120 ] && [ "$(lines '"late":true')" -eq 0 ]
ok $? "all 120 chunks leave in time"
[ "$(lines '"event":"start".*"node":"think"')" -eq 58 ] && [ "$(lines '"slices":1,"of":24')" -eq 58 ]
ok $? "one slice a frame: 10 that are given up, and twice 24"
[ "$(lines '"event":"finish"')" -eq 2 ] && [ "$(lines '"reason":"superseded"')" -eq 1 ]
ok $? "a new goal ends the plan for the old one; both others are said"
awk '/"event":"alloc"|"op":"alloc","kv":"context"/ { a++ } /"op":"free","kv":"context"/ { f++ } END { exit !(a == 3 && f == 3) }' "$W/trace"
ok $? "every region that is taken is given back"
simulate --policy default && grep -q '120 frames, 0 skipped, 0 missed' "$W/out" && [ "$(lines '"node":"think"')" -eq 0 ]
ok $? "default, which knows no slices: none runs, nothing is late"
simulate --policy slack_k && grep -q '120 frames, 0 skipped, 0 missed' "$W/out" && [ "$(lines '"event":"finish"')" -eq 2 ]
ok $? "slack_k: slices run where they fit, nothing is late"
cat >"$W/greedy.lua" <<'EOF'
return policy { name = "greedy", api = 1, version = 1,
  plan = function(S, F, D) for i = 1, F.nreq do D:slices(F.req[i].prefill, F.req[i].slices); D:decode(i, 1) end end }
EOF
simulate --policy "$W/greedy.lua"; grep -q ' 0 missed' "$W/out"; [ $? -ne 0 ]
ok $? "who runs all slices at once misses frames: it is seen"
simulate --set capture.slices=1 && grep -q ' 0 missed' "$W/out" && [ "$(lines '"node":"think"')" -eq 0 ]
ok $? "in one piece it never fits, and the arm does not suffer"
cat >"$W/wrong.lua" <<'EOF'
return policy { name = "wrong", api = 1, version = 1, plan = function(S, F, D) D:slices("see", 1) end }
EOF
simulate --policy "$W/wrong.lua"; grep -q "no prefill of a second model" "$W/out" "$W/err" "$W/trace"
ok $? "slices of another node are an error of the policy"

# --- for real, at the tiny size -------------------------------------------------------------------
picture=tests/golden/images/decode/files/rgb8.png
real() {
    run run $P --random-weights 1 --size tiny --threads 1 --frames 12 --format json --input observation/image=@$picture \
        --input observation/wrist_image=@$picture --input 'observation/state=[0,0,0,0,0,0,0,0]' \
        --input 'prompt=pick up the cup' --set capture.k='[1,2,64]' "$@"
}
actions() { sed -n 's/.*"actions":\({[^}]*}\).*/\1/p' "$W/out"; }
tokens() { grep -o '"tokens":\[[0-9,]*\]' "$W/out" | tr -d 'a-z":[]' | tr '\n' ',' | tr -s ','; }
real --policy default && actions >"$W/alone" && [ "$(wc -l <"$W/alone")" -eq 12 ]
ok $? "the arm with a planner that waits"
cat >"$W/paced.lua" <<'EOF'
return policy { name = "paced", api = 1, version = 1, needs = { "decode.k" },
  params = { n = int { default = 1, min = 1, max = 64 }, k = int { default = 2, min = 1, max = 64 } },
  plan = function(S, F, D)
    for i = 1, F.nreq do D:slices(F.req[i].prefill, F.params.n); D:decode(i, F.params.k) end
  end }
EOF
real --policy "$W/paced.lua" --drain && actions | head -n 12 >"$W/beside" && tokens >"$W/slices1"
cmp -s "$W/alone" "$W/beside" && [ -s "$W/slices1" ]
ok $? "actions are equal beside slices of one layer"
real --policy "$W/paced.lua" --param n=64 --drain && actions | head -n 12 >"$W/beside" && tokens >"$W/slices64"
cmp -s "$W/alone" "$W/beside" && cmp -s "$W/slices1" "$W/slices64"
ok $? "equal beside all of them; the plan is the same"
real --policy "$W/paced.lua" --set capture.slices=1 --param k=64 --drain && tokens >"$W/whole" && cmp -s "$W/slices1" "$W/whole"
ok $? "and the same in one piece, in one launch"
for seed in 1 2 3; do
    real --policy chaos --param seed=$seed --drain && actions | head -n 12 >"$W/beside" && tokens >"$W/random"
    cmp -s "$W/alone" "$W/beside" && cmp -s "$W/slices1" "$W/random"
    ok $? "nor under random decisions, seed $seed"
done

# --- a planner that says one of a list ------------------------------------------------------------
list='{ " find a mug", " find a book", " done" }'
echo "return extend('planner_and_arm.lua', { nodes = { { name = 'plan', choices = $list } } })" >"$W/list.lua"
P=$W/list.lua
real --policy "$W/paced.lua" --param k=64 --drain && actions | head -n 12 >"$W/beside" && cmp -s "$W/alone" "$W/beside" &&
    grep -Eq '"tokens":\[35,(103,114,113,104|105,108,113,103,35,100,35,(112|101))\],"text":"","done":true,"reason":"choice"' "$W/out"
ok $? "bytes of a text of the list; the arm does not know"
echo "return extend('planner_and_arm.lua', { nodes = { score { name = 'rank', model = 'planner', kv = 'context'," \
    "candidates = $list, spawn = on_change(), out = stream 'x' } } })" >"$W/list.lua"
real --policy "$W/paced.lua" --param k=64 --drain && actions | head -n 12 >"$W/beside" &&
    cmp -s "$W/alone" "$W/beside" && grep -q '"log_likelihood"' "$W/out"
ok $? "a ranking by it; the arm does not know"

echo "1..$n"
exit $failed

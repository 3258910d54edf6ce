#!/bin/sh
# smolvla_robot.t - the trained SmolVLA that ships: what it says of recorded observations is what its model in PyTorch says of them,
# and the task is heeded.
# usage: tests/smolvla_robot.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
robot=$root/pipelines/checkpoints/metaworld_smolvla

cat >"$W/compare.py" <<'PYTHON'
import json, sys
got = [json.loads(line)["actions"]["act"] for line in open(sys.argv[1])]
want = [json.loads(line) for line in open(sys.argv[2])]
assert len(got) == len(want) and all(len(g) == len(w) == 16 for g, w in zip(got, want)), (len(got), len(want))
worst = max(abs(a - b) for g, w in zip(got, want) for x, y in zip(g, w) for a, b in zip(x, y))
beyond = sys.argv[3] == "beyond"
assert (worst > float(sys.argv[4])) if beyond else (worst < float(sys.argv[3])), worst
PYTHON
for task in button drawer_open drawer_close; do
    for dtype in f32 bf16; do
        timeout 60 "$T" run "$robot" --root "$root" --dtype $dtype --inputs "$robot/episodes/$task.jsonl" \
            --noise "@$robot/episodes/$task.noise.safetensors#noise" --format json >"$W/out" 2>"$W/err"
        ok $? "$task runs in $dtype"
        python3 "$W/compare.py" "$W/out" "$robot/episodes/$task.expected.jsonl" 2e-5 2>>"$W/err"
        ok $? "$task in $dtype as PyTorch says"
    done
done
sed 's/close the drawer/open the drawer/; s/"@/"@episodes\//g' "$robot/episodes/drawer_close.jsonl" >"$W/other.jsonl" && ln -s "$robot/episodes" "$W/episodes"
timeout 60 "$T" run "$robot" --root "$root" --inputs "$W/other.jsonl" --noise "@$robot/episodes/drawer_close.noise.safetensors#noise" \
    --format json >"$W/out" 2>"$W/err" && python3 "$W/compare.py" "$W/out" "$robot/episodes/drawer_close.expected.jsonl" beyond 0.3 2>>"$W/err"
ok $? "told something else about the same pictures, it does something else"
timeout 60 "$T" init "$robot" --root "$root" >"$W/init.lua" 2>"$W/err"; ok $? "init"
grep -q 'EXECUTE <const> = 8' "$W/init.lua"; ok $? "eight actions of a chunk are executed"

echo "1..$n"
exit $failed

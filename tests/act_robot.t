#!/bin/sh
# act_robot.t - the trained ACT that ships: what it says of recorded observations is what LeRobot's own policy says of them.
# usage: tests/act_robot.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
robot=$root/pipelines/checkpoints/metaworld_act

cat >"$W/compare.py" <<'PYTHON'
import json, sys
got = [json.loads(line)["actions"]["act"] for line in open(sys.argv[1])]
want = [json.loads(line) for line in open(sys.argv[2])]
assert len(got) == len(want) and all(len(g) == len(w) == 24 for g, w in zip(got, want)), (len(got), len(want))
worst = max(abs(a - b) for g, w in zip(got, want) for x, y in zip(g, w) for a, b in zip(x, y))
assert worst < 2e-5, worst # float32 beside float32, of actions of size 1
assert len({json.dumps(g) for g in got}) == len(got), "two observations have one answer"
PYTHON
for task in button drawer_open faucet_open; do
    timeout 60 "$T" run "$robot" --root "$root" --inputs "$robot/episodes/$task.jsonl" --format json >"$W/out" 2>"$W/err"
    ok $? "$task runs"
    python3 "$W/compare.py" "$W/out" "$robot/episodes/$task.expected.jsonl" 2>>"$W/err"
    ok $? "$task as LeRobot says"
done
timeout 60 "$T" init "$robot" --root "$root" >"$W/init.lua" 2>>"$W/err"; ok $? "init"
grep -q 'EXECUTE <const> = 8' "$W/init.lua"; ok $? "eight actions of a chunk are executed"
timeout 60 "$T" run "$robot" --root "$root" -i prompt=go >"$W/out" 2>"$W/err"; [ $? -ne 0 ]; ok $? "it has no prompt"
grep -q "wants observation.images.corner, observation.images.wrist, observation.state$" "$W/err"
ok $? "and none is listed"

echo "1..$n"
exit $failed

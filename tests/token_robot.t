#!/bin/sh
# token_robot.t - the trained OpenVLA that ships: what it says of recorded pictures is what PyTorch says of them, at every depth
# of its ring; and on the virtual devices of the closed loop, how old an action is.
# usage: tests/token_robot.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
robot=pipelines/demo_metaworld_token.lua
episodes=pipelines/checkpoints/metaworld_token/episodes

cat >"$W/compare.py" <<'PYTHON'
import json, sys
want = [json.loads(line) for line in open(sys.argv[2])]
got = {}
for line in map(json.loads, open(sys.argv[1])):
    if line["source"] == "fresh":
        got[line["seen"]] = line["actions"]["advance"][0]
    for more in line.get("earlier") or []:
        got[more["seen"]] = more["actions"][0]
assert sorted(got) == list(range(len(want))), sorted(got)
worst = max(abs(a - b) for i, row in enumerate(want) for a, b in zip(got[i], row))
assert worst < 1e-6, worst # the same bins; PyTorch's are rounded to six digits
assert len({json.dumps(row) for row in want}) > 3, "all pictures have one answer"
PYTHON
for depth in 1 2 3 4 7; do
    timeout 60 "$T" run "$robot" --root "$root" --inputs "$episodes/slide.jsonl" --param depth=$depth --drain --dtype f32 \
        --format json >"$W/out" 2>"$W/err"
    ok $? "depth $depth runs"
    python3 -S "$W/compare.py" "$W/out" "$episodes/slide.expected.jsonl" 2>>"$W/err"
    ok $? "depth $depth as PyTorch says"
done

# age COSTS DEPTH: the median age of an action in microseconds, in frames of the real loop on that virtual device.
age() {
    "$T" simulate "$robot" --root "$root" --costs "tools/demo/costs/$1.costs" --clock saturated -n 30 --param depth="$2" --format json |
        python3 -S -c "import json, sys; print(round(json.load(sys.stdin)['rows'][0]['age_us']['p50']))"
}
[ "$(age rtx5090 1)" = 124150 ]; ok $? "an action of one frame is 124 ms old on the virtual RTX 5090"
[ "$(age rtx5090 7)" = 410914 ]; ok $? "an action of a full ring is 411 ms old there"

echo "1..$n"
exit $failed

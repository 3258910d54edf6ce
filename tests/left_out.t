#!/bin/sh
# left_out.t - an action node that a policy leaves out of some frames: the robot is given what on_miss
# says, and nobody counts a miss.
# usage: tests/left_out.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
G=pipelines/graphs/g16_action_may_be_skipped.lua
random="--random-weights 1 --size tiny" frames=7
policy="--policy tests/policies/left_out_policy.lua"

# run NAME OPTION...: frames into $W/NAME
run() {
    to=$1
    shift
    "$T" run $G $random --random-inputs 1 -n $frames --format json "$@" >"$W/$to" 2>"$W/err" </dev/null
}

# is TEXT CONDITION: of the frames f("NAME"), and what went wrong in $W/out
is() {
    python3 -S - "$W" "$2" >"$W/out" 2>&1 <<'PYTHON'
import json, sys
def f(name):
    return [json.loads(line) for line in open(sys.argv[1] + "/" + name)]
def left_out(name):  # the frames that leave the action out
    return [x["frame"] for x in f(name) if x.get("left_out") == ["act"]]
def act(x):
    return x["actions"].get("act") or []
sys.exit(not eval("(" + sys.argv[2] + ")", globals()))
PYTHON
    ok $? "$1"
}

run whole --policy default
run unpaced $policy
is "the default plan leaves nothing out" 'not left_out("whole") and all(len(act(x)) == 8 for x in f("whole"))'
is "each third frame leaves it out, and says so" 'left_out("unpaced") == [0, 3, 6]'
is "the robot is given what on_miss says: nothing first, then its last command" \
    '[x["source"] for x in f("unpaced")] == ["none", "fresh", "fresh", "held", "fresh", "fresh", "held"] and
     not act(f("unpaced")[0]) and all(act(f("unpaced")[i]) == [act(f("unpaced")[i - 1])[-1]] * 8 for i in (3, 6))'
is "which is no miss" 'not any(x["missed"] or x["cause"] for x in f("unpaced") if x.get("left_out"))'
is "no launch is spent on it" '[len(x["plan"]["launches"]) for x in f("unpaced")] == [0, 2, 2, 0, 2, 2, 0]'
is "the other frames act as ever" 'all(act(a) == act(b) for a, b in zip(f("whole"), f("unpaced")) if not b.get("left_out"))'
run interpreted $policy --interpret
is "as interpreted" '[x["actions"] for x in f("interpreted")] == [x["actions"] for x in f("unpaced")] and left_out("interpreted") == [0, 3, 6]'

# given POLICY OF ON_MISS: what is given in frame 3, where that is not the last command again
for one in "zeros zeros" "decay decayed" "last_chunk held"; do
    run "${one% *}" $policy --set "nodes.act.deadline.on_miss=${one% *}" --set nodes.act.deadline.decay_actions=9
    is "on_miss = ${one% *}" 'f("'"${one% *}"'")[3]["source"] == "'"${one#* }"'" and not any(x["missed"] for x in f("'"${one% *}"'") if x.get("left_out"))'
done
run stop $policy --set nodes.act.deadline.on_miss=stop
is "on_miss = stop stops the robot" 'all(x["source"] == "stopped" and not act(x) for x in f("stop"))'

frames=4
run paced $policy --clock paced --actions 1 --set frame.period_ms=2000 --set nodes.act.deadline.ms=1900
frames=7
cp "$W/err" "$W/paced_err"
is "a tick is given the same, at once and not at its deadline" \
    '[x["source"] for x in f("paced")] == ["none", "fresh", "fresh", "held"] and left_out("paced") == [0, 3] and
     not any(x["missed"] for x in f("paced")) and all(x["handed_us"] < x["deadline_us"] for x in f("paced"))'
grep -q '4 ticks, 0 skipped, 0 missed, 2 left out$' "$W/paced_err"
ok $? "and the summary counts it"

"$T" simulate $G $random --launch-ms 1 -n 7 $policy --trace "$W/trace" >"$W/out" 2>"$W/err" </dev/null
grep -q '7 frames, 0 skipped, 0 missed, 3 left out$' "$W/out"
ok $? "a simulation counts it"
said=$(sed -n 's/.*"event":"left_out","frame":\([0-9]*\),"node":"act","reason":"rests".*/\1/p' "$W/trace" | tr '\n' ' ')
[ "$said" = "0 3 6 " ] && [ "$(grep -c '"event":"release"' "$W/trace")" -eq 4 ]
ok $? "its events say the same frames"
echo '{"schema":1,"clock":"paced","handout":{"actions":1,"dims":1}}' >"$W/s.json"
"$T" simulate $G $random --launch-ms 1 -n 4 $policy --scenario "$W/s.json" --trace "$W/trace" >"$W/out" 2>"$W/err" </dev/null
said=$(sed -n 's/.*"event":"handout","frame":\([0-9]*\),"source":"\([a-z]*\)"\(,"left_out":true\)*.*/\1 \2\3/p' "$W/trace" |
    sed 's/,"left_out":true/ left out/' | tr '\n' ',')
[ "$said" = "0 none left out,1 fresh,2 fresh,3 held left out," ]
ok $? "and so does what its robot is given: $said"

(cd "$W" && "$T" run "$root/$G" $random --random-inputs 1 -n 7 --policy "$root/tests/policies/left_out_policy.lua" --record r.mcap --root "$root" >out 2>err </dev/null)
"$T" replay "$W/r.mcap" >"$W/out" 2>"$W/err"
grep -q '^actions  4 equal, 0 differ, 0 on one side' "$W/out" && grep -q '^plans    7 equal, 0 differ' "$W/out"
ok $? "a replay leaves it out of the same frames"

"$T" explain "$W/r.mcap" >"$W/out" 2>"$W/err"
"$T" explain "$W/r.mcap" --frame 3 >>"$W/out" 2>"$W/err"
grep -q '^7 frames, 0 missed, 3 left out$' "$W/out" && grep -q "^  left out: 'act', rests$" "$W/out"
ok $? "explain counts it, and says it of its frame"
"$T" explain "$W/r.mcap" --format json >"$W/all" 2>"$W/err" && "$T" explain "$W/r.mcap" --frame 3 --format json >"$W/third" 2>"$W/err" &&
    "$T" explain "$W/r.mcap" --frame 4 --format json >"$W/fourth" 2>"$W/err"
is "and so in JSON" 'f("all")[0]["left_out"] == 3 and f("third")[0]["left_out"] == [{"node": "act", "reason": "rests"}] and f("fourth")[0]["left_out"] == []'
"$T" top "$W/r.mcap" >"$W/out" 2>"$W/err"
"$T" top "$W/r.mcap" --format json >>"$W/out" 2>"$W/err"
grep -q '^missed 0 of 7 in .* s  left out by the policy 3$' "$W/out" && grep -q '"left_out":3,' "$W/out"
ok $? "top counts it"

# Two heads on one prefill: what one leaves out is the other's no loss. Four robots: it is all of them's.
echo 'return extend("graphs/g04_two_heads.lua", { name = "heads", resources = { without "lang" }, nodes = { without "talk",
    action { name = "act", when = policy() } } })' >"$W/heads.lua"
echo 'return extend("graphs/g24_many_robots.lua", { name = "robots", nodes = { action { name = "act", when = policy() } } })' >"$W/robots.lua"
slow="--set frame.period_ms=100000 --set nodes.act.deadline.ms=90000"
also="--set nodes.act_early.deadline.ms=95000" # so that act is what goes with the prefill
for one in heads robots; do
    G="$W/$one.lua --root ."
    run "$one" $policy $slow $also
    run "${one}_interpreted" $policy --interpret $slow $also
    also=
    is "$one: as interpreted" '[x["actions"] for x in f("'$one'")] == [x["actions"] for x in f("'${one}_interpreted'")]'
done
is "heads: the other one acts in every frame" \
    'left_out("heads") == [0, 3, 6] and all(len(x["actions"]["act_early"]) > 0 and x["released"]["act_early"]["source"] == "fresh" for x in f("heads"))'
is "robots: it is left out of a frame for all" 'left_out("robots") == [0] * 4 + [3] * 4 + [6] * 4 and not any(x["missed"] for x in f("robots"))'

PYTHONDONTWRITEBYTECODE=1 python3 tests/left_out.py "$T" >"$W/out" 2>"$W/err"
ok $? "clients of a server are given the same, and what else they asked for"
echo "1..$n"
exit $failed

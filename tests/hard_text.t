#!/bin/sh
# hard_text.t - a text with a hard deadline beside actions: made to its end in the frame that it is
# born in, behind the actions, whatever a policy decides; late, it is a miss. It delays no action of
# any chain that is due before it.
# usage: tests/hard_text.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
P=tests/pipelines/hard_text.lua
random="--random-weights 1 --size tiny"

cat >"$W/same.py" <<'PYTHON'
import json, sys
def f(name):
    return [(x.get("session"), x["actions"], [(t["request"], t["tokens"]) for t in x["text"]["talk"]])
            for x in map(json.loads, open(name))]
a, b, n = f(sys.argv[1]), f(sys.argv[2]), int(sys.argv[3])
assert a == b and len(a) == n, (len(a), len(b))
assert all(len(texts) == 1 and len(texts[0][1]) == 6 for _, _, texts in a), a
PYTHON
for sessions in 1 3; do
    for policy in default chaos; do
        for how in "" --interpret; do
            "$T" run $P $random --set frame.sessions=$sessions --set resources.lang.slots=4 --random-inputs 1 -n 6 \
                --threads 2 --policy $policy --format json $how >"$W/frames$how" 2>"$W/err" </dev/null
        done
        python3 "$W/same.py" "$W/frames" "$W/frames--interpret" $((6 * sessions)) 2>>"$W/err"
        ok $? "$sessions session(s), $policy: a whole text in each frame, as interpreted"
    done
done

cat >"$W/trace.py" <<'PYTHON'
import json, sys
late = sys.argv[2] == "late"
frames = {}
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] in ("start", "release", "finish", "frame_end"):
        frames.setdefault(e["frame"], []).append(e)
assert len(frames) == 3
for events in frames.values():
    names = [(e["event"], e.get("node")) for e in events]
    assert names == [("start", "see"), ("start", "act"), ("release", "act"), ("start", "talk"), ("start", "talk"),
                     ("finish", None), ("frame_end", None)], names
    end = events[-1]
    assert (end["missed"], end["overrun_us"]) == ((True, 160000) if late else (False, 0)), end
    assert not events[2]["late"]
PYTHON
for ms in 100 120; do
    "$T" simulate $P $random --launch-ms $ms -n 3 --trace "$W/trace" >"$W/out" 2>"$W/err" &&
        python3 "$W/trace.py" "$W/trace" $([ $ms = 100 ] || echo late) in_time 2>"$W/err"
    ok $? "launches of $ms ms: the actions first, then the text to its end$([ $ms = 100 ] || echo ', which is late: a miss')"
done

B=tests/pipelines/hard_text_beside.lua
cat >"$W/order.py" <<'PYTHON'
import json, sys
started = [(e["node"], e["t_us"] // 1000) for e in map(json.loads, open(sys.argv[1])) if e["event"] == "start"]
assert " ".join("%s:%d" % x for x in started) == sys.argv[2], started
ends = [e for e in map(json.loads, open(sys.argv[1])) if e["event"] == "frame_end"]
assert [e["missed"] for e in ends] == [sys.argv[3] == "missed"], ends
PYTHON
order() { # DEADLINE STARTS in_time|missed
    "$T" simulate $B $random --set nodes.talk.deadline.ms=$1 --launch-ms 100 -n 1 --trace "$W/trace" >"$W/out" 2>"$W/err" &&
        python3 "$W/order.py" "$W/trace" "$2" $3 2>"$W/err"
}
order 1300 "see:0 goal:100 act:400 look:500 move:600 talk:700 talk:1000" in_time
ok $? "a text that nobody waits for comes behind all actions that are due before it, of its own chain and of others"
order 650 "see:0 goal:100 act:400 talk:500 talk:800 look:1100 move:1200" missed
ok $? "what is due after it comes behind it"

cat >"$W/pair.py" <<'PYTHON'
import json, sys
def f(name):
    return [(x.get("session"), x["actions"], [[t["tokens"] for t in x["text"][n]] for n in ("goal", "talk")])
            for x in map(json.loads, open(name))]
a, b = map(f, sys.argv[1:])
assert a == b and len(a) == 12, (len(a), len(b))
assert all([[len(t) for t in texts] for texts in x[2]] == [[3], [6]] for x in a), a
PYTHON
for how in "" --interpret; do
    "$T" run $B $random --set frame.sessions=3 --set resources.lang.slots=8 --random-inputs 1 -n 4 --threads 2 --policy chaos \
        --format json $how >"$W/frames$how" 2>"$W/err" </dev/null
done
python3 "$W/pair.py" "$W/frames" "$W/frames--interpret" 2>>"$W/err"
ok $? "three sessions: both texts are whole in each frame, as interpreted"

sed -e '/action  {/s/, deadline = hard { ms = 900 }/, after = "talk"/' -e 's/spawn = every(2)/deadline = soft { ms = 100 }, spawn = every(1)/' \
    tests/pipelines/two_models_arm.lua >"$W/soft.lua"
grep -q 'after = "talk"' "$W/soft.lua" && grep -q "soft { ms = 100 }" "$W/soft.lua" &&
    "$T" simulate "$W/soft.lua" --root . $random --launch-ms 100 -n 2 --trace "$W/trace" >"$W/out" 2>"$W/err" &&
    [ "$(grep -c '"frame_end".*"missed":false' "$W/trace")" = 2 ]
ok $? "a soft deadline of a text that is waited for is no miss"

cat >"$W/costs.py" <<'PYTHON'
import json, sys
def row(node, us, **point):
    return {"node": node, "point": point, "n": 9, "min": us, "p50": us, "p99": us, "p999": us, "max": us}
alone = [row(node, 100000) for node in ("see", "act", "look", "move")]
texts = [row(node, 100000, batch=1) for node in ("talk", "goal")]
json.dump({"schema": 1, "unit": "us", "variants": alone + texts}, open(sys.argv[1], "w"))
PYTHON
python3 "$W/costs.py" "$W/costs.costs"
"$T" check $P $random --costs "$W/costs.costs" >"$W/out" 2>"$W/err"
ok $? "a text of six tokens fits"
"$T" check $P $random --costs "$W/costs.costs" --set nodes.talk.max_tokens=7 --set resources.lang.tokens=67 >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "critical path 900 ms (p99: see 100 + act 100 + talk 700)" "$W/out"
ok $? "check counts its longest run behind the actions"
"$T" check $B $random --costs "$W/costs.costs" >"$W/out" 2>&1
ok $? "beside another chain each node fits its deadline to the millisecond"
for set in talk:1299:"see 100 + goal 300 + act 100 + look 100 + move 100 + talk 600" move:699:"see 100 + goal 300 + act 100 + look 100 + move 100" \
    act:499:"see 100 + goal 300 + act 100" goal:399:"see 100 + goal 300"; do
    node=${set%%:*} path=${set##*:} ms=${set#*:}
    "$T" check $B $random --costs "$W/costs.costs" --set nodes.$node.deadline.ms=${ms%%:*} >"$W/out" 2>&1
    [ $? -ne 0 ] && [ "$(grep -c E031 "$W/out")" = 1 ] && grep -qF "(p99: $path)" "$W/out"
    ok $? "check counts what runs before $node, and nothing else"
done
"$T" check $B $random --costs "$W/costs.costs" --set nodes.talk.deadline.ms=650 >"$W/out" 2>&1
[ $? -ne 0 ] && grep -qF "(p99: see 100 + goal 300 + act 100 + talk 600)" "$W/out" &&
    grep -qF "(p99: see 100 + goal 300 + act 100 + talk 600 + look 100 + move 100)" "$W/out"
ok $? "and a text before what is due later"
"$T" check $P $random --costs "$W/costs.costs" >"$W/out" 2>&1
[ $? -eq 0 ] && grep -q "W115.*800 ms holds.* 1400 ms (p99: see 100 + act 100 + talk 1200)" "$W/out"
ok $? "three texts may be asked for at once, in two launches, which is told"
"$T" check $P $random --costs "$W/costs.costs" --set nodes.talk.supersede=true >"$W/out" 2>&1
[ $? -eq 0 ] && ! grep -q W115 "$W/out"
ok $? "not where a new one ends the one before"
"$T" check $P $random --costs "$W/costs.costs" --set "nodes.talk.spawn=on_request()" >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "critical path 1400 ms (p99: see 100 + act 100 + talk 1200)" "$W/out"
ok $? "and those that come by requests alone are counted"
"$T" policy check policies/slack_k.lua --pipeline $P $random --costs "$W/costs.costs" -n 200 >"$W/out" 2>&1
grep -q "hard nodes take see 100 + act 100 + talk [0-9]* = [0-9]* ms, due after 800 ms" "$W/out"
ok $? "policy check, which asks for more, names the chain with the texts"
for set in 'when=policy()' 'deadline=hard { ms = 800, on_miss = "zeros" }' 'deadline=hard { ms = 800, on_miss = "hold" }' \
    'deadline=hard { ms = 800, limit = 3 }'; do
    cp tests/pipelines/two_models_arm.lua $P "$W"
    echo "return extend('hard_text.lua', { name = 'more', nodes = { decode { name = 'talk', $set } } })" >"$W/more.lua"
    "$T" check "$W/more.lua" --root . >"$W/out" 2>&1
    [ $? -ne 0 ] && grep -q "E071" "$W/out"
    ok $? "which has no $set: no policy decides about it, and a robot is given nothing else for it"
done
echo "1..$n"
exit $failed

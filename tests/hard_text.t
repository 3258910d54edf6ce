#!/bin/sh
# hard_text.t - a text with a hard deadline beside actions: made to its end in the frame that it is
# born in, behind the actions, whatever a policy decides; late, it is a miss.
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

cat >"$W/costs.py" <<'PYTHON'
import json, sys
def row(node, us, **point):
    return {"node": node, "point": point, "n": 9, "min": us, "p50": us, "p99": us, "p999": us, "max": us}
json.dump({"schema": 1, "unit": "us", "variants": [row("see", 100000), row("act", 100000), row("talk", 100000, batch=1)]},
          open(sys.argv[1], "w"))
PYTHON
python3 "$W/costs.py" "$W/costs.costs"
"$T" check $P $random --costs "$W/costs.costs" >"$W/out" 2>"$W/err"
ok $? "a text of six tokens fits"
"$T" check $P $random --costs "$W/costs.costs" --set nodes.talk.max_tokens=7 --set resources.lang.tokens=67 >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "critical path 900 ms (p99: see 100 + act 100 + talk 700)" "$W/out"
ok $? "check counts its longest run behind the actions"
for set in 'draft={model="main",tokens=2}' 'when=policy()'; do
    cp tests/pipelines/two_models_arm.lua $P "$W"
    echo "return extend('hard_text.lua', { name = 'more', nodes = { decode { name = 'talk', $(echo "$set" | sed 's/=/ = /') } } })" >"$W/more.lua"
    "$T" check "$W/more.lua" --root . >"$W/out" 2>&1
    [ $? -ne 0 ] && grep -q "E070" "$W/out"
    ok $? "which has no ${set%%=*}: no policy decides about it"
done
echo "1..$n"
exit $failed

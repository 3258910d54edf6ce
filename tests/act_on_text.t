#!/bin/sh
# act_on_text.t - actions on keys that language has extended: which text, of which frame, and what a
# frame waits for.
# usage: tests/act_on_text.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
waits=pipelines/graphs/g08_subtask_then_action.lua newest=pipelines/graphs/g08b_newest_subtask.lua
random="--random-weights 1 --size tiny"

# run NAME PIPELINE ARGUMENTS...
run() {
    name=$1 pipeline=$2
    shift 2
    "$T" run "$pipeline" $random --random-inputs 1 -n 8 --threads 2 --format json "$@" >"$W/$name" 2>"$W/err" </dev/null ||
        sed 's/^/# /' "$W/err"
}

# is DESCRIPTION EXPRESSION: of `acts(NAME)`, the chunks of a run's frames, and `says(NAME)`, its texts
is() {
    python3 - "$W" "$2" >"$W/err" 2>&1 <<'PYTHON'
import json, sys
def f(name):
    return [json.loads(line) for line in open(f"{sys.argv[1]}/{name}")]
def acts(name):
    return [x["actions"]["act"] for x in f(name)][:8]
def says(name):
    texts = {}
    for x in f(name):
        for t in (x["text"] or {}).get("talk", []):
            texts.setdefault(t["request"], []).extend(t["tokens"] or [])
    return texts
def launches(name):
    return [l["node"] for l in f(name)[1]["plan"]["launches"]]
assert eval(sys.argv[2]), "is not so"
PYTHON
    ok $? "$1"
}

run bare pipelines/pi05_libero.lua
run said $waits
run ordered $waits --set nodes.act.kv=obs
run short $waits --set nodes.talk.max_tokens=3
is "the text of each frame is finished before its actions leave" \
    'list(map(len, says("said").values())) == [8] * 8 and launches("said") == ["see", "talk", "talk", "act"]'
is "the actions see it" 'all(a != b for a, b in zip(acts("said"), acts("bare")))'
is "and the whole of it" 'all(a != b for a, b in zip(acts("said"), acts("short")))'
is "kv = \"obs\" only waits: the actions of the bare prefix, the same texts" \
    'acts("ordered") == acts("bare") and says("ordered") == says("said") and launches("ordered") == ["see", "talk", "act"]'
run none $newest --policy default
run newest $newest --policy chaos
is "until there is a text, the actions are those of the bare prefix" \
    'acts("none") == acts("bare") and acts("newest")[0] == acts("bare")[0]'

# Every launch takes a millisecond; a text needs six frames.
"$T" simulate $newest $random --launch-ms 1 -n 20 --trace "$W/trace" >"$W/out" 2>"$W/err" && python3 - "$W/trace" <<'PYTHON' 2>"$W/err"
import json, sys
done, ready, frame = [], None, -1
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] == "frame":
        ready = done[-1] if done else None  # what was finished before this frame
        start = e["tick_us"]
    if e["event"] == "arrive":
        born = globals().setdefault("births", {})
        born[e["request"]] = start
    if e["event"] == "finish":
        done.append(e["request"])
    if e["event"] == "release":
        of = start if ready is None else births[ready]
        assert e["age_us"] == e["t_us"] - of, (e, of)
assert len(done) > 3, done
PYTHON
ok $? "the age of actions is that of the text's observation"
grep -q '"op":"remove"' "$W/trace"
ok $? "the keys of an older text are given back"

# Requests of others take no slot of a text that is waited for.
"$T" simulate $waits $random --policy isolated --launch-ms 1 -n 6 --set resources.lang.slots=1 --trace "$W/trace" >"$W/out" 2>"$W/err" &&
    [ "$(grep -c '"event":"release"' "$W/trace")" -eq 6 ] && ! grep -q '"event":"refuse"' "$W/trace"
ok $? "one slot is enough, whatever the policy"

cat >"$W/costs.py" <<'PYTHON'
import json, sys
def row(node, us, **point):
    return {"node": node, "point": point, "n": 9, "min": us, "p50": us, "p99": us, "p999": us, "max": us}
json.dump({"schema": 1, "unit": "us", "variants": [row("see", 100000), row("act", 60000), row("talk", 10000, batch=1)]},
          open(sys.argv[1], "w"))
PYTHON
python3 "$W/costs.py" "$W/costs.costs"
"$T" check $waits --costs "$W/costs.costs" >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "critical path 250 ms (p99: see 100 + talk 90 + act 60)" "$W/out"
ok $? "check counts the longest text, and the step behind it"
"$T" check $waits --costs "$W/costs.costs" --set nodes.talk.max_tokens=7 >"$W/out" 2>&1
ok $? "a shorter one fits"
sed -i 's/[0-9]*0000,/5000,/g' "$W/costs.costs"
"$T" graph -T mermaid $newest >"$W/out" 2>"$W/err" && grep -q "until a text" "$W/out" && grep -q "newest text" "$W/out"
ok $? "graph draws both edges"
"$T" policy check policies/slack_k.lua --pipeline $waits $random --costs "$W/costs.costs" -n 100 >"$W/out" 2>"$W/err"
ok $? "policy check knows the graph"

for p in $waits $newest; do
    PYTHONPATH=tests python3 tests/serve_frames.py "$T" $p >"$W/out" 2>"$W/err"
    ok $? "$(basename "$p" .lua) is served"
done
echo "1..$n"
exit $failed

#!/bin/sh
# said_first.t - a prefill that waits for a text of its frame: what runs in which order, with one
# session and several, what it costs, how it is served.
# usage: tests/said_first.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
P=pipelines/graphs/g26_said_in_the_frame.lua
random="--random-weights 1 --size tiny"

"$T" simulate $P $random --launch-ms 1 -n 4 --trace "$W/trace" >"$W/out" 2>"$W/err" && python3 - "$W/trace" <<'PYTHON' 2>"$W/err"
import json, sys
frames = {}
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] in ("start", "version", "read", "release"):
        frames.setdefault(e["frame"], []).append((e["event"], e.get("node") or e["stream"], e.get("request")))
assert len(frames) == 4
for f, events in frames.items():
    want = [("start", "see", None), ("start", "talk", None), ("version", "narration", f), ("read", "look", f),
            ("start", "look", None), ("start", "act", None), ("release", "act", None)]
    assert events == want, events
PYTHON
ok $? "in every frame: see, the text to its end, look, act"

cat >"$W/same.py" <<'PYTHON'
import json, sys
def f(name):
    frames = [json.loads(line) for line in open(name)]
    texts = {}
    for x in frames:
        for t in (x["text"] or {}).get("talk", []):
            texts.setdefault((x.get("session"), t["request"]), []).extend(t["tokens"] or [])
    return [x["actions"] for x in frames], texts
a, b = f(sys.argv[1]), f(sys.argv[2])
assert a == b and len(a[0]) == int(sys.argv[3]), (len(a[0]), len(b[0]))
PYTHON
for sessions in 1 3; do
    for policy in default chaos; do
        for how in "" --interpret; do
            "$T" run $P $random --set frame.sessions=$sessions --random-inputs 1 -n 6 --threads 2 --policy $policy \
                --format json $how >"$W/frames$how" 2>"$W/err" </dev/null
        done
        python3 "$W/same.py" "$W/frames" "$W/frames--interpret" $((6 * sessions)) 2>>"$W/err"
        ok $? "$sessions session(s), $policy: what the interpreter gives"
    done
done

for p in said_demo said_memory; do
    "$T" run tests/pipelines/$p.lua --random-inputs 1 -n 3 --dump "$W/$p" >"$W/out" 2>"$W/err" </dev/null
done
cat >"$W/dumps.py" <<'PYTHON'
import json, struct, sys
def rows(name):
    data = open(sys.argv[1] + "/" + name, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    entries = json.loads(data[8:8 + size])
    def ints(name):
        first, end = entries[name]["data_offsets"]
        return struct.unpack("<%di" % ((end - first) // 4), data[8 + size + first:8 + size + end])
    ids, tokens = ints("prompt_ids"), ints("prompt_tokens")
    return [ids[i * len(ids) // 3:][:n] for i, n in enumerate(tokens)]
said = rows("said_demo")
if sys.argv[2] == "plain":
    assert said[0][:8] == said[1][:8], "what is said is the same"
    assert said[0][-4:] == said[1][-4:] == said[2][-4:], (said, "the end of the template")
else:
    for a, b in zip(said, rows("said_memory")):
        assert len(b) > len(a) and b[-len(a):] == a, (a, b)
PYTHON
python3 "$W/dumps.py" "$W" plain 2>>"$W/err"
ok $? "a dump has the prompt that was made of the text, and all of it"
python3 "$W/dumps.py" "$W" memory 2>>"$W/err"
ok $? "with a memory its segments stand before that"

cat >"$W/costs.py" <<'PYTHON'
import json, sys
def row(node, us, **point):
    return {"node": node, "point": point, "n": 9, "min": us, "p50": us, "p99": us, "p999": us, "max": us}
json.dump({"schema": 1, "unit": "us", "variants": [row("see", 100000), row("look", 150000), row("act", 160000),
                                                   row("talk", 10000, batch=1)]}, open(sys.argv[1], "w"))
PYTHON
python3 "$W/costs.py" "$W/costs.costs"
"$T" check $P --costs "$W/costs.costs" >"$W/out" 2>"$W/err"
ok $? "a text of eight tokens fits"
"$T" check $P --costs "$W/costs.costs" --set nodes.talk.max_tokens=9 >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "critical path 500 ms (p99: see 100 + talk 90 + look 150 + act 160)" "$W/out"
ok $? "check counts the longest text before the prefill that waits"
echo "return extend('graphs/g26_said_in_the_frame.lua', { name = 'soft', nodes = {
  decode { name = 'talk', deadline = soft { ms = 300 } } } })" >"$W/soft.lua"
"$T" check "$W/soft.lua" --root . >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "E028" "$W/out"
ok $? "which may not have a soft deadline"
"$T" check $P --set 'nodes.talk.spawn=every(2)' >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "E027" "$W/out"
ok $? "a text that is not made in every frame needs a default"

PYTHONPATH=tests python3 tests/serve_frames.py "$T" $P >"$W/out" 2>"$W/err"
ok $? "it is served"
PYTHONDONTWRITEBYTECODE=1 python3 tests/unread_text.py "$T" >"$W/out" 2>"$W/err"
ok $? "a text that no prompt can be made of stops nobody: run, serve and /metrics tell it"
echo "1..$n"
exit $failed

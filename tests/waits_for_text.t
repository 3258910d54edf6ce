#!/bin/sh
# waits_for_text.t - what stands on a text of the same frame: its draft's prefill comes before it,
# whole; a ring takes its prompt from it, behind a memory, and begins anew where it differs.
# usage: tests/waits_for_text.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
D=tests/pipelines/draft_first.lua R=tests/pipelines/ring_hears.lua
random="--random-weights 3 --size tiny"

# --- drafts ---------------------------------------------------------------------------------------
cat >"$W/same.py" <<'PYTHON'
import json, sys
def f(name):
    lines = [json.loads(x) for x in open(name)]
    said = {}
    for x in lines:
        for node, texts in (x.get("text") or {}).items():
            for t in texts:
                said.setdefault((x.get("session"), node, t["request"]), []).extend(t["tokens"])
    return [(x.get("session"), x["actions"]) for x in lines if x.get("actions")], said
a, b = f(sys.argv[1]), f(sys.argv[2])
assert a == b, "not the interpreter's"
assert len(a[0]) >= int(sys.argv[3]), len(a[0])
assert sum(map(len, a[1].values())) >= int(sys.argv[4]), a[1]
PYTHON
same() { # same WHAT LEAST_CHUNKS LEAST_TOKENS ARGUMENTS...
    what=$1 chunks=$2 tokens=$3
    shift 3
    for how in "" --interpret; do
        "$T" run "$@" $random --random-inputs 1 -n 6 --drain --threads 2 --format json $how >"$W/frames$how" 2>"$W/err" </dev/null
    done
    python3 "$W/same.py" "$W/frames" "$W/frames--interpret" "$chunks" "$tokens" 2>>"$W/err"
    ok $? "$what"
}
for policy in default chaos; do
    same "texts with a draft before and behind actions, as interpreted: $policy" 6 48 $D --policy $policy
    same "three robots: $policy" 18 144 $D --policy $policy --set frame.sessions=3
done

cat >"$W/order.py" <<'PYTHON'
import json, sys
order, frames, kept = [], 0, 0
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] == "frame":
        order = []
    if e["event"] == "start":
        order.append(e["node"])
        assert e.get("of", 1) == 1, e  # never in slices
    if e["event"] == "frame_end":
        frames += 1
        firsts = [order.index(n) for n in ("see", "say.draft", "say", "act")]
        assert firsts == sorted(firsts) and order.count("say.draft") == 1, order
        assert "tell" not in order or order.index("tell") > order.index("act"), order
assert frames == 8, frames
PYTHON
"$T" simulate $D $random --launch-ms 2 --frames 8 --trace "$W/trace.jsonl" >"$W/out" 2>"$W/err"
python3 "$W/order.py" "$W/trace.jsonl" 2>>"$W/err"
ok $? "the prefill of the draft comes once, whole, before the text, and that before the actions"

cat >"$W/costs.py" <<'PYTHON'
import json, sys
def row(node, us, **point):
    return {"node": node, "point": point, "n": 9, "min": us, "p50": us, "p99": us, "p999": us, "max": us}
rows = [row(n, 10000) for n in ("see", "act", "say.draft")] + [row(n, 10000, batch=1) for n in ("say", "tell")]
json.dump({"schema": 1, "unit": "us", "variants": rows}, open(sys.argv[1], "w"))
PYTHON
python3 "$W/costs.py" "$W/costs"
"$T" check $D $random --costs "$W/costs" --set nodes.act.deadline.ms=99 >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "critical path 100 ms (p99: see 10 + say 70 + say.draft 10 + act 10)" "$W/out"
ok $? "check --costs counts it"

# --- rings ----------------------------------------------------------------------------------------
for policy in default chaos actionflow; do
    same "a ring hears and remembers, as interpreted: $policy" 1 24 $R --policy $policy
done
same "of three robots" 3 72 $R --policy actionflow --set frame.sessions=3

cat >"$W/heard.py" <<'PYTHON'
import json, sys
flushes, reads, order = [], [], []
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] == "frame":
        frame, order = e["frame"], []
    if e["event"] == "read" and e["node"] == "enter":
        reads.append((frame, e["age_frames"]))
    if e["event"] == "kv" and e["op"] == "flush":
        flushes.append(frame)
    if e["event"] == "start":
        order.append(e["node"])
    if e["event"] == "frame_end" and "say" in order:
        assert order.index("look") < order.index("say") < order.index("enter"), order
assert reads == [(f, 0) for f in range(8)], reads
print(flushes)
PYTHON
"$T" simulate $R $random --launch-ms 2 --frames 8 --policy default --trace "$W/trace.jsonl" >"$W/out" 2>"$W/err"
python3 "$W/heard.py" "$W/trace.jsonl" >"$W/out" 2>>"$W/err"
ok $? "each observation enters with the text of its own frame"
printf '{"schema": 1, "frames": 8, "eos": {"4": 2}}' >"$W/scenario.json"
flushed() { # flushed WHAT WANT ARGUMENTS...
    what=$1 want=$2
    shift 2
    "$T" simulate $R $random --launch-ms 2 --scenario "$W/scenario.json" --policy default --trace "$W/trace.jsonl" "$@" >"$W/out" 2>"$W/err"
    python3 "$W/heard.py" "$W/trace.jsonl" >"$W/out" 2>>"$W/err"
    grep -qxF "$want" "$W/out"
    ok $? "$what"
}
flushed "a text that differs empties the ring in its frame, and the next one that does" "[4, 5]"
flushed "not where on_change says keep" "[]" --set resources.ring.on_change=keep
echo "1..$n"
exit $failed

#!/bin/sh
# triggers.t - prefills with triggers of their own: one that requests wait for is held until the next
# one, a frames' prefill runs where a text is new. A draft reads the memory that is in the prompt, two
# nodes load from one memory, and texts of a ring come by a deadline, or before the arm that waits.
# usage: tests/triggers.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
P=tests/pipelines
random="--random-weights 3 --size tiny"

cat >"$W/same.py" <<'PYTHON'
import json, sys
def read(name):
    lines, said, drafted, kept = [json.loads(x) for x in open(name)], {}, 0, 0
    for x in lines:
        drafted, kept = drafted + x["plan"].get("drafted", 0), kept + x["plan"].get("kept", 0)
        for node, texts in (x.get("text") or {}).items():
            for t in texts:
                said.setdefault((x.get("session"), node, t["request"]), []).extend(t["tokens"])
    return [(x.get("session"), x["actions"]) for x in lines if x.get("actions")], said, drafted, kept
a, b = read(sys.argv[1]), read(sys.argv[2])
assert a[:2] == b[:2], "actions or texts differ"
assert len(a[0]) >= int(sys.argv[3]), len(a[0])
assert sum(map(len, a[1].values())) >= int(sys.argv[4]), a[1]
assert len(sys.argv) < 6 or (a[2] == a[3] > 0), a[2:]
PYTHON
run() { # run OUT FILE ARGUMENTS...
    to=$1
    shift
    "$T" run "$@" $random --random-inputs 1 -n 12 --drain --threads 1 --format json >"$W/$to" 2>"$W/err" </dev/null
}
same() { # same WHAT LEAST_CHUNKS LEAST_TOKENS FILE ARGUMENTS...
    what=$1 chunks=$2 tokens=$3
    shift 3
    run a "$@" && run b "$@" --interpret && python3 -S "$W/same.py" "$W/a" "$W/b" "$chunks" "$tokens" 2>>"$W/err"
    ok $? "as interpreted: $what"
}
simulate() { # simulate FILE SCENARIO ARGUMENTS...
    printf '%s' "$2" >"$W/scenario.json"
    file=$1
    shift 2
    "$T" simulate "$file" $random --launch-ms 2 --scenario "$W/scenario.json" --trace "$W/trace" "$@" >"$W/out" 2>"$W/err"
}

for sessions in 1 3; do
    same "requests share a held prefill, $sessions" $((12 * sessions)) $((16 * sessions)) $P/held.lua --policy chaos \
        --set frame.sessions=$sessions --set "nodes.ask.spawn=every(3)"
    same "a frames' prefill where a text is new, $sessions" $((12 * sessions)) $((16 * sessions)) $P/held_plan.lua \
        --policy chaos --set frame.sessions=$sessions
    same "a draft that remembers, $sessions" $((12 * sessions)) $((12 * sessions)) $P/draft_remembers.lua --policy chaos \
        --set frame.sessions=$sessions
    same "two nodes load from one memory, $sessions" $((12 * sessions)) $((18 * sessions)) $P/two_load.lua --policy chaos \
        --set frame.sessions=$sessions
    for file in ring_hard ring_first; do
        same "$file, $sessions" $((6 * sessions)) $((48 * sessions)) $P/$file.lua --policy actionflow --set frame.sessions=$sessions
    done
done

# A question's words are those that it has behind a prefill of its own.
sed 's/, spawn = on_change("goal")//; s/on_change("context")/on_change()/; s/on_request()/every(3)/' $P/held.lua >"$W/each.lua"
run a $P/held.lua --policy chaos --set "nodes.ask.spawn=every(3)" && run b "$W/each.lua" --policy chaos &&
    python3 -S "$W/same.py" "$W/a" "$W/b" 12 16 2>>"$W/err"
ok $? "texts on a held prefill are those on one of their own"

simulate $P/held.lua '{"schema": 1, "frames": 16, "clock": "saturated", "instruction": [{"frame": 7}],
    "arrivals": [{"frame": 1, "node": "ask"}, {"frame": 5, "node": "ask"}, {"frame": 10, "node": "ask"}, {"frame": 13, "node": "ask"}]}' \
    --policy fill && python3 -S - "$W/trace" <<'PYTHON' 2>>"$W/err"
import json, sys
ran, kv, finished = {"think": [], "ask.draft": []}, [], 0
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] == "start" and e["node"] in ran:
        ran[e["node"]].append(e["frame"])
    if e["event"] == "kv" and e["kv"] == "context":
        kv.append((e["op"], e["frame"]))
    finished += e["event"] == "finish"
assert ran == {"think": [0, 7], "ask.draft": [1, 10]}, ran
assert kv == [("alloc", 0), ("free", 7), ("alloc", 7)], kv
assert finished == 6, finished
PYTHON
ok $? "it runs once a goal, when the first request waits for it; so does its draft's"

simulate $P/held.lua '{"schema": 1, "frames": 12, "clock": "saturated"}' --policy fill --set "nodes.think.spawn=every(4)" \
    --set "nodes.ask.spawn=every(3)" && python3 -S - "$W/trace" <<'PYTHON' 2>>"$W/err"
import json, sys
started = [e["frame"] for e in map(json.loads, open(sys.argv[1])) if e["event"] == "start" and e["node"] == "think"]
assert started == [0, 4, 8], started
PYTHON
ok $? "every(4): what is asked in between stands on the newest one"

simulate $P/held.lua '{"schema": 1, "frames": 14, "clock": "saturated", "missing": [2]}' --policy fill \
    --set "nodes.think.spawn=every(4)" --set "nodes.ask.spawn=every(3)" && python3 -S - "$W/trace" <<'PYTHON' 2>>"$W/err"
import json, sys
started, born = [], []
for e in map(json.loads, open(sys.argv[1])):
    started += [e["frame"]] if e["event"] == "start" and e["node"] == "think" else []
    born += [e["frame"]] if e["event"] == "arrive" and e["node"] == "plan" else []
assert started == [0, 4, 8, 12] == born, (started, born)
PYTHON
ok $? "so they count where an observation is missing: its text is born with a prefill"

cat >"$W/reads.lua" <<'LUA'
return extend("held.lua", { name = "reads",
  resources = { kv.frame { name = "again", tokens = 80 }, kv.requests { name = "more", tokens = 120, slots = 1, share_prefix = "again" } },
  nodes = { decode { name = "plan", out = stream { name = "plan", default = "stay" } },
            prefill { name = "muse", model = "planner", reads = { "plan" }, writes = "again", spawn = every(4) },
            decode { name = "mull", model = "planner", kv = "more", spawn = on_request(), max_tokens = 2, out = stream "mulled" } } })
LUA
cp $P/held.lua "$W" && simulate "$W/reads.lua" '{"schema": 1, "frames": 14, "clock": "saturated",
    "arrivals": [{"frame": 5, "node": "mull"}, {"frame": 7, "node": "mull"}]}' --policy fill && python3 -S - "$W/trace" <<'PYTHON' 2>>"$W/err"
import json, sys
read = [e["frame"] for e in map(json.loads, open(sys.argv[1])) if e["event"] == "read" and e["node"] == "muse"]
assert read == [5], read
PYTHON
ok $? "what a held prefill reads is told once, when somebody waits for it"

simulate $P/held_twice.lua '{"schema": 1, "frames": 12, "clock": "saturated"}' --policy fill && python3 -S - "$W/trace" <<'PYTHON' 2>>"$W/err"
import json, sys
ran = {"think": [], "muse": []}
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] == "start" and e["node"] in ran:
        ran[e["node"]].append(e["frame"])
assert ran == {"think": [0], "muse": [0, 4, 8]}, ran
PYTHON
ok $? "two prefills of one prompt and two triggers are two"

simulate $P/held_plan.lua '{"schema": 1, "frames": 24, "clock": "saturated", "eos": {"3": 2}}' --policy fill &&
    python3 -S - "$W/trace" <<'PYTHON' 2>>"$W/err"
import json, sys
sees, reads, tells, ages = [], [], [], {}
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] == "start" and e["node"] == "see":
        sees.append(e["frame"])
    if e["event"] == "read" and e["node"] == "see":
        reads.append((e["frame"], e["request"]))
    if e["event"] == "arrive" and e["node"] == "tell":
        tells.append(e["frame"])
    if e["event"] == "release":
        ages[e["frame"]] = e["age_us"]
assert sees == tells == [f for f, _ in reads] and 2 < len(sees) < 8, (sees, tells, reads)
assert reads[0][1] is None and all(r is not None for _, r in reads[1:]), reads
assert sorted(ages) == list(range(24)), ages
behind = [f for f in range(24) if f not in sees]
assert all(ages[f] > ages[max(s for s in sees if s < f)] for f in behind), ages
PYTHON
ok $? "the frames' prefill runs where its text is new; the arm acts in every frame, on the newest one"

python3 - $P/draft_remembers.lua "$W/plain.lua" <<'PYTHON'
import sys
text = open(sys.argv[1]).read()
plain = text.replace(',\n             draft = { model = "quick", tokens = 2 }', "").replace(', quick = model { arch = "pi05_causal" }', "")
assert len(plain) < len(text) - 60
open(sys.argv[2], "w").write(plain)
PYTHON
run a $P/draft_remembers.lua --policy oxygen && run b "$W/plain.lua" --policy oxygen &&
    python3 -S "$W/same.py" "$W/a" "$W/b" 12 21 all 2>>"$W/err"
ok $? "a draft that is the model itself reads what it remembers, too: all that it proposes is kept"

for file in held held_plan; do
    simulate $P/$file.lua '{"schema": 1, "frames": 3, "clock": "paced",
        "sessions": [{"name": "a", "period_us": 100000}, {"name": "b", "period_us": 100000}]}' --policy fill
    [ $? -ne 0 ] && grep -q "a prefix that later frames read is of one session" "$W/err"
    ok $? "what $file keeps is one session's, where a frame has one"
done

run a $P/two_load.lua --policy chaos && run b $P/two_load_apart.lua --policy chaos &&
    python3 -S "$W/same.py" "$W/a" "$W/b" 12 18 2>>"$W/err"
ok $? "a memory that two nodes load from is a memory of each, given the same"
for turn in 1 2; do # the second run begins with what the first has remembered
    for file in two_load two_load_apart; do
        set -- --policy chaos --set "resources.mem.store=$W/$file.store"
        [ $file = two_load ] || set -- "$@" --set "resources.mem2.store=$W/$file.store.recall2"
        run $file$turn $P/$file.lua "$@"
    done
    python3 -S "$W/same.py" "$W/two_load$turn" "$W/two_load_apart$turn" 12 18 2>>"$W/err" &&
        [ -s "$W/two_load.store" ] && [ -s "$W/two_load.store.recall2" ]
    ok $? "each has a file of its own, run $turn"
done
cmp -s "$W/two_load1" "$W/two_load2"
[ $? -eq 1 ]
ok $? "and reads it"
# Files stay with their nodes where these change places in the pipeline.
mkdir "$W/moved" && awk '/"recall"|"see"|"act"/ { arm = arm $0 ORS; next } /remember/ { printf "%s", arm } { print }' \
    $P/two_load.lua >"$W/moved/two_load.lua"
cp "$W/two_load.store" "$W/moved/mem" && cp "$W/two_load.store.recall2" "$W/moved/mem.recall2" &&
    run there $P/two_load.lua --policy chaos --set "resources.mem.store=$W/two_load.store" &&
    run elsewhere "$W/moved/two_load.lua" --policy chaos --set "resources.mem.store=$W/moved/mem" &&
    python3 -S "$W/same.py" "$W/there" "$W/elsewhere" 12 18 2>>"$W/err" && [ ! -e "$W/moved/mem.recall" ]
ok $? "where its nodes change places, each keeps its file"

for name in held held_plan two_load draft_remembers ring_hard; do # the form that programs write
    once='{"schema": 1, "frames": 5, "clock": "saturated"}'
    "$T" expand $P/$name.lua >"$W/$name.json" 2>"$W/err" && simulate "$W/$name.json" "$once" --root . --policy fill &&
        mv "$W/trace" "$W/written" && simulate $P/$name.lua "$once" --policy fill && cmp -s "$W/trace" "$W/written"
    ok $? "$name is what its JSON form says"
done

order() { # order WHAT FILE WANT
    simulate $P/$2.lua '{"schema": 1, "frames": 9, "clock": "saturated"}' && python3 -S - "$W/trace" "$3" <<'PYTHON' 2>>"$W/err"
import json, sys
order, frames = [], 0
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] == "frame":
        order = []
    if e["event"] in ("start", "release", "finish"):
        order.append((e["event"] + " " if e["event"] != "start" else "") + e.get("node", "talk"))
    if e["event"] == "frame_end" and e["frame"] > 6:
        frames += 1
        assert order == sys.argv[2].split(", "), order
assert frames == 2
PYTHON
    ok $? "$1"
}
order "a text with a hard deadline on a ring: made behind the ring's actions, in its frame" ring_hard \
    "packed, release advance, talk, finish talk"
order "a text of a ring that an arm waits for: made before the arm reads it" ring_first \
    "packed, release advance, talk, finish talk, see, act, release act"

# A text that is begun anew before it can end: told by its count of tokens, and by what they cost.
mkdir "$W/robots" && cp pipelines/robots/metaworld.lua "$W/robots/" && cp pipelines/demo_metaworld.lua "$W/base.lua"
again() { # again WHAT CODE TALK: check of the demo whose text says so too exits 0, and warns; CODE none: does not
    printf 'return extend("base.lua", { nodes = { decode { name = "talk", supersede = true, %s } } })\n' "$3" >"$W/again.lua"
    "$T" check "$W/again.lua" ${4:+--costs "$W/again.costs"} >"$W/out" 2>"$W/err"
    code=$?
    if [ "$2" = none ]; then ! grep -q W118 "$W/out"; else grep -qF "$2" "$W/out" && [ "$(grep -c W118 "$W/out")" -eq 1 ]; fi &&
        [ $code -eq 0 ]
    ok $? "$1"
}
again "as many tokens as a frame makes" none "max_tokens = 12"
sed -i 's/k = { 2, 3, 4, 6, 12 }/k = { 2, 4 }/' "$W/base.lua"
again "more than one frame makes" "after 1 frame of at most 4 tokens each: where every frame has an observation it has 4 of its 12" "spawn = every(1)"
again "than two make" "after 2 frames of at most 4 tokens each: where every frame has an observation it has 8 of its 12" "spawn = every(2)"
again "three make them" none "spawn = every(3)"
again "a text that nothing begins by number" none "spawn = on_change()"
again "one that a frame makes whole" none "deadline = hard { ms = 90 }"
row='"n": 9, "min": 1, "p50": %s, "p99": 99000, "p999": 99000, "max": 99000'
costs() { # costs US: what a token takes
    printf '{"schema": 1, "unit": "us", "pipeline": "again", "variants": [{"node": "see", "point": {}, '"$row"'},
        {"node": "act", "point": {}, '"$row"'}, {"node": "talk", "point": {"batch": 1}, '"$row"'}]}\n' 30000 20000 "$1" |
        sed 's/99000/30000/g' >"$W/again.costs"
}
sed -i 's/k = { 2, 4 }/k = { 12 }/' "$W/base.lua"
costs 10000
again "tokens cost more than hard nodes leave" "begun anew every 100 ms, of which hard nodes take 50: at 10 ms a token (p50) it has 5 of its 12" "spawn = every(1)" costs
sed -i 's/k = { 12 }/k = { 2, 4 }/' "$W/base.lua"
again "once: the captured k leave less than the time" "at most 4 tokens each" "spawn = every(1)" costs
costs 20000
again "once: the time leaves less than the captured k" "at 20 ms a token (p50) it has 2 of its 12" "spawn = every(1)" costs
sed -i 's/k = { 2, 4 }/k = { 12 }/' "$W/base.lua"
costs 4000
again "tokens that fit" none "spawn = every(1)" costs
echo "1..$n"
exit $failed

#!/bin/sh
# sessions.t - robots of one kind in one launch: each has the bytes that it has alone, and its own deadline.
# usage: tests/sessions.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
many=pipelines/graphs/g24_many_robots.lua

# run NAME SEED PIPELINE ARGUMENTS...: twelve frames of what SEED draws
run() {
    name=$1 seed=$2 pipeline=$3
    shift 3
    "$T" run "$pipeline" --root "$PWD" --random-weights 1 --size tiny --random-inputs "$seed" -n 12 --threads 1 \
        --format json "$@" >"$W/$name" 2>"$W/err" </dev/null
}

cat >"$W/same.py" <<'PYTHON'
import json, sys
def read(path, session):
    actions, texts = [], {}
    for line in open(path):
        f = json.loads(line)
        if f.get("session", 0) != session:
            continue
        if f["frame"] < 12:
            earlier = [(e["seen"], e["actions"]) for e in f.get("earlier", [])]
            actions.append((f["actions"], earlier, f.get("seen"), f.get("filling")))
        for node, list_ in (f["text"] or {}).items():
            for t in list_:
                texts.setdefault(node, {}).setdefault(t["request"], []).extend(t["tokens"] or [])
    return actions, {node: [t[k] for k in sorted(t)] for node, t in texts.items()}
folder, n, whole = sys.argv[1], int(sys.argv[2]), "chaos" in sys.argv
for s in range(n):
    (a, x), (b, y) = read(f"{folder}/all", s), read(f"{folder}/alone{s}", 0)
    assert a == b and len(a) == 12, f"actions of session {s} differ"
    assert not whole or x.keys() == y.keys(), f"session {s} has other texts"
    for node in x.keys() & y.keys():
        # under a plan that looks at times a text may begin later
        assert not whole or len(x[node]) == len(y[node]), f"session {s} has {len(x[node])} texts of {node}, not {len(y[node])}"
        for p, q in zip(x[node], y[node]):
            m = min(len(p), len(q))
            assert p[:m] == q[:m], f"a text of session {s} differs"
PYTHON

# given NAME INPUTS PIPELINE ARGUMENTS...: the frames of $W/INPUTS.jsonl
given() {
    name=$1 inputs=$W/$2.jsonl pipeline=$3
    shift 3
    "$T" run "$pipeline" --root "$PWD" --random-weights 1 --size tiny --inputs "$inputs" --threads 1 \
        --format json "$@" >"$W/$name" 2>"$W/err" </dev/null
}

# alone TEXT N PIPELINE ARGUMENTS...: N sessions, each as if it were the only one. What they see is drawn, or that of
# the files $seen/all.jsonl and $seen/0.jsonl, ... where that is set
seen=
alone() {
    text=$1 sessions=$2 pipeline=$3
    shift 3
    frames="run all 1"
    [ -z "$seen" ] || frames="given all ${seen}all"
    $frames "$pipeline" --set "frame.sessions=$sessions" "$@"
    status=$?
    s=0
    while [ $s -lt "$sessions" ]; do
        frames="run alone$s $((1 + s))"
        [ -z "$seen" ] || frames="given alone$s $seen$s"
        [ $status -eq 0 ] && $frames "$pipeline" "$@" --set frame.sessions=1 --set 'capture.sessions=[1]'
        status=$?
        s=$((s + 1))
    done
    [ $status -eq 0 ] && python3 -S "$W/same.py" "$W" "$sessions" "$@" 2>"$W/err"
    ok $? "$text"
}

# a model with a state row before its actions, without the partitions of its base
cat >"$W/pi0.lua" <<LUA
return extend("suite/pi0_views2.lua", { name = "pi0_many",
  nodes = { action { name = "act", partition = without "partition" } },
  partitions = { without "rt", without "bg" } })
LUA
# texts that are drawn
cat >"$W/drawn.lua" <<LUA
return extend("graphs/g24_many_robots.lua", { name = "drawn",
  nodes = { decode { name = "talk", temperature = 1.0 } } })
LUA

cat >"$W/rate.lua" <<LUA
return extend("graphs/g08_subtask_then_action.lua", { name = "rate", nodes = { prefill { name = "see", spawn = every(3) } } })
LUA
# texts on lanes of their own
cat >"$W/beside.lua" <<LUA
return extend("pi05_libero_parallel.lua", { name = "beside", nodes = { decode { name = "talk", partition = "bg" } } })
LUA
alone "four robots, default plan" 4 $many
alone "four robots, chaos" 4 $many --policy chaos --drain
alone "three of the four that a launch takes" 3 $many --set 'capture.sessions=[1,3]'
alone "five robots, three in a launch" 5 "$W/pi0.lua" --set 'capture.sessions=[3]'
alone "drawn texts" 3 "$W/drawn.lua" --set 'capture.sessions=[2,3]'
alone "two action nodes, texts beside them" 3 pipelines/graphs/g04_two_heads.lua --policy chaos --drain
alone "a planner's sentence is each arm's prompt" 3 pipelines/graphs/g13_plan_is_prompt.lua --policy chaos --drain
alone "drafts" 2 pipelines/graphs/g05_speculation.lua --policy chaos --drain
alone "one text at a time" 3 pipelines/graphs/g15_decode_on_frame.lua
alone "texts that actions wait for" 2 pipelines/graphs/g08_subtask_then_action.lua --policy chaos --drain
alone "actions on the newest text" 3 pipelines/graphs/g08b_newest_subtask.lua --set policy.params.k=30
alone "two arms a robot" 2 pipelines/graphs/g03_two_arms.lua
alone "a prefill rate" 3 pipelines/graphs/g09_two_rates.lua --policy chaos --drain
alone "a prefill rate, and texts that actions wait for" 3 "$W/rate.lua" --policy chaos --drain
alone "an action rate" 4 $many --set 'nodes.act.spawn=every(2)' --policy chaos --drain
alone "actions on the frame before" 3 pipelines/graphs/g09b_previous_frame.lua --policy chaos --drain
alone "texts beside the hard nodes" 3 "$W/beside.lua" --policy chaos --drain --set 'capture.sessions=[2]'
alone "a model that takes one observation a launch" 3 pipelines/act_aloha.lua
alone "another one, whose layers cross" 2 pipelines/smolvla_so100.lua
alone "one that makes its actions in the prefill" 2 pipelines/openvla_oft_libero.lua
alone "one of features" 2 pipelines/groot_gr1.lua
alone "pictures that reach the text's first layers, too" 2 pipelines/groot_n17_libero.lua

# rings: the sequences of all robots are rows of one forward, each robot's a ring of its own
cat >"$W/depths.lua" <<'LUA'
local rings
return policy { name = "depths", api = 1, version = 1, needs = { "depth" },
  setup = function(S, T) rings = T.rings end,
  plan = function(S, F, D)
    for i = 1, #rings do D:depth(rings[i], ({ 7, 4, 1 })[1 + (F.index // 5 + i) % 3]) end
  end }
LUA
cat >"$W/apart.lua" <<'LUA'
return extend("openvla_ring.lua", { name = "apart",
  nodes = { decode { name = "advance", pack_with = without "pack_with" } } })
LUA
talks="tests/pipelines/graphs/ring_talks.lua --policy chaos --set resources.say.slots=8"
alone "a ring of each robot" 4 pipelines/openvla_ring.lua --set resources.ring.on_change=keep
"$T" run pipelines/openvla_ring.lua --random-weights 1 --size tiny --random-inputs 1 --set frame.sessions=2 >"$W/out" 2>"$W/err" </dev/null
grep -q 'session 1 .* 2 of 14 in flight, filling$' "$W/out"
ok $? "a line counts the places of all robots' rings"
alone "which becomes deeper and shallower" 3 pipelines/openvla_ring.lua --policy "$W/depths.lua"
alone "prefills of their own" 3 "$W/apart.lua" --policy "$W/depths.lua"
alone "two rings of each robot" 2 pipelines/graphs/g19_two_rings.lua --policy "$W/depths.lua"
alone "questions on each robot's ring" 2 $talks --drain
alone "the same where keys move" 2 $talks --drain --set resources.ring.shift=device_copy
alone "a planner beside each ring" 3 pipelines/graphs/g07_ring_and_planner.lua --policy chaos --drain

# --- memories: each robot has segments of its own, and its prompts are of them ---------------------
# memory BASE RECOMPUTE: without a file, and with so much computed anew
memory() {
    printf 'return extend("graphs/%s.lua", { name = "%s", resources = { kv.segments { name = "mem"%s } },
  nodes = { memory_load { name = "recall", recompute = { first = 1.0, decay = %s, floor = 0.1 } } } })\n' \
        "$1" "$1" "$3" "$2" >"$W/$1.lua"
}
memory g18_answer_is_remembered 0.6 ', store = without "store"'
memory g11_two_memories 0.8 ', store = without "store"'
memory g02_memory_planner_and_arm 0.5 ''
memory g06_memory_in_controller 0.5 ''
memory g25_everything 0.6 ''
alone "what each robot said is remembered for it" 3 "$W/g18_answer_is_remembered.lua" --drain
alone "two memories of each robot" 2 "$W/g11_two_memories.lua" --drain
alone "a memory in each controller" 2 "$W/g06_memory_in_controller.lua" --drain
alone "a planner with a memory beside each arm, which reads what it says" 2 "$W/g25_everything.lua" --policy fill --drain

cat >"$W/equal.py" <<'PYTHON'
import json, sys
def read(path):
    actions, texts = [], {}
    for f in map(json.loads, open(path)):
        actions.append((f["session"], f["actions"]))
        for node, list_ in (f["text"] or {}).items():
            for t in list_:
                texts.setdefault((f["session"], node, t["request"]), []).extend(t["tokens"])
    return actions[: 12 * 3], texts
(a, x), (b, y) = read(sys.argv[1]), read(sys.argv[2])
assert a == b, "actions differ"
assert x == y and any(x.values()), "texts differ"
PYTHON
# as_interpreted PIPELINE ARGUMENTS...
as_interpreted() {
    run all 1 "$@" --set frame.sessions=3 --drain && run plain 1 "$@" --set frame.sessions=3 --drain --interpret &&
        python3 "$W/equal.py" "$W/all" "$W/plain" 2>"$W/err"
    ok $? "$(basename "$1") of three robots is as interpreted"
}
as_interpreted "$W/g18_answer_is_remembered.lua"
as_interpreted "$W/g11_two_memories.lua"
as_interpreted "$W/g02_memory_planner_and_arm.lua" --policy chaos
as_interpreted $talks

"$T" check "$W/g06_memory_in_controller.lua" --root "$PWD" --random-weights 1 --size tiny --set frame.sessions=2 \
    --set 'capture.sessions=[1,2]' >"$W/out" 2>&1
grep -q "capture.sessions asks for several observations in a launch: there is one in each with a memory" "$W/out"
ok $? "prompts of segments are not put in one launch"

# Robots that are told much the same, one after the other.
python3 - "$W" <<'PYTHON'
import json, sys
def seen(s, f):
    put = {"thing%d" % i: "thing %d is in room %d" % (i, i + f // 4) for i in range(5) if (f + i + s) % 4 == 0}
    remove = ["thing%d" % s] if f == 9 else []
    goal = ["where is thing 2", "which room has thing %d" % s, "thing 4"][f % 3]
    return dict({"goal": goal}, **({"memory": {"put": put, "remove": remove}} if put or remove else {}))
frames = [[seen(s, f) for s in range(3)] for f in range(12)]
for name, list_ in [("all", frames)] + [(s, [f[s] for f in frames]) for s in range(3)]:
    with open(f"{sys.argv[1]}/told{name}.jsonl", "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in list_)
PYTHON
seen=told
alone "robots that are told the same" 3 "$W/g18_answer_is_remembered.lua" --drain
python3 - "$W" <<'PYTHON' 2>"$W/err"
import json, sys
def last(path):
    return {f.get("session", 0): f["memory"] for f in map(json.loads, open(path))}
all_, sums = last(sys.argv[1] + "/all"), {"remembered_tokens": 0, "shared": 0}
for s in range(3):
    alone = last(f"{sys.argv[1]}/alone{s}")[0]
    for key in ("prompts", "segments", "missing", "rows", "stored"):
        assert alone[key] == all_[s][key], f"{key} of session {s}: {all_[s][key]}, alone {alone[key]}"
    assert alone["segments"] > alone["missing"] > 0, "nothing is kept, or nothing is missing"
    assert all_[s]["remembered_tokens"] < alone["remembered_tokens"], f"session {s} computes as much as alone"
    assert all_[s]["shared"] > 0, f"session {s} takes nothing over"
PYTHON
ok $? "what one of them has computed is kept for the others, and changes no prompt of theirs"
alone "a policy that says how much is computed anew" 3 "$W/g18_answer_is_remembered.lua" --drain --policy keep
seen=

# Each robot's file is there when the program starts again; the first one's is that of a pipeline of one.
stored() { # the segments that each session has in its first frame
    python3 -c 'import json, sys; print(*[json.loads(line)["memory"]["stored"] for line in list(sys.stdin)[: int(sys.argv[1])]])' "$1"
}
kept="--set resources.mem.store=$W/kept.memory"
echo '[{"goal": "a", "memory": {"put": {"x": "one", "y": "two"}}}, {"goal": "b", "memory": {"put": {"z": "three"}}}]' >"$W/put.jsonl"
echo '[{"goal": "a"}, {"goal": "b"}]' >"$W/ask.jsonl"
echo '{"goal": "a"}' >"$W/one.jsonl"
given all put pipelines/demo_memory.lua --set frame.sessions=2 $kept && [ "$(stored 2 <"$W/all")" = "2 1" ] &&
    given all ask pipelines/demo_memory.lua --set frame.sessions=2 $kept && [ "$(stored 2 <"$W/all")" = "2 1" ] &&
    given all one pipelines/demo_memory.lua $kept && [ "$(stored 1 <"$W/all")" = 2 ] && [ -f "$W/kept.memory.1" ]
ok $? "each robot has a file of its own"

# F.seg has the segments of all prompts: of two that are alike, the second half are the second's.
cat >"$W/skip.lua" <<'LUA'
return policy { name = "skip", api = 1, version = 1,
  plan = function(S, F, D)
    for i = F.nseg // 2 + 1, F.nseg do D:skip_segment(i) end
  end }
LUA
python3 -c '
import json
put = {"thing%d" % i: "thing %d is in room %d" % (i, i) for i in range(4)}
for f in range(6):
    print(json.dumps([dict({"goal": "where is thing 2"}, **({} if f else {"memory": {"put": put}}))] * 2))
' >"$W/halves.jsonl"
given plain halves "$W/g11_two_memories.lua" --set frame.sessions=2 &&
    given skipped halves "$W/g11_two_memories.lua" --set frame.sessions=2 --policy "$W/skip.lua" &&
    python3 - "$W" <<'PYTHON' 2>"$W/err"
import json, sys
def rows(name):
    last = {f["session"]: f["memory"]["mem"] for f in map(json.loads, open(f"{sys.argv[1]}/{name}"))}
    return [last[s]["rows"] for s in (0, 1)]
(a, b), (c, d) = rows("plain"), rows("skipped")
assert a == b == c and d > b, f"{a} and {b} rows, {c} and {d} where the second one's segments are skipped"
PYTHON
ok $? "a policy skips segments of the prompt that it means"

# --- first actions, and what is left of the chunk before ------------------------------------------
cat >"$W/rows.py" <<'PYTHON'
# Of each session and frame a picture, and as many actions as nobody else has; in some frames none.
import json, random, sys
folder, sessions = sys.argv[1], 4
random.seed(7)
picture = lambda n: [[[random.randrange(256) for _ in range(3)] for _ in range(n)] for _ in range(n)]
pictures = [picture(28) for _ in range(sessions)]
def seen(s, f):
    rows = (3 * s + 5 * f) % 9 if (s + f) % 4 else 0
    actions = [[round(random.uniform(-1, 1), 3) for _ in range(4)] for _ in range(rows)]
    o = {"image": pictures[s], "wrist_image": pictures[(s + 1) % sessions], "state": [0.1, 0.2, 0.1 * s, 0.01 * f],
         "prompt#ids": [7, 9, 11 + s]}
    return dict(o, **({"prev_actions": actions} if (s + f) % 5 else {}))
frames = [[seen(s, f) for s in range(sessions)] for f in range(12)]
for name, list_ in [("all", frames)] + [(s, [f[s] for f in frames]) for s in range(sessions)]:
    with open(f"{folder}/rows{name}.jsonl", "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in list_)
PYTHON
python3 "$W/rows.py" "$W"
sed 's/weights = "[^"]*"//' tests/pipelines/prefix_none.lua >"$W/prefix_none.lua"
cp tests/pipelines/prefix.lua "$W/prefix.lua"
cat >"$W/guide.lua" <<LUA
return extend("prefix_none.lua", { name = "guided",
  inputs = { tensor { name = "prev_actions", shape = { 8, 4 } } },
  nodes  = { action { name = "act", guide = { previous = "prev_actions", delay = 2, execution_horizon = 6 } } } })
LUA
seen=rows
alone "each robot is given first actions of its own" 4 "$W/prefix.lua"
alone "some of them in one launch" 4 "$W/prefix.lua" --set 'capture.sessions=[1,3]' --set resources.lang.slots=12 \
    --policy chaos --drain
alone "each is pulled to its own earlier chunk" 4 "$W/guide.lua"
seen=

# --- one launch ----------------------------------------------------------------------------------
run all 1 $many && python3 -S - "$W/all" <<'PYTHON' 2>"$W/err"
import json, sys
frames = [json.loads(line) for line in open(sys.argv[1])]
assert len(frames) == 48
for f in frames:
    rows = {l["node"]: l["rows"] for l in f["plan"]["launches"]}
    assert rows["see"] == rows["act"] == 4 and f["plan"]["refused"] == 0, f["plan"]
PYTHON
ok $? "four observations are one launch of each hard node"

# A frame's prefills, actions and texts on a virtual clock: regions that each session took and gave back.
kept() { # kept TEXT PIPELINE ARGUMENTS...
    text=$1
    shift
    "$T" simulate "$@" --random-weights 1 --size tiny --root "$PWD" --launch-ms 1 -n 40 --trace "$W/trace" \
        >"$W/out" 2>"$W/err" && python3 -S - "$W/trace" <<'PYTHON' 2>"$W/err"
import json, sys
held, left, frames = {}, {}, {}
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["event"] == "kv" and e["op"] in ("alloc", "free") and e.get("request") is None:
        of = (e["kv"], e["session"])
        held[of] = held.get(of, 0) + (1 if e["op"] == "alloc" else -1)
        assert held[of] in (0, 1), e
    elif e["event"] == "release":
        left[e["session"]] = left.get(e["session"], 0) + 1
    elif e["event"] == "frame_end":
        frames[e["session"]] = frames.get(e["session"], 0) + 1
        assert frames[e["session"]] - left.get(e["session"], 0) <= 1, e  # the first has no frame before it
assert len(frames) == 3 and set(frames.values()) == {40}, frames
assert len(held) == 3 and len(set(held.values())) == 1, held
PYTHON
    ok $? "$text"
}
kept "a rate: each session has one prefix, from prefill to prefill" pipelines/graphs/g09_two_rates.lua \
    --set frame.sessions=3 --policy chaos
kept "the frame before: the same" pipelines/graphs/g09b_previous_frame.lua --set frame.sessions=3
kept "texts beside the hard nodes of several launches" "$W/beside.lua" --set frame.sessions=3 --set 'capture.sessions=[2]' \
    --policy chaos

# --- a session without an observation -------------------------------------------------------------
python3 - "$W" <<'PYTHON'
import json, random, sys
random.seed(5)
def seen(i):
    picture = lambda: [[[random.randrange(256) for _ in range(3)] for _ in range(28)] for _ in range(28)]
    return {"observation/image": picture(), "observation/wrist_image": picture(),
            "observation/state": [0.1, 0.2, 0.1 * i, 0.0], "prompt#ids": [7, 9, 11 + i]}
with open(sys.argv[1] + "/frames.jsonl", "w") as out:
    for f in range(4):
        out.write(json.dumps([None if f == 2 and s == 1 else seen(s) for s in range(4)]) + "\n")
PYTHON
"$T" run $many --random-weights 1 --size tiny --inputs "$W/frames.jsonl" --threads 2 --format json >"$W/out" 2>"$W/err" &&
    python3 -S - "$W/out" <<'PYTHON' 2>"$W/err"
import json, sys
frames = [json.loads(line) for line in open(sys.argv[1])]
assert len(frames) == 16
for f in frames:
    none = f["frame"] == 2 and f["session"] == 1
    assert (f["source"] == "none") == none and bool((f["actions"] or {}).get("act")) != none, f
PYTHON
ok $? "a list a line, an entry a session; one has no observation and the others go on"
echo '[{}, {}]' >"$W/short.jsonl"
"$T" run $many --random-weights 1 --size tiny --inputs "$W/short.jsonl" >"$W/out" 2>"$W/err"
[ $? -eq 3 ] && grep -q "short.jsonl:1: a frame of 4 sessions is a list of 4, not of 2" "$W/err"
ok $? "a list of another length is refused"

# --- gather_ms ------------------------------------------------------------------------------------
cat >"$W/paced.json" <<'JSON'
{"schema":1,"clock":"paced","frames":2,"handout":{"actions":8,"dims":4},"sessions":[
 {"name":"a","period_us":100000,"deadline_us":3500},{"name":"b","period_us":100000,"offset_us":1000},
 {"name":"c","period_us":100000,"offset_us":5000}]}
JSON
simulate() {
    "$T" simulate $many --random-weights 1 --size tiny --launch-ms 1 --scenario "$W/paced.json" \
        --trace "$W/trace" "$@" >"$W/out" 2>"$W/err"
}
simulate && python3 -S - "$W/trace" <<'PYTHON' 2>"$W/err"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
opened = [(e["session"], e["t_us"]) for e in events if e["event"] == "frame" and e["frame"] == 0]
assert opened == [("a", 1000), ("b", 1000), ("c", 7000)], opened
see = [e.get("observations") for e in events if e["event"] == "start" and e["node"] == "see"]
assert see == [2, None, 2, None], see
left = {e["session"]: (e["t_us"], e["age_us"], e["late"]) for e in events if e["event"] == "release" and e["frame"] == 0}
assert left == {"a": (3000, 3000, False), "b": (3000, 2000, False), "c": (9000, 4000, False)}, left
assert {e["session"] for e in events if e["event"] == "handout" and e["source"] == "fresh"} == {"a", "b", "c"}
PYTHON
ok $? "what comes within gather_ms is one launch; each session has its own deadline and hand-out"
simulate --set frame.gather_ms=0 && python3 -S - "$W/trace" <<'PYTHON' 2>"$W/err"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
assert events[0]["t_us"] == 0 and not any(e.get("observations") for e in events[:12]), events[:3]
PYTHON
ok $? "without gather_ms a frame opens at its tick"
simulate --set frame.gather_ms=8 && python3 -S - "$W/trace" <<'PYTHON' 2>"$W/err"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
late = {e["session"]: e["late"] for e in events if e["event"] == "release" and e["frame"] == 0}
assert late == {"a": True, "b": False, "c": False}, late
missed = {e["session"]: (e["missed"], e["cause"]) for e in events if e["event"] == "frame_end" and e["frame"] == 0}
assert missed == {"a": (True, "plan"), "b": (False, "none"), "c": (False, "none")}, missed
PYTHON
ok $? "a session that waits for the others too long misses its deadline, and they do not"

# --- costs ----------------------------------------------------------------------------------------
python3 - "$W/costs.costs" <<'PYTHON'
import json, sys
def row(node, us, **point):
    return {"node": node, "point": point, "n": 9, "min": us, "p50": us, "p99": us, "p999": us, "max": us}
json.dump({"schema": 1, "unit": "us", "variants": [row("see", 20000), row("act", 20000), row("talk", 100, batch=1),
    row("see", 50000, batch=4), row("act", 45000, batch=4)]}, open(sys.argv[1], "w"))
PYTHON
"$T" check $many --costs "$W/costs.costs" >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "critical path 97 ms (p99: gather_ms 2 + see 50 + act 45)" "$W/out" &&
    "$T" check pipelines/demo_metaworld.lua --costs "$W/costs.costs" >"$W/out" 2>&1
ok $? "check counts the launch of all sessions, and the wait for them"
"$T" simulate $many --random-weights 1 --size tiny --costs "$W/costs.costs" -n 1 --trace "$W/trace" >"$W/out" 2>"$W/err" &&
    grep -q '"node":"act","us":45000' "$W/trace"
ok $? "a launch of all sessions has a row of its own"

# --- what is refused ------------------------------------------------------------------------------
refuses() { # refuses CODE WHAT PIPELINE ARGUMENTS...
    code=$1 what=$2 pipeline=$3
    shift 3
    "$T" check "$pipeline" "$@" >"$W/out" 2>&1
    [ $? -ne 0 ] && grep -q "error\[$code\].*$what" "$W/out" && grep -q -- "-->" "$W/out"
    ok $? "refused: $what"
}
refuses E072 "fills a ring of 7 stages for each of 10 sessions" pipelines/openvla_ring.lua --set frame.sessions=10
"$T" check pipelines/openvla_ring.lua --set frame.sessions=2 --set capture.max_graphs=2 >"$W/out" 2>&1
ok $? "a ring of each robot has the captures of one"
refuses E011 "4 observations in a launch" $many --set frame.sessions=2
refuses E011 "waits 100 ms" $many --set frame.gather_ms=100
refuses E011 "capture.sessions asks for several observations" pipelines/smolvla_so100.lua --random-weights 1 --size tiny \
    --set frame.sessions=2 --set 'capture.sessions=[1,2]'
refuses E072 "there are 128 request slots: 64 at most" $many --set frame.sessions=16
for sessions in 1 2; do
    refuses E072 "there are $((sessions * 86)) request slots: 64 at most" tests/pipelines/two_requests.lua --set frame.sessions=$sessions \
        --set resources.plans.slots=40 --set resources.remarks.slots=40
done
paced() {
    "$T" run $many --random-inputs 3 --frames 4 --format json --policy isolated "$@" 2>"$W/err" </dev/null
}
paced >"$W/plain" && paced --clock paced --set frame.period_ms=2000 --set nodes.act.deadline.ms=1990 >"$W/out" &&
    python3 - "$W/plain" "$W/out" 2>"$W/err" <<'END'
import json, sys
plain, paced = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
assert [(l["frame"], l["session"]) for l in paced] == [(f, s) for f in range(4) for s in range(4)]
fresh = [(p, q) for p, q in zip(plain, paced) if q["source"] == "fresh"]
for p, q in fresh:
    chunk, given = p["actions"]["act"], q["actions"]["act"] # as many rows as the robot carries out
    assert given and given == chunk[:len(given)], (q["frame"], q["session"])
assert len(fresh) > 8, [q["source"] for q in paced]
END
ok $? "run --clock paced: every session has its actions by the clock"
"$T" bench $many --apart --frames 6 --warmup 1 --rounds 2 --format json >"$W/out" 2>"$W/err" </dev/null &&
    python3 -S - "$W/out" 2>"$W/err" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
together, apart = report["rows"]
assert report["measured"]["sessions"] == 4
assert (together["params"][:8], apart["params"][:5]) == ("together", "apart"), apart["params"]
assert together["repeat"] == apart["repeat"] and apart["repeat"]["equal"], (together["repeat"], apart["repeat"])
assert together["frames"] == apart["frames"] == 6 and not together["allocations"] + apart["allocations"]
assert apart["launches"]["mean"] >= 8 > together["launches"]["mean"]  # two hard nodes of each
END
ok $? "bench: frames of all sessions and one after the other make the same actions"
"$T" bench pipelines/demo_metaworld.lua --apart >"$W/out" 2>"$W/err" </dev/null
[ $? = 2 ] && grep -q -- "--apart: the frame has one session" "$W/err"; ok $? "which takes several"
echo "1..$n"
exit $failed

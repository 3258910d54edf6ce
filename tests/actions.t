#!/bin/sh
# actions.t - several action nodes on one prefill, and actions on an earlier frame's: each gives the
# bytes that it gives alone on that observation.
# usage: tests/actions.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
G=pipelines/graphs

# run NAME PIPELINE ARGUMENTS...
run() {
    name=$1 pipeline=$2
    shift 2
    "$T" run "$pipeline" --random-weights 1 --size tiny --random-inputs 1 -n "${frames:-6}" --threads 2 --policy "${policy:-default}" \
        --format json "$@" >"$W/$name" 2>"$W/err" </dev/null || sed 's/^/# /' "$W/err"
}

# is DESCRIPTION EXPRESSION: of `f(NAME)`, the frames of a run
is() {
    n=$((n + 1))
    if python3 - "$W" "$2" >"$W/err" 2>&1 <<'PYTHON'
import json, sys
def f(name):
    frames = [json.loads(line) for line in open(f"{sys.argv[1]}/{name}")]
    assert len(frames) in (2, 4, 6, 150), f"{name}: {len(frames)} frames"
    return frames
def of(name, node):
    return [x["actions"][node] for x in f(name)]
assert eval(sys.argv[2]), "is not so"
PYTHON
    then echo "ok $n - $1"
    else
        failed=1
        echo "not ok $n - $1"
        sed 's/^/# /' "$W/err" | tail -n 3
    fi
}

run alone pipelines/pi05_libero.lua --dump "$W/alone.safetensors"
run two $G/g04_two_heads.lua
is "the first node's chunk is that of a pipeline without the second" 'of("two", "act") == of("alone", "act")'
is "each node starts from noise of its own" 'of("two", "act") != of("two", "act_early")'
run four pipelines/pi05_libero.lua --set nodes.act.steps=4 --noise "@$W/alone.safetensors#noise"
run given $G/g04_two_heads.lua --noise "@$W/alone.safetensors#noise"
is "from equal noise the second node's chunk is that of a pipeline with it alone" \
    'of("given", "act_early") == of("four", "act")'
is "the earlier deadline runs first, in the prefill's launch" \
    'all([l["node"] for l in x["plan"]["launches"]][:3] == ["see", "act_early", "act"] for x in f("two"))'
is "each node's chunk leaves when it is ready" \
    'all(x["released"]["act_early"]["age_us"] < x["released"]["act"]["age_us"] == x["age_us"] for x in f("two"))'
run paced $G/g04_two_heads.lua --clock paced --actions 2
is "ticks hand out the chunk of each" \
    'all(len(x["actions"]["act"]) in (0, 2) and set(x["released"]) == {"act", "act_early"} for x in f("paced"))'

"$T" run $G/g04_two_heads.lua --random-weights 1 --size tiny --random-inputs 1 -n 2 --dump "$W/two.safetensors" \
    >/dev/null 2>&1 </dev/null
n=$((n + 1))
if grep -aq act_early.chunk "$W/two.safetensors"; then echo "ok $n - a dump has the chunks of each"
else failed=1; echo "not ok $n - a dump has the chunks of each"; fi

# Noise of the frame behind, for each frame: what a later frame makes of this one's observation.
python3 - "$W" <<'PYTHON'
import json, struct, sys
data = open(f"{sys.argv[1]}/alone.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
noise = json.loads(data[8:8 + size])["noise"]
begin, end = noise["data_offsets"]
rows = data[8 + size + begin:8 + size + end]
one = len(rows) // noise["shape"][0]
rows = rows[one:] + rows[:one]
head = json.dumps({"noise": {"dtype": "F32", "shape": noise["shape"], "data_offsets": [0, len(rows)]}}).encode()
open(f"{sys.argv[1]}/shifted.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + rows)
PYTHON
run shifted pipelines/pi05_libero.lua --noise "@$W/shifted.safetensors#noise"
run half $G/g09_two_rates.lua
run before $G/g09b_previous_frame.lua
is "every(2): a frame with a prefill acts on its own observation" \
    'of("half", "act")[::2] == of("alone", "act")[::2] and all("seen" not in x for x in f("half")[::2])'
is "every(2): the frame behind it acts on the same, with noise of its own" \
    'of("half", "act")[1::2] == of("shifted", "act")[::2] and [x["seen"] for x in f("half")[1::2]] == [0, 2, 4]'
is "prev: a frame acts on the observation before" \
    '[x["actions"]["act"] for x in f("before")[1:]] == of("shifted", "act")[:5]'
is "prev: the first frame has no actions, and misses none" \
    'f("before")[0]["actions"] == {} and not f("before")[0]["missed"] and f("before")[5]["seen"] == 4'
is "prev: the actions do not wait for the prefill" \
    'all([l["node"] for l in x["plan"]["launches"]][:2] == ["act", "see"] for x in f("before")[1:])'


# An observation is acted on for as long as its prefix or its text is the newest one. The robot adds
# its state to what the model says, so chunks show whose state that is.
states() { # N: so many observations, each of another state
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) { printf "{\"state\": ["
        for (k = 0; k < 14; k++) printf "%s%.3f", k ? ", " : "", (i * 7 + k) % 50 / 100
        print "]}" } }' </dev/null
}
states 150 >"$W/states.jsonl"
frames=150
seldom="pipelines/pi05_aloha.lua --inputs $W/states.jsonl --set nodes.see.spawn=every(1000000) --set nodes.act.steps=1"
run seldom $seldom
run seldom_interpreted $seldom --interpret
is "every(1000000): 150 frames act on the first observation" \
    '[x.get("seen", 0) for x in f("seldom")] == [0] * 150 and all(x["actions"]["act"] for x in f("seldom"))'
is "every(1000000): as interpreted" 'of("seldom", "act") == of("seldom_interpreted", "act")'
policy=oxygen
run once $G/g08b_newest_subtask.lua --set 'nodes.talk.spawn=on_change()' --input prompt=go --set nodes.act.steps=1
policy=
is "a text of the first frame is acted on in the 149 behind it" \
    '[x.get("seen", x["frame"]) for x in f("once")][-100:] == [0] * 100 and all(x["actions"]["act"] for x in f("once"))'
frames=

# An action node with a rate: in the frames between what is left of its chunk leaves.
R=tests/pipelines/graphs/action_rate.lua
run rated $R
run rated_interpreted $R --interpret
is "every(2): the frames in which the node runs act as without a rate" \
    'of("rated", "act")[::2] == of("alone", "act")[::2] and all(l["node"] != "act" for x in f("rated")[1::2] for l in x["plan"]["launches"])'
is "every(2): in those between the second half of the chunk leaves, of its own observation" \
    'all(x["actions"]["act"][:5] == w["actions"]["act"][5:] and x["seen"] == w["frame"]
         for w, x in zip(f("rated")[::2], f("rated")[1::2]))'
is "every(2): as interpreted" 'of("rated", "act") == of("rated_interpreted", "act")'
echo "return extend('pi05_libero.lua', { name = 'fresh', nodes = { prefill { name = 'see', spawn = every(2) },
    action { name = 'act', spawn = on_change('obs') } } })" >"$W/fresh.lua"
run fresh "$W/fresh.lua" --root .
run both $R --set 'nodes.see.spawn=every(2)'
is "on_change of its prefix: at the prefill's rate" \
    'of("fresh", "act") == of("both", "act") == of("rated", "act") and [len(x["plan"]["launches"]) for x in f("fresh")][1::2] == [0] * 3'
policy=chaos
run chaos $R
run chaos_interpreted $R --interpret
policy=
is "every(2) under chaos: as interpreted" 'of("chaos", "act") == of("chaos_interpreted", "act") == of("rated", "act")'
for refused in "every(3)|carries out 5|pipelines/pi05_libero.lua" "every(2)|with execute|pipelines/act_aloha.lua" \
    "every(2)|in the prefill|pipelines/openvla_oft_libero.lua"; do
    n=$((n + 1))
    "$T" run "${refused##*|}" --random-weights 1 --size tiny --random-inputs 1 -n 1 --set "nodes.act.spawn=${refused%%|*}" >"$W/out" 2>"$W/err" </dev/null
    status=$? said=${refused#*|}
    if [ $status -ne 0 ] && grep -q "${said%|*}" "$W/err"; then echo "ok $n - ${refused##*|}, ${refused%%|*} is refused"
    else failed=1; echo "not ok $n - ${refused##*|}, ${refused%%|*} is refused"; head -n 2 "$W/err" | sed 's/^/# /'; fi
done
n=$((n + 1))
"$T" simulate $R --random-weights 1 --size tiny --launch-ms 1 -n 6 --trace "$W/trace" >"$W/out" 2>&1 </dev/null
if [ "$(grep '"release"' "$W/trace" | grep -c '"again":1')" = 3 ] && [ "$(grep '"release"' "$W/trace" | grep -c '"late":false')" = 6 ] &&
    [ "$(grep '"start"' "$W/trace" | grep -c '"act"')" = 3 ]; then echo "ok $n - a simulation says what leaves again, and nothing is late"
else failed=1; echo "not ok $n - a simulation says what leaves again"; fi

# What leaves is the row of the tick, also behind a tick that opened no frame and a frame that left the node out; beyond
# the rows that the model planned the last one is held.
handed() { # handed TEXT SPIKED-FRAME EXPECTED: frame, source and the first action of each tick
    n=$((n + 1))
    echo '{"schema":1,"clock":"paced","handout":{"actions":5,"dims":1},"spikes":[{"frame":'"$2"',"node":"talk","add_us":130000}]}' >"$W/s.json"
    "$T" simulate $R --random-weights 1 --size tiny --launch-ms 1 -n 5 --set nodes.act.deadline.on_miss=last_chunk \
        --scenario "$W/s.json" --trace "$W/trace" >"$W/out" 2>&1 </dev/null
    said=$(sed -n 's/.*"handout","frame":\([0-9]*\),"source":"\([a-z]*\)","actions":\[\[\([0-9.]*\)\].*/\1 \2 \3/p' "$W/trace" | tr '\n' ',')
    if [ "$said" = "$3" ]; then echo "ok $n - $1"
    else failed=1; echo "not ok $n - $1"; echo "# $said"; fi
}
handed "behind a skipped tick the node runs, whose chunk is over" 0 "0 fresh 1.0,1 stale 1.3125,2 fresh 3.0,3 fresh 3.3125,4 fresh 5.0,"
handed "beyond a chunk's rows the last one is held" 1 "0 fresh 1.0,1 fresh 1.3125,2 held 1.5625,3 fresh 4.0,4 fresh 4.3125,"
echo "return extend('pi05_libero.lua', { name = 'left_out', nodes = {
    action { name = 'act', spawn = every(2), deadline = without 'deadline', when = policy() } } })" >"$W/left_out.lua"
echo "return policy { name = 'once', api = 1, version = 1, needs = {},
    plan = function(S, F, D) S.n = (S.n or 0) + 1; if S.n == 2 then D:skip('act', 'once') end end }" >"$W/once.lua"
policy=$W/once.lua
run left_out "$W/left_out.lua" --root .
policy=
is "a frame that leaves the node out counts: it runs at each second observation" \
    '["act" in [l["node"] for l in x["plan"]["launches"]] for x in f("left_out")] == [True, False] * 3 and f("left_out")[1]["left_out"] == ["act"] and f("left_out")[1]["source"] == "held"'
n=$((n + 1))
if "$T" run pipelines/act_aloha.lua --random-weights 1 --size tiny --random-inputs 1 -n 2 --set "nodes.act.spawn=every(2)" \
    --clock paced --actions 6 >"$W/out" 2>&1 </dev/null &&
    ! "$T" run $R --random-weights 1 --size tiny --random-inputs 1 -n 2 --clock paced --actions 6 >"$W/out" 2>&1 </dev/null &&
    grep -q "carries out 6" "$W/out"; then echo "ok $n - --actions is what a rate is judged by"
else failed=1; echo "not ok $n - --actions is what a rate is judged by"; fi
n=$((n + 1))
sed 's/"actions":5/"actions":6/' "$W/s.json" >"$W/six.json"
if "$T" simulate $R --random-weights 1 --size tiny --launch-ms 1 --scenario "$W/six.json" >"$W/out" 2>&1 </dev/null; then
    failed=1; echo "not ok $n - a simulation refuses a rate whose chunks are too short"
elif grep -q "every 2 frames: a chunk has 10" "$W/out"; then echo "ok $n - a simulation refuses a rate whose chunks are too short"
else failed=1; echo "not ok $n - a simulation refuses a rate whose chunks are too short"; fi

# Only the number of nodes bounds that of action nodes.
awk 'BEGIN { print "return extend(\"pi05_libero.lua\", { name = \"many\", resources = {"
    for (i = 1; i <= 12; i++) printf "buffer { name = \"chunk%d\", shape = { 10, 32 } },", i
    print "}, nodes = {"
    for (i = 1; i <= 12; i++) printf "action { name = \"act%d\", kv = \"obs\", steps = %d, out = \"chunk%d\" },\n", i, i % 3 + 1, i
    print "} })" }' </dev/null >"$W/many.lua"
run many "$W/many.lua"
run many_interpreted "$W/many.lua" --interpret
is "thirteen action nodes: the first one's chunk is as alone, each other's is its own" \
    'of("many", "act") == of("alone", "act") and len({str(x) for x in f("many")[0]["actions"].values()}) == 13'
is "thirteen action nodes: as interpreted" '[x["actions"] for x in f("many")] == [x["actions"] for x in f("many_interpreted")]'
frames=4
run many_paced "$W/many.lua" --clock paced
is "thirteen action nodes: a tick hands out each" 'all(len(x["actions"]) == 13 for x in f("many_paced"))'
frames=

# In the frame between, a chunk that is kept goes on by the rows that its own robot has carried out.
frames=2
run executed tests/pipelines/two_executed.lua
is "of two robots each goes on by the rows that it carries out: three of the left one's" \
    'of("executed", "act_left")[1][:-3] == of("executed", "act_left")[0][3:]'
sed 's/robot_of("left", 3)/robot_of("left", 1)/; s/robot_of("right", 1)/robot_of("right", 3)/' tests/pipelines/two_executed.lua >"$W/one.lua"
run one "$W/one.lua"
is "and one row, where the robots are the other way round" 'of("one", "act_left")[1][:-1] == of("one", "act_left")[0][1:]'
frames=

n=$((n + 1))
"$T" simulate $G/g04_two_heads.lua --random-weights 1 --size tiny --launch-ms 1 -n 2 --trace "$W/trace" --format json \
    >"$W/sum" 2>/dev/null </dev/null
if [ "$(grep -c '"release"' "$W/trace")" = 4 ] && grep -q '"act_early"' "$W/sum"; then
    echo "ok $n - a simulation releases both"
else failed=1; echo "not ok $n - a simulation releases both"; fi
echo "1..$n"
exit $failed

#!/bin/sh
# texts.t - edges of text in the programs: event traces of simulate, frames of run, the drawing.
# usage: tests/texts.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
# WRITE=1 makes the traces of tests/traces anew.
. "$(dirname "$0")/opening.sh"

# Every launch takes a millisecond; requests and texts are the pipeline's.
trace() { # trace PIPELINE POLICY
    random="--random-weights 1 --size tiny"
    [ "$1" != text_loop ] || random= # the bundled checkpoint
    "$T" simulate --costs tests/traces/millisecond.costs -n 16 $random \
        --set policy.name="$2" --trace "$W/trace.jsonl" "tests/pipelines/$1.lua" >"$W/out" 2>&1 || return 1
    [ -z "$WRITE" ] || cp "$W/trace.jsonl" "tests/traces/$1_$2.jsonl"
    diff "$W/trace.jsonl" "tests/traces/$1_$2.jsonl" >"$W/out"
}

# What is read is the version before it, whose age is that of its request, and there is one.
chain() { # chain FILE
    python3 - "$1" >"$W/out" 2>&1 <<'END'
import json, sys
newest, born, reads = None, {}, 0
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["event"] == "arrive":
        born[e["request"]] = e["frame"], e["t_us"]
    if e["event"] == "version":
        newest = e["request"]
    if e["event"] == "read":
        assert e["request"] == newest, (e, newest)
        age = None if newest is None else e["frame"] - born[newest][0]
        assert e["age_frames"] == age, e
        assert newest is None or e["age_us"] == e["t_us"] - born[newest][1], e
        reads += newest is not None
assert reads >= 3, reads
END
}

for case in "text_edges chaos" "text_loop oxygen" "text_remark slack_k" "text_remark chaos" "text_levels chaos" "text_ranks chaos"; do
    set -- $case
    trace "$1" "$2"
    ok $? "$1 under $2: events are the committed ones"
    chain "tests/traces/$1_$2.jsonl"
    ok $? "$1 under $2: each read is of the newest version, with its age"
done

# Which versions are read, the actions and texts do not depend on how the graph is compiled.
said() { # said PIPELINE ARGUMENTS...: a line a frame
    pipeline=$1
    shift
    "$T" run "$pipeline" --random-weights 1 --size tiny --random-inputs 1 -n 40 --policy chaos \
        --format json "$@" </dev/null 2>>"$W/err" | python3 -c '
import json, sys
frames = [json.loads(line) for line in sys.stdin]
assert sum(f["read"][0]["request"] is not None for f in frames) > 3, "no text was read"
for f in frames:
    reads = [(r["node"], r["stream"], r["request"], r["frame"]) for r in f["read"]]
    print(json.dumps([reads, f["actions"], f["text"]]))'
}
for pipeline in tests/pipelines/text_edges.lua tests/pipelines/text_ranks.lua \
    pipelines/graphs/g12_planner_ranks.lua pipelines/graphs/g23_two_levels_of_one_model.lua; do
    : >"$W/err"
    said "$pipeline" >"$W/compiled" && said "$pipeline" --interpret >"$W/interpreted" &&
        cmp "$W/compiled" "$W/interpreted" >"$W/out" 2>&1
    ok $? "$pipeline: compiled as interpreted, and texts were read"
done

# Prompts of several texts and of none, through their templates and the tokenizer of the bundled checkpoint.
words() { # words ARGUMENTS...: actions, and whole texts by request
    "$T" run tests/pipelines/text_task.lua --random-inputs 1 -n 12 --policy chaos --drain --format json "$@" \
        </dev/null 2>>"$W/err" | python3 -c '
import json, sys
frames, texts = [json.loads(line) for line in sys.stdin], {}
for f in frames:
    for node, said in (f.get("text") or {}).items():
        for t in said:
            texts.setdefault("%s %d" % (node, t["request"]), []).extend(t.get("tokens") or [])
assert {key.split()[0] for key in texts} == {"talk", "caption", "remark"}, texts
print(json.dumps([[f["actions"] for f in frames if f.get("actions")], texts], sort_keys=True))'
}
: >"$W/err"
words >"$W/compiled" && words --interpret >"$W/interpreted" && cmp "$W/compiled" "$W/interpreted" >"$W/out" 2>&1
ok $? "prompts of several texts and of none: compiled as interpreted"

# A tokenizer with two very long pieces: a text that is cut may have more bytes than its tokens usually stand for.
python3 - pipelines/checkpoints/metaworld/tokenizer.model "$W" >"$W/out" 2>&1 <<'END'
import struct, sys
data, at, pieces = open(sys.argv[1], "rb").read(), 0, []
def number(at):
    n = shift = 0
    while True:
        n |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return n, at
def coded(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + coded(n >> 7)
while data[at] == 10:
    n, at = number(at + 1)
    pieces.append(data[at:at + n])
    at += n
for i, piece in ((-1, b"=" * 672), (-2, b"#" * 671)):
    pieces[i] = b"\n" + coded(len(piece)) + piece + b"\x15" + struct.pack("<f", 0) + b"\x18\x04"
open(sys.argv[2] + "/tokenizer.model", "wb").write(b"".join(b"\n" + coded(len(p)) + p for p in pieces) + data[at:])
END
long=$(printf '%672s' | tr ' ' '=')$(printf '%671s' | tr ' ' '#')
first() { # first TEXT: what the arm does in the first frame
    "$T" run tests/pipelines/text_loop.lua --tokenizer "$W/tokenizer.model" --random-inputs 1 --format json \
        --set "nodes.talk.out.default=$1" 2>>"$W/out" </dev/null | grep -o '"actions":{[^}]*}'
}
first "$long$(printf ' button%.0s' $(seq 27)) but" >"$W/cut" && first "$long" >"$W/kept" && cmp "$W/cut" "$W/kept" >>"$W/out" 2>&1 &&
    grep -q "room for 1343 of its 1536 bytes" "$W/out"
ok $? "a text of long pieces is cut to what fits"

# Of a prompt that is too long its last tokens stay, however many there were.
cat >"$W/last.lua" <<'END'
local robot = include "robots/metaworld.lua"
robot.prompt = { template = "skills", max_tokens = 32, truncate = true, keep = "last" }
return extend("demo_metaworld.lua", { name = "last", robot = robot })
END
last() { # last BYTES: what the arm does, told so many letters
    "$T" run "$W/last.lua" --root . --random-inputs 1 --input "prompt=$(printf "%$1s" | tr ' ' z)" --format json \
        2>>"$W/out" </dev/null | grep -o '"actions":{[^}]*}'
}
: >"$W/out"
last 100 >"$W/short" && last 1280 >"$W/long" && cmp "$W/short" "$W/long" >>"$W/out" 2>&1
ok $? "the last tokens of a long prompt are those of its end"

# A decode starts with its prefix, at the prefill's rate, or when the text before it is new.
python3 - tests/traces/text_levels_chaos.jsonl >"$W/out" 2>&1 <<'END'
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
born = lambda node: [e["frame"] for e in events if e["event"] == "arrive" and e["node"] == node]
last = events[-1]["frame"]
assert born("plan") == born("remark") == list(range(0, last + 1, 8)), (born("plan"), born("remark"))
versions = [e["frame"] + 1 for e in events if e["event"] == "version" and e["frame"] < last]
assert versions and born("talk") == [0] + versions, (born("talk"), versions)
END
ok $? "on_change of a prefix and of a text start requests with their versions"

"$T" graph -T dot tests/pipelines/text_edges.lua >"$W/out" 2>&1
grep -q 'style=dashed, label="newest text"' "$W/out"
ok $? "a drawing has the edge, dashed"

"$T" run -n 12 --format json --inputs pipelines/checkpoints/metaworld/episodes/button.jsonl \
    --set policy.name=batch_only tests/pipelines/text_loop.lua >"$W/out" 2>"$W/err"
python3 - "$W/out" >"$W/said" 2>&1 <<'END'
import json, sys
frames = [json.loads(line) for line in open(sys.argv[1])]
reads = [f["read"][0] for f in frames]
assert reads[0] == {"node": "see", "stream": "narration", "request": None, "frame": None, "age_us": None}
assert reads[-1]["request"] is not None and reads[-1]["age_us"] > 0, reads[-1]
for f, r in zip(frames, reads):
    assert r["frame"] is None or r["frame"] < f["frame"], f
END
status=$?
cat "$W/said" "$W/err" >>"$W/out"
ok $status "run says which text was read, and how old it is"

# The demo's model says "move to the faucet" or "move to the drawer" to random pictures.
ends() { # ends STOP: the text of the first frame, and why it ended
    echo "return extend('demo_metaworld.lua', { name = 'stops', nodes = { decode { name = 'talk', stop = $1 } } })" >"$W/stops.lua"
    "$T" run "$W/stops.lua" --root . --random-inputs 1 -n 2 --drain --threads 1 --format json 2>"$W/err" </dev/null | python3 -c '
import json, sys
texts = [t for line in sys.stdin for t in (json.loads(line)["text"] or {})["talk"] if t["request"] == 0]
print("".join(t["text"] for t in texts), texts[-1]["reason"])'
}
whole=$(ends '""') one=$(ends '" to"') first=$(ends '{ "the", "to", "none" }') other=$(ends '{ "none", "the" }')
echo "$whole, $one, $first, $other" >"$W/out"
case $whole in "move to the "*" eos") ;; *) false ;; esac && [ "$one" = "move to stop" ] && [ "$first" = "$one" ] &&
    [ "$other" = "move to the stop" ]
ok $? "of several stop texts the one that occurs first ends the text"

# A template without words of its own, and a stream that has said nothing.
cat >"$W/bare.lua" <<LUA
local robot = include "robots/metaworld.lua"
robot.prompt = { template = "bare" }
return extend("demo_metaworld.lua", { name = "bare", robot = robot,
  nodes = { decode { name = "talk", out = stream { name = "narration", default = "" } },
            prefill { name = "see", reads = { "observation/image", "observation/wrist_image", "observation/state", "narration" } } } })
LUA
"$T" run "$W/bare.lua" --root . --random-inputs 1 -n 2 --format json >"$W/out" 2>"$W/err" </dev/null
[ $? -eq 0 ] && [ "$(grep -c '"actions":{"act":' "$W/out")" -eq 2 ]
ok $? "a prompt of an empty text alone does not stop the frames"

echo "1..$n"
exit $failed

#!/bin/sh
# two_arms.t - several robots in one pipeline: each has the bytes that it has alone, its own deadline.
# usage: tests/two_arms.t [PROGRAM]
. "$(dirname "$0")/opening.sh"

run() { # run NAME PIPELINE ARGUMENTS...
    name=$1 pipeline=$2
    shift 2
    "$T" run "$pipeline" --root "$root" --random-weights 1 --size tiny --random-inputs 1 -n 12 --threads 2 \
        --format json "$@" >"$W/$name" 2>"$W/err" </dev/null
}

# One arm of the pipeline with both: the other one's lines are left out.
alone() { # alone SIDE [PLAIN]
    cat <<LUA
local side, own = "$1", "$2" == "" and "$1/" or ""
local OBS <const> = 2 * 256 + 200
return pipeline { name = "alone", schema = 1, model = model { name = side, arch = "pi05" },
  robot = own == "" and "robots/libero.lua" or nil, robots = own ~= "" and { [side] = "robots/libero.lua" } or nil,
  frame = frame { period_ms = 100, clock = "external" },
  inputs = { image { name = own .. "observation/image", h = 224, w = 224 },
             image { name = own .. "observation/wrist_image", h = 224, w = 224 },
             tensor { name = own .. "observation/state", shape = { 8 } }, text { name = own .. "prompt", max_tokens = 200 } },
  resources = { kv.frame { name = "obs", tokens = OBS }, buffer { name = "chunk", shape = { 10, 32 } },
                kv.requests { name = "lang", tokens = OBS + 12, slots = 3, share_prefix = "obs" } },
  nodes = { prefill { name = "see", model = side, writes = "obs", reads = { own .. "observation/image",
                      own .. "observation/wrist_image", own .. "observation/state", own .. "prompt" } },
            action { name = "act_" .. side, model = side, kv = "obs", out = "chunk", deadline = hard { ms = 90, on_miss = "hold" } },
            decode { name = "talk_" .. side, model = side, kv = "lang", max_tokens = 12, spawn = every(2), out = stream "said" } },
  capture = capture { batch = { 1, 2, 3 }, k = { 1, 2, 4 } } }
LUA
}

cat >"$W/look.py" <<'PYTHON'
import json, sys
def read(path):
    frames = [json.loads(line) for line in open(path)]
    actions, texts = {}, {}
    for f in frames:
        a = f["actions"]
        for node, rows in (a if isinstance(a, dict) else {None: a}).items():
            actions.setdefault(node, []).append(rows)
        for node, list_ in (f.get("text") or {}).items():
            for t in list_:
                texts.setdefault(node, {}).setdefault(t["request"], []).extend(t["tokens"])
    return actions, {k: [v[r] for r in sorted(v)] for k, v in texts.items()}
def same(x, y):  # a text may be cut by the end of the run
    return len(x) == len(y) and all(a[:len(b)] == b[:len(a)] for a, b in zip(x, y))
def arm(path, side):
    actions, texts = read(path)
    return actions.get("act_" + side) or actions[None], texts.get("talk_" + side)
what, both = sys.argv[1], sys.argv[2]
if what == "alone":
    side, alone = sys.argv[3], sys.argv[4]
    a, b = arm(both, side), arm(alone, side)
    assert len(a[0]) == 12 and a[0] == b[0], "the chunks differ"
    assert a[1] is None or same(a[1], b[1]), "the texts differ"
elif what == "differ":
    assert arm(both, "left")[0] != arm(both, "right")[0], "both arms do the same"
elif what == "order":
    nodes = [e["node"] for e in map(json.loads, open(both)) if e["event"] == "start" and e["frame"] == 0 and "node" in e]
    assert nodes.index("act_right") < nodes.index("see_left"), nodes
elif what == "late":
    late = {}
    for e in map(json.loads, open(both)):
        if e["event"] == "release":
            late.setdefault(e["node"], set()).add(e["late"])
    assert late == {"act_right": {False}, "act_left": {True}}, late
PYTHON
look() { python3 "$W/look.py" "$@" 2>>"$W/err"; }

talk=tests/pipelines/graphs/two_arms_talk.lua
for side in left right; do
    alone $side >"$W/$side.lua"
    alone $side plain >"$W/plain_$side.lua"
done
run both pipelines/graphs/g03_two_arms.lua
ok $? "two arms, a model each"
run talk "$talk"
ok $? "two arms with language"
for side in left right; do
    run $side "$W/$side.lua" && look alone "$W/both" $side "$W/$side"
    ok $? "the $side arm's chunks are those that it has alone"
    look alone "$W/talk" $side "$W/$side"
    ok $? "so they are with language, and its texts"
done
look differ "$W/both"
ok $? "the arms do not do the same"

# The same values under the names that they have without a robot's.
cat >"$W/values.py" <<'PYTHON'
import json, random, sys
random.seed(3)
state = lambda: [random.uniform(-1, 1) for _ in range(8)]
for i in range(12):
    left, right = state(), state()
    values = {"left": {"left/observation/state": left, "right/observation/state": right},
              "one": {"observation/state": right}}[sys.argv[1]]
    print(json.dumps(values))
PYTHON
python3 - "$W/grey.png" <<'PYTHON'
import struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
open(sys.argv[1], "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) +
                              chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(range(24)) for _ in range(8)))) + chunk(b"IEND", b""))
PYTHON
python3 "$W/values.py" left >"$W/two.jsonl" && python3 "$W/values.py" one >"$W/one.jsonl"
given() { # given NAME PIPELINE VALUES PREFIX...
    name=$1 pipeline=$2 values=$3
    shift 3
    set -- $(for p in "$@"; do [ "$p" = - ] && p=
        echo "--input ${p}observation/image=@$W/grey.png --input ${p}observation/wrist_image=@$W/grey.png --input ${p}prompt#ids=[5,6,7]"
    done)
    "$T" run "$pipeline" --root "$root" --random-weights 1 --size tiny --inputs "$values" -n 12 --threads 2 --format json "$@" \
        >"$W/$name" 2>"$W/err" </dev/null
}
given both pipelines/graphs/g03_two_arms.lua "$W/two.jsonl" left/ right/ &&
    given plain "$W/plain_right.lua" "$W/one.jsonl" - && look alone "$W/both" right "$W/plain"
ok $? "a robot without a name gives the same bytes"

"$T" simulate "$talk" --root "$root" --random-weights 1 --size tiny --launch-ms 1 -n 4 --trace "$W/trace" >/dev/null 2>"$W/err" &&
    look order "$W/trace"
ok $? "the earlier deadline goes first, whatever stands first in the file"
"$T" simulate "$talk" --root "$root" --random-weights 1 --size tiny --launch-ms 25 -n 4 --trace "$W/trace" >/dev/null 2>"$W/err" &&
    look late "$W/trace"
ok $? "each action is late by its own deadline"

# A question about both arms has the words of a prompt that is given as a whole: the right arm's pictures, then the
# left one's; the left arm's state, then the right one's.
cat >"$W/one.lua" <<'LUA'
return pipeline { name = "one", schema = 1, model = model { arch = "pi05", weights = "pipelines/checkpoints/metaworld" },
  frame = frame { period_ms = 100 },
  inputs = { image { name = "a", h = 64, w = 64 }, image { name = "b", h = 64, w = 64 }, image { name = "c", h = 64, w = 64 },
             text { name = "prompt", max_tokens = 60 } },
  resources = { kv.frame { name = "seen", tokens = 108 }, kv.requests { name = "said", tokens = 120, slots = 2, share_prefix = "seen" } },
  nodes = { prefill { name = "look", writes = "seen", reads = { "a", "b", "c", "prompt" } },
            decode { name = "says", kv = "said", spawn = on_change(), max_tokens = 12, temperature = 4, out = stream "says" } },
  capture = capture { batch = { 1, 2 }, k = { 1, 4, 12 } } }
LUA
python3 - "$W" <<'PYTHON'
import struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for i in range(4):
    rows = b"".join(b"\0" + bytes((x * (i + 3) + y * 7 * (i + 1)) % 256 for x in range(192)) for y in range(64))
    open("%s/%d.png" % (sys.argv[1], i), "wb").write(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)) +
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PYTHON
text() { # text PIPELINE OPTIONS...: what the decode node says, as tokens
    "$T" run "$@" --root "$root" -n 2 --drain --threads 1 --policy fill --format json 2>"$W/err" </dev/null |
        python3 -c 'import json, sys; print([t["tokens"] for x in sys.stdin for t in json.loads(x)["text"]["says"]])'
}
about_both() { # about_both OPTIONS...
    text tests/pipelines/graphs/two_arms_look.lua --input "left/observation/image=@$W/0.png" \
        --input "left/observation/wrist_image=@$W/1.png" --input "right/observation/image=@$W/2.png" \
        --input "right/observation/wrist_image=@$W/3.png" --input "left/observation/state=[1e3,1e3,1e3,1e3]" \
        --input "right/observation/state=[-1e3,-1e3,-1e3,-1e3]" --input "goal=close the faucet" \
        --input "right/question=open the drawer" "$@"
}
ids=$("$T" tokenize --json-strings pipelines/checkpoints/metaworld <<'TEXT' | sed 's/\[/[2, /'
"Task: open the drawer, State: 255 255 255 255 -1 -1 -1 -1;\nAction: "
TEXT
)
want=$(text "$W/one.lua" --input "a=@$W/2.png" --input "b=@$W/3.png" --input "c=@$W/0.png" --input "prompt#ids=$ids")
[ "${#want}" -gt 20 ] && [ "$(about_both)" = "$want" ]
ok $? "a question about both arms is of their pictures and states, in the order of its reads"
[ "$(about_both --interpret)" = "$want" ]
ok $? "so it is as interpreted"
[ "$(about_both --set 'nodes.look.spawn=on_change("right/question")')" = "$want" ]
ok $? "and where a text of one arm begins it"
echo "1..$n"
exit $failed

#!/bin/sh
# ring_questions.t - questions on a ring's newest picture: the ring's actions are those without them, the
# answers those of a frame's prefix.
# usage: tests/ring_questions.t [PROGRAM]
. "$(dirname "$0")/opening.sh"

run() { # run NAME PIPELINE ARGUMENTS...
    name=$1 pipeline=$2
    shift 2
    "$T" run "$pipeline" --root "$root" --random-weights 1 --size tiny -n 20 --threads 2 --drain --inputs "$W/frames" \
        --format json "$@" >"$W/$name" 2>"$W/err" </dev/null
}

# The same questions in a pipeline without a ring.
cat >"$W/frame.lua" <<'LUA'
return pipeline { name = "frame", schema = 1,
  model = model { arch = "openvla" }, robot = "robots/openvla_bridge.lua", frame = frame { period_ms = 55 },
  inputs = { image { name = "observation/image", h = 224, w = 224 }, text { name = "prompt", max_tokens = 64 },
             text { name = "question", max_tokens = 24, default = "what is on the table?" } },
  resources = { kv.frame { name = "obs", tokens = 320 },
                kv.requests { name = "say", tokens = 400, slots = 8, share_prefix = "obs" } },
  nodes = { prefill { name = "see", reads = { "observation/image", "prompt" }, writes = "obs" },
            decode { name = "talk", kv = "say", prompt = "question", spawn = every(3), max_tokens = 16,
                     out = stream "talk" } },
  capture = capture { batch = { 1, 2 }, k = { 1, 4 } } }
LUA

# Decisions that do not look at times.
for depth in 7 1; do
    cat >"$W/depth$depth.lua" <<LUA
local ring
return policy { name = "steady", api = 1, version = 1, needs = { "depth", "decode.k" },
  setup = function(S, T) ring = T.ring end,
  plan = function(S, F, D)
    D:depth(ring, $depth)
    for i = 1, F.nreq do D:decode(i, 4) end
  end }
LUA
done

python3 - "$W" <<'PYTHON'
import json, random, sys
random.seed(5)
def picture():
    return [[[random.randrange(256) for _ in range(3)] for _ in range(28)] for _ in range(28)]
with open(sys.argv[1] + "/frames", "w") as plain:
    for f in range(20):
        frame = {"observation/image": picture(), "prompt#ids": [7, 9, 30 + f // 10]}
        plain.write(json.dumps(frame) + "\n")
PYTHON

cat >"$W/same.py" <<'PYTHON'
import json, sys
def read(path):
    actions, texts = [], {}
    for line in open(path):
        f = json.loads(line)
        actions += [e["actions"] for e in f.get("earlier", [])] + [a for n, a in (f.get("actions") or {}).items()]
        for t in (f.get("text") or {}).get("talk", []):
            texts.setdefault(t["request"], []).extend(t["tokens"])
    return actions, texts
a, b = read(sys.argv[1]), read(sys.argv[2])
what = sys.argv[3]
if what == "actions":
    n = min(len(a[0]), len(b[0]))
    assert n > 10 and a[0][:n] == b[0][:n], f"actions differ, {len(a[0])} and {len(b[0])}"
else:
    assert len(a[1]) > 4 and a[1].keys() == b[1].keys(), (a[1].keys(), b[1].keys())
    for request, tokens in a[1].items():
        assert len(tokens) > 1 and tokens == b[1][request], f"request {request}: {tokens} and {b[1][request]}"
PYTHON

talks=tests/pipelines/graphs/ring_talks.lua
slots="--set resources.say.slots=8"
run ring pipelines/openvla_ring.lua --policy default && run frame "$W/frame.lua"
for policy in "$W/depth7.lua" chaos; do
    run talks $talks $slots --policy "$policy" && python3 "$W/same.py" "$W/ring" "$W/talks" actions 2>>"$W/err"
    ok $? "actions beside questions are those without, policy ${policy##*/}"
    python3 "$W/same.py" "$W/talks" "$W/frame" texts 2>"$W/err"
    ok $? "answers are those of a frame's prefix, policy ${policy##*/}"
done
run copied $talks $slots --policy "$W/depth7.lua" --set resources.ring.shift=device_copy &&
    python3 "$W/same.py" "$W/copied" "$W/frame" texts 2>>"$W/err" &&
    python3 "$W/same.py" "$W/ring" "$W/copied" actions 2>>"$W/err"
ok $? "the same where sequences are copied from stage to stage"
run shallow $talks $slots --policy "$W/depth1.lua" &&
    python3 "$W/same.py" "$W/shallow" "$W/frame" texts 2>>"$W/err"
ok $? "answers in a ring of depth 1, whose sequence leaves in its frame"
run few $talks --policy "$W/depth7.lua" --interpret && python3 "$W/same.py" "$W/ring" "$W/few" actions 2>>"$W/err"
ok $? "as interpreted, with requests that find no slot"
echo "1..$n"
exit $failed

#!/bin/sh
# act.t - a model without text from the outside: golden cases, frames of a LeRobot checkpoint, a server.
# usage: tests/act.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
G=$root/tests/golden/act

tectum() { timeout 120 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null; }
says() { cat "$W/out" "$W/err" | grep -q -- "$1"; ok $? "says $1"; }

# Every tensor of the golden cases, in both dtypes.
for dtype in f32 bf16; do
    tectum verify --dtype $dtype "$G"; ok $? "golden cases, $dtype"
done

# Compiled as interpreted, without a checkpoint.
random="--random-weights 1 --size tiny --random-inputs 1 -n 5 --format json"
actions() { sed 's/.*"actions":\({[^}]*}\).*/\1/' "$W/out"; }
tectum check --random-weights 1 --size tiny pipelines/act_aloha.lua; ok $? "check"
# shellcheck disable=SC2086 # a list of options
tectum run $random pipelines/act_aloha.lua; ok $? "run"
actions >"$W/compiled"
# shellcheck disable=SC2086
tectum run $random --interpret pipelines/act_aloha.lua; ok $? "run --interpret"
actions >"$W/interpreted"
[ "$(wc -l <"$W/compiled")" -eq 5 ] && cmp -s "$W/compiled" "$W/interpreted"; ok $? "the same bytes"

# A description that does not fit is shown at its word.
cp -r pipelines policies "$W"
check="check --root $W --random-weights 1 --size tiny $W/pipelines/act_aloha.lua"
sed 's/{ side = 3, stride = 2, pad = 1, name/{ side = 3, stride = 2, pda = 1, name/' pipelines/models/act.lua \
    >"$W/pipelines/models/act.lua"
# shellcheck disable=SC2086
tectum $check; [ $? -eq 1 ]; ok $? "an unknown option is refused"
says "max_pool: has no option 'pda'; did you mean 'pad'?"; says "models/act.lua:[0-9]*:[0-9]*$"; says '| *\^\^\^$'
sed 's/g:max_pool/g:maxpool/' pipelines/models/act.lua >"$W/pipelines/models/act.lua"
# shellcheck disable=SC2086
tectum $check; [ $? -eq 1 ]; ok $? "an unknown word is refused"
says "the builder has no word 'maxpool'; did you mean 'max_pool'?"; says '| *\^\^\^\^\^\^\^$'
cp pipelines/models/act.lua "$W/pipelines/models/act.lua"
sed 's/and 0 or 1 }/and 0 or 100 }/' pipelines/models/common/pi_family.lua >"$W/pipelines/models/common/pi_family.lua"
# shellcheck disable=SC2086
tectum check --root "$W" --random-weights 1 --size tiny "$W/pipelines/pi0_aloha.lua"; [ $? -eq 1 ]
ok $? "a number of a file that another one includes is refused"
says "attention: lead 100 of 51 rows"; says "models/common/expert_layers.lua:[0-9]*:[0-9]*$"; says '| *\^\^*$'
cp pipelines/models/common/pi_family.lua "$W/pipelines/models/common/pi_family.lua"

# pipeline NAME INPUTS READS ROWS CHUNK CHANGES: that of a golden checkpoint
pipeline() {
    cat >"$W/$1.lua" <<END
return pipeline {
  name = "$1", schema = 1, model = model { arch = "act", weights = "$G/$1/checkpoint", dtype = "f32" },
  frame = frame { period_ms = 500, clock = "external" },
  inputs = { $2 },
  resources = { kv.frame { name = "obs", tokens = $4 }, buffer { name = "chunk", shape = { $5 } } },
  nodes = { prefill { name = "see", reads = { $3 }, writes = "obs" },
            action { name = "act", kv = "obs", out = "chunk", deadline = hard { ms = 450 } }, $6 },
  ${6:+capture = capture { k = { 4 \} \},}
  policy = use { name = "default" },
}
END
}
cam() { printf 'image { name = "observation.images.%s", h = %s, w = %s }' "$1" "$2" "$3"; }
vec() { printf 'tensor { name = "observation.%s", shape = { %s } }' "$1" "$2"; }
base="$(cam top 96 128), $(cam wrist 96 128), $(vec state 6)"
base_reads='"observation.images.top", "observation.images.wrist", "observation.state"'
odd="$(cam front 75 101), $(vec state 5), $(vec environment_state 3)"
odd_reads='"observation.images.front", "observation.state", "observation.environment_state"'

cat >"$W/compare.py" <<'PYTHON'
import json, struct, sys
with open(sys.argv[2] + "/expected.safetensors", "rb") as f:
    header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    data = f.read()
t = header["robot_actions"]
want = struct.unpack("<%df" % (t["shape"][0] * t["shape"][1]), data[slice(*t["data_offsets"])])
got = [x for row in json.loads(open(sys.argv[1]).readline())["actions"]["act"] for x in row]
assert len(got) == len(want) and max(abs(a - b) for a, b in zip(got, want)) < 1e-5, (got[:4], want[:4])
PYTHON
# frames.jsonl: the raw inputs of an episode; ensemble.py: its actions are the case's
i=0
while [ $i -lt 11 ]; do
    printf '{"observation.images.front": "@%s#frame%d.image.observation.images.front", ' "$G/odd_ensemble/inputs.safetensors" $i
    printf '"observation.state": "@%s#frame%d.observation.state", ' "$G/odd_ensemble/inputs.safetensors" $i
    printf '"observation.environment_state": "@%s#frame%d.observation.environment_state"}\n' "$G/odd_ensemble/inputs.safetensors" $i
    i=$((i + 1))
done >"$W/frames.jsonl"
cat >"$W/ensemble.py" <<'PYTHON'
import json, struct, sys
with open(sys.argv[2] + "/expected.safetensors", "rb") as f:
    header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    data = f.read()
frames = [json.loads(line)["actions"]["act"] for line in open(sys.argv[1])]
assert len(frames) == 11
for i, rows in enumerate(frames):
    want = struct.unpack("<4f", data[slice(*header["frame%d.robot_action" % i]["data_offsets"])])
    assert len(rows) == 1 and max(abs(a - b) for a, b in zip(rows[0], want)) < 2e-5, (i, rows, want)
PYTHON
file() { printf '%s=@%s/inputs.safetensors#%s' "$2" "$G/$1" "$3"; }
run_case() { # run_case NAME PIPELINE FEATURE...
    name=$1 pipeline=$2
    shift 2
    set -- "$@" --
    while [ "$1" != -- ]; do
        case $1 in
        observation.images.*) set -- "$@" -i "$(file "$name" "$1" "image.$1")" ;;
        *) set -- "$@" -i "$(file "$name" "$1" "$1")" ;;
        esac
        shift
    done
    shift
    tectum run "$pipeline" --root "$root" "$@" --format json && python3 "$W/compare.py" "$W/out" "$G/$name" 2>>"$W/err"
    ok $? "$name by ${pipeline##*/}: raw inputs to the robot's actions"
}
pipeline base "$base" "$base_reads" 26 "20, 6"
run_case base "$W/base.lua" observation.images.top observation.images.wrist observation.state
pipeline odd "$odd" "$odd_reads" 15 "9, 4"
run_case odd "$W/odd.lua" observation.images.front observation.state observation.environment_state

# The folder as it is, and the file that init writes of it.
run_case odd "$G/odd/checkpoint" observation.images.front observation.state observation.environment_state
run_case base "$G/base/checkpoint" observation.images.top observation.images.wrist observation.state
tectum init "$G/odd/checkpoint"; cp "$W/out" "$W/written.lua"
grep -q 'h = 75, w = 101' "$W/written.lua" && grep -q 'tokens = 15' "$W/written.lua"; ok $? "init writes sizes and rows"
run_case odd "$W/written.lua" observation.images.front observation.state observation.environment_state

# A chunk of one action: rows of equal positions see each other as one row sees itself.
cat >"$W/short.py" <<'PYTHON'
import json, os, shutil, struct, sys

folder, rows, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
shutil.copytree(folder, out)
os.chmod(out, 0o755)
for name in os.listdir(out):
    os.chmod(os.path.join(out, name), 0o644)
path = os.path.join(out, "config.json")
config = {**json.load(open(path)), "chunk_size": rows, "n_action_steps": 1}
json.dump(config, open(path, "w"))
path = os.path.join(out, "model.safetensors")
whole = open(path, "rb").read()
size = struct.unpack("<Q", whole[:8])[0]
header, data = json.loads(whole[8:8 + size]), whole[8 + size:]
named, blobs, at = {}, [], 0
for name, t in header.items():
    if name != "__metadata__":
        blob = data[slice(*t["data_offsets"])]
        if name == "model.decoder_pos_embed.weight":
            row = len(blob) // t["shape"][0]
            blob, t["shape"][0] = blob[:row] * rows, rows
        named[name] = {**t, "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
text = json.dumps(named).encode()
open(path, "wb").write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
PYTHON
for rows in 1 2; do
    python3 "$W/short.py" "$G/odd/checkpoint/pretrained_model" $rows "$W/short$rows" &&
        tectum run "$W/short$rows" --root "$root" --random-inputs 1 -n 2 --dtype f32 --format json && cp "$W/out" "$W/short$rows.jsonl"
done
python3 -c '
import json, sys
one, two = ([json.loads(line)["actions"]["act"] for line in open(sys.argv[1] + "/short%d.jsonl" % n)] for n in (1, 2))
assert len(one) == 2 and all(len(a) == 1 and len(b) == 2 for a, b in zip(one, two)), (one, two)
assert all(abs(x - y) < 1e-5 for a, b in zip(one, two) for row in b for x, y in zip(a[0], row)), (one, two)' "$W" 2>>"$W/err"
ok $? "a chunk of one action"

# Temporal ensembling: the second frame's action is a mean of two chunks.
mkdir -p "$W/ensemble" && cp "$G/odd/checkpoint/pretrained_model/"* "$W/ensemble" && chmod u+w "$W/ensemble/config.json"
sed -i 's/"temporal_ensemble_coeff": null/"temporal_ensemble_coeff": 0.01/' "$W/ensemble/config.json"
tectum check "$W/ensemble"; says "n_action_steps.*temporal_ensemble_coeff needs 1"
sed -i 's/"n_action_steps": 5/"n_action_steps": 1/' "$W/ensemble/config.json"
tectum run "$W/ensemble" --root "$root" -n 14 --inputs "$W/frames.jsonl" --format json &&
    python3 "$W/ensemble.py" "$W/out" "$G/odd_ensemble" 2>>"$W/err"
ok $? "ensembling: one action a frame, those of LeRobot"

# What does not fit is said with its place.
pipeline base "$base" "$base_reads" 25 "20, 6"
tectum check "$W/base.lua" --root "$root"; says "'obs' holds 25 tokens, model 'act' has 26 rows"
pipeline base "$base, text { name = \"task\", max_tokens = 8 }" "$base_reads, \"task\"" 40 "20, 6"
tectum check "$W/base.lua" --root "$root"; says "the model has no text; leave out the one that is read by 'see'"
pipeline base "$base" "$base_reads" 26 "20, 6" 'decode { name = "talk", kv = "obs", max_tokens = 4, out = stream "x" }'
tectum check "$W/base.lua" --root "$root"; says "the model has no text, which is asked for by 'talk'"
pipeline base "$base" "$base_reads" 26 "20, 6"
tectum run "$W/base.lua" --root "$root" --random-inputs 1 -i "observation.images.top=@$root/tests/golden/act/odd/inputs.safetensors#image.observation.images.front"
says "the picture is 75 high, 101 wide, the model takes 96 high, 128 wide"

# A server: openpi's protocol, LeRobot's keys.
cat >"$W/serve.py" <<'PYTHON'
import sys
sys.argv = [sys.argv[0]] + sys.argv[1:]
sys.path.insert(0, sys.argv[3])
import serve_harness as h
from serve_client import Array

@h.test
def actions_of_pictures_and_a_state():
    s = h.Server(sys.argv[2], "--root", sys.argv[4])
    c = s.connect()
    picture = Array("|u1", [96, 128, 3], bytes(range(256)) * 144)
    asked = {"observation.images.top": picture, "observation.images.wrist": picture,
             "observation.state": Array.floats([0.1] * 6)}
    first, second = c.infer(asked), c.infer(asked)
    h.check(first["actions"].shape == (20, 6) and first["actions"].data == second["actions"].data)
    del asked["observation.state"]
    c.send(asked)
    h.check(b"observation.state" in c.failure()[0])
    h.check(s.end()[0] == 0)

h.main()
PYTHON
PYTHONDONTWRITEBYTECODE=1 timeout 60 python3 "$W/serve.py" "$T" "$W/base.lua" "$root/tests" "$root" >"$W/out" 2>"$W/err"
ok $? "a server of it: actions for pictures and a state"
echo "1..$n"
exit $failed

#!/bin/sh
# surplus.t - a checkpoint with tensors that its model does not read is refused: it may be of another size.
# usage: tests/surplus.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
demo=pipelines/demo_metaworld.lua

# with NAME FOLDER: a copy of a checkpoint with one tensor more
with() {
    rm -rf "$W/one"
    cp -r "$2" "$W/one" && chmod -R u+w "$W/one"
    python3 - "$W/one" "$1" <<'PYTHON'
import json, os, struct, sys
path = next(os.path.join(f, n) for f, _, names in os.walk(sys.argv[1]) for n in names if n == "model.safetensors")
data = open(path, "rb").read()
n, = struct.unpack("<Q", data[:8])
head, body = json.loads(data[8:8 + n]), data[8 + n:]
head[sys.argv[2]] = {"dtype": "F32", "shape": [1], "data_offsets": [len(body), len(body) + 4]}
text = json.dumps(head).encode()
open(path, "wb").write(struct.pack("<Q", len(text)) + text + body + bytes(4))
PYTHON
}

# fails STATUS TEXT WORDS COMMAND...
fails() {
    want=$1 text=$2 words=$3
    shift 3
    "$T" "$@" >"$W/out" 2>"$W/err" </dev/null
    [ $? -eq "$want" ] && cat "$W/out" "$W/err" | grep -q "$words"
    ok $? "$text"
}

layer=paligemma_with_expert.gemma_expert.model.layers
with $layer.9.mlp.down_proj.weight pipelines/checkpoints/metaworld
for verb in run check profile; do
    random=
    [ $verb != run ] || random="--random-inputs 1"
    fails 3 "$verb: a tenth layer of a model of four" "$layer.9.mlp.down_proj.weight'; the nearest.*$layer.[0-3].mlp.down_proj" \
        $verb $demo --weights "$W/one" $random
done
fails 0 "inspect lists it" "$layer.9" inspect "$W/one"
with $layer.0.self_attn.rotary_emb.inv_freq pipelines/checkpoints/metaworld
fails 0 "buffers that frameworks save are no weights" "" run $demo --weights "$W/one" --random-inputs 1
with model.nobody tests/golden/pi/pi0_tiny_lerobot/checkpoint
fails 3 "a LeRobot folder" "does not read tensor 'model.nobody'" run "$W/one" --random-inputs 1
rm -rf "$W/case" && cp -r tests/golden/pi/pi05_tiny "$W/case" && chmod -R u+w "$W/case"
with nobody "$W/case"
fails 1 "verify: the case is not ok" "does not read tensor 'nobody'" verify "$W/one"

# Names in messages are those in the file; what a folder lacks is named, and in which file it is wrong.
# damaged TEXT WORDS PYTHON: ACT's folder, of whose tensors and config.json Python makes others
damaged() {
    rm -rf "$W/one" && cp -r tests/golden/act/base/checkpoint/pretrained_model "$W/one" && chmod -R u+w "$W/one"
    python3 - "$W/one" "$3" <<'PYTHON'
import json, struct, sys
path, edit = sys.argv[1] + "/model.safetensors", sys.argv[2]
data = open(path, "rb").read()
n, = struct.unpack("<Q", data[:8])
head = json.loads(data[8:8 + n])
head.pop("__metadata__", None)
tensors = {k: [t["dtype"], t["shape"], data[8 + n:][slice(*t["data_offsets"])]] for k, t in head.items()}
config = json.load(open(sys.argv[1] + "/config.json"))
before = json.load(open(sys.argv[1] + "/policy_preprocessor.json"))
normalizer = next(s for s in before["steps"] if s["registry_name"] == "normalizer_processor")
scope = {"tensors": tensors, "config": config, "normalizer": normalizer}
exec(edit, scope)
head, body = {}, b""
for k, (dtype, shape, bits) in scope["tensors"].items():
    head[k] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(bits)]}
    body += bits
text = json.dumps(head).encode()
open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
json.dump(config, open(sys.argv[1] + "/config.json", "w"))
json.dump(before, open(sys.argv[1] + "/policy_preprocessor.json", "w"))
PYTHON
    fails 3 "$1" "$2" run "$W/one" --device cpu --random-inputs 1 -n 1
}
head=model.action_head.weight
damaged "a lost tensor" "lacks tensor '$head' .6, 64." "del tensors['$head']"
damaged "a number that is none" "tensor '$head' element 0 is NaN" \
    "t = tensors['$head']; t[2] = bytes([0, 0, 0xC0, 0x7F]) + t[2][4:]"
damaged "names that torch.compile made" "is not of the model 'act'.*first tensor is '_orig_mod.*torch.compile" \
    "tensors = {'_orig_mod.' + k: v for k, v in tensors.items()}"
damaged "a chunk of no length" "chunk_size: must be a whole number of 1 .. 2^20, is -1" "config['chunk_size'] = -1"
damaged "a length that is a text" "chunk_size: must be a whole number of 1 .. 2^20, is '50'" "config['chunk_size'] = '50'"
damaged "a picture with its channels last" 'observation.images.top"].shape: must be .3, height, width.' \
    "config['input_features']['observation.images.top']['shape'] = [480, 640, 3]"
damaged "a mode of no normaliser" "policy_preprocessor.json: normalizer step: norm_map.STATE is 'QUANTILE99'" \
    "normalizer['config']['norm_map']['STATE'] = 'QUANTILE99'"

echo "1..$n"
exit $failed

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
fails 3 "a LeRobot folder" "does not read tensor 'nobody'" run "$W/one" --random-inputs 1
rm -rf "$W/case" && cp -r tests/golden/pi/pi05_tiny "$W/case" && chmod -R u+w "$W/case"
with nobody "$W/case"
fails 1 "verify: the case is not ok" "does not read tensor 'nobody'" verify "$W/one"

echo "1..$n"
exit $failed

#!/bin/sh
# smolvlm.t - a SmolVLM2 folder as it is saved: the golden case, a picture and words through a pipeline to the published
# tokens, compiled as interpreted, and what is wrong with a folder or a prompt.
# usage: tests/smolvlm.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
G=tests/golden/text/smolvlm_tiny
for dtype in f32 bf16; do
    "$T" verify --format text --dtype $dtype $G >"$W/out" 2>"$W/err"
    status=$?
    grep -v '^ok' "$W/out" >"$W/err"
    ok $status "golden case in $dtype"
done

# Pictures of the case as files of one, and others of wrong sizes.
cat >"$W/files.py" <<'PYTHON'
import json, struct, sys
golden, folder = sys.argv[1:]
data = open(golden + "/inputs.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])

def write(name, shape, body):
    text = json.dumps({"image": {"dtype": "U8", "shape": shape, "data_offsets": [0, len(body)]}}).encode()
    open(f"{folder}/{name}.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)

for prompt in (0, 2):
    first, last = header[f"prompt{prompt}.images"]["data_offsets"]
    write(f"picture{prompt}", [32, 32, 3], data[8 + size + first:8 + size + last])
write("grey", [32, 32, 1], bytes(32 * 32))
PYTHON
python3 "$W/files.py" $G "$W"
cp pipelines/smolvlm2_planner.lua "$W" && cat >"$W/planner.lua" <<EOF
return extend("smolvlm2_planner.lua", { name = "planner",
  inputs = { image { name = "image", h = 32, w = 32 } } })
EOF

# says N TEXT OPTION...: the pipeline says what transformers' generate says to prompt N of the case
says() {
    prompt=$1 goal=$2
    shift 2
    "$T" run "$W/planner.lua" --root . --weights $G/checkpoint --dtype f32 --device cpu -n 1 --drain --format json \
        -i "goal=$goal" -i "image=@$W/picture$prompt.safetensors#image" "$@" >"$W/out" 2>"$W/err" &&
        python3 - $G/case.json "$W/out" "$prompt" 2>>"$W/err" <<'PYTHON'
import json, sys
said = [t for line in open(sys.argv[2]) for r in json.loads(line).get("text", {}).get("plan", []) for t in r["tokens"]]
want = json.load(open(sys.argv[1]))["prompts"][int(sys.argv[3])]["generate"]
want = want[:-1] if want[-1] in (363, 10) else want
assert want and said[:len(want)] == want, (said, want)
PYTHON
}
says 0 "Pick the red cube"
ok $? "a picture and a goal become the published tokens"
says 2 "Place it in the box"
ok $? "another picture and goal, too"
says 0 "Pick the red cube" --interpret
ok $? "and interpreted"

# refused TEXT SENTENCE OPTION...: one error, with this in it
refused() {
    text=$1 sentence=$2
    shift 2
    "$T" run "$W/planner.lua" --root . --dtype f32 --device cpu -n 1 --drain -i "goal=Go" "$@" >"$W/out" 2>"$W/err"
    [ $? -ne 0 ] && grep -q "$sentence" "$W/err" && [ "$(grep -c '^tectum run:' "$W/err")" -eq 1 ]
    ok $? "$text"
}
refused "a picture without colours is refused" "image: a picture is u8" --weights $G/checkpoint \
    -i "image=@$W/grey.safetensors#image"
refused "an observation without its picture is refused" "image" --weights $G/checkpoint
cp -r $G/checkpoint "$W/broken" && chmod -R u+w "$W/broken"

# changed KEY VALUE SENTENCE: config.json with another value (KEY of an object in it: OBJECT.KEY) is refused
changed() {
    python3 - $G/checkpoint/config.json "$W/broken/config.json" "$1" "$2" <<'PYTHON'
import json, sys
config = at = json.load(open(sys.argv[1]))
*path, key = sys.argv[3].split(".")
for part in path:
    at = at[part]
at[key] = json.loads(sys.argv[4])
json.dump(config, open(sys.argv[2], "w"))
PYTHON
    refused "$1 = $2 is refused" "$3" --weights "$W/broken" -i "image=@$W/picture0.safetensors#image"
}
changed scale_factor 3 'shuffle 3'
changed image_token_id 384 'text.picture: 384'
changed image_token_id '"x"' 'image_token_id must be a token'
changed tie_word_embeddings 1 'tie_word_embeddings must be true or false'
changed text_config.model_type '"qwen2"' 'is not supported'
changed text_config.vocab_size 385 'embed_tokens.weight'
changed vision_config.hidden_act '"relu"' 'hidden_act must be'
changed vision_config.num_attention_heads 5 'do not divide'
changed vision_config.num_hidden_layers 3 'encoder.layers.2'
echo "1..$n"
exit $failed

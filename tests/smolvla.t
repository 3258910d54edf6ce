#!/bin/sh
# smolvla.t - SmolVLA from a folder as LeRobot saves it: the golden cases, the whole way from pictures and words to
# the robot's units, a server, compiled as interpreted, and what is wrong with a folder.
# usage: tests/smolvla.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
G=tests/golden/smolvla
for dtype in f32 bf16; do
    "$T" verify --format text --dtype $dtype $G >"$W/out" 2>"$W/err"
    status=$?
    grep -v '^ok' "$W/out" >"$W/err"
    ok $status "golden cases in $dtype"
done

# run FOLDER CASE CAMERA... : raw inputs of a case through a pipeline whose robot is the checkpoint.
run() {
    folder=$1 case=$2 task=$3
    shift 3
    python3 tests/smolvla_pipeline.py "$G/$case" smolvla_so100.lua "$@" >"$W/$case.lua" || return 1
    I=$G/$case/inputs.safetensors
    for camera; do set -- "$@" -i "$camera=@$I#image.$camera"; shift; done
    "$T" run "$W/$case.lua" --root . --weights "$folder" --dtype f32 --device cpu --format json \
        --noise "@$I#noise" -i "observation.state=@$I#observation.state" -i "task=$task" "$@" \
        >"$W/out" 2>"$W/err" && python3 tests/smolvla_pipeline.py --compare "$G/$case" "$W/out" "$(grep -c clipped "$W/err")"
}
run "$G/base/checkpoint/pretrained_model" base "pick up the red cube" observation.images.top observation.images.wrist
ok $? "pictures, a state and words become the published actions"
mkdir "$W/parent" && cp -r $G/base/checkpoint "$W/parent/checkpoint" && chmod -R u+w "$W/parent"
run "$W/parent/checkpoint" base "pick up the red cube" observation.images.top observation.images.wrist
ok $? "so from the folder around pretrained_model"
run "$G/odd/checkpoint/pretrained_model" odd \
    "Grasp the lego brick no. 42, carry it 10 cm to the right
and drop it into the bin; then come back… naïve café" observation.images.left
ok $? "with one camera of three, and a task that is cut on its left"
run "$G/selfattn/checkpoint/pretrained_model" selfattn "stack the yellow cube on top of the green cube" observation.images.camera1
ok $? "without statistics under the robot's names nothing is normalised"

R=$W/parent/checkpoint
mv "$R/vlm" "$R/elsewhere"
"$T" check pipelines/smolvla_so100.lua --weights "$R" >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "names the model 'vlm', whose config.json is not there: copy its config.json" "$W/out"
ok $? "a checkpoint without the files of its language model says what to copy"
mkdir "$R/pretrained_model/vlm" && cp "$R"/elsewhere/*.json "$R/pretrained_model/vlm"
check "they may lie inside it" "$T" inspect "$R"

cp -r "$R/pretrained_model" "$W/inside" && sed -i 's|"vlm"|"owner/vlm"|; s|"../vlm"|"owner/vlm"|' "$W"/inside/*.json &&
    "$T" inspect "$W/inside" --format json >"$W/out" 2>"$W/err" && grep -q 'inside/vlm/tokenizer.json' "$W/out"
ok $? "there under the last word of the model's name, the tokenizer too"

cp -r "$R" "$W/alone" && rm -r "$W/alone/pretrained_model/vlm" "$W/alone/elsewhere" && mkdir -p "$W/hub/models--owner--vlm/refs" \
    "$W/hub/models--owner--vlm/snapshots" && printf r1 >"$W/hub/models--owner--vlm/refs/main" &&
    cp -r "$R/elsewhere" "$W/hub/models--owner--vlm/snapshots/r1" &&
    sed -i 's|"vlm"|"owner/vlm"|; s|"../vlm"|"owner/vlm"|' "$W"/alone/pretrained_model/*.json
HF_HUB_CACHE="$W/hub" "$T" inspect "$W/alone" --format json >"$W/out" 2>"$W/err" && grep -q '"model":"smolvla"' "$W/out" &&
    grep -q 'snapshots/r1/tokenizer.json' "$W/out"
ok $? "or in the cache of Hugging Face's hub, the tokenizer too"
HF_HUB_CACHE="$W/nothing" "$T" check pipelines/smolvla_so100.lua --weights "$W/alone" >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "names the model 'owner/vlm', whose config.json is not there: copy .* or download the model: it is not in $W/nothing" "$W/out"
ok $? "where it is in none of them, the message says where it was looked for"

# changed FROM TO KEY VALUE...: a config.json with other values; a key may lie in a part, PART.KEY.
changed() {
    python3 - "$@" <<'EOF'
import json, sys
config = json.load(open(sys.argv[1]))
for field, value in zip(sys.argv[3::2], sys.argv[4::2]):
    *parts, key = field.split(".")
    at = config
    for part in parts:
        at = at[part]
    at[key] = json.loads(value)
json.dump(config, open(sys.argv[2], "w"))
EOF
}
# refused KEY VALUE SENTENCE: config.json with another value is refused in a sentence.
refused() {
    changed "$G/base/checkpoint/pretrained_model/config.json" "$R/pretrained_model/config.json" "$1" "$2"
    "$T" check pipelines/smolvla_so100.lua --weights "$R" >"$W/out" 2>&1
    [ $? -ne 0 ] && grep -q "$3" "$W/out"
    ok $? "$1 = $2 is refused"
}
refused resize_imgs_with_padding '[32, 40]' 'two equal numbers'
refused resize_imgs_with_padding '[36, 36]' 'squares: side 4; must be 2 .. 16, everywhere the same, and divide a side of 9'
refused attention_mode '"other"' 'config.json: attention_mode: must be'
refused num_expert_layers 3 'do not divide'
refused num_vlm_layers 2.5 'must be a whole number'
refused use_delta_joint_actions_aloha true 'not supported'
refused expert_width_multiplier 0.7365 'an expert of 53 columns'
changed "$G/base/checkpoint/pretrained_model/config.json" "$R/pretrained_model/config.json" \
    resize_imgs_with_padding '[32.0, 32.0]' num_vlm_layers 4.0 self_attn_every_n_layers 2.0 num_expert_layers -1.0 \
    empty_cameras 0.0 n_action_steps 4.0 chunk_size 10.0
run "$R" base "pick up the red cube" observation.images.top observation.images.wrist
ok $? "whole numbers may be written as 4.0"
# refused_text KEY VALUE SENTENCE: so is what the language model's own file says of its text, and of the expert with it.
refused_text() {
    changed "$G/base/checkpoint/vlm/config.json" "$R/pretrained_model/vlm/config.json" "text_config.$1" "$2"
    "$T" check pipelines/smolvla_so100.lua --weights "$R" >"$W/out" 2>&1
    [ $? -ne 0 ] && grep -q "config.json of vlm: text_config.$1: $3" "$W/out"
    ok $? "$1 = $2 of the language model is refused"
}
refused_text hidden_act '"gelu"' "'gelu' is not supported; it must be silu"
refused_text attention_bias true 'must be false, is true'
refused_text mlp_bias true 'must be false, is true'

# The published size: names and shapes of all tensors, none of their values.
mkdir "$W/full" && cp $G/base/checkpoint/pretrained_model/policy* "$W/full" &&
    python3 - $G "$W/full" <<'EOF'
import json, os, struct, sys
golden, folder = sys.argv[1:]
header, offset = {}, 0
for name, (dtype, shape) in json.load(open(golden + "/tensor_names_smolvla_base.json")).items():
    size = 2 if dtype == "BF16" else 4
    for n in shape:
        size *= n
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
    offset += size
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(folder + "/model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.truncate(8 + len(text) + offset)
config = json.load(open(golden + "/base/checkpoint/pretrained_model/config.json"))
config.update(chunk_size=50, max_state_dim=32, max_action_dim=32, resize_imgs_with_padding=[512, 512],
              num_vlm_layers=16, vlm_model_name="owner/model")
json.dump(config, open(folder + "/config.json", "w"))
os.mkdir(folder + "/model")
json.dump({"scale_factor": 4,
           "vision_config": {"hidden_size": 768, "num_attention_heads": 12, "image_size": 512, "patch_size": 16},
           "text_config": {"hidden_size": 960, "intermediate_size": 2560, "num_hidden_layers": 32, "vocab_size": 49280,
                           "num_attention_heads": 15, "num_key_value_heads": 5, "head_dim": 64}},
          open(folder + "/model/config.json", "w"))
EOF
"$T" inspect --format json "$W/full" >"$W/out" 2>"$W/err" &&
    grep -q '"parameters":450046176,"missing":\[\],"unexpected":\[\],"mismatched":\[\]' "$W/out"
ok $? "all tensors of the published size are read, and no others expected"

python3 tests/smolvla_pipeline.py $G/base smolvla_so100.lua observation.images.top observation.images.wrist \
    >"$W/base.lua"
PYTHONDONTWRITEBYTECODE=1 python3 - "$T" "$W" $G/base <<'EOF' 2>"$W/err"
import subprocess, sys
sys.path.insert(0, "tests")
from serve_client import Array, Socket
from smolvla_pipeline import tensor
program, folder, case = sys.argv[1:]
server = subprocess.Popen([program, "serve", folder + "/base.lua", "--late-ok", "--root", ".", "--weights",
                           case + "/checkpoint/pretrained_model", "--device", "cpu", "--port", "0", "--host",
                           "127.0.0.1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    client = Socket(int(server.stdout.readline().split("ws://")[1].split()[0].split(":")[-1]), timeout=60)
    client.reply()
    request = {"task": "pick up the red cube"}
    for name, kind in ("image.observation.images.top", "|u1"), ("observation.state", "<f4"):
        shape, data = tensor(case + "/inputs.safetensors", name)
        request[name.removeprefix("image.")] = Array(kind, shape, data)
    client.send(request)
    actions = client.reply()["actions"]
    assert list(actions.shape) == [10, 6], actions.shape
finally:
    server.terminate()
    server.wait()
EOF
ok $? "a server answers an observation, with one of its cameras"

for how in "" --interpret; do
    "$T" run pipelines/smolvla_so100.lua --random-weights 1 --size tiny --random-inputs 1 -n 5 --format json \
        --device cpu $how 2>"$W/err" | grep -o '"actions":{[^}]*}' >"$W/actions$how"
done
[ "$(wc -l <"$W/actions")" -eq 5 ] && cmp -s "$W/actions" "$W/actions--interpret"
ok $? "compiled as interpreted"
echo "1..$n"
exit $failed

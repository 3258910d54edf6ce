#!/bin/sh
# groot.t - GR00T N1.5 from a folder as LeRobot saves it: the golden cases, the folder and its written pipeline, the order
# of cameras, and what is wrong with a folder. usage: tests/groot.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
G=tests/golden/groot
for dtype in f32 bf16; do
    "$T" verify --format text --dtype $dtype $G >"$W/out" 2>"$W/err"
    status=$?
    grep -v '^ok' "$W/out" >"$W/err"
    ok $status "golden cases in $dtype"
done
cp -r $G/n15_tiny_lerobot/checkpoint "$W/folder" && chmod -R u+w "$W/folder"
F=$W/folder

# run PIPELINE: actions of two random observations, in $W/out.
run() {
    "$T" run "$1" --root . --tokenizer $G/prepost/eagle_tiny --random-inputs 3 -n 2 --threads 1 --format json 2>"$W/err" |
        sed 's/.*"actions"/"actions"/; s/\]\].*/]]/' >"$W/out"
    [ "$(grep -c '^"actions":{' "$W/out")" = 2 ]
}
run "$F" && cp "$W/out" "$W/of_folder" && "$T" init "$F" >"$W/written.lua" && run "$W/written.lua" &&
    cmp -s "$W/out" "$W/of_folder"
ok $? "a folder and its written pipeline give equal bytes"

# Cameras stand in the order of their names under LeRobot, whatever the order of the file.
sed -i '0,/cam0/s/cam0/zenith/' "$F/config.json"
"$T" init "$F" 2>"$W/err" | sed -n 's/^      { input = "\([^"]*\)".*/\1/p' >"$W/out"
[ "$(tr '\n' ' ' <"$W/out")" = "observation.images.cam1 observation.images.zenith " ]
ok $? "cameras are in the order of their names"

# refused WORDS FILE SED: a folder that is edited so is refused with these words.
refused() {
    rm -rf "$W/bad" && cp -r $G/n15_tiny_lerobot/checkpoint "$W/bad" && chmod -R u+w "$W/bad"
    sed -i "$3" "$W/bad/$2"
    "$T" init "$W/bad" >"$W/out" 2>"$W/err"
    [ $? -ne 0 ] && grep -q -e "$1" "$W/err"
    ok $? "refused: $1"
}
before=policy_preprocessor.json after=policy_postprocessor.json
refused 'action_decode_transform: is of GR00T N1.7' config.json 's/"lora_rank": 0/"action_decode_transform": "auto"/'
refused 'model_params_fp32: is of GR00T N1.7' config.json 's/"lora_rank": 0/"model_params_fp32": true/'
refused 'lora_rank: must be 0, is 8' config.json 's/"lora_rank": 0/"lora_rank": 8/'
refused 'lora_rank: must be 0, is x' config.json 's/"lora_rank": 0/"lora_rank": "x"/'
refused 'env_action_dim: is 7, but the action of config.json has 6' $after 's/"env_action_dim": 6/"env_action_dim": 7/'
refused 'formalize_language: is not supported' $before 's/"formalize_language": false/"formalize_language": true/'
refused "embodiment_mapping: 'new_embodiment' must have its published number, 31" $before 's/: 31/: 30/'
refused "step_9.safetensors" $after 's/"state_file": ".*"/"state_file": "step_9.safetensors"/'
refused 'must have 6 numbers action.min' $after '/"state_file"/d; s/^      },$/      }/'
refused "step 'shear_processor' is not known" $before 's/groot_eagle_collate_v3/shear_processor/'
# torn STATUS WORDS CASE PYTHON: a copy of a case whose tensors t are edited so is run, or refused with these words.
for python in /usr/bin/python3 python3; do "$python" -c "" 2>/dev/null && break; done
torn() {
    rm -rf "$W/bad" && cp -r "$G/$3" "$W/bad" && chmod -R u+w "$W/bad"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests "$python" - "$W/bad/checkpoint/model.safetensors" "$4" <<'END'
import sys
from every_tensor import read, write
file, edit = sys.argv[1:]
t = read(file)
exec(edit)
write(file, t)
END
    "$T" verify --format text "$W/bad" >"$W/out" 2>&1
    [ $? -eq "$1" ] && grep -q -e "$2" "$W/out" && ! grep -q '\.lua' "$W/out"
    ok $? "$3: $2"
}
five=backbone.eagle_model.language_model.model.layers.0.self_attn.q_norm.weight
six=backbone.model.language_model.model.layers.0.self_attn.q_norm.weight
for one in n15_tiny:$five n16_tiny:$six; do
    case=${one%:*} name=${one#*:}
    torn 1 "lacks tensor '$name' \[12\]" $case "del t['$name']"
    torn 1 "'$name' must be \[12\], is \[11\]" $case "d = t['$name']; t['$name'] = (d[0], [11], d[2][:22])"
    torn 1 "'$name' element 0 is NaN" $case "d = t['$name']; t['$name'] = (d[0], d[1], b'\xc0\x7f' + d[2][2:])"
    torn 1 "does not read tensor 'action_head.more'" $case "t['action_head.more'] = t['$name']"
    torn 1 "action_encoder.W2.W' must be \[" $case "d = t['action_head.action_encoder.W2.W']; t['action_head.action_encoder.W2.W'] = (d[0], [d[1][0], d[1][2], d[1][1]], d[2])"
done
torn 1 "lacks tensor 'action_head.future_tokens.weight'" n15_tiny 'del t["action_head.future_tokens.weight"]'
torn 0 ' 0 not ok' n16_tiny 't["action_head.mask_token"] = ("BF16", [1, 1, 24], bytes(48))'
echo "1..$n"
exit $failed

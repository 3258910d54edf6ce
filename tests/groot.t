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
refused 'formalize_language: is not supported' $before 's/"formalize_language": false/"formalize_language": true/'
refused "embodiment_mapping: 'new_embodiment' must have its published number, 31" $before 's/: 31/: 30/'
refused "step_9.safetensors" $after 's/"state_file": ".*"/"state_file": "step_9.safetensors"/'
refused 'must have 6 numbers action.min' $after '/"state_file"/d; s/^      },$/      }/'
refused "step 'shear_processor' is not known" $before 's/groot_eagle_collate_v3/shear_processor/'
echo "1..$n"
exit $failed

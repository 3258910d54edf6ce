#!/bin/sh
# weightless.t - folders of policies without their weights, with made-up ones. usage: tests/weightless.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
C=$root/pipelines/checkpoints G=$root/tests/golden

tectum() { timeout 120 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null; }
says() { cat "$W/out" "$W/err" | grep -q -- "$1"; ok $? "says $1"; }
plan() { grep -o "device plan.*" "$W/out"; }

# What of a folder is no tensor, as $W/NAME.
strip() {
    cp -r "$1" "$W/$2" && find "$W/$2" -name 'model*.safetensors' -exec rm {} +
}

# Sizes are those that the whole folder has, and a folder with its weights has them, too.
for case in smolvla:$C/metaworld_smolvla smolvla_vlm:$G/smolvla/base/checkpoint \
    pi05:$G/pi/pi05_odd_lerobot/checkpoint pi0:$G/pi/pi0_tiny_lerobot/checkpoint; do
    name=${case%%:*} folder=${case#*:}
    strip "$folder" "$name"
    tectum check "$folder"; plan >"$W/whole"
    tectum check "$W/$name" --random-weights 1; ok $? "$name: check"
    plan >"$W/bare"
    [ -s "$W/whole" ] && cmp -s "$W/whole" "$W/bare"; ok $? "$name: the bytes of the whole folder"
    tectum check "$folder" --random-weights 1; plan | cmp -s - "$W/whole"; ok $? "$name: with its weights, too"
done
tectum check "$C/metaworld_act"; plan >"$W/whole"
tectum check "$C/metaworld_act" --random-weights 1; plan | cmp -s - "$W/whole"; ok $? "act: sizes of tensors that are there"

# Neither are weights read that were only half copied, or are none.
for case in cut:$C/metaworld_smolvla none:$C/metaworld_smolvla cut:$G/pi/pi05_odd_lerobot/checkpoint; do
    folder=${case#*:}
    rm -rf "$W/damaged" && cp -r "$folder" "$W/damaged"
    find "$W/damaged" -name 'model*.safetensors' | while read -r file; do
        [ "${case%%:*}" = none ] && echo "version https://git-lfs.github.com/spec/v1" >"$file"
        [ "${case%%:*}" = cut ] && head -c 5000 "$file" >"$W/part" && mv "$W/part" "$file"
    done
    tectum check "$folder"; plan >"$W/whole"
    tectum check "$W/damaged" --random-weights 1; plan | cmp -s - "$W/whole"; ok $? "weights ${case%%:*}: sizes of the whole folder"
    tectum run "$W/damaged" --random-weights 1 --random-inputs 1 -n 1; ok $? "weights ${case%%:*}: run"
    tectum check "$W/damaged" && tectum run "$W/damaged" --random-inputs 1 -n 1
    [ $? -ne 0 ] && says "safetensors"
done

# Every verb, and what init writes.
strip "$C/metaworld_act" act
strip "$G/groot/n15_tiny/checkpoint" n15
strip "$G/groot/n15_tiny_lerobot/checkpoint" n15_lerobot
for name in act smolvla pi05 n15_lerobot n15; do
    tag=; [ $name = n15 ] && tag="--embodiment gr1"
    # shellcheck disable=SC2086 # of no word or two
    set -- "$W/$name" $tag --random-weights 1
    tectum run "$@" --random-inputs 1 -n 1; ok $? "$name: run"
    cp "$W/out" "$W/first"
    tectum init "$@"; ok $? "$name: init"
    cp "$W/out" "$W/$name.lua"
    tectum run "$W/$name.lua" --random-weights 1 --random-inputs 1 -n 1; ok $? "$name: what init wrote"
    sed 's/age.*//' "$W/first" >"$W/a"; sed 's/age.*//' "$W/out" | cmp -s - "$W/a"; ok $? "$name: the same actions"
done
tectum bench "$W/act" --random-weights 1 -n 2; ok $? "bench"
tectum run "$W/smolvla" --random-weights 1 --size tiny --random-inputs 1 -n 1; ok $? "cameras of a folder, a tiny model"
tectum run "$W/act" --random-weights 1 --size tiny --random-inputs 1 -n 1; [ $? -ne 0 ]; ok $? "not of ACT"
says "leave out --size"

# Statistics that are missing are said, and nothing is normalised.
for name in act smolvla pi05 n15_lerobot; do
    find "$W/$name" -name 'policy_*.safetensors' -exec rm {} +
    tectum check "$W/$name" --random-weights 1; ok $? "$name without statistics: check"
    says "W116.*policy_postprocessor_step_0.*weights are random, and what its statistics are for is not normalised"
    says "policy_postprocessor.json:[0-9]*:[0-9]*$"
    tectum run "$W/$name" --random-weights 1 --random-inputs 1 -n 1; ok $? "$name without statistics: run"
done

# Without the option a folder without weights is refused, and the option is said.
for verb in check run init; do
    tectum $verb "$W/act"; [ $? -ne 0 ]; ok $? "$verb without weights"
    says "holds neither model.safetensors nor model.safetensors.index.json; --random-weights SEED makes some up"
done
tectum check "$G/pi/pi05_tiny/checkpoint" --random-weights 1; [ $? -ne 0 ]; ok $? "a folder without a robot"
says "does not describe its robot"
echo '{"weight_map": {"a": "model-1.safetensors"}}' >"$W/pi0/pretrained_model/model.safetensors.index.json"
tectum check "$W/pi0" --random-weights 1; ok $? "an index without its shards"

# Without a tokenizer a text decides nothing, which is told once.
for text in press lift; do
    tectum run "$root/pipelines/demo_metaworld.lua" --random-weights 1 --size tiny --random-inputs 1 \
        --input "prompt=$text" --threads 1 -n 3; ok $? "a text without a tokenizer"
    [ "$(grep -c 'prompt: there is no tokenizer' "$W/err")" -eq 1 ]; ok $? "a text without a tokenizer is told once"
    grep -o '\[.*\]' "$W/out" >"$W/$text.actions"
done
[ -s "$W/press.actions" ] && cmp -s "$W/press.actions" "$W/lift.actions"; ok $? "and any gives the same actions"
tectum run "$root/pipelines/demo_metaworld.lua" --random-weights 1 --size tiny --random-inputs 1 -n 1
grep -q 'no tokenizer' "$W/err"; [ $? -eq 1 ]; ok $? "who gives no text is told nothing"

# An adapter's folder says all that its base's would.
strip "$C/metaworld_smolvla" adapter
echo '{"base_model_name_or_path": "owner/nowhere"}' >"$W/adapter/adapter_config.json"
sed -i 's/"use_peft": false/"use_peft": true/' "$W/adapter/config.json"
HF_HUB_CACHE=$W tectum check "$W/adapter" --random-weights 1; ok $? "an adapter without its base"
plan >"$W/bare"
tectum check "$C/metaworld_smolvla"; plan | cmp -s - "$W/bare"; ok $? "an adapter without its base: the bytes of the whole folder"

# The published language model is known; another one must be there.
sed -i 's/"vlm_model_name": .*/"vlm_model_name": "HuggingFaceTB\/SmolVLM2-500M-Video-Instruct",/' \
    "$W/smolvla_vlm/pretrained_model/config.json"
sed -i '/"resize_imgs_with_padding"/,/]/s/32/512/' "$W/smolvla_vlm/pretrained_model/config.json"
HF_HUB_CACHE=$W tectum check "$W/smolvla_vlm" --random-weights 1; ok $? "SmolVLM2 without its files"
sed -i 's/"vlm_model_name": .*/"vlm_model_name": "owner\/another",/' "$W/smolvla_vlm/pretrained_model/config.json"
HF_HUB_CACHE=$W tectum check "$W/smolvla_vlm" --random-weights 1; [ $? -ne 0 ]; ok $? "another without its files"
says "names the model 'owner/another', whose config.json is not there"
echo "1..$n"
exit $failed

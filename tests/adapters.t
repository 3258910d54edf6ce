#!/bin/sh
# adapters.t - a LoRA adapter gives the bytes that the merged checkpoint gives: beside its base, in the cache of
# downloads, by option, by a field of the pipeline; and what is said where its base is not found.
# usage: tests/adapters.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
G=tests/golden/smolvla/base
mkdir -p "$W/arm" "$W/merged" "$W/empty" && export HF_HUB_CACHE="$W/empty"
cp $G/checkpoint/pretrained_model/* "$W/arm" && cp -r $G/checkpoint/vlm "$W/vlm" && chmod -R u+w "$W" && cp "$W"/arm/* "$W/merged"
python3 tests/adapters.py $G/checkpoint/pretrained_model/model.safetensors "$W/lora" "$W/merged/model.safetensors" owner/arm || exit 1
mkdir "$W/saved" && cp "$W"/lora/* "$W/saved" && cp "$W"/arm/*.json "$W"/arm/policy*.safetensors "$W/saved" &&
    sed -i 's/"use_peft": false/"use_peft": true/' "$W/saved/config.json"

# run NAME OPTION... : two frames of the folder's own robot; the actions are in $W/NAME.txt.
run() {
    name=$1
    shift
    "$T" run "$@" --device cpu --tier ref --threads 1 --random-inputs 1 -n 2 --seed 3 --format json >"$W/out" 2>"$W/err" &&
        sed 's/.*"actions"/"actions"/; s/"source".*//; s/"plan".*//; s/"text".*//' "$W/out" >"$W/$name.txt"
}
for dtype in f32 bf16; do
    run merged "$W/merged" --dtype $dtype && run plain "$W/arm" --dtype $dtype && ! cmp -s "$W/merged.txt" "$W/plain.txt"
    ok $? "$dtype: the merged checkpoint differs from its base"
    run option "$W/arm" --adapter "$W/lora" --dtype $dtype && cmp "$W/merged.txt" "$W/option.txt" >>"$W/err" 2>&1
    ok $? "$dtype: base and --adapter give the bytes of the merged checkpoint"
done
run saved "$W/saved" --dtype bf16 && cmp "$W/merged.txt" "$W/saved.txt"
ok $? "so does a folder that LeRobot saved, its base beside it"
cp -r "$W/saved" "$W/pathed" && sed -i "s|\"owner/arm\"|\"$W/arm\"|" "$W/pathed/adapter_config.json" && mkdir "$W/other" && mv "$W/pathed" "$W/other" &&
    run pathed "$W/other/pathed" --dtype bf16 && cmp "$W/merged.txt" "$W/pathed.txt"
ok $? "so does one whose base is named by its path"
"$T" init "$W/arm" >"$W/arm.lua" && sed "s|weights = \"[^\"]*\"|&, adapter = \"$W/lora\"|" "$W/arm.lua" >"$W/field.lua"
run field "$W/field.lua" --dtype bf16 && cmp "$W/merged.txt" "$W/field.txt"
ok $? "and a pipeline whose model has an adapter"
sed 's|weights = "[^"]*"|&, quantize = "int8", quantize_head = "int8"|' "$W/arm.lua" >"$W/int8.lua"
run int8 "$W/int8.lua" --adapter "$W/lora" && run eight "$W/int8.lua" --weights "$W/merged" && cmp "$W/int8.txt" "$W/eight.txt" &&
    ! cmp -s "$W/merged.txt" "$W/eight.txt"
ok $? "8-bit weights are rounded after it was merged"
sed "s|$W/lora|$W/none|" "$W/field.lua" >"$W/none.lua"
"$T" check "$W/none.lua" >"$W/out" 2>&1
[ $? -eq 1 ] && grep -q "none.lua:[0-9]" "$W/out" && grep -q "adapter: .*there is no such file or folder" "$W/out"
ok $? "an adapter that is not there is an error at its line"

mkdir -p "$W/away" "$W/hub/models--owner--arm/refs" "$W/hub/models--owner--arm/snapshots" && cp -r "$W/saved" "$W/away/saved"
printf abc >"$W/hub/models--owner--arm/refs/main" && mv "$W/arm" "$W/hub/models--owner--arm/snapshots/abc" && mv "$W/vlm" "$W/away/vlm"
run nowhere "$W/away/saved" --dtype bf16
[ $? -ne 0 ] && grep -q "this is an adapter of 'owner/arm', which is no folder here.*give the base with --weights" "$W/err"
ok $? "an adapter without its base says how to name it"
export HF_HUB_CACHE="$W/hub"
run hub "$W/away/saved" --dtype bf16 && cmp "$W/merged.txt" "$W/hub.txt"
ok $? "its base may be in the cache of downloads"
"$T" inspect "$W/away/saved" --format json >"$W/out" && python3 - "$W/out" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["layout"] == "lerobot" and report["model"] == "smolvla" and not report["missing"], report
assert report["adapter"]["changed"] == 22 and report["adapter"]["replaced"] == 2 and report["adapter"]["rank"] == 4, report
END
ok $? "inspect says what it changes"
"$T" run "$W/away/saved" --adapter "$W/lora" -n 1 --random-inputs 1 >"$W/out" 2>"$W/err"
[ $? -ne 0 ] && grep -q "is an adapter itself, and so is" "$W/err"
ok $? "an adapter of an adapter is refused"
"$T" run "$W/merged" --adapter "$W/lora" --random-weights 1 >"$W/out" 2>"$W/err"
[ $? -eq 2 ] && grep -q "exclude each other" "$W/err"
ok $? "random weights have no adapter"
"$T" verify --adapter "$W/lora" $G >"$W/out" 2>"$W/err"
[ $? -eq 1 ] && grep -q '"ok": *false' "$W/out"
ok $? "a golden case with an adapter is another model"
echo "1..$n"
exit $failed

#!/bin/sh
# check_encoder.t - `tectum check` opens the sentence encoder of a memory as a run does: what is wrong with its folder
# is told at the field of the pipeline's file that names it.  usage: tests/check_encoder.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
E=tests/golden/encoders/minilm_tiny/checkpoint

# One line of the pipeline names the encoder: 5, its value from column 32 on.
pipeline() {
    cat >"$W/p.lua" <<END
return extend("demo_memory.lua", {
  name = "encoded",
  resources = {
    kv.segments { name = "mem", store = "$W/store",
                  encoder    = "$1" },
  },
})
END
}
copy() {
    rm -rf "$W/encoder"
    cp -RL $E "$W/encoder"
    chmod -R u+w "$W/encoder"
    pipeline "$W/encoder"
}
# wrong TEXT PATTERN: check finds it at the field, and a run ends with the same words.
wrong() {
    "$T" check "$W/p.lua" >"$W/out" 2>"$W/err" </dev/null
    code=$?
    check "$1: check" test $code -eq 1
    check "$1: at the field" grep -q "^error\[E011\].*memory 'mem': .*$2" "$W/out"
    check "$1: its line" grep -q "p.lua:5:32" "$W/out"
    "$T" run "$W/p.lua" --threads 1 --input goal=find:fork >"$W/out" 2>"$W/err" </dev/null
    check "$1: a run says the same there" grep -q "p.lua:5: memory 'mem': .*$2" "$W/err"
}

copy
"$T" check "$W/p.lua" >"$W/out" 2>"$W/err" </dev/null
check "an encoder that is right" test $? -eq 0 -a ! -s "$W/err"
pipeline "$W/none"
wrong "a folder that is not there" "encoder: $W/none: "
pipeline "$root/pipelines/checkpoints/planner"
wrong "a checkpoint of another kind" "checkpoints/planner/modules.json: "
pipeline "$root/pipelines/demo_memory.lua"
wrong "a file" "demo_memory.lua/modules.json: "
copy
sed -i 's/"word_embedding_dimension": 64/"word_embedding_dimension": 63/' "$W/encoder/1_Pooling/config.json"
wrong "a pooling of another width" "modules.json: the pooling is of 63 numbers, the model makes 64"
copy
sed -i 's/"pooling_mode_cls_token": false/"pooling_mode_cls_token": true/' "$W/encoder/1_Pooling/config.json"
wrong "two poolings" "1_Pooling/config.json: .*second pooling"
copy
sed -i 's/"hidden_act": "gelu"/"hidden_act": "swish2"/' "$W/encoder/config.json"
wrong "a configuration that is refused" "encoder/config.json.*swish2"
copy
sed -i 's/"num_attention_heads": 4/"num_attention_heads": 5/' "$W/encoder/config.json"
wrong "heads that do not divide its width" "num_attention_heads"
copy
head -c 300000 "$W/encoder/model.safetensors" >"$W/short" && mv "$W/short" "$W/encoder/model.safetensors"
wrong "tensors that are cut short" "model.safetensors"
copy
rm "$W/encoder/tokenizer.json" "$W/encoder/vocab.txt"
wrong "no tokenizer" "tokenizer"
copy
"$T" check "$root/pipelines/demo_memory.lua" --set resources.mem.encoder="$W/none" >"$W/out" 2>"$W/err" </dev/null
check "--set: exit 1" test $? -eq 1
check "it is told there" grep -q "^error\[E011\].*encoder: $W/none" "$W/out"
"$T" check --format json "$root/pipelines/demo_memory.lua" --set resources.mem.encoder="$W/none" >"$W/out" 2>&1 </dev/null
check "JSON has its place" grep -q '"file": *"--set".*"code": *"E011"' "$W/out"
echo "1..$n"
exit $failed

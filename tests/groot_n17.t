#!/bin/sh
# groot_n17.t - GR00T N1.7: the cases that LeRobot's own code made (tests/fixtures/groot), every tensor of them, and what
# is wrong with a checkpoint. usage: tests/groot_n17.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
G=tests/fixtures/groot
for dtype in f32 bf16; do
    for case in tiny odd options unnormed; do
        "$T" verify --format text --dtype $dtype $G/n17_$case >"$W/out" 2>"$W/err"
        status=$?
        grep -v '^ok' "$W/out" >"$W/err"
        ok $status "n17_$case in $dtype"
    done
done

# refused WORDS PYTHON: a copy of n17_tiny whose tensors t or configurations c and v are edited so is refused with these
# words.
for python in /usr/bin/python3 python3; do "$python" -c "" 2>/dev/null && break; done
refused() {
    rm -rf "$W/bad" && cp -r $G/n17_tiny "$W/bad" && chmod -R u+w "$W/bad"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests "$python" - "$W/bad/checkpoint" "$2" <<'EOF'
import json, sys
from every_tensor import read, write
folder, edit = sys.argv[1:]
files = [folder + "/config.json", folder + "/vlm/config.json"]
t, (c, v) = read(folder + "/model.safetensors"), [json.load(open(f)) for f in files]
exec(edit)
write(folder + "/model.safetensors", t)
for f, x in zip(files, (c, v)):
    json.dump(x, open(f, "w"))
EOF
    "$T" verify --format text "$W/bad" >"$W/out" 2>&1
    [ $? -ne 0 ] && grep -q -e "$1" "$W/out"
    ok $? "refused: $1"
}
refused "visual.pos_embed.weight' must be \[25, 24\], is \[24, 24\]" 'd = t.pop("backbone.model.model.visual.pos_embed.weight"); t["backbone.model.model.visual.pos_embed.weight"] = (d[0], [24, 24], d[2][:1152])'
refused "visual.patch_embed.proj.weight' must be \[24, 3, 2, 4, 4\], is \[24, 6, 4, 4\]" 'd = t.pop("backbone.model.model.visual.patch_embed.proj.weight"); t["backbone.model.model.visual.patch_embed.proj.weight"] = (d[0], [24, 6, 4, 4], d[2])'
refused "deepstack_merger_list.1.norm.bias" 'del t["backbone.model.model.visual.deepstack_merger_list.1.norm.bias"]'
refused "deepstack_merger_list.2.norm.bias" 't["backbone.model.model.visual.deepstack_merger_list.2.norm.bias"] = t["backbone.model.model.visual.deepstack_merger_list.1.norm.bias"]'
refused "q_norm.weight' element 0 is NaN" 'd = t["backbone.model.model.language_model.layers.0.self_attn.q_norm.weight"]; t["backbone.model.model.language_model.layers.0.self_attn.q_norm.weight"] = (d[0], d[1], b"\xc0\x7f" + d[2][2:])'
refused "patch_embed.proj.weight' element 2303 is NaN" 'd = t["backbone.model.model.visual.patch_embed.proj.weight"]; t["backbone.model.model.visual.patch_embed.proj.weight"] = (d[0], d[1], d[2][:-2] + b"\xc0\x7f")'
refused 'sections of 5 pairs; a head of 12 has 6' 'v["text_config"]["rope_parameters"]["mrope_section"] = [2, 2, 1]'
refused 'mrope_interleaved: must be true' 'v["text_config"]["rope_parameters"]["mrope_interleaved"] = False'
refused 'config.json of vlm: text_config.rope_parameters.rope_type: yarn is not supported' 'v["text_config"]["rope_parameters"]["rope_type"] = "yarn"'
refused 'num_position_embeddings: must be a square, is 24' 'v["vision_config"]["num_position_embeddings"] = 24'
refused "out_hidden_size: 24 is not the text's 32" 'v["vision_config"]["out_hidden_size"] = 24'
refused 'deepstack_visual_indexes: must be whole numbers that rise' 'v["vision_config"]["deepstack_visual_indexes"] = [2, 0]'
refused 'keeps: layer 2 must be a number, 1 .. 2' 'v["vision_config"]["deepstack_visual_indexes"] = [0, 3]'
refused 'returns rows for 2 layers; the text has 2' 'c["select_layer"] = 2'
refused 'hidden_act: must be silu, is .gelu' 'v["text_config"]["hidden_act"] = "gelu"'
refused 'use_sliding_window: is not supported' 'v["text_config"]["use_sliding_window"] = True'
refused 'activation_fn: must be gelu-approximate, is .geglu' 'c["diffusion_model_cfg"]["activation_fn"] = "geglu"'
refused 'vision_config: must be an object, is 7' 'v["vision_config"] = 7'
refused 'rope_parameters: must be an object, is .yarn' 'v["text_config"]["rope_parameters"] = "yarn"'
refused 'image_token_id: must be a token below 96, is 96' 'v["image_token_id"] = 96'
refused 'must be a qwen3_vl, is qwen2_vl' 'v["model_type"] = "qwen2_vl"'
refused 'no-such-folder' 'c["model_name"] = "me/no-such-folder"'
refused 'state_history_length: must be 1' 'c["state_history_length"] = 2'
refused 'add_pos_embed: false is not supported' 'c["add_pos_embed"] = False'
refused 'backbone_embedding_dim: 33 is not' 'c["backbone_embedding_dim"] = 33'

# A pipeline of its own with random weights gives the same bytes on one thread and on two, in both dtypes.
for dtype in f32 bf16; do
    cat >"$W/own.lua" <<EOF
return pipeline {
  name = "own", schema = 1, model = model { arch = "groot_n17", weights = "none", dtype = "$dtype" },
  robot = { name = "arm", cameras = { { input = "cam", slot = "image" } }, resize = "resize-naive",
            state = { inputs = { { input = "state", size = 5 } } }, actions = { size = 5 }, norm = { mode = "none" },
            prompt = { input = "task", template = "qwen3_vl_words1", max_tokens = 30 }, rate_hz = 10, execute = 4 },
  frame = frame { period_ms = 800, clock = "external" },
  inputs = { image { name = "cam", h = 32, w = 32 }, tensor { name = "state", shape = { 5 } },
             text { name = "task", max_tokens = 40 } },
  resources = { kv.frame { name = "obs", tokens = 100 }, buffer { name = "chunk", shape = { 7, 8 } } },
  nodes = { prefill { name = "see", writes = "obs", reads = { "cam", "state", "task" } },
            action { name = "act", kv = "obs", steps = 4, out = "chunk" } } }
EOF
    for threads in 1 2; do
        "$T" run "$W/own.lua" --root . --random-weights 1 --size tiny --random-inputs 1 -n 2 --threads $threads \
            --format json 2>"$W/err" | sed 's/.*"actions"/"actions"/; s/\]\].*/]]/' >"$W/$threads"
    done
    [ "$(grep -c '^"actions":{' "$W/1")" = 2 ] && cmp -s "$W/1" "$W/2"
    ok $? "a pipeline of its own in $dtype gives the same bytes on one thread and on two"
done

echo "1..$n"
exit $failed

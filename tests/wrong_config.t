#!/bin/sh
# wrong_config.t - a folder whose config.json is wrong: the message shows the field. usage: tests/wrong_config.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do "$python" -c "" 2>/dev/null && break; done
PYTHONDONTWRITEBYTECODE=1 "$python" - "$T" "$W" <<'EOF'
import json, os, shutil, subprocess, sys

program, work = sys.argv[1:]
G = "tests/golden/"
folders = {"act": G + "act/odd/checkpoint/pretrained_model", "smolvla": G + "smolvla/base/checkpoint",
           "pi05": G + "pi/pi05_odd_lerobot/checkpoint/pretrained_model", "n15": G + "groot/n15_tiny/checkpoint"}
WHOLE, METADATA = "must be a whole number of 1 .. 2^20", "experiment_cfg/metadata.json:gr1"
# kind, field (of config.json, or FILE:FIELD), value, words: the field is shown in its file, and no file of the program
wrong = [
    ("act", "chunk_size", 0, WHOLE), ("act", "chunk_size", 3, "n_action_steps: 5 of a chunk of 3"),
    ("act", "chunk_size", 1 << 40, WHOLE), ("act", "n_action_steps", "7", "must be a whole number"),
    ("act", "n_action_steps", 0, "0 of a chunk of 9"), ("act", "n_heads", 7, "7 do not divide dim_model 60"),
    ("act", "vision_backbone", "vgg", "must be a ResNet"), ("act", "feedforward_activation", [1], "must be relu or gelu"),
    ("act", "temporal_ensemble_coeff", "x", "must be a number"), ("act", "input_features", {}, "has neither"),
    ("act", "output_features", {"action": {"type": "ACTION", "shape": [1 << 20]}}, "1 .. 1024"),
    ("smolvla", "chunk_size", 2, "n_action_steps: 4 of a chunk of 2"), ("smolvla", "max_state_dim", "8", WHOLE),
    ("smolvla", "resize_imgs_with_padding", ["a", "a"], "two equal numbers"),
    ("smolvla", "resize_imgs_with_padding", [32, 40], "two equal numbers"),
    ("smolvla", "expert_width_multiplier", -1, "even number, 4 .. 2^20"), ("smolvla", "num_expert_layers", 3, "do not divide"),
    ("smolvla", "num_steps", 1000000, "whole number of 1 .. 1000"), ("smolvla", "vlm_model_name", 7, "must be a name"),
    ("smolvla", "min_period", 0, "periods must rise"), ("smolvla", "max_period", 1e-4, "periods must rise"),
    ("smolvla", "empty_cameras", 1000000, "0 .. 64"), ("smolvla", "rtc_config", 5, "must be an object"),
    ("pi05", "chunk_size", 0, WHOLE), ("pi05", "num_inference_steps", "x", "whole number of 1 .. 1000"),
    ("pi05", "max_action_dim", 3, "is 3, but action_out_proj.weight has"), ("pi05", "geometry", {}, "must be an object with"),
    ("pi05", "image_resolution", [64, 64], "the model takes pictures of"), ("pi05", "n_obs_steps", 3, "of 3 steps"),
    ("n15", "action_horizon", 0, WHOLE), ("n15", "action_head_cfg.diffusion_model_cfg.num_layers", -1, WHOLE),
    ("n15", "action_head_cfg.diffusion_model_cfg", 5, "must be an object"), ("n15", "backbone_cfg", "x", "must be an object, is"),
    ("n15", "action_head_cfg", [1], "must be an object, is a list"), ("n15", "eagle_config", -1, "must be an object, is"),
    ("n15", "eagle_config.vision_config", "x", "must be an object"), ("n15", "eagle_config.text_config", [1], "must be an object"),
    ("n15", "eagle_config.use_pixel_shuffle", "x", "must be true or false"),
    ("n15", "action_head_cfg.vl_self_attention_cfg", "x", "must be an object, is"),
    ("n15", "eagle_config.image_token_index", -1, "must be a token below"),
    ("n15", "eagle_config.text_config.rope_theta", 0.5, "must be above 1"),
    ("n15", "eagle_config.text_config.num_key_value_heads", 3, "3 do not divide num_attention_heads 4"),
    ("n15", "eagle_config.text_config.head_dim", 13, "a head of 13 numbers cannot be rotated"),
    ("n15", "eagle_config.text_config.rms_norm_eps", 0, "must be above 0"),
    ("n15", "eagle_config.text_config.model_type", "llama", "must be qwen3"),
    ("n15", "eagle_config.text_config.num_hidden_layers", 2, "2 are fewer than the 3 of select_layer"),
    ("n15", "eagle_config.vision_config.num_channels", 4, "must be 3, is 4"),
    ("n15", "eagle_config.vision_config.image_size", 35, "35 is not force_image_size 28"),
    ("n15", "eagle_config.mlp_connector_layers", 3, "whole number of 1 .. 2"), ("n15", "eagle_config.select_layer", -2, "must be -1"),
    ("n15", "backbone_cfg.reproject_vision", True, "must be false"), ("n15", "action_dim", 10, "not that of action_head_cfg, 9"),
    ("n15", "action_head_cfg.max_action_dim", 10, "10 is not action_dim 9"),
    ("n15", "action_horizon", 7, "7 is not that of action_head_cfg, 6"), ("n15", "action_head_cfg.max_seq_len", 5, "a chunk's 6 rows"),
    ("n15", "action_head_cfg.add_pos_embed", False, "false is not supported"), ("n15", "action_head_cfg.use_vlln", "x", "true or false"),
    ("n15", "action_head_cfg.backbone_embedding_dim", 33, "33 is not 32"),
    ("n15", "action_head_cfg.diffusion_model_cfg.cross_attention_dim", 24, "24 is not 32"),
    ("n15", "action_head_cfg.diffusion_model_cfg.interleave_self_attention", 1, "true or false"),
    ("n15", "action_head_cfg.diffusion_model_cfg.attention_bias", False, "must be true"),
    ("n15", "action_head_cfg.diffusion_model_cfg.num_attention_heads", 4, "4 heads of 8 are not input_embedding_dim 24"),
    ("n15", "action_head_cfg.vl_self_attention_cfg.num_attention_heads", 3, "3 heads of 16 are not the 32 columns"),
    ("n15", METADATA, "x", "gr1: must be an object"), ("n15", METADATA + ".statistics", 5, "gr1.statistics: must be an object"),
    ("n15", METADATA + ".statistics.state.left_arm.min", [1], "left_arm.min: must be 4 numbers"),
    ("n15", METADATA + ".statistics.state.left_arm.max", [-9] * 4, "left_arm.min: -1.09038 of entry 1 exceeds the -9 of max"),
    ("n15", METADATA + ".statistics.action.left_arm.max", [9, 9, "x", 9], "action.left_arm.max: must be numbers"),
    ("n15", METADATA + ".modalities.state", 7, "gr1.modalities.state: must be an object"),
    ("n15", METADATA + ".modalities.state.left_arm", 7, "must have the length of a vector"),
]
failed = 0
for number, (kind, field, value, words) in enumerate(wrong, 1):
    folder = work + "/folder"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.system("cp -r %s/. %s && chmod -R u+w %s" % (folders[kind], folder, folder))
    root = folder + ("/pretrained_model" if os.path.isdir(folder + "/pretrained_model") else "")
    name, _, field = ("config.json:" + field if ":" not in field else field).partition(":")
    config = at = json.load(open("%s/%s" % (root, name)))
    *path, key = field.split(".")
    for part in path:
        at = at[part]
    at[key] = value
    with open("%s/%s" % (root, name), "w") as file:
        json.dump(config, file, indent=2)
    said = subprocess.run([program, "check", folder] + ["--embodiment", "gr1"] * (kind == "n15"), capture_output=True,
                          text=True)
    lines = (said.stdout + said.stderr).splitlines()
    shown = [line for line in lines if line.startswith("error[E011]: ") and words in line]
    place = [line for line in lines if line.strip().startswith("--> %s/%s:" % (root, name))]
    good = said.returncode != 0 and len(shown) == len(place) == 1 and not any(".lua" in line for line in lines)
    failed |= not good
    print("%s %d - %s: %s = %s" % ("ok" if good else "not ok", number, kind, field, json.dumps(value)[:40]))
    if not good:
        print("\n".join("# " + line[:300] for line in lines[:4]), file=sys.stderr)
# A text's folder is named to a pipeline. Folder, arch, field (of config.json, or FILE:FIELD), value, words.
T = "tests/golden/text/%s_tiny/checkpoint"
PIPELINE = """return extend("qwen_chat.lua", {
  model = model { arch = "%s" }, nodes = { prefill { name = "read", template = "bare" } },
})
"""
ROBOT = """return pipeline {
  name = "plain", schema = 1, model = model { arch = "groot_%s", embodiment = "new_embodiment" },
  robot = { name = "plain", resize = "none", cameras = { { slot = "front", input = "front" } },
            state = { inputs = { { input = "state", size = 4 } } }, actions = { size = 8, limits = false },
            norm = { mode = "none" }, prompt = { input = "text", template = "bare" } },
  frame = frame { period_ms = 1000, clock = "external" },
  inputs = { image { name = "front", h = 28, w = 28 }, tensor { name = "state", shape = { 4 } },
             text { name = "text", max_tokens = 40 } },
  resources = { kv.frame { name = "obs", tokens = 90 }, buffer { name = "chunk", shape = { 7, 8 } } },
  nodes = { prefill { name = "see", reads = { "front", "state", "text" }, writes = "obs" },
            action { name = "act", kv = "obs", out = "chunk" } },
}
"""
shutil.copy("pipelines/qwen_chat.lua", work)
texts = [
    ("qwen3", "head_dim", 33, "a head of 33 numbers cannot be rotated"), ("qwen3", "hidden_act", "gelu", "must be silu"),
    ("qwen3", "num_key_value_heads", 3, "3 do not divide num_attention_heads 4"), ("qwen3", "rms_norm_eps", 0, "above 0"),
    ("qwen3", "layer_types", "x", "a list of 3 kinds"), ("qwen3", "tie_word_embeddings", "x", "true or false"),
    ("qwen3", "layer_types", ["chunked_attention"] * 3, "'chunked_attention', of layer 0, is not supported"),
    ("qwen3", "use_sliding_window", 1, "true or false"), ("qwen3", "rope_parameters.rope_theta", -1, "above 1"),
    ("qwen3", "rope_parameters.rope_type", "yarn", "'yarn' is not supported"), ("qwen3", "vocab_size", 1e30, WHOLE + ", is 1e+30"),
    ("qwen3", "generation_config.json:eos_token_id", [1, 9999], "a token of 0 .. 383, is 9999"),
    ("llama3", "bos_token_id", "x", "a token of 0 .. 399"), ("llama3", "rope_parameters.high_freq_factor", 0.5, "above 1"),
    ("llama3", "rope_parameters.factor", None, "must be a number, is missing"), ("llama3", "mlp_bias", True, "true is not supported"),
    ("gemma2", "sliding_window", 0, "1 .. 1099511627776"), ("gemma2", "query_pre_attn_scalar", -4, "above 0"),
    ("gemma2", "use_bidirectional_attention", True, "true is not supported"),
    ("smolvlm", "image_token_id", 1000, "a token of 0 .. 383"), ("smolvlm", "vision_config.num_channels", 4, "must be 3"),
    ("gemma2", "attn_logit_softcapping", "x", "must be a number"), ("gemma2", "final_logit_softcapping", -1, "above 0"),
    ("smolvlm", "scale_factor", 3, "squares of 3 x 3"), ("smolvlm", "text_config", 7, "must be an object"), ("smolvlm", "text_config.model_type", "qwen2", "must be llama"),
    ("qwen3", "generation_config.json:eos_token_id", [1, None, 99999], "a token of 0 .. 383, is missing"),
    ("qwen3", "generation_config.json:eos_token_id", {"a": 3}, "must be a list, is an object"),
    ("qwen3", "generation_config.json:repetition_penalty", "x", "must be a number"),
    ("qwen3", "generation_config.json:repetition_penalty", -3, "above 1e-06 and below 1e+06, is -3"),
    ("qwen3", "rope_scaling", "x", "must be an object"), ("qwen3", "rope_parameters", [1], "must be an object, is a list"),
    ("qwen3", "quantization_config", 7, "must be an object"),
    ("smolvlm", "preprocessor_config.json:max_image_size", 7, "must be an object"),
    ("smolvlm", "preprocessor_config.json:max_image_size.longest_edge", 5, "1 patches of a side of 5"),
    ("gemma3", "sliding_window_pattern", 0, WHOLE), ("gemma3", "_sliding_window_pattern", "x", WHOLE),
    ("gemma3", "rope_parameters.sliding_attention.rope_theta", "x", "must be a number"),
    ("gemma3", "rope_local_base_freq", -1, "must be above 1 and below 1e+30, is -1"),
    ("openvla", "text_config", [3], "must be an object, is a list"), ("openvla", "timm_model_ids", 7, "must be a list"),
    ("openvla", "timm_model_args.0.depth", 1, "must be 2 or more"), ("openvla", "text_config.eos_token_id", "x", "a token of"),
    ("n16", "eagle_config", "x", "must be an object"), ("n16", "eagle_config.vision_config", [1], "must be an object"),
    ("n16", "eagle_config.vision_config.num_patches", 15, "must be a square"), ("n16", "add_pos_embed", False, "false is not"),
    ("n16", "eagle_config.vision_config.use_rope", True, "must be false"), ("n16", "eagle_config.downsample_ratio", 1, "must be 0.5"),
    ("n16", "eagle_config.mlp_connector_layers", 1, "must be 2, is 1"), ("n16", "model_name", "x", "is not supported"),
    ("n16", "backbone_embedding_dim", 33, "33 is not 32"), ("n16", "use_alternate_vl_dit", "x", "true or false"),
    ("n16", "diffusion_model_cfg.interleave_self_attention", False, "must be true where use_alternate_vl_dit is"),
    ("n16", "diffusion_model_cfg.norm_type", "layer_norm", "must be ada_norm"), ("n16", "max_seq_len", 6, "a chunk's 7 rows"),
    ("n16", "eagle_config.vision_config.layer_norm_eps", -1, "above 0"), ("n16", "action_horizon", "x", WHOLE),
    ("n17", "backbone_embedding_dim", 31, "31 is not 32"), ("n17", "use_vlln", 1, "true or false"),
    ("n17", "state_history_length", 2, "must be 1"), ("n17", "max_seq_len", 6, "a chunk's 7 rows"),
    ("n17", "diffusion_model_cfg", [1], "must be an object"), ("n17", "backbone_model_type", "eagle", "must be qwen"),
    ("n17", "vl_self_attention_cfg.num_attention_heads", 3, "3 heads of 16 are not the 32 columns"),
    ("n17", "vl_self_attention_cfg.norm_eps", 1e-6, "must be 1e-05"), ("n17", "attend_text_every_n_blocks", 0, WHOLE),
]
# A kind whose folder is another one, with what its config.json has in place.
based = {"gemma3": (T % "gemma2", {"model_type": "gemma3_text"}), "openvla": (G + "openvla/tiny/checkpoint", {}),
         "n16": (G + "groot/n16_tiny/checkpoint", {}), "n17": ("tests/fixtures/groot/n17_tiny/checkpoint", {})}
for number, (kind, field, value, words) in enumerate(texts, len(wrong) + 1):
    folder = work + "/folder"
    shutil.rmtree(folder, ignore_errors=True)
    like, changed = based.get(kind, (T % kind, {}))
    shutil.copytree(like, folder)
    os.system("chmod -R u+w " + folder)
    name, _, field = ("config.json:" + field if ":" not in field else field).partition(":")
    for file, change in (("config.json", changed.items()), (name, [(field, value)])):
        whole = json.load(open("%s/%s" % (folder, file)))
        for place, x in change:
            *path, key = place.split(".")
            at = whole
            for part in path:
                at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
            at[key] = x
        with open("%s/%s" % (folder, file), "w") as out:
            json.dump(whole, out)
    with open(work + "/text.lua", "w") as file:
        file.write((ROBOT if like.count("groot") else PIPELINE) % {"llama3": "llama"}.get(kind, kind))
    said = subprocess.run([program, "check", work + "/text.lua", "--weights", folder], capture_output=True, text=True)
    message = (said.stdout + said.stderr).strip()
    good = said.returncode != 0 and message.startswith("tectum check: %s/%s: %s: " % (folder, name, field)) and \
        words in message and ".lua" not in message
    failed |= not good
    print("%s %d - %s: %s = %s" % ("ok" if good else "not ok", number, kind, field, json.dumps(value)[:40]))
    if not good:
        print("# " + message[:300], file=sys.stderr)
print("1..%d" % (len(wrong) + len(texts)))
sys.exit(failed)
EOF

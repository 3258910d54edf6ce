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
WHOLE = "must be a whole number of 1 .. 2^20"
# kind, field, value, words: the field is shown in config.json, and no file of the program
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
    ("n15", "action_head_cfg.diffusion_model_cfg", 5, "must be an object"),
    ("n15", "eagle_config.image_token_index", -1, "must be a token below"),
    ("n15", "eagle_config.text_config.rope_theta", 0.5, "must be above 1"),
]
failed = 0
for number, (kind, field, value, words) in enumerate(wrong, 1):
    folder = work + "/folder"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.system("cp -r %s/. %s && chmod -R u+w %s" % (folders[kind], folder, folder))
    root = folder + ("/pretrained_model" if os.path.isdir(folder + "/pretrained_model") else "")
    config = at = json.load(open(root + "/config.json"))
    *path, key = field.split(".")
    for part in path:
        at = at[part]
    at[key] = value
    with open(root + "/config.json", "w") as file:
        json.dump(config, file, indent=2)
    said = subprocess.run([program, "check", folder] + ["--embodiment", "gr1"] * (kind == "n15"), capture_output=True,
                          text=True)
    lines = (said.stdout + said.stderr).splitlines()
    shown = [line for line in lines if line.startswith("error[E011]: ") and words in line]
    place = [line for line in lines if line.strip().startswith("--> %s/config.json:" % root)]
    good = said.returncode != 0 and len(shown) == len(place) == 1 and not any(".lua" in line for line in lines)
    failed |= not good
    print("%s %d - %s: %s = %s" % ("ok" if good else "not ok", number, kind, field, json.dumps(value)[:40]))
    if not good:
        print("\n".join("# " + line[:300] for line in lines[:4]), file=sys.stderr)
print("1..%d" % len(wrong))
sys.exit(failed)
EOF

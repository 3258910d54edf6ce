"""smolvla_model.py - SmolVLA of the released size (450 M, bf16) with random weights, as LeRobot saves it, and inputs.

usage: smolvla_model.py FOLDER TOKENIZER [VLA_SOURCE GGUF_PY]
TOKENIZER: a folder with the files of a tokenizer. FOLDER gets pretrained_model/ and vlm/, the inputs with the tokens of the task,
and, where vla.cpp's source is given, model.gguf by its own converter.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.smolvla.configuration_smolvla import SmolVLAConfig
from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy
from lerobot.policies.smolvla.processor_smolvla import make_smolvla_pre_post_processors
from safetensors.numpy import save_file

CAMERAS, STATE, SIZE, TASK = 3, 6, 512, "pick up the red cube and put it into the box"


def language_model(folder, tokenizer):
    """The files of SmolVLM2-500M without its weights."""
    shutil.copytree(tokenizer, folder, dirs_exist_ok=True)
    path = folder / "config.json"
    c = json.loads(path.read_text())
    c["scale_factor"], c["vocab_size"] = 4, 49280
    c["text_config"].update(head_dim=64, hidden_size=960, intermediate_size=2560, num_attention_heads=15, num_hidden_layers=32,
                            num_key_value_heads=5, vocab_size=49280)
    c["vision_config"].update(hidden_size=768, image_size=SIZE, intermediate_size=3072, num_attention_heads=12, num_hidden_layers=12,
                              patch_size=16, max_image_size={"longest_edge": SIZE})
    path.write_text(json.dumps(c, indent=1))


def make_config():
    inputs = {f"observation.images.camera{i + 1}": PolicyFeature(FeatureType.VISUAL, (3, SIZE, SIZE)) for i in range(CAMERAS)}
    inputs["observation.state"] = PolicyFeature(FeatureType.STATE, (STATE,))
    return SmolVLAConfig(input_features=inputs, output_features={"action": PolicyFeature(FeatureType.ACTION, (STATE,))}, device="cpu",
                         push_to_hub=False, vlm_model_name="vlm", load_vlm_weights=False, num_vlm_layers=16, expert_width_multiplier=0.75,
                         self_attn_every_n_layers=2)


def inputs(preprocessor):
    draw = np.random.default_rng(1)
    pictures = {f"picture{i}": draw.integers(0, 256, (SIZE, SIZE, 3), np.uint8) for i in range(CAMERAS)}
    state = draw.standard_normal(STATE).astype(np.float32)
    batch = preprocessor({"observation.state": torch.from_numpy(state), "task": TASK})
    tokens = batch["observation.language.tokens"][0].numpy().astype(np.int32)
    return {"state": state, "tokens": tokens, "noise": draw.standard_normal((50, 32)).astype(np.float32), **pictures}


def main():
    folder, tokenizer = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    source = [pathlib.Path(x).resolve() for x in sys.argv[3:5]]
    folder.mkdir(parents=True, exist_ok=True)
    language_model(folder / "vlm", tokenizer)
    os.chdir(folder)
    torch.manual_seed(0)
    config = make_config()
    policy = SmolVLAPolicy(config).to(torch.bfloat16)
    saved = folder / "pretrained_model"
    policy.save_pretrained(saved)
    stats = {k: {"mean": np.zeros(STATE, np.float32), "std": np.ones(STATE, np.float32)} for k in ("observation.state", "action")}
    processors = make_smolvla_pre_post_processors(config, stats)
    for p in processors:
        p.save_pretrained(saved)
    shutil.copytree(folder / "vlm", saved / "vlm", dirs_exist_ok=True)
    given = inputs(processors[0])
    np.savez(folder / "inputs.npz", **given)
    save_file({"noise": given["noise"][None]} | {k: v for k, v in given.items() if k.startswith("picture")},
              str(folder / "inputs.safetensors"))
    if source:
        subprocess.run([sys.executable, source[0] / "scripts" / "convert_smolvla_to_gguf.py", "--ckpt", saved, "--out", folder / "model.gguf"],
                       check=True, env={**os.environ, "PYTHONPATH": str(source[1])})


if __name__ == "__main__":
    main()

"""A folder as LeRobot 0.6 saves a SmolVLA, with the files of its language model in vlm/: save(...), normal(...)."""
import json
import pathlib

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_weights

from smolvla import in_float32
from vocabulary import FIRST, LAST

CAMERAS = ("corner", "wrist")
STATE, ACTION = "observation.state", "action"
NORM = {"VISUAL": "IDENTITY", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"}
EPS = 1e-8
DEVICE = {"registry_name": "device_processor", "config": {"device": "cpu", "float_dtype": None}}
BEFORE, AFTER = "policy_preprocessor_step_5_normalizer_processor", "policy_postprocessor_step_0_unnormalizer_processor"


def statistics(rows):
    """LeRobot's of one feature: rows [N,D]."""
    made = {"count": np.array([len(rows)]), "mean": rows.mean(0), "std": rows.std(0), "min": rows.min(0), "max": rows.max(0)}
    made |= {f"q{p:02d}": np.quantile(rows, p / 100, 0) for p in (1, 10, 50, 90, 99)}
    return {k: np.float32(v) for k, v in made.items()}


def normal(stats, key, rows):
    """MEAN_STD as LeRobot's processor computes it."""
    return (rows - stats[key]["mean"]) / (stats[key]["std"] + np.float32(EPS))


def restored(stats, rows):
    return rows * stats[ACTION]["std"] + stats[ACTION]["mean"]


def read_statistics(folder):
    stats = {}
    for name, value in load_file(pathlib.Path(folder) / f"{BEFORE}.safetensors").items():
        key, _, part = name.rpartition(".")
        stats.setdefault(key, {})[part] = value
    return stats


def features(c):
    seen = {f"observation.images.{n}": {"type": "VISUAL", "shape": [3, c.image, c.image]} for n in CAMERAS}
    return seen | {STATE: {"type": "STATE", "shape": [c.state_dim]}}, {ACTION: {"type": "ACTION", "shape": [c.action_dim]}}


def policy(c, vlm, execute):
    """config.json"""
    inputs, outputs = features(c)
    return {
        "type": "smolvla", "n_obs_steps": 1, "input_features": inputs, "output_features": outputs, "device": "cpu",
        "use_amp": False, "use_peft": False, "push_to_hub": False, "repo_id": None, "private": None, "tags": None, "license": None,
        "pretrained_path": None, "pretrained_revision": None, "chunk_size": c.horizon, "n_action_steps": execute,
        "normalization_mapping": NORM, "max_state_dim": c.state_dim, "max_action_dim": c.action_dim,
        "resize_imgs_with_padding": [c.image, c.image], "empty_cameras": 0, "adapt_to_pi_aloha": False,
        "use_delta_joint_actions_aloha": False, "tokenizer_max_length": 48, "num_steps": c.steps, "use_cache": True,
        "freeze_vision_encoder": True, "train_expert_only": True, "train_state_proj": True, "vlm_model_name": vlm,
        "load_vlm_weights": False, "add_image_special_tokens": False, "attention_mode": "cross_attn", "prefix_length": -1,
        "pad_language_to": "longest", "num_expert_layers": -1, "num_vlm_layers": c.depth,
        "self_attn_every_n_layers": c.self_every, "expert_width_multiplier": c.expert_share, "min_period": c.periods[0],
        "max_period": c.periods[1], "rtc_config": None, "compile_model": False, "compile_mode": "max-autotune"}


def processors(c, vlm):
    """policy_preprocessor.json, policy_postprocessor.json"""
    inputs, outputs = features(c)
    norm = {"eps": EPS, "norm_map": NORM}
    tokens = {"max_length": 48, "task_key": "task", "padding_side": "right", "padding": "longest", "truncation": True,
              "tokenizer_name": vlm}
    before = [{"registry_name": "rename_observations_processor", "config": {"rename_map": {}}},
              {"registry_name": "to_batch_processor", "config": {}}, {"registry_name": "smolvla_new_line_processor", "config": {}},
              {"registry_name": "tokenizer_processor", "config": tokens}, DEVICE,
              {"registry_name": "normalizer_processor", "config": {**norm, "features": inputs | outputs},
               "state_file": f"{BEFORE}.safetensors"}]
    after = [{"registry_name": "unnormalizer_processor", "config": {**norm, "features": outputs},
              "state_file": f"{AFTER}.safetensors"}, DEVICE]
    return {"policy_preprocessor": before, "policy_postprocessor": after}


def language_model(c, tokens):
    """Files of the model that vlm_model_name names: its sizes and its tokenizer, no weights."""
    fake, whole, end = LAST[1], LAST[0], LAST[3]
    named = {"fake_image_token": fake, "global_image_token": whole, "image_token": LAST[2], "end_of_utterance_token": end}
    longest = {"longest_edge": c.image}
    text = {"architectures": ["VLlama3ForCausalLM"], "head_dim": c.head_dim, "hidden_size": c.width, "intermediate_size": c.mlp,
            "is_llama_config": True, "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": c.heads,
            "num_hidden_layers": c.depth, "num_key_value_heads": c.kv_heads, "pad_token_id": 2, "pixel_shuffle_factor": c.squares,
            "qk_layer_norms": False, "rms_norm_eps": c.eps, "rope_interleaved": False, "rope_theta": 100000, "vocab_size": c.vocab}
    vision = {"hidden_size": c.vision_width, "image_size": c.image, "intermediate_size": c.vision_mlp,
              "model_type": "smolvlm_vision", "num_attention_heads": c.vision_heads, "num_hidden_layers": c.vision_depth,
              "patch_size": c.patch, "max_image_size": longest, "tie_word_embeddings": False, "use_base_siglip": False}
    image = next(t["id"] for t in tokens["added_tokens"] if t["content"] == LAST[2])
    return {
        "config": {"architectures": ["SmolVLMForConditionalGeneration"], "image_token_id": image, "model_type": "smolvlm",
                   "pad_token_id": 2, "scale_factor": c.squares, "text_config": text, "tie_word_embeddings": False,
                   "use_cache": False, "vision_config": vision, "vocab_size": c.vocab},
        "tokenizer": tokens,
        "tokenizer_config": {"bos_token": FIRST[1], "clean_up_tokenization_spaces": False, "eos_token": end, **named,
                             "extra_special_tokens": named, "model_max_length": 8192, "pad_token": FIRST[2],
                             "processor_class": "SmolVLMProcessor", "tokenizer_class": "PreTrainedTokenizerFast",
                             "truncation_side": "left", "unk_token": FIRST[0]},
        "processor_config": {"image_seq_len": (c.image // c.patch // c.squares) ** 2, "processor_class": "SmolVLMProcessor"},
        "preprocessor_config": {
            "do_convert_rgb": True, "do_image_splitting": True, "do_normalize": True, "do_pad": True, "do_rescale": True,
            "do_resize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "image_processor_type": "SmolVLMImageProcessor",
            "max_image_size": longest, "processor_class": "SmolVLMProcessor", "resample": 1, "rescale_factor": 1 / 255,
            "size": {"longest_edge": 4 * c.image}, "video_sampling": {"fps": 1, "max_frames": 64, "video_size": longest}}}


def save(folder, model, stats, tokens, vlm, execute, dtype=torch.float32):
    """The whole folder; weights in `dtype` but for those that LeRobot keeps in float32. vlm: the path that the files name."""
    folder, c = pathlib.Path(folder), model.c
    (folder / "vlm").mkdir(parents=True, exist_ok=True)
    kept = {k: torch.float32 if in_float32(k, c) else dtype for k in model.state_dict()}
    save_weights({k: v.detach().to(kept[k]).contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors")
    def write(path, value):
        path.write_text(json.dumps(value, indent=2) + "\n")
    write(folder / "config.json", policy(c, vlm, execute))
    for name, steps in processors(c, vlm).items():
        write(folder / f"{name}.json", {"name": name, "steps": steps})
    for name in (BEFORE, AFTER):
        save_file({f"{key}.{part}": v for key, parts in stats.items() for part, v in parts.items()}, folder / f"{name}.safetensors")
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)
    for name, value in language_model(c, tokens).items():
        write(folder / "vlm" / f"{name}.json", value)

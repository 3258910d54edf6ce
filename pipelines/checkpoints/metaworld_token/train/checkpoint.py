"""Checkpoints in OpenVLA's Hugging Face layout: config.json with the actions' statistics, preprocessor_config.json,
model.safetensors, tokenizer.model.

`timm_model_args` in config.json is this project's: upstream names a model of timm, which reduced sizes do not have.
"""
import json
import pathlib

import sentencepiece
import torch
from safetensors.torch import load_file, save_file

from model import ACTION, BINS, Config, OpenVLA

SET = "metaworld"       # the name of the statistics
PAD = 64                # ids behind the actions', as in OpenVLA, so that the vocabulary has whole blocks


def train_tokenizer(path, prompt):
    """A SentencePiece BPE with Llama's settings, trained on the one prompt; `path` ends in .model. Pieces go over several words: rows
    of text cost time and say nothing here, as all prompts are alike."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(prompt.splitlines() * 50), model_prefix=str(path).removesuffix(".model"), model_type="bpe",
        vocab_size=384, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, byte_fallback=True, split_digits=True, split_by_whitespace=False,
        max_sentencepiece_length=24,
        normalization_rule_name="identity", remove_extra_whitespaces=False, hard_vocab_limit=False, minloglevel=2)


def prompt_text(instruction):
    return f"In: What action should the robot take to {instruction.lower()}?\nOut:"


def prompt_ids(folder, instruction):
    """Ids with the first token and the empty piece that stands before an action."""
    sp = sentencepiece.SentencePieceProcessor(model_file=str(pathlib.Path(folder) / "tokenizer.model"))
    return [sp.bos_id()] + sp.encode(prompt_text(instruction)) + [sp.piece_to_id("▁")], sp.vocab_size()


def to_json(c, demos, frames):
    one = {"mean": [0.0] * ACTION, "std": [1.0] * ACTION, "min": [-1.0] * ACTION, "max": [1.0] * ACTION,
           "q01": [-1.0] * ACTION, "q99": [1.0] * ACTION, "mask": [True] * ACTION}
    return {
        "architectures": ["OpenVLAForActionPrediction"], "arch_specifier": "no-align+gelu-mlp", "model_type": "openvla",
        "image_resize_strategy": "resize-naive", "image_sizes": [c.image], "n_action_bins": BINS, "pad_to_multiple_of": PAD,
        "text_config": {"model_type": "llama", "hidden_size": c.width, "intermediate_size": c.mlp, "num_attention_heads": c.heads,
                        "num_key_value_heads": c.heads, "num_hidden_layers": c.depth, "rms_norm_eps": 1e-6,
                        "rope_theta": 10000.0, "vocab_size": c.vocab + PAD, "torch_dtype": "bfloat16"},
        "timm_model_ids": ["vit_so400m_patch14_siglip_224"], "timm_override_act_layers": [None],
        "timm_model_args": [{"embed_dim": c.vision_width, "depth": c.vision_depth, "num_heads": c.vision_heads,
                             "mlp_ratio": c.vision_mlp}],
        "torch_dtype": "bfloat16", "use_fused_vision_backbone": False,
        "norm_stats": {SET: {"action": one, "num_trajectories": demos, "num_transitions": frames}}}


def preprocessing(c):
    """What upstream's processor does with a picture: a drawing of the model's size stays as it is."""
    half = [0.5] * 3
    return {"image_processor_type": "PrismaticImageProcessor", "image_resize_strategy": "resize-naive",
            "input_sizes": [[3, c.image, c.image]], "interpolations": ["bicubic"], "means": [half], "stds": [half], "use_fused_vision_backbone": False,
            "tvf_crop_params": [{"output_size": [c.image, c.image]}], "tvf_do_letterbox": False, "tvf_letterbox_fill": None,
            "tvf_normalize_params": [{"inplace": False, "mean": half, "std": half}],
            "tvf_resize_params": [{"antialias": True, "interpolation": 3, "max_size": None, "size": [c.image, c.image]}]}


def save(folder, model, demos, frames, dtype):
    """Weights and config; the tokenizer is already there. Rows of the vocabulary's padding are zeros."""
    folder, c = pathlib.Path(folder), model.c
    weights = {k: v.detach().clone() for k, v in model.state_dict().items()}
    for name in ("language_model.model.embed_tokens.weight", "language_model.lm_head.weight"):
        weights[name] = torch.cat([weights[name], torch.zeros(PAD, c.width)])
    save_file({k: v.contiguous().to(dtype) for k, v in weights.items()}, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    for name, content in (("config", to_json(c, demos, frames)), ("preprocessor_config", preprocessing(c))):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


def load(folder):
    """-> model in float32"""
    folder = pathlib.Path(folder)
    j = json.loads((folder / "config.json").read_text())
    t, v = j["text_config"], j["timm_model_args"][0]
    c = Config(t["vocab_size"] - PAD, j["image_sizes"][0], 14, v["embed_dim"], v["depth"], v["mlp_ratio"], v["num_heads"],
               t["hidden_size"], t["num_hidden_layers"], t["intermediate_size"], t["num_attention_heads"])
    model, weights = OpenVLA(c), load_file(str(folder / "model.safetensors"))
    for name in ("language_model.model.embed_tokens.weight", "language_model.lm_head.weight"):
        weights[name] = weights[name][:c.vocab]
    model.load_state_dict({k: w.float() for k, w in weights.items()})
    return model.eval()

"""Checkpoints in openpi's PyTorch layout:

    model.safetensors  config.json  tokenizer.model  assets/metaworld/norm_stats.json

`geometry` in config.json is this project's: upstream names a variant, which reduced sizes do not have.
"""
import json
import pathlib
from dataclasses import dataclass

import numpy as np
import sentencepiece
import torch
from safetensors.torch import load_file, save_file

from model import Config, Pi05

ASSET = "assets/metaworld/norm_stats.json"
EXPERT_HEAD = "paligemma_with_expert.gemma_expert.lm_head.weight"       # in every openpi file, never used
TIED = {"paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight": "paligemma_with_expert.paligemma.lm_head.weight"}


def to_json(c, precision):
    def tower(width, inner):
        return dict(width=width, depth=c.depth, mlp_dim=inner, num_heads=c.heads, num_kv_heads=c.kv_heads, head_dim=c.head_dim)
    vision = dict(image_size=c.image, patch_size=c.patch, hidden_size=c.vision_width, num_layers=c.vision_depth,
                  num_heads=c.vision_heads, intermediate_size=c.vision_mlp, tokens_per_image=c.picture_tokens)
    return {"action_dim": c.action_dim, "action_horizon": c.horizon, "paligemma_variant": "custom", "action_expert_variant": "custom",
            "precision": precision, "geometry": {"vision": vision, "text": {**tower(c.width, c.mlp), "vocab_size": c.vocab},
                                                 "expert": tower(c.expert_width, c.expert_mlp)}}


def from_json(j):
    v, t, e = (j["geometry"][k] for k in ("vision", "text", "expert"))
    return Config(image=v["image_size"], patch=v["patch_size"], vision_width=v["hidden_size"], vision_depth=v["num_layers"],
                  vision_mlp=v["intermediate_size"], vision_heads=v["num_heads"], width=t["width"], depth=t["depth"], mlp=t["mlp_dim"],
                  expert_width=e["width"], expert_mlp=e["mlp_dim"], heads=t["num_heads"], kv_heads=t["num_kv_heads"],
                  head_dim=t["head_dim"], vocab=t["vocab_size"], horizon=j["action_horizon"], action_dim=j["action_dim"])


def save(folder, model, stats, dtype):
    """Weights, config and statistics; the tokenizer is already there."""
    folder = pathlib.Path(folder)
    weights = {k: v.detach().contiguous().to(dtype) for k, v in model.state_dict().items()}
    random = torch.Generator().manual_seed(7)
    weights[EXPERT_HEAD] = (0.02 * torch.randn(model.c.vocab, model.c.expert_width, generator=random)).to(dtype)
    save_file(weights, str(folder / "model.safetensors"), metadata=TIED)
    (folder / "model.safetensors").chmod(0o644)
    (folder / "config.json").write_text(json.dumps(to_json(model.c, str(dtype).split(".")[1]), indent=2) + "\n")
    (folder / ASSET).parent.mkdir(parents=True, exist_ok=True)
    (folder / ASSET).write_text(json.dumps({"norm_stats": stats}, indent=1) + "\n")


@dataclass
class Quantiles:
    """openpi's quantile normalisation of one feature."""
    q01: np.ndarray
    q99: np.ndarray

    @classmethod
    def read(cls, stats):
        return cls(np.array(stats["q01"]), np.array(stats["q99"]))

    def normalise(self, x):
        return (x - self.q01) / (self.q99 - self.q01 + 1e-6) * 2 - 1

    def restore(self, x):
        return (x + 1) / 2 * (self.q99 - self.q01 + 1e-6) + self.q01


def weights(folder):
    return {k: v.float() for k, v in load_file(str(pathlib.Path(folder) / "model.safetensors")).items() if k != EXPERT_HEAD}


def statistics(folder):
    return json.loads((pathlib.Path(folder) / ASSET).read_text())["norm_stats"]


def load(folder, dtype=torch.float32):
    """-> model, tokenizer, quantiles of states, quantiles of actions"""
    folder = pathlib.Path(folder)
    model = Pi05(from_json(json.loads((folder / "config.json").read_text())))
    model.load_state_dict(weights(folder))
    stats = statistics(folder)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    return model.to(dtype).eval(), tokenizer, Quantiles.read(stats["state"]), Quantiles.read(stats["actions"])

#!/usr/bin/env python3
"""random_checkpoint.py - a pi0.5 checkpoint of the released size whose values are random, to measure with.

    random_checkpoint.py OUT [--layers N] [--seed SEED]

OUT gets model.safetensors (bf16, 6.8 GB), config.json and statistics for robots of 8 state values (LIBERO).
Nothing is downloaded and no package is needed. --layers makes a smaller one: so many layers of each
stack, and 16384 tokens. Values are bf16 numbers of 2^-7 or so: what a frame computes means nothing,
and takes as long as that of a trained model."""
import argparse
import json
import os
import random
import struct

P = "paligemma_with_expert.paligemma."
V = P + "model.vision_tower.vision_model."
T = P + "model.language_model."
X = "paligemma_with_expert.gemma_expert."
BLOCK = 1 << 24


def dense(out, name, rows, cols, bias=True):
    out[name + ".weight"] = [rows, cols]
    if bias:
        out[name + ".bias"] = [rows]


def gemma(out, prefix, layers, width, mlp, adaptive):
    heads = {"q": 8 * 256, "k": 256, "v": 256}
    norms = []
    for i in range(layers):
        layer = f"{prefix}layers.{i}."
        for name, rows in heads.items():
            dense(out, f"{layer}self_attn.{name}_proj", rows, width, False)
        dense(out, layer + "self_attn.o_proj", width, heads["q"], False)
        dense(out, layer + "mlp.gate_proj", mlp, width, False)
        dense(out, layer + "mlp.up_proj", mlp, width, False)
        dense(out, layer + "mlp.down_proj", width, mlp, False)
        norms += [layer + "input_layernorm", layer + "post_attention_layernorm"]
    for name in norms + [prefix + "norm"]:
        if adaptive:
            dense(out, name + ".dense", 3 * width, width)
        else:
            out[name + ".weight"] = [width]


def siglip(out, layers, width=1152, mlp=4304):
    out[V + "embeddings.patch_embedding.weight"] = [width, 3, 14, 14]
    out[V + "embeddings.patch_embedding.bias"] = [width]
    out[V + "embeddings.position_embedding.weight"] = [256, width]
    for i in range(layers):
        layer = f"{V}encoder.layers.{i}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            dense(out, f"{layer}self_attn.{name}", width, width)
        dense(out, layer + "mlp.fc1", mlp, width)
        dense(out, layer + "mlp.fc2", width, mlp)
        for name in ("layer_norm1", "layer_norm2"):
            out[f"{layer}{name}.weight"] = out[f"{layer}{name}.bias"] = [width]
    out[V + "post_layernorm.weight"] = out[V + "post_layernorm.bias"] = [width]


def tensors(layers):
    """Name -> shape."""
    out = {}
    vocab = 16384 if layers else 257152
    siglip(out, layers or 27)
    dense(out, P + "model.multi_modal_projector.linear", 2048, 1152)
    out[P + "lm_head.weight"] = [vocab, 2048]
    gemma(out, T, layers or 18, 2048, 16384, False)
    gemma(out, X + "model.", layers or 18, 1024, 4096, True)
    dense(out, "action_in_proj", 1024, 32)
    dense(out, "action_out_proj", 32, 1024)
    dense(out, "time_mlp_in", 1024, 1024)
    dense(out, "time_mlp_out", 1024, 1024)
    return out


def config(layers):
    out = {"action_dim": 32, "action_horizon": 10, "paligemma_variant": "gemma_2b",
           "action_expert_variant": "gemma_300m", "precision": "bfloat16"}
    if layers:
        head = {"num_heads": 8, "num_kv_heads": 1, "head_dim": 256, "depth": layers}
        out["geometry"] = {
            "vision": {"image_size": 224, "patch_size": 14, "hidden_size": 1152, "num_layers": layers,
                       "num_heads": 16, "intermediate_size": 4304, "tokens_per_image": 256},
            "text": dict(head, width=2048, mlp_dim=16384, vocab_size=16384),
            "expert": dict(head, width=1024, mlp_dim=4096)}
    return out


def values(seed):
    """A block of random bf16 numbers: a sign, 2^-7 or 2^-8, and 7 bits; little-endian."""
    low = random.Random(seed).randbytes(BLOCK // 2)
    high = random.Random(seed + 1).randbytes(BLOCK // 2)
    block = bytearray(BLOCK)
    block[0::2] = low
    block[1::2] = high.translate(bytes(0xBC if i & 1 else 0x3C for i in range(256)))
    return bytes(block)


def write(path, shapes, seed):
    header, at = {}, 0
    for name, shape in sorted(shapes.items()):
        size = 2
        for n in shape:
            size *= n
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    block, left = values(seed), at
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        while left > 0:
            f.write(block[:left])
            left -= BLOCK
    return at


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out")
    options.add_argument("--layers", type=int, default=0)
    options.add_argument("--seed", type=int, default=1)
    o = options.parse_args()
    assets = os.path.join(o.out, "assets", "physical-intelligence", "libero")
    os.makedirs(assets, exist_ok=True)
    with open(os.path.join(o.out, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config(o.layers), f, indent=1)
    norm = {key: {"mean": [0.0] * n, "std": [1.0] * n, "q01": [-1.0] * n, "q99": [1.0] * n}
            for key, n in (("state", 8), ("actions", 7))}
    with open(os.path.join(assets, "norm_stats.json"), "w", encoding="utf-8") as f:
        json.dump({"norm_stats": norm}, f)
    n = write(os.path.join(o.out, "model.safetensors"), tensors(o.layers), o.seed)
    print(f"{o.out}: {n / 1e9:.2f} GB of tensors")


main()

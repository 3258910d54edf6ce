#!/usr/bin/env python3
"""openpi.py - a checkpoint that openpi saved from JAX (orbax) to the folder that tectum reads.

    openpi.py CHECKPOINT OUT [--horizon 50] [--dtype stored|bf16|f32] [--lora-alpha ALPHA]

CHECKPOINT is the folder with params/, or that folder. OUT gets model.safetensors, config.json and
a copy of assets/, which lies beside params/. Needs numpy and tensorstore (`pip install tensorstore`), which
reads orbax's files; neither JAX nor PyTorch. One array is held at a time, so memory is that of the
largest: 5 GB for a pi0.5 in float32.

The horizon, actions of a chunk, is no part of the parameters: 50 in openpi's base models, 15 in
pi05_droid, 10 in pi05_libero. Low-rank factors of a fine-tuned checkpoint are merged; their alpha is
their rank, as in openpi's variants, unless --lora-alpha says otherwise."""
import argparse
import json
import math
import os
import shutil
import struct
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("openpi.py: needs numpy: pip install numpy tensorstore")

P = "paligemma_with_expert.paligemma."
V = P + "model.vision_tower.vision_model."
T = P + "model.language_model."
E = "paligemma_with_expert.gemma_expert.model."
BLOCK = "img/Transformer/encoderblock/"
VARIANTS = {(2048, 18): "gemma_2b", (1024, 18): "gemma_300m"}


class Refused(Exception):
    """What is no checkpoint of pi0 or pi0.5; one sentence."""


# --- reading -----------------------------------------------------------------------------------------


def parameter(path):
    """A parameter's name by words, without those that orbax and nnx put around it."""
    words = path.replace(".", "/").split("/")
    if words and words[0] == "params":
        words = words[1:]
    if words and words[-1] == "value":
        words = words[:-1]
    if words and words[0] == "PaliGemma":
        words = words[1:]
    return "/".join(words)


class Orbax:
    """Parameters of a folder that orbax wrote: names, shapes and, one by one, values."""

    def __init__(self, folder):
        try:
            import tensorstore
        except ImportError:
            sys.exit("openpi.py: needs tensorstore, which reads orbax's files: pip install tensorstore")
        if os.path.isdir(os.path.join(folder, "params")):
            folder = os.path.join(folder, "params")
        self.folder = os.path.abspath(folder)
        base = {"driver": "file", "path": self.folder + "/"}
        if os.path.exists(os.path.join(folder, "manifest.ocdbt")):
            base = {"driver": "ocdbt", "base": base}
        self.arrays = {}
        for key in tensorstore.KvStore.open(base).result().list().result():
            path, _, last = key.decode().rpartition("/")
            driver = {".zarray": "zarr", "zarr.json": "zarr3"}.get(last)
            if driver and path:
                store = dict(base, path=base.get("path", "") + path + "/")
                array = tensorstore.open({"driver": driver, "kvstore": store}, open=True).result()
                self.arrays[parameter(path)] = array
        if not self.arrays:
            raise Refused(f"{self.folder}: holds no arrays of orbax: give the folder with params/")

    def names(self):
        return set(self.arrays)

    def shape(self, name):
        return tuple(self.arrays[name].shape)

    def dtype(self, name):
        return self.arrays[name].dtype.name

    def values(self, name):
        return self.arrays[name].read().result()


# --- what becomes of a parameter ---------------------------------------------------------------------


def turned(x):
    return np.swapaxes(x, -1, -2)


def heads_first(x):
    """[heads, in, size] to [heads * size, in]."""
    return np.transpose(x, (0, 2, 1)).reshape(-1, x.shape[1])


def heads_last(x):
    """[heads, size, out] to [out, heads * size]."""
    return x.reshape(-1, x.shape[2]).T


def same(x):
    return x


class Plan:
    """The tensors of the result in the order of the parameters that they are made of."""

    def __init__(self, source, alpha):
        self.source, self.alpha, self.left = source, alpha, source.names()
        self.steps = []  # (parameter, [(tensor, function of the parameter)])

    def shape(self, name):
        if name not in self.source.names():
            raise Refused(f"lacks the parameter '{name}': is this a checkpoint of pi0 or pi0.5?")
        return self.source.shape(name)

    def add(self, name, *tensors):
        self.shape(name)
        self.left.discard(name)
        for end in ("lora_a", "lora_b"):
            self.left.discard(self.factor(name, end))
        self.steps.append((name, tensors))

    def layers(self, name, count, *tensors):
        """Of a parameter with the layers as its first axis: each tensor is (name with {}, function)."""
        if self.shape(name)[0] != count:
            raise Refused(f"'{name}' has {self.shape(name)[0]} layers, others have {count}")
        self.add(name, *((tensor.format(i), lambda x, i=i, f=f: f(x[i]))
                         for tensor, f in tensors for i in range(count)))

    @staticmethod
    def factor(name, end):
        """Of a weight of attention, .../w, or one of a feed-forward layer."""
        return name[:-1] + end if name.endswith("/w") else name + "_" + end

    def values(self, name):
        """The parameter, its low-rank factors merged in float32. Those of attention are scaled; those
        of feed-forward layers are not, in openpi's code."""
        x, names = self.source.values(name), self.source.names()
        a, b = self.factor(name, "lora_a"), self.factor(name, "lora_b")
        if a not in names:
            return x
        if b not in names:
            raise Refused(f"'{a}' is there without '{b}'")
        left, right = (np.asarray(self.source.values(n), np.float32) for n in (a, b))
        scale = self.alpha / left.shape[-1] if self.alpha and name.endswith("/w") else 1.0
        return np.asarray(x, np.float32) + np.float32(scale) * (left @ right)


def vision(plan):
    plan.add("img/embedding/kernel", (V + "embeddings.patch_embedding.weight", lambda x: x.transpose(3, 2, 0, 1)))
    plan.add("img/embedding/bias", (V + "embeddings.patch_embedding.bias", same))
    plan.add("img/pos_embedding", (V + "embeddings.position_embedding.weight", lambda x: x.reshape(-1, x.shape[-1])))
    count = plan.shape(BLOCK + "LayerNorm_0/scale")[0]
    layer = V + "encoder.layers.{}."
    for i in (0, 1):
        plan.layers(f"{BLOCK}LayerNorm_{i}/scale", count, (f"{layer}layer_norm{i + 1}.weight", same))
        plan.layers(f"{BLOCK}LayerNorm_{i}/bias", count, (f"{layer}layer_norm{i + 1}.bias", same))
        plan.layers(f"{BLOCK}MlpBlock_0/Dense_{i}/kernel", count, (f"{layer}mlp.fc{i + 1}.weight", turned))
        plan.layers(f"{BLOCK}MlpBlock_0/Dense_{i}/bias", count, (f"{layer}mlp.fc{i + 1}.bias", same))
    for word, name in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")):
        at = f"{BLOCK}MultiHeadDotProductAttention_0/{word}/"
        plan.layers(at + "kernel", count,
                    (f"{layer}self_attn.{name}.weight", lambda x: x.reshape(x.shape[0], -1).T))
        plan.layers(at + "bias", count, (f"{layer}self_attn.{name}.bias", lambda x: x.reshape(-1)))
    at = BLOCK + "MultiHeadDotProductAttention_0/out/"
    plan.layers(at + "kernel", count, (layer + "self_attn.out_proj.weight", heads_last))
    plan.layers(at + "bias", count, (layer + "self_attn.out_proj.bias", same))
    plan.add("img/Transformer/encoder_norm/scale", (V + "post_layernorm.weight", same))
    plan.add("img/Transformer/encoder_norm/bias", (V + "post_layernorm.bias", same))
    plan.add("img/head/kernel", (P + "model.multi_modal_projector.linear.weight", turned))
    plan.add("img/head/bias", (P + "model.multi_modal_projector.linear.bias", same))
    patch = plan.shape("img/embedding/kernel")[0]
    tokens = plan.shape("img/pos_embedding")[-2]
    query = plan.shape(f"{BLOCK}MultiHeadDotProductAttention_0/query/kernel")
    return {"image_size": patch * math.isqrt(tokens), "patch_size": patch, "hidden_size": query[1], "num_layers": count,
            "num_heads": query[2], "intermediate_size": plan.shape(BLOCK + "MlpBlock_0/Dense_0/kernel")[2],
            "tokens_per_image": tokens}


def norm(plan, name, tensor, count):
    """A norm of one layer or of each; that of an expert may be made of the time by a dense layer."""
    def add(end, last, f):
        at = name + end
        if count:
            plan.layers(at, count, (tensor + last, f))
        else:
            plan.add(at, (tensor + last, f))
    if name + "/scale" in plan.left:
        add("/scale", ".weight", same)
    else:
        add("/Dense_0/kernel", ".dense.weight", turned)
        add("/Dense_0/bias", ".dense.bias", same)


def gemma(plan, end, prefix):
    """A Gemma, whose parameters end in "" or, of the action expert, "_1"."""
    q = f"llm/layers/attn/q_einsum{end}/w"
    count, heads, width, size = plan.shape(q)
    kv = f"llm/layers/attn/kv_einsum{end}/w"
    layer = prefix + "layers.{}."
    plan.layers(q, count, (layer + "self_attn.q_proj.weight", heads_first))
    plan.layers(kv, count, (layer + "self_attn.k_proj.weight", lambda x: heads_first(x[0])),
                (layer + "self_attn.v_proj.weight", lambda x: heads_first(x[1])))
    plan.layers(f"llm/layers/attn/attn_vec_einsum{end}/w", count, (layer + "self_attn.o_proj.weight", heads_last))
    gating = f"llm/layers/mlp{end}/gating_einsum"
    plan.layers(gating, count, (layer + "mlp.gate_proj.weight", lambda x: x[0].T),
                (layer + "mlp.up_proj.weight", lambda x: x[1].T))
    plan.layers(f"llm/layers/mlp{end}/linear", count, (layer + "mlp.down_proj.weight", turned))
    norm(plan, f"llm/layers/pre_attention_norm{end}", layer + "input_layernorm", count)
    norm(plan, f"llm/layers/pre_ffw_norm{end}", layer + "post_attention_layernorm", count)
    norm(plan, f"llm/final_norm{end}", prefix + "norm", 0)
    return {"width": width, "depth": count, "mlp_dim": plan.shape(gating)[3], "num_heads": heads,
            "num_kv_heads": plan.shape(kv)[2], "head_dim": size}


def projections(plan):
    for name in ("state_proj", "action_in_proj", "action_out_proj", "action_time_mlp_in", "action_time_mlp_out",
                 "time_mlp_in", "time_mlp_out"):
        if name + "/kernel" in plan.left:
            plan.add(name + "/kernel", (name + ".weight", turned))
            plan.add(name + "/bias", (name + ".bias", same))


def make_plan(source, horizon, alpha=None):
    """What is written, and config.json. Every parameter has its place, or is refused by name."""
    plan = Plan(source, alpha)
    if "action_out_proj/kernel" not in plan.left:
        raise Refused("has no action_out_proj: a checkpoint of pi0-FAST, or none of openpi's; pi0 and pi0.5 are converted")
    text, expert = gemma(plan, "", T), gemma(plan, "_1", E)
    geometry = {"vision": vision(plan), "text": text, "expert": expert}
    plan.add("llm/embedder/input_embedding", (P + "lm_head.weight", same))
    projections(plan)
    if plan.left:
        raise Refused(f"has parameters that are not known, '{min(plan.left)}' among {len(plan.left)}")
    text["vocab_size"] = source.shape("llm/embedder/input_embedding")[0]
    config = {"action_dim": source.shape("action_out_proj/kernel")[1], "action_horizon": horizon,
              "paligemma_variant": VARIANTS.get((text["width"], text["depth"]), "dummy"),
              "action_expert_variant": VARIANTS.get((expert["width"], expert["depth"]), "dummy"),
              "precision": source.dtype("action_out_proj/kernel")}
    if "dummy" in (config["paligemma_variant"], config["action_expert_variant"]):
        config["geometry"] = geometry
    return plan, config


# --- writing -----------------------------------------------------------------------------------------


def bf16_bits(x):
    """Nearest, ties to even."""
    u = np.ascontiguousarray(x, np.float32).view(np.uint32)
    nan = np.isnan(u.view(np.float32))
    rounded = (u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(nan, (u >> np.uint32(16)) | np.uint32(0x40), rounded).astype(np.uint16)


def encode(x, dtype):
    """dtype of the file, and bytes, of an array of float32 or bfloat16."""
    is_bf16 = x.dtype.name == "bfloat16"
    if is_bf16 and dtype != "f32":
        return "BF16", np.ascontiguousarray(x).view(np.uint16).astype("<u2").tobytes()
    if dtype == "bf16":
        return "BF16", bf16_bits(x).astype("<u2").tobytes()
    return "F32", np.ascontiguousarray(x, np.float32).astype("<f4").tobytes()


def write_values(path, plan, dtype, say):
    """All values into a file; returns the header that they need."""
    header, at = {}, 0
    with open(path, "wb") as data:
        for i, (name, tensors) in enumerate(plan.steps):
            say(f"\r{i + 1} of {len(plan.steps)} parameters: {name:70.70}")
            values = plan.values(name)
            for tensor, f in tensors:
                x = f(values)
                kind, raw = encode(x, dtype)
                header[tensor] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
                data.write(raw)
                at += len(raw)
            del values
    say("\n")
    return header


def write(path, plan, dtype, say):
    """Values go to a file beside, whose header is known when they are there. However it ends, only
    the whole file is left."""
    values, whole = path + ".data", path + ".new"
    try:
        text = json.dumps(write_values(values, plan, dtype, say)).encode()
        text += b" " * (-len(text) % 8)
        with open(whole, "wb") as out, open(values, "rb") as data:
            out.write(struct.pack("<Q", len(text)) + text)
            shutil.copyfileobj(data, out, 1 << 24)
        os.replace(whole, path)
    finally:
        for left in (values, whole):
            if os.path.exists(left):
                os.remove(left)


def main(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("checkpoint")
    p.add_argument("out")
    p.add_argument("--horizon", type=int, default=50)
    p.add_argument("--dtype", choices=("stored", "bf16", "f32"), default="stored")
    p.add_argument("--lora-alpha", type=float)
    o = p.parse_args(argv)
    say = (lambda text: (sys.stderr.write(text), sys.stderr.flush())) if sys.stderr.isatty() else (lambda text: None)
    try:
        source = Orbax(o.checkpoint)
        plan, config = make_plan(source, o.horizon, o.lora_alpha)
        if o.dtype != "stored":
            config["precision"] = {"bf16": "bfloat16", "f32": "float32"}[o.dtype]
        os.makedirs(o.out, exist_ok=True)
        write(os.path.join(o.out, "model.safetensors"), plan, o.dtype, say)
    except Refused as e:
        sys.exit(f"openpi.py: {o.checkpoint}: {e}")
    except (ValueError, IndexError) as e:  # of arrays with other axes, or that cannot be read
        sys.exit(f"openpi.py: {o.checkpoint}: is no checkpoint of pi0 or pi0.5, or a damaged one: {e}")
    with open(os.path.join(o.out, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    assets = os.path.join(os.path.dirname(source.folder), "assets")
    if os.path.isdir(assets):
        shutil.copytree(assets, os.path.join(o.out, "assets"), dirs_exist_ok=True)
    else:
        print(f"openpi.py: no {assets}: statistics of the robot are not copied", file=sys.stderr)
    print(f"{o.out}: {sum(len(t) for _, t in plan.steps)} tensors, horizon {o.horizon}")


if __name__ == "__main__":
    main(sys.argv[1:])

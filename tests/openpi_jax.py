#!/usr/bin/env python3
"""openpi_jax.py - parameters as openpi's JAX model has them become the tensors of openpi's PyTorch files.
usage: openpi_jax.py golden CASE_CHECKPOINT   a golden checkpoint is turned into parameters, from the shapes that openpi's
                                              modules declare, and converted: every tensor is the golden one's bytes
       openpi_jax.py orbax FOLDER OUT         a folder that orbax wrote is converted by the program; its values are those
                                              of tests/fixtures/openpi_values.py, low-rank factors merged"""
import json
import os
import struct
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CONVERTER = os.path.join(HERE, "..", "tools", "convert", "openpi.py")
sys.path[:0] = [os.path.dirname(CONVERTER), os.path.join(HERE, "fixtures")]
sys.dont_write_bytecode = True
import openpi  # noqa: E402
import openpi_values  # noqa: E402


class Memory:
    """Parameters in memory in place of orbax's."""

    def __init__(self, arrays):
        self.arrays = arrays

    def names(self):
        return set(self.arrays)

    def shape(self, name):
        return self.arrays[name].shape

    def dtype(self, name):
        return self.arrays[name].dtype.name

    def values(self, name):
        return self.arrays[name]


def load(path):
    """Tensors of a file by name: shape, and bytes as float32."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors = {}
    for name, t in header.items():
        if name != "__metadata__":
            raw = data[slice(*t["data_offsets"])]
            x = np.frombuffer(raw, "<f4") if t["dtype"] == "F32" else (
                np.frombuffer(raw, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
            tensors[name] = x.reshape(t["shape"])
    return tensors


def parameters(t, g):
    """What openpi's modules hold where the PyTorch file has these tensors: layers first, einsums [heads, in, size]."""
    p = {}
    P, E = "paligemma_with_expert.paligemma.", "paligemma_with_expert.gemma_expert.model."
    V = P + "model.vision_tower.vision_model."
    block, v = "img/Transformer/encoderblock/", g["vision"]
    size = v["hidden_size"] // v["num_heads"]

    def each(n, name):
        return np.stack([t[name.format(i)] for i in range(n)])
    p["img/embedding/kernel"] = t[V + "embeddings.patch_embedding.weight"].transpose(2, 3, 1, 0)
    p["img/embedding/bias"] = t[V + "embeddings.patch_embedding.bias"]
    p["img/pos_embedding"] = t[V + "embeddings.position_embedding.weight"][None]
    layer = V + "encoder.layers.{}."
    n, width = v["num_layers"], v["hidden_size"]
    for i in (0, 1):
        p[f"{block}LayerNorm_{i}/scale"] = each(n, f"{layer}layer_norm{i + 1}.weight")
        p[f"{block}LayerNorm_{i}/bias"] = each(n, f"{layer}layer_norm{i + 1}.bias")
        p[f"{block}MlpBlock_0/Dense_{i}/kernel"] = each(n, f"{layer}mlp.fc{i + 1}.weight").transpose(0, 2, 1)
        p[f"{block}MlpBlock_0/Dense_{i}/bias"] = each(n, f"{layer}mlp.fc{i + 1}.bias")
    at = block + "MultiHeadDotProductAttention_0/"
    for word, name in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")):
        w = each(n, f"{layer}self_attn.{name}.weight")
        p[f"{at}{word}/kernel"] = w.transpose(0, 2, 1).reshape(n, width, v["num_heads"], size)
        p[f"{at}{word}/bias"] = each(n, f"{layer}self_attn.{name}.bias").reshape(n, v["num_heads"], size)
    out = each(n, layer + "self_attn.out_proj.weight")
    p[at + "out/kernel"] = out.transpose(0, 2, 1).reshape(n, v["num_heads"], size, width)
    p[at + "out/bias"] = each(n, layer + "self_attn.out_proj.bias")
    for last in ("scale", "bias"):
        p["img/Transformer/encoder_norm/" + last] = t[V + "post_layernorm." + last.replace("scale", "weight")]
    p["img/head/kernel"] = t[P + "model.multi_modal_projector.linear.weight"].T
    p["img/head/bias"] = t[P + "model.multi_modal_projector.linear.bias"]
    p["llm/embedder/input_embedding"] = t[P + "lm_head.weight"]
    for end, key, prefix in (("", "text", P + "model.language_model."), ("_1", "expert", E)):
        s, layer = g[key], prefix + "layers.{}."
        n, heads, kv, size = s["depth"], s["num_heads"], s["num_kv_heads"], s["head_dim"]

        def einsum(name, count):  # [count * size, in] to [count, in, size]
            w = each(n, f"{layer}self_attn.{name}.weight")
            return w.reshape(n, count, size, -1).transpose(0, 1, 3, 2)
        p[f"llm/layers/attn/q_einsum{end}/w"] = einsum("q_proj", heads)
        p[f"llm/layers/attn/kv_einsum{end}/w"] = np.stack([einsum("k_proj", kv), einsum("v_proj", kv)], 1)
        o = each(n, layer + "self_attn.o_proj.weight")
        p[f"llm/layers/attn/attn_vec_einsum{end}/w"] = o.transpose(0, 2, 1).reshape(n, heads, size, -1)
        gates = [each(n, f"{layer}mlp.{name}_proj.weight").transpose(0, 2, 1) for name in ("gate", "up")]
        p[f"llm/layers/mlp{end}/gating_einsum"] = np.stack(gates, 1)
        p[f"llm/layers/mlp{end}/linear"] = each(n, layer + "mlp.down_proj.weight").transpose(0, 2, 1)
        for name, tensor in (("layers/pre_attention_norm", layer + "input_layernorm"),
                             ("layers/pre_ffw_norm", layer + "post_attention_layernorm"), ("final_norm", prefix + "norm")):
            def one(last, tensor=tensor):
                return each(n, tensor + last) if "{}" in tensor else t[tensor + last]
            if tensor.format(0) + ".weight" in t:
                p[f"llm/{name}{end}/scale"] = one(".weight")
            else:
                p[f"llm/{name}{end}/Dense_0/kernel"] = np.swapaxes(one(".dense.weight"), -1, -2)
                p[f"llm/{name}{end}/Dense_0/bias"] = one(".dense.bias")
    for name in t:
        if name.count(".") == 1:
            p[name.replace(".weight", "/kernel").replace(".bias", "/bias")] = t[name].T
    return p


def converted(source, alpha=None):
    plan, config = openpi.make_plan(source, 50, alpha)
    tensors = {}
    for name, parts in plan.steps:
        values = plan.values(name)
        for tensor, f in parts:
            assert tensor not in tensors, tensor
            tensors[tensor] = f(values)
    return tensors, config


def golden(folder):
    want = load(folder + "/model.safetensors")
    geometry = json.load(open(folder + "/config.json"))["geometry"]
    got, config = converted(Memory(parameters(want, geometry)))
    want = {k: x for k, x in want.items() if k != "paligemma_with_expert.gemma_expert.lm_head.weight"}  # noise
    assert set(got) == set(want), set(got) ^ set(want)
    for name, x in want.items():
        assert got[name].shape == x.shape and np.array_equal(got[name], x), name
    assert config["geometry"] == geometry, (config["geometry"], geometry)
    bits = openpi.bf16_bits(np.array([1.0, 1.00390625, 1.01171875, -3e38, np.inf, np.nan, 3.4e38], np.float32))
    assert list(bits) == [0x3F80, 0x3F80, 0x3F82, 0xFF62, 0x7F80, 0x7FC0, 0x7F80], [hex(b) for b in bits]


def orbax(folder, out):
    for case in ("pi0", "pi05"):
        run = subprocess.run([sys.executable, CONVERTER, f"{folder}/{case}", f"{out}/{case}", "--horizon", "7", "--lora-alpha", "4"],
                             capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        got = load(f"{out}/{case}/model.safetensors")
        want, config = converted(Memory(openpi_values.parameters(case)), 4.0)
        assert set(got) == set(want)
        for name, x in want.items():
            assert np.array_equal(got[name], x), name
        assert json.load(open(f"{out}/{case}/config.json")) == config | {"action_horizon": 7}
    p = openpi_values.parameters("pi0")
    a, b = (p["llm/layers/attn/q_einsum/lora_" + x][1, 2].astype(np.float64) for x in "ab")
    merged = p["llm/layers/attn/q_einsum/w"][1, 2] + 2.0 * (a @ b)  # alpha 4, rank 2
    name = "paligemma_with_expert.paligemma.model.language_model.layers.1.self_attn.q_proj.weight"
    assert np.array_equal(load(f"{out}/pi0/model.safetensors")[name][8:12], merged.T)
    a, b = (p["llm/layers/mlp_1/linear_lora_" + x][0].astype(np.float64) for x in "ab")
    name = "paligemma_with_expert.gemma_expert.model.layers.0.mlp.down_proj.weight"
    assert np.array_equal(load(f"{out}/pi0/model.safetensors")[name], (p["llm/layers/mlp_1/linear"][0] + a @ b).T)


def refused():
    """What is no such checkpoint is refused by name."""
    p = openpi_values.parameters("pi05")
    for change, words in ((lambda q: q.pop("action_out_proj/kernel"), "has no action_out_proj"),
                          (lambda q: q.pop("llm/layers/mlp_1/linear"), "lacks the parameter 'llm/layers/mlp_1/linear'"),
                          (lambda q: q.update({"llm/more": q["img/embedding/bias"]}), "not known, 'llm/more' among 1"),
                          (lambda q: q.update({"llm/layers/mlp/linear": q["llm/layers/mlp/linear"][:1]}), "has 1 layers, others have 2")):
        q = dict(p)
        change(q)
        try:
            converted(Memory(q))
        except openpi.Refused as e:
            assert words in str(e), e
        else:
            raise AssertionError(words)


if __name__ == "__main__":
    {"golden": golden, "orbax": orbax, "refused": refused}[sys.argv[1]](*sys.argv[2:])

#!/usr/bin/env python3
"""text_models.py - golden cases of random small text models, by a forward of our own in numpy.

usage: tests/text_models.py FOLDER SEED

Writes a case for `tectum verify` a family: Qwen3, Llama 3, Gemma 2, Gemma 3, SmolVLM (and Idefics3) with
sizes drawn from the seed, config.json in one of the two styles. The formulas are those of tests/golden/text/README.md,
written down a second time: nothing here knows how the engine computes them. Expected values are
float64; the error that is allowed is that of the same code in float32.
"""
import json
import os
import struct
import sys

import numpy

import picture_tower

random = None


def bf16(x):
    """The nearest values that bf16 holds, as float32."""
    bits = numpy.asarray(x, numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)


def write(path, tensors, kind):
    """A file of tensors of one kind, or of F32 but for those that `kind` names."""
    header, at, blobs = {}, 0, []
    for name, x in sorted(tensors.items()):
        stored = kind if isinstance(kind, str) else kind.get(name, "F32")
        stored = "U8" if getattr(x, "dtype", None) == numpy.uint8 and stored != "BOOL" else stored
        if stored == "BF16":
            blob = (numpy.asarray(x, numpy.float32).view(numpy.uint32) >> 16).astype("<u2").tobytes()
        else:
            blob = numpy.asarray(x, {"U8": "u1", "BOOL": "u1", "I32": "<i4", "F32": "<f4"}[stored]).tobytes()
        header[name] = {"dtype": stored, "shape": list(numpy.shape(x)), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def pick(*of):
    return of[random.integers(len(of))]


def drawn(family):
    """What a config.json says, in words of our own."""
    gemma = family.startswith("gemma")
    kv = int(pick(1, 2, 3))
    c = {"family": family, "layers": int(pick(2, 3, 4, 7)), "width": int(pick(32, 40, 64)), "kv": kv,
         "heads": kv * int(pick(1, 2, 4)), "dim": int(pick(8, 12, 16, 20)), "mlp": int(pick(48, 56, 80)),
         "vocab": int(pick(97, 160, 300)), "eps": float(pick(1e-5, 1e-6)), "theta": float(pick(1e4, 1e6)),
         "tied": True if gemma else bool(pick(True, False)), "window": int(pick(3, 5, 9)) if gemma else None,
         "at": "model.", "local": 1e4, "scalar": int(pick(16, 24)), "pattern": int(pick(2, 3, 6)),
         "new": bool(pick(True, False))}
    c["own_head"] = not c["tied"] or bool(pick(True, False, False))  # one in the file counts although it is tied
    c["cap"], c["final"] = (float(pick(3, 7.5)), float(pick(5, 12))) if family == "gemma2" else (None, None)
    c["stretch"] = None
    if family == "llama" and pick(True, False):
        c["stretch"] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                        "original_max_position_embeddings": 32}
    if family == "smolvlm":
        c.update(at="model.text_model.", tower=picture_tower.drawn(pick), picture=c["vocab"] - 3,
                 seen_as=str(pick("smolvlm", "idefics3")), pictures=int(pick(1, 2, 3)))
    if family in ("llama", "gemma3_text") and not c["stretch"] and pick(True, False):
        c["stretch"] = {"rope_type": "linear", "factor": 4.0}
    return c


def sliding(c, layer):
    if c["family"] == "gemma2":
        return layer % 2 == 0
    return c["family"] == "gemma3_text" and (layer + 1) % c["pattern"] != 0


def whole_config(c, text):
    """config.json of a model that sees: the text's is a part of it, and the top level says whether it is tied."""
    tied = text.pop("tie_word_embeddings")
    j = {"model_type": c["seen_as"], "image_token_id": c["picture"], "scale_factor": c["tower"]["shuffle"],
         "text_config": {**text, "model_type": "llama"}, "vision_config": picture_tower.config(c["tower"], c["new"])}
    if tied or c["new"]:
        j["tie_word_embeddings"] = tied
    return j


def config(c):
    gemma = c["family"].startswith("gemma")
    j = {"model_type": c["family"], "hidden_size": c["width"], "num_hidden_layers": c["layers"],
         "num_attention_heads": c["heads"], "num_key_value_heads": c["kv"], "head_dim": c["dim"],
         "intermediate_size": c["mlp"], "vocab_size": c["vocab"], "rms_norm_eps": c["eps"],
         "max_position_embeddings": 256, "eos_token_id": 1, "bos_token_id": 2}
    j["hidden_activation" if gemma else "hidden_act"] = "gelu_pytorch_tanh" if gemma else "silu"
    if not gemma or not c["tied"]:
        j["tie_word_embeddings"] = c["tied"]
    if gemma:
        j.update(query_pre_attn_scalar=c["scalar"], sliding_window=c["window"])
    if c["family"] == "gemma2":
        j.update(attn_logit_softcapping=c["cap"], final_logit_softcapping=c["final"])
    if c["family"] == "gemma3_text" and not c["new"]:
        j["sliding_window_pattern"] = c["pattern"]
    whole = {"rope_type": "default", **(c["stretch"] or {}), "rope_theta": c["theta"]}
    if not c["new"]:
        j.update(rope_theta=c["theta"], rope_scaling=c["stretch"])
        if c["family"] == "gemma3_text":
            j["rope_local_base_freq"] = c["local"]
        return j
    j["layer_types"] = ["sliding_attention" if sliding(c, i) else "full_attention" for i in range(c["layers"])]
    j["rope_parameters"] = whole
    if c["family"] == "gemma3_text":
        j["rope_parameters"] = {"full_attention": whole, "sliding_attention": {
            "rope_type": "default", "rope_theta": c["local"]}}
    return j


def weights(c):
    gemma, w = c["family"].startswith("gemma"), {}

    def matrix(name, rows, cols):
        w[name] = bf16(random.standard_normal((rows, cols)) * 1.3 / numpy.sqrt(cols))

    def vector(name, n, mean=0.0 if gemma else 1.0):
        w[name] = bf16(random.standard_normal(n) * 0.3 + mean)

    q, kv = c["heads"] * c["dim"], c["kv"] * c["dim"]
    matrix(c["at"] + "embed_tokens.weight", c["vocab"], c["width"])
    for i in range(c["layers"]):
        at = f"{c['at']}layers.{i}."
        for name, rows, cols in (("self_attn.q_proj", q, c["width"]), ("self_attn.k_proj", kv, c["width"]),
                                 ("self_attn.v_proj", kv, c["width"]), ("self_attn.o_proj", c["width"], q),
                                 ("mlp.gate_proj", c["mlp"], c["width"]), ("mlp.up_proj", c["mlp"], c["width"]),
                                 ("mlp.down_proj", c["width"], c["mlp"])):
            matrix(at + name + ".weight", rows, cols)
        names = ["input_layernorm", "post_attention_layernorm"]
        names += ["pre_feedforward_layernorm", "post_feedforward_layernorm"] if gemma else []
        for name in names:
            vector(at + name + ".weight", c["width"])
        if c["family"] in ("qwen3", "gemma3_text"):
            vector(at + "self_attn.q_norm.weight", c["dim"])
            vector(at + "self_attn.k_norm.weight", c["dim"])
    vector(c["at"] + "norm.weight", c["width"])
    if "tower" in c:
        picture_tower.weights(c["tower"], c["width"], matrix, vector)
        name, p = picture_tower.AT + "embeddings.patch_embedding.weight", c["tower"]["patch"]
        w[name] = w[name].reshape(-1, 3, p, p)
    if c["own_head"]:
        matrix("lm_head.weight", c["vocab"], c["width"])
    return w


def angles(c, local):
    """Radians a position by pair of a head."""
    turn = (c["local"] if local else c["theta"]) ** (-2.0 * numpy.arange(c["dim"] // 2) / c["dim"])
    s = None if local else c["stretch"]
    if not s:
        return turn
    if s["rope_type"] == "linear":
        return turn / s["factor"]
    wave, length = 2 * numpy.pi / turn, s["original_max_position_embeddings"]
    part = (length / wave - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
    blend = (1 - part) * turn / s["factor"] + part * turn
    long, short = wave > length / s["low_freq_factor"], wave < length / s["high_freq_factor"]
    return numpy.where(long, turn / s["factor"], numpy.where(short, turn, blend))


def forward(c, w, ids, kind, seen=None):
    """Logits of every row of a prompt; `seen` = (at, rows): where its pictures stand, and with what."""
    gemma, n = c["family"].startswith("gemma"), len(ids)

    def norm(x, name):
        scale = 1 / numpy.sqrt((x * x).mean(-1, keepdims=True) + kind(c["eps"]))
        return x * scale * ((kind(1) if gemma else kind(0)) + w[name].astype(kind))

    def linear(x, name):
        return x @ w[name].astype(kind).T

    def rotated(x, local):
        angle = numpy.arange(n)[:, None] * angles(c, local)
        cos, sin = numpy.cos(angle).astype(kind)[:, None], numpy.sin(angle).astype(kind)[:, None]
        a, b = x[..., :c["dim"] // 2], x[..., c["dim"] // 2:]
        return numpy.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(x, at, layer):
        q = linear(x, at + "self_attn.q_proj.weight").reshape(n, c["heads"], c["dim"])
        k = linear(x, at + "self_attn.k_proj.weight").reshape(n, c["kv"], c["dim"])
        v = linear(x, at + "self_attn.v_proj.weight").reshape(n, c["kv"], c["dim"])
        if at + "self_attn.q_norm.weight" in w:
            q, k = norm(q, at + "self_attn.q_norm.weight"), norm(k, at + "self_attn.k_norm.weight")
        local = sliding(c, layer) and c["family"] == "gemma3_text"
        q, k = rotated(q, local), rotated(k, local)
        k, v = (numpy.repeat(y, c["heads"] // c["kv"], 1) for y in (k, v))
        s = numpy.einsum("qhd,khd->hqk", q, k) * kind((c["scalar"] if gemma else c["dim"]) ** -0.5)
        if c["cap"]:
            s = kind(c["cap"]) * numpy.tanh(s / kind(c["cap"]))
        i, j = numpy.arange(n)[:, None], numpy.arange(n)[None]
        seen = (j <= i) & ((j > i - c["window"]) if sliding(c, layer) else True)
        s = numpy.where(seen, s, -numpy.inf)
        p = numpy.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        return linear(numpy.einsum("hqk,khd->qhd", p, v).reshape(n, -1), at + "self_attn.o_proj.weight")

    def feed_forward(x, at):
        g = linear(x, at + "mlp.gate_proj.weight")
        if gemma:
            g = kind(0.5) * g * (1 + numpy.tanh(kind(numpy.sqrt(2 / numpy.pi)) * (g + kind(0.044715) * g ** 3)))
        else:
            g = g / (1 + numpy.exp(-g))
        return linear(g * linear(x, at + "mlp.up_proj.weight"), at + "mlp.down_proj.weight")

    x = w[c["at"] + "embed_tokens.weight"][ids].astype(kind) * kind(numpy.sqrt(c["width"]) if gemma else 1)
    if seen:
        x[seen[0]] = seen[1]
    for layer in range(c["layers"]):
        at = f"{c['at']}layers.{layer}."
        half = attention(norm(x, at + "input_layernorm.weight"), at, layer)
        x = x + (norm(half, at + "post_attention_layernorm.weight") if gemma else half)
        before = "pre_feedforward_layernorm" if gemma else "post_attention_layernorm"
        half = feed_forward(norm(x, at + before + ".weight"), at)
        x = x + (norm(half, at + "post_feedforward_layernorm.weight") if gemma else half)
    y = linear(norm(x, c["at"] + "norm.weight"), "lm_head.weight" if c["own_head"] else c["at"] + "embed_tokens.weight")
    return kind(c["final"]) * numpy.tanh(y / kind(c["final"])) if c["final"] else y


def prompt(c):
    """Ids of a prompt, its pictures, and where their rows stand: some side by side, none at the end."""
    if "tower" not in c:
        return [int(i) for i in random.integers(0, c["vocab"], 20)], None, None
    ids, side = [], c["tower"]["side"]
    pictures = random.integers(0, 256, (c["pictures"], side, side, 3)).astype(numpy.uint8)
    for _ in pictures:
        ids += [int(i) for i in random.integers(0, c["picture"], pick(0, 1, 6))] + [c["picture"]] * c["tower"]["rows"]
    ids += [int(i) for i in random.integers(0, c["picture"], pick(1, 9))]
    return ids, pictures, [i for i, token in enumerate(ids) if token == c["picture"]]


def computed(c, w, ids, pictures, at, kind):
    """The tensors of a case, and the tokens that follow greedily."""
    out, seen, said = {}, None, list(ids)
    if pictures is not None:
        rows = [picture_tower.rows(c["tower"], w, picture, kind) for picture in pictures]
        seen = at, numpy.concatenate(rows)
        out = {f"image{i}.connector": x for i, x in enumerate(rows)}
    out["logits"] = forward(c, w, ids, kind, seen)
    for _ in range(8 if kind is numpy.float64 else 0):
        said.append(int(forward(c, w, said, kind, seen)[-1].argmax()))
    return out, said[len(ids):]


def case(folder, family, seed, change=None):
    """A case of a family; change(c, w) makes another model of it, of which c["said"] is in config.json, too."""
    c = drawn(family)
    w = weights(c)
    if change:
        change(c, w)
    ids, pictures, at = prompt(c)
    (exact, said), (near, _) = (computed(c, w, ids, pictures, at, kind) for kind in (numpy.float64, numpy.float32))
    bounds = {}
    for name, x in exact.items():
        error = numpy.abs(near[name] - x)
        bounds[name] = {"max": float(error.max()), "rms": float(numpy.sqrt((error ** 2).mean()))}
    inputs = {"prompt0": numpy.array(ids)}
    said_first = whole_config(c, config(c)) if pictures is not None else config(c)
    files = {"checkpoint/config.json": {**said_first, **c.get("said", {})}, "case.json": {
        "family": "text", "kind": "lm" if pictures is None else "vlm", "what": f"{family}, seed {seed}",
        "checkpoint": "checkpoint", "prompts": [{"tokens": ids, "greedy": said}], "tokens_equal": {},
        "std": {name: float(x.std()) for name, x in exact.items()}, "err_fp32": bounds,
        "err_bf16": {name: {"max": c.get("share", 1e9) * float(x.std()), "rms": c.get("share", 1e9) / 4 * float(x.std())}
                     for name, x in exact.items()}}}
    if pictures is not None:
        inputs["prompt0.images"] = pictures
        side = {"longest_edge": c["tower"]["side"]}
        files["checkpoint/preprocessor_config.json"] = {"max_image_size": side, "do_image_splitting": False}
    os.makedirs(os.path.join(folder, "checkpoint"), exist_ok=True)
    write(os.path.join(folder, "checkpoint", "model.safetensors"), w, "BF16")
    write(os.path.join(folder, "expected.safetensors"), exact, "F32")
    write(os.path.join(folder, "inputs.safetensors"), inputs, "I32")
    for name, value in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)


def main():
    global random
    seed = int(sys.argv[2])
    for i, family in enumerate(("qwen3", "llama", "gemma2", "gemma3_text", "smolvlm")):
        random = numpy.random.default_rng([seed, i])
        case(os.path.join(sys.argv[1], family), family, seed)


if __name__ == "__main__":
    main()

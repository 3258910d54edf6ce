#!/usr/bin/env python3
"""wired_texts.py - a golden case of tests/flow_models/wired_text.lua, a text that no shipped model is, in numpy.

usage: tests/wired_texts.py FOLDER SEED

How each layer is wired is drawn from the seed: which norms stand where, what a feed-forward is made of, which layers
share tensors, see a window, or turn their keys, and by which base. All formulas are written down a second time, in
their own order. Expected values are float64; the error that is allowed is that of the same code in float32. Where
matrices, keys and what is multiplied are rounded, by 2^-9 each, it is a share of the results.
"""
import json
import math
import os
import sys

import numpy

import text_models as text

KINDS = ("parallel", "first", "two_norms", "before", "behind", "behind_sums")
SHARE = 2 ** -5  # of the standard deviation of the logits; over 40 seeds half of it was seen


def drawn(seed):
    """What config.json says: the first seeds show each kind of layer first, the others draw."""
    def pick(*of):
        return of[text.random.integers(len(of))]

    kv, gated = int(pick(1, 2, 3)), bool(pick(True, False))
    c = {"model_type": "wired_text", "width": int(pick(32, 40, 72)), "kv": kv, "heads": kv * int(pick(1, 2)),
         "dim": int(pick(8, 12, 16)), "mlp": int(pick(24, 56, 80)), "vocab": int(pick(97, 160)), "gated": gated,
         "activation": str(pick("gelu", "silu") if gated else pick("gelu", "gelu_erf", "silu", "relu")),
         "norm": str(pick("rms", "layer")), "offset": float(pick(0, 1)), "eps": float(pick(1e-5, 1e-6)),
         "biased": bool(pick(True, False)), "head_norms": bool(pick(True, False)), "enters": bool(pick(True, False)),
         "embedding": float(pick(1, 3)), "scale": pick(None, 0.2), "cap": pick(None, 4.0)}
    n, sets = int(pick(3, 4, 5)), int(pick(2, 3, 9))
    c["wired"] = [{"kind": KINDS[seed % len(KINDS)] if i == 0 else str(pick(*KINDS)), "tensors": i % sets,
                   "window": pick(None, None, 3, 6), "theta": pick(None, 1e3, 1e4)} for i in range(n)]
    return c


def weights(c):
    w = {}

    def put(name, *shape, size=1.0, mean=0.0):
        w[name] = text.bf16(text.random.standard_normal(shape) * size + mean)

    def linear(name, rows, cols, biased=c["biased"]):
        put(name + ".weight", rows, cols, size=cols ** -0.5)
        if biased:
            put(name + ".bias", rows, size=0.2)

    def norm(name):
        put(name + ".weight", c["width"], size=0.3, mean=1 - c["offset"])
        if c["norm"] == "layer" and c["biased"]:
            put(name + ".bias", c["width"], size=0.3)

    width, q, kv = c["width"], c["heads"] * c["dim"], c["kv"] * c["dim"]
    put("embed.weight", c["vocab"], width, size=0.7)
    for i in sorted({wired["tensors"] for wired in c["wired"]}):
        at, kinds = f"layers.{i}.", {wired["kind"] for wired in c["wired"] if wired["tensors"] == i}
        for name, rows, cols in (("q", q, width), ("k", kv, width), ("v", kv, width), ("o", width, q),
                                 ("down", width, c["mlp"])):
            linear(at + name, rows, cols)
        linear(at + "up", c["mlp"], width, c["biased"] and not c["gated"])
        if c["gated"]:
            linear(at + "gate", c["mlp"], width, False)
        if c["head_norms"]:
            put(at + "q_norm.weight", c["dim"], size=0.3, mean=0.5)
            put(at + "k_norm.weight", c["dim"], size=0.3, mean=0.5)
        norm(at + "norm1")
        if kinds - {"parallel", "first"}:
            norm(at + "norm2")
    if c["enters"]:
        norm("enter")
    norm("leave")
    return w


class Model:
    """The formulas in one kind of numbers."""

    def __init__(self, c, w, kind):
        self.c, self.w, self.kind = c, w, kind

    def tensor(self, name):
        return self.w[name].astype(self.kind)

    def linear(self, x, name):
        y = x @ self.tensor(name + ".weight").T
        return y + self.tensor(name + ".bias") if name + ".bias" in self.w else y

    def norm(self, x, name):
        if self.c["norm"] == "layer":
            x = x - x.mean(-1, keepdims=True)
        y = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + self.kind(self.c["eps"]))
        y = y * (self.tensor(name + ".weight") + self.kind(self.c["offset"]))
        return y + self.tensor(name + ".bias") if name + ".bias" in self.w else y

    def head_norm(self, x, name):
        if not self.c["head_norms"]:
            return x
        y = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + self.kind(1e-5))
        return y * (self.tensor(name + ".weight") + self.kind(0.5))

    def turned(self, x, theta):
        half = x.shape[2] // 2
        angle = numpy.arange(len(x))[:, None] * theta ** (-numpy.arange(half) / half)
        cos, sin = (part(angle).astype(self.kind)[:, None] for part in (numpy.cos, numpy.sin))
        a, b = x[..., :half], x[..., half:]
        return numpy.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def attention(self, x, at, wired):
        c, n = self.c, len(x)
        q, k, v = (self.linear(x, at + r).reshape(n, -1, c["dim"]) for r in "qkv")
        q, k = self.head_norm(q, at + "q_norm"), self.head_norm(k, at + "k_norm")
        if wired["theta"]:
            q, k = self.turned(q, wired["theta"]), self.turned(k, wired["theta"])
        out = numpy.zeros_like(q)
        for h in range(c["heads"]):
            of = h // (c["heads"] // c["kv"])
            s = q[:, h] @ k[:, of].T * self.kind(c["scale"] or c["dim"] ** -0.5)
            if c["cap"]:
                s = self.kind(c["cap"]) * numpy.tanh(s / self.kind(c["cap"]))
            far = numpy.arange(n)[:, None] - numpy.arange(n)
            s[(far < 0) | (far >= (wired["window"] or n))] = -numpy.inf
            s = numpy.exp(s - s.max(-1, keepdims=True))
            out[:, h] = s / s.sum(-1, keepdims=True) @ v[:, of]
        return self.linear(out.reshape(n, -1), at + "o")

    def activated(self, x):
        kind, one = self.c["activation"], self.kind(1)
        if kind == "relu":
            return numpy.maximum(x, 0)
        if kind == "silu":
            return x / (one + numpy.exp(-x))
        if kind == "gelu_erf":
            return x * (one + numpy.vectorize(math.erf)(x / math.sqrt(2)).astype(self.kind)) / self.kind(2)
        inner = self.kind(math.sqrt(2 / math.pi)) * (x + self.kind(0.044715) * x ** 3)
        return x * (one + numpy.tanh(inner)) / self.kind(2)

    def feed_forward(self, x, at):
        up = self.linear(x, at + "up")
        up = self.activated(self.linear(x, at + "gate")) * up if self.c["gated"] else self.activated(up)
        return self.linear(up, at + "down")

    def layer(self, x, wired):
        at, kind = f"layers.{wired['tensors']}.", wired["kind"]
        if kind in ("parallel", "first", "two_norms"):
            first = self.norm(x, at + "norm1")
            second = self.norm(x, at + "norm2") if kind == "two_norms" else first
            return x + self.attention(first, at, wired) + self.feed_forward(second, at)
        if kind == "before":
            x = x + self.attention(self.norm(x, at + "norm1"), at, wired)
            return x + self.feed_forward(self.norm(x, at + "norm2"), at)
        if kind == "behind":
            x = x + self.norm(self.attention(x, at, wired), at + "norm1")
            return x + self.norm(self.feed_forward(x, at), at + "norm2")
        x = self.norm(x + self.attention(x, at, wired), at + "norm1")
        return self.norm(x + self.feed_forward(x, at), at + "norm2")

    def logits(self, ids):
        x = self.tensor("embed.weight")[ids] * self.kind(self.c["embedding"])
        x = self.norm(x, "enter") if self.c["enters"] else x
        for wired in self.c["wired"]:
            x = self.layer(x, wired)
        return self.norm(x, "leave") @ self.tensor("embed.weight").T


def said_of(x):
    """The same without what is nothing: a file does not say it."""
    if isinstance(x, dict):
        return {key: said_of(value) for key, value in x.items() if value is not None}
    return [said_of(value) for value in x] if isinstance(x, list) else x


def main():
    folder, seed = sys.argv[1], int(sys.argv[2])
    text.random = numpy.random.default_rng([seed, 77])
    c = drawn(seed)
    w = weights(c)
    ids = [int(i) for i in text.random.integers(0, c["vocab"], 20)]
    exact, near, said = Model(c, w, numpy.float64), Model(c, w, numpy.float32), list(ids)
    for _ in range(8):
        said.append(int(exact.logits(said)[-1].argmax()))
    logits = exact.logits(ids)
    error = numpy.abs(near.logits(ids) - logits)
    std = float(logits.std())
    case = {"family": "text", "kind": "lm", "what": f"wired in another way, seed {seed}", "checkpoint": "checkpoint",
            "prompts": [{"tokens": ids, "greedy": said[len(ids):]}], "tokens_equal": {}, "std": {"logits": std},
            "err_fp32": {"logits": {"max": float(error.max()), "rms": float(numpy.sqrt((error ** 2).mean()))}},
            "err_bf16": {"logits": {"max": SHARE * std, "rms": SHARE * std / 4}}}
    os.makedirs(os.path.join(folder, "checkpoint"), exist_ok=True)
    text.write(os.path.join(folder, "checkpoint", "model.safetensors"), w, "BF16")
    text.write(os.path.join(folder, "expected.safetensors"), {"logits": logits}, "F32")
    text.write(os.path.join(folder, "inputs.safetensors"), {"prompt0": numpy.array(ids)}, "I32")
    for name, value in (("checkpoint/config.json", c), ("case.json", case)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(said_of(value), file, indent=1)


if __name__ == "__main__":
    main()

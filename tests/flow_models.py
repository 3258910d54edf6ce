#!/usr/bin/env python3
"""flow_models.py - a golden case of tests/flow_models/wired.lua, a flow that is wired as no shipped one, in numpy.

usage: tests/flow_models.py FOLDER SEED

Text and picture tower are those of text_models.py. The rest is written down a second time, in the order of the
formulas: nothing here knows how the engine computes them. Expected values are float64; the error that is allowed
is that of the same code in float32. Where matrices and what they read are rounded it is that of one or two
roundings, by 2^-9 each, of values as large as the results; measured is a fifth of it.
"""
import json
import os
import sys

import numpy

import picture_tower
import text_models as text

FEATURES, WIDTH, HEADS, KV, HORIZON, DIM, STATE, STEPS = 20, 24, 4, 2, 5, 3, 6, 3
LAYERS = 4


def weights(c, w):
    """The flow's own tensors, beside those of the text."""
    def matrix(name, rows, cols):
        w[name + ".weight"] = text.bf16(text.random.standard_normal((rows, cols)) / numpy.sqrt(cols))
        w[name + ".bias"] = text.bf16(text.random.standard_normal(rows) * 0.2)

    kv = KV * (WIDTH // HEADS)
    for name, rows, cols in (("project", FEATURES, c["width"]), ("second", FEATURES, FEATURES), ("time1", WIDTH, 10),
                             ("time2", WIDTH, 10), ("state", WIDTH, STATE), ("enter", WIDTH, DIM),
                             ("mid", WIDTH, WIDTH + 10), ("leave", DIM, 12), ("late", DIM, WIDTH)):
        matrix(name, rows, cols)
    for name, keys in (("mixed1", 20), ("mixed2", 10)):
        for role, rows in (("q", 20), ("k", keys), ("v", keys), ("o", FEATURES)):
            matrix(f"{name}.{role}", rows, 20 if role == "o" else FEATURES)
    for i in range(1, LAYERS + 1):
        seen = WIDTH if i == 1 else FEATURES
        for name, rows, cols in (("q", WIDTH, WIDTH), ("k", kv, seen), ("v", kv, seen), ("o", WIDTH, WIDTH),
                                 ("scale", 2 * WIDTH, WIDTH), ("up", 2 * WIDTH, WIDTH), ("down", WIDTH, 2 * WIDTH),
                                 ("gate", 2 * WIDTH, WIDTH), ("share", WIDTH, WIDTH)):
            if i % 2 == 0 or name not in ("gate", "share"):
                matrix(f"layers.{i}.{name}", rows, cols)
        w[f"layers.{i}.norm.weight"] = text.bf16(i % 2 + 0.3 * text.random.standard_normal(WIDTH))
        for name in ("gate.bias", "up.bias") if i % 2 == 0 else ():
            del w[f"layers.{i}.{name}"]
        if i % 2:
            w[f"layers.{i}.q_norm.weight"], w[f"layers.{i}.k_norm.weight"] = (
                text.bf16(1 + 0.3 * text.random.standard_normal(WIDTH // HEADS)) for _ in range(2))
            w[f"layers.{i}.norm.bias"] = text.bf16(0.3 * text.random.standard_normal(WIDTH))
    w["places"] = text.bf16(text.random.standard_normal((HORIZON, WIDTH)))
    w["learned"] = text.bf16(text.random.standard_normal((2, WIDTH)))
    w["own.W"] = text.bf16(text.random.standard_normal((3, WIDTH, 12)) / numpy.sqrt(WIDTH))
    w["own.b"] = text.bf16(text.random.standard_normal((3, 12)))


def normed(x, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(eps))


def rms(x, eps):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(eps))


def silu(x):
    return x / (1 + numpy.exp(-x))


def gelu(x):
    k = x.dtype.type
    return k(0.5) * x * (1 + numpy.tanh(k(numpy.sqrt(2 / numpy.pi)) * (x + k(0.044715) * x ** 3)))


def gelu_erf(x):
    from math import erf
    return x * numpy.vectorize(lambda y: 0.5 * (1 + erf(y / 2 ** 0.5)))(x).astype(x.dtype)


class Flow:
    """The formulas in one kind of numbers."""

    def __init__(self, w, kind):
        self.w, self.kind = w, kind

    def tensor(self, name):
        return self.w[name].astype(self.kind)

    def linear(self, x, name):
        return x @ self.tensor(name + ".weight").T + self.tensor(name + ".bias")

    def attention(self, x, seen, at, heads=HEADS, kv=KV, d=WIDTH // HEADS):
        n = len(x)
        q = self.linear(x, at + "q").reshape(n, heads, d)
        k, v = (self.linear(seen, at + r).reshape(-1, kv, d).repeat(heads // kv, 1) for r in ("k", "v"))
        if at + "q_norm.weight" in self.w:
            q, k = (rms(y, 1e-5) * self.tensor(at + name) for y, name in ((q, "q_norm.weight"), (k, "k_norm.weight")))
        s = numpy.einsum("qhd,khd->hqk", q, k) * self.kind(d ** -0.5)
        p = numpy.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        return numpy.einsum("hqk,khd->qhd", p, v).reshape(n, -1)

    def layer(self, y, start, seen, time, i):
        at = f"layers.{i}."
        x = self.linear(self.attention(y, seen, at), at + "o") + y
        scale, shift = numpy.split(self.linear(time, at + "scale"), 2)
        y = normed(x, 1e-6) * (1 + scale) + shift
        if i % 2:
            x = normed(y, 1e-5) * self.tensor(at + "norm.weight") + self.tensor(at + "norm.bias")
            return self.linear(silu(self.linear(x, at + "up")), at + "down") + y + start
        x = rms(y, 1e-5) * (1 + self.tensor(at + "norm.weight"))
        gate, up = (x @ self.tensor(at + name + ".weight").T for name in ("gate", "up"))
        x = (silu if i == 2 else gelu)(gate) * up
        return self.linear(x, at + "down") * self.linear(time, at + "share") + y + start

    def velocity(self, x, t, state, seen, other, marks):
        angle = t * 50.0 ** (-numpy.arange(5) / 5)
        tau = numpy.concatenate([numpy.sin(angle), numpy.cos(angle)]).astype(self.kind)
        time = silu(self.linear(tau, "time1")) + self.linear(tau, "time2")
        u = self.linear(x, "enter")
        u = self.linear(numpy.concatenate([u, numpy.tile(tau, (HORIZON, 1))], 1), "mid") + self.tensor("places")
        state = numpy.maximum(self.linear(state, "state"), 0)
        u = u + state
        y = start = numpy.concatenate([self.tensor("learned"), time[None], u, state[None]])
        for i in range(1, LAYERS + 1):
            rows = {1: y, 2: seen[marks], 3: seen[~marks], 4: other}[i]
            y = self.layer(y, start, rows, time, i)
        y = y[3:3 + HORIZON]
        rows = (numpy.maximum(y, 0) + u) @ self.tensor("own.W")[1] + self.tensor("own.b")[1]
        return self.linear(gelu_erf(rows), "leave") + self.linear(y, "late")

    def run(self, hidden, marks, noise, state):
        seen = rms(gelu(self.linear(hidden, "project")), 1e-5)
        for at, heads, kv, d in (("mixed1.", 2, 2, 10), ("mixed2.", 4, 2, 5)):
            seen = seen + self.linear(self.attention(seen, seen, at, heads, kv, d), at + "o")
        other = self.linear(seen, "second")
        x, xs, vs = noise.astype(self.kind), [noise], []
        for s in range(STEPS):
            v = self.velocity(x, s / STEPS, state.astype(self.kind), seen, other, marks)
            x = x + v / self.kind(STEPS)
            xs.append(x)
            vs.append(v)
        return {"x_t": numpy.stack(xs), "v_t": numpy.stack(vs), "actions": x}


def computed(c, w, inputs, kind):
    at = numpy.flatnonzero(inputs["tokens"] == c["picture"])
    rows = numpy.concatenate([picture_tower.rows(c["tower"], w, p, kind) for p in inputs["images"]])
    whole = dict(w, **{"lm_head.weight": numpy.eye(c["width"], dtype=numpy.float32)})
    hidden = text.forward(dict(c, own_head=True), whole, list(inputs["tokens"]), kind, (at, rows))
    return Flow(w, kind).run(hidden, inputs["tokens"] == c["picture"], inputs["noise"], inputs["state"])


def main():
    folder, seed = sys.argv[1], int(sys.argv[2])
    text.random = numpy.random.default_rng([seed, 9])
    c = text.drawn("smolvlm")
    c["tied"], c["own_head"] = True, False
    w = text.weights(c)
    weights(c, w)
    ids, images, _ = text.prompt(c)
    inputs = {"tokens": numpy.array(ids), "images": images,
              "noise": text.random.standard_normal((HORIZON, DIM)).astype(numpy.float32),
              "state": text.random.standard_normal(STATE).astype(numpy.float32)}
    exact, near = (computed(c, w, inputs, kind) for kind in (numpy.float64, numpy.float32))
    bounds = {}
    for name, x in exact.items():
        error = {"max": float(numpy.abs(near[name] - x).max()),
                 "rms": float(numpy.sqrt(((near[name] - x) ** 2).mean()))}
        size = float(numpy.sqrt((x * x).mean()))
        bounds[name] = {"shape": x.shape, "rms": size, "err_fp32": error,
                        "err_bf16": {"max": 2 ** -8 * size, "rms": 2 ** -10 * size}}
    config = text.whole_config(c, text.config(c))
    config.update(model_type="wired", features=FEATURES, width=WIDTH, heads=HEADS, kv_heads=KV, horizon=HORIZON, dim=DIM,
                  state=STATE, steps=STEPS)
    side = {"longest_edge": c["tower"]["side"]}
    files = {"checkpoint/config.json": config, "case.json": {
                 "family": "groot", "kind": "actions", "what": f"a flow of another wiring, seed {seed}",
                 "checkpoint": "checkpoint", "cameras": len(images), "embodiment_id": 1, "n_tokens": len(ids),
                 "tensors": bounds},
             "checkpoint/preprocessor_config.json": {"max_image_size": side, "do_image_splitting": False}}
    os.makedirs(os.path.join(folder, "checkpoint"), exist_ok=True)
    text.write(os.path.join(folder, "checkpoint", "model.safetensors"), w, "BF16")
    text.write(os.path.join(folder, "expected.safetensors"), exact, "F32")
    text.write(os.path.join(folder, "inputs.safetensors"), inputs, {"tokens": "I32"})
    for name, value in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)


if __name__ == "__main__":
    main()

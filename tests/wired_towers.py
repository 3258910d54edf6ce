#!/usr/bin/env python3
"""wired_towers.py - a golden case of tests/flow_models/wired_tower.lua: a picture tower that no shipped model has, in
front of a small text.

usage: tests/wired_towers.py FOLDER SEED

Layers are those of wired_texts.py, drawn and computed as there; but rows of a picture have no order and all see each
other, queries, keys and values may be one tensor, and what a half of a layer gives may have a factor for each column.
"""
import os
import sys

import numpy

import text_models as text
import wired_texts as wired

SHARE = 2 ** -4  # of the standard deviation, in bf16


class Tower(wired.Model):
    """The layers in one kind of numbers."""

    def factored(self, x, name):
        return x * self.tensor(name + ".factor") if self.c["factors"] else x

    def projected(self, x, at):
        if not self.c["fused"]:
            return (self.linear(x, at + r) for r in "qkv")
        q, kv = self.c["heads"] * self.c["dim"], self.c["kv"] * self.c["dim"]
        return numpy.split(self.linear(x, at + "qkv"), [q, q + kv], axis=1)

    def attention(self, x, at, wired):
        c, n = self.c, len(x)
        q, k, v = (y.reshape(n, -1, c["dim"]) for y in self.projected(x, at))
        q, k = self.head_norm(q, at + "q_norm"), self.head_norm(k, at + "k_norm")
        group = c["heads"] // c["kv"]
        s = numpy.einsum("qhgd,khd->hgqk", q.reshape(n, -1, group, c["dim"]), k) * self.kind(c["scale"] or c["dim"] ** -0.5)
        if c["cap"]:
            s = self.kind(c["cap"]) * numpy.tanh(s / self.kind(c["cap"]))
        p = numpy.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        out = numpy.einsum("hgqk,khd->qhgd", p, v).reshape(n, -1)
        return self.factored(self.linear(out, at + "o"), at + "o")

    def feed_forward(self, x, at):
        return self.factored(super().feed_forward(x, at), at + "down")

    def rows(self, x):
        x = self.norm(x, "enter") if self.c["enters"] else x
        for of in self.c["wired"]:
            x = self.layer(x, of)
        return self.norm(x, "leave") if self.c["leaves"] else x


def change(c, w, seed):
    """Another tower: its sizes but the width are drawn anew."""
    def pick(*of):
        return of[text.random.integers(len(of))]

    t = {**wired.drawn(seed), "width": c["tower"]["width"], "fused": bool(pick(True, False)),
         "factors": bool(pick(True, False)), "leaves": bool(pick(True, True, False))}
    for of in t["wired"]:
        of.update(window=None, theta=None)
    own = wired.weights(t)
    for name in [name for name in w if ".encoder." in name or "post_layernorm" in name]:
        del w[name]
    for name in sorted(own):
        at, last = name.rsplit(".", 2)[0], name.rsplit(".", 1)[1]
        if name == "embed.weight" or (name.startswith("leave") and not t["leaves"]):
            continue
        if t["fused"] and name.endswith((".q." + last, ".k." + last, ".v." + last)):
            w[at + ".qkv." + last] = numpy.concatenate([own[f"{at}.{r}.{last}"] for r in "qkv"])
        else:
            w[name] = own[name]
        if t["factors"] and name.endswith((".o.weight", ".down.weight")):
            w[name.replace("weight", "factor")] = text.bf16(text.random.standard_normal(t["width"]) * 0.3 + 0.8)
    c["tower"]["through"] = lambda x, w, kind: Tower(t, w, kind).rows(x)
    c["said"] = {"model_type": "wired_tower", "wired_tower": wired.said_of(t)}
    c["share"] = SHARE


def main():
    folder, seed = sys.argv[1], int(sys.argv[2])
    text.random = numpy.random.default_rng([seed, 78])
    text.case(folder, "smolvlm", seed, lambda c, w: change(c, w, seed))


if __name__ == "__main__":
    main()

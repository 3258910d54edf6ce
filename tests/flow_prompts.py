#!/usr/bin/env python3
"""flow_prompts.py - golden cases of tests/flow_models/over_prompt.lua, a flow over a prompt's keys, in numpy.

usage: tests/flow_prompts.py FOLDER SEED

How the flow is wired is drawn from the seed: its norms and where they stand, how many attentions a layer has, which
layer of the text each reads and which read projections, feed-forward, masks, the rows in front of the actions, the row
behind the prompt, and where the time is read. Text and pictures are those of text_models.py. All
formulas are written down a second time, in their own order.

FOLDER expects float64. The error that is allowed a float32 plan is that of the same code in float32, and a bf16 plan
twice that of the same code in float64 that rounds where such a plan does (doc/numerics.md): matrices, keys, values and
queries. FOLDER.rounded, a case for bf16 plans alone, expects those rounded results. Its matrices are stored unrounded,
so a plan that forgets to round them is seen: what is allowed is a third of what rounding changes. Added is what the
rounding code differs by in float32: sums in float32 may put a value on the other side of a tie, and others follow it.
"""
import json
import os
import sys

import numpy

import flow_models as flow
import picture_tower
import text_models as text

STEPS = 10


def drawn(seed):
    """How the flow is wired: the first seeds show each kind at least once, the others draw."""
    def pick(*of):
        return of[text.random.integers(len(of))]

    reads = ("norms", "beside", "row", "norm")[seed % 4] if seed < 8 else pick("norms", "beside", "row", "norm")
    crossed = bool(seed % 4 in (1, 2) if seed < 8 else pick(True, False))
    behind = bool(seed % 3 == 0 if seed < 8 else pick(True, False))
    norm = "adaptive" if reads == "norms" else pick("rms", "layer")
    kv = int(pick(1, 2))
    f = {"reads": reads, "norm": norm, "behind": behind, "gated": bool(pick(True, False)),
         "activation": str(pick("gelu", "silu")), "offset": float(pick(0, 1)), "text_layers": int(pick(2, 3, 4)),
         "heads": kv * int(pick(1, 2)), "kv": kv, "head_dim": int(pick(8, 12)),
         "width": int(pick(24, 36)), "horizon": int(pick(4, 7)), "dim": int(pick(3, 5)), "state": int(pick(2, 6)),
         "falls": bool(pick(True, False)), "periods": bool(pick(True, False)), "cosines": bool(pick(True, False)),
         "learned": int(pick(0, 0, 2)), "in_front": bool(not behind and pick(True, False)),
         "places": bool(pick(True, False)), "final": bool(pick(True, True, False)), "biased": bool(pick(True, False)),
         "head_norms": bool(not crossed and pick(True, False)), "scaled": bool(reads != "norms" and pick(True, False)),
         "mask": "bidir" if behind else str(pick("bidir", "causal", "causal_all"))}
    f["front"] = f["learned"] + f["in_front"] + (reads == "row")
    f["lead"] = int(pick(0, f["front"], f["front"] + f["horizon"], f["front"] + 2))
    f["wired"] = []
    for i in range(int(pick(2, 3))):
        attentions = [{"at": f"{i}{j}", "of": int(text.random.integers(f["text_layers"])),
                       "crossed": crossed and bool((i + j) % 2)} for j in range(int(pick(1, 1, 2)))]
        kind = ("before", "beside", "behind")[(seed + i) % 3] if seed < 8 else str(pick("before", "beside", "behind"))
        f["wired"].append({"kind": kind, "attentions": attentions})
    return f


def weights(c, f, w):
    """The flow's own tensors."""
    r, width = text.random, f["width"]

    def put(name, *shape, size=1.0, mean=0.0, stored=text.bf16):
        w[name] = stored(r.standard_normal(shape) * size + mean)

    def layer(name, rows, cols):
        put(name + ".weight", rows, cols, size=cols ** -0.5)
        put(name + ".bias", rows, size=0.2)

    q, kv, mlp = f["heads"] * f["head_dim"], f["kv"] * f["head_dim"], 2 * width
    for name, rows, cols in (("time", width, width), ("enter", width, f["dim"]), ("leave", f["dim"], width)):
        layer(name, rows, cols)
    if f["reads"] == "beside":
        layer("mid", width, 2 * width)
    if f["behind"]:
        layer("state1", 12, f["state"])
        layer("state2", c["width"], 12)
    if f["in_front"]:
        layer("state", width, f["state"])
    if f["learned"]:
        put("learned", f["learned"], width)
    if f["places"]:
        put("places", f["horizon"], width)
    for i, layer_ in enumerate(f["wired"]):
        for a in layer_["attentions"]:
            from_ = kv if a["crossed"] else width
            for role, rows, cols in (("q", q, width), ("k", kv, from_), ("v", kv, from_), ("o", width, q)):
                half(f, put, f"expert.{role}.{a['at']}", rows, cols, f["biased"], role == "o")
            for role in ("q_norm", "k_norm") if f["head_norms"] else ():
                put(f"expert.{role}.{a['at']}", f["head_dim"], size=0.3, mean=1 - f["offset"])
            put_norm(f, put, f"expert.norm1.{a['at']}")
        half(f, put, f"expert.up.{i}", mlp, width, not f["gated"])
        if f["gated"]:
            half(f, put, f"expert.gate.{i}", mlp, width, False)
        half(f, put, f"expert.down.{i}", width, mlp, False, True)
        put_norm(f, put, f"expert.norm2.{i}")
    if f["final"]:
        put_norm(f, put, "expert.final")


def half(f, put, name, rows, cols, biased, scaled=False):
    """A matrix, which is not rounded, its bias, and the factor of what a half of a layer gives."""
    put(name, rows, cols, size=cols ** -0.5, stored=numpy.float32)
    if biased:
        put(name + ".bias", rows, size=0.2)
    if scaled and f["scaled"]:
        put(name + ".factor", rows, size=0.3, mean=1)


def put_norm(f, put, name):
    width = f["width"]
    if f["norm"] == "adaptive":
        put(name, 3 * width, width, size=0.5 * width ** -0.5)
        put(name + ".bias", 3 * width, size=0.3)
        return
    put(name, width, size=0.3, mean=1 - f["offset"])
    if f["norm"] == "layer":
        put(name + ".bias", width, size=0.3)


class Model:
    """The formulas in one kind of numbers; `rounds`: with what a bf16 plan rounds, doc/numerics.md."""

    def __init__(self, c, f, w, kind, rounds=False):
        self.c, self.f, self.w, self.kind, self.rounds = c, f, w, kind, rounds

    def tensor(self, name):
        return self.w[name].astype(self.kind)

    def rounded(self, x):
        return text.bf16(x).astype(self.kind) if self.rounds else x

    def queries(self, x, first):
        """Queries that read rounded keys are rounded before they are rotated, and after it."""
        return self.rounded(self.rotated(self.rounded(x), first))

    def keys(self, x, first):
        return self.rounded(self.rotated(x, first))

    def linear(self, x, name):
        return x @ self.tensor(name + ".weight").T + self.tensor(name + ".bias")

    def attend(self, q, k, v, seen):
        """q [n, heads, d] over k, v [m, kv, d]; seen [n, m]."""
        group = q.shape[1] // k.shape[1]
        k, v = (y.repeat(group, 1) for y in (k, v))
        s = numpy.einsum("qhd,khd->hqk", q, k) * self.kind(q.shape[2] ** -0.5)
        s = numpy.where(seen, s, -numpy.inf)
        p = numpy.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        return numpy.einsum("hqk,khd->qhd", p, v).reshape(len(q), -1)

    def rotated(self, x, first):
        half = x.shape[2] // 2
        turn = self.c["theta"] ** (-2.0 * numpy.arange(half) / (2 * half))
        angle = (first + numpy.arange(len(x)))[:, None] * turn
        cos, sin = (part(angle).astype(self.kind)[:, None] for part in (numpy.cos, numpy.sin))
        a, b = x[..., :half], x[..., half:]
        return numpy.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def prompt_mask(self, n, pictures):
        i, j = numpy.arange(n)[:, None], numpy.arange(n)[None]
        if self.f["behind"]:  # the last row sees all, nobody else sees it
            return (j < n - 1) | (i == n - 1)
        if self.f["mask"] == "bidir":
            return numpy.ones((n, n), bool)
        return (j <= i) | ((i < pictures) & (j < pictures) & (self.f["mask"] == "causal"))

    def prompt(self, ids, rows, state):
        """Keys, rotated, and values of every layer of the text: [n, kv, d] each."""
        c, at, kv = self.c, self.c["at"], []
        x = numpy.concatenate([rows, self.tensor(at + "embed_tokens.weight")[ids]])
        if self.f["behind"]:
            row = self.linear(numpy.maximum(self.linear(state, "state1"), 0), "state2")
            x = numpy.concatenate([x, row[None]])
        seen = self.prompt_mask(len(x), len(rows))
        for i in range(c["layers"]):
            l = f"{at}layers.{i}."
            n = flow.rms(x, c["eps"]) * self.tensor(l + "input_layernorm.weight")
            q, k, v = (n @ self.tensor(f"{l}self_attn.{r}_proj.weight").T for r in "qkv")
            q, k, v = (y.reshape(len(x), -1, c["dim"]) for y in (q, k, v))
            q, k, v = self.queries(q, 0), self.keys(k, 0), self.rounded(v)
            kv.append((k, v))
            x = x + self.attend(q, k, v, seen) @ self.tensor(l + "self_attn.o_proj.weight").T
            n = flow.rms(x, c["eps"]) * self.tensor(l + "post_attention_layernorm.weight")
            g, u = (n @ self.tensor(f"{l}mlp.{r}_proj.weight").T for r in ("gate", "up"))
            x = x + (flow.silu(g) * u) @ self.tensor(l + "mlp.down_proj.weight").T
        return kv

    def norm(self, x, name, cond):
        """The normed rows, and the factor of what is made of them."""
        w, f = self.tensor("expert." + name), self.f
        if f["norm"] == "adaptive":
            scale, shift, gate = numpy.split(w @ cond + self.tensor(f"expert.{name}.bias"), 3)
            return flow.rms(x, 1e-5) * (1 + scale) + shift, gate
        if f["norm"] == "rms":
            return flow.rms(x, 1e-5) * (w + self.kind(f["offset"])), 1
        return flow.normed(x, 1e-5) * (w + self.kind(f["offset"])) + self.tensor(f"expert.{name}.bias"), 1

    def project(self, x, role, at, rounded=True):
        name = f"expert.{role}.{at}"
        y = x @ (self.rounded(self.tensor(name)) if rounded else self.tensor(name)).T
        y = y + self.tensor(name + ".bias") if name + ".bias" in self.w else y
        return y * self.tensor(name + ".factor") if name + ".factor" in self.w else y

    def head_norm(self, x, role, at):
        if not self.f["head_norms"]:
            return x
        return flow.rms(x, 1e-5) * (self.tensor(f"expert.{role}.{at}") + self.kind(self.f["offset"]))

    def attention(self, x, kv, wired):
        """What rows gather of a text's layer, and of their own keys or of none."""
        f, n, at = self.f, len(x), wired["at"]
        k, v = kv[wired["of"]]
        before = len(k)
        q = self.project(x, "q", at).reshape(n, f["heads"], -1)
        if wired["crossed"]:
            k, v = (self.project(m.reshape(before, -1), r, at, False).reshape(before, f["kv"], -1)
                    for m, r in ((k, "k"), (v, "v")))
            y = self.attend(self.rotated(q, 0), k, v, numpy.ones((n, before), bool))
        else:
            own, values = (self.project(x, r, at).reshape(n, f["kv"], -1) for r in "kv")
            q, own = self.head_norm(q, "q_norm", at), self.head_norm(own, "k_norm", at)
            q, own, values = self.queries(q, before), self.keys(own, before), self.rounded(values)
            r, s = numpy.arange(n)[:, None], numpy.arange(n)[None]
            seen = numpy.concatenate([numpy.ones((n, before), bool), (s <= r) | (r >= f["lead"])], 1)
            y = self.attend(q, numpy.concatenate([k, own]), numpy.concatenate([v, values]), seen)
        return self.project(y, "o", at)

    def feed_forward(self, x, i):
        act = flow.gelu if self.f["activation"] == "gelu" else flow.silu
        u = self.project(x, "up", i)
        u = act(self.project(x, "gate", i)) * u if self.f["gated"] else act(u)
        return self.project(u, "down", i)

    def layer(self, x, i, kv, cond):
        wired, start = self.f["wired"][i], x
        for a in wired["attentions"]:
            if wired["kind"] == "behind":
                x, _ = self.norm(x + self.attention(x, kv, a), f"norm1.{a['at']}", cond)
            else:
                y, gate = self.norm(start if wired["kind"] == "beside" else x, f"norm1.{a['at']}", cond)
                x = x + gate * self.attention(y, kv, a)
        if wired["kind"] == "behind":
            return self.norm(x + self.feed_forward(x, i), f"norm2.{i}", cond)[0]
        y, gate = self.norm(start if wired["kind"] == "beside" else x, f"norm2.{i}", cond)
        return x + gate * self.feed_forward(y, i)

    def waves(self, t):
        n = self.f["width"] // 2
        i = numpy.arange(n)
        angle = t * 40.0 ** (-i / n)
        if self.f["periods"]:
            angle = 2 * numpy.pi * t / (0.05 * 60.0 ** (i / (n - 1)))
        parts = [numpy.sin(angle), numpy.cos(angle)]
        return numpy.concatenate(parts[::-1] if self.f["cosines"] else parts).astype(self.kind)

    def velocity(self, x, t, kv, state):
        f = self.f
        time = flow.gelu(self.linear(self.waves(t), "time"))
        rows = [self.tensor("learned")] if f["learned"] else []
        rows += [self.linear(state, "state")[None]] if f["in_front"] else []
        y = self.linear(x, "enter")
        if f["reads"] == "beside":
            y = self.linear(numpy.concatenate([y, numpy.tile(time, (len(y), 1))], 1), "mid")
        elif f["reads"] == "row":
            rows.append(time[None])
        elif f["reads"] == "norm":
            y = flow.normed(y, 1e-5) * (1 + time)
        y = numpy.concatenate(rows + [y + self.tensor("places") if f["places"] else y])
        for i in range(len(f["wired"])):
            y = self.layer(y, i, kv, time)
        if f["final"]:
            y, _ = self.norm(y, "final", time)
        return self.linear(y[-f["horizon"]:], "leave")

    def run(self, inputs, noise):
        state = inputs["state"].astype(self.kind)
        pictures = [picture_tower.rows(self.c["tower"], self.w, p, self.kind) for p in inputs["pictures"]]
        kv = self.prompt(inputs["ids"], numpy.concatenate(pictures), state)
        x, xs, vs = noise.astype(self.kind), [noise], []
        for s in range(STEPS):
            t = 1 - s / STEPS if self.f["falls"] else s / STEPS
            v = self.velocity(x, t, kv, state)
            x = x + v * self.kind((-1 if self.f["falls"] else 1) / STEPS)
            xs.append(x)
            vs.append(v)
        return {"x_t": numpy.stack(xs), "v_t": numpy.stack(vs), "actions": x}


def error(x, exact):
    e = numpy.abs(x - exact)
    return {"max": float(e.max()), "rms": float(numpy.sqrt((e * e).mean()))}


def main():
    folder, seed = sys.argv[1].rstrip("/"), int(sys.argv[2])
    text.random = numpy.random.default_rng([seed, 17])
    c, f = text.drawn("smolvlm"), drawn(seed)
    c.update(tied=True, own_head=False, layers=f["text_layers"], heads=f["heads"], kv=f["kv"], dim=f["head_dim"])
    w = text.weights(c)
    weights(c, f, w)
    side, n = c["tower"]["side"], c["pictures"]
    inputs = {"ids": text.random.integers(0, c["vocab"], 7),
              "pictures": text.random.integers(0, 256, (n, side, side, 3)).astype(numpy.uint8),
              "state": text.random.standard_normal(f["state"]).astype(numpy.float32)}
    noise = text.random.standard_normal((f["horizon"], f["dim"])).astype(numpy.float32)
    exact, near, rounded, ties = (Model(c, f, w, kind, rounds).run(inputs, noise) for rounds in (False, True)
                                  for kind in (numpy.float64, numpy.float32))
    bounds, of_rounded = {}, {}
    for name, x in exact.items():
        changes, by_ties = error(rounded[name], x), error(ties[name], rounded[name])
        bounds[name] = {"shape": x.shape, "rms": float(numpy.sqrt((x * x).mean())), "err_fp32": error(near[name], x),
                        "err_bf16": {of: 2 * e for of, e in changes.items()}}
        of_rounded[name] = {**bounds[name], "err_bf16": {of: e / 3 + by_ties[of] for of, e in changes.items()}}
    f["slots"] = [f"slot{i}" for i in range(n)]
    stored = {"tokens": inputs["ids"], "token_mask": numpy.ones(len(inputs["ids"]), numpy.uint8),
              "noise": noise, "state": inputs["state"]}
    kinds = {"tokens": "I32", "token_mask": "BOOL"}
    for i, slot in enumerate(f["slots"]):
        stored["image." + slot], stored["image_mask." + slot] = inputs["pictures"][i], numpy.ones(1, numpy.uint8)
        kinds["image_mask." + slot] = "BOOL"
    config = text.whole_config(c, text.config(c))
    config.update(model_type="over_prompt", flow=f)
    case = {"family": "pi", "kind": "actions", "what": f"a flow over a prompt, seed {seed}",
            "checkpoint": "checkpoint", "config": {"max_token_len": 16}, "tensors": bounds}
    case = {"family": "pi", "kind": "actions", "what": f"a flow over a prompt, seed {seed}",
            "checkpoint": "checkpoint", "config": {"max_token_len": 16}, "tensors": bounds}
    of_bf16 = {**case, "checkpoint": f"../{os.path.basename(folder)}/checkpoint", "tensors": of_rounded}
    sizes = {"max_image_size": {"longest_edge": side}, "do_image_splitting": False}
    checkpoint = os.path.join(folder, "checkpoint")
    for path, files in ((checkpoint, {"config": config, "preprocessor_config": sizes}), (folder, {"case": case}),
                        (folder + ".rounded", {"case": of_bf16})):
        os.makedirs(path, exist_ok=True)
        for name, value in files.items():
            with open(os.path.join(path, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(value, file, indent=1)
    stored_as = {name: "BF16" for name, x in w.items() if (text.bf16(x) == x).all()}
    text.write(os.path.join(checkpoint, "model.safetensors"), w, stored_as)
    for path, expected in ((folder, exact), (folder + ".rounded", rounded)):
        text.write(os.path.join(path, "expected.safetensors"), expected, "F32")
        text.write(os.path.join(path, "inputs.safetensors"), stored, kinds)


main()

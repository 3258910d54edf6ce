"""bench_torch.py - the peer of `tectum bench` on the CPU: PyTorch running the same pi0 / pi0.5 model.

Prints one JSON line per measurement: {what, p50_ms, p99_ms, max_ms, n, dtype, threads, torch, ...}.
`what`: vision (all cameras), prefill (images and prompt), action (all steps), frame (the three together,
actions only) and decode (one token for a batch of sequences, with KV cache). Examples:

  tools/measure/bench_torch.sh --size small --frames 50
  tools/measure/bench_torch.sh --size full --padded --frames 5            as openpi pads: 3 cameras, 200 tokens
  tools/measure/bench_torch.sh --size full --frames 5 --decode 20 --batch 4
  tools/measure/bench_torch.sh --check tests/golden/pi/pi05_tiny          is it the same model? exit code 0 or 1
  tools/measure/bench_torch.sh --bandwidth 4                              reads 4 GiB: the machine's rate
"""
import argparse
import json
import math
import pathlib
import resource
import sys
import time

import torch

import bench_torch_model as peer

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
SLOTS = ("base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb")


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=("pi05", "pi0"), default="pi05")
    p.add_argument("--size", choices=tuple(peer.SIZES), default="small")
    p.add_argument("--dtype", choices=("auto", "bf16", "f32"), default="auto",
                   help="auto: measured on a layer of each stack; the fastest with its attention is taken")
    p.add_argument("--attention", choices=("auto", "sdpa", "plain"), default="auto",
                   help="torch's scaled_dot_product_attention, or two products and a softmax")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--valid", type=int, default=2, metavar="N", help="cameras with a picture (1 to 3)")
    p.add_argument("--prompt", type=int, default=20, metavar="N", help="tokens of the prompt")
    p.add_argument("--padded", action="store_true",
                   help="compute 3 camera slots and 200 (pi0: 48) tokens and mask the rest, as openpi does")
    p.add_argument("--horizon", type=int, default=50, metavar="H", help="actions of a chunk")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--frames", type=int, default=20)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--shortcuts", action="store_true",
                   help="exact savings openpi does not make: adaptive norms tabulated, last prefix layer k and v only")
    p.add_argument("--compile", action="store_true", help="torch.compile with frozen (packed) weights")
    p.add_argument("--decode", type=int, default=0, metavar="K", help="tokens to decode after a prefill")
    p.add_argument("--batch", type=int, default=1, metavar="B", help="sequences of a second decode measurement")
    p.add_argument("--bandwidth", type=float, default=0, metavar="GIB", help="only measure reads of GIB bytes")
    p.add_argument("--check", metavar="CASE", action="append", help="only compare with a golden case, in float32")
    o = p.parse_args()
    limit = peer.MAX_TOKENS[o.model] if o.padded else 4096
    if not (1 <= o.valid <= 3 and 1 <= o.prompt <= limit and min(o.steps, o.frames, o.batch, o.horizon) >= 1):
        p.error(f"--valid is 1 to 3, --prompt 1 to {limit}, --steps, --frames, --batch and --horizon at least 1")
    return o


def report(what, seconds, **more):
    ms = sorted(1e3 * s for s in seconds)
    rank = lambda q: round(ms[math.ceil(q * len(ms)) - 1], 3)
    print(json.dumps({"what": what, "p50_ms": rank(0.5), "p99_ms": rank(0.99), "max_ms": rank(1), "n": len(ms),
                      **more, "threads": torch.get_num_threads(), "torch": torch.__version__}), flush=True)


def timed(run, n, warmup=1):
    for _ in range(warmup):
        run()
    out = []
    for _ in range(n):
        start = time.perf_counter()
        run()
        out.append(time.perf_counter() - start)
    return out


class Frame:
    """One observation with its caches; `valid` is None when no row is padded."""

    def __init__(self, model, images, ids, noise, state, valid=None, room=0):
        self.model, self.images, self.ids, self.noise, self.state = model, images, ids, noise, state
        v = model.g["vision"]
        self.rows = len(images) * (v["image_size"] // v["patch_size"]) ** 2 + len(ids)
        self.valid = None if valid is None or bool(valid.all()) else valid
        self.caches = model.new_caches(1, self.rows + max(model.suffix_rows(), room))

    def prefix(self, text):
        return self.model.prefill(self.model.encode(self.images), self.ids, self.valid, self.caches, text)

    def run(self, steps):
        """-> actions, [seconds of vision, prefill, action, all]"""
        t = [time.perf_counter()]
        e = self.model.encode(self.images)
        t.append(time.perf_counter())
        self.model.prefill(e, self.ids, self.valid, self.caches, False)
        t.append(time.perf_counter())
        x = self.model.sample(self.caches, self.rows, self.valid, self.noise, self.state, steps)
        t.append(time.perf_counter())
        return x, [b - a for a, b in zip(t, t[1:])] + [t[-1] - t[0]]

    def decode(self, hidden, tokens, batch):
        """Greedy text for `batch` copies of this prefix. -> logits [tokens][B, vocab], seconds of each step"""
        caches = [tuple(c.repeat(batch, 1, 1, 1) for c in pair) for pair in self.caches]
        first = self.rows if self.valid is None else int(self.valid.sum())
        valid = None if self.valid is None else torch.cat([self.valid, torch.ones(tokens, dtype=torch.bool)])
        logits, seconds = [self.model.head(hidden[:, -1]).repeat(batch, 1)], []
        for i in range(tokens - 1):
            start = time.perf_counter()
            logits.append(self.model.decode(logits[-1].argmax(1), first + i, caches, self.rows + i, valid))
            seconds.append(time.perf_counter() - start)
        return logits, seconds


def synthetic(o, model):
    """Random inputs; with --padded the empty slots and tokens are there and masked."""
    size, patch = (model.g["vision"][k] for k in ("image_size", "patch_size"))
    per, vocab = (size // patch) ** 2, model.g["text"]["vocab_size"]
    cameras, tokens = (3, peer.MAX_TOKENS[o.model]) if o.padded else (o.valid, o.prompt)
    rand = torch.Generator().manual_seed(2)
    images = torch.randint(0, 256, (cameras, size, size, 3), dtype=torch.uint8, generator=rand)
    ids = torch.randint(3, vocab, (tokens,), generator=rand)
    valid = torch.cat([torch.arange(cameras * per) < o.valid * per, torch.arange(tokens) < o.prompt])
    noise = torch.randn(1, o.horizon, model.action_dim, generator=rand)
    return Frame(model, images, ids, noise, torch.rand(1, model.action_dim, generator=rand), valid, o.decode)


def estimate(o, dtype, attention):
    """Seconds of one layer of each stack at this frame's number of rows -> {stack: seconds}, seconds of a frame."""
    g, best, total = peer.SIZES[o.size], {}, 0.0
    tokens, d = (g["vision"]["image_size"] // g["vision"]["patch_size"]) ** 2, g["text"]["head_dim"]
    n = 3 * tokens + peer.MAX_TOKENS[o.model] if o.padded else o.valid * tokens + o.prompt
    cache = [torch.zeros(1, g["text"]["num_kv_heads"], n + o.horizon, d, dtype=dtype) for _ in range(2)]
    pictures = 3 if o.padded else o.valid
    parts = (("vision", peer.VisionLayer(g["vision"]), (pictures, tokens, g["vision"]["hidden_size"])),
             ("text", peer.Layer(g["text"], False), (1, n, g["text"]["width"])),
             ("expert", peer.Layer(g["expert"], False), (1, o.horizon, g["expert"]["width"])))
    for part, layer, shape in parts:
        layer, x = layer.to(dtype), torch.randn(shape).to(dtype)
        peer.set_attention(layer, attention)
        at = n if part == "expert" else 0
        rope = peer.rope_table(at + torch.arange(shape[1]), d, dtype)
        run = (lambda: layer(x)) if part == "vision" else (lambda: layer(x, rope, cache, at, None))
        best[part] = min(timed(run, 3))
        depth = g[part]["num_layers" if part == "vision" else "depth"]
        total += best[part] * depth * (o.steps if part == "expert" else 1)
    return best, total


def choose(o):
    """-> the dtype and the attention that were asked for, or the fastest of those left open."""
    dtypes = list(DTYPES) if o.dtype == "auto" else [o.dtype]
    attentions = ["sdpa", "plain"] if o.attention == "auto" else [o.attention]
    cost = {(d, a): math.inf for d in dtypes for a in attentions}
    for dtype, attention in cost if len(cost) > 1 else ():
        best, cost[dtype, attention] = estimate(o, DTYPES[dtype], attention)
        print(json.dumps({"what": "choice", "dtype": dtype, "attention": attention,
                          "frame_estimate_ms": round(1e3 * cost[dtype, attention], 3),
                          **{f"{k}_layer_ms": round(1e3 * v, 3) for k, v in best.items()}}), flush=True)
    return min(cost, key=cost.get)


def bench(o):
    dtype, attention = choose(o)
    model = peer.random_model(o.model, o.size, o.horizon, DTYPES[dtype], o.shortcuts)
    peer.set_attention(model, attention)
    if o.shortcuts and model.adaptive:
        model.tabulate(o.steps)
    if o.compile:
        torch._inductor.config.freezing = True
        for f in ("encode", "prefill", "velocity", "decode"):
            setattr(model, f, torch.compile(getattr(model, f)))
    frame = synthetic(o, model)
    tags = dict(dtype=dtype, attention=attention, model=o.model, size=o.size, padded=o.padded,
                shortcuts=o.shortcuts, compiled=o.compile, prefix_rows=frame.rows, horizon=o.horizon, steps=o.steps)
    times = []
    for i in range(o.warmup + o.frames):
        actions, t = frame.run(o.steps)
        times += [t] if i >= o.warmup else []
    if not bool(actions.isfinite().all()):
        sys.exit("bench_torch: the actions are not finite, so the times mean nothing")
    for what, t in zip(("vision", "prefill", "action", "frame"), zip(*times)):
        report(what, t, **tags)
    if o.decode:
        hidden = frame.prefix(True)
        for batch in sorted({1, o.batch}):
            frame.decode(hidden, min(o.decode, 3), batch)
            report("decode", frame.decode(hidden, o.decode + 1, batch)[1], batch=batch, **tags)
    print(json.dumps({"what": "memory", "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                      "weights_mb": sum(p.numel() * p.element_size() for p in model.parameters()) >> 20}))


def bandwidth(gib):
    """Best of five reads of one buffer by reductions; torch's bf16 sum also converts, so the others are plainer."""
    import numpy
    count = int(gib * (1 << 30)) // 8
    words = torch.ones(count, dtype=torch.int64)
    array = words.numpy()
    for what, run in (("torch sum bf16", lambda: words.view(torch.bfloat16).sum()),
                      ("torch sum f32", lambda: words.view(torch.float32).sum()),
                      ("torch max i64", lambda: words.max()),
                      ("numpy sum i64, one thread", lambda: numpy.add.reduce(array))):
        best = min(timed(run, 5))
        print(json.dumps({"what": "bandwidth", "how": what, "bytes": count * 8, "best_ms": round(1e3 * best, 3),
                          "gb_s": round(count * 8 / best / 1e9, 2), "threads": torch.get_num_threads()}), flush=True)


def golden_frame(model, inputs, prefix, padded, room=0):
    cameras = [bool(inputs[f"{prefix}image_mask.{s}"]) for s in SLOTS]
    tokens = inputs[f"{prefix}token_mask"].bool()
    images = torch.stack([inputs[f"{prefix}image.{s}"] for s in SLOTS])
    ids = inputs[f"{prefix}tokens"].long()
    v = model.g["vision"]
    per = torch.tensor(cameras).repeat_interleave((v["image_size"] // v["patch_size"]) ** 2)
    valid = torch.cat([per, tokens])
    if not padded:
        images, ids, valid = images[torch.tensor(cameras)], ids[tokens], None
    return Frame(model, images, ids, inputs[f"{prefix}noise"][None], inputs[f"{prefix}state"][None], valid, room)


def verdict(case, name, got, want, limit):
    worst = float((got - want).abs().max())
    ok = worst <= limit
    print(json.dumps({"what": "check", "case": case, "tensor": name, "max_error": float(f"{worst:.3g}"),
                      "limit": float(f"{limit:.3g}"), "ok": ok}), flush=True)
    return ok


def check(path):
    """Golden case of actions, or of text (`*_lang`, the released mask): padded and not, with shortcuts and without."""
    from safetensors.torch import load_file
    path = pathlib.Path(path)
    case = json.loads((path / "case.json").read_text())
    inputs, expected = (load_file(str(path / f"{n}.safetensors")) for n in ("inputs", "expected"))
    lang, ok = case["kind"] == "language", True
    limit = lambda tensor: 4 * case["tensors"][tensor]["err_fp32"]["max"]
    for padded, shortcuts, attention in ((False, False, "sdpa"), (True, False, "sdpa"), (True, False, "plain"),
                                         (False, True, "plain")):
        model = peer.load_model(path / case["checkpoint"], torch.float32, shortcuts)
        peer.set_attention(model, attention)
        how = f"{'padded' if padded else 'valid rows'} {attention} {'shortcuts ' if shortcuts else ''}"
        for steps, tensor in (() if lang else ((10, "actions"), (3, "s3.actions"))):
            if shortcuts and model.adaptive:
                model.tabulate(steps)
            got = golden_frame(model, inputs, "", padded).run(steps)[0][0]
            ok &= verdict(path.name, how + tensor, got, expected[tensor], limit(tensor))
        for request in case["requests"] if lang else ():
            count = case["n_tokens"]
            frame = golden_frame(model, inputs, request + ".", padded, count)
            logits = frame.decode(frame.prefix(True), count, 2)[0]
            for row in range(2):
                got, tensor = torch.stack([l[row] for l in logits]), f"{request}.bidir.logits"
                ok &= verdict(path.name, f"{how}row {row} {tensor}", got, expected[tensor], limit(tensor))
    return ok


def main():
    o = options()
    torch.set_num_threads(o.threads)
    with torch.inference_mode():
        if o.check:
            return 0 if all([check(c) for c in o.check]) else 1
        if o.bandwidth:
            bandwidth(o.bandwidth)
        else:
            bench(o)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""bench_gemms.py - what PyTorch and cuBLASLt take for the same layers on the same GPU, as JSON lines.

    python3 tools/measure/bench_gemms.py [--device cuda|cpu] [--layers tests/kernels/bench_layers.def] [--seconds 60]

{"ceiling": ...}: a device-to-device copy (bytes read and written) and an 8192 x 8192 x 8192 bf16 product.
{"layer": ...}: each bf16 GEMM of the list, started one by one (`eager_us`) and as one CUDA graph (`graph_us`);
weights rotate through more memory than the caches hold. torch's matmul is cuBLASLt or cuBLAS, as it chooses.
{"expert": ...}: all GEMMs of ten steps of the action expert in one CUDA graph, without anything between them.
Without PyTorch, or without a device for it, one line says so and the exit code is 3.
"""
import argparse
import importlib.util
import json
import pathlib
import re
import sys
import time


def say(**what):
    print(json.dumps(what), flush=True)


def options():
    here = pathlib.Path(__file__).resolve().parent.parent.parent
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    p.add_argument("--layers", default=str(here / "tests/kernels/bench_layers.def"))
    p.add_argument("--seconds", type=float, default=60, help="begin nothing new after this long")
    return p.parse_args()


def gemms(path):
    line = re.compile(r'^LAYER\(gemm_bf16, "([^"]+)", (\d+), (\d+), (\d+), (\d+),')
    found = (line.match(text) for text in pathlib.Path(path).read_text().splitlines())
    return [(m[1], *map(int, m.groups()[1:])) for m in found if m]


class Timer:
    def __init__(self, torch, device):
        self.torch, self.cuda = torch, device == "cuda"

    def seconds(self, run):
        if not self.cuda:
            start = time.perf_counter()
            run()
            return time.perf_counter() - start
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def best(self, run, times=5):
        run()
        return min(self.seconds(run) for _ in range(times))

    def graph(self, run):
        """The same work as one CUDA graph; None where there are none."""
        if not self.cuda:
            return None
        side = self.torch.cuda.Stream()
        side.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(side):
            run()
        self.torch.cuda.current_stream().wait_stream(side)
        g = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(g):
            run()
        return g.replay


def ceilings(torch, t, device):
    small = device == "cpu"
    size, n = (1 << 22 if small else 1 << 30), (256 if small else 8192)
    a, b = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))
    copy = t.best(lambda: a.copy_(b))
    x, w = (torch.randn(n, n, dtype=torch.bfloat16, device=device) for _ in range(2))
    y = torch.empty(n, n, dtype=torch.bfloat16, device=device)
    product = t.best(lambda: torch.mm(x, w, out=y))
    say(ceiling={"copy_gb_s": round(2 * size / copy / 1e9, 1), "bf16_tflop_s": round(2 * n**3 / product / 1e12, 2),
                 "n": n, "from": "torch"})


def rotating(torch, device, rows, k, n, repeats):
    """`repeats` products of one input with weights that no cache holds any more."""
    pool = (1 << 24) if device == "cpu" else (1 << 30)
    copies = max(1, min(repeats, pool // (2 * k * n)))
    weights = [torch.randn(n, k, dtype=torch.bfloat16, device=device) for _ in range(copies)]
    x = torch.randn(rows, k, dtype=torch.bfloat16, device=device)
    y = torch.empty(rows, n, dtype=torch.bfloat16, device=device)

    def run():
        for i in range(repeats):
            torch.mm(x, weights[i % copies].t(), out=y)
    return run


def layer(torch, t, device, name, rows, k, n):
    repeats = 2 if device == "cpu" else 20
    run = rotating(torch, device, rows, k, n, repeats)
    eager = t.best(run, 3) / repeats
    replay = t.graph(run)
    captured = t.best(replay, 3) / repeats if replay else None
    best = min(eager, captured or eager)
    say(layer=name, kernel="gemm_bf16", rows=rows, k=k, n=n, eager_us=round(1e6 * eager, 2),
        graph_us=round(1e6 * captured, 2) if captured else None, tflop_s=round(2e-12 * rows * k * n / best, 2),
        gb_s=round(1e-9 * 2 * (k * n + rows * (k + n)) / best, 1))


def expert(torch, t, device, steps=10, layers=18, rows=51):
    if device == "cpu":
        steps, layers = 1, 1
    shapes = [(1024, 2560), (2048, 1024), (1024, 8192), (4096, 1024)]
    weights = [[torch.randn(n, k, dtype=torch.bfloat16, device=device) for k, n in shapes] for _ in range(layers)]
    xs = [torch.randn(rows, k, dtype=torch.bfloat16, device=device) for k, _ in shapes]
    ys = [torch.empty(rows, n, dtype=torch.bfloat16, device=device) for _, n in shapes]

    def run():
        for _ in range(steps):
            for of_layer in weights:
                for x, w, y in zip(xs, of_layer, ys):
                    torch.mm(x, w.t(), out=y)
    replay = t.graph(run)
    say(expert="products alone", steps=steps, layers=layers, rows=rows, ms=round(1e3 * t.best(replay or run), 3),
        graph=replay is not None)


def main():
    o = options()
    began = time.monotonic()
    try:
        import torch
    except ImportError as why:
        say(missing="PyTorch", why=str(why))
        return 3
    if o.device == "cuda" and not torch.cuda.is_available():
        say(missing="a CUDA device for PyTorch", torch=torch.__version__)
        return 3
    say(torch=torch.__version__, cuda=torch.version.cuda,
        device=torch.cuda.get_device_name() if o.device == "cuda" else "cpu")
    for other in ("realtime_vla", "transformers"):
        if importlib.util.find_spec(other) is None:
            say(missing=other)
        else:
            say(found=other, note="importable; not run: its weights and models are not here")
    t = Timer(torch, o.device)
    torch.set_grad_enabled(False)
    todo = [lambda: ceilings(torch, t, o.device), lambda: expert(torch, t, o.device)]
    for name, _, rows, k, n in gemms(o.layers):
        if o.device == "cpu":
            n = min(n, 4096)
        todo.append(lambda a=(name, rows, k, n): layer(torch, t, o.device, *a))
    failed = 0
    for run in todo:
        if time.monotonic() - began > o.seconds:
            say(stopped=f"after {o.seconds:g} s")
            break
        try:
            run()
        except RuntimeError as why:  # out of memory is one
            failed += 1
            say(error=str(why).splitlines()[0])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

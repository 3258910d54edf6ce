"""row_text.py - a text model of Gemma-2B's shape: 532 tokens read, and a token for one request and for eight; llama.cpp."""
import json
import subprocess

import numpy as np

from profiled import Profiled
from row import Row
from turns import nice

HEAD = 256000 * 2048  # weights of the embedding, which is the head, too: of llama.cpp's files it is bf16, Q8_0, and Q6_K in those of Q4_0
PREFILL = {"bf16": [1.3, 2.0], "int8": [1.5, 2.0], "int4": None}
LESS = {None: 1, "int8": 2, "int4": 32 / 9}  # of a layer's bytes with bf16 weights
KINDS = ((None, "bf16"), ("int8", "Q8_0"), ("int4", "Q4_0"))


class Text:
    """The model's folder and what both programs are told about it."""

    def __init__(self, setup):
        self.setup, llama = setup, setup.llama()
        self.folder = setup.make(setup.work / f"text_{setup.layers}", "text_model.py", llama / "vendor/llama.cpp/gguf-py", setup.layers)
        self.lib = setup.work / "native" / "bin"
        self.env = {"LLAMA_CPP_LIB_PATH": str(self.lib), "PYTHONPATH": str(llama), "LD_LIBRARY_PATH": str(self.lib)}
        self.base = [str(setup.root / "tools/measure/peers/text.lua"), "--weights", str(self.folder), "--tokenizer",
                     str(setup.root / "pipelines/checkpoints/metaworld/tokenizer.model"), "--threads", str(setup.threads)]
        self.what = f"Gemma-2B's shape, {setup.layers} of 18 layers"

    def run(self, *command, **more):
        return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True,
                              preexec_fn=lambda: nice(self.setup.priority), **more).stdout

    def as_set(self, quantize, rounds=None):
        few = ["--set", f"model.quantize={quantize}", "--set", "model.quantize_head=int8"] if quantize else []
        return few + (["--set", f"model.round={rounds}"] if rounds else [])

    def packed(self, quantize, rounds=None):
        """The weights as a file that is mapped, so that a turn begins at once; a short prompt; tectum's greedy tokens behind it."""
        self.run(self.setup.program, "pack", *self.base[:-2], *self.as_set(quantize, rounds))
        dump, out = self.folder / "dump.safetensors", self.folder / "prompt.npy"
        said = self.run(self.setup.program, "run", *self.base, *self.as_set(quantize, rounds), "--random-inputs", "1", "-n", "1", "--drain",
                        "--format", "json", "--dump", dump, "--set", "nodes.answer.max_tokens=4")
        from safetensors.numpy import load_file
        found = load_file(str(dump))
        np.save(out, found["prompt_ids"][0][:found["prompt_tokens"][0]])
        return np.array([[t for line in said.splitlines() for part in json.loads(line).get("text", {}).get("answer", [])
                          for t in part["tokens"]]])

    def gguf(self, kind):
        path = self.folder / f"model_{kind}.gguf"
        if not path.exists():
            self.run(self.setup.python, "-c", "import ctypes, sys, llama_cpp as l; p = l.llama_model_quantize_default_params(); "
                     f"p.ftype = l.LLAMA_FTYPE_MOSTLY_{kind.upper()}; sys.exit(l.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), "
                     "ctypes.byref(p)))", self.folder / "model_bf16.gguf", path, env=self.env)
        return path

    def row(self, name, what, quantize, kind, batch, goal, more=None, rounds=None):
        """batch 0: the prompt until its first token. llama.cpp makes logits with the prompt; tectum's first decode launch does that. Both choose.
        rounds: model.round; "bf16": what products read is rounded to bf16, as llama.cpp does with bf16 weights."""
        tokens = self.packed(quantize, rounds)
        ours = Profiled([str(self.setup.program), "profile", *self.base, *self.as_set(quantize, rounds)],
                        lambda v: v["point"].get("batch", 0) == batch or (batch == 0 and v["point"].get("batch") == 1),
                        {"dtype": (f"{quantize}, head int8" if quantize else "bf16") + (f", round {rounds}" if rounds else "")},
                        self.setup.priority)
        peer = self.setup.side(f"llama.cpp, {kind}", "work_llama.py", self.gguf(kind.lower()), self.folder / "prompt.npy", self.setup.threads,
                               batch, env=self.env)
        return Row(name, f"{self.what}: {what}", ours, [peer], {peer.name: goal}, frames=3, compare=None if quantize else 0.5, results=lambda: tokens,
                   apart=lambda a, b: float(np.mean(a != b)), more=more)


def of_read_bandwidth(read, found):
    """What part of the bandwidth a token's bytes took; nothing where that was not measured with as many threads."""
    if found["before"]["lanes"] != found["threads"]:
        return {}
    return {"of_read_bandwidth": round(read / (1e6 * found["ours"]["p50_ms"]) / found["before"]["read_gb_s"], 3)}


def prefill(setup):
    text = Text(setup)
    for quantize, kind in KINDS:
        yield text.row(f"prefill_{quantize or 'bf16'}", "532 tokens to the first", quantize, kind, 0, PREFILL[quantize or "bf16"])
    yield text.row("prefill_bf16_round", "532 tokens to the first, activations rounded", None, "bf16", 0, PREFILL["bf16"], rounds="bf16")
    yield text.row("prefill_bf16_two_terms", "532 tokens to the first, activations in two terms", None, "bf16", 0, PREFILL["bf16"], rounds="bf16x2")
    yield text.row("prefill_int8_round", "532 tokens to the first, activations in 8 bits", "int8", "Q8_0", 0, PREFILL["int8"], rounds="int8")


def decode(setup):
    text = Text(setup)
    for quantize, kind in KINDS:
        read = HEAD * (1 if quantize else 2) + ((text.folder / "model.safetensors").stat().st_size - 2 * HEAD) / LESS[quantize]

        def share(_, found, read=read):
            return of_read_bandwidth(read, found)

        def gain(row, found):
            others = row.ours.others
            return {"tokens_of_8_over_1": round(8 * others["answer", 1] / others["answer", 8], 2)}
        yield text.row(f"decode_1_{quantize or 'bf16'}", "a token, 1 request", quantize, kind, 1, None, share)
        yield text.row(f"decode_8_{quantize or 'bf16'}", "a token each, 8 requests", quantize, kind, 8, None, gain)

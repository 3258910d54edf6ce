"""text_cases.py - cases of golden/text's form with random geometries, made with transformers and judged by `verify`.

python3 tests/text_cases.py PROGRAM [--cases N] [--first SEED] [--family NAME] [--keep FOLDER]

Each case is a text model of a family with random sizes, heads, windows, rope, caps, biases and weights in bf16, saved
by transformers; what it must give is computed by transformers in float64. Both dtypes are judged. Needs transformers 5
and PyTorch (`pip install transformers torch`); prints TAP. Not among the tests of a change: PyTorch is 4 GB.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import tokenizers
import torch
import transformers
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden/text"
STEPS = 24  # tokens that are generated
FAR = 300  # where the far positions begin
VOCABULARY = 384  # of the tokenizers of golden/text
WORDS = ["open", "the", "drawer", "and", "put", "red", "block", "into", "it", "A", "é", "123", "\n", "cube;", "green?", "arm's"]
DTYPES = (torch.float64, torch.float32, torch.bfloat16)


def plain(theta):
    return {"rope_type": "default", "rope_theta": theta}


def sizes(r):
    """What all families have; the width is a multiple of the heads, which some configurations want."""
    kv = r.choice([1, 2, 3])
    heads = kv * r.choice([1, 2, 3, 4])
    return {"num_hidden_layers": r.choice([1, 2, 3, 5, 7]), "num_attention_heads": heads, "num_key_value_heads": kv,
            "head_dim": r.choice([16, 20, 24, 32, 48, 64]), "hidden_size": heads * r.choice([8, 16, 24]),
            "intermediate_size": r.choice([56, 96, 128, 200]), "vocab_size": VOCABULARY, "rms_norm_eps": r.choice([1e-5, 1e-6]),
            "max_position_embeddings": r.choice([512, 4096, 40960]), "tie_word_embeddings": r.random() < 0.5,
            "rope_parameters": plain(r.choice([1e4, 1e5, 5e5, 1e6]))}


def without_head_dim(c, r):
    del c["head_dim"]
    c["hidden_size"] = c["num_attention_heads"] * r.choice([16, 24, 32])


def slide(c, r):
    c.update(use_sliding_window=True, sliding_window=r.choice([4, 8, 16]), max_window_layers=r.randrange(c["num_hidden_layers"] + 1))


def llama(c, r):
    kind = r.random()
    if kind < 0.75:
        c["rope_parameters"] |= {"rope_type": "linear", "factor": r.choice([2.0, 8.0])} if kind < 0.15 else \
            {"rope_type": "llama3", "factor": r.choice([2.0, 8.0, 32.0]), "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": r.choice([64, 128, 256])}
    if r.random() < 0.3:
        without_head_dim(c, r)
    c["attention_bias"] = r.random() < 0.25
    return transformers.LlamaConfig(**c)


def qwen2(c, r):
    without_head_dim(c, r)
    if r.random() < 0.3:
        slide(c, r)
    return transformers.Qwen2Config(**c)


def qwen3(c, r):
    if r.random() < 0.4:
        slide(c, r)
    c["attention_bias"] = r.random() < 0.2
    return transformers.Qwen3Config(**c)


def gemma2(c, r):
    c.update(query_pre_attn_scalar=r.choice([16, 24, 144, 256]), sliding_window=r.choice([4, 8, 16]),
             attn_logit_softcapping=r.choice([None, 7.5, 50.0]), final_logit_softcapping=r.choice([None, 12.0, 30.0]))
    return transformers.Gemma2Config(**c)


def gemma3(c, r):
    whole = r.choice([{}, {"rope_type": "linear", "factor": 8.0}])
    kinds = ["full_attention", "sliding_attention"]
    c.update(query_pre_attn_scalar=r.choice([16, 24, 256]), sliding_window=r.choice([4, 8, 16]), tie_word_embeddings=True,
             rope_parameters={kinds[0]: plain(1e6) | whole, kinds[1]: plain(1e4)},
             layer_types=[r.choice(kinds) for _ in range(c["num_hidden_layers"])], final_logit_softcapping=r.choice([None, 12.0]))
    return transformers.Gemma3TextConfig(**c)


FAMILIES = {"llama3": (llama, "llama3_tiny"), "qwen2": (qwen2, "qwen3_tiny"), "qwen3": (qwen3, "qwen3_tiny"),
            "gemma2": (gemma2, "gemma2_tiny"), "gemma3": (gemma3, "gemma2_tiny")}


@torch.no_grad()
def save(family, r, seed, folder):
    """A checkpoint with random weights -> its models in DTYPES and its end tokens."""
    build, tokenizer = FAMILIES[family]
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(build(sizes(r), r)).to(torch.bfloat16)
    for name, p in model.named_parameters():
        if "norm" in name:
            p.copy_(torch.randn(p.shape) * 0.2 + (0 if family.startswith("gemma") else 1))
        else:
            p.copy_(torch.randn(p.shape) * (0.3 if p.dim() == 1 else 0.4 if "embed" in name else 1.2 / p.shape[-1] ** 0.5))
    model.tie_weights()
    ends = r.choice([[5], [5, 9]])
    model.config.eos_token_id = model.generation_config.eos_token_id = ends
    model.save_pretrained(folder, max_shard_size=r.choice(["60KB", "10GB"]))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(GOLDEN / tokenizer / "checkpoint" / name, folder)
    # eager: other attention leaves out caps of scores
    return [transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=d, attn_implementation="eager").eval() for d in DTYPES], ends


@torch.no_grad()
def forward(model, ids, positions=None):
    """-> logits, and what leaves each layer, the last one behind the final norm."""
    out = model(torch.tensor([ids]), position_ids=torch.tensor([positions]) if positions else None, use_cache=False,
                output_hidden_states=True)
    return out.logits[0].double(), [h[0].double() for h in out.hidden_states[1:]]


class Case:
    def __init__(self):
        self.expected, self.inputs, self.errors, self.prompts = {}, {}, ({}, {}), []

    def put(self, name, exact, *rounded, slack=1.0):
        """A tensor, and how far the same code is from it in float32 and in bf16."""
        self.expected[name] = exact.float().contiguous()
        for errors, got in zip(self.errors, rounded):
            off = (got - exact).abs()
            errors[name] = {"max": slack * max(float(off.max()), 1e-6 * float(exact.abs().max())),
                            "rms": slack * max(float(off.pow(2).mean().sqrt()), 1e-6 * float(exact.pow(2).mean().sqrt()))}

    def generate(self, models, text, ids, ends):
        at, greedy, margins, agrees, logits = list(ids), [], [], [], ([], [], [])
        for _ in range(STEPS):
            for all_of, model in zip(logits, models):
                all_of.append(forward(model, at)[0][-1])
            best, where = torch.topk(logits[0][-1], 2)
            greedy.append(int(where[0]))
            margins.append(float(best[0] - best[1]))
            agrees.append(int(logits[2][-1].argmax()) == greedy[-1])
            at.append(greedy[-1])
        end = next((i + 1 for i, token in enumerate(greedy) if token in ends), STEPS)
        self.inputs[f"prompt{len(self.prompts)}"] = torch.tensor(ids, dtype=torch.int32)
        self.put(f"prompt{len(self.prompts)}.step_logits", *map(torch.stack, logits), slack=1.5)
        self.prompts.append({"text": text, "tokens": ids, "greedy": greedy, "margins": margins, "bf16_agrees": agrees,
                             "margin_min": min(margins) / float(torch.stack(logits[0]).std()), "generate": greedy[:end]})

    def whole_pass(self, models, ids):
        near, far = [forward(m, ids) for m in models], list(range(FAR, FAR + len(ids)))
        self.put("logits", *(n[0] for n in near), slack=1.5)
        layers = len(near[0][1]) - 1
        for i in range(layers):
            self.put(f"layer{i}.out", *(n[1][i] for n in near), slack=1.5)
        self.put("norm", *(n[1][layers] for n in near), slack=1.5)
        self.inputs["far_positions"] = torch.tensor(far, dtype=torch.int32)
        # angles of transformers are float32: of far positions they are as far from exact ones
        self.put("far.logits", *(forward(m, ids, far)[0] for m in models), slack=40.0)

    def write(self, folder, family, seed, ends):
        width = max(len(p["tokens"]) for p in self.prompts)
        gaps = [width - len(p["tokens"]) for p in self.prompts]
        ids = [[0] * g + p["tokens"] for g, p in zip(gaps, self.prompts)]
        self.inputs["batch.ids"] = torch.tensor(ids, dtype=torch.int32)
        self.inputs["batch.mask"] = torch.tensor([[0] * g + [1] * (width - g) for g in gaps], dtype=torch.int32)
        save_file(self.expected, folder / "expected.safetensors")
        save_file(self.inputs, folder / "inputs.safetensors")
        equal = {f"prompt{i}.{d}": d == "float32" for i in range(len(self.prompts)) for d in ("float32", "bfloat16")}
        (folder / "case.json").write_text(json.dumps({
            "family": "text", "kind": "lm", "what": f"random {family}", "model": family, "seed": seed, "weights": "bfloat16",
            "config_variants": [], "far_start": FAR, "eos_token_id": ends, "prompts": self.prompts, "tokens_equal": equal,
            "std": {k: float(v.std()) for k, v in self.expected.items()}, "err_fp32": self.errors[0], "err_bf16": self.errors[1]}))


def make(folder, family, seed):
    r = random.Random(seed)
    models, ends = save(family, r, seed, folder / "checkpoint")
    tokens = tokenizers.Tokenizer.from_file(str(folder / "checkpoint/tokenizer.json"))
    case = Case()
    for _ in range(3):
        text = " ".join(r.choice(WORDS) for _ in range(r.choice([1, 3, 9, 20])))
        case.generate(models, text, tokens.encode(text).ids, ends)
    case.whole_pass(models, case.prompts[0]["tokens"])
    case.write(folder, family, seed, ends)


def judge(program, folder, dtype):
    """-> what is not right, in words; None: all is."""
    out = subprocess.run([program, "verify", folder, "--dtype", dtype, "--format", "json"], capture_output=True, text=True, cwd=ROOT)
    checks = [json.loads(line) for line in out.stdout.splitlines()]
    wrong = [c for c in checks if not c["ok"]]
    return None if out.returncode == 0 and checks and not wrong else f"{wrong[:3] or out.stderr.strip()}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program", type=pathlib.Path)
    p.add_argument("--cases", type=int, default=4, help="of each family")
    p.add_argument("--first", type=int, default=0, help="seed of the first one")
    p.add_argument("--family", choices=FAMILIES)
    p.add_argument("--keep", type=pathlib.Path, help="where cases that fail stay")
    o = p.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    n = failed = 0
    for family in [o.family] if o.family else FAMILIES:
        for seed in range(o.first, o.first + o.cases):
            with tempfile.TemporaryDirectory() as box:
                make(pathlib.Path(box), family, seed)
                wrongs = {d: judge(o.program.resolve(), box, d) for d in ("f32", "bf16")}
                for dtype, wrong in wrongs.items():
                    n += 1
                    failed += wrong is not None
                    print(f"{'not ok' if wrong else 'ok'} {n} - {family} {seed} {dtype}" + (f"\n# {wrong}" if wrong else ""), flush=True)
                if o.keep and any(wrongs.values()):
                    shutil.copytree(box, o.keep / f"{family}_{seed}", dirs_exist_ok=True)
    print(f"1..{n}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

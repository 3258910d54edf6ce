"""Accuracy against recompute ratio: python evaluate.py QUESTIONS.jsonl OUT.json NAME=CHECKPOINT...

Every checkpoint answers every question with each selection at each ratio (selective.py); an answer is right when all its
tokens and the end are. A ratio is the mean over layers of shares that shrink by the same factor from layer to layer, from all
segments in the first. OUT.json: {questions, hops, runs: {NAME: {training, cells: [{selection, ratio, ratios, computed, right,
agree}]}}}: `ratios` of each layer; `computed`, the share of segments times layers that whole segments amount to; `right` and `agree`
(with full recompute) are strings of 0 and 1, a character a question.
"""
import argparse
import json
import pathlib
import time

import torch

import model as planner
import selective
import tokenizer as bpe

RATIOS = [0.2, 0.3, 0.4, 0.5, 0.6, 0.8]
SELECTIONS = ["random", "query", "multi-hop", "corrected", "oracle"]
TOGETHER = 50


def shrinking(mean, layers):
    """Shares 1, d, d^2, .. with that mean."""
    low, high = 0.0, 1.0
    for _ in range(50):
        d = (low + high) / 2
        low, high = (d, high) if sum(d ** i for i in range(layers)) < mean * layers else (low, d)
    return [round(d ** i, 3) for i in range(layers)]


def prompts(tok, questions):
    return [(tok.encode(q["prefix"]), [tok.encode(u) for u in q["segments"]], tok.encode(q["query"]), tok.encode(q["answer"]) + [tok.end])
            for q in questions]


def answers(model, data, store, ratios, choice):
    """-> the token chosen at every row with a target (elsewhere -1), share of segments times layers computed"""
    logits, sets = selective.prefill(model, data, store, ratios, choice)
    out = torch.full_like(data.target, -1)
    out[data.target >= 0] = logits.argmax(-1)
    return out, [sum(len(s) for s in layers) / (n * len(layers)) for layers, n in zip(sets, data.segments)]


def cells(model, tok, questions, selections, ratios):
    batches = []
    for i in range(0, len(questions), TOGETHER):
        data = selective.batch(prompts(tok, questions[i:i + TOGETHER]))
        batches.append((i, data, selective.stored(model, data)))
    layers, full = model.c["num_hidden_layers"], {}
    plan = [("full recompute", 1.0, [1.0] * layers), ("full reuse", 0.0, [0.0] * layers)]
    plan += [(s, r, shrinking(r, layers)) for s in selections for r in ratios]
    for selection, ratio, shares in plan:
        right, agree, computed = "", "", []
        for i, data, store in batches:
            choice = [None] * len(data.segments) if selection.startswith("full") else [
                selective.choices(selection, n, q["needed"], i + b) for b, (n, q) in enumerate(zip(data.segments, questions[i:]))]
            said, share = answers(model, data, store, shares, choice)
            if selection == "full recompute":
                full[i] = said
            right += "".join("01"[x] for x in ((said == data.target).all(1)).tolist())
            agree += "".join("01"[x] for x in ((said == full[i]).all(1)).tolist())
            computed += share
        yield dict(selection=selection, ratio=ratio, ratios=shares, computed=round(sum(computed) / len(computed), 4), right=right,
                   agree=agree)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("questions")
    p.add_argument("out")
    p.add_argument("checkpoints", nargs="+")
    p.add_argument("--first", type=int, help="only so many questions")
    p.add_argument("--selections", default=",".join(SELECTIONS))
    p.add_argument("--ratios", default=",".join(map(str, RATIOS)))
    a = p.parse_args()
    torch.set_num_threads(1)
    questions = [json.loads(line) for line in open(a.questions)][:a.first]
    out = pathlib.Path(a.out)
    whole = json.loads(out.read_text()) if out.exists() else dict(questions=len(questions), hops=[q["hops"] for q in questions], runs={})
    if len(questions) != whole["questions"]:
        raise SystemExit(f"evaluate: {out} is about {whole['questions']} questions, this is about {len(questions)}; name another file")
    for name, folder in (c.split("=") for c in a.checkpoints):
        begin, folder = time.time(), pathlib.Path(folder)
        training = folder / "training.json"
        told = json.loads(training.read_text()) if training.exists() else {}
        run = dict(training={k: v for k, v in told.items() if k not in ("history", "out", "init")}, cells=[])
        for cell in cells(planner.load(folder), bpe.load(folder), questions, a.selections.split(","),
                          [float(r) for r in a.ratios.split(",")]):
            run["cells"].append(cell)
            by = [[x == "1" for x, h in zip(cell["right"], whole["hops"]) if h == d] for d in sorted(set(whole["hops"]))]
            print(f"{name:12s} {cell['selection']:15s} {cell['ratio']:.1f}  computed {cell['computed']:.2f}  "
                  f"right {cell['right'].count('1') / len(questions):.3f} ({' '.join(f'{sum(b) / len(b):.2f}' for b in by)})", flush=True)
        whole["runs"][name] = run
        out.write_text(json.dumps(whole) + "\n")
        print(f"{name}: {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()

"""Holds selective.py against golden cases of the engine: python check.py FOLDER... (case.json, checkpoint, *.safetensors)

Sets of segments, tokens and logits of full reuse, of full recompute and of what lies between must be those of the case.
"""
import json
import pathlib
import sys

from safetensors.torch import load_file

import model as planner
import selective

RUNS = {"keep.0": "multi-hop", "keep.0.15": "multi-hop", "keep.0.3": "multi-hop", "keep.0.3.query_only": "query", "keep.1": "multi-hop",
        "b3.reuse": "multi-hop", "b1.full": "multi-hop"}


def as_stored(alone, expected, kind, rows):
    """The case's stored K and V in place of ours, which must be close where segments were read alone."""
    worst, out = 0.0, []
    for i, pair in enumerate(alone):
        layer = []
        for ours, name in zip(pair, "kv"):
            theirs = expected[f"store.{kind}.layer{i}.{name}"].reshape(rows, ours.shape[1], -1).transpose(0, 1)
            if kind == "single":
                worst = max(worst, (ours[0, :, :rows] - theirs).abs().max().item())
            ours = ours.clone()
            ours[0, :, :rows] = theirs
            layer.append(ours)
        out.append(tuple(layer))
    return out, worst


def judge(folder):
    case = json.loads((folder / "case.json").read_text())
    inputs, expected = load_file(str(folder / "inputs.safetensors")), load_file(str(folder / "expected.safetensors"))
    model = planner.load(folder / "checkpoint")
    ids, begin, end = (inputs[k].tolist() for k in ("ids", "unit_begin", "unit_end"))
    segments, layers, bad = [ids[b:e] for b, e in zip(begin, end)], model.c["num_hidden_layers"], 0
    for name, scoring in RUNS.items():
        run = case["runs"].get(name)
        if run is None:
            continue
        data = selective.batch([(ids[:begin[0]], segments, ids[end[-1]:], run["tokens"])])
        store, worst = as_stored(selective.stored(model, data), expected, "single" if name[0] == "b" else "group", end[-1])
        ratios = run.get("ratios", [1.0 if name == "b1.full" else 0.0] * layers)
        logits, sets = selective.prefill(model, data, store, ratios, [selective.choices(scoring, len(segments), [], 0)])
        far = (logits[0] - expected[f"{name}.step_logits"][0]).abs().max().item()
        good = logits.argmax(-1).tolist() == run["tokens"] and run.get("sets", sets[0]) == sets[0] and far < 1e-3 and worst < 1e-3
        bad += not good
        print(f"{folder.name} {name}: {'same sets and tokens' if good else 'DIFFERENT'}; logits off by {far:.1e}, stored by {worst:.1e}")
    return bad


if __name__ == "__main__":
    sys.exit(1 if sum(judge(pathlib.Path(f)) for f in sys.argv[1:]) else 0)

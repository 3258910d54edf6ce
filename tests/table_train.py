"""The training of the table's planner: python table_train.py FOLDER. One that is stopped makes the same bytes; what it computes of a
memory that is partly reused is what the reference of the engine does. Prints what is wrong."""
import contextlib
import io
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(ROOT / f"pipelines/checkpoints/{name}/train") for name in ("table_planner", "planner")]

import torch

import learn
import model as planner
import reuse
import selective

FOLDER = pathlib.Path(sys.argv[1])
wrong = []


class Stopped(Exception):
    pass


def train(name, *words):
    """The command, with rows that are as small as they can be."""
    sys.argv = ["learn.py", str(FOLDER / name), "--steps", "5", "--batch", "1", "--goals", "1", *words]
    with contextlib.redirect_stdout(io.StringIO()):
        learn.main()


def stopped(name, *words):
    """The same, stopped when it has written where it is."""
    keep = learn.keep

    def and_stop(*at):
        keep(*at)
        raise Stopped

    learn.keep = and_stop
    try:
        train(name, *words)
        wrong.append(f"{name}: it was not stopped")
    except Stopped:
        pass
    learn.keep = keep


def refused(name, *words):
    try:
        train(name, *words)
        wrong.append(f"{name}: went on with {words}")
    except SystemExit as e:
        if "is of another recipe" not in str(e):
            wrong.append(f"{name} {words}: {e}")


def history(name):
    """Of each step all but the minutes."""
    return [[step, *rest] for step, _, *rest in json.loads((FOLDER / name / "training.json").read_text())["history"]]


def weights(name):
    return (FOLDER / name / "model.safetensors").read_bytes()


def apart(model, ratios, block):
    """The largest difference of logits between what is trained on and the reference, of a prompt with segments of 1 to 4 tokens."""
    lengths, query, answer, order = (3, 1, 3, 4, 2, 3), [40, 41, 42], [43, 44], [3, 0, 4, 1, 2]
    ids = torch.arange(5, 5 + sum(lengths)).tolist()
    ends = [sum(lengths[:i + 1]) for i in range(len(lengths))]
    segments = [ids[a:b] for a, b in zip(ends, ends[1:])]
    data = selective.batch([(ids[:3], segments, query, answer)])
    expected, _ = selective.prefill(model, data, selective.stored(model, data), ratios, [(selective.by_list(order), False)])
    counts, last = selective.counts(ratios, len(segments)), [-1] * len(segments)
    for layer, count in enumerate(counts):
        for u in order[:count]:
            last[u] = layer
    width = data.ids.shape[1]
    causal = torch.ones(1, width, width, dtype=torch.bool).tril()
    kept = reuse.plan([(reuse.laid(lengths), block, last)])
    logits, _ = reuse.forward(model, data.ids, torch.arange(width)[None], causal, data.target >= 0, kept)
    return (logits - expected).abs().max().item()


def reuses():
    torch.manual_seed(0)
    model = planner.Planner(planner.config(64))
    planner.start(model)
    with torch.no_grad():
        for ratios in ([1.0] * 6, [1.0, 0.6, 0.4, 0.4, 0.2, 0.2], [0.0] * 6):
            if apart(model, ratios, range(5)) > 1e-4:
                wrong.append(f"shares {ratios}: {apart(model, ratios, range(5))} from the reference")
        if apart(model, [0.0] * 6, [0, 1, 1, 2, 3]) < 1e-2:
            wrong.append("segments that are read together are as those that are read alone")


reuses()
learn.TOLD, learn.KEPT = 1, 3
train("begun", "--seed", "1")
train("other", "--seed", "2")
if weights("begun") == weights("other"):
    wrong.append("two seeds have the same weights")
onward = ("--init", str(FOLDER / "begun"), "--lr", "1e-3")
train("whole", *onward)
if weights("whole") == weights("begun"):
    wrong.append("a second stretch changed nothing")
stopped("halves", *onward)
if (FOLDER / "halves/model.safetensors").exists():
    wrong.append("a training that was stopped is called done")
refused("halves", *onward, "--seed", "3")
refused("halves", "--init", str(FOLDER / "other"), "--lr", "1e-3")
train("halves", *onward)
train("reused", *onward, "--reuse")
if weights("reused") == weights("whole"):
    wrong.append("reused keys change nothing of the training")
if weights("halves") != weights("whole") or history("halves") != history("whole"):
    wrong.append("one that was stopped has other weights or another history than one that was not")
if wrong:
    print("\n".join(wrong))
sys.exit(bool(wrong))

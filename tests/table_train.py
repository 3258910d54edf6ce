"""The training of the table's planner: python table_train.py FOLDER. One that is stopped makes the same bytes. Prints what is wrong."""
import contextlib
import io
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "pipelines/checkpoints/table_planner/train"))

import learn

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
if weights("halves") != weights("whole") or history("halves") != history("whole"):
    wrong.append("one that was stopped has other weights or another history than one that was not")
if wrong:
    print("\n".join(wrong))
sys.exit(bool(wrong))

#!/usr/bin/env python3
"""budget.py - the error of actions where a model rounds activations, in units of the original's own bf16 run.

  python3 tests/budget.py [--tectum PROGRAM] [--device cuda | --tier NAME] [--draws N] [--round none|bf16x2|mixed] [CASE...]

The budget of doc/decisions/042: over all actions of a model's golden cases the error of a plan that rounds is at most half
of that of the original's bf16 run. Errors are rms from the float64 actions. pooled: over all comparisons, each in
units of the rms of its tensor; mean: the geometric one of the ratios. One run is one draw of a steep flow's rounding errors,
so --draws N repeats it with N scales of the towers' scores, from -3e-4 to 3e-4 off. Exit code 1 where the mean of the draws
is beyond a half.
"""
import argparse, json, math, pathlib, re, shutil, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOWER, SPREAD, HALF = "pipelines/models/common/picture_layers.lua", 3e-4, 0.5
ACTIONS = re.compile(r"(.*\.)?(robot_)?(actions?|actions_after_text)$")  # of the model, of the robot


def bounds(case):
    """The tensors of a case, or of the one whose inputs it shares; none of a case that has neither."""
    said = json.loads((ROOT / case / "case.json").read_text())
    if "tensors" not in said and "same_inputs_as" in said:
        return bounds((ROOT / case / said["same_inputs_as"]).parent.resolve().relative_to(ROOT))
    return said.get("tensors", {})


def scaled(folder, by):
    """A copy of the descriptions, whose towers take scores times 1 + by."""
    shutil.copytree(ROOT / "pipelines", folder / "pipelines", ignore=shutil.ignore_patterns("checkpoints"))
    (folder / "policies").symlink_to(ROOT / "policies")
    path = folder / TOWER
    plain = "local o = { heads = s.heads,"
    text, n = path.read_text(), path.read_text().count(plain)
    text = text.replace(plain, f"{plain} scale = {1 + by!r} / (s.width // s.heads) ^ 0.5,")
    if n != 1:
        sys.exit(f"{TOWER}: the options of its attention are written otherwise")
    path.write_text(text)


def run(a, root):
    """Lines of all comparisons, of all cases."""
    where = ["--tier", a.tier, "--device", "cpu"] if a.tier else ["--device", a.device]
    done = subprocess.run([a.tectum, "verify", *a.cases, "--dtype", "bf16", "--round", a.round, "--root", str(root), *where],
                          cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def judge(lines):
    """pooled, mean, actions compared, those beyond their bound; comparisons beyond theirs, of how many. A tensor that the
    original's bf16 run makes without an error, or ours, has no ratio."""
    ours, theirs, ratios, beyond, compared = [], [], [], 0, 0
    for line in lines:
        tensor = bounds(line["case"]).get(line["check"], {}) if ACTIONS.match(line["check"]) else {}
        if "err_bf16" not in tensor:
            continue
        compared += 1
        ours.append(line["rms"] / tensor["rms"])
        theirs.append(tensor["err_bf16"]["rms"] / tensor["rms"])
        if tensor["err_bf16"]["rms"] > 0 and line["rms"] > 0:
            ratios.append(line["rms"] / tensor["err_bf16"]["rms"])
        beyond += not line["ok"]
    if not any(theirs) or not ratios:
        sys.exit("no action is compared that the original's bf16 run, and ours, makes with an error")
    square = lambda values: math.sqrt(sum(v * v for v in values) / len(values))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return square(ours) / square(theirs), mean, compared, beyond, sum(not l["ok"] for l in lines), len(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", default=["tests/golden/smolvla"], help="folders of golden cases, from the tree's root")
    p.add_argument("--tectum", default="build/release/tectum")
    p.add_argument("--device", default="cpu")
    p.add_argument("--tier", help="kernels of the CPU")
    p.add_argument("--round", default="bf16", choices=["none", "bf16x2", "mixed", "bf16"])
    p.add_argument("--draws", type=int, default=1)
    a = p.parse_args()
    draws = []
    for i in range(a.draws):
        by = 0.0 if a.draws == 1 else SPREAD * (2 * i / (a.draws - 1) - 1)
        with tempfile.TemporaryDirectory() as folder:
            root = ROOT
            if by:
                root = pathlib.Path(folder)
                scaled(root, by)
            draws.append(judge(run(a, root)))
        pooled, mean, n, beyond, all_beyond, of = draws[-1]
        more = "" if by else f"; of all {of} comparisons {all_beyond}"  # a tower in float32 is not held to another scale
        print(f"scale {by:+.1e}: pooled {pooled:.3f}, mean {mean:.3f} of {n} actions, {beyond} out of bound{more}", flush=True)
    columns = list(zip(*draws))
    for name, values in (("pooled", columns[0]), ("mean", columns[1])):
        print(f"{name}: {sum(values) / len(values):.3f} ({min(values):.3f} to {max(values):.3f})")
    print(f"actions out of bound: {min(columns[3])} to {max(columns[3])} of {columns[2][0]}")
    return any(sum(values) / len(values) > HALF for values in columns[:2])


if __name__ == "__main__":
    sys.exit(main())

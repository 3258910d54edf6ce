"""Tables of what evaluate.py wrote: python report.py RESULTS.json [--apart]

Runs whose names differ in a last digit alone are training seeds of one variant. A figure is the mean over seeds and questions;
its standard error has two parts, added as squares: of the mean over questions (each question's mean over seeds is one value)
and of the mean over seeds. Differences are taken question by question, so that what is hard for both cancels. --apart: every run for itself; differences are then the
mean over all ratios, for each question.
"""
import argparse
import json
import re

import numpy as np

PAIRS = [("query", "random"), ("multi-hop", "query"), ("corrected", "query"), ("corrected", "multi-hop"), ("oracle", "corrected")]


def error(x):
    """x [seeds, questions] -> standard error of its mean."""
    parts = [m.std(ddof=1) / len(m) ** 0.5 for m in (x.mean(0), x.mean(1)) if len(m) > 1]
    return float(np.sqrt(sum(p * p for p in parts)))


def figure(x, sign=""):
    return f"{100 * x.mean():{sign}.1f} ± {100 * error(x):.1f}"


def variants(runs):
    out = {}
    for name in sorted(runs):
        out.setdefault(re.sub(r"\d$", "", name), []).append(runs[name])
    return out


def values(seeds, field="right"):
    """{(selection, ratio): [seeds, questions]}"""
    cells = {}
    for run in seeds:
        for c in run["cells"]:
            cells.setdefault((c["selection"], c["ratio"]), []).append([ch == "1" for ch in c[field]])
    return {k: np.array(v, float) for k, v in cells.items()}


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for r in rows:
        print("| " + " | ".join(r) + " |")
    print()


def tell(name, seeds, hops):
    right, agree = values(seeds), values(seeds, "agree")
    depths = sorted(set(hops))
    split = lambda x: " / ".join(f"{100 * x[:, hops == d].mean():.0f}" for d in depths)
    print(f"### {name}: {len(seeds)} seed{'s' * (len(seeds) > 1)}\n")
    rows = []
    for what in ("full recompute", "full reuse"):
        x = next(v for k, v in right.items() if k[0] == what)
        rows.append([what, figure(x), split(x), ", ".join(f"{100 * m:.1f}" for m in x.mean(1))])
    table(["", "right, %", " / ".join(f"{d} hops" for d in depths), "by seed"], rows)
    ratios = sorted({r for _, r in right if 0 < r < 1})
    names = list(dict.fromkeys(s for s, r in right if 0 < r < 1))
    computed = {c["ratio"]: c["computed"] for c in seeds[0]["cells"]}
    head = [f"{r:g}" for r in ratios]
    table(["right, %; ratio"] + head, [["of segments times layers computed"] + [f"{100 * computed[r]:.0f} %" for r in ratios]] + [
        [n] + [figure(right[n, r]) for r in ratios] for n in names])
    table([" / ".join(f"{d} hops" for d in depths) + ", %"] + head, [[n] + [split(right[n, r]) for r in ratios] for n in names])
    table(["difference"] + head, [[f"{a} - {b}"] + [figure(right[a, r] - right[b, r], "+") for r in ratios]
                                  for a, b in PAIRS if a in names and b in names])
    if not right["full recompute", 1.0].all():
        table(["as full recompute answers, %"] + head, [[n] + [figure(agree[n, r]) for r in ratios] for n in names])


def apart(runs, hops):
    right = {name: values([run]) for name, run in runs.items()}
    split = lambda x: " / ".join(f"{100 * x[:, hops == d].mean():.0f}" for d in sorted(set(hops)))
    one = next(iter(right.values()))
    ratios = sorted({r for _, r in one if 0 < r < 1})
    names = list(dict.fromkeys(s for s, r in one if 0 < r < 1))
    whole = [("full recompute", 1.0), ("full reuse", 0.0)]
    table(["right, %"] + [w for w, _ in whole], [[n] + [f"{figure(x[w])} ({split(x[w])})" for w in whole] for n, x in right.items()])
    table(["right, %; ratio"] + [f"{r:g}" for r in ratios],
          [[f"{n}: {s}"] + [figure(x[s, r]) for r in ratios] for n, x in right.items() for s in names])
    table(["difference, mean over ratios"] + list(right), [
        [f"{a} - {b}"] + [figure(np.mean([x[a, r] - x[b, r] for r in ratios], 0), "+") for x in right.values()]
        for a, b in PAIRS if a in names and b in names])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("results")
    p.add_argument("--apart", action="store_true", help="every run for itself")
    a = p.parse_args()
    whole = json.load(open(a.results))
    if a.apart:
        return apart(whole["runs"], np.array(whole["hops"]))
    for name, seeds in variants(whole["runs"]).items():
        tell(name, seeds, np.array(whole["hops"]))


if __name__ == "__main__":
    main()

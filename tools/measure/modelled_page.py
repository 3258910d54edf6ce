#!/usr/bin/env python3
"""modelled_page.py - what the model of kernels predicts for robots of full size, as tables in Markdown.

usage: tools/measure/modelled_page.py PROGRAM. From the root. Each number is a prediction of `graph --roofline`
(doc/roofline.md, "Modelled"); nothing is measured, and no GPU is needed.
"""

import argparse
import json
import subprocess
import sys

MACHINES = ("h100", "4090", "orin", "thor")
TITLES = {"h100": "H100", "4090": "4090", "orin": "Orin", "thor": "Thor"}
PI0 = ["--prompt-tokens", "20"]
PI05 = ["pipelines/pi05_aloha.lua", "--prompt-tokens", "20", "--pictures"]
PLANNER = ["pipelines/qwen_chat.lua", "--prompt-tokens", "512", "--set", "model.arch=qwen2_14b_int4"]
# What is called so: the options of `graph`, and the part of the pipeline.
CASES = (
    ("pi0, 1 camera", ["pipelines/suite/pi0_views1.lua", *PI0], "frame"),
    ("pi0, 2 cameras", ["pipelines/suite/pi0_views2.lua", *PI0], "frame"),
    ("pi0, 3 cameras", ["pipelines/suite/pi0_views3.lua", *PI0], "frame"),
    ("pi0.5, 1 camera", [*PI05, "1"], "frame"),
    ("pi0.5, 2 cameras", [*PI05, "2"], "frame"),
    ("pi0.5, 3 cameras", [*PI05, "3"], "frame"),
    ("OpenVLA ring of 7", ["pipelines/openvla_ring.lua", "--prompt-tokens", "24"], "packed"),
    ("Qwen2.5-14B INT4, a prompt of 512", PLANNER, "private"),
    ("Qwen2.5-14B INT4, a step of 1", PLANNER, "decode.b1"),
    ("Qwen2.5-14B INT4, a step of 4", PLANNER, "decode.b4"),
)


def ask(program, options):
    """{machine: {part: what is modelled}} of a pipeline."""
    command = [program, "graph", "--random-weights", "1", "--roofline", ",".join(MACHINES), "--kernels", "--format", "json"]
    try:
        told = subprocess.run(command + options, stdout=subprocess.PIPE, text=True)
    except OSError as e:
        sys.exit("%s: %s" % (program, e.strerror))
    if told.returncode:
        sys.exit("%s: exit status %d" % (" ".join(command + options), told.returncode))
    parts = {}
    for part in json.loads(told.stdout)["modelled"]:
        parts.setdefault(part["machine"], {})[part["part"]] = part
    return parts


def number(value):
    return "%.3f" % value if value < 1 else "%.2f" % value if value < 100 else "%.1f" % value


def row(cells):
    print("| " + " | ".join(cells) + " |")


def head(cells):
    row(cells)
    print("|" + "---|" * len(cells))


def frames(cases):
    """Milliseconds and starts of each stage."""
    head(["", "stage"] + ["%s %s" % (TITLES[m], what) for m in MACHINES for what in ("kernels", "ms")])
    for name, parts in cases:
        of = {m: {s["stage"]: s for s in parts[m]["stages"]} for m in MACHINES}
        for i, stage in enumerate(of[MACHINES[0]]):
            cells = [name if i == 0 else "", stage]
            for m in MACHINES:
                cells += [str(of[m][stage]["kernels"]), number(of[m][stage]["us"] / 1e3)]
            row(cells)


def kernels(parts):
    """A row for kernels alike; a machine that has others has rows of its own behind them."""
    rows = {}
    for m in MACHINES:
        for k in parts[m]["kernels"]:
            terms = " (terms)" if k["tile"] == "row_terms" else ""
            rows.setdefault((k["stage"], k["label"], k["kernel"] + terms), {})[m] = k
    head(["stage", "label", "kernel", "calls", "H100: tile", "grid", "held", "waves", "us each", "bound by", "ms"] +
         [TITLES[m] for m in MACHINES[1:]])
    for (stage, label, kernel), by in rows.items():
        k = by.get("h100")
        cells = [stage, label, kernel]
        if k:
            grid = "x".join(map(str, k["grid"]))
            cells += [str(k["calls"]), k["tile"], grid, str(k["resident"]), str(k["waves"]), number(k["us"] / k["calls"]), k["bound"]]
        else:
            cells += [""] * 7
        row(cells + [number(by[m]["us"] / 1e3) if m in by else "" for m in MACHINES])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="tectum, as it was built")
    program = parser.parse_args().program
    cases = []
    for name, options, part in CASES:
        parts = ask(program, options)
        cases.append((name, {m: parts[m][part] for m in MACHINES}))
    frames(cases)
    for name, parts in cases:
        print("\n### %s\n" % name)
        kernels(parts)


main()

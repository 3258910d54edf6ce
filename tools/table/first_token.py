"""Time to the planner's first token with many facts in its memory, by what is computed anew: python first_token.py --help

Each row is a run of `tectum run` on first_token.lua: its first observation puts all facts, the following ones ask. Rows take turns,
several rounds. Times are of frames in which the keys and values of all facts were there: a frame is the recall, what is computed anew,
the question and one token. The words of facts mean nothing; a time depends on lengths alone.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import tempfile

import goals

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE = "tools/table/first_token.lua"
WARM = 3                # frames of a run before the first that counts
METHODS = {
    "full": ["nodes.recall.select=full"],
    "reuse at 0.3": ["nodes.recall.recompute.decay=0.449", "nodes.recall.recompute.floor=0"],
    "reuse at 0": ["nodes.recall.select=reuse"],
}


def facts(count):
    """Texts of three words of the planner's, four tokens each."""
    rng, words = random.Random("facts"), sorted({word for skill in goals.SKILLS for word in skill.split()})
    return {f"fact {i}": " ".join(["found", *rng.sample(words, 2)]) + "\n" for i in range(count)}


def observations(count, frames):
    rng = goals.seeded(f"first token {count}")
    asked = [goals.order(goals.listed(rng, 3, 5, True)).text for _ in range(frames + WARM)]
    return [{"goal": text, **({"memory": {"put": facts(count)}} if i == 0 else {})} for i, text in enumerate(asked)]


def timed(a, file, method):
    """Milliseconds of the frames that count; rows computed as a share; facts without keys in the last of them."""
    command = [str(a.program), "run", PIPELINE, "--threads", str(a.threads), "--inputs", str(file), "--format", "json",
               *(f"--set={s}" for s in METHODS[method])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"first_token: {' '.join(command)}: {done.stderr[-400:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"frame"')]
    counted, before = lines[WARM:], lines[WARM - 1]["memory"]
    last = counted[-1]["memory"]
    grown = {key: last[key] - before[key] for key in ("missing", "whole", "rows", "rows_full", "segments")}
    return [(line["end_us"] - line["start_us"]) / 1e3 for line in counted], grown


def quantile(sorted_ms, q):
    return sorted_ms[min(len(sorted_ms) - 1, int(q * len(sorted_ms)))]


def main():
    p = argparse.ArgumentParser(prog="first_token", description="Time to the planner's first token with a large memory.")
    p.add_argument("--facts", default="100,1000")
    p.add_argument("--frames", type=int, default=20, help="that count, of each row and round")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/tectum")
    p.add_argument("--json", type=pathlib.Path, help="all times as a file")
    a = p.parse_args()
    counts = [int(c) for c in a.facts.split(",")]
    rows = {(count, method): ([], []) for count in counts for method in METHODS}
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            (pathlib.Path(folder) / str(count)).write_text("".join(json.dumps(o) + "\n" for o in observations(count, a.frames)))
        for _ in range(a.rounds):
            for count, method in rows:
                ms, grown = timed(a, pathlib.Path(folder) / str(count), method)
                rows[count, method][0].extend(ms)
                rows[count, method][1].append(grown)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; ms from the observation to the first token")
    print(f"{'facts':>6s}  {'method':14s} {'computed':>9s} {'min':>8s} {'p50':>8s} {'p99':>8s} {'max':>8s}  frames")
    for (count, method), (ms, grown) in rows.items():
        ms.sort()
        share = sum(g["rows"] for g in grown) / sum(g["rows_full"] for g in grown)
        late = sum(g["missing"] + g["whole"] for g in grown)
        print(f"{count:6d}  {method:14s} {100 * share:7.0f} % {ms[0]:8.2f} {quantile(ms, 0.5):8.2f} {quantile(ms, 0.99):8.2f} {ms[-1]:8.2f}  {len(ms)}"
              + (f"  {late} facts of them had no keys" if late and method != "full" else ""))
    if a.json:
        a.json.write_text(json.dumps({f"{count} facts, {method}": ms for (count, method), (ms, _) in rows.items()}) + "\n")


if __name__ == "__main__":
    main()

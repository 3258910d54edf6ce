"""Goals played in words against the engine, by what of the memory is computed anew: python3 words.py --help

No arm and no simulator: the memory is put as it comes up in play, state by state (goals.states), and `tectum run` answers both
questions from words.lua. An observation is sent twice and the second answer counts, when all keys and values of the memory are kept.
A goal is right when all its answers are, to the end of the text. Lists of skills are those kept out of training; the goals are those
of the planner's judge.py with the same --seed.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import goals

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECALLS = ("recall", "recall_log")
WAYS = {"whole": {}, "0.3": {"recompute.decay": 0.449, "recompute.floor": 0}, "0": {"select": "reuse"}}
TWICE = 2


def played(count, seed):
    """-> of each kind its goals; of each goal the goal's text, the memory's and the answers in each of its states"""
    out = {}
    for kind in goals.KINDS:
        rng, out[kind] = goals.seeded(f"held out {seed} {kind}"), []
        for _ in range(count):
            facts, did = goals.found(rng), goals.listed(rng, 3, 5, True)
            goal = goals.goal(rng, kind, facts, did, True)
            states = goals.states(goal, goals.Memory(dict(facts), did))
            out[kind].append([(goal.text, m.segments(), goals.spoken(said), goals.written(done)) for m, said, done in states])
    return out


def said(line, node):
    """What a node said in a frame; nothing where it did not come to its end."""
    texts = [t for t in line["text"][node] if t["reason"] == "eos"]
    return texts[-1]["text"] if texts else None


def asked(a, weights, way, file):
    """The lines of all frames."""
    words = [f"nodes.{node}.{field}={value}" for node in RECALLS for field, value in WAYS[way].items()]
    words += [f"model.weights={pathlib.Path(weights).resolve()}", *a.set]
    command = [str(a.program), "run", "tools/table/words.lua", "--threads", "1", "--inputs", str(file), "--format", "json",
               *(f"--set={w}" for w in words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"words: {' '.join(command)}: {done.stderr[-400:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"frame"')]


def share(hits):
    p = sum(hits) / len(hits)
    return f"{sum(hits)}/{len(hits)}, {100 * p:.1f} +- {100 * math.sqrt(p * (1 - p) / len(hits)):.1f} %"


def hits(trials, lines):
    """Of each goal which of its answers are right: in each state the next skill, then the list."""
    lines = iter(lines[TWICE - 1::TWICE])
    return [[hit for (_, _, choice, report), line in zip(states, lines)
             for hit in (said(line, "choose") == choice, said(line, "tell") == report)] for states in trials]


def computed(lines):
    """The share of rows that were computed, over all layers, in the frames that count."""
    def grown(field):
        return sum(after["memory"][name][field] - before["memory"][name][field]
                   for before, after in zip(lines[::TWICE], lines[1::TWICE]) for name in after["memory"])
    return grown("rows") / grown("rows_full")


def judge(a, weights, way, kinds, file):
    lines = asked(a, weights, way, file)
    came = hits([states for trials in kinds.values() for states in trials], lines)
    right, at = {}, 0
    for kind, trials in kinds.items():
        right[kind], at = [all(goal) for goal in came[at:at + len(trials)]], at + len(trials)
    print(f"{weights}: reuse {way}, {100 * computed(lines):.0f} % of rows computed: goals {share([x for k in right.values() for x in k])}, answers {share([x for goal in came for x in goal])};  "
          + "  ".join(f"{kind} {sum(k)}/{len(k)}" for kind, k in right.items()), flush=True)


def written(trials, folder):
    """The file of observations of these goals."""
    file = folder / "inputs.jsonl"
    file.write_text("".join(json.dumps({"goal": text, "memory": {"put": segments}}) + "\n"
                            for states in trials for text, segments, _, _ in states for _ in range(TWICE)))
    return file


def main():
    p = argparse.ArgumentParser(prog="words", description="Goals played in words against the engine.")
    p.add_argument("weights", nargs="*", default=["pipelines/checkpoints/table_planner"], help="folders of planners")
    p.add_argument("--goals", type=int, default=40, help="of each kind")
    p.add_argument("--seed", type=int, default=7100)
    p.add_argument("--ways", default=",".join(WAYS), help="what is computed anew: all, a mean of 0.3 over the layers, nothing")
    p.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="a value of words.lua")
    p.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/tectum")
    a = p.parse_args()
    kinds = played(a.goals, a.seed)
    with tempfile.TemporaryDirectory() as folder:
        file = written([states for trials in kinds.values() for states in trials], pathlib.Path(folder))
        for weights in a.weights:
            for way in a.ways.split(","):
                judge(a, weights, way, kinds, file)


if __name__ == "__main__":
    main()

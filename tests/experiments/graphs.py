"""graphs.py - what pipelines of several models and memories cost at run time, as one table.

For each graph of pipelines/graphs, on random weights and inputs:

    parts     every launch alone, from `tectum profile`
    frames    at a period that leaves time for soft work, which a policy fills (`fill`): frame time, the sum of the same
              launches alone, and their ratio
    misses    of hard nodes in those frames, with their causes; soft work must cause none
    text      age of what a prefill read of a stream, in frames and milliseconds
    load      from the first byte read to the first frame; captures

Deadlines are set for the machine: a hard chain has twice the p99 of its launches alone, the period is that and
a half more. usage: graphs.py PROGRAM [--size small] [--frames N] [--threads N] [-o DIR] [GRAPH...]
Writes DIR/graphs.md and DIR/graphs.json. Ends with 1 where a hard node was missed because of the plan.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile

GRAPHS = ["g01_planner_sees", "g02_memory_planner_and_arm", "g03_two_arms", "g08_subtask_then_action", "g13_plan_is_prompt",
          "g23_two_levels_of_one_model", "g24_many_robots", "g25_everything"]
HARD = 2.0  # deadline over the p99 of a hard chain alone
SOFT = 1.5  # period over the deadline
# Random weights never end a sentence, and random goals change every ten frames: sentences are short enough to be read.
WORDS = {"g13_plan_is_prompt": ["nodes.plan.max_tokens=16"], "g25_everything": ["nodes.plan.max_tokens=16"],
         "g23_two_levels_of_one_model": ["nodes.talk.max_tokens=12"]}
PARALLEL = {"g24_many_robots": 4}  # sessions of a frame: they run saturated, and are never opened by `bench`


class Graph:
    def __init__(self, options, name):
        self.o, self.name = options, name
        self.file = "pipelines/graphs/%s.lua" % name
        self.model = [] if name in PARALLEL else ["--random-weights", "1", "--size", options.size]
        self.threads = ["--threads", str(options.threads)]
        self.sessions = PARALLEL.get(name, 1)
        self.out = {"graph": name}

    def tectum(self, verb, *args):
        done = subprocess.run([self.o.program, verb, self.file, *args], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError("tectum %s %s: %s" % (verb, self.name, done.stderr.strip()[-400:]))
        return done.stdout

    # --- parts alone ----------------------------------------------------------------------------

    def measure_parts(self, work):
        path = os.path.join(work, "graph.costs")
        said = json.loads(self.tectum("profile", *self.model, *self.threads, "--frames", str(self.o.frames),
                                      "--format", "json", "-o", path))
        self.machine = said["machine"]
        self.costs = path
        self.rows = {}
        for row in said["variants"]:
            p = row["point"]
            if "percent" not in p:
                self.rows.setdefault(row["node"], {})[p.get("batch", 0)] = row
        drawn = json.loads(self.tectum("graph", "-T", "json"))
        self.nodes = {n["name"]: n["type"] for n in drawn["nodes"] if n["kind"] == "node"}
        # A prompt of a memory is recalled in place of its prefill; a graph here has one such chain.
        recalls = [n for n, kind in self.nodes.items() if kind == "memory_load" and n in self.rows]
        soft = [n for n, kind in self.nodes.items() if kind == "prefill" and self.sliced(n)]
        self.stands_for = {soft[0]: recalls[0]} if recalls and soft else {}

    def sliced(self, node):
        return any("slices" in row["point"] for row in self.rows.get(node, {}).values())

    def row_of(self, launch):
        node = self.stands_for.get(launch["node"], launch["node"])
        rows = self.rows.get(node)
        if not rows:
            return None
        fits = sorted(b for b in rows if b >= (launch["batch"] if len(rows) > 1 else 0)) or sorted(rows)[-1:]
        hard = launch["batch"] <= 1 and 0 in rows
        return rows[0 if hard else fits[0]]

    def alone_us(self, launch):
        row = self.row_of(launch)
        return row and row["mean"] * (launch["k"] if self.nodes.get(launch["node"]) == "decode" else 1)

    def is_soft(self, launch):
        return self.sliced(self.stands_for.get(launch["node"], launch["node"])) or \
            self.nodes.get(launch["node"]) in ("decode", "score")

    def hard_p99_us(self):
        """The longest chain of hard launches: they run one after the other."""
        sum_us = 0
        for name, kind in self.nodes.items():
            rows = self.rows.get(name)
            if rows and kind in ("prefill", "action") and not self.sliced(name):
                sum_us += rows[max(rows)]["p99"]
        return sum_us

    # --- frames ---------------------------------------------------------------------------------

    def run(self):
        hard = self.hard_p99_us() / 1000.0
        deadline = max(1.0, HARD * hard)
        words = ["--set", "frame.period_ms=%.1f" % (SOFT * deadline)]
        for word in WORDS.get(self.name, []):
            words += ["--set", word]
        for name, kind in self.nodes.items():
            if kind == "action":
                words += ["--set", "nodes.%s.deadline.ms=%.1f" % (name, deadline)]
        clock = "saturated" if self.sessions > 1 else "paced"
        policy = "fill" if any(kind in ("decode", "score") for kind in self.nodes.values()) else "default"
        said = self.tectum("run", *self.model, *self.threads, *words, "--costs", self.costs, "--policy", policy,
                           "--clock", clock, "--random-inputs", "1", "-n", str(self.o.frames), "--format", "json")
        frames = [json.loads(line) for line in said.splitlines()]
        warm = min(len(frames) // 10, 20)
        self.count(frames[warm * self.sessions:], deadline, SOFT * deadline)

    def count(self, frames, deadline, period):
        times, alone, apart, soft_us, ages, seen, unknown = [], 0.0, 0.0, 0.0, [], set(), 0
        missed, causes, ran, filled = 0, {}, 0, 0
        for f in frames:
            if f.get("missed"):
                missed += 1
                causes[f["cause"]] = causes.get(f["cause"], 0) + 1
            for read in f.get("read") or []:
                if read["age_us"] is not None:
                    ages.append((read["age_us"] / 1000.0, f["frame"] - read["frame"]))
            plan = f.get("plan")
            if not plan or not plan.get("launches") or f.get("start_us") is None:
                continue
            first = plan["launches"][0]["start_us"]
            if first in seen:  # of several sessions' frames that ran together each has all launches
                continue
            seen.add(first)
            ran += 1
            times.append((f["end_us"] - f["start_us"]) / 1000.0)
            filled += any(self.is_soft(launch) for launch in plan["launches"])
            for launch in plan["launches"]:
                us = self.alone_us(launch)
                if us is None:
                    unknown += 1
                    continue
                alone += us / 1000.0
                single = self.rows.get(launch["node"], {}).get(0)
                apart += (launch["rows"] * single["mean"] if single and launch["batch"] > 1 else us) / 1000.0
                if self.is_soft(launch):
                    soft_us += launch["end_us"] - launch["start_us"]
        spent = sum(times)
        self.out.update(frames=len(frames), ran=ran, period_ms=period, deadline_ms=deadline, frame_ms=quantiles(times),
                        sum_ms=spent, alone_ms=alone, ratio=spent / alone if alone else None,
                        apart=spent / apart if apart and self.sessions > 1 else None, unknown=unknown,
                        soft=soft_us / 1000.0 / spent if spent else 0.0, filled=filled / ran if ran else 0.0,
                        missed=missed, causes=causes,
                        age_ms=quantiles([a for a, _ in ages]), age_frames=quantiles([n for _, n in ages]))

    def load(self):
        checked = re.search(r"(\d+) captures?; captures take ([\d.]+ \w+)", self.tectum("check", *self.model))
        self.out.update(captures=int(checked[1]), captures_take=checked[2])
        if self.sessions > 1:
            return
        said = json.loads(self.tectum("bench", *self.model, *self.threads, "--frames", "1", "--warmup", "1", "--rounds", "1",
                                      "--format", "json"))
        self.out.update(open_ms=said["open"]["open_ms"], first_ms=said["open"]["first_frame_ms"])


def quantiles(x):
    x = sorted(x)
    if not x:
        return None
    return {"n": len(x), "p50": x[(len(x) + 1) // 2 - 1], "p99": x[max(0, int(0.99 * len(x) + 0.9999999) - 1)], "max": x[-1]}


def cell(value, form="%.2f"):
    return "-" if value is None else form % value


def three(q, form="%.1f"):
    return "-" if not q else " / ".join(form % q[k] for k in ("p50", "p99", "max"))


def table(o, machine, load, done):
    yield "# Graphs: frames against their parts, misses, ages of text, loading\n"
    yield "%s, %s cores, device %s, tier %s, %s lanes; load %.2f before, %.2f after; %s; commit %s.\n" % (
        machine.get("cpu"), machine.get("cores"), machine.get("device"), machine.get("tier"), machine.get("lanes"), load[0],
        os.getloadavg()[0], datetime.date.today(), o.commit)
    yield "```\npython3 tests/experiments/graphs.py PROGRAM --size %s --frames %d --threads %d -o DIR\n```\n" % (
        o.size, o.frames, o.threads)
    if load[0] > 0.5:
        yield "The machine was not quiet: times, ratios and misses may be other processes'.\n"
    yield ("Random weights (g24: the bundled robot's), random inputs, policy `fill` where there are texts, sentences that are read of 16 tokens at most; ms. Alone: the mean of the same launches "
           "by\nthemselves, summed; ratio: frames over that. Soft: share of frames with soft launches,\nand of all frames' time that those had.\n")
    yield "| graph | frames | period | deadline | frame p50 / p99 / max | ratio to alone | soft | misses | causes |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for g in done:
        yield "| %s | %d | %.1f | %.1f | %s | %s%s | %.2f, %.2f | %d | %s |" % (
            g["graph"], g["ran"], g["period_ms"], g["deadline_ms"], three(g["frame_ms"]), cell(g["ratio"]),
            "; %.2f of one after the other" % g["apart"] if g["apart"] else "", g["filled"], g["soft"], g["missed"],
            ", ".join("%s %d" % c for c in sorted(g["causes"].items())) or "-")
    yield "\n| graph | texts read | age, ms, p50 / p99 / max | age, frames | captures | they take | open, ms | first frame, ms |"
    yield "|---|---|---|---|---|---|---|---|"
    for g in done:
        yield "| %s | %d | %s | %s | %s | %s | %s | %s |" % (
            g["graph"], g["age_ms"]["n"] if g["age_ms"] else 0, three(g["age_ms"]), three(g["age_frames"], "%d"),
            g["captures"], g["captures_take"], cell(g.get("open_ms"), "%.0f"), cell(g.get("first_ms"), "%.0f"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("graphs", nargs="*")
    parser.add_argument("--size", default="small")
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", "-o", default="build/graphs")
    o = parser.parse_intermixed_args()
    load, done, machine = os.getloadavg(), [], {}
    with tempfile.TemporaryDirectory() as work:
        for name in o.graphs or [g for g in GRAPHS if os.path.exists("pipelines/graphs/%s.lua" % g)]:
            g = Graph(o, name)
            g.measure_parts(work)
            g.run()
            g.load()
            machine = g.machine
            done.append(g.out)
            print("# %s: %d frames, %d missed" % (name, g.out["ran"], g.out["missed"]), file=sys.stderr)
    o.commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "?"
    os.makedirs(o.out, exist_ok=True)
    with open(os.path.join(o.out, "graphs.json"), "w") as f:
        json.dump({"machine": machine, "load_before": load[0], "graphs": done}, f, indent=1)
    with open(os.path.join(o.out, "graphs.md"), "w") as f:
        f.write("\n".join(table(o, machine, load, done)) + "\n")
    return any(g["causes"].get("plan") for g in done)


if __name__ == "__main__":
    sys.exit(main())

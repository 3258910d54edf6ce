"""What is claimed about the long task, measured: tools/table/prove --help

A row is a way to run the pipeline (ROWS, or --list), as options of loop.py; every row plays the same goals and seeds. Each episode
is a line of OUT/episodes.jsonl as soon as it is over, and what is there of the same program, files and options is not played again. In
the end the table goes to stdout, and with all seeds to OUT/prove.json.
"""
import argparse
import datetime
import functools
import hashlib
import json
import multiprocessing
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

import goals
import judged

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRIDE = 5              # seeds of a row before the next row has its turn
GUIDED = "--pipeline tools/table/rtc.lua --guided"
RECALLS = ("recall", "recall_log")
DUE = 0.9               # of the period, on the virtual clock: actions are due then, as in the pipeline


def both(**fields):
    """The fields of both nodes that bring the memory in, as options."""
    return " ".join(f"--set nodes.{node}.{name.replace('__', '.')}={value}" for node in RECALLS for name, value in fields.items())


@dataclass(frozen=True)
class Row:
    options: str        # of loop.py
    about: str
    kinds: tuple = goals.KINDS


ROWS = {
    "whole": Row("", "planner, memory and arm; everything of the memory is computed anew"),
    "killed": Row("--kill", "kill -9 after the first skill"),
    "no memory": Row("--pipeline tools/table/no_memory.lua --forgetful", "the planner knows the goal alone"),
    "no planner": Row("--pipeline tools/table/no_planner.lua", "the arm is told the whole goal"),
    "reuse 0.3": Row(both(recompute__decay=0.449, recompute__floor=0), "of six layers a mean of 0.3 of the memory is computed anew"),
    "reuse 0": Row(both(select="reuse"), "nothing of the memory is computed anew"),
    "isolated": Row("--policy isolated", "each text has a prefill of its own, nothing is batched"),
    "oxygen": Row("--policy oxygen", "a shared prefill, all texts k steps a frame"),
    "slack_k": Row("--policy slack_k", "all texts, as many steps as there is time for"),
    "chaos": Row("--policy chaos", "random decisions"),
    "guided 0 ms": Row(GUIDED, "real-time chunking"),
    "100 ms": Row("--age 1", "the observation is a tenth of a second old"),
    "guided 100 ms": Row(f"--age 1 {GUIDED}", "the same with real-time chunking"),
    "200 ms": Row("--age 2", "two tenths"),
    "gently guided 100 ms": Row(f"--age 1 {GUIDED} --set nodes.act.guide.max_guidance_weight=1", "the same, pulled with a tenth of the weight"),
    "guided 200 ms": Row(f"--age 2 {GUIDED}", "the same with real-time chunking"),
    "gently guided 200 ms": Row(f"--age 2 {GUIDED} --set nodes.act.guide.max_guidance_weight=1", "the same, pulled with a tenth of the weight"),
    "standing 200 ms": Row("--age 2 --stand", "the arm stands still until the answer is there"),
}


@dataclass(frozen=True)
class Task:
    row: str
    kind: str
    seed: int
    words: tuple        # all options of loop.py
    out: str
    program: str
    policies: tuple     # under which the recording is run again on a virtual clock,
    periods: tuple      # with an observation every so many milliseconds


def options_of(row, a):
    return (*shlex.split(row.options), *([] if a.hurried else ["--unhurried"]))


def simulated(task, file, policy, period):
    """The recording on a virtual clock, with costs that were measured; its observations come once a period."""
    command = [task.program, "replay", str(file), "--sim", "--policy", policy, "--costs", f"{task.out}/table.costs", "--every", period,
               "--set", f"frame.period_ms={period}", "--set", f"nodes.act.deadline.ms={DUE * float(period)}", "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"prove: {shlex.join(command)}: {done.stderr[-400:]}")
    r = json.loads(done.stdout.splitlines()[-1])
    return {"observations": r["recorded"]["frames"], "skipped": r["simulated"]["skipped"], "missed": r["simulated"]["missed"],
            "causes": {c: n for c, n in r["simulated"]["causes"].items() if n}}


def played(task):
    """One episode, in a process of the pool."""
    folder = pathlib.Path(task.out) / f"work-{os.getpid()}"
    records = task.policies and "--kill" not in task.words
    words = [*task.words, "--program", task.program, "--memory", str(folder / "memory"), *(["--record", str(folder)] if records else [])]
    import loop
    a = loop.options().parse_args(words)
    folder.mkdir(parents=True, exist_ok=True)
    server = loop.server(a)
    try:
        result = loop.episode(loop.Robot(server, tables(), a), task.kind, task.seed)
        server.stop()
        result |= {"row": task.row, "options": list(task.words), "missed": server.missed, "server_processor_s": round(server.processor_s, 2)}
        if records:
            file = folder / f"{task.kind}-{task.seed}.mcap"
            result["virtual"] = {f"{policy}, {period} ms": simulated(task, file, policy, period)
                                 for policy in task.policies for period in task.periods}
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return result


def tables(made=[]):
    """The scene of this process: loading it takes as long as an episode."""
    if not made:
        import loop
        made.append(loop.Table())
    return made[0]


MODELS = ("table_arm", "table_planner")
COMMON = ("pipelines/table.lua", "pipelines/robots/metaworld.lua", "pipelines/models/prompts.lua",
          *(f"pipelines/checkpoints/{name}/{file}" for name in MODELS for file in ("config.json", "model.safetensors")))


@functools.cache
def made_of(program, words):
    """One hash of the program and of all files besides scripts that decide what comes out of a row."""
    import loop
    a = loop.options().parse_args(words)
    files = [program, *(ROOT / f for f in COMMON), ROOT / a.pipeline, ROOT / f"policies/{a.policy or 'fill'}.lua"]
    return hashlib.sha256("".join(sha256(f) for f in files).encode()).hexdigest()


def read(file, program):
    """Episodes that are done already and of the same program, pipelines, policies and weights, by row, options, kind and seed. A last
    line that is not whole is none."""
    done = {}
    for line in file.read_text().splitlines(keepends=True) if file.exists() else ():
        if not line.endswith("\n"):
            continue
        r = json.loads(line)
        if r["made_of"] == made_of(program, tuple(r["options"])):
            done[r["row"], tuple(r["options"]), r["kind"], r["seed"]] = r
    return done


def todo(a, program, done):
    """Tasks in the order in which rows stay alike in length, so that one that is stopped compares equal seeds."""
    out = []
    for begin in range(0, a.episodes, STRIDE):
        for name in a.only:
            row = ROWS[name]
            words = options_of(row, a)
            out += [Task(name, kind, seed, words, str(a.out), str(program), a.virtual if name == "whole" or a.all_virtual else (), a.periods)
                    for seed in range(a.seed + begin, a.seed + min(begin + STRIDE, a.episodes))
                    for kind in row.kinds if kind in a.kinds and (name, words, kind, seed) not in done]
    return out


def sha256(file):
    return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()


def about(a, program):
    """Of what the figures are."""
    git = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=8"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    models = {name: sha256(ROOT / f"pipelines/checkpoints/{name}/model.safetensors") for name in MODELS}
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return {"commit": git, "program_sha256": program, "weights_sha256": models, "command": shlex.join(sys.argv), "first_seed": a.seed,
            "day": str(datetime.date.today()), "cpu": cpu, "processors": os.cpu_count(), "load": [round(x, 1) for x in os.getloadavg()],
            "rows": {name: {"about": row.about, "options": list(options_of(row, a))} for name, row in ROWS.items()}}


def measured_costs(a, program):
    """What launches take on this machine, once."""
    file = a.out / "table.costs"
    if a.virtual and not file.exists():
        print("tectum profile: what launches take here", flush=True)
        subprocess.run([str(program), "profile", "pipelines/table.lua", "--threads", "1", "-o", str(file)], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(a, program, log):
    """Plays what is not there yet, and appends it."""
    tasks = todo(a, program, read(log, program))
    if not tasks:
        return
    print(f"{len(tasks)} episodes to play", flush=True)
    measured_costs(a, program)
    pool = multiprocessing.get_context("spawn").Pool(a.jobs)
    with open(log, "a+b") as out:           # a line that was not finished goes
        out.seek(0)
        out.truncate(out.read().rfind(b"\n") + 1)
    with open(log, "a") as out:
        for i, result in enumerate(pool.imap_unordered(played, tasks)):
            out.write(json.dumps({**result, "made_of": made_of(program, tuple(result["options"]))}) + "\n")
            out.flush()
            if (i + 1) % 20 == 0:
                print(f"  {i + 1} of {len(tasks)}", flush=True)
    pool.close()
    pool.join()


def main():
    p = argparse.ArgumentParser(prog="prove", description="The table's claims as one bench.")
    p.add_argument("--episodes", type=int, default=50, help="of each kind of goal and row")
    p.add_argument("--only", action="append", choices=list(ROWS), metavar="ROW", help="this row; may be given again; all")
    p.add_argument("--kinds", default=",".join(goals.KINDS))
    p.add_argument("--seed", type=int, help="the first one; that of loop.py")
    p.add_argument("--jobs", type=int, default=2, help="episodes at once")
    p.add_argument("--hurried", action="store_true", help="the pipeline's own deadlines, not seconds: for a machine that does nothing else")
    p.add_argument("--virtual", default="fill,oxygen,isolated", help="policies under which what was recorded of `whole` is run again on a virtual "
                                                               "clock, to count late frames; empty: none")
    p.add_argument("--periods", default="100,6", help="milliseconds between observations there: the pipeline's own, and hardly more than see "
                                                      "and act take")
    p.add_argument("--all-virtual", action="store_true", help="of all rows, not of `whole` alone")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "build/table/prove")
    p.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/tectum")
    p.add_argument("--table", action="store_true", help="play nothing: the table of what is there")
    p.add_argument("--list", action="store_true", help="the rows, and nothing else")
    a = p.parse_args()
    a.only, a.kinds = a.only or list(ROWS), a.kinds.split(",")
    a.virtual, a.periods = tuple(v for v in a.virtual.split(",") if v), tuple(a.periods.split(","))
    if a.list:
        for name, row in ROWS.items():
            print(f"{name:24s} {row.about}\n{'':24s} loop.py {shlex.join(options_of(row, a))}")
        return
    import loop     # needs the simulator, as does all but --list and --help
    a.seed = loop.FIRST_SEED if a.seed is None else a.seed
    a.out = a.out.resolve()
    a.out.mkdir(parents=True, exist_ok=True)
    log, program = a.out / "episodes.jsonl", a.program.resolve()
    if not a.table:
        run(a, program, log)
    judged.report(about(a, sha256(program)), list(read(log, program).values()), a.out / "prove.json")


if __name__ == "__main__":
    main()

"""What the demo claims, measured: tools/demo/prove --help

Every part writes a table to stdout and its rows to OUT/prove.json. Closed loops run in two processes that share a
server, so requests of two robots meet in it.
"""
import argparse
import concurrent.futures
import datetime
import hashlib
import json
import pathlib
import platform
import signal
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import episode
from rollout import FIRST_SEED, sentences
from sim import OPPOSITE, STEP_MS, TASKS, Sim

PIPELINE = "pipelines/demo_metaworld.lua"
AGED_PIPELINE = "pipelines/demo_metaworld_aged.lua"
CHECKPOINT = "pipelines/checkpoints/metaworld"
ROBOTS = 2
ENOUGH = 20     # episodes a task, for a claim about a rate
GUARD = ("--set", "guard.hard_us=50000")        # this machine may be shared: a policy that has to wait for a core is not late


class Serve:
    """`tectum serve` on a free port."""

    def __init__(self, tectum, pipeline, *options):
        command = [tectum, "serve", pipeline, "--late-ok", "--port", "0", "--threads", "1", "--format", "json", *GUARD, *options]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if "ws://" not in line:
            raise SystemExit(f"prove: {' '.join(command)} did not start: {line}")
        self.port = int(json.loads(line)["url"].rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=60)[0]
        if self.process.returncode:
            raise SystemExit(f"prove: the server ended with {self.process.returncode}")
        self.summary = json.loads(said.splitlines()[-1])

    def policy_ran(self):
        """Whether the policy decided; one that fails is replaced by the default plan, which would prove nothing."""
        p = self.summary["policy"]
        return p["calls"] > 0 and not p["quarantined"] and p["failures"] <= 0.001 * p["calls"]


def loop(answerer, task, seeds, rules, instruction):
    """Episodes of one task, in a process of its own. `answerer` is a port or the folder of a checkpoint."""
    from policy import Local, Server
    policy = Local(answerer) if isinstance(answerer, str) else Server("127.0.0.1", answerer)
    sim, rows = Sim(task), []
    for seed in seeds:
        r = episode.run(sim, policy, seed, rules, instruction)
        rows.append({"task": task, "seed": seed, "success": r.success, "steps": r.steps, "joint": r.joint,
                     "sentences": sentences(r.said), "right": sum(a == b for _, a, b in r.said), "said": len(r.said),
                     "bytes": hashlib.sha256(b"".join(r.replies)).hexdigest(), "infer_ms": r.infer_ms})
    return rows


def loops(answerer, seeds, rules, tasks, say=None):
    """Rows of all tasks; the robots take a part of the seeds each."""
    jobs = [(t, seeds[i::ROBOTS]) for t in tasks for i in range(ROBOTS) if seeds[i::ROBOTS]]
    with concurrent.futures.ProcessPoolExecutor(ROBOTS) as pool:
        done = [pool.submit(loop, answerer, t, s, rules, say and say(t)) for t, s in jobs]
        return sorted((r for d in done for r in d.result()), key=lambda r: (r["task"], r["seed"]))


def same(a, b):
    """How many episodes agree in success, steps, sentences; and in the bytes of all actions."""
    keys = ("success", "steps", "sentences")
    other = {(r["task"], r["seed"]): r for r in b}
    pairs = [(r, other[r["task"], r["seed"]]) for r in a]
    return sum(all(x[k] == y[k] for k in keys) for x, y in pairs), sum(x["bytes"] == y["bytes"] for x, y in pairs)


def by_task(rows):
    done = {t: [r["success"] for r in rows if r["task"] == t] for t in TASKS}
    return {t: f"{sum(d)}/{len(d)}" for t, d in done.items() if d}


def percent(rows):
    return 100 * sum(r["success"] for r in rows) / len(rows)


def right(rows):
    return 100 * sum(r["right"] for r in rows) / sum(r["said"] for r in rows)


def print_row(name, rows, more=""):
    cells = "  ".join(f"{v:>9s}" for v in by_task(rows).values())
    steps = np.mean([r["steps"] for r in rows])
    print(f"{name:28s} {cells}  {percent(rows):5.1f} %  {steps:5.1f}  {right(rows):5.1f} %  {more}", flush=True)


def print_head(title, tasks):
    cells = "  ".join(f"{t[:9]:>9s}" for t in tasks)
    print(f"\n{title}\n{'':28s} {cells}     mean  steps  sentences right", flush=True)


def row(part, name, rows, **more):
    ms = np.concatenate([r["infer_ms"] for r in rows])
    return {"part": part, "name": name, "episodes": len(rows), "success": by_task(rows), "percent": percent(rows),
            "steps": float(np.mean([r["steps"] for r in rows])), "sentences_right_percent": right(rows),
            "client_ms": {"p50": float(np.median(ms)), "p99": float(np.percentile(ms, 99)), "max": float(ms.max())}, **more}


def claim(a, holds, what):
    """A claim that does not hold is told and makes the exit status 1."""
    if not holds:
        a.wrong.append(what)
        print(f"    NOT TRUE: {what}", flush=True)


def check_goals(a, rows):
    """What is said of the checkpoint; with few episodes chance decides, so then it is only printed."""
    if a.episodes < ENOUGH:
        return
    done = {t: percent([r for r in rows if r["task"] == t]) for t in a.tasks}
    claim(a, percent(rows) > 90, "over 90 % on average")
    claim(a, min(done.values()) >= 80, "no task under 80 %")
    claim(a, right(rows) > 95, "the sentence is right in over 95 %")


def prove_policies(a):
    """The same seeds under every policy: the same success, steps, sentences and bytes."""
    seeds, rules, out = list(range(a.seed, a.seed + a.episodes)), episode.Rules(), []
    print_head(f"Policies, {a.episodes} episodes a task; equal: to isolated", a.tasks)
    with Serve(a.tectum, PIPELINE, "--policy", "isolated") as s:
        base = loops(s.port, seeds, rules, a.tasks)
    print_row("isolated", base)
    out.append(row("policies", "isolated", base))
    claim(a, s.policy_ran(), "isolated decided")
    check_goals(a, base)
    runs, options = [], [("oxygen", seeds, ())]
    options += [("chaos", seeds[i::a.random], ("--param", f"seed={i + 1}")) for i in range(a.random)]
    for policy, some, more in options:
        with Serve(a.tectum, PIPELINE, "--policy", policy, *more) as s:
            runs.append((" ".join((policy, *more[1:])), loops(s.port, some, rules, a.tasks)))
        claim(a, s.policy_ran(), f"{runs[-1][0]} decided")
    if a.random:
        runs.append((f"all {a.random} of chaos", [r for name, rows in runs if name.startswith("chaos") for r in rows]))
    for name, rows in runs:
        episodes, exact = same(rows, base)
        print_row(name, rows, f"equal {episodes}/{len(rows)}, bytes {exact}/{len(rows)}")
        out.append(row("policies", name, rows, equal_episodes=episodes, equal_bytes=exact))
        claim(a, episodes == exact == len(rows), f"{name}: the same episodes and bytes")
    return out


def prove_reference(a):
    """PyTorch in fp32 on the same seeds, against the engine in bf16 (as shipped) and in fp32."""
    seeds, rules, out = list(range(a.seed, a.seed + a.episodes)), episode.Rules(), []
    print_head(f"PyTorch and tectum, {a.episodes} episodes a task; equal: to PyTorch", a.tasks)
    base = loops(str(ROOT / CHECKPOINT), seeds, rules, a.tasks)
    print_row("PyTorch fp32", base)
    out.append(row("reference", "PyTorch fp32", base))
    for dtype in ("f32", "bf16"):
        with Serve(a.tectum, PIPELINE, "--set", f"model.dtype={dtype}") as s:
            rows = loops(s.port, seeds, rules, a.tasks)
        print_row(f"tectum {dtype}", rows, f"equal {same(rows, base)[0]}/{len(rows)}")
        out.append(row("reference", f"tectum {dtype}", rows, equal_episodes=same(rows, base)[0]))
    return out


def prove_ages(a):
    """Success against the age of the observation, for both checkpoints; and for the first with late actions not known to it."""
    seeds, out = list(range(a.seed, a.seed + a.episodes)), []
    print_head(f"Age of the observation, {a.episodes} episodes a task", a.tasks)
    for name, pipeline, given in (("metaworld", PIPELINE, False), ("metaworld_aged", AGED_PIPELINE, True)):
        with Serve(a.tectum, pipeline) as s:
            for age in a.ages:
                rows = loops(s.port, seeds, episode.Rules(age=age, given=given), a.tasks)
                print_row(f"{name} {age * STEP_MS:.0f} ms", rows)
                out.append(row("ages", name, rows, age_ms=age * STEP_MS))
                claim(a, not given or a.episodes < ENOUGH or percent(rows) > 70, f"{name} at {age * STEP_MS:.0f} ms: over 70 %")
    plot(out, a.out / "ages.svg")
    return out


def prove_language(a):
    """The opposite instruction in the same scene: the joint moves the other way, or not at all where it is at its end."""
    seeds, rules, out = list(range(a.seed, a.seed + a.episodes)), episode.Rules(), []
    print(f"\nThe opposite instruction, {a.episodes} episodes a task")
    print(f"{'scene':14s} {'told':20s} {'done as the scene':18s} joint moved", flush=True)
    with Serve(a.tectum, PIPELINE) as s:
        for task in (t for t in OPPOSITE if t in a.tasks):
            for told in (task, OPPOSITE[task]):
                rows = loops(s.port, seeds, rules, (task,), lambda _: TASKS[told].instruction)
                joint = [r["joint"] for r in rows]
                opened = np.mean(joint) * (-1 if task.startswith("drawer") else 1)      # a shut drawer can only stay shut
                claim(a, opened > 0.02 if "open" in told else opened < 0.02, f"{task}, told {told}: the joint obeys")
                print(f"{task:14s} {TASKS[told].instruction:20s} {sum(r['success'] for r in rows):3d}/{len(rows):3d}            "
                      f"{np.mean(joint):+.3f} ({np.min(joint):+.3f} to {np.max(joint):+.3f})", flush=True)
                out.append({"part": "language", "scene": task, "told": TASKS[told].instruction, "done": sum(r["success"] for r in rows),
                            "episodes": len(rows), "joint_mean": float(np.mean(joint))})
    return out


def observations(count, seed):
    """Observations of scripted experts on their way, equally many of each task."""
    out = []
    for name in TASKS:
        sim, some = Sim(name), []
        while len(some) < count // len(TASKS):
            sim.reset(seed + len(some))
            for step in range(80):
                if step % 8 == 0:
                    some.append(dict(sim.observe(), tectum={"noise": episode.noise(seed + len(some), step)}))
                if sim.step(sim.expert_action()):
                    break
        out += some[:count // len(TASKS)]
        sim.close()
    return out


def quantiles(ms):
    return {"p50": float(np.median(ms)), "p99": float(np.percentile(ms, 99)), "max": float(np.max(ms)), "n": len(ms)}


def prove_latency(a):
    """One observation after the other to PyTorch and to the server, in turn, in one process."""
    from policy import Local, Server
    out, times = [], {}
    local = Local(str(ROOT / CHECKPOINT))
    with Serve(a.tectum, PIPELINE) as s:
        server = Server("127.0.0.1", s.port)
        for obs in observations(a.observations, a.seed):
            for tasks in (["action"], ["action", "text"]):
                for name, policy in (("PyTorch fp32", local), ("tectum bf16, client", server)):
                    begin = time.perf_counter()
                    reply = policy.infer(dict(obs, tectum=dict(obs["tectum"], tasks=tasks)))
                    times.setdefault((" + ".join(tasks), name), []).append(1e3 * (time.perf_counter() - begin))
                    if policy is server:
                        times.setdefault((" + ".join(tasks), "tectum bf16, server"), []).append(reply["server_timing"]["infer_ms"])
    print(f"\nInference in ms, {a.observations} observations in turn, one thread each\n{'':44s}   p50    p99    max")
    for (tasks, name), ms in sorted(times.items()):
        q = quantiles(ms)
        print(f"{tasks:16s} {name:27s} {q['p50']:6.2f} {q['p99']:6.2f} {q['max']:6.2f}")
        out.append({"part": "latency", "tasks": tasks, "name": name, "ms": q})
    print(f"the server says: {json.dumps(s.summary)}")
    return out + [{"part": "latency", "server": s.summary}]


def plot(rows, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(6, 3.4))
    for name in dict.fromkeys(r["name"] for r in rows):
        mine = [r for r in rows if r["name"] == name]
        axes.plot([r["age_ms"] for r in mine], [r["percent"] for r in mine], "o-", label=name)
    axes.set(xlabel="age of the observation, ms", ylabel="success, %", ylim=(0, 102))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def prove_observations(a):
    """Recorded observations, the engine against PyTorch: tensors within bounds, sentences equal (`tectum verify` is the judge)."""
    case, out = a.out / "observations", []
    record = [sys.executable, "-W", "ignore", str(ROOT / CHECKPOINT / "train/cases.py"), str(ROOT / CHECKPOINT), str(case)]
    per_task = -(-a.observations // (9 * len(TASKS)))       # an episode has nine observations or so
    subprocess.run([*record, "--episodes", str(per_task), "--seed", str(a.seed)], check=True, stdout=subprocess.DEVNULL)
    episodes = json.loads((case / "case.json").read_text())["episodes"]
    count = sum(e["n_inferences"] for e in episodes)
    print(f"\n{count} recorded observations of {len(episodes)} episodes against PyTorch in float64")
    for dtype, key, factor in (("f32", "err_fp32", 4), ("bf16", "err_bf16", 1.5)):
        done = subprocess.run([a.tectum, "verify", str(case), "--dtype", dtype], cwd=ROOT, capture_output=True, text=True)
        checks = [json.loads(line) for line in done.stdout.splitlines()]
        alone = [c["check"] for c in checks if not c["ok"] and c["check"].endswith("actions")]
        claim(a, checks and not [c for c in checks if not c["ok"] and c["check"] not in alone], f"{dtype}: prompts, taps and sentences")
        got, bound = pooled(case, checks, key, factor)
        print(f"{dtype:5s} {len(checks)} checks; actions max {got[0]:.3g} of {bound[0]:.3g}, rms {got[1]:.3g} of {bound[1]:.3g}; "
              f"beyond the bound of their own episode: {sum(c.endswith('.actions') for c in alone)} of {len(episodes)}", flush=True)
        claim(a, got[0] <= bound[0] and got[1] <= bound[1], f"{dtype}: actions of all observations within the bounds")
        out.append({"part": "observations", "dtype": dtype, "observations": count, "checks": len(checks), "max": got[0], "rms": got[1],
                    "bound_max": bound[0], "bound_rms": bound[1], "episodes_beyond_their_own": alone})
    return out


def pooled(case, checks, key, factor):
    """Actions of all observations as one tensor: largest and rms distance, and the bounds from PyTorch's own distance.

    One episode is a dozen observations: near contact a rounding may grow a hundred times, in the one run or in the other, so
    its own bound is a matter of luck.
    """
    tensors = json.loads((case / "case.json").read_text())["tensors"]
    mine = [(c, tensors[c["check"]]) for c in checks if c["check"].endswith(".actions")]
    sizes = [np.prod(t["shape"]) for _, t in mine]
    rms = lambda values: float(np.sqrt(np.average(np.square(values), weights=sizes)))
    got = max(c["max_abs"] for c, _ in mine), rms([c["rms"] for c, _ in mine])
    return got, (factor * max(t[key]["max"] for _, t in mine), factor * rms([t[key]["rms"] for _, t in mine]))


PARTS = {"observations": prove_observations, "policies": prove_policies, "reference": prove_reference, "ages": prove_ages,
         "language": prove_language, "latency": prove_latency}


def machine():
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {"cpu": cpu, "date": datetime.date.today().isoformat(), "commit": commit, "command": " ".join(sys.argv)}


def main():
    p = argparse.ArgumentParser(prog="prove", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", default=list(PARTS), help="of " + ", ".join(PARTS) + "; all")
    p.add_argument("--tectum", default=str(ROOT / "build/release/tectum"))
    p.add_argument("--episodes", type=int, default=200, help="a task")
    p.add_argument("--seed", type=int, default=FIRST_SEED)
    p.add_argument("--tasks", type=lambda s: s.split(","), default=list(TASKS), help="of " + ", ".join(TASKS))
    p.add_argument("--random", type=int, default=10, help="random legal policies, which share the episodes")
    p.add_argument("--ages", type=lambda s: [int(x) for x in s.split(",")], default=[0, 2, 4, 6, 8], help="control steps of 12.5 ms")
    p.add_argument("--observations", type=int, default=500)
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "build/demo")
    a = p.parse_args()
    for part in a.parts:
        if part not in PARTS:
            p.error(f"there is no part '{part}'; there are {', '.join(PARTS)}")
    if a.episodes < a.random:
        p.error(f"--random {a.random} policies share --episodes {a.episodes}: at least one each")
    if a.observations < len(TASKS):
        p.error(f"--observations {a.observations}: at least {len(TASKS)}")
    a.out.mkdir(parents=True, exist_ok=True)
    a.wrong, report = [], {"machine": machine(), "rows": []}
    print(f"{report['machine']['cpu']}, commit {report['machine']['commit']}")
    for part in a.parts:
        print(f"({part} begins; with the numbers of the defaults it takes minutes)", file=sys.stderr, flush=True)
        begin = time.time()
        report["rows"] += PARTS[part](a)
        print(f"({part}: {time.time() - begin:.0f} s)", flush=True)
        (a.out / "prove.json").write_text(json.dumps(report, indent=1) + "\n")
    return 1 if a.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Episodes in closed loop: tools/demo/rollout --help"""
import argparse
import json
import pathlib
import sys
import time

import numpy as np

import episode
from sim import OPPOSITE, STEP_MS, TASKS, Sim

FIRST_SEED = 500_000


def sentences(said):
    """The sentences in the order they began."""
    order = []
    for step, text, _ in said:
        if text and (not order or order[-1][1] != text):
            order.append((step, text))
    return order


def log_line(result, rules, policy_name):
    return json.dumps({
        "task": result.task, "seed": result.seed, "policy": policy_name, "success": result.success, "steps": result.steps,
        "age": rules.age, "given": rules.given, "joint": round(result.joint, 4), "sentences": sentences(result.said),
        "right": sum(a == b for _, a, b in result.said), "inferences": len(result.said),
        "infer_ms": round(float(np.median(result.infer_ms)), 3)})


def summary(name, results, rules, seconds):
    steps = np.mean([r.steps for r in results])
    said = [s for r in results for s in r.said]
    ms = np.concatenate([r.infer_ms for r in results])
    return (f"{name:13s} {sum(r.success for r in results):4d}/{len(results)} done  {steps:5.1f} steps  {steps * STEP_MS / 1e3:.2f} s  "
            f"age {rules.age * STEP_MS:.0f} ms  sentence right {sum(a == b for _, a, b in said)}/{len(said)}  "
            f"infer p50 {np.median(ms):.1f} p99 {np.percentile(ms, 99):.1f} ms  {seconds / len(results):.2f} s an episode")


def make_policy(a, parser):
    from policy import Local, Server
    if a.checkpoint:
        return Local(a.checkpoint)
    host, colon, port = a.server.rpartition(":")
    if not colon or not port.isdigit():
        parser.error(f"--server {a.server}: HOST:PORT is wanted")
    try:
        return Server(host, int(port))
    except OSError as e:
        raise SystemExit(f"rollout: no server at {a.server}: {e}")


def arguments():
    p = argparse.ArgumentParser(prog="rollout", description="Meta-World tasks in closed loop.",
                                formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--server", default="127.0.0.1:8000", help="HOST:PORT of an openpi server; tools/demo/rollout starts one of its own")
    p.add_argument("--checkpoint", help="the PyTorch model of this folder in place of a server")
    p.add_argument("--tasks", default=",".join(TASKS), help="of " + ", ".join(TASKS))
    p.add_argument("--episodes", type=int, default=5, help="per task")
    p.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first episode; the next ones follow")
    p.add_argument("--execute", type=int, default=8, help="control steps between observations")
    p.add_argument("--age", type=int, default=0,
                   help=f"control steps until a chunk arrives: at most --execute, and with it at most {episode.HORIZON}")
    p.add_argument("--given", action="store_true", help="send the actions that are executed meanwhile, as prev_actions")
    p.add_argument("--opposite", action="store_true", help="say the opposite of the task's own instruction")
    p.add_argument("--film", type=pathlib.Path, help="write the first episode of each task to this folder, as a GIF and a strip")
    p.add_argument("--log", help="append a JSON line an episode to this file")
    a = p.parse_args()
    a.tasks = a.tasks.split(",")
    for name in a.tasks:
        if name not in TASKS:
            p.error(f"there is no task '{name}'; there are {', '.join(TASKS)}")
        if a.opposite and name not in OPPOSITE:
            p.error(f"{name} has no opposite")
    if a.episodes < 1:
        p.error("--episodes: at least 1")
    try:
        a.rules = episode.Rules(a.execute, a.age, a.given)
        if a.film:
            a.film.mkdir(parents=True, exist_ok=True)
    except (ValueError, OSError) as e:
        p.error(str(e))
    return a, p


def run_task(a, name, policy):
    sim, results, seconds = Sim(name), [], 0.0
    for i in range(a.episodes):
        film = None
        if a.film and i == 0:
            from film import Film
            film = Film(sim, a.rules)
        instruction = TASKS[OPPOSITE[name]].instruction if a.opposite else None
        begin = time.time()
        results.append(episode.run(sim, policy, a.seed + i, a.rules, instruction, film))
        seconds += time.time() - begin
        if film:
            film.write(f"{a.film}/{name}.gif", results[-1])
            print(f"    film: {a.film}/{name}.gif and .png", flush=True)
        if a.log:
            with open(a.log, "a") as log:
                log.write(log_line(results[-1], a.rules, a.checkpoint or a.server) + "\n")
    sim.close()
    print(summary(name, results, a.rules, seconds), flush=True)
    print("    says " + "; ".join(f'"{t}" from step {s}' for s, t in sentences(results[0].said)), flush=True)
    if a.opposite:
        print("    told the opposite: `done` and `right` are those of the scene's own task; the joint moved "
              f"{np.mean([r.joint for r in results]):+.3f}", flush=True)


def main():
    a, parser = arguments()
    policy = make_policy(a, parser)
    for name in a.tasks:
        run_task(a, name, policy)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

"""Episodes in closed loop: python play.py HOST:PORT [--episodes 67] [--tasks button,...] [--log FILE] [--record OUT]

The server is `tectum serve FOLDER`; the client is openpi's, unmodified, and a new connection begins each episode. The loop and
its rules are those of the other robot (tools/demo/episode.py); each chunk starts from noise of the episode's seed and step.
--guided sends what is left of the chunk that is carried out, as real-time chunking wants it: the folder's rtc_config must be on.
--opposite starts with a drawer half open and says one instruction and then the other. --record keeps every fourth observation of
the first episode of each task, with its noise, as inputs of `tectum run --inputs`.
"""
import argparse
import json
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "tools/demo"))        # the simulator and the client

import episode
from policy import Server
from sim import TASKS, Sim

TASKS_HERE = ("button", "drawer_open", "drawer_close")


class Arm(Server):
    """openpi's client with the names that LeRobot's policy asks for."""

    def __init__(self, where, guided):
        host, _, port = where.rpartition(":")
        super().__init__(host, int(port))
        self.guided = guided

    def infer(self, obs):
        seen = {"observation.images.corner": obs["observation/image"], "observation.images.wrist": obs["observation/wrist_image"],
                "observation.state": obs["observation/state"], "task": obs["prompt"],
                "tectum": {"noise": obs["tectum"]["noise"]}}
        left = obs.get("prev_actions")
        if left is not None and len(left):
            seen |= {"prev_chunk_left_over": left, "inference_delay": np.array([self.guided], np.float32)}
        return super().infer(seen)


class Watch:
    """Milliseconds that the server took, observations, and how far a new chunk is from the one that is carried out."""

    def __init__(self):
        self.ms, self.rows, self.jumps, self.last = [], [], [], None

    def __call__(self, step, obs, reply):
        self.ms.append(reply.get("server_timing", {}).get("infer_ms", float("nan")))
        self.rows.append(obs)

    def stepped(self, step, sim, chunks):
        if chunks.current is None or step - chunks.current[0] >= len(chunks.current[1]):
            return
        begin, action = chunks.current[0], chunks.action(step)
        if self.last is not None and begin != self.last[0]:
            self.jumps.append(float(np.abs(action - self.last[1])[:3].max()))
        self.last = begin, action


def keep(out, name, rows):
    """Inputs of `tectum run --inputs` and of its --noise."""
    from PIL import Image
    from safetensors.numpy import save_file
    lines, rows = [], rows[::4]
    for i, seen in enumerate(rows):
        line = {"observation.state": seen["observation/state"].tolist(), "task": seen["prompt"]}
        for view, key in ("corner", "observation/image"), ("wrist", "observation/wrist_image"):
            Image.fromarray(seen[key]).save(out / f"{name}_{view}_{i:02d}.png")
            line[f"observation.images.{view}"] = f"@{name}_{view}_{i:02d}.png"
        lines.append(json.dumps(line))
    (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    save_file({"noise": np.stack([seen["tectum"]["noise"] for seen in rows])}, out / f"{name}.noise.safetensors")


def opposites(a, rules):
    """The same drawer, half open, told to open it and told to close it: how far it moved, in metres."""
    sim = Sim("drawer_open")
    moved = {"drawer_open": [], "drawer_close": []}
    for seed in range(a.seed, a.seed + a.episodes):
        for name, way in moved.items():
            arm, reset = Arm(a.server, 0), sim.reset
            sim.reset = lambda s: reset(s, 0.10)
            result = episode.run(sim, arm, seed, rules, TASKS[name].instruction)
            sim.reset = reset
            arm.client._ws.close()
            way.append(-result.joint)
    sim.close()
    print("half open, told to open: %.3f m outwards, %d/%d outwards;  told to close: %.3f m, %d/%d inwards" % (
        np.mean(moved["drawer_open"]), np.sum(np.array(moved["drawer_open"]) > 0.02), a.episodes,
        np.mean(moved["drawer_close"]), np.sum(np.array(moved["drawer_close"]) < -0.02), a.episodes), flush=True)


def play(a, name, rules):
    sim, results, seen = Sim(name), [], Watch()
    for i in range(a.episodes):
        arm, watch = Arm(a.server, rules.age), Watch()
        result = episode.run(sim, arm, a.seed + i, rules, watch=watch)
        arm.client._ws.close()
        results.append(result)
        seen.ms, seen.jumps = seen.ms + watch.ms, seen.jumps + watch.jumps
        if a.log:
            with open(a.log, "a") as log:
                log.write(json.dumps({"task": name, "seed": result.seed, "success": result.success, "steps": result.steps, "age": rules.age,
                                      "guided": rules.left, "infer_ms": [round(x, 3) for x in watch.ms]}) + "\n")
        if a.record and i == 0:
            a.record.mkdir(parents=True, exist_ok=True)
            keep(a.record, name, watch.rows)
    sim.close()
    good = [r.steps for r in results if r.success]
    print(f"{name:12s} {len(good)}/{a.episodes} done  {np.mean([r.steps for r in results]):.1f} steps, of those that are done "
          f"{np.mean(good or [np.nan]):.1f}  jump at a new chunk {np.mean(seen.jumps or [np.nan]):.3f}  server p50 "
          f"{np.median(seen.ms):.2f} p99 {np.percentile(seen.ms, 99):.2f} max {np.max(seen.ms):.2f} ms of {len(seen.ms)}", flush=True)
    return len(good)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("server")
    p.add_argument("--tasks", default=",".join(TASKS_HERE))
    p.add_argument("--episodes", type=int, default=67, help="per task")
    p.add_argument("--seed", type=int, default=500_000)
    p.add_argument("--execute", type=int, default=8)
    p.add_argument("--age", type=int, default=0, help="control steps between an observation and its chunk")
    p.add_argument("--guided", action="store_true")
    p.add_argument("--opposite", action="store_true")
    p.add_argument("--log", type=pathlib.Path)
    p.add_argument("--record", type=pathlib.Path)
    a = p.parse_args()
    rules = episode.Rules(execute=a.execute, age=a.age, left=a.guided)
    if a.opposite:
        return opposites(a, rules)
    names = a.tasks.split(",")
    done = sum(play(a, name, rules) for name in names)
    print(f"{done}/{a.episodes * len(names)} done")


if __name__ == "__main__":
    main()

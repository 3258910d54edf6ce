"""Episodes in closed loop: python play.py HOST:PORT [--episodes 20] [--tasks button,...] [--log FILE] [--record OUT]

The server is `tectum serve FOLDER`; the client is openpi's, unmodified, and a new connection begins each episode. Of each reply the
robot executes --execute actions before it looks again: the checkpoint's n_action_steps, or 1 where the server ensembles.
--record keeps every fourth observation of the first episode of each task as inputs of `tectum run --inputs`.
"""
import argparse
import json
import pathlib
import sys
import time

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "tools/demo"))        # the simulator and the client

from policy import Server
from sim import TASKS, Sim

SIZE = 80
MAX_STEPS = 200
TASKS_HERE = ("button", "drawer_open", "faucet_open")


def observation(sim):
    seen = sim.observe()
    return {"observation.images.corner": seen["observation/image"], "observation.images.wrist": seen["observation/wrist_image"],
            "observation.state": seen["observation/state"]}


def episode(sim, where, seed, execute):
    """-> success, steps, milliseconds of each reply at the client and in the server, observations"""
    host, _, port = where.rpartition(":")
    policy, rows, client_ms, server_ms = Server(host, int(port)), [], [], []
    sim.reset(seed)
    for step in range(MAX_STEPS):
        if step % execute == 0:
            seen = observation(sim)
            begin = time.perf_counter()
            reply = policy.infer(seen)
            client_ms.append(1e3 * (time.perf_counter() - begin))
            server_ms.append(reply.get("server_timing", {}).get("infer_ms", float("nan")))
            actions = np.array(reply["actions"])
            rows.append(seen)
        if sim.step(actions[step % execute]):
            break
    policy.client._ws.close()
    return sim.success, sim.steps, client_ms, server_ms, rows


def keep(out, name, rows):
    """Inputs of `tectum run --inputs`."""
    from PIL import Image
    lines = []
    for i, seen in enumerate(rows[::4]):
        line = {"observation.state": seen["observation.state"].tolist()}
        for view in ("corner", "wrist"):
            file = f"{name}_{view}_{i:02d}.png"
            Image.fromarray(seen[f"observation.images.{view}"]).save(out / file)
            line[f"observation.images.{view}"] = f"@{file}"
        lines.append(json.dumps(line))
    (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("server")
    p.add_argument("--tasks", default=",".join(TASKS_HERE))
    p.add_argument("--episodes", type=int, default=20, help="per task")
    p.add_argument("--seed", type=int, default=500_000)
    p.add_argument("--execute", type=int, default=8)
    p.add_argument("--log", type=pathlib.Path)
    p.add_argument("--record", type=pathlib.Path)
    a = p.parse_args()
    for name in a.tasks.split(","):
        assert name in TASKS, f"no task {name}"
        sim, done, steps, ms, served = Sim(name, SIZE), 0, [], [], []
        for i in range(a.episodes):
            success, n, client_ms, server_ms, rows = episode(sim, a.server, a.seed + i, a.execute)
            done, steps, ms, served = done + success, steps + [n], ms + client_ms, served + server_ms
            if a.log:
                with open(a.log, "a") as log:
                    log.write(json.dumps({"task": name, "seed": a.seed + i, "success": success, "steps": n, "execute": a.execute,
                                          "infer_ms": [round(x, 3) for x in server_ms]}) + "\n")
            if a.record and i == 0:
                a.record.mkdir(parents=True, exist_ok=True)
                keep(a.record, name, rows)
        sim.close()
        print(f"{name:12s} {done}/{a.episodes} done  {np.mean(steps):.1f} steps  client p50 {np.median(ms):.1f} ms  server p50 "
              f"{np.median(served):.2f} p99 {np.percentile(served, 99):.2f} max {np.max(served):.2f} ms of {len(served)}", flush=True)


if __name__ == "__main__":
    main()

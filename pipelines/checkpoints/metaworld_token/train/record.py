"""Demonstrations of the scripted expert on the sliding button: python record.py OUT.npz [--demos 125]

pictures u8 [N,28,28,3], actions f32 [N,4] and demo [N]: what the undisturbed expert would do in the state that is seen. What is
executed is something else in most demonstrations, so that the policy learns to come back: a drift at first and noise, or
the expert's actions of up to 40 control steps ago at a lower speed, as a policy with old observations gets itself into.
"""
import argparse
import pathlib
import sys
import time

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "tools/demo"))        # the simulator

from slide import Slide

LONGEST = 150           # control steps
FIRST_SEED = 10_000     # evaluation seeds start at 500 000
LATEST = 40             # control steps that an executed action is old, at most
SLIDES, SPEEDS = (0.0, 0.05, 0.1, 0.15), (0.25, 0.5, 1.0)


def record(sim, seed, stride, rng):
    """One demonstration as rows (picture, action)."""
    late = int(rng.integers(1, LATEST)) if rng.random() < 0.5 else 0
    noise, drift, drifts = rng.choice([0.0, 0.25, 0.6]), rng.uniform(-1, 1, 3), int(rng.integers(0, 25))
    sim.reset(seed, rng.choice(SLIDES), rng.choice(SPEEDS) if late else 1.0)
    wanted, rows, phase = [], [], int(rng.integers(stride))
    for t in range(LONGEST):
        wanted.append(sim.expert_action())
        if t % stride == phase:
            rows.append((sim.observe()["observation/image"], wanted[-1]))
        act = wanted[max(0, t - late)].copy()
        if t < drifts:
            act[:3] = drift
        elif not late:
            act[:3] += noise * rng.standard_normal(3)
        if sim.step(act):
            break
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--demos", type=int, default=125)
    p.add_argument("--seed", type=int, default=FIRST_SEED)
    p.add_argument("--stride", type=int, default=2, help="control steps between recorded pictures")
    a = p.parse_args()
    a.out.parent.mkdir(parents=True, exist_ok=True)
    sim, rng, rows, begin = Slide(), np.random.default_rng(a.seed), [], time.time()
    for i in range(a.demos):
        rows += [(*row, i) for row in record(sim, a.seed + i, a.stride, rng)]
        if i % 25 == 24 or i == a.demos - 1:
            np.savez(a.out, pictures=np.array([r[0] for r in rows]), actions=np.array([r[1] for r in rows]),
                     demo=np.array([r[2] for r in rows]), prompt=sim.task.instruction)
            print(f"{i + 1} demonstrations, {len(rows)} pictures, {time.time() - begin:.0f} s, "
                  f"{time.process_time():.0f} s of this process", flush=True)


if __name__ == "__main__":
    main()

"""Demonstrations of Meta-World's scripted experts: python record.py OUT_DIR [--demos 240] [--tasks button,...]

One .npz for a task: images u8 [N,2,64,64,3], state f32 [N,4], expert f32 [N,16,4], executed f32 [N,16,4], sentence (index
into sentences) [N], demo [N]; --size and --horizon change 64 and 16. The expert is disturbed while it is recorded (a random drift at first, noise on what is
executed). With --driver a trained policy acts in its place, so that the next training knows the states that it gets
itself into. `expert` is what the undisturbed expert would have done in each state on the way: the policy learns to come
back. `executed` is what really was done: the prefix a policy with an old observation is conditioned on.
"""
import argparse
import pathlib
import sys
import time

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "tools/demo"))        # the simulator and the loop

from sim import SIZE, TASKS, Sim

HORIZON = 16            # of the shipped pi0.5
AFTER = 8               # control steps recorded after success
LONGEST = 260
FIRST_SEED = 10_000     # evaluation seeds start at 500 000


def disturbed(rng):
    """How one demonstration is disturbed: noise on the hand, a drift, how many steps it drifts."""
    return rng.choice([0.0, 0.25, 0.6]), rng.uniform(-1, 1, 3), rng.integers(0, 25)


def opening(name, rng):
    """A third of the drawer's demonstrations start with the drawer half open, so that only the instruction tells the task."""
    return rng.uniform(0.07, 0.13) if name.startswith("drawer") and rng.random() < 0.35 else None


class Driver:
    """A policy that is asked every 8 steps; the same call as an undisturbed expert's."""

    def __init__(self, folder):
        from policy import Local, noise
        self.policy, self.noise = Local(folder), noise

    def action(self, sim, step):
        if step % 8 == 0:
            obs = dict(sim.observe(), tectum={"noise": self.noise(0, step), "tasks": ["action"]})
            self.chunk = self.policy.infer(obs)["actions"]
        return self.chunk[step % 8].astype(np.float32)


def record(sim, seed, stride, rng, driver=None, horizon=HORIZON):
    """One demonstration as rows (image, wrist, state, expert chunk, executed chunk, sentence); none if the expert failed."""
    noise, drift, drift_steps = disturbed(rng)
    sim.reset(seed, opening(sim.name, rng))
    frames, wanted, executed, done_at = [], [], [], None
    phase = rng.integers(stride)
    for t in range(LONGEST):
        label = sim.expert_action()
        if t >= drift_steps and t % stride == phase and (done_at is None or t < done_at + AFTER):
            o = sim.observe()
            frames.append((t, o["observation/image"], o["observation/wrist_image"], o["observation/state"], sim.sentence()))
        act = driver.action(sim, t) if driver else label.copy()
        if t < drift_steps and not driver:
            act[:3] = drift
        else:
            act[:3] += noise * rng.standard_normal(3) * (0.3 if driver else 1)
        act = np.clip(act, -1, 1)
        wanted.append(label)
        executed.append(act)
        if sim.step(act) and done_at is None:
            done_at = t
        if done_at is not None and t >= done_at + AFTER + horizon:
            break
    if done_at is None and not driver:
        return []
    wanted, executed = np.array(wanted, np.float32), np.array(executed, np.float32)
    return [(a, b, s, wanted[t:t + horizon], executed[t:t + horizon], x)
            for t, a, b, s, x in frames if t + horizon <= len(wanted)]


def record_task(name, a, driver):
    rng = np.random.default_rng([a.seed, *map(ord, name)])
    sim, rows, good, begin = Sim(name, a.size), [], 0, time.time()
    for i in range(a.demos):
        r = record(sim, a.seed + i, a.stride, rng, driver, a.horizon)
        rows += [(*x, i) for x in r]
        good += bool(r)
    sentences = sorted({r[5] for r in rows})
    np.savez(a.out / f"{name}{'.driven' if driver else ''}.npz",
             images=np.array([np.stack(r[:2]) for r in rows]), state=np.array([r[2] for r in rows]),
             expert=np.array([r[3] for r in rows]), executed=np.array([r[4] for r in rows]),
             sentence=np.array([sentences.index(r[5]) for r in rows]), demo=np.array([r[6] for r in rows]),
             sentences=np.array(sentences), prompt=TASKS[name].instruction)
    print(f"{name}: {good}/{a.demos} demonstrations, {len(rows)} frames, {time.time() - begin:.0f} s", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--tasks", default=",".join(TASKS))
    p.add_argument("--demos", type=int, default=240)
    p.add_argument("--driver", help="a checkpoint that drives")
    p.add_argument("--seed", type=int, default=FIRST_SEED)
    p.add_argument("--stride", type=int, default=4, help="control steps between recorded frames")
    p.add_argument("--size", type=int, default=SIZE, help="pixels of a side of both pictures")
    p.add_argument("--horizon", type=int, default=HORIZON, help="actions recorded of every observation")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    driver = Driver(a.driver) if a.driver else None
    for name in a.tasks.split(","):
        record_task(name, a, driver)


if __name__ == "__main__":
    main()
